//! Language of a base: which words queries ignore, and the form in which words are compared.
//!
//! | language | left out | compared as |
//! |---|---|---|
//! | English | the list of [`super::tokenize`] | Porter's stems, by the tokenizer of the index |
//! | none | nothing | they are written, without case and accents |
//! | others | the ISO list of the crate `stop-words` | Snowball's stems, by the crate `rust-stemmers` |
//!
//! Queries are normalised like passages. The tokenizer removes accents after stemming.

use super::tokenize;
use crate::settings::Language;
use rust_stemmers::{Algorithm, Stemmer};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::LazyLock;
use stop_words::Language as List;

#[derive(Clone, Copy)]
pub(super) struct Words(Language);

/// Gives each language its algorithm, and its list as a set that is made once.
macro_rules! languages {
    ($($language:ident),+ $(,)?) => {
        fn of(language: Language) -> Option<(Algorithm, &'static HashSet<&'static str>)> {
            match language {
                Language::English | Language::None => None,
                $(Language::$language => {
                    static STOP: LazyLock<HashSet<&'static str>> =
                        LazyLock::new(|| stop_words::get(List::$language).iter().copied().collect());
                    Some((Algorithm::$language, &STOP))
                })+
            }
        }
    };
}

languages! {
    Arabic, Danish, Dutch, Finnish, French, German, Greek, Hungarian, Italian, Norwegian, Portuguese, Romanian, Russian,
    Spanish, Swedish, Turkish,
}

impl Words {
    /// The words of `language`.
    pub(super) fn of(language: Language) -> Self {
        Self(language)
    }

    pub(super) fn language(self) -> Language {
        self.0
    }

    /// Whether `word` (NFKC, lower case) carries no meaning of its own.
    pub(super) fn is_stop_word(self, word: &str) -> bool {
        match of(self.0) {
            Some((_, stop)) => stop.contains(word),
            None => self.0 == Language::English && tokenize::is_stop_word(word),
        }
    }

    /// The tokenizer of the index.
    pub(super) fn tokenizer(self) -> &'static str {
        match self.0 {
            Language::English => "tokenize='porter unicode61 remove_diacritics 2'",
            _ => "tokenize='unicode61 remove_diacritics 2'",
        }
    }

    /// Text for the index: with words separated, and stemmed if the tokenizer does not stem.
    pub(super) fn prepared(self, text: &str) -> Cow<'_, str> {
        let Some((algorithm, _)) = of(self.0) else { return tokenize::apart(text) };
        let stemmer = Stemmer::create(algorithm);
        let words = tokenize::words(text);
        Cow::Owned(words.iter().map(|word| stemmer.stem(word)).collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_leaves_its_own_small_words_out() {
        for (language, word) in [
            (Language::English, "the"),
            (Language::German, "und"),
            (Language::French, "les"),
            (Language::Spanish, "los"),
            (Language::Russian, "что"),
            (Language::Turkish, "ve"),
        ] {
            assert!(Words::of(language).is_stop_word(word), "{language}: {word}");
            assert!(!Words::of(Language::None).is_stop_word(word), "{word}");
        }
        assert!(!Words::of(Language::German).is_stop_word("the"));
    }

    #[test]
    fn words_are_brought_to_the_stems_of_their_language_and_else_stay() {
        let stemmed = |language, text| Words::of(language).prepared(text).into_owned();
        assert_eq!(stemmed(Language::German, "Die Wärmepumpen"), stemmed(Language::German, "die Wärmepumpe"));
        assert_eq!(stemmed(Language::French, "les chaudières"), stemmed(Language::French, "Les chaudière"));
        assert_eq!(stemmed(Language::None, "Heat pumps"), "Heat pumps");
        assert_eq!(stemmed(Language::English, "Heat pumps"), "Heat pumps", "the tokenizer does it");
    }
}

//! Words of a text, for searching: normalised, without the ones that carry no meaning.
//!
//! Used on both sides of every comparison (queries and keywords), so that they agree on what a word is.

use crate::platform::distinct;
use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Words that say nothing about a subject, sorted.
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "before", "being",
    "but", "by", "can", "could", "did", "do", "does", "doing", "for", "from", "get", "had", "has", "have", "having",
    "he", "her", "here", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "me", "more", "most",
    "my", "no", "not", "now", "of", "on", "only", "or", "other", "our", "out", "over", "please", "she", "should", "so",
    "some", "such", "tell", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those",
    "to", "too", "under", "up", "us", "very", "was", "we", "were", "what", "when", "where", "which", "while", "who",
    "why", "will", "with", "would", "you", "your",
];

/// Bytes of the longest of them.
const LONGEST_STOP_WORD: usize = 6;

/// Terms of one query at most; the rest of a longer one is passed over.
const MAX_TERMS: usize = 64;

/// Whether `word` (lower case) carries no meaning of its own.
pub fn is_stop_word(word: &str) -> bool {
    word.len() <= LONGEST_STOP_WORD && STOP_WORDS.binary_search(&word).is_ok()
}

/// Separates words in scripts without spaces: Han characters are single words, hiragana (mostly grammar)
/// becomes a space. Searching and indexing both use it; other text is unchanged.
pub fn apart(text: &str) -> Cow<'_, str> {
    let is_han =
        |letter: char| matches!(letter, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}');
    let is_hiragana = |letter: char| matches!(letter, '\u{3040}'..='\u{309f}');
    if text.is_ascii() || !text.chars().any(|letter| is_han(letter) || is_hiragana(letter)) {
        return Cow::Borrowed(text);
    }
    let mut apart = String::with_capacity(text.len() * 2);
    for letter in text.chars() {
        if is_han(letter) {
            apart.extend([' ', letter, ' ']);
        } else {
            apart.push(if is_hiragana(letter) { ' ' } else { letter });
        }
    }
    Cow::Owned(apart)
}

/// NFKC in lower case; of ASCII there is only one form.
pub(super) fn plain(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.nfkc().flat_map(char::to_lowercase).collect() }
}

fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// All words of `text` in order: NFKC, lower case, letters and digits only.
pub fn words(text: &str) -> Vec<String> {
    split(&apart(&plain(text))).map(str::to_owned).collect()
}

/// Letters without the marks above and below them, as the index keeps them.
pub(super) fn without_accents(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.nfd().filter(|letter| !is_combining_mark(*letter)).nfc().collect())
}

/// Number of words in `text`.
pub fn count(text: &str) -> usize {
    split(&apart(text)).count()
}

/// The words to search for: without repeats and stop words, unless nothing else is there; at most 64.
pub fn terms(text: &str) -> Vec<String> {
    let all = words(text);
    let mut kept: Vec<String> = Vec::new();
    let meaningful = all.iter().any(|word| !is_stop_word(word));
    for word in all {
        if kept.len() == MAX_TERMS {
            break;
        }
        if (!meaningful || !is_stop_word(&word)) && !kept.contains(&word) {
            kept.push(word);
        }
    }
    kept
}

/// The form in which a keyword is stored and compared: NFKC, trimmed, lower case, single spaces.
pub fn normalised_keyword(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The form in which keywords are compared: the words of the stored form, each without a simple plural.
pub fn keyword_form(keyword: &str) -> String {
    let normalised = normalised_keyword(keyword);
    normalised.split(' ').map(stem).collect::<Vec<_>>().join(" ")
}

/// Keywords in their stored form and the form in which they are compared; of those that compare equal the first.
pub fn distinct_keywords<'a>(given: impl Iterator<Item = &'a str>) -> Vec<(String, String)> {
    let mut distinct: Vec<(String, String)> = Vec::new();
    for (keyword, form) in given.map(|keyword| (normalised_keyword(keyword), keyword_form(keyword))) {
        if !keyword.is_empty() && !distinct.iter().any(|(_, known)| *known == form) {
            distinct.push((keyword, form));
        }
    }
    distinct
}

/// Singular of an English plural, by the three rules of Harman's S-stemmer ("How effective is suffixing?", 1991).
pub fn stem(word: &str) -> String {
    let ends = |suffix: &str, unless: &[&str]| word.ends_with(suffix) && !unless.iter().any(|end| word.ends_with(end));
    if word.chars().count() < 4 {
        word.to_owned()
    } else if ends("ies", &["eies", "aies"]) {
        format!("{}y", &word[..word.len() - 3])
    } else if ends("es", &["aes", "ees", "oes"]) || ends("s", &["us", "ss"]) {
        word[..word.len() - 1].to_owned()
    } else {
        word.to_owned()
    }
}

/// Stems of the meaningful words of `text`, without repeats, in order.
pub fn stems(text: &str) -> Vec<String> {
    distinct(terms(text).iter().map(|term| stem(term)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stop_words_are_sorted_so_that_they_can_be_searched() {
        assert!(STOP_WORDS.is_sorted());
        assert_eq!(STOP_WORDS.iter().map(|word| word.len()).max(), Some(LONGEST_STOP_WORD));
    }

    #[test]
    fn terms_leave_stop_words_out_unless_there_is_nothing_else() {
        assert_eq!(terms("What is the return window for a battery?"), ["return", "window", "battery"]);
        assert_eq!(terms("who is it"), ["who", "is", "it"]);
        assert!(terms("?! -- \u{0}").is_empty());
    }

    #[test]
    fn text_without_spaces_falls_into_words_too() {
        assert_eq!(words("バッテリーの保証は？"), ["バッテリー", "保", "証"]);
        assert_eq!(terms("保修期"), ["保", "修", "期"]);
    }

    #[test]
    fn plurals_share_a_stem_and_words_that_only_look_like_plurals_keep_theirs() {
        assert_eq!(stem("batteries"), stem("battery"));
        assert_eq!(stem("inverters"), "inverter");
        assert_eq!(stem("status"), "status");
        assert_eq!(stem("glass"), "glass");
        assert_eq!(stem("gas"), "gas");
    }

    proptest! {
        #[test]
        fn normalising_a_keyword_twice_changes_nothing(text in "\\PC{0,40}") {
            let once = normalised_keyword(&text);
            prop_assert_eq!(normalised_keyword(&once), once);
        }

        #[test]
        fn terms_hold_letters_and_digits_only(text in "\\PC{0,80}") {
            for term in terms(&text) {
                prop_assert!(!term.is_empty() && term.chars().all(char::is_alphanumeric));
            }
        }
    }
}

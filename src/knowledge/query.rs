//! What a query asks for: words, phrases and prefixes, each with how often.
//!
//! | written | asks for |
//! |---|---|
//! | `heat pump` | either word |
//! | `"heat pump"` | either word; a higher score where they are adjacent |
//! | `warrant*` | every word that begins with it (three letters at least) |
//!
//! All else is text: operators, brackets and quotes of a search language mean nothing here.

use super::language::Words;
use super::tokenize;

/// Different terms of one query at most; further ones of a longer query are passed over.
const MOST_TERMS: usize = 64;
/// Letters of a prefix at least.
const SHORTEST_PREFIX: usize = 3;
/// Words of a phrase at most; a longer one is searched for by its words alone.
const LONGEST_PHRASE: usize = 8;

/// One thing to search for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Term {
    /// A word, in any of its forms.
    Word(String),
    /// Adjacent words, separated by spaces.
    Phrase(String),
    /// Words that begin so.
    Prefix(String),
}

impl Term {
    /// The text to be brought to stems.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Word(text) | Self::Phrase(text) | Self::Prefix(text) => text,
        }
    }
}

/// The terms of `text` in the order of their first place, each with how often it is written. Stop words are left out
/// unless nothing else is there; `of` says which these are.
pub(super) fn parse(text: &str, of: Words) -> Vec<(Term, u32)> {
    let plain = tokenize::plain(text).replace(['\u{201c}', '\u{201d}', '\u{201e}'], "\"");
    let words = tokenize::words(&plain);
    let meaningful = words.iter().any(|word| !of.is_stop_word(word));
    let prefixes = prefixes(&plain);
    let mut terms: Vec<(Term, u32)> = Vec::new();
    let wanted = words.into_iter().filter(|word| !meaningful || !of.is_stop_word(word));
    let single = wanted.map(|word| if prefixes.contains(&word) { Term::Prefix(word) } else { Term::Word(word) });
    for term in single.chain(phrases(&plain).into_iter().map(Term::Phrase)) {
        if let Some((_, count)) = terms.iter_mut().find(|(known, _)| *known == term) {
            *count = count.saturating_add(1);
        } else if terms.len() < MOST_TERMS {
            terms.push((term, 1));
        }
    }
    terms
}

/// Words followed by a star.
fn prefixes(plain: &str) -> Vec<String> {
    let pieces: Vec<&str> = plain.split('*').collect();
    let before_a_star = pieces.split_last().map_or(&[][..], |(_, before)| before);
    let last_word = |piece: &&str| {
        let word = piece.rsplit(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
        (word.chars().count() >= SHORTEST_PREFIX).then(|| word.to_owned())
    };
    before_a_star.iter().filter_map(last_word).collect()
}

/// Quoted text of two or more words.
fn phrases(plain: &str) -> Vec<String> {
    let pieces: Vec<&str> = plain.split('"').collect();
    // Text after an unclosed quote is not a phrase.
    let quoted = pieces.iter().enumerate().filter(|(place, _)| place % 2 == 1 && place + 1 < pieces.len());
    let words = quoted.map(|(_, piece)| tokenize::words(piece));
    words.filter(|words| (2..=LONGEST_PHRASE).contains(&words.len())).map(|words| words.join(" ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Language;
    use proptest::prelude::*;

    fn parse(text: &str) -> Vec<(Term, u32)> {
        super::parse(text, Words::of(Language::English))
    }

    fn word(text: &str, count: u32) -> (Term, u32) {
        (Term::Word(text.into()), count)
    }

    #[test]
    fn a_repeated_word_counts_as_often_as_it_is_written_and_stop_words_not_at_all() {
        assert_eq!(parse("The battery of a battery"), [word("battery", 2)]);
        assert_eq!(parse("who is it"), [word("who", 1), word("is", 1), word("it", 1)]);
        assert!(parse("?! \"\" * -- \u{0}").is_empty());
    }

    #[test]
    fn quotes_add_a_phrase_to_its_words_and_a_star_makes_a_prefix() {
        let phrase = (Term::Phrase("heat pump".into()), 1);
        assert_eq!(parse("\"Heat  pump\" price"), [word("heat", 1), word("pump", 1), word("price", 1), phrase]);
        assert_eq!(parse("“heat pump”").last(), Some(&(Term::Phrase("heat pump".into()), 1)));
        assert_eq!(parse("warrant* ab*"), [(Term::Prefix("warrant".into()), 1), word("ab", 1)]);
        assert_eq!(parse("\"solar\" AND \"greenhouse\""), [word("solar", 1), word("greenhouse", 1)]);
        assert_eq!(parse("an \"open quote"), [word("open", 1), word("quote", 1)]);
    }

    #[test]
    fn a_long_query_is_cut_at_its_different_terms_and_not_at_its_words() {
        let text = (0..100).map(|n| format!("word{n} lamp ")).collect::<Vec<_>>().concat();
        let terms = parse(&text);
        assert_eq!((terms.len(), &terms[1]), (MOST_TERMS, &word("lamp", 100)));
    }

    proptest! {
        #[test]
        fn any_text_becomes_words_of_letters_and_digits(text in "\\PC{0,60}|[\"'*^():{}+\\-ANDORNEAR ]{0,40}") {
            for (term, count) in parse(&text) {
                let words = |text: &str| text.chars().all(|letter| letter.is_alphanumeric() || letter == ' ');
                prop_assert!(count > 0 && !term.text().is_empty() && words(term.text()));
            }
        }
    }
}

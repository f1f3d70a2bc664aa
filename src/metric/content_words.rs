//! Content words: what a query or keyword is about, without function words, politeness and words that match nearly
//! every document.
//!
//! Words compare in lower case and without an English plural. Function words are known for English, German, French and
//! Spanish; in other languages every word counts. A text that is written without spaces is one word.

use super::generic::{GENERIC, normalise};
use std::collections::BTreeSet;

/// Function words and politeness beside [`GENERIC`], sorted.
const FUNCTION_WORDS: &[&str] = &[
    "aber", "again", "alle", "also", "am", "any", "au", "auch", "auf", "aus", "avec", "be", "been", "bei", "bitte",
    "but", "ce", "como", "con", "could", "cual", "cuál", "cómo", "cuanto", "cuánto", "danke", "das", "dass", "de",
    "del", "dem", "den", "der", "des", "did", "die", "does", "du", "durch", "ein", "eine", "einem", "einen", "einer",
    "el", "en", "er", "es", "est", "et", "exactly", "explain", "explained", "favor", "find", "für", "get", "give",
    "had", "has", "hat", "have", "hello", "hi", "ich", "if", "ihr", "im", "into", "ist", "its", "just", "kindly", "la",
    "las", "le", "les", "los", "look", "mais", "man", "may", "me", "merci", "mi", "mir", "mit", "must", "my", "nach",
    "need", "nicht", "no", "not", "now", "ob", "oder", "only", "our", "para", "please", "pls", "plz", "por", "pour",
    "quand", "que", "quel", "quelle", "qui", "qué", "really", "should", "sich", "sie", "sind", "so", "show", "si",
    "tell", "than", "thank", "thanks", "their", "them", "then", "there", "these", "they", "thx", "too", "um", "un",
    "una", "und", "une", "up", "us", "use", "vom", "von", "vous", "wann", "want", "warum", "was", "we", "welche",
    "welchem", "welchen", "welcher", "welches", "wer", "were", "wie", "wieso", "wieviel", "will", "wir", "wird", "wo",
    "would", "your", "zu", "zum", "zur", "à", "über",
];

/// The words of a text, normalised, with inner hyphens.
pub(super) fn words(text: &str) -> Vec<String> {
    let text = normalise(text);
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '-');
    words.map(|word| word.trim_matches('-').to_owned()).filter(|word| !word.is_empty()).collect()
}

/// Whether a normalised word says nothing about a subject.
pub(super) fn is_function_word(word: &str) -> bool {
    FUNCTION_WORDS.contains(&word) || GENERIC.binary_search(&word).is_ok()
}

/// The content words of a text, without an English plural.
pub(super) fn content_words(text: &str) -> BTreeSet<String> {
    words(text).into_iter().filter(|word| !is_function_word(word)).map(|word| singular(&word).to_owned()).collect()
}

fn singular(word: &str) -> &str {
    let long = |stem: &&str| stem.chars().count() >= 3 && !stem.ends_with('s');
    word.strip_suffix('s').filter(long).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        content_words(text).into_iter().collect()
    }

    #[test]
    fn politeness_order_case_and_a_plural_change_no_content() {
        for text in [
            "Sprig warranty",
            "warranty Sprig please",
            "Please tell me the WARRANTIES-free Sprig warranty information",
            "kindly: sprigs' warranty?",
            "Bitte die Sprig warranty",
        ] {
            let content = of(text);
            assert!(
                ["sprig", "warranty"].iter().all(|word| content.contains(&(*word).to_owned())),
                "{text}: {content:?}"
            );
        }
        assert_eq!(of("warranty Sprig please"), of("Sprig warranty"));
        assert_eq!(of("sprigs warranty, thanks!"), of("Sprig warranty"));
        assert!(of("How much is it, please?").is_empty() && of("").is_empty());
    }

    #[test]
    fn codes_numbers_and_words_of_other_scripts_are_content() {
        assert_eq!(of("What does E-17 mean?"), ["e-17", "mean"]);
        assert_eq!(of("glass bus 8883"), ["8883", "bus", "glass"]);
        assert_eq!(of("гарантия контроллера"), ["гарантия", "контроллера"]);
    }
}

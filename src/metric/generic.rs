//! Keywords too general for a search.
//!
//! This list is separate from the tool's, so that a tool that accepts poor keywords is caught here. A test checks
//! that the tool refuses every keyword in this list.

use unicode_normalization::UnicodeNormalization;

/// Words that match nearly every document, alone or together, sorted.
pub const GENERIC: &[&str] = &[
    "a", "about", "all", "an", "and", "answer", "answers", "are", "article", "as", "at", "best", "by", "can",
    "content", "data", "detail", "details", "do", "document", "documents", "does", "example", "fact", "facts", "for",
    "from", "general", "good", "guide", "help", "how", "in", "info", "information", "is", "it", "item", "keyword",
    "keywords", "knowledge", "list", "many", "misc", "more", "much", "new", "of", "on", "or", "other", "page",
    "problem", "query", "question", "questions", "result", "results", "search", "some", "source", "sources", "stuff",
    "text", "that", "the", "thing", "things", "this", "tip", "tips", "to", "topic", "topics", "user", "various", "was",
    "what", "when", "where", "which", "who", "why", "with", "you",
];

/// Normalises a keyword for comparison: NFKC, lower case, single spaces.
pub fn normalise(keyword: &str) -> String {
    let lower: String = keyword.nfkc().flat_map(char::to_lowercase).collect();
    lower.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether every word of a normalised keyword is generic; true for a keyword without words.
pub fn is_generic(keyword: &str) -> bool {
    keyword
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .all(|word| GENERIC.binary_search(&word).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_for_searching() {
        assert!(GENERIC.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_keyword_is_generic_only_when_all_its_words_are() {
        assert!(is_generic("information") && is_generic("the best answer") && is_generic("—"));
        assert!(!is_generic("heat pump information"));
        assert_eq!(normalise("  Heat\u{a0}PUMP  ﬁlter "), "heat pump filter");
    }
}

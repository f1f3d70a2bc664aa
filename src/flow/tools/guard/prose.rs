//! Recognises harmless text with code: questions about code, prose that quotes it, and documents. Such text contains
//! the elements of attacks without being one.
//!
//! Payloads are short and have few words between their signs. So a question, prose, a page of lines and a boolean
//! search may contain code, unless it contains a working payload ([`PAYLOADS`]). Rules and thresholds were chosen so
//! that detection of the attacks in the corpus suite loses no more than its patterns gained by it.

use crate::knowledge::tokenize::is_stop_word;
use regex::{Regex, RegexSet};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Openings of questions and requests for an explanation, sorted.
const OPENINGS: &[&str] = &[
    "are", "can", "compare", "could", "describe", "did", "do", "does", "explain", "has", "have", "how", "is", "may",
    "must", "should", "solve", "was", "were", "what", "when", "where", "which", "who", "whose", "why", "would",
];

/// Stop words that are also SQL keywords, sorted: they do not count as prose.
const OF_SQL: &[&str] = &["and", "as", "between", "by", "from", "having", "in", "like", "not", "or", "select", "union"];

/// Words that do not occur in boolean searches, sorted.
const NO_TERMS: &[&str] =
    &["benchmark", "false", "having", "like", "null", "select", "sleep", "true", "union", "waitfor", "xor"];

/// Patterns of attacks in any context.
const PAYLOADS: [&str; 10] = [
    r"\$\{jndi:",
    r"<script[^>]*>[^<]{0,40}\b(alert|prompt|confirm|eval|fetch|document)\b",
    r"\bon[a-z]{3,20} ?= ?[\x22'`]?(alert|prompt|confirm|eval|fetch|document|location|window|javascript)\b",
    r"'[ )]*(or|and|\|\|) ?\(?'?1'? ?= ?'?1",
    r"\bunion( all)? select [^ ]{1,60}.{0,80}\b(from|--|#)",
    r"; ?drop (table|database)\b",
    r"/etc/(passwd|shadow)\b",
    r"\bxp_cmdshell\b",
    r"(\.\.[\\/]){3,}",
    r"169\.254\.169\.254",
];

/// `None` means that a pattern does not compile (a test checks them): no text counts as prose then.
static COMPILED: LazyLock<Option<(RegexSet, Regex)>> = LazyLock::new(|| {
    let term = r#"("[a-z][a-z -]{2,}"|[a-z]{3,})"#;
    let search = format!(r"^[( ]*{term}[) ]*( (and not|and|or|not) [( ]*{term}[) ]*)+$");
    let ascii = PAYLOADS.map(super::ascii);
    Some((RegexSet::new(ascii).ok()?, Regex::new(&search).ok()?))
});

/// Whether a normalised text contains a working payload.
pub(super) fn holds_payload(text: &str) -> bool {
    COMPILED.as_ref().is_none_or(|(payloads, _)| payloads.is_match(text))
}

/// Whether a normalised text may contain code.
pub(super) fn may_hold_code(text: &str) -> bool {
    let Some((_, search)) = COMPILED.as_ref() else { return false };
    if holds_payload(text) {
        return false;
    }
    let words: Vec<&str> = text
        .split(|letter: char| !letter.is_ascii_lowercase() && letter != '\'')
        .map(|word| word.trim_matches('\''))
        .filter(|word| !word.is_empty())
        .collect();
    let begins_with_a_word = text.trim_start_matches(' ').starts_with(|letter: char| letter.is_ascii_lowercase());
    let first = words.first().and_then(|word| word.split('\'').next()).unwrap_or_default();
    let asks = begins_with_a_word && OPENINGS.binary_search(&first).is_ok();
    is_question(text, &words, asks)
        || is_prose(&words)
        || is_page(text, &words)
        || is_boolean_search(search, text, &words)
}

fn is_question(text: &str, words: &[&str], asks: bool) -> bool {
    let small: BTreeSet<&&str> = words.iter().filter(|word| is_stop_word(word)).collect();
    let ends = text.trim_end().ends_with('?') || text.trim_start().starts_with("explain");
    asks && ((words.len() >= 4 && small.len() >= 2) || (words.len() >= 3 && !small.is_empty() && ends))
}

/// Fifty words or more; at least one in seven is a short function word, of at least six different ones.
fn is_prose(words: &[&str]) -> bool {
    let small = words.iter().filter(|word| is_stop_word(word) && OF_SQL.binary_search(word).is_err());
    let (count, kinds) = (small.clone().count(), small.collect::<BTreeSet<_>>().len());
    words.len() >= 50 && count >= 12 && count * 20 >= words.len() * 3 && kinds >= 6
}

/// Sixty words or more over five lines or more.
fn is_page(text: &str, words: &[&str]) -> bool {
    words.len() >= 60 && text.matches('\n').count() >= 4
}

/// Terms and quoted phrases of letters between AND, OR and NOT.
fn is_boolean_search(search: &Regex, text: &str, words: &[&str]) -> bool {
    search.is_match(text) && !words.iter().any(|word| NO_TERMS.binary_search(word).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_so_that_they_can_be_searched_and_patterns_compile() {
        assert!(OPENINGS.is_sorted() && OF_SQL.is_sorted() && NO_TERMS.is_sorted());
        assert_eq!(COMPILED.as_ref().map(|(payloads, _)| payloads.len()), Some(PAYLOADS.len()));
    }

    #[test]
    fn questions_and_boolean_searches_may_hold_code_and_bare_payloads_may_not() {
        for text in [
            "what is the operating system (os)?",
            "what does `select * from users` return?",
            "\"solar\" and \"greenhouse\"",
            "(solar or photovoltaic) and not inverter",
        ] {
            assert!(may_hold_code(text), "{text}");
        }
        for text in [
            "system('id')",
            "\"a\" or \"a\"",
            "select name from users where id = 1",
            "x and sleep",
            "what is this: ' or '1'='1",
            "is it ${jndi:ldap://example.com/a} or what?",
            "how do i read ../../../etc/passwd?",
        ] {
            assert!(!may_hold_code(text), "{text}");
        }
    }
}

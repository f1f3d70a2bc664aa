//! Language processing of the simulated model: words, stems, overlap, sentences and key phrases, all by counting.

use std::collections::BTreeSet;

/// Words without a subject.
const STOP: &[&str] = &[
    "a", "about", "after", "against", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been",
    "before", "being", "but", "by", "can", "could", "did", "do", "does", "during", "for", "from", "get", "give", "had",
    "has", "have", "here", "how", "i", "if", "in", "into", "is", "it", "its", "just", "know", "let", "many", "may",
    "me", "mean", "might", "more", "much", "must", "my", "need", "no", "not", "now", "of", "on", "one", "only", "or",
    "our", "out", "please", "said", "same", "say", "shall", "she", "should", "so", "some", "tell", "than", "that",
    "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "too", "up", "us", "use", "want",
    "was", "we", "were", "what", "when", "where", "which", "who", "why", "will", "with", "would", "you", "your",
    "again", "exactly", "work",
];

/// Words that refer back to an earlier turn.
const POINTERS: &[&str] = &["it", "its", "that", "this", "those", "these", "they", "them", "same"];

/// Openings of a follow-up question.
const OPENINGS: &[&str] = &["and ", "what about", "how about", "also ", "then ", "und ", "et ", "ok, ", "okay, "];

/// The words of a text in lower case, with inner hyphens.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '-'))
        .map(|word| word.trim_matches('-').to_lowercase())
        .filter(|word| !word.is_empty())
        .collect()
}

/// The words of a question's subject, in order, without duplicates.
pub(super) fn content_words(text: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    words(&text.replace(['\'', '’'], " "))
        .into_iter()
        .filter(|word| {
            !STOP.contains(&word.as_str()) && (word.chars().count() > 1 || word.chars().all(char::is_numeric))
        })
        .filter(|word| seen.insert(stem(word)))
        .collect()
}

/// A word without its most common English endings.
pub(super) fn stem(word: &str) -> String {
    for ending in ["ingly", "ings", "ing", "ies", "ed", "es", "s", "e", "y"] {
        if let Some(root) = word.strip_suffix(ending)
            && root.chars().count() >= 3
        {
            return root.to_owned();
        }
    }
    word.to_owned()
}

/// The stems of a text's words.
pub(super) fn stems(text: &str) -> BTreeSet<String> {
    words(text)
        .iter()
        .flat_map(|word| {
            let parts = word.split('-').filter(|_| word.contains('-')).map(stem).collect::<Vec<_>>();
            std::iter::once(stem(word)).chain(parts)
        })
        .collect()
}

/// Fraction of `asked` (content words) whose stems occur in `text`, 0 to 1; 0 if `asked` is empty.
pub(super) fn overlap(asked: &[String], text: &str) -> f64 {
    if asked.is_empty() {
        return 0.0;
    }
    let present = stems(text);
    asked.iter().filter(|word| present.contains(&stem(word))).count() as f64 / asked.len() as f64
}

/// Whether a question is only understandable with the one before.
pub(super) fn points_back(question: &str) -> bool {
    let lower = question.trim().to_lowercase();
    OPENINGS.iter().any(|opening| lower.starts_with(opening))
        || words(&lower).iter().any(|word| POINTERS.contains(&word.as_str()))
        || content_words(question).len() <= 2
}

/// The sentences of a text, with their end marks.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut marks = text.char_indices().peekable();
    while let Some((at, mark)) = marks.next() {
        let next = marks.peek().map(|(_, c)| *c);
        let ends = match mark {
            '.' | '!' | '?' => next.is_none_or(char::is_whitespace),
            '。' | '？' | '！' => true,
            _ => false,
        };
        if ends {
            let end = at + mark.len_utf8();
            found.push(text[start..end].trim());
            start = end;
        }
    }
    found.push(text[start..].trim());
    found.retain(|sentence| !sentence.is_empty());
    found
}

/// Three to six key phrases of an answer to `question`: first pairs of neighbouring content words, those that share a
/// word with the question before others; then single words.
pub(super) fn key_phrases(question: &[String], answer: &str) -> Vec<String> {
    let asked: BTreeSet<String> = question.iter().map(|word| stem(word)).collect();
    let tokens = words(answer);
    let useful = |word: &str| word.chars().count() > 2 && !STOP.contains(&word) && !word.chars().all(char::is_numeric);
    let mut pairs: Vec<(bool, usize, String)> = Vec::new();
    for (at, pair) in tokens.windows(2).enumerate() {
        if useful(&pair[0]) && useful(&pair[1]) {
            let shared = pair.iter().any(|word| asked.contains(&stem(word)));
            pairs.push((!shared, at, format!("{} {}", pair[0], pair[1])));
        }
    }
    pairs.sort();
    let singles = tokens.iter().filter(|word| useful(word) && word.chars().count() > 5).cloned();
    let mut taken = BTreeSet::new();
    pairs
        .into_iter()
        .take(4)
        .map(|(_, _, phrase)| phrase)
        .chain(singles)
        .filter(|phrase| phrase.chars().count() <= 50 && taken.insert(phrase.clone()))
        .take(6)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_words_keep_codes_and_drop_small_talk() {
        assert_eq!(content_words("What does the error E-17 mean on my Pro?"), ["error", "e-17", "pro"]);
    }

    #[test]
    fn overlap_ignores_endings() {
        let asked = content_words("replacing the filters");
        assert!((overlap(&asked, "A filter is replaced every spring.") - 1.0).abs() < f64::EPSILON);
        assert!(overlap(&[], "anything").abs() < f64::EPSILON);
    }

    #[test]
    fn a_full_stop_inside_a_number_ends_no_sentence() {
        assert_eq!(sentences("Set 6.5 bar. Then wait!  Done"), ["Set 6.5 bar.", "Then wait!", "Done"]);
        assert_eq!(sentences("はい。次です。"), ["はい。", "次です。"]);
    }

    #[test]
    fn short_and_pointing_questions_point_back() {
        assert!(points_back("And for the Pro?"));
        assert!(points_back("How long does it take to reset?"));
        assert!(!points_back("How long does a factory reset of the Loam Pro take?"));
    }

    #[test]
    fn key_phrases_prefer_what_was_asked_and_repeat_nothing() {
        let asked = content_words("feed-in tariff for surplus solar power");
        let found =
            key_phrases(&asked, "The solar tariff is 8 cents. Surplus power above 10 kW earns less per kilowatt.");
        assert!(found.contains(&"solar tariff".to_owned()) && found.contains(&"surplus power".to_owned()), "{found:?}");
        assert!((3..=6).contains(&found.len()), "{found:?}");
    }
}

//! Claims beside the words of a refusal: beliefs, and what follows a contrast or comes from general knowledge.

use super::{SENTENCE_ENDS, is_polite, normalise};
use regex::Regex;
use std::sync::LazyLock;

/// A belief, up to the end of its sentence, which is a claim: "I don't know, but I think it is blue".
pub(super) static BELIEF: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let held = r"(?:i|we)(?:'d| would)? (?:(?:do|still|would|also|just|really|personally) )?(?:believe|think|guess|assume|suspect|reckon|(?:say|expect) (?:the|its?|it's|this|that|they|there))";
    let others = "(?:ich|wir) (?:glaube|denke|vermute)n?|(?:glaube|denke|vermute)n? (?:ich|wir)|je (?:crois|pense|suppose) que?|(?:creo|pienso|supongo) que|(?:credo|penso) che";
    let likely =
        "(?:its?|this|that|they|these|those)(?:'s|'re| is| are) (?:probably|likely|most likely|very likely|presumably)";
    Regex::new(&format!(r"\b(?:{held}|{others}|{likely})\b[^.!?;\n]*")).ok()
});

/// What an answer goes on with that its sources do not say, up to the end of the sentence.
pub(super) static GENERAL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let known = r"(?:based on|from|using|in|per|according to) (?:my |our )?(?:own )?(?:general|common|background|world|training) (?:knowledge|understanding|data)";
    let begins = r"(?:^\s*|[,:–—-] ?|\bbut )";
    Regex::new(&format!(r"{begins}(?:{known}|in general|generally(?: speaking)?|as a general rule)\b[^.!?;\n]*")).ok()
});

/// What begins a claim beside a refusal in English.
pub(super) static ENGLISH_CONTRASTS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)(?:^ *|[,–—] *)(?:but|however)\b").ok());

/// Whether one of these words is in a part of a normalised text.
fn has_word(part: &str, words: &[&str]) -> bool {
    part.split_whitespace().any(|word| words.contains(&word.trim_matches(|letter: char| !letter.is_alphanumeric())))
}

/// Whether a part of a normalised text gives advice, or is about the documents or the question, which does not answer.
fn advises(part: &str) -> bool {
    let words = [
        "best", "better", "worth", "check", "look", "reach", "reaching", "contact", "ask", "call", "reception", "team",
        "vendor", "manufacturer", "website", "document", "documents", "documentation", "question", "something", "not",
        "no", "fragen", "wenden", "demander", "preguntar",
    ];
    has_word(part, &words)
}

/// Whether a text goes on with a claim in English, after a contrast or from general knowledge. What offers help says none.
pub(super) fn goes_on(text: &str, refuses: impl Fn(&str) -> bool) -> bool {
    let helps = [
        "help", "assist", "happy", "glad", "try", "support", "search", "rephrase", "provide", "share", "information",
        "find", "visit", "sorry", "email", "feel", "let", "please", "may", "might", "could",
    ];
    // What is known in general may be a warning: only who is asked instead answers nothing.
    let refers = ["contact", "ask", "check", "manufacturer", "website", "team", "documents", "documentation"];
    let claims = |part: &str, advises: &dyn Fn(&str) -> bool| {
        let part = normalise(part.trim_matches(|letter: char| !letter.is_alphanumeric()));
        let is_short = part.split_whitespace().count() < 4;
        !(is_short || refuses(&part) || advises(&part) || has_word(&part, &helps) || is_polite(&part))
    };
    text.split(SENTENCE_ENDS).any(|sentence| {
        let normal = normalise(sentence);
        let contrast = ENGLISH_CONTRASTS.iter().find_map(|contrast| contrast.splitn(sentence, 2).nth(1));
        let general = GENERAL.iter().find_map(|general| general.find(&normal));
        contrast.is_some_and(|part| claims(part, &advises))
            || general.is_some_and(|part| claims(part.as_str(), &|part| has_word(part, &refers)))
    })
}

/// Whether a normalised text contains a belief that neither refuses nor advises.
pub(super) fn believes(normal: &str, refuses: impl Fn(&str) -> bool) -> bool {
    let beliefs = BELIEF.iter().flat_map(|belief| belief.find_iter(normal));
    // "I think so" says nothing.
    let says = |part: &str| !part.ends_with(" so");
    beliefs.map(|found| found.as_str()).any(|part| says(part) && !refuses(part) && !advises(part))
}

//! Keys that are told by their form, without being known.

use memchr::memmem;
use regex::{Captures, Regex};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

const WELL_KNOWN: &str = r"(?x)
    (?P<openai>\bsk-[A-Za-z0-9_-]{16,})
    | (?P<perplexity>\bpplx-[A-Za-z0-9_-]{16,})
    | (?P<groq>\bgsk_[A-Za-z0-9]{16,})
    | (?P<google>\bAIza[A-Za-z0-9_-]{30,})
    | (?P<aws>\bAKIA[0-9A-Z]{16}\b)
    | (?P<github>\b(?:gh[pousr]_|github_pat_)[A-Za-z0-9_]{20,})
    | (?P<huggingface>\bhf_[A-Za-z0-9]{20,})
    | (?P<slack>\bxox[abprs]-[A-Za-z0-9-]{16,})
    | (?P<private_key>-----BEGIN\ [A-Z\ ]{0,20}PRIVATE\ KEY-----[A-Za-z0-9+/=\s\\]{16,})
    | (?P<head>[Bb]earer\ +|\b(?:api_?key|access_token|client_secret|key)=)(?P<value>[A-Za-z0-9._~+/-]{16,}=*)
    ";

/// A group's name, and what it finds.
pub(super) type Kind = (&'static str, &'static str);

/// The groups of [`WELL_KNOWN`] that are a secret as a whole, with what they are.
const KINDS: [Kind; 9] = [
    ("openai", "a key that begins like those of OpenAI, Anthropic or OpenRouter"),
    ("perplexity", "a key that begins like those of Perplexity"),
    ("groq", "a key that begins like those of Groq"),
    ("google", "a key that begins like those of Google"),
    ("aws", "a key id that begins like those of AWS"),
    ("github", "a token that begins like those of GitHub"),
    ("huggingface", "a token that begins like those of Hugging Face"),
    ("slack", "a token that begins like those of Slack"),
    ("private_key", "a private key"),
];

static PATTERNS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(WELL_KNOWN).ok());
/// The same without word boundaries: in escaped text the `n` of a line break touches the key behind it, and any escape may
/// stand where a space does.
static SUSPICIONS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let spaced = format!("{HEAD}\\ +");
    let escaped = format!(r"{HEAD}(?:\ |\\[nrtbf\x22]?)+");
    Regex::new(&WELL_KNOWN.replace(&spaced, &escaped).replace(r"\b", "")).ok()
});
/// The word before a key that needs no other sign.
const HEAD: &str = "[Bb]earer";

/// Whether escaped text surely holds no key of a well-known form.
pub(super) fn is_surely_clean(json: &str) -> bool {
    // A character of a key may be escaped as any character may.
    memmem::find(json.as_bytes(), b"\\u00").is_none()
        && SUSPICIONS.as_ref().is_some_and(|patterns| !patterns.is_match(json))
}

/// Where keys of a well-known form stand, in order; `None` for what is known by the word before it alone.
pub(super) fn well_known(text: &str) -> Vec<(Range<usize>, Option<Kind>)> {
    let Some(patterns) = PATTERNS.as_ref() else { return Vec::new() };
    let text = without_escapes(text);
    let found = patterns.captures_iter(&text).filter_map(|found: Captures<'_>| {
        let whole = found.get(0)?.range();
        let kind = KINDS.into_iter().find(|(name, _)| found.name(name).is_some());
        let start = found.name("head").map_or(whole.start, |head| head.end());
        Some((start..whole.end, kind))
    });
    found.collect()
}

/// The text with spaces for escapes: the `n` of an escaped line break must not pass for the letter before a key. Of
/// the same length, so that places stay what they are.
pub(super) fn without_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let next = rest[at + 1..].chars().next();
        let width = if next.is_some_and(|next| "nrtbf\"\\".contains(next)) { 2 } else { 1 };
        out.push_str(&"  "[..width]);
        rest = &rest[at + width..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

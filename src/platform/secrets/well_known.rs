//! Keys that are told by their form, or by the name that stands before them, without being known.

use super::invisible::Visible;
use memchr::memmem;
use regex::{Captures, Regex};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

const WELL_KNOWN: &str = r"(?x)
    (?P<openai>\bsk-[A-Za-z0-9_-]{16,})
    | (?P<perplexity>\bpplx-[A-Za-z0-9_-]{16,})
    | (?P<groq>\bgsk_[A-Za-z0-9]{16,})
    | (?P<xai>\bxai-[A-Za-z0-9]{20,})
    | (?P<google>\bAIza[A-Za-z0-9_-]{30,})
    | (?P<google_token>\bya29\.[A-Za-z0-9_-]{16,}|\b1//0[A-Za-z0-9_-]{30,})
    | (?P<aws>\b(?:AKIA|ASIA)[0-9A-Z]{16}\b)
    | (?P<github>\b(?:gh[pousr]_|github_pat_)[A-Za-z0-9_]{20,})
    | (?P<huggingface>\bhf_[A-Za-z0-9]{20,})
    | (?P<slack>\bxox[abeprs]-[A-Za-z0-9-]{16,})
    | (?P<stripe>\b(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{24,}))
    | (?P<jwt>\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})
    | (?P<private_key>-----BEGIN\ [A-Z\ ]{0,20}PRIVATE\ KEY-----[A-Za-z0-9+/=\s\\]{16,})
    | (?P<head>[Bb]earer\ +|\b(?:api_?key|access_token|client_secret|key)=)(?P<value>[A-Za-z0-9._~+/-]{16,}=*)
    ";

/// A group's name, and what it finds.
pub(super) type Kind = (&'static str, &'static str);

/// The groups of [`WELL_KNOWN`] that are a secret as a whole, with what they are.
const KINDS: [Kind; 13] = [
    ("openai", "a key that begins like those of OpenAI, Anthropic or OpenRouter"),
    ("perplexity", "a key that begins like those of Perplexity"),
    ("groq", "a key that begins like those of Groq"),
    ("xai", "a key that begins like those of xAI"),
    ("google", "a key that begins like those of Google"),
    ("google_token", "a token that begins like those of Google"),
    ("aws", "a key id that begins like those of AWS"),
    ("github", "a token that begins like those of GitHub"),
    ("huggingface", "a token that begins like those of Hugging Face"),
    ("slack", "a token that begins like those of Slack"),
    ("stripe", "a key that begins like those of Stripe"),
    ("jwt", "a JSON Web Token"),
    ("private_key", "a private key"),
];

/// Names whose value is a secret, in headers, members, variables and lists of names and values.
const NAMES: &str = "api[-_]?key|subscription[-_]key|access[-_]?token|refresh[-_]?token|id[-_]token|session[-_]?token\
    |security[-_]token|auth[-_]?token|csrf[-_]?token|client[-_]?secret|secret[-_]?access[-_]?key|authorization";
/// Headers whose value is cookies, with the names of those that are set by frameworks.
const COOKIES: &str = "set-cookie2?|cookies?";
/// Parameters of signed addresses; those of one common word count behind `?` or `&` alone, as all of them do.
const SIGNED: &str = "x-amz-(?:signature|security-token|credential)|x-goog-(?:signature|credential)|x-oss-signature\
    |signature|sig|token|access_token|policy|hmac";
/// Characters of a cookie with its name: a shorter one tells nobody from another.
const SHORTEST_COOKIE: usize = 12;
/// Between a name and its value: `name: value`, `"name": "value"`, `name=value`, `name:\n  - value`, `["name", "value"]`,
/// `{"name": "name", "value": "value"}`.
const BETWEEN: &str = r#"(?:["']?[ \t]*[:=]>?|["']\s*,(?:\s*["']?value["']?\s*:)?|[ \t]+,?[ \t]*value[ \t]*:)[ \t"']*(?:\[\s*|\r?\n[ \t]*-[ \t]+|\s*["'])?["' \t]*"#;
/// One cookie, and what may follow it: further ones, attributes, a date with its spaces.
const COOKIE: &str = r#"[^\s=;,:"'\\\[\]<>(){}]+=[^\s;,"'\\\[\]<>{}]*(?:[;,][ ]?(?:(?i:expires)=[A-Za-z]{3,9},[ ][0-9A-Za-z :-]{10,25}GMT|[^\s=;,:"'\\\[\]<>(){}]+(?:=[^\s;,"'\\\[\]<>{}]*)?))*"#;

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

static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let token = "[A-Za-z0-9._~+/%|-]{16,}=*";
    let named = format!("(?i:{NAMES}){BETWEEN}(?:(?i:bearer|basic|token)[ ]+)?(?P<named>{token})");
    let cookie = format!(r"(?i:\b(?:{COOKIES})){BETWEEN}(?P<cookie>{COOKIE})");
    let signed = format!("(?:[?&]|&amp;)(?i:{SIGNED})=(?P<signed>{token})");
    Regex::new(&format!("{named}|{cookie}|{signed}")).ok()
});
/// What has to stand in a text for [`NAMED`] to find anything.
static NAMES_ALONE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!("(?i:{NAMES}|{COOKIES}|[?&;](?:{SIGNED})=)")).ok());

/// Whether escaped text surely holds no key of a well-known form.
pub(super) fn is_surely_clean(json: &str) -> bool {
    let none = |escape: &[u8]| memmem::find(json.as_bytes(), escape).is_none();
    let lacks = |pattern: &LazyLock<Option<Regex>>| pattern.as_ref().is_some_and(|pattern| !pattern.is_match(json));
    // A character of a key may be escaped as any character may.
    none(b"\\u00") && none(b"\\/") && lacks(&SUSPICIONS) && lacks(&NAMES_ALONE)
}

/// Where keys of a well-known form stand, in order and without overlaps; `None` for what is known by the word before it alone.
pub(super) fn well_known(text: &str) -> Vec<(Range<usize>, Option<Kind>)> {
    let mut found = places(text);
    if let Some(visible) = Visible::of(text) {
        found.extend(places(&visible.text).into_iter().map(|(place, kind)| (visible.original(&place), kind)));
    }
    found.sort_by_key(|(place, _)| (place.start, std::cmp::Reverse(place.end)));
    let mut merged: Vec<(Range<usize>, Option<Kind>)> = Vec::with_capacity(found.len());
    for (place, kind) in found {
        match merged.last_mut() {
            Some((last, known)) if place.start < last.end => {
                last.end = last.end.max(place.end);
                *known = known.or(kind);
            }
            _ => merged.push((place, kind)),
        }
    }
    merged
}

fn places(text: &str) -> Vec<(Range<usize>, Option<Kind>)> {
    let text = without_escapes(text);
    let by_form =
        PATTERNS.iter().flat_map(|patterns| patterns.captures_iter(&text)).filter_map(|found: Captures<'_>| {
            let whole = found.get(0)?.range();
            let kind = KINDS.into_iter().find(|(name, _)| found.name(name).is_some());
            let start = found.name("head").map_or(whole.start, |head| head.end());
            Some((start..whole.end, kind))
        });
    let by_name = NAMED.iter().flat_map(|named| named.captures_iter(&text)).filter_map(|found: Captures<'_>| {
        let cookie = found.name("cookie").filter(|cookie| cookie.len() >= SHORTEST_COOKIE);
        let value = found.name("named").or_else(|| found.name("signed"));
        let value = cookie.or_else(|| value.filter(|value| is_random(value.as_str())))?;
        Some(value.range())
    });
    by_form.chain(by_name.map(|place| (place, None))).collect()
}

/// Whether a name may say that its value is a secret.
pub(super) fn is_name(name: &str) -> bool {
    NAMES_ALONE.as_ref().is_none_or(|names| names.is_match(name))
}

/// Whether a value behind a name looks drawn: words that stand for a key have no digit.
fn is_random(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_digit()) && value.bytes().any(|byte| byte.is_ascii_alphabetic())
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

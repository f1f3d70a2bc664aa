//! Secrets out: one function for what is recorded, what is loaded and what is matched, so that all three agree.
//!
//! Known values are searched as they are, in base64 (at each of its three alignments), URL-encoded and JSON-escaped;
//! then come patterns of well-known keys. Response headers pass by an allow-list. Saving fails closed: a file that
//! still holds a secret is not written.

use super::base64;
use super::canonical::hex;
use super::redact_stream::redact_stream;
use regex::{Captures, Regex};
use serde_json::Value;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

/// Known values shorter than this are not searched: they would tear ordinary words apart.
const SHORTEST_SECRET: usize = 8;
/// Response headers that are kept; all others are dropped.
const KEPT_HEADERS: [&str; 4] = ["content-type", "retry-after", "retry-after-ms", "x-should-retry"];

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
type Kind = (&'static str, &'static str);

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
/// The same without word boundaries: in escaped text the `n` of a line break touches the key behind it.
static SUSPICIONS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&WELL_KNOWN.replace(r"\b", "")).ok());

/// Finds and replaces secrets.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    secrets: Vec<Secret>,
}

#[derive(Clone)]
struct Secret {
    name: String,
    forms: Vec<String>,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Secret").field(&self.name).finish()
    }
}

impl Redactor {
    /// A redactor that knows these secrets (a name for messages, and the value) beside the patterns.
    pub fn new(secrets: impl IntoIterator<Item = (String, String)>) -> Self {
        let secrets = secrets
            .into_iter()
            .filter(|(_, value)| value.len() >= SHORTEST_SECRET)
            .map(|(name, value)| Secret { name, forms: forms(&value) })
            .collect();
        Self { secrets }
    }

    /// The same redactor with more secrets; those that it knows already are not added again.
    #[must_use]
    pub fn knowing(&self, secrets: impl IntoIterator<Item = (String, String)>) -> Self {
        let new = secrets
            .into_iter()
            .filter(|(_, value)| !self.secrets.iter().any(|secret| secret.forms.iter().any(|form| form == value)));
        let Self { secrets: new } = Self::new(new);
        Self { secrets: self.secrets.iter().cloned().chain(new).collect() }
    }

    /// The text without its secrets; borrowed when there were none. Redacting twice is redacting once.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut out = Cow::Borrowed(text);
        for secret in &self.secrets {
            for form in &secret.forms {
                if out.contains(form.as_str()) {
                    out = Cow::Owned(out.replace(form.as_str(), &format!("[redacted:{}]", secret.name)));
                }
            }
        }
        let found = well_known(&out);
        if found.is_empty() {
            return out;
        }
        let (mut clean, mut rest) = (String::with_capacity(out.len()), 0);
        for (place, kind) in found {
            clean.push_str(&out[rest..place.start]);
            for piece in ["[redacted:", kind.map_or("key", |(name, _)| name), "]"] {
                clean.push_str(piece);
            }
            rest = place.end;
        }
        clean.push_str(&out[rest..]);
        Cow::Owned(clean)
    }

    /// Where in a text secrets stand, in order, and what each is: the value of a known one by its name, or what its
    /// form tells.
    pub(super) fn finds(&self, text: &str) -> Vec<(Range<usize>, String)> {
        let mut found: Vec<(Range<usize>, String)> = Vec::new();
        for secret in &self.secrets {
            for form in &secret.forms {
                for (start, _) in text.match_indices(form.as_str()) {
                    found.push((start..start + form.len(), format!("the value of {}", secret.name)));
                }
            }
        }
        for (place, kind) in well_known(text) {
            let what = kind.map_or("a value that stands where a key does", |(_, what)| what);
            found.push((place, what.to_owned()));
        }
        // A known value may be found in several spellings, and has a well-known form besides: it is told once.
        let mut told: Vec<(Range<usize>, String)> = Vec::new();
        for (place, what) in found {
            if !told.iter().any(|(other, _)| other.start < place.end && place.start < other.end) {
                told.push((place, what));
            }
        }
        told.sort_by_key(|(place, _)| place.start);
        told
    }

    /// Whether there is nothing to redact.
    pub fn is_clean(&self, text: &str) -> bool {
        self.leak(text).is_none()
    }

    /// Whether JSON text surely holds nothing to redact, however its strings are escaped.
    pub(super) fn is_surely_clean(&self, json: &str) -> bool {
        self.known(json).is_none() && SUSPICIONS.as_ref().is_some_and(|patterns| !patterns.is_match(json))
    }

    fn known(&self, text: &str) -> Option<&str> {
        let found = self.secrets.iter().find(|secret| secret.forms.iter().any(|form| text.contains(form.as_str())));
        found.map(|secret| secret.name.as_str())
    }

    /// The name of a secret that the text still holds.
    pub fn leak(&self, text: &str) -> Option<&str> {
        self.known(text).or_else(|| (!well_known(text).is_empty()).then_some("something that looks like a key"))
    }

    /// A body without its secrets, as JSON where it is JSON; `None` when there were none.
    pub fn redact_body(&self, body: &[u8]) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(body).ok()?;
        // Only a stream's pieces can be clean one by one and not together.
        let stream = text.starts_with("data:") || text.contains("\ndata:");
        if !stream && self.is_surely_clean(text) {
            return None;
        }
        if let Ok(value) = serde_json::from_str::<Value>(text) {
            let redacted = self.redact_value(&value);
            return if redacted == value { None } else { serde_json::to_vec(&redacted).ok() };
        }
        let redacted = self.redact(text);
        match (redact_stream(&redacted, self), redacted) {
            (Some(stream), _) => Some(stream.into_bytes()),
            (None, Cow::Owned(text)) => Some(text.into_bytes()),
            (None, Cow::Borrowed(_)) => None,
        }
    }

    /// A JSON document with every string redacted, names of members included.
    pub fn redact_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.redact(text).into_owned()),
            Value::Array(items) => items.iter().map(|item| self.redact_value(item)).collect(),
            Value::Object(entries) => {
                entries.iter().map(|(key, item)| (self.redact(key).into_owned(), self.redact_value(item))).collect()
            }
            other => other.clone(),
        }
    }

    /// A response's headers by the allow-list, redacted.
    pub fn headers(&self, headers: &[(String, String)]) -> Vec<(String, String)> {
        headers
            .iter()
            .filter(|(name, _)| KEPT_HEADERS.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), self.redact(value).into_owned()))
            .collect()
    }
}

/// Where keys of a well-known form stand, in order; `None` for what is known by the word before it alone.
fn well_known(text: &str) -> Vec<(Range<usize>, Option<Kind>)> {
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
fn without_escapes(text: &str) -> Cow<'_, str> {
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

/// The spellings under which a value may show up, longest first.
fn forms(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned(), url_encoded(value)];
    // Twice as well: arguments of a call are JSON text in a JSON document.
    let mut escaped = value.to_owned();
    for _ in 0..2 {
        if let Ok(quoted) = serde_json::to_string(&escaped) {
            quoted[1..quoted.len() - 1].clone_into(&mut escaped);
            forms.push(escaped.clone());
        }
    }
    for lead in 0..3 {
        let padded = [vec![0; lead], value.as_bytes().to_vec()].concat();
        let encoded = base64::encode(&padded);
        // Characters that also hold bits of a neighbour differ from place to place; the rest is the secret's own.
        let own = encoded.get((lead * 8).div_ceil(6)..padded.len() * 8 / 6).unwrap_or_default();
        forms.push(own.to_owned());
        forms.push(own.replace('+', "-").replace('/', "_"));
    }
    forms.retain(|form| form.len() >= SHORTEST_SECRET);
    forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    forms.dedup();
    forms
}

fn url_encoded(value: &str) -> String {
    let mut out = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push_str(&hex(&[byte], 2).to_uppercase());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn knowing(value: &str) -> Redactor {
        Redactor::new([("SERVICE_KEY".to_owned(), value.to_owned())])
    }

    #[test]
    fn a_known_secret_goes_in_every_spelling() {
        let secret = "pass/word+\"1234\"";
        let redactor = knowing(secret);
        for spelled in [
            secret.to_owned(),
            url_encoded(secret),
            json!(secret).to_string(),
            base64::encode(secret.as_bytes()),
            base64::encode(format!("u:{secret}").as_bytes()),
            base64::encode(format!("me:{secret}").as_bytes()),
            base64::encode(format!("you:{secret}@host").as_bytes()),
        ] {
            assert!(redactor.leak(&spelled).is_some(), "{spelled}");
            let text = redactor.redact(&spelled).into_owned();
            assert!(text.contains("[redacted:SERVICE_KEY]"), "{spelled} became {text}");
            assert!(redactor.is_clean(&text), "{text}");
        }
    }

    #[test]
    fn well_known_keys_go_without_being_known() {
        let redactor = Redactor::default();
        for (text, clean) in [
            ("use sk-abcdefghijklmnop1234 now", "use [redacted:openai] now"),
            ("pplx-abcdefghijklmnop1234", "[redacted:perplexity]"),
            ("Authorization: Bearer abcdefghijklmnop.1234", "Authorization: Bearer [redacted:key]"),
            ("AKIAABCDEFGHIJKLMNOP", "[redacted:aws]"),
            ("https://host/v1?key=abcdefghijklmnop1234&x=1", "https://host/v1?key=[redacted:key]&x=1"),
            ("a risk-assessment-of-some-length, a key=short", "a risk-assessment-of-some-length, a key=short"),
        ] {
            assert_eq!(redactor.redact(text), clean);
        }
    }

    #[test]
    fn a_key_behind_an_escaped_line_break_is_found() {
        let redactor = Redactor::default();
        let body = json!({"a": ["x\nsk-abcdefghijklmnop1234"], "n": 1.0}).to_string();
        assert!(body.contains("\\nsk-"));
        let redacted = redactor.redact_body(body.as_bytes()).expect("something to redact");
        assert_eq!(redacted, br#"{"a":["x\n[redacted:openai]"],"n":1.0}"#);
        assert_eq!(redactor.redact_body(&redacted), None);
        assert_eq!(redactor.redact_body(b"\xff sk-abcdefghijklmnop1234"), None);
        assert_eq!(
            redactor.redact_body(b"no json: sk-abcdefghijklmnop1234"),
            Some(b"no json: [redacted:openai]".to_vec())
        );
    }

    #[test]
    fn a_key_behind_a_line_break_in_the_arguments_of_a_call_goes_too() {
        let arguments = json!({"query": "x\nsk-abcdefghijklmnop1234"}).to_string();
        let redacted = Redactor::default().redact_value(&json!({ "arguments": arguments }));
        assert_eq!(redacted["arguments"], r#"{"query":"x\n[redacted:openai]"}"#);
        assert_eq!(without_escapes(r#"a\nb\"c\\n\"#), "a  b  c  n ");
    }

    #[test]
    fn headers_pass_by_an_allow_list() {
        let headers =
            [("content-type", "text/plain"), ("set-cookie", "s=1"), ("retry-after", "2"), ("x-request-id", "r")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let kept: Vec<String> = Redactor::default().headers(&headers).into_iter().map(|(name, _)| name).collect();
        assert_eq!(kept, ["content-type", "retry-after"]);
    }

    #[test]
    fn names_of_members_are_redacted_too_and_debug_shows_no_value() {
        let redactor = knowing("hunter2hunter2");
        assert_eq!(redactor.redact_value(&json!({"hunter2hunter2": [1]})), json!({"[redacted:SERVICE_KEY]": [1]}));
        assert!(!format!("{redactor:?}").contains("hunter2"));
    }

    proptest! {
        #[test]
        fn redacting_twice_is_redacting_once(
            secret in "[A-Za-z0-9+/]{12,24}",
            parts in prop::collection::vec(prop_oneof![
                "[ -~]{0,20}", Just("SECRET".to_owned()), Just("Bearer ".to_owned()), Just("key=".to_owned()),
                Just("sk-abcdefghijklmnopqrst".to_owned()), "[A-Za-z0-9]{16,20}",
            ], 0..8),
        ) {
            let redactor = knowing(&secret);
            let text = parts.concat().replace("SECRET", &secret);
            let once = redactor.redact(&text).into_owned();
            prop_assert_eq!(redactor.redact(&once), once.as_str());
            prop_assert!(redactor.is_clean(&once));
        }
    }
}

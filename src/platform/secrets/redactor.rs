//! Finds and replaces secrets. Recording, loading and matching use the same function, so they agree. Response headers
//! are filtered by an allow-list.

use super::frames::redact_frames;
use super::given;
use super::invisible::{self, Visible};
use super::query_keys::{without_named_keys, without_query_keys};
use super::spellings::Spellings;
use super::stream::redact_stream;
use super::well_known::{self, well_known};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Longer values are searched in pieces of this many characters.
const PIECE: usize = 128;
/// Response headers that are stored; all others are dropped. Of what clients read: what a
/// response is, when to try again, where there is more, and which product answered.
const KEPT_HEADERS: [&str; 20] = [
    "content-type", "retry-after", "retry-after-ms", "x-should-retry", "x-ragcheck-declared-fault", "x-ragcheck-held",
    "x-ragcheck-redirect", "x-ragcheck-left-open", "x-ragcheck-broken-off", "nuclia-learning-id", "link", "location",
    "content-location", "content-range", "etag", "last-modified", "x-elastic-product", "x-next-page", "x-next-cursor",
    "x-continuation-token",
];
/// Beginnings of names of further headers that are stored.
const KEPT_BEGINNINGS: [&str; 5] = ["x-total", "x-page", "x-per-page", "x-ratelimit-", "ratelimit-"];
/// Placeholders for keys of local servers: not secrets, and common in other texts.
const PLACEHOLDERS: [&str; 20] = [
    "none", "null", "empty", "dummy", "test", "testing", "ollama", "local", "localhost", "key", "api-key", "no-key",
    "nokey", "not-needed", "unused", "anything", "placeholder", "changeme", "lm-studio", "sk-no-key-required",
];
/// Values with fewer characters are no secrets: any text holds them.
const NO_SECRET: usize = 4;
/// A word or a number with fewer characters is no secret.
const NO_SECRET_WORD: usize = 8;
/// The only member of a document that stands for a body of bytes, in base64.
pub(crate) const BYTES: &str = "$base64";
/// Beginning of the mark that replaces a secret.
pub(crate) const MARK: &str = "[redacted:";

/// Finds and replaces secrets.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    secrets: Vec<Secret>,
}

#[derive(Clone)]
struct Secret {
    name: String,
    value: Arc<str>,
    spellings: Arc<Spellings>,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Secret").field(&self.name).finish()
    }
}

impl Redactor {
    /// A redactor for these secrets (a name for messages, and the value) and the well-known forms.
    pub fn new(secrets: impl IntoIterator<Item = (String, String)>) -> Self {
        Self::default().knowing(secrets)
    }

    /// A copy with more secrets; known ones are not added again.
    #[must_use]
    pub fn knowing(&self, secrets: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut known = self.secrets.clone();
        for (name, value) in secrets {
            let value = value.trim();
            if is_placeholder(value)
                || is_plain(value)
                || !value.chars().any(char::is_alphanumeric)
                || value.contains(MARK)
            {
                continue;
            }
            for piece in pieces(value) {
                if !known.iter().any(|secret| &*secret.value == piece) {
                    let spellings = Spellings::of(piece);
                    known.push(Secret { name: name.clone(), value: piece.into(), spellings });
                }
            }
        }
        Self { secrets: known }
    }

    /// A redactor that also knows the secrets of another one; a secret of both keeps its name here.
    #[must_use]
    pub(crate) fn beside(mut self, other: &Self) -> Self {
        for secret in &other.secrets {
            if !self.secrets.iter().any(|known| known.value == secret.value) {
                self.secrets.push(secret.clone());
            }
        }
        self
    }

    /// Whether both know the same secrets, in the same order.
    pub(crate) fn knows_the_same_as(&self, other: &Self) -> bool {
        let same = |(a, b): (&Secret, &Secret)| a.name == b.name && a.value == b.value;
        self.secrets.len() == other.secrets.len() && self.secrets.iter().zip(&other.secrets).all(same)
    }

    /// The text without its secrets; borrowed if there are none. Redacting is idempotent.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let out = self.without_known(text);
        let found = well_known(&out);
        if found.is_empty() {
            return out;
        }
        let found = found.into_iter().map(|(place, kind)| (place, kind.map_or("key", |(name, _)| name)));
        Cow::Owned(replaced(&out, found))
    }

    /// The path of a request, to a model's service or another, without secrets. Those in its query have one name, whether they
    /// are known by value, as while recording, or by their place or form.
    pub(crate) fn redact_path(&self, path: &str, is_model: bool) -> String {
        let path = without_query_keys(path, is_model);
        let clean = self.redact(&path);
        let Some((path, query)) = clean.split_once('?') else { return clean.into_owned() };
        let mut parts = query.split(MARK);
        let mut one_name = format!("{path}?{}", parts.next().unwrap_or_default());
        for part in parts {
            one_name.extend([MARK, "key]", part.split_once(']').map_or("", |(_, rest)| rest)]);
        }
        one_name
    }

    /// The text without secrets known by value.
    pub(super) fn without_known<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let found = self.known(text);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(replaced(text, found.into_iter()))
    }

    /// Whether the text has a secret known by value.
    pub(super) fn knows_any_in(&self, text: &str) -> bool {
        !self.known(text).is_empty()
    }

    /// Positions of secrets known by value, in order, without overlaps, each with its name.
    fn known(&self, text: &str) -> Vec<(Range<usize>, &str)> {
        let mut found: Vec<(Range<usize>, &str)> = Vec::new();
        for secret in &self.secrets {
            found.extend(secret.spellings.find(text).into_iter().map(|place| (place, secret.name.as_str())));
        }
        if let Some(visible) = (!self.secrets.is_empty()).then(|| Visible::of(text)).flatten() {
            for secret in &self.secrets {
                let places = secret.spellings.find(&visible.text).into_iter();
                found.extend(places.map(|place| (visible.original(&place), secret.name.as_str())));
            }
        }
        if found.is_empty() {
            return found;
        }
        // A secret's name may be part of another secret's value: marks are skipped.
        let marks: Vec<Range<usize>> = text
            .match_indices(MARK)
            .filter_map(|(start, _)| Some(start..start + text[start..].find(']')? + 1))
            .collect();
        found.retain(|(place, _)| !marks.iter().any(|mark| mark.start <= place.start && place.end <= mark.end));
        found.sort_by_key(|(place, _)| (place.start, std::cmp::Reverse(place.end)));
        let mut merged: Vec<(Range<usize>, &str)> = Vec::with_capacity(found.len());
        for (place, name) in found {
            match merged.last_mut() {
                Some((last, _)) if place.start < last.end => last.end = last.end.max(place.end),
                _ => merged.push((place, name)),
            }
        }
        merged
    }

    /// Positions of all secrets in a text, in order, each with its description: the name of a known value, or the kind
    /// of a well-known form.
    pub(crate) fn finds(&self, text: &str) -> Vec<(Range<usize>, String)> {
        let known = self.known(text).into_iter().map(|(place, name)| (place, format!("the value of {name}")));
        let mut told: Vec<(Range<usize>, String)> = known.collect();
        for (place, kind) in well_known(text) {
            // A known value may also have a well-known form; it is listed once.
            if !told.iter().any(|(other, _)| other.start < place.end && place.start < other.end) {
                let what = kind.map_or("a value in the place of a key", |(_, what)| what);
                told.push((place, what.to_owned()));
            }
        }
        told.sort_by_key(|(place, _)| place.start);
        told
    }

    /// Whether there is nothing to redact.
    pub fn is_clean(&self, text: &str) -> bool {
        self.leak(text).is_none()
    }

    /// Whether JSON text certainly has nothing to redact, whatever the escapes in its strings.
    pub(crate) fn is_surely_clean(&self, json: &str) -> bool {
        !invisible::is_in(json)
            && !json.contains(BYTES)
            && !self.secrets.iter().any(|secret| secret.spellings.is_in(json))
            && well_known::is_surely_clean(json)
    }

    /// Name of a secret that the text still holds.
    pub fn leak(&self, text: &str) -> Option<&str> {
        let known = self.known(text).into_iter().next().map(|(_, name)| name);
        known.or_else(|| (!well_known(text).is_empty()).then_some("something that looks like a key"))
    }

    /// A body without its secrets, parsed as JSON if possible; `None` if there are none.
    pub fn redact_body(&self, body: &[u8]) -> Option<Vec<u8>> {
        if let Some(clean) = redact_frames(body, self) {
            return self.redact_whole(&clean).or(Some(clean));
        }
        self.redact_whole(body)
    }

    fn redact_whole(&self, body: &[u8]) -> Option<Vec<u8>> {
        let Ok(text) = std::str::from_utf8(body) else {
            // Parts of binary data cannot be cut out safely.
            let text = String::from_utf8_lossy(body);
            let known = self.known(&text).into_iter().next().map(|(_, name)| name);
            let name = known.or_else(|| (!well_known(&text).is_empty()).then_some("key"))?;
            return Some(format!("{MARK}{name}: a binary body of {} bytes]", body.len()).into_bytes());
        };
        // Only in a stream can every piece be clean but not the joined text.
        let events = text.starts_with("data:") || text.contains("\ndata:") || text.contains("\rdata:");
        let stream = events || text.contains("}\n{");
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

    /// Redacts every string of a JSON document, including member names. A value under the name of a secret (as a
    /// member, as the next string in a list, or in an entry of `name` and `value`) is checked together with that name.
    pub fn redact_value(&self, value: &Value) -> Value {
        self.redact_named("", value)
    }

    fn redact_named(&self, name: &str, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.redact_behind(name, text).into_owned()),
            Value::Array(items) => {
                let before = std::iter::once(name).chain(items.iter().map(|item| item.as_str().unwrap_or_default()));
                let named = |(before, item): (&str, &Value)| {
                    self.redact_named(if well_known::is_name(before) { before } else { name }, item)
                };
                before.zip(items).map(named).collect()
            }
            Value::Object(entries) => {
                if let Some(bytes) = self.redact_bytes(entries) {
                    return bytes;
                }
                let of_entry = ["name", "key", "header"].iter().find_map(|one| entries.get(*one)?.as_str());
                let member = |(key, item): (&String, &Value)| {
                    let name = of_entry.filter(|_| key == "value").unwrap_or(key);
                    (self.redact(key).into_owned(), self.redact_named(name, item))
                };
                entries.iter().map(member).collect()
            }
            other => other.clone(),
        }
    }

    /// A body of bytes without its keys, such as a text in another character set; `None` if it has none of a well-known form.
    fn redact_bytes(&self, entries: &Map<String, Value>) -> Option<Value> {
        let packed = entries.get(BYTES).filter(|_| entries.len() == 1)?.as_str()?;
        // Each byte is a letter, so that what is not cut out stays as it is.
        let text: String = STANDARD.decode(packed).ok()?.into_iter().map(char::from).collect();
        if well_known(&text).is_empty() {
            return None;
        }
        let clean: Vec<u8> = self.redact(&text).chars().map(|letter| u8::try_from(letter).unwrap_or(b'?')).collect();
        Some(serde_json::json!({ BYTES: STANDARD.encode(clean) }))
    }

    /// The text without its secrets, if this name precedes it.
    fn redact_behind<'a>(&self, name: &str, text: &'a str) -> Cow<'a, str> {
        if name.is_empty() || !well_known::is_name(name) {
            return self.redact(text);
        }
        let before = format!("{name}: ");
        let found = well_known(&format!("{before}{text}"));
        let inside = found.into_iter().filter_map(|(place, kind)| {
            let place = place.start.checked_sub(before.len())?..place.end - before.len();
            Some((place, kind.map_or("key", |(name, _)| name)))
        });
        let clean = replaced(text, inside);
        match self.redact(&clean) {
            Cow::Borrowed(_) if clean == text => Cow::Borrowed(text),
            Cow::Borrowed(_) => Cow::Owned(clean),
            Cow::Owned(redacted) => Cow::Owned(redacted),
        }
    }

    /// Response headers of a service of an agent's own: those of the allow-list, and those by which it gives a client a secret,
    /// under a placeholder.
    pub(crate) fn headers_of_service(&self, headers: &[(String, String)]) -> Vec<(String, String)> {
        let each = headers.iter().filter_map(|header| {
            let kept = self.headers(std::slice::from_ref(header)).pop();
            kept.or_else(|| Some((header.0.clone(), given::under_placeholder(self, &header.0, &header.1)?)))
        });
        each.collect()
    }

    /// Response headers filtered by the allow-list, redacted.
    pub fn headers(&self, headers: &[(String, String)]) -> Vec<(String, String)> {
        headers
            .iter()
            .filter(|(name, _)| {
                KEPT_HEADERS.contains(&name.as_str()) || KEPT_BEGINNINGS.iter().any(|start| name.starts_with(start))
            })
            .map(|(name, value)| match name.as_str() {
                "link" | "location" | "content-location" => {
                    let clean = |part: &str| self.redact(&without_named_keys(part)).into_owned();
                    let parts: Vec<_> = value.split('>').map(clean).collect();
                    (name.clone(), parts.join(">"))
                }
                _ => (name.clone(), self.redact(value).into_owned()),
            })
            .collect()
    }
}

fn is_placeholder(value: &str) -> bool {
    PLACEHOLDERS.contains(&value.to_ascii_lowercase().as_str())
}

/// Whether a value is so short and plain that ordinary texts hold it: redacting it would change what people wrote.
fn is_plain(value: &str) -> bool {
    let rest = &value[value.chars().next().map_or(0, char::len_utf8)..];
    let all = |text: &str, is: fn(&char) -> bool| text.chars().all(|letter| is(&letter));
    let word = all(value, |letter| letter.is_alphabetic())
        && (all(rest, |letter| letter.is_lowercase()) || all(value, |letter| letter.is_uppercase()));
    let length = value.chars().count();
    length < NO_SECRET || (length < NO_SECRET_WORD && (word || all(value, char::is_ascii_digit)))
}

/// Whether the value of a variable that should hold a secret is neither redacted nor one of the usual placeholders.
pub(crate) fn is_unredacted(value: &str) -> bool {
    let value = value.trim();
    !value.is_empty() && is_plain(value) && !is_placeholder(value)
}

/// Splits a value into pieces long enough to be distinctive.
fn pieces(value: &str) -> Vec<&str> {
    let starts: Vec<usize> = value.char_indices().step_by(PIECE).map(|(start, _)| start).collect();
    let mut pieces = Vec::with_capacity(starts.len());
    for (place, start) in starts.iter().enumerate() {
        let end = starts.get(place + 1).copied().unwrap_or(value.len());
        // A short remainder joins the previous piece.
        if place > 0 && end - start < PIECE / 4 {
            pieces.pop();
            pieces.push(&value[starts[place - 1]..end]);
        } else {
            pieces.push(&value[*start..end]);
        }
    }
    pieces
}

fn replaced<'n>(text: &str, found: impl Iterator<Item = (Range<usize>, &'n str)>) -> String {
    let (mut clean, mut rest) = (String::with_capacity(text.len()), 0);
    for (place, name) in found {
        clean.push_str(&text[rest..place.start]);
        for piece in [MARK, name, "]"] {
            clean.push_str(piece);
        }
        rest = place.end;
    }
    clean.push_str(&text[rest..]);
    clean
}

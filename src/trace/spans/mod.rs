//! Spans that an agent's instrumentation reports (OpenTelemetry), and what they say about a conversation.
//!
//! [`read`] turns bytes into [`Span`]s: OTLP as JSON, JSON lines or protobuf, the JSON that SDKs print, and the runs of
//! LangSmith. Nothing is dropped silently: what cannot be read is listed in [`Batch::unread`]. `meaning` reads one span by
//! its convention, `story` puts the spans of one trace id in order, `fold` counts once what two of them report, and `turns` finds the turns in it. Nothing here knows
//! whether spans came from a file or while a trial ran.

mod fold;
mod json;
mod langchain;
mod langsmith;
mod meaning;
mod messages;
mod multipart;
mod parts;
mod protobuf;
mod published;
mod story;
mod turns;
mod usage;

pub(crate) use json::is_export;
pub(crate) use meaning::{Completed, Found, Operation, Ran, is_tool};
pub(crate) use messages::{Call, Said, words_in};
pub(crate) use parts::holds;
pub(crate) use published::REWARD;
#[cfg(not(front_door_only))]
pub use published::published;
pub(crate) use story::{SpanOperation, Story, stories};
pub(crate) use turns::{SpanTurn, turns};

use crate::platform::lenient_json::repaired;
use crate::platform::secrets::Redactor;
use serde_json::{Map, Value};

/// Attributes by name.
pub(crate) type Attributes = Map<String, Value>;

/// One span, without what concerns only its transport.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Span {
    /// Its trace: 32 hexadecimal digits, in lower case.
    pub(crate) trace: String,
    /// Its id: 16 hexadecimal digits.
    pub(crate) id: String,
    /// Id of the span that caused it; `None` for a root.
    pub(crate) parent: Option<String>,
    pub(crate) name: String,
    /// Whether it is the server's side of a request, whose client may report it too.
    pub(crate) is_server: bool,
    /// Start in nanoseconds since 1970; 0 if unknown.
    pub(crate) start_ns: u64,
    /// End in nanoseconds since 1970; 0 if unknown.
    pub(crate) end_ns: u64,
    pub(crate) attributes: Attributes,
    /// Time in nanoseconds since 1970 (0 if unknown), name and attributes of each of its events, in order.
    pub(crate) events: Vec<(u64, String, Attributes)>,
    /// Message of its error; empty if it failed without one.
    pub(crate) failed: Option<String>,
    /// Number of attributes that the exporter dropped.
    pub(crate) dropped: u64,
    /// Number of events that it dropped.
    pub(crate) dropped_events: u64,
}

impl Span {
    /// Whether its start and its end are known, and in this order.
    fn is_timed(&self) -> bool {
        self.start_ns > 0 && self.end_ns >= self.start_ns
    }
}

/// What was read.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Batch {
    /// The spans, in the order of the input.
    pub(crate) spans: Vec<Span>,
    /// What could not be read: which, and why. Any of it may be a span that is missing.
    pub(crate) unread: Vec<String>,
    /// What is odd, without a span that is missing.
    pub(crate) odd: Vec<String>,
}

impl Batch {
    /// Takes out secrets.
    pub(crate) fn redact(&mut self, redactor: &Redactor) {
        let text = |text: &mut String| *text = redactor.redact(text).into_owned();
        let all = |attributes: &mut Attributes| {
            if let Value::Object(clean) = redactor.redact_value(&Value::Object(std::mem::take(attributes))) {
                *attributes = clean;
            }
        };
        for span in &mut self.spans {
            text(&mut span.name);
            span.failed.iter_mut().for_each(text);
            all(&mut span.attributes);
            for (_, name, attributes) in &mut span.events {
                text(name);
                all(attributes);
            }
        }
        self.unread.iter_mut().chain(&mut self.odd).for_each(text);
    }
}

/// The input holds no spans.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "these are no spans: {0}; read are OTLP (JSON, JSON lines or protobuf: `resourceSpans`) and the JSON of an SDK's console exporter"
)]
pub struct SpansError(String);

/// Why one span cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
struct SpanError(String);

impl From<&str> for SpanError {
    fn from(why: &str) -> Self {
        Self(why.to_owned())
    }
}

/// Reads spans, in whichever encoding they are.
///
/// # Errors
/// If the input as a whole holds no spans.
pub(crate) fn read(bytes: &[u8]) -> Result<Batch, SpansError> {
    let mut batch = Batch::default();
    if multipart::fits(bytes) {
        let runs = multipart::runs(bytes, &mut batch);
        langsmith::add(runs, &mut batch);
        return Ok(batch);
    }
    let begins = bytes.trim_ascii_start().first().copied();
    if matches!(bytes.first(), Some(b'{' | b'[')) || !protobuf::fits(bytes) && is_text(bytes, begins) {
        json::read(&text(bytes, &mut batch.odd), &mut batch)?;
    } else if !protobuf::read(bytes, &mut batch) {
        return Err(SpansError("neither JSON nor protobuf".to_owned()));
    }
    Ok(batch)
}

/// Whether the input is text: it begins with a byte order mark, or as JSON does.
fn is_text(bytes: &[u8], begins: Option<u8>) -> bool {
    let marks: [&[u8]; 3] = [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];
    matches!(begins, Some(b'{' | b'[')) || marks.iter().any(|mark| bytes.starts_with(mark))
}

/// The input as text; letters that are not in its encoding are replaced, and counted in a remark.
fn text(bytes: &[u8], odd: &mut Vec<String>) -> String {
    let wide = |of: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..].chunks_exact(2).map(|pair| of([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    let text = match bytes {
        [0xff, 0xfe, ..] => wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] => wide(u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)).into_owned(),
    };
    let wrong = text.matches('\u{fffd}').count();
    if wrong > 0 {
        odd.push(format!("{wrong} letters in another encoding than UTF-8 are replaced"));
    }
    text
}

/// What OpenInference writes in the place of contents that it hides.
pub(crate) const HIDDEN: &str = "__REDACTED__";

/// An attribute's first value that is there, by its names.
fn first<'a>(attributes: &'a Attributes, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| attributes.get(*name)).filter(|value| !value.is_null() && **value != HIDDEN)
}

/// A text attribute by its names; empty counts as missing.
fn words<'a>(attributes: &'a Attributes, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| attributes.get(*name)?.as_str().filter(|words| !["", HIDDEN].contains(words)))
}

/// A value that may be written as JSON in a text.
fn parsed(value: &Value) -> Value {
    match value {
        Value::String(text) => {
            let read = serde_json::from_str(text).ok();
            let mended = || {
                let (clean, _) = repaired(text.as_bytes()).filter(|_| text.starts_with(['{', '[']))?;
                serde_json::from_slice(&clean).ok()
            };
            read.or_else(mended).unwrap_or_else(|| value.clone())
        }
        other => other.clone(),
    }
}

/// `8 bytes of an id` as hexadecimal digits; `None` for another length, or for zeros, which name nothing.
fn id_of(bytes: &[u8], length: usize) -> Option<String> {
    (bytes.len() == length && bytes.iter().any(|byte| *byte != 0)).then(|| hex::encode(bytes))
}

#[cfg(test)]
mod tests;

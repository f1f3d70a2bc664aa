//! How a dialect's streams are cut into events.

use crate::platform::lenient_json;
use crate::transport::sse::{self, Event, LIMIT, TooLong};
use serde_json::{Value, json};

/// The framing of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON document in each line.
    Lines,
    /// Amazon's binary event stream: frames with headers, whose payload is JSON. Each event is an object with the
    /// frame's type as its only member; an exception is one with `error`.
    AwsFrames,
}

impl Framing {
    /// The framing of the dialect with that profile; server-sent events for any other.
    pub(crate) fn of(profile: &str) -> Self {
        super::by_name(profile).map_or(Self::Events, |dialect| dialect.framing)
    }

    /// Whether a response is a stream, by its headers (names in lower case), or the beginning of its body.
    pub(crate) fn is_stream(self, headers: &[(String, String)], body: &[u8]) -> bool {
        let typed = |kind: &str| {
            let says = |value: &str| value.trim_start().to_ascii_lowercase().starts_with(kind);
            headers.iter().any(|(name, value)| name == "content-type" && says(value))
        };
        match self {
            Self::Events => sse::is_stream(headers, body),
            Self::AwsFrames => typed("application/vnd.amazon.eventstream"),
            Self::Lines => typed("application/x-ndjson") || typed("application/jsonl") || has_documents(body),
        }
    }

    /// The events of a stream, as far as it came; a last one without its end too.
    ///
    /// # Errors
    /// An event is longer than [`LIMIT`].
    pub fn read(self, body: &[u8]) -> Result<Vec<Event>, TooLong> {
        match self {
            Self::Events => sse::read_all(body),
            Self::Lines => lines(body),
            Self::AwsFrames => frames(body),
        }
    }
}

/// Whether a body has a whole JSON object in its first line, and another one below.
fn has_documents(body: &[u8]) -> bool {
    let mut lines = body.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let first = lines.next().is_some_and(|line| line.starts_with(b"{") && line.ends_with(b"}"));
    first && lines.next().is_some_and(|line| line.starts_with(b"{"))
}

fn lines(body: &[u8]) -> Result<Vec<Event>, TooLong> {
    let mut events = Vec::new();
    let mut start = 0;
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        let bytes = start..start + line.len();
        start = bytes.end;
        if line.len() > LIMIT {
            return Err(TooLong { start: bytes.start });
        }
        // A line that has not come whole is no event yet.
        let data = String::from_utf8_lossy(line.trim_ascii()).into_owned();
        if !data.is_empty() && (line.ends_with(b"\n") || data.ends_with('}')) {
            events.push(Event { name: None, data, id: None, bytes });
        }
    }
    Ok(events)
}

/// Bytes of a frame beside headers and payload: both lengths and the checksums of the beginning and of the whole.
const AROUND: usize = 16;

/// The whole frames of a body. Checksums are not compared: the connection does that.
fn frames(body: &[u8]) -> Result<Vec<Event>, TooLong> {
    let mut events = Vec::new();
    let mut start = 0;
    while let Some(rest) = body.get(start..).filter(|rest| rest.len() >= AROUND) {
        let (length, headers) = (number(rest, 0), number(rest, 4));
        if length > LIMIT {
            return Err(TooLong { start });
        }
        let end = start + length.max(AROUND);
        let bytes = start..end.min(body.len());
        let Some(headers_end) = headers.checked_add(12).filter(|end| end + 4 <= length) else {
            let data = "a frame whose lengths contradict each other".to_owned();
            events.push(Event { name: None, data, id: None, bytes });
            break;
        };
        let Some(frame) = rest.get(..length) else { break };
        let data = frame_data(&frame[12..headers_end], &frame[headers_end..length - 4]);
        events.push(Event { name: None, data, id: None, bytes });
        start = end;
    }
    Ok(events)
}

fn number(bytes: &[u8], at: usize) -> usize {
    let four = bytes.get(at..at + 4).and_then(|four| <[u8; 4]>::try_from(four).ok()).unwrap_or_default();
    usize::try_from(u32::from_be_bytes(four)).unwrap_or(usize::MAX)
}

/// A frame as JSON: its payload under its type.
fn frame_data(headers: &[u8], payload: &[u8]) -> String {
    let headers = texts(headers);
    let header = |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let document = lenient_json::read(payload).unwrap_or_else(|_| String::from_utf8_lossy(payload).into());
    let failed = header(":exception-type").or_else(|| header(":error-code"));
    match (failed, header(":event-type")) {
        (Some(kind), _) => {
            let message = document.get("message").and_then(Value::as_str).or_else(|| header(":error-message"));
            json!({"error": {"type": kind, "message": message.unwrap_or("no reason given")}}).to_string()
        }
        (None, kind) => json!({kind.unwrap_or_default(): document}).to_string(),
    }
}

/// The headers of a frame that are texts; reading ends at one that is not understood.
fn texts(mut rest: &[u8]) -> Vec<(String, String)> {
    fn take<'b>(rest: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
        let (taken, after) = rest.split_at_checked(length)?;
        *rest = after;
        Some(taken)
    }
    let mut next = || {
        let length = usize::from(*take(&mut rest, 1)?.first()?);
        let name = String::from_utf8_lossy(take(&mut rest, length)?).into_owned();
        let fixed = match take(&mut rest, 1)?.first()? {
            0 | 1 => Some(0),
            2 => Some(1),
            3 => Some(2),
            4 => Some(4),
            5 | 8 => Some(8),
            9 => Some(16),
            6 | 7 => None,
            _ => return None,
        };
        let length = match fixed {
            Some(fixed) => fixed,
            None => usize::from(u16::from_be_bytes(take(&mut rest, 2)?.try_into().ok()?)),
        };
        Some((name, String::from_utf8_lossy(take(&mut rest, length)?).into_owned()))
    };
    std::iter::from_fn(&mut next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
        let size = |bytes: usize| u32::try_from(bytes).expect("short").to_be_bytes();
        let mut written = Vec::new();
        for (name, value) in headers {
            written.push(u8::try_from(name.len()).expect("short"));
            written.extend(name.as_bytes());
            written.push(7);
            written.extend(u16::try_from(value.len()).expect("short").to_be_bytes());
            written.extend(value.as_bytes());
        }
        let length = AROUND + written.len() + payload.len();
        let parts = [&size(length)[..], &size(written.len()), &[0; 4], &written, payload.as_bytes(), &[0; 4]];
        parts.concat()
    }

    #[test]
    fn a_frame_is_an_event_under_its_type_and_an_exception_an_error() {
        let event = frame(&[(":message-type", "event"), (":event-type", "messageStop")], "{\"stopReason\":\"x\"}");
        let failed = frame(&[(":exception-type", "throttlingException")], "{\"message\":\"slow down\"}");
        let both = [event.clone(), failed].concat();
        let events = Framing::AwsFrames.read(&both).expect("short");
        assert_eq!(events[0].data, "{\"messageStop\":{\"stopReason\":\"x\"}}");
        assert_eq!(events[0].bytes, 0..event.len());
        let error: Value = serde_json::from_str(&events[1].data).expect("JSON");
        assert_eq!(error["error"], json!({"type": "throttlingException", "message": "slow down"}));
        assert_eq!(Framing::AwsFrames.read(&both[..both.len() - 1]).expect("short").len(), 1, "half a frame is none");
    }

    #[test]
    fn hostile_frames_are_no_events_and_never_panic() {
        let mut lies = frame(&[(":event-type", "x")], "{}");
        lies[7] = 255;
        let events = Framing::AwsFrames.read(&lies).expect("short");
        assert!(serde_json::from_str::<Value>(&events[0].data).is_err(), "{events:?}");
        let mut long = frame(&[], "{}");
        long[0] = 255;
        assert!(Framing::AwsFrames.read(&long).is_err());
        for cut in 0..lies.len() {
            _ = Framing::AwsFrames.read(&lies[..cut]);
            _ = texts(&lies[cut..]);
        }
    }

    #[test]
    fn each_line_is_an_event_with_its_bytes_and_half_a_line_is_none() {
        let events = Framing::Lines.read(b"{\"a\":1}\r\n\n{\"b\":2}\n{\"c\":").expect("short");
        let read: Vec<_> = events.iter().map(|event| (event.data.as_str(), event.bytes.clone())).collect();
        assert_eq!(read, [("{\"a\":1}", 0..9), ("{\"b\":2}", 10..18)]);
        assert_eq!(Framing::Lines.read(b"{\"a\":1}").expect("short").len(), 1, "the last line may have no end");
    }

    #[test]
    fn lines_are_a_stream_by_their_type_or_where_there_are_several() {
        let typed = |kind: &str| vec![("content-type".to_owned(), kind.to_owned())];
        assert!(Framing::Lines.is_stream(&typed("application/x-ndjson"), b"{}"));
        assert!(Framing::Lines.is_stream(&[], b"{\"a\":1}\n{\"b\":2}\n"));
        for whole in ["{}", "{\n  \"a\": 1\n}", "{\"a\":1}\n"] {
            assert!(!Framing::Lines.is_stream(&typed("application/json"), whole.as_bytes()), "{whole}");
        }
        assert!(!Framing::Events.is_stream(&[], b"{\"a\":1}\n{\"b\":2}\n"));
    }
}

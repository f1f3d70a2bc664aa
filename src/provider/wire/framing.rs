//! How a dialect's streams are cut into events.

use crate::transport::sse::{self, Event, LIMIT, TooLong};

/// The framing of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON document in each line.
    Lines,
}

impl Framing {
    /// Whether a response is a stream, by its headers (names in lower case), or the beginning of its body.
    pub(crate) fn is_stream(self, headers: &[(String, String)], body: &[u8]) -> bool {
        let typed = |kind: &str| {
            let says = |value: &str| value.trim_start().to_ascii_lowercase().starts_with(kind);
            headers.iter().any(|(name, value)| name == "content-type" && says(value))
        };
        match self {
            Self::Events => sse::is_stream(headers, body),
            Self::Lines => typed("application/x-ndjson") || typed("application/jsonl") || has_documents(body),
        }
    }

    /// The events of a stream, as far as it came; a last one without its end too.
    ///
    /// # Errors
    /// An event is longer than [`LIMIT`].
    pub(crate) fn read(self, body: &[u8]) -> Result<Vec<Event>, TooLong> {
        match self {
            Self::Events => sse::read_all(body),
            Self::Lines => lines(body),
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

#[cfg(test)]
mod tests {
    use super::*;

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

//! Parses server-sent events as the bytes arrive (HTML Living Standard, section 9.2.6).
//!
//! [`Reader::push`] accepts chunks of any size and returns the events that they complete; the size of chunks never
//! changes the events. Each event has its byte range, so that a recording can keep the raw bytes. Bytes that are not
//! UTF-8 become U+FFFD; an event larger than [`LIMIT`] is an error, because the sender may be hostile.

use std::ops::Range;

/// Maximum size of one event in bytes.
pub const LIMIT: usize = 64 * 1024 * 1024;

/// Whether a response is a stream, by its headers (names in lower case) or the beginning of its body. Servers omit the
/// content type or send another, and no JSON document begins like an event.
pub fn is_stream(headers: &[(String, String)], body: &[u8]) -> bool {
    let says = |value: &str| value.trim_start().to_ascii_lowercase().starts_with("text/event-stream");
    headers.iter().any(|(name, value)| name == "content-type" && says(value)) || begins_as_stream(body)
}

fn begins_as_stream(body: &[u8]) -> bool {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body).trim_ascii_start();
    [&b"data:"[..], b"event:", b"id:", b"retry:", b": ", b":\n", b":\r"].iter().any(|field| body.starts_with(field))
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its name, if any.
    pub name: Option<String>,
    /// Its data lines, joined by line feeds.
    pub data: String,
    /// The last id seen up to this event.
    pub id: Option<String>,
    /// Byte range of its lines in the stream, including the closing blank line.
    pub bytes: Range<usize>,
}

/// An event exceeds [`LIMIT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a server-sent event that began at byte {start} is longer than {LIMIT} bytes; it is not read further")]
pub struct TooLong {
    /// Offset at which the event begins.
    pub start: usize,
}

/// Parses a stream received in chunks of any size.
#[derive(Debug, Default)]
pub struct Reader {
    line: Vec<u8>,
    /// Number of bytes read so far.
    offset: usize,
    /// Offset at which the current event begins.
    start: usize,
    /// Whether the last byte was a carriage return: a following line feed belongs to it.
    after_return: bool,
    /// Whether the first line, with a possible byte order mark, has been read.
    begun: bool,
    name: Option<String>,
    data: Option<String>,
    id: Option<String>,
}

impl Reader {
    /// Creates a reader at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// The events of a whole stream. One that ends without a blank line has an event left, which counts.
    pub(crate) fn whole(stream: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut reader = Self::new();
        let mut events = reader.push(stream)?;
        events.extend(reader.push(b"\n\n")?);
        Ok(events)
    }

    /// Reads the next bytes and returns the events that end in them.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        for &byte in bytes {
            self.offset += 1;
            if std::mem::take(&mut self.after_return) && byte == b'\n' {
                // The second half of the line end that closed an event belongs to neither event.
                if self.start + 1 == self.offset {
                    self.start = self.offset;
                }
                continue;
            }
            match byte {
                b'\n' | b'\r' => {
                    self.after_return = byte == b'\r';
                    events.extend(self.end_line());
                }
                _ => {
                    self.line.push(byte);
                    if self.offset - self.start > LIMIT {
                        return Err(TooLong { start: self.start });
                    }
                }
            }
        }
        Ok(events)
    }

    /// The event in which the stream ended, with its last line complete or not. The standard drops it: use it only for
    /// a sender that is known to omit the last blank line.
    pub fn finish(mut self) -> Option<Event> {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.end_event()
    }

    fn end_line(&mut self) -> Option<Event> {
        let mut line = std::mem::take(&mut self.line);
        if !std::mem::replace(&mut self.begun, true) && line.starts_with(b"\xEF\xBB\xBF") {
            line.drain(..3);
        }
        if line.is_empty() {
            return self.end_event();
        }
        let line = String::from_utf8_lossy(&line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                none => *none = Some(value.to_owned()),
            },
            "event" => self.name = Some(value.to_owned()),
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            // A line that starts with a colon is a comment; other fields are reserved.
            _ => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<Event> {
        let bytes = self.start..self.offset;
        self.start = self.offset;
        let name = self.name.take().filter(|name| !name.is_empty());
        let data = self.data.take()?;
        Some(Event { name, data, id: self.id.clone(), bytes })
    }
}

/// All events of a whole stream, including a last one without its closing blank line.
pub fn read_all(stream: &[u8]) -> Result<Vec<Event>, TooLong> {
    let mut reader = Reader::new();
    let mut events = reader.push(stream)?;
    events.extend(reader.finish());
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn data(stream: &str) -> Vec<String> {
        read_all(stream.as_bytes()).expect("short").into_iter().map(|event| event.data).collect()
    }

    #[test]
    fn lines_end_with_any_of_three_spellings() {
        for end in ["\n", "\r", "\r\n"] {
            let stream = ["event: e", "id: 7", "data: a", "data:b", "", "data: c", "", ""].join(end);
            let events = read_all(stream.as_bytes()).expect("short");
            assert_eq!(events.len(), 2, "{end:?}");
            assert_eq!(events[0].name.as_deref(), Some("e"));
            assert_eq!(events[0].data, "a\nb");
            assert_eq!((events[1].name.as_deref(), events[1].id.as_deref()), (None, Some("7")));
        }
    }

    #[test]
    fn a_stream_is_told_by_its_content_type_or_by_how_its_body_begins() {
        let typed = |content: &str| vec![("content-type".to_owned(), content.to_owned())];
        assert!(is_stream(&typed("Text/Event-Stream; charset=utf-8"), b""));
        for body in [
            "data: {}\n\n",
            "event: ping\ndata: {}\n\n",
            ": PROCESSING\n\ndata: x\n\n",
            "\u{feff}\r\nid: 1\ndata: x\n\n",
        ] {
            assert!(
                is_stream(&[], body.as_bytes()) && is_stream(&typed("application/json"), body.as_bytes()),
                "{body}"
            );
        }
        for body in ["", "{\"data\": 1}", "[{}]", "<html>data:", "database: gone", ":-("] {
            assert!(!is_stream(&[], body.as_bytes()), "{body}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_dropped_at_the_start_only() {
        assert_eq!(data("\u{feff}data: x\n\ndata: \u{feff}y\n\n"), ["x", "\u{feff}y"]);
        assert_eq!(data("data: x\n\n\u{feff}data: y\n\n"), ["x"]);
    }

    #[test]
    fn comments_unknown_fields_and_events_without_data_are_passed_over() {
        assert_eq!(data(": ping\n\nevent: empty\n\nfoo: bar\ndata: x\n\n"), ["x"]);
        assert_eq!(data("data\n\ndata:\ndata:\n\n"), ["", "\n"]);
    }

    #[test]
    fn an_event_that_the_stream_ends_inside_is_only_given_on_request() {
        let mut reader = Reader::new();
        assert_eq!(reader.push(b"data: whole\n\ndata: [DO").expect("short").len(), 1);
        assert_eq!(reader.finish().map(|event| event.data).as_deref(), Some("[DO"));
    }

    #[test]
    fn the_offsets_of_events_cut_the_stream_into_readable_parts() {
        let stream = ": hello\r\n\r\ndata: ä\r\n\r\nevent: e\r\ndata: b\r\n\r\n";
        for event in read_all(stream.as_bytes()).expect("short") {
            let alone = read_all(&stream.as_bytes()[event.bytes.clone()]).expect("short");
            assert_eq!(alone.len(), 1);
            assert_eq!((&alone[0].name, &alone[0].data), (&event.name, &event.data));
        }
    }

    proptest! {
        #[test]
        fn no_cut_of_the_bytes_changes_an_event(
            lines in proptest::collection::vec("(data|event|id|:|x)?(: ?)?[a-zäß🦀\u{feff}]{0,6}(\r|\n|\r\n|\n\n|\r\r|\r\n\r\n)", 0..24),
            cuts in proptest::collection::vec(0_usize..400, 0..12),
        ) {
            let stream = lines.concat().into_bytes();
            let whole = read_all(&stream).expect("short");
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let mut reader = Reader::new();
            let mut events = Vec::new();
            for pair in cuts.windows(2) {
                events.extend(reader.push(&stream[pair[0]..pair[1]]).expect("short"));
            }
            events.extend(reader.finish());
            prop_assert_eq!(events, whole);
        }

        #[test]
        fn bytes_that_are_no_stream_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            read_all(&bytes).expect("short");
        }
    }
}

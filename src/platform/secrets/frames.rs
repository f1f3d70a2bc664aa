//! Secrets in Amazon's binary event stream (`application/vnd.amazon.eventstream`), whose frames hold JSON.
//!
//! A frame is its length, the length of its headers, a checksum of these two, the headers, the payload and a checksum of
//! all before. Only the payloads that hold a secret, or a piece of one, are written anew, with lengths and checksums that
//! fit: clients compare them. The format is described in the documentation of Amazon Transcribe ("Event stream encoding").

use super::{Redactor, redact_stream};
use serde_json::Value;
use std::ops::Range;

/// Bytes before the headers: both lengths and their checksum.
const PRELUDE: usize = 12;
/// Bytes of a checksum.
const CHECKSUM: usize = 4;

/// One frame: where it ends, and its parts.
struct Frame<'b> {
    end: usize,
    headers: &'b [u8],
    payload: &'b [u8],
}

/// The frames of a body that consists of whole ones, each with a JSON object or nothing as its payload.
fn frames(body: &[u8]) -> Option<Vec<(Frame<'_>, Value)>> {
    let mut found = Vec::new();
    let mut start = 0;
    while start < body.len() {
        let rest = &body[start..];
        let (length, headers) = (number(rest, 0..4)?, number(rest, 4..8)?);
        let frame = rest.get(..length)?;
        let payload = PRELUDE.checked_add(headers)?..length.checked_sub(CHECKSUM)?;
        let frame =
            Frame { end: start + length, headers: frame.get(PRELUDE..payload.start)?, payload: frame.get(payload)? };
        let document = match frame.payload {
            [] => Value::Null,
            payload => serde_json::from_slice(payload).ok().filter(Value::is_object)?,
        };
        start = frame.end;
        found.push((frame, document));
    }
    (!found.is_empty()).then_some(found)
}

fn number(bytes: &[u8], place: Range<usize>) -> Option<usize> {
    usize::try_from(u32::from_be_bytes(bytes.get(place)?.try_into().ok()?)).ok()
}

/// Where each frame of such a stream ends; `None` for any other body.
pub(crate) fn frame_ends(body: &[u8]) -> Option<Vec<usize>> {
    Some(frames(body)?.iter().map(|(frame, _)| frame.end).collect())
}

/// The stream without secrets in its payloads; `None` if there are none, or if it is no such stream.
pub(super) fn redact_frames(body: &[u8], redactor: &Redactor) -> Option<Vec<u8>> {
    let frames = frames(body)?;
    let clean: Vec<String> = frames.iter().map(|(_, document)| redactor.redact_value(document).to_string()).collect();
    let clean = clean.join("\n");
    let clean = redact_stream(&clean, redactor).unwrap_or(clean);
    let (mut written, mut start, mut is_changed) = (Vec::with_capacity(body.len()), 0, false);
    for ((frame, document), clean) in frames.iter().zip(clean.split('\n')) {
        let before = document.to_string();
        if before == clean {
            written.extend_from_slice(&body[start..frame.end]);
        } else {
            write(&mut written, frame.headers, clean.as_bytes())?;
            is_changed = true;
        }
        start = frame.end;
    }
    is_changed.then_some(written)
}

/// Appends a frame; `None` if it is too long for one.
fn write(out: &mut Vec<u8>, headers: &[u8], payload: &[u8]) -> Option<()> {
    let length = PRELUDE + headers.len() + payload.len() + CHECKSUM;
    let start = out.len();
    out.extend(u32::try_from(length).ok()?.to_be_bytes());
    out.extend(u32::try_from(headers.len()).ok()?.to_be_bytes());
    out.extend(checksum(&out[start..]).to_be_bytes());
    out.extend_from_slice(headers);
    out.extend_from_slice(payload);
    out.extend(checksum(&out[start..]).to_be_bytes());
    Some(())
}

/// CRC-32 as in gzip and Ethernet (ISO 3309).
fn checksum(bytes: &[u8]) -> u32 {
    let next = |sum: u32, byte: &u8| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 })
    };
    !bytes.iter().fold(u32::MAX, next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SECRET: &str = "planted-Key/0451+more";

    fn redactor() -> Redactor {
        Redactor::new([("SERVICE_KEY".to_owned(), SECRET.to_owned())])
    }

    fn stream(payloads: &[Value]) -> Vec<u8> {
        let mut out = Vec::new();
        for payload in payloads {
            write(&mut out, b"\x0b:event-type\x07\x00\x01x", payload.to_string().as_bytes()).expect("short");
        }
        out
    }

    fn payloads(body: &[u8]) -> Vec<Value> {
        frames(body).expect("frames").into_iter().map(|(_, payload)| payload).collect()
    }

    fn text(block: u32, text: &str) -> Value {
        json!({"contentBlockIndex": block, "delta": {"text": text}})
    }

    #[test]
    fn the_checksum_is_that_of_the_usual_test_vector() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_payload_with_a_secret_is_written_anew_and_the_others_keep_their_bytes() {
        let body = stream(&[text(0, "The key is"), text(0, &format!(" {SECRET}.")), json!({"stopReason": "end_turn"})]);
        let clean = redactor().redact_body(&body).expect("redacted");
        let expected = [text(0, "The key is"), text(0, " [redacted:SERVICE_KEY]."), json!({"stopReason": "end_turn"})];
        assert_eq!(clean, stream(&expected));
        assert_eq!(redactor().redact_body(&clean), None, "redacting twice is redacting once");
        assert_eq!(redactor().redact_body(&stream(&[text(0, "harmless")])), None);
    }

    #[test]
    fn a_secret_in_pieces_is_found_and_blocks_stay_apart() {
        let (one, other) = SECRET.split_at(7);
        let body = stream(&[text(0, one), text(1, "{\"a\": 1}"), text(0, other), text(0, " so")]);
        let clean = payloads(&redactor().redact_body(&body).expect("redacted"));
        assert_eq!(clean, [text(0, "[redacted:SERVICE_KEY] so"), text(1, "{\"a\": 1}"), text(0, ""), text(0, "")]);
        let apart = stream(&[text(0, one), text(1, other)]);
        assert_eq!(redactor().redact_body(&apart), None);
    }

    #[test]
    fn what_is_no_whole_stream_of_frames_is_replaced_as_a_whole() {
        let mut body = stream(&[text(0, &format!("é {SECRET}"))]);
        body.extend([0, 0, 0, 0xff]);
        let clean = String::from_utf8(redactor().redact_body(&body).expect("redacted")).expect("a mark");
        assert!(clean.contains("a binary body of"), "{clean}");
        assert_eq!(frame_ends(&body), None);
        assert_eq!(frame_ends(&stream(&[text(0, "a")])).map(|ends| ends.len()), Some(1));
    }
}

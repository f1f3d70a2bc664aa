//! The receiver of OpenTelemetry: spans that an agent posts to `/v1/traces`, as JSON or protobuf, plain or gzip.
//!
//! Spans go to the trial with their trace id, never to one that happens to run. What is posted to `/v1/logs` and
//! `/v1/metrics` is accepted and not read, because an SDK that is given one address sends all three there.

use super::desk::Desk;
use crate::platform::lock::lock;
use crate::trace::spans;
use crate::trace::text::quote;
use axum::body::{Body, to_bytes};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use flate2::read::MultiGzDecoder;
use std::io::{self, Read};
use std::sync::Mutex;

/// Longest export, as sent and unpacked, in bytes.
const LONGEST: usize = 64 << 20;
const TRACES: &str = "/v1/traces";

/// Whether a request is an export.
pub(super) fn is_export(head: &Parts) -> bool {
    head.method == Method::POST && matches!(head.uri.path(), TRACES | "/v1/logs" | "/v1/metrics")
}

/// Takes an export.
pub(super) async fn take(slot: &Mutex<Desk>, head: &Parts, body: Body) -> Response {
    let is_json = head.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    let (kind, empty) = if is_json { ("application/json", "{}") } else { ("application/x-protobuf", "") };
    let answer = |status: StatusCode| (status, [(CONTENT_TYPE, HeaderValue::from_static(kind))], empty).into_response();
    let refuse = |status: StatusCode, why: String| {
        let mut desk = lock(slot);
        desk.report(spans::Batch { unread: vec![why], ..spans::Batch::default() });
        answer(status)
    };
    let bytes = to_bytes(body, LONGEST).await;
    if head.uri.path() != TRACES {
        return answer(StatusCode::OK);
    }
    let Ok(bytes) = bytes else {
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, too_long().to_string());
    };
    let encoding =
        head.headers.get(CONTENT_ENCODING).map(|kind| kind.to_str().unwrap_or_default().to_ascii_lowercase());
    let bytes = match encoding.as_deref() {
        None | Some("" | "identity") => Ok(bytes.to_vec()),
        Some("gzip") => unpacked(&bytes),
        Some(other) => {
            let why = format!("an export in the encoding `{}` was not read: gzip is", quote(other, 20));
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
        }
    };
    let read = bytes.and_then(|bytes| match bytes.as_slice() {
        [] => Ok(spans::Batch::default()),
        bytes => spans::read(bytes).map_err(io::Error::other),
    });
    match read {
        Ok(batch) => {
            lock(slot).report(batch);
            answer(StatusCode::OK)
        }
        Err(why) => refuse(StatusCode::BAD_REQUEST, why.to_string()),
    }
}

fn too_long() -> io::Error {
    io::Error::other(format!("an export is longer than {} MiB", LONGEST >> 20))
}

fn unpacked(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(LONGEST as u64 + 1).read_to_end(&mut out);
    read.map_err(|why| io::Error::other(format!("an export is not gzip: {why}")))?;
    if out.len() > LONGEST {
        return Err(too_long());
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::trace_ids::Traced;
    use super::*;
    use crate::platform::clock::{BoxFuture, VirtualClock, block_on};
    use crate::transport::{HttpRequest, HttpResponse, Transport, TransportError};
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use serde_json::{Value, json};
    use std::io::Write;
    use std::sync::Arc;

    struct Nothing;

    impl Transport for Nothing {
        fn send(&self, _request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
            Box::pin(async { Err(TransportError::Invalid { message: String::new() }) })
        }
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = GzEncoder::new(Vec::new(), Compression::fast());
        out.write_all(bytes).expect("memory");
        out.finish().expect("memory")
    }

    /// Posts an export for a trial; the status, the number of spans that came, and what is noted.
    fn posted(trace: &Traced, bytes: Vec<u8>, encoding: Option<&str>) -> (StatusCode, usize, Vec<String>) {
        let slot = Mutex::new(Desk::default());
        let number =
            slot.lock().expect("one thread").serve(Arc::new(Nothing), Vec::new(), Vec::new(), Some(trace.clone()));
        let mut request = axum::http::Request::builder().method("POST").uri(TRACES);
        if let Some(encoding) = encoding {
            request = request.header(CONTENT_ENCODING, encoding);
        }
        let (head, ()) = request.body(()).expect("a request").into_parts();
        let clock = Arc::new(VirtualClock::at(jiff::Timestamp::UNIX_EPOCH));
        let status = block_on(&clock, take(&slot, &head, Body::from(bytes))).expect("no deadlock").status();
        let taken = slot.lock().expect("one thread").take_spans(number);
        (status, taken.spans.len(), taken.notes)
    }

    fn export(trace: &str, count: usize, more: &Value) -> Value {
        let span = |n: usize| {
            json!({"traceId": trace, "spanId": format!("{:016x}", n + 1), "parentSpanId": "", "name": format!("s{n}"),
                "startTimeUnixNano": "1", "endTimeUnixNano": "2",
                "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}, more]})
        };
        json!({"resourceSpans": [{"scopeSpans": [{"spans": (0..count).map(span).collect::<Vec<_>>()}]}]})
    }

    /// Two hundred exports that are broken as bytes: each span comes or a note says why not.
    #[test]
    fn broken_exports_while_a_trial_runs_neither_panic_nor_get_lost() {
        let trace = Traced::alone();
        let whole = export(trace.id(), 3, &json!({"key": "x", "value": {"stringValue": "Grüße 🌱"}})).to_string();
        let bytes = whole.as_bytes();
        let mut seed = 7_usize;
        let mut next = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for round in 0..200 {
            let mut broken = bytes.to_vec();
            let encoding = match round % 8 {
                0 => {
                    broken.truncate(next(bytes.len() - 1) + 1);
                    None
                }
                1 => {
                    let at = next(bytes.len());
                    broken[at] = 0xff;
                    None
                }
                2 => {
                    broken = gzip(bytes);
                    broken.truncate(next(broken.len()));
                    Some("gzip")
                }
                3 => {
                    broken = gzip(bytes);
                    let at = next(broken.len());
                    broken[at] ^= 0x55;
                    Some("gzip")
                }
                4 => Some("gzip"),
                5 => {
                    broken = whole.encode_utf16().flat_map(u16::to_le_bytes).collect();
                    None
                }
                6 => {
                    broken = (0..=next(400)).map(|_| u8::try_from(next(256)).expect("a byte")).collect();
                    None
                }
                _ => {
                    broken =
                        whole.replace("stringValue", ["strungValue", "bytesValue", "arrayValue"][next(3)]).into_bytes();
                    None
                }
            };
            let (status, spans, notes) = posted(&trace, broken, encoding);
            let is_whole = spans == 3;
            assert!(is_whole || !notes.is_empty(), "{round}: {spans} of 3 spans, and no note ({status})");
            assert!(status == StatusCode::OK || status == StatusCode::BAD_REQUEST, "{round}: {status}");
        }
    }

    #[test]
    fn a_bomb_is_refused_with_a_note_and_an_attribute_of_ten_megabytes_is_read() {
        let trace = Traced::alone();
        let (status, spans, notes) = posted(&trace, gzip(&vec![b' '; LONGEST + 9]), Some("gzip"));
        assert_eq!((status, spans), (StatusCode::BAD_REQUEST, 0));
        assert!(notes[0].contains("longer than 64 MiB"), "{notes:?}");
        let long = json!({"key": "gen_ai.output.messages", "value": {"stringValue": "x".repeat(10 << 20)}});
        let (status, spans, notes) =
            posted(&trace, gzip(export(trace.id(), 1, &long).to_string().as_bytes()), Some("gzip"));
        assert_eq!((status, spans, notes.len()), (StatusCode::OK, 1, 0));
        let (status, _, notes) = posted(&trace, vec![b' '; LONGEST + 9], None);
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(notes[0].contains("longer than 64 MiB"), "{notes:?}");
        let (status, spans, notes) = posted(&trace, b"{}".to_vec(), Some("br"));
        assert_eq!((status, spans), (StatusCode::UNSUPPORTED_MEDIA_TYPE, 0));
        assert!(notes[0].contains("`br`"), "{notes:?}");
    }
}

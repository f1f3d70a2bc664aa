//! The receiver of OpenTelemetry: spans that an agent posts to `/v1/traces`, as JSON or protobuf, plain or gzip.
//!
//! Spans go to the trial with their trace id, never to one that happens to run. What is posted to `/v1/logs` and
//! `/v1/metrics` is accepted and not read, because an SDK that is given one address sends all three there.

use super::desk::Desk;
use crate::trace::spans;
use axum::body::{Body, to_bytes};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use flate2::read::MultiGzDecoder;
use std::io::{self, Read};
use std::sync::{Mutex, PoisonError};

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
    let Ok(bytes) = to_bytes(body, LONGEST).await else { return answer(StatusCode::PAYLOAD_TOO_LARGE) };
    if head.uri.path() != TRACES {
        return answer(StatusCode::OK);
    }
    let packed = head.headers.get(CONTENT_ENCODING).is_some_and(|kind| kind.as_bytes() == b"gzip");
    let bytes = if packed { unpacked(&bytes) } else { Ok(bytes.to_vec()) };
    let read = bytes.and_then(|bytes| match bytes.as_slice() {
        [] => Ok(spans::Batch::default()),
        bytes => spans::read(bytes).map_err(io::Error::other),
    });
    let mut desk = slot.lock().unwrap_or_else(PoisonError::into_inner);
    match read {
        Ok(batch) => {
            desk.report(batch);
            answer(StatusCode::OK)
        }
        Err(why) => {
            desk.report(spans::Batch { unread: vec![why.to_string()], ..spans::Batch::default() });
            answer(StatusCode::BAD_REQUEST)
        }
    }
}

fn unpacked(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(LONGEST as u64 + 1).read_to_end(&mut out);
    read.map_err(|why| io::Error::other(format!("an export is not gzip: {why}")))?;
    if out.len() > LONGEST {
        return Err(io::Error::other(format!("an export is longer than {} MiB", LONGEST >> 20)));
    }
    Ok(out)
}

//! What stands in the way of an answer, as the services themselves write errors.
//!
//! Each dialect writes its own shape, so that a client shows the sentence. A request that no repetition can help says `x-should-retry: false`: clients
//! obey it where they would try again and bury the message under time.

use crate::provider::wire::Dialect;
use crate::transport::TransportError;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt};

/// A status, a machine-readable code and a sentence, as a client of `dialect` reads them.
pub(super) fn refusal(dialect: &Dialect, status: StatusCode, code: &str, message: &str) -> Response {
    let body = dialect.encode_error(status.as_u16(), code, &format!("ragcheck: {message}"));
    let mut response = (status, body.to_string()).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if status.is_client_error() {
        headers.insert("x-should-retry", HeaderValue::from_static("false"));
    }
    response
}

/// A response whose connection breaks after these bytes, or before its head if there are none.
pub(super) fn broken_off(status: StatusCode, bytes: Bytes) -> Response {
    let reset = || std::io::Error::new(std::io::ErrorKind::ConnectionReset, "a declared fault");
    let sent = (!bytes.is_empty()).then_some(Ok(bytes));
    let flushes = sent.is_some();
    let body = Body::from_stream(stream::iter(sent).chain(stream::once(async move {
        if flushes {
            // A body that waits is written out before its connection breaks.
            tokio::task::yield_now().await;
        }
        Err(reset())
    })));
    let mut response = (status, body).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A request that came to nothing.
pub(super) fn failed(dialect: &Dialect, error: &TransportError) -> Response {
    if matches!(error, TransportError::Faulted { timed_out: false, .. }) {
        return broken_off(StatusCode::OK, Bytes::new());
    }
    let (status, code, message) = told(error);
    refusal(dialect, status, code, &message)
}

/// Why a request came to nothing: a status, a machine-readable code, and the message.
pub(super) fn told(error: &TransportError) -> (StatusCode, &'static str, String) {
    match error {
        TransportError::Miss(miss) => {
            let lines: Vec<&str> =
                std::iter::once(miss.message.as_str()).chain(miss.detail.iter().map(String::as_str)).collect();
            (StatusCode::BAD_REQUEST, "ragcheck_cassette_miss", lines.join("\n"))
        }
        TransportError::Invalid { .. } | TransportError::Withheld { .. } => {
            (StatusCode::BAD_REQUEST, "ragcheck_invalid_request", error.to_string())
        }
        TransportError::Connection { .. } | TransportError::Faulted { timed_out: false, .. } => {
            (StatusCode::BAD_GATEWAY, "ragcheck_connection", error.to_string())
        }
        TransportError::Timeout { .. } | TransportError::Faulted { timed_out: true, .. } => {
            (StatusCode::GATEWAY_TIMEOUT, "ragcheck_timeout", error.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::wire::{dialects, error_message};

    #[test]
    fn every_dialect_says_the_sentence_where_its_clients_read_it() {
        for dialect in dialects() {
            for status in [400, 403, 404, 413, 502, 504] {
                let body = dialect.encode_error(status, "ragcheck_x", "ragcheck: why").to_string();
                assert_eq!(error_message(&body), "ragcheck: why", "{}", dialect.name());
                assert!(body.contains("ragcheck_x"), "{body}");
            }
        }
        assert_eq!(refusal(openai_responses(), StatusCode::NOT_FOUND, "c", "m").headers()["x-should-retry"], "false");
    }

    fn openai_responses() -> &'static Dialect {
        crate::provider::wire::openai_responses::DIALECT
    }
}

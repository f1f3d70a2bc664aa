//! Turns an unsuccessful or unreadable response into a [`Failure`]; `wire` interprets its body.

use super::ErrorKind;
use super::retry::Failure;
use super::wire::{self, WireError};
use crate::cassette::Redactor;
use crate::transport::{HttpResponse, REDIRECT_HEADER, was_left};

/// Characters of a service's message that are kept.
const WORDS: usize = 500;

/// Interprets an unsuccessful response.
pub(super) fn failure(response: &HttpResponse, redactor: &Redactor) -> Failure {
    if (300..400).contains(&response.status) {
        return redirected(response, redactor);
    }
    let body = String::from_utf8_lossy(&response.body);
    let kind = match wire::error_kind(response.status, &body) {
        ErrorKind::BadRequest if is_page(response) => ErrorKind::HtmlPage,
        kind => kind,
    };
    let mut message = clipped(wire::error_message(&body).trim(), redactor);
    if message.is_empty() {
        message = format!("HTTP {} without a word", response.status);
    }
    Failure { kind, status: Some(response.status), message }
}

/// Interprets a redirect: the address is wrong, and a retry does not help.
fn redirected(response: &HttpResponse, redactor: &Redactor) -> Failure {
    let status = response.status;
    let message = match response.header(REDIRECT_HEADER) {
        Some(host) => format!("it redirects to {host}, and no redirect is followed"),
        None => format!("HTTP {status} instead of an answer, without an address"),
    };
    Failure { kind: ErrorKind::BadRequest, status: Some(status), message: clipped(&message, redactor) }
}

/// Interprets a success that cannot be translated: an error of the upstream service, or invalid content.
pub(super) fn unreadable(response: &HttpResponse, error: &WireError, redactor: &Redactor) -> Failure {
    match error {
        _ if is_page(response) => malformed(response, &error.to_string(), redactor),
        WireError::Reported { kind, message } => {
            Failure { kind: *kind, status: Some(response.status), message: clipped(message, redactor) }
        }
        WireError::Cut => {
            let left = "your agent left the stream before its end, and what it took from it is not known";
            let message = if was_left(response) { left.to_owned() } else { error.to_string() };
            Failure { kind: ErrorKind::Connection, status: Some(response.status), message }
        }
        other => malformed(response, &other.to_string(), redactor),
    }
}

/// Failure for a successful response that cannot be read.
pub(super) fn malformed(response: &HttpResponse, reason: &str, redactor: &Redactor) -> Failure {
    let kind = if is_page(response) { ErrorKind::HtmlPage } else { ErrorKind::Malformed };
    Failure { kind, status: Some(response.status), message: clipped(reason, redactor) }
}

/// Whether a response is an HTML page, by its content type or its beginning.
fn is_page(response: &HttpResponse) -> bool {
    let typed = response.header("content-type").is_some_and(|kind| kind.trim_start().starts_with("text/html"));
    let begins = response.body.trim_ascii_start();
    let begins = begins[..begins.len().min(14)].to_ascii_lowercase();
    typed || begins.starts_with(b"<!doctype html") || begins.starts_with(b"<html")
}

fn clipped(words: &str, redactor: &Redactor) -> String {
    redactor.redact(words).chars().take(WORDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::time::Duration;

    fn response(status: u16, body: &str) -> HttpResponse {
        let body = bytes::Bytes::from(body.to_owned());
        HttpResponse { status, headers: Vec::new(), body, took: Duration::ZERO, chunks: Vec::new() }
    }

    fn read(status: u16, body: &Value) -> Failure {
        failure(&response(status, &body.to_string()), &Redactor::default())
    }

    #[test]
    fn each_kind_of_error_is_told_from_its_neighbours() {
        for (status, code, message, kind) in [
            (429, "rate_limit_exceeded", "Slow down", ErrorKind::RateLimit),
            (429, "insufficient_quota", "Slow down", ErrorKind::Quota),
            (402, "", "Pay first", ErrorKind::Quota),
            (400, "context_length_exceeded", "long", ErrorKind::ContextLength),
            (400, "", "This model's maximum context length is 8192 tokens", ErrorKind::ContextLength),
            (401, "invalid_api_key", "no", ErrorKind::Auth),
            (403, "", "no", ErrorKind::Auth),
            (503, "", "later", ErrorKind::Overloaded),
            (529, "overloaded_error", "later", ErrorKind::Overloaded),
            (500, "", "oops", ErrorKind::Server),
            (400, "tool_use_failed", "no call", ErrorKind::BadRequest),
            (404, "model_not_found", "no such model", ErrorKind::BadRequest),
        ] {
            let found = read(status, &json!({"error": {"code": code, "message": message}}));
            assert_eq!((found.kind, found.message.as_str()), (kind, message), "{status} {code}");
        }
    }

    #[test]
    fn odd_shapes_still_give_words_and_no_secret() {
        assert_eq!(read(500, &json!([{"error": {"message": "in a list"}}])).message, "in a list");
        assert_eq!(read(400, &json!({"error": "bare"})).message, "bare");
        assert_eq!(read(400, &json!({"detail": "other name"})).message, "other name");
        assert_eq!(read(400, &json!({"odd": 1})).message, "{\"odd\":1}");
        let told = read(401, &json!({"error": {"message": "Incorrect key sk-abcdefghijklmnopqrst"}}));
        assert_eq!(told.message, "Incorrect key [redacted:openai]");
        assert_eq!(failure(&response(502, ""), &Redactor::default()).message, "HTTP 502 without a word");
    }

    #[test]
    fn a_redirect_is_not_retried_and_names_the_host() {
        for status in [301, 302, 304, 307, 308] {
            let page = response(status, "<html>Moved</html>");
            let told = failure(&page, &Redactor::default());
            assert_eq!((told.kind, told.status), (ErrorKind::BadRequest, Some(status)), "{told:?}");
            assert!(!told.kind.is_transient() && told.message.contains(&format!("HTTP {status}")), "{told:?}");
            let headers = vec![(REDIRECT_HEADER.to_owned(), "api.example".to_owned())];
            let told = failure(&HttpResponse { headers, ..page }, &Redactor::default());
            assert!(told.message.contains("redirects to api.example"), "{told:?}");
        }
    }

    #[test]
    fn a_success_that_reports_an_error_is_that_error() {
        let reported = WireError::Reported { kind: ErrorKind::RateLimit, message: "upstream is busy".to_owned() };
        let found = unreadable(&response(200, ""), &reported, &Redactor::default());
        assert_eq!((found.kind, found.status), (ErrorKind::RateLimit, Some(200)));
        let nonsense = WireError::NotJson { message: "line 1".to_owned() };
        assert_eq!(unreadable(&response(200, ""), &nonsense, &Redactor::default()).kind, ErrorKind::Malformed);
    }
}

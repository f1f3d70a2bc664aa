//! Error bodies into kinds: the services here share OpenAI's shape, `{"error": {message, type, code}}`, more or less.

use super::ErrorKind;
use super::retry::Failure;
use crate::cassette::Redactor;
use crate::transport::HttpResponse;
use serde_json::Value;

/// Characters of a service's words that are kept.
const WORDS: usize = 500;

/// What a response that is no success means.
pub(super) fn failure(response: &HttpResponse, redactor: &Redactor) -> Failure {
    let body: Value = serde_json::from_slice(&response.body).unwrap_or(Value::Null);
    from_error(error_of(&body), Some(response.status), &response.body, redactor)
}

/// The error that a body holds, if it holds one.
pub(super) fn error_of(body: &Value) -> &Value {
    // Some gateways wrap their errors in a list.
    let body = body.get(0).unwrap_or(body);
    match body.get("error").or_else(|| body.get("detail")) {
        Some(error) => error,
        None if body.get("message").is_some() => body,
        None => &Value::Null,
    }
}

/// An error object (or bare text) into a failure; `body` stands in where it says nothing.
pub(super) fn from_error(error: &Value, status: Option<u16>, body: &[u8], redactor: &Redactor) -> Failure {
    let field = |name: &str| match error.get(name) {
        Some(Value::String(text)) => text.to_lowercase(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let message = match error {
        Value::String(text) => text.clone(),
        _ => match error.get("message").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => String::from_utf8_lossy(body).into_owned(),
        },
    };
    let kind = kind(status, &[field("code"), field("type")], &message.to_lowercase());
    let mut words: String = redactor.redact(message.trim()).chars().take(WORDS).collect();
    if words.is_empty() {
        words = match status {
            Some(status) => format!("HTTP {status} without a word"),
            None => "an error without a word".to_owned(),
        };
    }
    Failure { kind, status, message: words }
}

/// A response that should have been a success and cannot be read.
pub(super) fn malformed(response: &HttpResponse, reason: &str, redactor: &Redactor) -> Failure {
    let reason: String = redactor.redact(reason).chars().take(WORDS).collect();
    Failure { kind: ErrorKind::Malformed, status: Some(response.status), message: reason }
}

fn kind(status: Option<u16>, codes: &[String; 2], message: &str) -> ErrorKind {
    let code = |words: &[&str]| codes.iter().any(|code| words.iter().any(|word| code.contains(word)));
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if code(&["insufficient_quota", "billing", "credit", "quota_exceeded"])
        || status == Some(402)
        || (status == Some(429)
            && says(&["exceeded your current quota", "billing", "spending limit", "out of credits"]))
    {
        return ErrorKind::Quota;
    }
    if code(&["context_length", "too_many_prompt_tokens", "string_above_max_length"])
        || (matches!(status, Some(400 | 413 | 422))
            && says(&["context length", "context window", "maximum context", "too many tokens", "prompt is too long"]))
    {
        return ErrorKind::ContextLength;
    }
    if code(&["overloaded"]) || matches!(status, Some(503 | 529)) {
        return ErrorKind::Overloaded;
    }
    if code(&["rate_limit"]) || status == Some(429) {
        return ErrorKind::RateLimit;
    }
    if code(&["invalid_api_key", "authentication", "permission"]) {
        return ErrorKind::Auth;
    }
    match status {
        Some(401 | 403) => ErrorKind::Auth,
        Some(408) => ErrorKind::Timeout,
        Some(500..) => ErrorKind::Server,
        Some(_) => ErrorKind::BadRequest,
        None if code(&["server", "internal"]) => ErrorKind::Server,
        None => ErrorKind::BadRequest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    fn read(status: u16, body: &Value) -> Failure {
        let body = bytes::Bytes::from(body.to_string());
        failure(&HttpResponse { status, headers: Vec::new(), body, took: Duration::ZERO }, &Redactor::default())
    }

    #[test]
    fn each_kind_of_error_is_told_from_its_neighbours() {
        for (status, code, message, kind) in [
            (429, "rate_limit_exceeded", "Slow down", ErrorKind::RateLimit),
            (429, "insufficient_quota", "Slow down", ErrorKind::Quota),
            (429, "", "You exceeded your current quota, check your plan", ErrorKind::Quota),
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
        let html = HttpResponse { status: 502, headers: vec![], body: "".into(), took: Duration::ZERO };
        assert_eq!(failure(&html, &Redactor::default()).message, "HTTP 502 without a word");
    }
}

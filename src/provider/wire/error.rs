//! What an error body means, in the words of all dialects.
//!
//! Providers say it in a code, a type, a status word, a list of details or only in the sentence; compatible servers
//! mix their vocabularies. One table therefore reads them all. A quota is told from a rate limit by its code, by a
//! violated quota per day, or by status 402: the sentence alone says "quota" for both.

use super::document::WireError;
use crate::platform::secrets;
use crate::provider::ErrorKind;
use serde_json::Value;

/// Sorts an error by HTTP status and body; the body may be anything.
pub fn error_kind(status: u16, body: &str) -> ErrorKind {
    let document: Value = serde_json::from_str(body).unwrap_or_else(|_| Value::from(body));
    kind(Some(status), &document)
}

/// The provider's sentence, or the beginning of what it sent instead.
pub fn error_message(body: &str) -> String {
    let document: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    sentence(&document).map_or_else(|| secrets::beginning(body.trim(), 300), str::to_owned)
}

/// What a response means that is a success by its status and reports an error in its body; `None` for any other.
pub fn reported_kind(body: &[u8]) -> Option<ErrorKind> {
    /// Longer bodies are answers.
    const LONGEST: usize = 64 << 10;
    if body.len() > LONGEST || memchr::memmem::find(body, b"\"error\"").is_none() {
        return None;
    }
    match reported(&serde_json::from_slice(body).ok()?)? {
        WireError::Reported { kind, .. } => Some(kind),
        _ => None,
    }
}

/// The error that a document is, where it is one: an event in a stream, or a response that failed.
pub(super) fn reported(document: &Value) -> Option<WireError> {
    let is_error = match document.get("type").and_then(Value::as_str) {
        Some("error" | "response.failed") => true,
        _ => document.get("status").and_then(Value::as_str) == Some("failed"),
    };
    let holder = document.get("response").unwrap_or(document);
    let named = ["choices", "candidates", "output", "content"].iter().all(|key| document.get(key).is_none())
        && holder.get("error").is_some_and(|error| !error.is_null());
    (is_error || named).then(|| WireError::Reported {
        kind: kind(None, holder),
        message: sentence(holder).unwrap_or("no reason given").to_owned(),
    })
}

/// The sentence of a content filter that stands in the place of an answer; `None` for any other document.
pub(super) fn filtered(document: &Value) -> Option<String> {
    let error = document.get("error").filter(|error| error.is_object())?;
    let answered = ["choices", "candidates", "output", "content"].iter().any(|key| document.get(key).is_some());
    let names = |value: Option<&Value>, word: &str| value.and_then(Value::as_str) == Some(word);
    let policy = names(error.pointer("/innererror/code"), "ResponsibleAIPolicyViolation");
    let found = policy || names(error.get("code"), "content_filter") || names(error.get("type"), "content_filter");
    (found && !answered).then(|| sentence(document).unwrap_or("the content filter stopped the request").to_owned())
}

/// Parts of the codes by which services say that the request's content is not let through.
const MODERATED: [&str; 4] = ["content_filter", "content_policy", "responsibleaipolicyviolation", "moderation"];
/// The same in sentences. "Flagged" alone is said of accounts as well.
const MODERATION: [&str; 5] =
    ["input was flagged", "prompt was flagged", "content management policy", "content policy", "requires moderation"];

fn error_of(document: &Value) -> &Value {
    // Gemini's streams send errors in a list; Google's gateways too.
    let document = document.get(0).unwrap_or(document);
    document.get("error").filter(|error| !error.is_null()).unwrap_or(document)
}

fn sentence(document: &Value) -> Option<&str> {
    let error = error_of(document);
    error.as_str().or_else(|| ["message", "detail"].iter().find_map(|key| error.get(key)?.as_str()))
}

/// The words by which providers name an error, in lower case, and its sentence.
fn words(document: &Value) -> (Vec<String>, String) {
    let error = error_of(document);
    let mut words: Vec<String> =
        ["code", "type", "status"].iter().filter_map(|key| error.get(key)?.as_str().map(str::to_lowercase)).collect();
    for detail in error.get("details").and_then(Value::as_array).into_iter().flatten() {
        words.extend(detail.get("reason").and_then(Value::as_str).map(str::to_lowercase));
        for violation in detail.get("violations").and_then(Value::as_array).into_iter().flatten() {
            words.extend(violation.get("quotaId").and_then(Value::as_str).map(str::to_lowercase));
        }
    }
    (words, sentence(document).unwrap_or_default().to_lowercase())
}

fn kind(status: Option<u16>, document: &Value) -> ErrorKind {
    let (words, sentence) = words(document);
    let named = |names: &[&str]| words.iter().any(|word| names.contains(&word.as_str()));
    let part = |names: &[&str]| words.iter().any(|word| names.iter().any(|name| word.contains(name)));
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| sentence.contains(phrase));
    // OpenRouter gives the status as the code, also within a stream that began with 200.
    let status = error_of(document)
        .get("code")
        .and_then(Value::as_u64)
        .and_then(|code| u16::try_from(code).ok())
        .filter(|code| (400..600).contains(code))
        .or(status);

    if status == Some(402)
        || part(&["insufficient_quota", "billing", "insufficient_balance", "perday", "insufficient_credits"])
        || says(&["credit balance is too low"])
    {
        return ErrorKind::Quota;
    }
    if named(&["context_length_exceeded", "too_many_prompt_tokens", "model_context_window_exceeded"])
        || says(&[
            "maximum context length",
            "context length",
            "context window",
            "prompt is too long",
            "input token count",
            "total length of all messages",
        ]) && !named(&["rate_limit_exceeded", "rate_limit_error"])
    {
        return ErrorKind::ContextLength;
    }
    // A gateway that moderates answers 403 as for a key that may not: here the request's words are the reason.
    let flagged = error_of(document).pointer("/metadata/flagged_input").is_some();
    if status != Some(401) && (flagged || part(&MODERATED) || says(&MODERATION)) {
        return ErrorKind::BadRequest;
    }
    if named(&[
        "authentication_error",
        "permission_error",
        "invalid_api_key",
        "api_key_invalid",
        "unauthenticated",
        "permission_denied",
    ]) {
        return ErrorKind::Auth;
    }
    if named(&["overloaded_error", "unavailable", "server_is_overloaded", "slow_down", "engine_overloaded"]) {
        return ErrorKind::Overloaded;
    }
    if part(&["rate_limit", "too_many_requests"]) || named(&["resource_exhausted"]) {
        return ErrorKind::RateLimit;
    }
    match status {
        Some(401 | 403) => ErrorKind::Auth,
        Some(408) => ErrorKind::Timeout,
        Some(429) => ErrorKind::RateLimit,
        Some(503 | 529) => ErrorKind::Overloaded,
        Some(400..=499) => ErrorKind::BadRequest,
        Some(500..) => ErrorKind::Server,
        _ if part(&["invalid_", "not_found", "unsupported", "failed_precondition", "content_filter"]) => {
            ErrorKind::BadRequest
        }
        _ => ErrorKind::Server,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_vocabulary_is_understood() {
        let cases = [
            (429, json!({"error": {"type": "insufficient_quota", "code": "insufficient_quota"}}), ErrorKind::Quota),
            (429, json!({"error": {"type": "requests", "code": "rate_limit_exceeded"}}), ErrorKind::RateLimit),
            (400, json!({"error": {"code": "context_length_exceeded"}}), ErrorKind::ContextLength),
            (529, json!({"type": "error", "error": {"type": "overloaded_error"}}), ErrorKind::Overloaded),
            (400, json!({"type": "error", "error": {"type": "invalid_request_error"}}), ErrorKind::BadRequest),
            (401, json!({"error": {"message": "no", "code": 401}}), ErrorKind::Auth),
            (503, json!({"error": {"code": 503, "status": "UNAVAILABLE"}}), ErrorKind::Overloaded),
            (500, json!({"error": {"code": 500, "status": "INTERNAL"}}), ErrorKind::Server),
            (404, json!({"detail": "Not Found"}), ErrorKind::BadRequest),
            (502, json!("<html>bad gateway</html>"), ErrorKind::Server),
            (402, json!({"error": {"message": "Insufficient Balance"}}), ErrorKind::Quota),
            (403, json!({"error": {"code": "permission_denied", "message": "no access"}}), ErrorKind::Auth),
            (403, json!({"error": {"message": "Your account was flagged for review"}}), ErrorKind::Auth),
            (
                403,
                json!({"error": {"code": 403, "message": "This model requires moderation. Your input was flagged",
                    "metadata": {"reasons": ["violence"], "flagged_input": "how to …"}}}),
                ErrorKind::BadRequest,
            ),
            (403, json!({"error": {"type": "content_policy_violation", "message": "no"}}), ErrorKind::BadRequest),
        ];
        for (status, body, kind) in cases {
            assert_eq!(error_kind(status, &body.to_string()), kind, "{body}");
        }
    }

    #[test]
    fn a_quota_a_minute_is_a_rate_limit_and_a_quota_a_day_is_not() {
        for (quota, kind) in [("RequestsPerMinute", ErrorKind::RateLimit), ("RequestsPerDay", ErrorKind::Quota)] {
            let body = json!({"error": {"code": 429, "message": "exceeded your current quota",
                "status": "RESOURCE_EXHAUSTED", "details": [{"violations": [{"quotaId": quota}]}]}});
            assert_eq!(error_kind(429, &body.to_string()), kind);
        }
    }

    #[test]
    fn an_error_within_a_stream_is_seen_and_a_null_one_is_not() {
        let failed = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
        let Some(WireError::Reported { kind, message }) = reported(&failed) else { panic!("an error") };
        assert_eq!((kind, message.as_str()), (ErrorKind::Overloaded, "busy"));
        assert_eq!(reported(&json!({"type": "response.created", "response": {"error": null}})), None);
    }

    #[test]
    fn a_body_that_is_no_json_still_gives_a_sentence() {
        assert_eq!(error_message("  upstream gone "), "upstream gone");
        assert_eq!(error_message("{\"error\": \"no such model\"}"), "no such model");
    }
}

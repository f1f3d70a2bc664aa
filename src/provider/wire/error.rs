//! Interprets error bodies, with one vocabulary for all dialects.
//!
//! Providers report the kind of an error in a code, a type, a status word, a list of details or only in the message;
//! compatible servers mix these. So one table covers them all. A quota is distinguished from a rate limit by its code,
//! by a violated quota per day, or by status 402: the message alone says "quota" for both. Each form that counts as an
//! outage is a row of docs/reference/outages.md, with its source.

use super::document::WireError;
use crate::platform::secrets;
use crate::provider::ErrorKind;
use serde_json::Value;

/// Classifies an error by HTTP status and body; the body may be anything.
pub fn error_kind(status: u16, body: &str) -> ErrorKind {
    let document: Value = serde_json::from_str(body).unwrap_or_else(|_| Value::from(body));
    kind(Some(status), &document)
}

/// The provider's message, or the beginning of the body.
pub fn error_message(body: &str) -> String {
    let document: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    sentence(&document).map_or_else(|| secrets::beginning(body.trim(), 300), str::to_owned)
}

/// Kind of the error that a body reports although the status is a success; `None` if it reports none.
pub(crate) fn reported_kind(body: &[u8]) -> Option<ErrorKind> {
    /// Longer bodies are answers.
    const LONGEST: usize = 64 << 10;
    let named = |word: &&str| memchr::memmem::find(body, word.as_bytes()).is_some();
    if body.len() > LONGEST || !BROKEN_OFF.iter().chain(&NOT_ENDED).chain(&["ERROR"]).any(named) {
        return None;
    }
    let document = serde_json::from_slice(body).ok()?;
    match reported(&document).or_else(|| broken_off(&document))? {
        WireError::Reported { kind, .. } => Some(kind),
        _ => None,
    }
}

/// Values by which a service reports that it broke off its answer (`finish_reason` of chat, `status` of Responses).
/// `network_error` is Z.ai's.
const BROKEN_OFF: [&str; 5] = ["error", "abort", "cancelled", "network_error", INSUFFICIENT];
/// DeepSeek's value for an answer that its overloaded servers broke off.
const INSUFFICIENT: &str = "insufficient_system_resource";
/// Values of Responses for an unfinished answer.
const NOT_ENDED: [&str; 2] = ["queued", "in_progress"];

/// Whether a status of Responses is that of an unfinished answer.
pub(crate) fn is_unfinished(status: &str) -> bool {
    NOT_ENDED.contains(&status)
}

/// The outage, if the service broke off the answer, or left it unfinished without a request to work in the background:
/// by its first choice's `finish_reason`, or its `status`. A request for `background` is recognised in the response,
/// which repeats it.
pub(super) fn broken_off(document: &Value) -> Option<WireError> {
    let choice = document.pointer("/choices/0");
    let finish = choice.and_then(|choice| choice.get("finish_reason")).and_then(Value::as_str);
    let status = document.get("status").and_then(Value::as_str).filter(|_| document.get("output").is_some());
    let word = finish.or(status)?.to_lowercase();
    let background = document.get("background") == Some(&Value::Bool(true));
    let waiting = status.is_some() && is_unfinished(&word);
    if !BROKEN_OFF.contains(&word.as_str()) && (!waiting || background) {
        return None;
    }
    let holders = [choice, Some(document)];
    let holder = holders.into_iter().flatten().find(|holder| holder.get("error").is_some_and(|error| !error.is_null()));
    let said = holder.and_then(sentence).map(|words| format!(": {words}")).unwrap_or_default();
    Some(WireError::Reported {
        kind: match holder {
            Some(holder) => kind(None, holder),
            None if word == INSUFFICIENT => ErrorKind::Overloaded,
            None => ErrorKind::Server,
        },
        message: if waiting {
            format!("the answer is not there yet: its status is {word}{said}")
        } else {
            format!("the service broke off its answer ({word}){said}")
        },
    })
}

/// The error in a document, if there is one: an event in a stream, or a failed response.
pub(in crate::provider) fn reported(document: &Value) -> Option<WireError> {
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

/// Message of a content filter in place of an answer; `None` for any other document.
pub(super) fn filtered(document: &Value) -> Option<String> {
    let error = document.get("error").filter(|error| error.is_object())?;
    let answered = ["choices", "candidates", "output", "content"].iter().any(|key| document.get(key).is_some());
    let names = |value: Option<&Value>, word: &str| value.and_then(Value::as_str) == Some(word);
    let policy = names(error.pointer("/innererror/code"), "ResponsibleAIPolicyViolation");
    let found = policy || names(error.get("code"), "content_filter") || names(error.get("type"), "content_filter");
    (found && !answered).then(|| sentence(document).unwrap_or("the content filter stopped the request").to_owned())
}

/// Parts of codes by which services report that the request's content is not allowed.
const MODERATED: [&str; 4] = ["content_filter", "content_policy", "responsibleaipolicyviolation", "moderation"];
/// The same in messages. "Flagged" alone is also used for accounts.
const MODERATION: [&str; 5] =
    ["input was flagged", "prompt was flagged", "content management policy", "content policy", "requires moderation"];

fn error_of(document: &Value) -> &Value {
    // Gemini's streams and Google's gateways send errors in a list.
    let document = document.get(0).unwrap_or(document);
    document.get("error").filter(|error| !error.is_null()).unwrap_or(document)
}

fn sentence(document: &Value) -> Option<&str> {
    let error = error_of(document);
    error.as_str().or_else(|| ["message", "detail"].iter().find_map(|key| error.get(key)?.as_str()))
}

/// The codes and types of an error, in lower case, and its message.
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
    // OpenRouter sends the status as the code, even within a stream that began with 200.
    let status = error_of(document)
        .get("code")
        .and_then(Value::as_u64)
        .and_then(|code| u16::try_from(code).ok())
        .filter(|code| (400..600).contains(code))
        .or(status);

    // 412 is Fireworks' status for a suspended account.
    if matches!(status, Some(402 | 412))
        || part(&["insufficient_quota", "billing", "insufficient_balance", "perday", "insufficient_credits"])
        || says(&["credit balance is too low", "reached your specified api usage limits"])
    {
        return ErrorKind::Quota;
    }
    if named(&["context_length_exceeded", "too_many_prompt_tokens", "model_context_window_exceeded"])
        || says(&[
            "maximum context length", "context length", "context window", "prompt is too long", "input token count",
            "total length of all messages",
        ]) && !named(&["rate_limit_exceeded", "rate_limit_error"])
    {
        return ErrorKind::ContextLength;
    }
    // A moderating gateway answers 403, as for a missing permission: here the reason is the request's content.
    let flagged = error_of(document).pointer("/metadata/flagged_input").is_some();
    if status != Some(401) && (flagged || part(&MODERATED) || says(&MODERATION)) {
        return ErrorKind::BadRequest;
    }
    if status == Some(400)
        && (named(&["model_decommissioned", "model_not_found", "invalid_model"])
            || says(&["model not exist", "model identifier is invalid"]))
    {
        return ErrorKind::NoModel;
    }
    if named(&[
        "authentication_error", "permission_error", "invalid_api_key", "api_key_invalid", "unauthenticated",
        "permission_denied",
        // Gemini's value, with status 400, for an account or a country without service.
        "failed_precondition",
    ]) {
        return ErrorKind::Auth;
    }
    if named(&["serviceunavailableexception", "modelnotreadyexception"])
        || named(&["overloaded_error", "unavailable", "server_is_overloaded", "slow_down", "engine_overloaded"])
    {
        return ErrorKind::Overloaded;
    }
    if part(&["rate_limit", "too_many_requests", "throttlingexception"]) || named(&["resource_exhausted"]) {
        return ErrorKind::RateLimit;
    }
    match status {
        Some(401 | 403) => ErrorKind::Auth,
        Some(408) => ErrorKind::Timeout,
        Some(429) => ErrorKind::RateLimit,
        // 498 is Groq's status for a flexible tier without capacity.
        Some(498 | 503 | 529) => ErrorKind::Overloaded,
        // A dependency of the service failed.
        Some(424 | 500..) => ErrorKind::Server,
        Some(400..=499) => ErrorKind::BadRequest,
        _ if part(&["validationexception", "invalid_", "not_found", "unsupported", "content_filter"]) => {
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
            (424, json!({"error": "inference failed", "error_type": "Backend"}), ErrorKind::Server),
            (498, json!({"error": {"code": "capacity_exceeded"}}), ErrorKind::Overloaded),
            (412, json!({"error": {"message": "Account suspended"}}), ErrorKind::Quota),
            (400, json!({"error": {"code": 400, "status": "FAILED_PRECONDITION"}}), ErrorKind::Auth),
            (413, json!({"error": {"message": "too large"}}), ErrorKind::BadRequest),
            (422, json!({"detail": "no such field"}), ErrorKind::BadRequest),
            (400, json!({"error": {"code": "model_decommissioned"}}), ErrorKind::NoModel),
            (400, json!({"error": {"message": "Model Not Exist"}}), ErrorKind::NoModel),
            (404, json!({"error": {"code": "model_not_found"}}), ErrorKind::BadRequest),
        ];
        for (status, body, kind) in cases {
            assert_eq!(error_kind(status, &body.to_string()), kind, "{body}");
        }
    }

    #[test]
    fn an_answer_that_the_service_broke_off_or_did_not_finish_is_an_error() {
        let chat = |finish: &str| json!({"choices": [{"message": {"content": "So"}, "finish_reason": finish}]});
        let response = |status: &str| json!({"status": status, "output": [], "error": null});
        for (document, expected) in [
            (chat("error"), ErrorKind::Server),
            (chat("ERROR"), ErrorKind::Server),
            (chat("abort"), ErrorKind::Server),
            (chat("network_error"), ErrorKind::Server),
            (chat("insufficient_system_resource"), ErrorKind::Overloaded),
            (
                json!({"choices": [{"finish_reason": "error", "error": {"code": 429, "message": "slow"}}]}),
                ErrorKind::RateLimit,
            ),
            (json!({"error": {"code": 401}, "choices": [{"finish_reason": "error"}]}), ErrorKind::Auth),
            (response("cancelled"), ErrorKind::Server),
            (response("queued"), ErrorKind::Server),
            (response("in_progress"), ErrorKind::Server),
        ] {
            let Some(WireError::Reported { kind, .. }) = broken_off(&document) else { panic!("{document}") };
            assert_eq!(kind, expected, "{document}");
            assert_eq!(reported_kind(document.to_string().as_bytes()), Some(expected), "{document}");
        }
        for document in [
            chat("stop"),
            chat("length"),
            chat("content_filter"),
            response("completed"),
            response("incomplete"),
            json!({"status": "queued", "output": [], "background": true}),
            json!({"status": "queued"}),
        ] {
            assert_eq!(broken_off(&document), None, "{document}");
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

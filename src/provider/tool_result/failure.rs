//! Tells errors from results, by how frameworks and tools usually spell them. What may be data is none: a troubleshooting
//! page that is headed "Error codes", or the status of a device.

use super::WRAPS;
use regex::Regex;
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// How a text begins that reports an error.
static REPORTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let acts = "calling|invoking|executing|running|fetching|searching|retrieving|querying|accessing|performing|processing|reading";
    let forms = [
        r"error\s*(?:[:(\[{]|[-\x{2013}\x{2014}]\s|$)".to_owned(),
        r"(?:error|http|http error)\s+[45]\d\d\b".to_owned(),
        r"error\s+\d+\s*(?:[:(\[{]|$)".to_owned(),
        r"\d{3} (?:client|server) error:".to_owned(),
        format!(r"error\s+(?:while|when|during|in|from|occurred|{acts})\b"),
        r"(?:an?|the following) (?:\w+ ){0,2}error (?:has )?(?:occurred|happened)".to_owned(),
        r"traceback \(most recent call last\)".to_owned(),
        r"(?-i:(?:\w+\.)*[A-Z]\w*(?:Error|Exception)(?::|\())".to_owned(),
    ];
    Regex::new(&format!(r"^\s*(?i:{})", forms.join("|"))).ok()
});
/// How a document begins that explains an error: what it means, a question that is answered, advice, or a code with its remedy.
static EXPLAINS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let forms = [
        r"(?:http|error)\b[^:.!?\n]*(?:\b(?:means|indicates|is shown|is displayed|occurs)\b|\?\s+\S)",
        r"error (?:in|while|when|during) [^:.\n]*: (?:use|write|press|open|close|clean|replace|turn|switch|pay)\b",
        r"error:? \S{1,8}\n(?:.*\n)*(?:cause|fix|solution|remedy|resolution|meaning):",
    ];
    Regex::new(&format!(r"^\s*(?i:{})", forms.join("|"))).ok()
});
/// The words in which frameworks report to a model that a tool failed, did not run or does not exist.
static OF_FRAMEWORKS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let forms = [
        r"failed to invoke tool \S+ with parameters\b",
        r"encountered error: |i encountered an error while trying to use the tool\b",
        r"execution error in \w+: ",
        r"mcp error -?\d+:",
        r"toolset error: toolcallerror",
        r"unknown tool: ",
        r"tool \S+ not found\. please\b",
        r"tool '[^'\n]+' (?:not found\.?\s*$|timed out after [\d.]+ seconds|failed after \d+ attempts? with )",
        r"tool execution was not approved\b",
        r"tool call limit exceeded\.",
        r"user rejected the tool call for [`']",
        r"\S+ is not a valid tool, try one of \[",
        r"the tool call with name \S+ is not part of the provided tools\b",
        r"multiple handoffs detected, ignoring this one\.",
        r"the tool call arguments are malformed\.",
        r"there are `\d+` tool call arguments required and only `\d+` received\.",
        r"tool call limit reached\. tool call \S+ not executed\.",
        r"function call was rejected by the user\b",
        r"tool cancelled by user\s*$",
        r"tool was interrupted\.\s*$",
        r"tool '[^'\n]+' did not return a result\s*$",
    ];
    Regex::new(&format!(r"(?is)^\s*(?:{})|\n\s*fix the errors and try again\.\s*$", forms.join("|"))).ok()
});
/// Members that say what happened beside a status.
const WORDS: [&str; 6] = ["message", "reason", "detail", "details", "error", "description"];
/// Members that say of which call that is, and when it was. An `id` does so only beside what went wrong, and that of an order never.
const OF_CALLS: [&str; 18] = [
    "code", "error_code", "type", "timestamp", "path", "tool", "tool_name", "toolName", "retryable", "request_id",
    "requestId", "trace_id", "traceId", "correlation_id", "call_id", "tool_call_id", "instance", "errorCode",
];

/// The error that a result reports: its message, and whether a retry may help, if it says so.
pub(crate) fn error(result: &Value) -> Option<(String, Option<bool>)> {
    let retryable = |value: &Value| value.get("retryable").and_then(Value::as_bool);
    match result {
        Value::String(text) => {
            if let Some(read) = python(text).or_else(|| object(text)) {
                return error(&read);
            }
            let is = |known: &Option<Regex>| known.as_ref().is_some_and(|known| known.is_match(text));
            (is(&OF_FRAMEWORKS) || is(&REPORTS) && !is(&EXPLAINS)).then(|| (text.clone(), None))
        }
        Value::Object(members) if is_pascal_case(members) => {
            error(&in_camel_case(members)).filter(|_| reports(&in_camel_case(members)))
        }
        Value::Object(members) => {
            match members.get("error").filter(|error| says_something(error) || retryable(error).is_some()) {
                Some(error) => {
                    let words = words_in(error).or_else(|| error.as_str());
                    let words = words.or_else(|| words_in(result).filter(|_| error.as_bool() == Some(true)));
                    let words = words.map_or_else(|| error.to_string(), str::to_owned);
                    Some((words, retryable(error).or_else(|| retryable(result))))
                }
                None if failed(members) => {
                    let words = words_in(result).or_else(|| words_in(members.get("errors")?.get(0)?));
                    Some((words.map_or_else(|| result.to_string(), str::to_owned), retryable(result)))
                }
                None => error(wrapped(members)?),
            }
        }
        Value::Array(items) => match items.as_slice() {
            [Value::Object(block)] if is_text(block) => error(wrapped(block)?),
            _ => None,
        },
        _ => None,
    }
}

/// Whether the members of an object begin with capitals, as .NET and Go write them.
fn is_pascal_case(members: &Map<String, Value>) -> bool {
    let begins = |name: &String| name.starts_with(|letter: char| letter.is_ascii_uppercase());
    !members.is_empty() && members.keys().all(begins)
}

/// Whether an object in PascalCase reports an error: the columns of a table of error codes begin with capitals too.
fn reports(result: &Value) -> bool {
    let says_so =
        |name: &str| WORDS.contains(&name) || OF_CALLS.contains(&name) || name.starts_with("status") || name == "title";
    let is_flag = |name: &str| ["ok", "success", "isError", "errors"].contains(&name);
    let mut members = result.as_object().into_iter().flatten();
    result["error"].is_object() || members.all(|(name, value)| says_so(name) || is_flag(name) || !says_something(value))
}

/// An object with small first letters, and so what is in it.
fn in_camel_case(members: &Map<String, Value>) -> Value {
    let small = |name: &str| name[..1].to_ascii_lowercase() + &name[1..];
    let member = |(name, value): (&String, &Value)| match value {
        Value::Object(inner) if is_pascal_case(inner) => (small(name), in_camel_case(inner)),
        _ => (small(name), value.clone()),
    };
    members.iter().map(member).collect()
}

/// The result that an object holds beside nothing else.
fn wrapped(members: &Map<String, Value>) -> Option<&Value> {
    let mut saying = members.iter().filter(|(name, value)| !OF_CALLS.contains(&name.as_str()) && says_something(value));
    let (name, value) = saying.next().filter(|_| saying.next().is_none())?;
    let wraps =
        WRAPS.contains(&name.as_str()) || name == "content" && members.len() == 1 || name == "text" && is_text(members);
    wraps.then_some(value)
}

/// Whether an object is a block of text, as MCP and models have them.
fn is_text(block: &Map<String, Value>) -> bool {
    block.get("type").is_some_and(|kind| kind == "text")
}

/// An object that a text holds as JSON.
fn object(text: &str) -> Option<Value> {
    let is_object = text.trim_start().starts_with('{');
    is_object.then(|| serde_json::from_str(text).ok()).flatten()
}

/// An object that a text holds in Python's spelling.
fn python(text: &str) -> Option<Value> {
    let text = text.trim();
    if !text.starts_with("{'") || !text.ends_with('}') {
        return None;
    }
    let (mut json, mut open, mut word) = (String::with_capacity(text.len()), None, String::new());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (open, letter) {
            (None, letter) if letter.is_alphabetic() => word.push(letter),
            (None, _) => {
                json += match std::mem::take(&mut word).as_str() {
                    "None" => "null",
                    "True" => "true",
                    "False" => "false",
                    "" => "",
                    _ => return None,
                };
                open = Some(letter).filter(|letter| matches!(letter, '\'' | '"'));
                json.push(if open.is_some() { '"' } else { letter });
            }
            (Some(quote), letter) if quote == letter => {
                open = None;
                json.push('"');
            }
            (Some(_), '\\') => match letters.next()? {
                '\'' => json.push('\''),
                letter => json.extend(['\\', letter]),
            },
            (Some(_), '"') => json += "\\\"",
            (Some(_), letter) => json.push(letter),
        }
    }
    serde_json::from_str(&json).ok()
}

fn words_in(value: &Value) -> Option<&str> {
    WORDS.into_iter().find_map(|name| value.get(name)?.as_str()).filter(|words| !words.is_empty())
}

/// Whether a member holds anything but empty values: so an `error` is one.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true) => true,
        Value::Number(code) => code.as_f64() != Some(0.0),
        Value::String(words) => !words.trim().is_empty(),
        Value::Array(items) => items.iter().any(says_something),
        Value::Object(members) => members.values().any(says_something),
    }
}

/// Whether a result says otherwise that it failed. A status alone may be that of a thing that was looked up: it counts where
/// nothing but words stand beside it, and what names the call.
fn failed(members: &Map<String, Value>) -> bool {
    let is = |name: &str, value: bool| members.get(name).and_then(Value::as_bool) == Some(value);
    let status = members.get("status").and_then(Value::as_str).unwrap_or_default().to_lowercase();
    let has = |name: &&str| members.get(*name).is_some_and(says_something);
    let worded = || WORDS.iter().any(has);
    // So ends a payment or a job, too: then its kind, its place, what it was or its key stand there.
    let is_key = |code: &Value| code.as_str().is_some_and(|code| code.contains(|letter: char| letter.is_ascii_digit()));
    let of_thing = || ["type", "path", "description"].iter().any(has) || members.get("code").is_some_and(is_key);
    let said = status == "error" || ["failed", "failure"].contains(&&*status) && worded() && !of_thing();
    let code = ["statusCode", "status_code", "status"].into_iter().find_map(|name| members.get(name)?.as_u64());
    let alone = members.iter().all(|(name, value)| {
        let name = name.as_str();
        // RFC 9457's.
        let of_problem = name == "title" && code.is_some();
        name.starts_with("status")
            || WORDS.contains(&name)
            || OF_CALLS.contains(&name)
            || of_problem
            || name == "id" && worded() && !of_thing()
            || !says_something(value)
    });
    // Mastra's.
    let of_tool = members.get("code").and_then(Value::as_str).is_some_and(|code| {
        code.starts_with("TOOL_") && ["FAILED", "ERROR", "NOT_FOUND"].iter().any(|end| code.ends_with(end))
    });
    // GraphQL's, which may come with a part of the data.
    let without_data = members.get("data").is_some_and(Value::is_null)
        && members.get("errors").and_then(Value::as_array).is_some_and(|errors| {
            !errors.is_empty() && errors.iter().all(|error| error.get("message").is_some_and(says_something))
        });
    is("ok", false)
        || is("success", false)
        || is("isError", true)
        || is("is_error", true)
        || without_data
        || alone && (said || code.is_some_and(|code| (400..600).contains(&code)) || of_tool && worded())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::tool_result::document;
    use serde_json::json;

    #[test]
    fn errors_are_told_from_results() {
        assert!(REPORTS.is_some() && OF_FRAMEWORKS.is_some());
        let down = |retryable| Some(("down".to_owned(), retryable));
        assert_eq!(error(&json!({"error": {"message": "down", "retryable": false}})), down(Some(false)));
        assert!(error(&json!({"error": {"retryable": false}})).is_some());
        for failed in [
            json!({"error": "down"}),
            json!({"error": true, "message": "down"}),
            json!({"success": false, "message": "down", "results": []}),
            json!({"ok": false, "error": "down"}),
            json!({"status": "error", "detail": "down"}),
            json!({"statusCode": 503, "message": "down", "data": null}),
            json!({"is_error": true, "message": "down"}),
            json!({"status": "error", "message": "down", "request_id": "a1"}),
            json!({"status": "failed", "message": "down", "timestamp": "now", "tool": "find"}),
            json!({"status": "failed", "message": "down", "code": 17}),
            json!({"status": "failed", "message": "down", "code": "TIMEOUT"}),
            json!({"id": "r-1", "status": "failed", "reason": "down"}),
            json!({"id": "r-1", "status": "error", "message": "down"}),
            json!({"result": {"id": 9, "status": "failure", "reason": "down"}}),
            json!({"status": "failed", "reason": "down", "items": []}),
            json!({"data": null, "errors": [{"message": "down"}]}),
            json!({"result": {"error": "down"}, "isError": false}),
            json!({"type": "about:blank", "title": "Service Unavailable", "status": 503, "detail": "down", "instance": "/search"}),
            json!({"Error": {"Message": "down", "Code": 7}}),
            json!({"Success": false, "Message": "down", "Results": []}),
            json!({"message": "down", "details": {"domain": "TOOL"}, "code": "TOOL_EXECUTION_FAILED"}),
            json!("{'error': 'down'}"),
            json!({"result": "{\"error\": \"down\"}"}),
            json!({"content": "{\"error\": \"down\"}"}),
            json!("{'ok': False, 'message': \"down\", 'data': None}"),
        ] {
            assert_eq!(error(&failed), down(None), "{failed}");
        }
        for text in [
            "Error: down",
            "error",
            "Error calling search_docs: down",
            "Error 503 from the index",
            "Error 404 Not Found",
            "HTTP error 503: down",
            "HTTP 503 Service Unavailable",
            "Error 500 Internal server error",
            "Error 503 from /search?q=press",
            "Error while cancelling booking B-1: upstream timeout",
            "Error in database: timeout",
            "Error during retrieval: connection refused",
            "Error occurred, is the server running?",
            "Error: connection refused\nSolution: start the server",
            "ValueError: bad code\nFix: pass a code",
            "404 Client Error: Not Found for url: https://a",
            "Error executing search_docs: is it down?",
            "Error while calling the index: down",
            "Error in tool 'find': down",
            "Error in search_docs: down",
            "Tool 'find' timed out after 0.2 seconds.",
            "Tool 'find' not found.",
            "Tool 'find' failed after 2 attempts with RuntimeError: down. Please try again.",
            "Tool execution was not approved.",
            "Multiple handoffs detected, ignoring this one.",
            "The tool call arguments are malformed. Arguments must be in JSON format. Please try again.",
            "There are `1` tool call arguments required and only `0` received. The required arguments are: ['code'].",
            "Tool call limit reached. Tool call look_up not executed. Don't try to execute it again.",
            "Function call was rejected by the user",
            "tool cancelled by user",
            "Tool was interrupted.",
            "Tool 'look_up' did not return a result",
            "Tool call limit exceeded. Do not make additional tool calls.",
            "User rejected the tool call for `find` with id call_1",
            "An unexpected error occurred while running the tool.",
            "ConnectionError: down",
            "requests.exceptions.ConnectionError: down",
            "TimeoutError()",
            "Failed to invoke Tool `cancel` with parameters {'code': 'B'}. Error: down",
            "Encountered error: down",
            "I encountered an error while trying to use the tool. This was the error: down.",
            "Execution error in cancel: down",
            "MCP error -32603: down",
            "Toolset error: ToolCallError: down",
            "down\n\nFix the errors and try again.",
            "The tool call with name 'cancel' is not part of the provided tools, please try again.",
            "Tool cancel not found. Please select a tool that is available.",
            "cancel is not a valid tool, try one of [search].",
            "Unknown tool: cancel",
            "Traceback (most recent call last):\n  File \"a.py\"",
        ] {
            assert_eq!(error(&document(text)), Some((text.into(), None)), "{text}");
            let wrapped = [json!({"result": text}), json!([{"type": "text", "text": text}])];
            assert!(wrapped.iter().all(|wrapped| error(wrapped) == Some((text.into(), None))), "{text}");
        }
    }

    #[test]
    fn what_is_data_is_no_error() {
        for fine in [
            json!({"error": null, "chunks": []}),
            json!({"error": "", "success": true, "results": []}),
            json!({"error": {}, "errors": 0, "results": []}),
            json!({"chunks": []}),
            json!({"error": {"code": null, "message": ""}, "results": [1]}),
            json!({"error": [{"code": 0}], "results": [1]}),
            json!({"data": {"orders": [1]}, "errors": [{"message": "no prices"}]}),
            json!({"data": null, "errors": []}),
            json!({"errors": [{"code": "E1", "message": "The tank is empty."}]}),
            json!({"code": "E1_FAILED", "message": "The tank is empty."}),
            json!({"status": "failed"}),
            json!({"order_id": "A1", "status": "failed", "reason": "card declined"}),
            json!({"order_id": "A1", "status": "failed", "items": [{"sku": "B-1"}], "message": "card declined"}),
            json!({"id": "A1", "status": "failed", "reason": "card declined", "amount": 12}),
            json!({"hits": [{"id": "A1", "status": "failed", "reason": "card declined"}]}),
            json!({"orders": [{"id": "A1", "status": "error", "message": "card declined"}]}),
            json!({"id": "A1", "status": "failed"}),
            json!({"id": "p-3", "type": "pump", "status": "error", "message": "too hot"}),
            json!({"id": "p-3", "status": "error", "description": "The pump in the cellar"}),
            json!({"id": "A1", "status": "error"}),
            json!({"id": "A1", "status": 410}),
            json!({"code": "B-1", "status": "failed", "message": "card declined"}),
            json!({"id": "p1", "status": "error", "amount": 12, "message": "declined"}),
            json!([{"id": "p1", "status": "failed", "message": "declined"}]),
            json!({"result": "Error: E1", "title": "Codes"}),
            json!({"Error": "E21", "Meaning": "The coil is defective", "Remedy": "Replace the coil"}),
            json!({"title": "Payments", "text": "Error: the card was declined."}),
            json!("{'error': None, 'results': ['it\\'s']}"),
            json!("{'name': unknown}"),
            json!("Error 503 means that the tray is open. Close the tray."),
            json!("Error 12 The tray is open"),
            json!("HTTP 2 is faster than HTTP 1."),
            json!("HTTP 200 OK"),
            json!("HTTP 201: {\"ok\": true}"),
            json!({"data": {"orders": [], "total": 0}, "errors": [{"message": "no prices"}]}),
            json!({"code": "B-1", "status": "failed", "reason": "card declined"}),
            json!({"type": "refund", "status": "failed", "description": "Refund of 18 euros", "path": "/r/1"}),
            json!("Error in your bill? Write to a@example.com."),
            json!("Error in the invoice: write to a@example.com."),
            json!("Error while paying: use another card."),
            json!("Error processing is shown by the lamp."),
            json!("Error: E12\nCause: the filter is blocked.\nFix: clean it."),
            json!("Tool 'X200' not found in your set? Order it."),
            json!({"device": "pump 3", "status": "error"}),
            json!({"order": "A1", "status": 410}),
            json!({"status": "ok", "message": "all is well"}),
            json!("all is well"),
            json!("Error codes: E1 means that the tank is empty."),
            json!("Errors are shown by the lamp."),
            json!("Exception: batteries are excluded from the warranty."),
            json!("Unknown tools are listed in the catalogue."),
            json!("Tool X200 is not available in the EU; order the X300."),
            json!("Encountered error while paying: a known issue, use a card."),
            json!("Excel is not a valid tool for audits."),
            json!([1]),
        ] {
            assert_eq!(error(&fine), None, "{fine}");
        }
    }
}

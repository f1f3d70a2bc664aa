//! Tells errors from results, by how frameworks and tools usually spell them. What may be data is none: a troubleshooting
//! page that is headed "Error codes", or the status of a device.

use regex::Regex;
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// How a text begins that reports an error.
static REPORTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^\s*(?i:error(?:\s*(?:[:(\[{]|[-\u{2013}\u{2014}]\s|$)|\s+(?:\d+|while|calling|invoking|executing|running|in|during|from|fetching|searching|retrieving|querying|when|accessing|performing|processing|reading|occurred)\b)|(?:an?|the following) (?:\w+ ){0,2}error (?:has )?(?:occurred|happened)|traceback \(most recent call last\))|^\s*(?:\w+\.)*[A-Z]\w*(?:Error|Exception)(?::|\()",
    )
    .ok()
});
/// The words in which frameworks report to a model that a tool failed or does not exist.
static OF_FRAMEWORKS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let forms = [
        r"failed to invoke tool \S+ with parameters\b",
        r"encountered error: |i encountered an error while trying to use the tool\b",
        r"execution error in \w+: ",
        r"mcp error -?\d+:",
        r"toolset error: toolcallerror",
        r"unknown tool: ",
        r"tool \S+ not found\. please\b",
        r"\S+ is not a valid tool, try one of \[",
        r"the tool call with name \S+ is not part of the provided tools\b",
    ];
    Regex::new(&format!(r"(?is)^\s*(?:{})|\n\s*fix the errors and try again\.\s*$", forms.join("|"))).ok()
});
/// Members that say what happened beside a status.
const WORDS: [&str; 6] = ["message", "reason", "detail", "details", "error", "description"];

/// The error that a result reports: its message, and whether a retry may help, if it says so.
pub(crate) fn error(result: &Value) -> Option<(String, Option<bool>)> {
    let retryable = |value: &Value| value.get("retryable").and_then(Value::as_bool);
    match result {
        Value::String(text) => {
            let reports = |known: &Option<Regex>| known.as_ref().is_some_and(|known| known.is_match(text));
            (reports(&REPORTS) || reports(&OF_FRAMEWORKS)).then(|| (text.clone(), None))
        }
        Value::Object(members) => match members.get("error").filter(|error| says_something(error)) {
            Some(error) => {
                let words = words_in(error).or_else(|| error.as_str());
                let words = words.or_else(|| words_in(result).filter(|_| error.as_bool() == Some(true)));
                let words = words.map_or_else(|| error.to_string(), str::to_owned);
                Some((words, retryable(error).or_else(|| retryable(result))))
            }
            None if failed(members) => {
                Some((words_in(result).map_or_else(|| result.to_string(), str::to_owned), retryable(result)))
            }
            None => None,
        },
        _ => None,
    }
}

fn words_in(value: &Value) -> Option<&str> {
    WORDS.into_iter().find_map(|name| value.get(name)?.as_str()).filter(|words| !words.is_empty())
}

/// Whether the member `error` holds one.
fn says_something(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true) => true,
        Value::Number(code) => code.as_f64() != Some(0.0),
        Value::String(words) => !words.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

/// Whether a result says otherwise that it failed. A status alone may be that of a thing that was looked up: it counts where
/// nothing but words stand beside it.
fn failed(members: &Map<String, Value>) -> bool {
    let is = |name: &str, value: bool| members.get(name).and_then(Value::as_bool) == Some(value);
    let said = members.get("status").and_then(Value::as_str).is_some_and(|status| status.eq_ignore_ascii_case("error"));
    let code = ["statusCode", "status_code", "status"].into_iter().find_map(|name| members.get(name)?.as_u64());
    let alone = members.iter().all(|(name, value)| {
        name.starts_with("status") || WORDS.contains(&name.as_str()) || name == "code" || !says_something(value)
    });
    is("ok", false)
        || is("success", false)
        || is("isError", true)
        || is("is_error", true)
        || alone && (said || code.is_some_and(|code| (400..600).contains(&code)))
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
        for failed in [
            json!({"error": "down"}),
            json!({"error": true, "message": "down"}),
            json!({"success": false, "message": "down", "results": []}),
            json!({"ok": false, "error": "down"}),
            json!({"status": "error", "detail": "down"}),
            json!({"statusCode": 503, "message": "down", "data": null}),
            json!({"is_error": true, "message": "down"}),
        ] {
            assert_eq!(error(&failed), down(None), "{failed}");
        }
        for text in [
            "Error: down",
            "error",
            "Error calling search_docs: down",
            "Error 503 from the index",
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
            assert_eq!(error(&document(text)), Some((text.into(), None)));
        }
    }

    #[test]
    fn what_is_data_is_no_error() {
        for fine in [
            json!({"error": null, "chunks": []}),
            json!({"error": "", "success": true, "results": []}),
            json!({"error": {}, "errors": 0, "results": []}),
            json!({"chunks": []}),
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

//! Tells errors from results, by how frameworks and tools usually spell them. What may be data is none: a troubleshooting
//! page that is headed "Error codes", or the status of a device.

mod languages;
mod people;
mod systems;

use super::WRAPS;
use regex::Regex;
use serde_json::{Map, Value};
use std::sync::LazyLock;

pub(crate) use languages::is_crash;

/// How a text begins that reports an error.
static REPORTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let acts = "calling|invoking|executing|running|fetching|searching|retrieving|querying|accessing|performing|processing|reading";
    let forms = [
        r"error\s*(?:[:(\[{]|[-\x{2013}\x{2014}]\s|$)".to_owned(),
        r"(?:error|http|http error)\s+[45]\d\d\b".to_owned(),
        r"error\s+\d+\s*(?:[:(\[{]|$)".to_owned(),
        r"\d{3} (?:client|server) error:".to_owned(),
        // openai's, and httpx's.
        r"error code: [45]\d\d - \{['\x22]".to_owned(),
        r"(?:client|server) error '[45]\d\d\b[^'\n]*' for url '[^'\n]*'\s*(?:\n|$)".to_owned(),
        format!(r"error\s+(?:while|when|during|in|from|occurred|{acts})\b"),
        r"(?:an?|the following) (?:\w+ ){0,2}error (?:has )?(?:occurred|happened)".to_owned(),
        r"traceback \(most recent call last\)(?::|\s*$)".to_owned(),
        r"(?-i:(?:\w+\.)*[A-Z]\w*(?:Error|Exception)(?::|\())".to_owned(),
    ];
    Regex::new(&format!(r"^\s*(?:[❌⚠✖🚫]\u{{fe0f}}?\s*)?(?i:{})", forms.join("|"))).ok()
});
/// How a document begins that explains an error: what it means, a question that is answered, advice, or a code with its remedy.
static EXPLAINS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let forms = [
        r"(?:http|error)\b[^:.!?\n]*(?:\b(?:means|indicates|is shown|is displayed|occurs)\b|\?\s+\S)",
        r"error (?:in|while|when|during) [^:.\n]*: (?:use|write|press|open|close|clean|replace|turn|switch|pay)\b",
        r"error \d+ \(\w{5}\):[^\n]*(?:\b(?:means|indicates|is shown|is displayed|occurs)\b|\n\s*\n)",
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
        // PydanticAI's, the AI SDK's, Mastra's and Claude's.
        r"(?:the tool call was|tool (?:call )?execution) denied\.\s*$",
        r"tool call was not approved by the user\b",
        r"the user doesn't want to proceed with this tool use\b",
        r"(?:the )?user (?:denied|declined|refused|rejected) (?:permission to (?:call|run|use|execute) )?(?:the|this) tool(?: (?:call|use|execution))?\.?\s*$",
        r"tool cancelled by user\s*$",
        r"tool was interrupted\.\s*$",
        r"tool '[^'\n]+' did not return a result\s*$",
        // Instructor's.
        r"validation error found:\n.*\brecall the function correctly\b",
    ];
    Regex::new(&format!(r"(?is)^\s*(?:{})|\n\s*fix the errors and try again\.\s*$", forms.join("|"))).ok()
});
/// The forms in which programs print that they failed, and in which servers answer with an error; a text that is one is no
/// document. An XML error holds nothing but members of a report.
static OF_PROGRAMS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let members = WORDS.iter().chain(&OF_CALLS).chain(&["status", "key", "resource", "hostid", "trace"]);
    let members = members.copied().collect::<Vec<_>>().join("|");
    let beside = r"(?:retryable|status|code|message|success|ok)\b";
    let xml = r"(?i:<\?xml\b[^>]*>\s*)?";
    let forms = [
        r"\*\* \([\w.]+(?:Error|Exception)\)\s+[^*\s]".to_owned(),
        r"\{:error, (?:%[\w.]+(?:Error|Exception)\{[^\n]*\}|:\w+|\x22[^\x22\n]+\x22)\}\s*$".to_owned(),
        r"thread '[^'\n]*'(?: \(\d+\))? panicked at \S".to_owned(),
        r"Err\((?:[A-Z]\w* ?[{(]|\x22)[^\n]*\)\s*$".to_owned(),
        r"panic: runtime error: \S".to_owned(),
        r"(?:PHP )?Warning:\s+[^\n]+ in \S+\.php on line \d+\s*$".to_owned(),
        r"curl: \(\d+\) \S".to_owned(),
        r"(?:\w+: )?line \d+: \S+: command not found\s*$".to_owned(),
        r"jq: error \(at ".to_owned(),
        // Classes in the spelling of PHP, Java's inner ones, and those of two clients in Ruby.
        r"(?:(?:\w+[.\x5c$])*\w+[\x5c$][A-Z]\w*(?:Error|Exception)|(?:OpenAI|Anthropic)::Errors::\w+): ".to_owned(),
        // The clients of OpenAI and Anthropic in Go and Ruby, and Spring.
        r"(?-u:[\w ,'-]{1,40}: ){0,3}(?:GET|POST|PUT|PATCH|DELETE) \x22https?://[^\x22\s]+\x22: [45]\d\d [A-Z][A-Za-z '-]*(?:[{\[\x22]|\s*$)".to_owned(),
        r"(?-u:[\w ,'-]{1,40}: ){0,3}error, status code: [45]\d\d, (?:status|message): ".to_owned(),
        r"\{(?::url=>|url: )\x22[^\x22\n]*\x22, (?::status=>|status: )[45]\d\d, :?(?:body|headers)\b".to_owned(),
        format!(r"5\d\d (?i:{}): \x22[^\n]*\x22\s*$", OF_SERVERS.join("|")),
        // Maps with an `error`, as Ruby, JavaScript, Java, Go and PHP print them.
        format!(r"\{{(?:(?:\x22error\x22|:error) ?=> ?|error: )\x22[^\x22\s]+ [^\x22\n]+\x22(?:, ?[\x22:]?{beside}[^\n]*)?\}}\s*$"),
        format!(r"\{{error=[\w'-]+(?: [^\n=,{{}}]+)+(?:, {beside}=[^\n]*)?\}}\s*$"),
        format!(r"map\[(?:{beside}:\S+ )*error:[\w'-]+(?: [\w'-]+)+(?: {beside}:[^\n]*)?\]\s*$"),
        r"Array\s*\(\s*\[error\] => \S+ [^\n]+\s*\)\s*$|array\(1\) \{\s*\[\x22error\x22\]=>\s*string\(\d\d".to_owned(),
        // Python's exceptions of a connection.
        r"(?:<urlopen error )?\[(?:Errno -?|WinError )\d+\] [A-Z][\w ',()-]{2,120}(?:: '[^'\n]*')?>?\s*$".to_owned(),
        r"<urlopen error [^\n]*>\s*$".to_owned(),
        r"HTTPS?ConnectionPool\(host='[^'\n]*', port=".to_owned(),
        r"[45]\d\d, message='[^'\n]*', url=".to_owned(),
        r"Cannot connect to host \S+:\d+ ssl:".to_owned(),
        r"\('Connection (?:aborted|broken)".to_owned(),
        // Clients of HTTP in Python and JavaScript.
        r"(?i:connection error\.|request timed out\.|all connection attempts failed|server disconnected without sending a response\.|fetch failed|connection refused|request failed with status code \d{3})\s*$".to_owned(),
        format!(r"(?i:(?:5\d\d )?(?:{}))\.?\s*$", OF_SERVERS.join("|").replace(" timeout", " time-?out")),
        format!(
            r"{xml}<(?i:error)\b[^<>]*>(?:\s*[^<\s]+\s+[^<\s][^<]*|(?:\s*(?i:<(?:{members})\b[^<>]*(?:/>|>[^<]*</\w+>)))+\s*)</(?i:error)>\s*$"
        ),
        format!(r"{xml}<(?:[\w-]+:)?Envelope\b(?s:.*?)<(?:[\w-]+:)?Body\b[^>]*>\s*<(?:[\w-]+:)?Fault\b"),
    ];
    Regex::new(&format!(r"^\s*(?:{})", forms.join("|"))).ok()
});
/// What a document says that explains such an error.
static DISCUSSES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let says = r"\b(?:means|indicates|(?:occurs|happens|appears) (?:if|when)|is (?:raised|thrown|shown|displayed|printed))\b|: (?:raised|thrown|used) (?:when|if|by|for)\b";
    let asks = r"\A[^\n]*\b(?:how (?:to|do|can)|why (?:do|does|is)|what (?:to|is))\b";
    Regex::new(&format!(
        r"(?im){says}|{asks}|^\W*(?:cause|fix|solution|remedy|resolution|meaning|answer)s?\b\W{{0,3}}:"
    ))
    .ok()
});
/// A text that says what is wrong with an argument.
static SENTENCE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\s\W*\b(?:is|are|must|cannot|not|required|missing|invalid)\b|^(?:is|are|must|cannot|not|required|missing|invalid)\s").ok()
});
/// Reasons of HTTP statuses with which a server answers by itself.
const OF_SERVERS: [&str; 4] = ["internal server error", "bad gateway", "service unavailable", "gateway timeout"];
/// Those by which it refuses, as they are written: in small letters they may be an empty result.
const OF_CLIENTS: [&str; 6] =
    ["Bad Request", "Unauthorized", "Forbidden", "Not Found", "Method Not Allowed", "Too Many Requests"];
/// Members that say what happened beside a status.
const WORDS: [&str; 11] = [
    "message", "reason", "detail", "details", "error", "description", "msg", "errorMessage", "error_message",
    "error_msg", "err",
];
/// Members beside the class of an error that say where it was.
const OF_CLASSES: [&str; 7] = ["__type", "errorType", "exception", "file", "line", "trace", "stackTrace"];
/// Members that say of which call that is, and when it was. An `id` is that of a thing that was looked up.
const OF_CALLS: [&str; 19] = [
    "code", "error_code", "error_type", "type", "timestamp", "path", "tool", "tool_name", "toolName", "retryable",
    "request_id", "requestId", "trace_id", "traceId", "correlation_id", "call_id", "tool_call_id", "instance",
    "errorCode",
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
            let is_error = is(&OF_FRAMEWORKS)
                || is(&REPORTS) && !is(&EXPLAINS)
                || is(&OF_PROGRAMS) && !is(&DISCUSSES)
                || languages::is_error(text)
                || systems::is_error(text) && !is(&DISCUSSES);
            is_error.then(|| (text.clone(), None))
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
                None if failed(members) || is_report(members) || people::is_refused(members) => {
                    let words = words_in(result).or_else(|| words_in(members.get("errors")?.get(0)?));
                    let words = words.or_else(|| words_in(members.get("status")?));
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

/// Whether one of these members holds anything.
fn says_any(members: &Map<String, Value>, names: &[&str]) -> bool {
    names.iter().any(|name| members.get(*name).is_some_and(says_something))
}

/// Whether nothing stands beside words, what names the call, and members that `is_known`.
fn is_alone(members: &Map<String, Value>, is_known: impl Fn(&str) -> bool) -> bool {
    members.iter().all(|(name, value)| {
        let name = name.as_str();
        is_known(name) || WORDS.contains(&name) || OF_CALLS.contains(&name) || !says_something(value)
    })
}

/// Whether a result says otherwise that it failed. A status alone may be that of a thing that was looked up: it counts where
/// nothing but words stand beside it, and what names the call.
fn failed(members: &Map<String, Value>) -> bool {
    let is = |name: &str, value: bool| {
        members.get(name).is_some_and(|member| member.as_bool() == Some(value) || is_text_of(member, value))
    };
    let status = members.get("status").and_then(Value::as_str).unwrap_or_default().to_lowercase();
    let worded = says_any(members, &WORDS);
    // A payment or a job may have failed too: its kind, place or key stands there, as in `card_declined`.
    let is_key = |code: &Value| {
        let is_of_key = |letter: char| letter.is_ascii_digit() || letter.is_lowercase();
        code.as_str().is_some_and(|code| code.contains(is_of_key))
    };
    let of_thing = || says_any(members, &["type", "path", "description"]) || members.get("code").is_some_and(is_key);
    let failures = ["fail", "failed", "failure", "timeout", "timed_out"];
    let said = status == "error" || failures.contains(&&*status) && worded && !of_thing();
    let code = ["statusCode", "status_code", "status"].into_iter().find_map(|name| members.get(name)?.as_u64());
    // `title` is RFC 9457's.
    let alone = is_alone(members, |name| name.starts_with("status") || name == "title" && code.is_some());
    // Mastra's.
    let of_tool = members.get("code").and_then(Value::as_str).is_some_and(|code| {
        code.starts_with("TOOL_") && ["FAILED", "ERROR", "NOT_FOUND"].iter().any(|end| code.ends_with(end))
    });
    is("ok", false)
        || is("success", false)
        || is("isError", true)
        || is("is_error", true)
        || alone && (said || code.is_some_and(|code| (400..600).contains(&code)) || of_tool && worded)
}

/// Whether a value is that boolean as text, as in `"success": "false"`.
fn is_text_of(value: &Value, boolean: bool) -> bool {
    value.as_str().is_some_and(|text| text.eq_ignore_ascii_case(if boolean { "true" } else { "false" }))
}

/// Whether an object is the report of a service, in a form that no result has: nothing else stands in it.
fn is_report(members: &Map<String, Value>) -> bool {
    let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
    let has = |name: &str| says_any(members, &[name]);
    let alone = |beside: &[&str]| is_alone(members, |name| beside.contains(&name));
    let worded = says_any(members, &WORDS);
    // What frameworks answer by themselves.
    let words = ["detail", "message"].map(text).concat();
    let is_reason = OF_CLIENTS.contains(&&*words) || OF_SERVERS.iter().any(|one| words.eq_ignore_ascii_case(one));
    let is_code = |name: &str| members.get(name).and_then(Value::as_u64).is_some_and(|code| (400..600).contains(&code));
    let empty = |name: &str| members.get(name).is_some_and(|value| !says_something(value));
    let is_class = |name: &str| name.ends_with("Error") || name.ends_with("Exception");
    let is_sentence =
        |words: &Value| words.as_str().is_some_and(|words| SENTENCE.as_ref().is_some_and(|says| says.is_match(words)));
    let of_class = has("__type") || has("errorType") && has("errorMessage") || is_class(text("exception"));
    // Meilisearch's.
    let linked = !text("code").is_empty() && text("link").ends_with(&format!("#{}", text("code")));
    // Qdrant's.
    let status = members.get("status").and_then(Value::as_object).filter(|status| status.len() == 1);
    let status = status.and_then(|status| status.get("error")?.as_str()).unwrap_or_default();
    // JSend's: what is wrong with each argument.
    let arguments = members.get("data").and_then(Value::as_object).filter(|data| !data.is_empty());
    let refused = text("status") == "fail" && arguments.is_some_and(|data| data.values().all(is_sentence));
    // FastAPI's, of arguments too.
    let of_argument = |error: &Value| ["loc", "msg", "type"].iter().all(|name| error.get(name).is_some());
    let detailed = members.get("detail").and_then(Value::as_array);
    let invalid = detailed.is_some_and(|errors| !errors.is_empty() && errors.iter().all(of_argument));
    let says_error = ["errorMessage", "error_message", "error_msg"].into_iter().any(has) || text("err").contains(' ');
    worded
        && (says_error && alone(&[])
            || text("type") == "error" && !has("path") && !has("description") && alone(&[])
            || of_class && alone(&OF_CLASSES)
            || linked && !text("type").is_empty() && alone(&["link"])
            || alone(&["success"]) && members.get("success").and_then(Value::as_i64) == Some(0)
            || alone(&[]) && is_code("code") && (empty("data") || empty("result")))
        || status.contains(' ') && alone(&["status", "time", "usage"])
        || refused && alone(&["status", "data"])
        || invalid && alone(&["body", "input", "url"])
        || systems::is_report(members)
        || is_reason
            && members.iter().all(|(name, value)| {
                ["detail", "message"].contains(&name.as_str())
                    || ["error", "data", "result"].contains(&name.as_str()) && !says_something(value)
            })
        || is_graphql(members, alone(&["errors", "extensions"]))
}

/// Whether an object is GraphQL's, with errors and without data, which may be a request that was not run: then nothing else
/// stands there.
fn is_graphql(members: &Map<String, Value>, alone: bool) -> bool {
    let errors = members.get("errors").and_then(Value::as_array).filter(|errors| !errors.is_empty());
    let are = |test: &dyn Fn(&Value) -> bool| errors.is_some_and(|errors| errors.iter().all(test));
    let of_spec = |error: &Value| {
        let known = |name: &String| ["message", "locations", "path", "extensions"].contains(&&**name);
        error.as_object().is_some_and(|error| error.keys().all(known))
    };
    are(&|error| error.get("message").is_some_and(says_something))
        && match members.get("data") {
            None => alone && are(&of_spec),
            Some(Value::Object(data)) => !data.is_empty() && data.values().all(Value::is_null),
            Some(data) => data.is_null(),
        }
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;

//! Parts of messages that are calls of tools, whatever their types are called, and what of a message cannot be read.
//!
//! A part of an unknown type may be a call: it is overlooked only if its type says that it holds words or a medium.

use super::messages::{Call, Said, plain};
use super::parsed;
use crate::platform::lenient_json::repaired;
use crate::trace::ToolResult;
use crate::trace::text::quote;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

/// Words in the types of parts that hold no call. A type that names a tool or a call is none of these.
const ASIDES: [&str; 18] = [
    "text", "image", "audio", "video", "file", "document", "blob", "uri", "media", "inlinedata", "reasoning",
    "thinking", "thought", "refusal", "citation", "source", "searchresult", "screenshot",
];
/// Others: what marks a place, or decides on a call that stands beside it.
const MARKS: [&str; 5] = ["cache", "guard", "step", "approval", "compaction"];

/// What a part is.
pub(super) enum Kind {
    Words,
    /// A call that its reader answers.
    Call(Call),
    /// A call that the model's service ran, and perhaps its result.
    Served(Vec<Said>),
    Result,
    Aside,
    /// Why it may be a call that cannot be read.
    Unread(String),
}

/// A type without what languages write differently: `tool-call`, `tool_call`, `toolCall`.
pub(super) fn plainly(kind: &str) -> String {
    kind.chars().filter(|one| one.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// What a part is, and where it stands: Gemini and Bedrock name it by its one member that is an object.
pub(super) fn kind_of(item: &Value) -> (Kind, &Value) {
    let Some(object) = item.as_object() else { return (Kind::Words, item) };
    let named = object.get("type").and_then(Value::as_str);
    let has_words = ["content", "text"].iter().any(|name| object.get(*name).is_some_and(Value::is_string));
    let inner = || object.iter().find(|(_, value)| value.is_object());
    let (written, held) = match (named, inner()) {
        (Some(kind), _) => (kind, item),
        (None, Some((name, value))) if !has_words => (name.as_str(), value),
        (None, _) => return (Kind::Words, item),
    };
    let kind = plainly(written);
    let has = |words: &[&str]| words.iter().any(|word| kind.contains(word));
    let unread = || Kind::Unread(format!("a part of the type `{}`", quote(written, 40)));
    let is_served = has(&["server", "mcp"]) || item.get("providerExecuted") == Some(&Value::Bool(true));
    let what = match kind.as_str() {
        "text" | "inputtext" | "outputtext" => Kind::Words,
        _ if has(&MARKS) => Kind::Aside,
        _ if has(&["tool", "function", "call"]) => match call(held) {
            _ if ["result", "response", "output"].iter().any(|end| kind.ends_with(end)) => Kind::Result,
            Some(call) if is_served => Kind::Served(served(call, None)),
            Some(call) => Kind::Call(call),
            None => of_service(object, written).map_or_else(unread, Kind::Served),
        },
        _ if has(&ASIDES) => Kind::Aside,
        _ => unread(),
    };
    (what, held)
}

/// An item of OpenAI's Responses API which is a call or a result: `function_call`, `custom_tool_call_output`, `shell_call`, …. What the
/// service ran has an id and a state.
pub(super) fn item(object: &Map<String, Value>) -> Option<Vec<Said>> {
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    let kind = text("type")?;
    let Some(id) = text("call_id") else {
        text("id").filter(|_| text("status").is_some() || text("server_label").is_some())?;
        return of_service(object, kind);
    };
    if kind.ends_with("_output") {
        let (tool, text) = (text("name").map(str::to_owned), object.get("output").map(plain).unwrap_or_default());
        return Some(vec![Said {
            role: "tool".to_owned(),
            text,
            answers: Some(id.to_owned()),
            tool,
            ..Said::default()
        }]);
    }
    let calls = vec![item_call(object, kind.strip_suffix("_call")?)];
    Some(vec![Said { role: "assistant".to_owned(), calls, ..Said::default() }])
}

/// A call of a tool that the model's service has, as `web_search_call`, and its result.
fn of_service(object: &Map<String, Value>, kind: &str) -> Option<Vec<Said>> {
    let tool = kind.strip_suffix("_call").filter(|tool| !["tool", "function", "custom_tool"].contains(tool))?;
    let result = ["results", "outputs", "output"].into_iter().find_map(|name| object.get(name));
    Some(served(item_call(object, tool), result.map(plain)))
}

/// The call in such an item.
fn item_call(object: &Map<String, Value>, tool: &str) -> Call {
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    let names = ["arguments", "action", "operation", "input", "queries", "query", "code"];
    let arguments = match names.into_iter().find_map(|name| Some((name, object.get(name)?))) {
        Some(("arguments" | "action" | "operation", given)) => parsed(given),
        Some((name, given)) => json!({ name: given }),
        None => json!({}),
    };
    let id = text("call_id").or_else(|| text("id")).unwrap_or_default().to_owned();
    Call { id, tool: text("name").unwrap_or(tool).to_owned(), arguments }
}

/// The text of a result, of which a service may show nothing that can be read.
pub(super) fn shown(result: Option<&Value>) -> String {
    let text = result.map(plain).unwrap_or_default();
    if text.contains("\"encrypted_") { ToolResult::UNSHOWN.to_owned() } else { text }
}

/// A call that the model's service ran. Without a result, another part may have it, or none.
fn served(call: Call, result: Option<String>) -> Vec<Said> {
    let (id, tool) = (Some(call.id.clone()).filter(|id| !id.is_empty()), Some(call.tool.clone()));
    let text = result.unwrap_or_else(|| ToolResult::UNSHOWN.to_owned());
    let result = Said { role: "tool".to_owned(), text, answers: id, tool, ..Said::default() };
    vec![Said { role: "assistant".to_owned(), calls: vec![call], ..Said::default() }, result]
}

pub(super) fn call(item: &Value) -> Option<Call> {
    let text = |of: &Value, names: &[&str]| names.iter().find_map(|name| of.get(*name)?.as_str()).map(str::to_owned);
    let item = item.get("tool_call").unwrap_or(item);
    let custom = item.get("custom").filter(|custom| custom.is_object());
    let function = item.get("function").or(custom).unwrap_or(item);
    let tool = text(function, &["name", "tool.name", "toolName"])?;
    let names = ["arguments", "args", "input", "tool.args", "server_tool_call"];
    let arguments = match names.into_iter().find_map(|name| function.get(name)) {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(Value::String(empty)) if empty.trim().is_empty() => Value::Object(Map::new()),
        Some(input) if custom.is_some() => json!({ "input": input }),
        Some(other) => parsed(other),
    };
    let id = text(item, &["id", "toolCallId", "toolUseId", "call_id"]).unwrap_or_default();
    Some(Call { id, tool, arguments })
}

/// The calls beside the content of a message, and why others of it cannot be read. LangChain has them up to twice.
pub(super) fn beside(object: &Map<String, Value>) -> (Vec<Call>, Option<String>) {
    let (mut calls, mut unread) = (Vec::new(), None);
    let kwargs = object.get("additional_kwargs").and_then(Value::as_object);
    let listed = |of: &Map<String, Value>, name: &str| of.get(name).map(parsed).filter(holds);
    let mut read = |name: &str, value: Value, calls: &mut Vec<Call>| {
        let items = if let Value::Array(items) = value { items } else { vec![value] };
        for item in items {
            match call(&item) {
                Some(call) => calls.push(call),
                None => unread = Some(format!("a call in `{name}` without a name")),
            }
        }
    };
    for name in ["tool_calls", "invalid_tool_calls", "function_call"] {
        if let Some(value) = listed(object, name) {
            read(name, value, &mut calls);
        }
    }
    for name in ["tool_calls", "function_call"] {
        let again = kwargs.and_then(|kwargs| listed(kwargs, name)).filter(|_| calls.is_empty());
        if let Some(value) = again {
            read(name, value, &mut calls);
        }
    }
    if let Some(name) = object.get("function_call_name").and_then(Value::as_str) {
        let arguments = object.get("function_call_arguments_json").map_or_else(|| json!({}), parsed);
        calls.push(Call { id: String::new(), tool: name.to_owned(), arguments });
    }
    let is_unknown = |name: &str| {
        let plain = plainly(name);
        let known = ["toolcalls", "invalidtoolcalls", "functioncall"];
        ["calls", "functioncall", "invocation", "tooluse"].iter().any(|word| plain.contains(word))
            && !known.contains(&plain.as_str())
    };
    let unknown = object.iter().find(|(name, value)| is_unknown(name) && !value.is_string() && holds(value));
    (calls, unread.or_else(|| unknown.map(|(name, _)| format!("a message with the member `{}`", quote(name, 40)))))
}

/// Whether a value is a list, an object or a text, and not empty.
pub(crate) fn holds(value: &Value) -> bool {
    match value {
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => false,
    }
}

/// Whether a text is the beginning of JSON that was cut off: exporters limit the length of an attribute.
pub(super) fn is_cut_off(text: &str) -> bool {
    begins_json(text).is_some_and(|why| why.is_eof())
}

/// Whether a text stands in the place of messages that cannot be read: JSON that was cut off, perhaps with a mark at its
/// end, or objects in another notation. Words may follow after JSON.
pub(super) fn is_broken(text: &str) -> bool {
    let mut letters = text.chars().filter(|one| !one.is_whitespace());
    let begins = (letters.next(), letters.next());
    let holds_objects = matches!(begins, (Some('['), Some('{')) | (Some('{'), Some('"' | '\'')));
    begins_json(text).is_some_and(|why| why.is_eof() || holds_objects)
}

/// Why the first value of a text that begins like a list or an object cannot be read.
fn begins_json(text: &str) -> Option<serde_json::Error> {
    let text = text.trim_start();
    if !text.starts_with(['[', '{']) {
        return None;
    }
    let why = |bytes: &[u8]| serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>().next()?.err();
    why(text.as_bytes()).and_then(|first| match repaired(text.as_bytes()) {
        Some((clean, _)) => why(&clean),
        None => Some(first),
    })
}

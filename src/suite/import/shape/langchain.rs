//! LangChain messages: as objects, as `{type, data}`, and as serialised constructors.

use super::{READ, Recognised, call, parts, text};
use crate::suite::import::error::MessageError;
use serde_json::{Map, Value};

/// Message types and their roles.
const TYPES: [(&str, &str); 11] = [
    ("human", "user"),
    ("HumanMessage", "user"),
    ("HumanMessageChunk", "user"),
    ("ai", "assistant"),
    ("AIMessage", "assistant"),
    ("AIMessageChunk", "assistant"),
    ("system", "system"),
    ("SystemMessage", "system"),
    ("tool", "tool"),
    ("ToolMessage", "tool"),
    ("FunctionMessage", "function"),
];

fn role(kind: &str) -> Option<&'static str> {
    let known = TYPES.iter().find(|(name, _)| *name == kind);
    known.map(|(_, role)| *role).or_else(|| (kind == "function").then_some("function"))
}

/// Whether an object is a LangChain message.
pub(super) fn is_message(object: &Map<String, Value>) -> bool {
    object.contains_key("lc") || !object.contains_key("role") && role(text(object, "type")).is_some()
}

/// Reads a LangChain message.
pub(super) fn read(object: &Map<String, Value>) -> Result<Recognised, MessageError> {
    let unknown = |seen: String| MessageError::UnknownShape { seen, read: READ };
    let (kind, held) = if object.contains_key("lc") {
        let kind = object.get("id").and_then(Value::as_array).and_then(|path| path.last()).and_then(Value::as_str);
        (kind.unwrap_or_default(), object.get("kwargs"))
    } else {
        (text(object, "type"), object.get("data"))
    };
    let held = held.and_then(Value::as_object).unwrap_or(object);
    let role = role(kind)
        .ok_or_else(|| unknown(format!("a LangChain object `{}`", kind.chars().take(40).collect::<String>())))?;
    let mut message = Map::from_iter([("role".to_owned(), Value::from(role))]);
    for key in ["content", "name", "tool_call_id", "status", "response_metadata"] {
        if let Some(value) = held.get(key) {
            message.insert(key.to_owned(), value.clone());
        }
    }
    let listed = |key: &str| held.get(key).and_then(Value::as_array).into_iter().flatten();
    let mut calls = Vec::new();
    for made in listed("tool_calls").chain(listed("invalid_tool_calls")) {
        let Some(made) = made.as_object().filter(|made| !text(made, "name").is_empty()) else {
            return Err(unknown("a LangChain call without a name".to_owned()));
        };
        calls.push(call(text(made, "id"), text(made, "name"), made.get("args")));
    }
    // Older versions of LangChain store OpenAI's calls beside the message.
    let beside = held.get("additional_kwargs").and_then(Value::as_object);
    if calls.is_empty()
        && let Some(beside) = beside
    {
        for key in ["tool_calls", "function_call"] {
            if let Some(value) = beside.get(key).filter(|value| !value.is_null()) {
                message.insert(key.to_owned(), value.clone());
            }
        }
    } else if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    if let Some(refusal) = beside.and_then(|beside| beside.get("refusal")).filter(|refusal| refusal.is_string()) {
        message.insert("refusal".to_owned(), refusal.clone());
    }
    parts::read(role, &message, "content")
}

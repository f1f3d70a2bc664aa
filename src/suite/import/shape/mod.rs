//! Recognises the shape of a message and converts it into OpenAI chat messages.
//!
//! Each message is recognised separately, because frameworks mix shapes. An unknown shape is an error of the
//! conversation: an overlooked call would count as never made. A content part is text, a call, a result, reasoning, or
//! a medium (which is noted); any other part is an error too.

mod items;
mod langchain;
mod parts;

use super::error::{Kind, MessageError};
use crate::trace::spans::holds;
use serde_json::{Map, Value, json};

/// Names of the known shapes, for messages.
pub(super) const READ: &str = "OpenAI chat messages, Anthropic messages, Gemini contents, Bedrock Converse messages, \
                               OpenAI Responses items, LangChain messages";

/// One converted message of a file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Recognised {
    /// Messages in OpenAI's chat format, in order; empty if it does not affect a turn.
    pub messages: Vec<Value>,
    /// Media in it, which have no text.
    pub media: Vec<String>,
}

impl Recognised {
    fn of(message: Value) -> Self {
        Self { messages: vec![message], media: Vec::new() }
    }
}

/// Whether a value is a message of any shape, and not a conversation.
pub(super) fn is_message(item: &Value) -> bool {
    let named = |key: &str| item.get(key).is_some();
    let held = ["messages", "history", "traj", "contents", "input", "items", "mapping"];
    (named("role") || named("lc") || named("parts") || item.get("type").is_some_and(Value::is_string))
        && !held.iter().any(|key| named(key) && !named("role"))
        || items::is_call(item)
}

/// Recognises and converts a message.
///
/// # Errors
/// The unknown shape or part.
pub(super) fn recognise(message: &Value) -> Result<Recognised, MessageError> {
    let Some(object) = message.as_object() else { return Err(MessageError::NoObject(Kind::of(message))) };
    if langchain::is_message(object) {
        return langchain::read(object);
    }
    if object.get("parts").is_some_and(Value::is_array) {
        let role = match object.get("role").and_then(Value::as_str) {
            Some("model") => "assistant",
            Some("function") => "tool",
            Some(role) => role,
            None => "user",
        };
        return parts::read(role, object, "parts");
    }
    if object.contains_key("role") {
        overlooked(object)?;
        let role = object.get("role").and_then(Value::as_str).ok_or(MessageError::NoRole)?;
        return parts::read(role, object, "content");
    }
    if object.get("type").is_some_and(Value::is_string) {
        return items::read(object);
    }
    Err(MessageError::UnknownShape { seen: described(object), read: READ })
}

/// Rejects members that hold calls or results in other shapes, also those inside another member
/// (`additional_kwargs`): overlooking one would change the conversation.
fn overlooked(object: &Map<String, Value>) -> Result<(), MessageError> {
    const KNOWN: [&str; 5] = ["tool_calls", "tool_call_id", "tool_call_ids", "function_call", "tool_choice"];
    const CALLS: [&str; 4] = ["tool_calls", "function_call", "toolCalls", "toolInvocations"];
    let calls =
        |name: &str| ["tool", "call", "function", "parts"].iter().any(|part| name.to_lowercase().contains(part));
    let unknown = object.iter().find(|(name, value)| calls(name) && !KNOWN.contains(&name.as_str()) && holds(value));
    let unknown = unknown.map(|(name, _)| name.clone());
    let inside = || {
        object.iter().find_map(|(name, value)| {
            let called = CALLS.into_iter().find(|one| value.get(one).is_some_and(holds))?;
            Some(format!("{name}.{called}"))
        })
    };
    match unknown.or_else(inside) {
        Some(name) => {
            Err(MessageError::UnknownShape { seen: format!("a message with the member `{name}`"), read: READ })
        }
        None => Ok(()),
    }
}

/// Lists the members of an object, for messages.
fn described(object: &Map<String, Value>) -> String {
    let members: Vec<String> =
        object.keys().take(6).map(|name| format!("`{}`", name.chars().take(40).collect::<String>())).collect();
    if members.is_empty() { "an empty object".to_owned() } else { format!("an object with {}", members.join(", ")) }
}

/// A call in OpenAI's format; arguments that are already text stay unchanged.
fn call(id: &str, name: &str, arguments: Option<&Value>) -> Value {
    let arguments = match arguments {
        None | Some(Value::Null) => Value::from("{}"),
        Some(Value::String(text)) => Value::from(text.as_str()),
        // A list or a number is not an object: as text, it is reported as broken arguments.
        Some(other) => Value::from(other.to_string()),
    };
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

/// A result in OpenAI's format, by the id of its call, else by the name of its tool; an error if its `holder` says so.
fn result(holder: &Map<String, Value>, id: Option<&str>, name: Option<&str>, content: &str) -> Value {
    let mut message = json!({"role": "tool", "content": content, "is_error": is_failed(holder)});
    for (key, value) in [("tool_call_id", id), ("name", name)] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            message[key] = Value::from(value);
        }
    }
    message
}

/// Whether what holds a result marks it as an error: `is_error` of Anthropic, `status` of Bedrock, LangChain and OpenAI,
/// `error` of an MCP call.
pub(super) fn is_failed(holder: &Map<String, Value>) -> bool {
    let is_marked =
        holder.get("is_error") == Some(&Value::Bool(true)) || ["error", "failed"].contains(&text(holder, "status"));
    is_marked || holder.get("error").is_some_and(holds)
}

/// Text of a member; empty if missing.
fn text<'v>(object: &'v Map<String, Value>, key: &str) -> &'v str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;

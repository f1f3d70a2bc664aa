//! Contents in parts: of OpenAI and Anthropic (with `type`), of Gemini and Bedrock (with one member that names the
//! part).

use super::{READ, Recognised, call, result};
use crate::suite::import::error::{MessageError, WrongMember};
use serde_json::{Map, Value, json};

/// Kind of a content part.
enum Part {
    Text(String),
    Refusal(String),
    Call(Value),
    Result(Value),
    /// A medium, by name.
    Medium(String),
    /// Reasoning, cache markers and similar parts that no user or tool sees.
    Aside,
}

/// Reads the content at `key` of a message with this role.
pub(super) fn read(role: &str, object: &Map<String, Value>, key: &'static str) -> Result<Recognised, MessageError> {
    let parts = match object.get(key) {
        None | Some(Value::Null | Value::String(_)) => return Ok(Recognised::of(Value::Object(object.clone()))),
        Some(Value::Array(parts)) => parts,
        Some(other) => return Err(WrongMember::new(key, other, "text or a list of parts").into()),
    };
    let mut written =
        Written { role, object, key, recognised: Recognised::default(), open: Open::default(), first: true };
    for part in parts {
        match part_of(part)? {
            Part::Text(text) => written.open.texts.push(text),
            Part::Refusal(text) => written.open.refusals.push(text),
            Part::Call(call) => written.open.calls.push(call),
            Part::Result(result) => {
                written.close(false);
                written.recognised.messages.push(result);
            }
            Part::Medium(name) => {
                written.open.media = true;
                written.recognised.media.push(name);
            }
            Part::Aside => {}
        }
    }
    let nothing = written.recognised.messages.is_empty();
    written.close(nothing);
    let alone = |message: &Value| {
        message["role"] == "assistant" && message["content"] == "" && !written.recognised.media.is_empty()
    };
    if written.recognised.messages.iter().any(|message| alone(message) && message.get("tool_calls").is_none()) {
        return Err(MessageError::MediumAlone(written.recognised.media.join(", ")));
    }
    Ok(written.recognised)
}

/// Builds messages part by part: a result becomes a separate message and splits the surrounding content.
struct Written<'m> {
    role: &'m str,
    object: &'m Map<String, Value>,
    key: &'static str,
    recognised: Recognised,
    open: Open,
    first: bool,
}

#[derive(Default)]
struct Open {
    texts: Vec<String>,
    refusals: Vec<String>,
    calls: Vec<Value>,
    media: bool,
}

impl Written<'_> {
    /// Ends the current message, if it has content or is `needed`.
    fn close(&mut self, needed: bool) {
        let Open { texts, refusals, calls, media } = std::mem::take(&mut self.open);
        if !needed && !media && texts.is_empty() && refusals.is_empty() && calls.is_empty() {
            return;
        }
        let mut message = if self.first { self.object.clone() } else { Map::new() };
        self.first = false;
        message.shift_remove(self.key);
        message.insert("role".to_owned(), Value::from(self.role));
        message.insert("content".to_owned(), Value::from(texts.join("\n")));
        if !refusals.is_empty() {
            message.insert("refusal".to_owned(), Value::from(refusals.join("\n")));
        }
        if !calls.is_empty() {
            // LangChain repeats the calls of the content in `tool_calls`.
            let known: Vec<Value> = message.get("tool_calls").and_then(Value::as_array).cloned().unwrap_or_default();
            let new =
                calls.into_iter().filter(|call| !known.iter().any(|one| one["id"] == call["id"] && call["id"] != ""));
            let all: Vec<Value> = known.iter().cloned().chain(new).collect();
            message.insert("tool_calls".to_owned(), Value::Array(all));
        }
        self.recognised.messages.push(Value::Object(message));
    }
}

fn part_of(part: &Value) -> Result<Part, MessageError> {
    if let Value::String(text) = part {
        return Ok(Part::Text(text.clone()));
    }
    let Some(object) = part.as_object() else { return Err(unknown(part)) };
    match object.get("type") {
        Some(Value::String(kind)) => typed(kind, object).ok_or_else(|| unknown(part)),
        Some(_) => Err(unknown(part)),
        None => named(object).ok_or_else(|| unknown(part)),
    }
}

/// Reads a part of OpenAI or Anthropic, by its type.
fn typed(kind: &str, object: &Map<String, Value>) -> Option<Part> {
    let said = |key: &str| object.get(key).and_then(Value::as_str);
    Some(match kind {
        "text" | "input_text" | "output_text" => Part::Text(said("text")?.to_owned()),
        "refusal" => Part::Refusal(said("refusal")?.to_owned()),
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            Part::Call(call(said("id").unwrap_or_default(), said("name")?, object.get("input")))
        }
        "image" | "image_url" | "input_image" | "input_audio" | "audio" | "file" | "input_file" | "document"
        | "video" => Part::Medium(kind.to_owned()),
        "thinking" | "redacted_thinking" | "reasoning" | "reasoning_content" => Part::Aside,
        _ if kind.ends_with("tool_result") => {
            Part::Result(result(said("tool_use_id"), None, &result_text(object.get("content"))?))
        }
        _ => return None,
    })
}

/// Reads a part of Gemini or Bedrock, by its single member.
fn named(object: &Map<String, Value>) -> Option<Part> {
    let held = |keys: [&str; 2]| keys.into_iter().find_map(|key| object.get(key));
    let inner = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    if let Some(made) = held(["functionCall", "function_call"]) {
        let id = inner(made, "id").unwrap_or_default();
        return Some(Part::Call(call(&id, &inner(made, "name")?, made.get("args"))));
    }
    if let Some(given) = held(["functionResponse", "function_response"]) {
        let response = given.get("response").cloned().unwrap_or(Value::Null);
        let (id, name) = (inner(given, "id"), inner(given, "name"));
        return Some(Part::Result(result(id.as_deref(), name.as_deref(), &response.to_string())));
    }
    if let Some(made) = held(["toolUse", "tool_use"]) {
        let id = inner(made, "toolUseId").unwrap_or_default();
        return Some(Part::Call(call(&id, &inner(made, "name")?, made.get("input"))));
    }
    if let Some(given) = held(["toolResult", "tool_result"]) {
        let id = inner(given, "toolUseId");
        return Some(Part::Result(result(id.as_deref(), None, &result_text(given.get("content"))?)));
    }
    if object.get("thought") == Some(&Value::Bool(true)) {
        return Some(Part::Aside);
    }
    if let Some(text) = object.get("text") {
        return Some(Part::Text(text.as_str()?.to_owned()));
    }
    let medium = ["inlineData", "inline_data", "fileData", "file_data", "image", "document", "video", "audio"];
    if let Some(name) = medium.into_iter().find(|name| object.contains_key(*name)) {
        return Some(Part::Medium(name.to_owned()));
    }
    let aside = ["reasoningContent", "cachePoint", "guardContent", "thoughtSignature"];
    aside.iter().any(|name| object.contains_key(*name)).then_some(Part::Aside)
}

/// Text of a result: its text, or its JSON; `None` for an unknown part.
fn result_text(content: Option<&Value>) -> Option<String> {
    match content {
        None | Some(Value::Null) => Some(String::new()),
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Array(parts)) => {
            let part = |part: &Value| {
                let text = part.get("text").and_then(Value::as_str).map(str::to_owned);
                text.or_else(|| part.get("json").map(Value::to_string)).or_else(|| Some(part.to_string()))
            };
            Some(parts.iter().map(part).collect::<Option<Vec<_>>>()?.join("\n"))
        }
        Some(other) => Some(other.to_string()),
    }
}

fn unknown(part: &Value) -> MessageError {
    let seen = match part.as_object() {
        Some(object) => match object.get("type").and_then(Value::as_str) {
            Some(kind) => format!("a part of the type `{}`", kind.chars().take(40).collect::<String>()),
            None => format!("a part that is {}", super::described(object)),
        },
        None => json!(part).to_string().chars().take(40).collect(),
    };
    MessageError::UnknownShape { seen, read: READ }
}

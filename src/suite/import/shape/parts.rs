//! Contents in parts: of OpenAI and Anthropic (with `type`), of Gemini and Bedrock (with one member that names the
//! part).

use super::{READ, Recognised, call, holds, result, text};
use crate::suite::import::error::{MessageError, WrongMember};
use serde_json::{Map, Value, json};

/// Kind of a content part.
enum ContentPart {
    Text(String),
    Refusal(String),
    Call(Value),
    /// A result in OpenAI's format, and the media in it.
    Result(Value, Vec<String>),
    /// A medium, by name.
    Medium(String),
    /// Reasoning, cache markers and similar parts that no user or tool sees.
    Aside,
}

/// Reads the content at `key` of a message with this role.
pub(super) fn read(role: &str, object: &Map<String, Value>, key: &'static str) -> Result<Recognised, MessageError> {
    let parts = match object.get(key) {
        Some(Value::String(_)) => return Ok(Recognised::of(Value::Object(object.clone()))),
        None | Some(Value::Null) => return without_content(object, key),
        Some(Value::Array(parts)) => parts,
        Some(other) => return Err(WrongMember::new(key, other, "text or a list of parts").into()),
    };
    let mut written =
        Written { role, object, key, recognised: Recognised::default(), open: Open::default(), first: true };
    for part in parts {
        match part_of(part)? {
            ContentPart::Text(text) => written.open.texts.push(text),
            ContentPart::Refusal(text) => written.open.refusals.push(text),
            ContentPart::Call(call) => written.open.calls.push(call),
            ContentPart::Result(result, media) => {
                written.close(false);
                written.recognised.messages.push(result);
                written.recognised.media.extend(media);
            }
            ContentPart::Medium(name) => {
                written.open.media = true;
                written.recognised.media.push(name);
            }
            ContentPart::Aside => {}
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

/// Reads a message without content: calls, a refusal, or audio with its transcript.
fn without_content(object: &Map<String, Value>, key: &'static str) -> Result<Recognised, MessageError> {
    let has = |name: &str| object.get(name).is_some_and(holds);
    if has("audio") {
        let transcript = object.get("audio").and_then(|audio| audio.get("transcript")).and_then(Value::as_str);
        let Some(said) = transcript else { return Err(MessageError::MediumAlone("audio".to_owned())) };
        let mut message = object.clone();
        message.insert(key.to_owned(), Value::from(said));
        return Ok(Recognised { messages: vec![Value::Object(message)], media: vec!["audio".to_owned()] });
    }
    // Without the member, the words may be in one that is not read.
    if !object.contains_key(key) && !["tool_calls", "function_call", "refusal"].into_iter().any(has) {
        return Err(MessageError::UnknownShape { seen: format!("a message without `{key}`"), read: READ });
    }
    Ok(Recognised::of(Value::Object(object.clone())))
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

/// Parts of one message. Its texts are pieces of one text, as in the answers of live providers.
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
        message.insert("content".to_owned(), Value::from(texts.concat()));
        if !refusals.is_empty() {
            message.insert("refusal".to_owned(), Value::from(refusals.concat()));
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

fn part_of(part: &Value) -> Result<ContentPart, MessageError> {
    if let Value::String(text) = part {
        return Ok(ContentPart::Text(text.clone()));
    }
    let Some(object) = part.as_object() else { return Err(unknown(part)) };
    match object.get("type").filter(|kind| !kind.is_null()) {
        Some(Value::String(kind)) => typed(kind, object)?.ok_or_else(|| unknown(part)),
        Some(_) => Err(unknown(part)),
        None => named(object)?.ok_or_else(|| unknown(part)),
    }
}

/// Types of OpenAI's and Anthropic's parts that hold a medium.
const MEDIA: [&str; 9] =
    ["image", "image_url", "input_image", "input_audio", "audio", "file", "input_file", "document", "video"];

/// Reads a part of OpenAI, Anthropic or LangChain, by its type; `None` if it is unknown.
fn typed(kind: &str, object: &Map<String, Value>) -> Result<Option<ContentPart>, MessageError> {
    let said = |key: &str| object.get(key).and_then(Value::as_str);
    let made = |id: &str, arguments: &str| {
        said("name").map(|name| ContentPart::Call(call(text(object, id), name, object.get(arguments))))
    };
    Ok(match kind {
        "text" | "input_text" | "output_text" => said("text").map(|text| ContentPart::Text(text.to_owned())),
        "refusal" => said("refusal").map(|text| ContentPart::Refusal(text.to_owned())),
        "tool_use" | "server_tool_use" | "mcp_tool_use" => made("id", "input"),
        "tool_call" => made("id", "args"),
        "function_call" => made("call_id", "arguments"),
        _ if MEDIA.contains(&kind) => Some(ContentPart::Medium(kind.to_owned())),
        "thinking" | "redacted_thinking" | "reasoning" | "reasoning_content" => Some(ContentPart::Aside),
        _ => match kind.strip_suffix("tool_result") {
            Some(tool) => {
                let (text, media) = result_text(tool.trim_end_matches('_'), object.get("content"))?;
                Some(ContentPart::Result(result(object, said("tool_use_id"), None, &text), media))
            }
            None => None,
        },
    })
}

/// Reads a part of Gemini or Bedrock, by its single member; `None` if it is unknown.
fn named(object: &Map<String, Value>) -> Result<Option<ContentPart>, MessageError> {
    // Google's library writes every member of a part, most of them null.
    let present =
        object.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), value.clone()));
    let object = &present.collect::<Map<_, _>>();
    let held = |keys: [&str; 2]| keys.into_iter().find_map(|key| object.get(key));
    let inner = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let made = |made: &Value, id: &str, arguments: &str| {
        let id = inner(made, id).unwrap_or_default();
        inner(made, "name").map(|name| ContentPart::Call(call(&id, &name, made.get(arguments))))
    };
    if let Some(call) = held(["functionCall", "function_call"]) {
        return Ok(made(call, "id", "args"));
    }
    if let Some(call) = held(["toolUse", "tool_use"]) {
        return Ok(made(call, "toolUseId", "input"));
    }
    if let Some(given) = held(["functionResponse", "function_response"]) {
        let response = given.get("response").cloned().unwrap_or(Value::Null);
        let (id, name) = (inner(given, "id"), inner(given, "name"));
        // Gemini puts media beside the response, as parts.
        let (_, media) = result_text("", given.get("parts"))?;
        let result = result(&Map::new(), id.as_deref(), name.as_deref(), &response.to_string());
        return Ok(Some(ContentPart::Result(result, media)));
    }
    if let Some(given) = held(["toolResult", "tool_result"]) {
        let (text, media) = result_text("", given.get("content"))?;
        let holder = given.as_object().cloned().unwrap_or_default();
        return Ok(Some(ContentPart::Result(
            result(&holder, inner(given, "toolUseId").as_deref(), None, &text),
            media,
        )));
    }
    if object.get("thought") == Some(&Value::Bool(true)) {
        return Ok(Some(ContentPart::Aside));
    }
    if let Some(text) = object.get("text") {
        return Ok(text.as_str().map(|text| ContentPart::Text(text.to_owned())));
    }
    // Bedrock's text that a guardrail looks at.
    if let Some(guarded) = object.get("guardContent") {
        let text = guarded.pointer("/text/text").and_then(Value::as_str).map(|text| ContentPart::Text(text.to_owned()));
        return Ok(text.or_else(|| guarded.get("image").map(|_| ContentPart::Medium("image".to_owned()))));
    }
    // Bedrock's text with citations.
    if let Some(cited) = object.get("citationsContent") {
        let texts = cited
            .get("content")
            .and_then(Value::as_array)
            .map(|parts| parts.iter().map(|part| part.get("text").and_then(Value::as_str)).collect::<Option<Vec<_>>>());
        return Ok(texts.flatten().map(|texts| ContentPart::Text(texts.concat())));
    }
    let medium = ["inlineData", "inline_data", "fileData", "file_data", "image", "document", "video", "audio"];
    if let Some(name) = medium.into_iter().find(|name| object.contains_key(*name)) {
        return Ok(Some(ContentPart::Medium(name.to_owned())));
    }
    let aside = ["reasoningContent", "cachePoint", "thoughtSignature"];
    Ok(aside.iter().any(|name| object.contains_key(*name)).then_some(ContentPart::Aside))
}

/// Text of a result and the media in it. Structured parts are JSON: Bedrock's `json`, search results, and what a
/// service's own `tool` returned, whose parts begin with its name (`web_search_result`).
///
/// # Errors
/// The part that is unknown.
pub(super) fn result_text(tool: &str, content: Option<&Value>) -> Result<(String, Vec<String>), MessageError> {
    let parts = match content {
        None | Some(Value::Null) => &[],
        Some(Value::Array(parts)) => parts.as_slice(),
        Some(other) => std::slice::from_ref(other),
    };
    let (mut texts, mut media) = (Vec::new(), Vec::new());
    for part in parts {
        let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
        let kind = kind.strip_prefix("encrypted_").unwrap_or(kind);
        let structured =
            ["search_result", "tool_reference"].contains(&kind) || !tool.is_empty() && kind.starts_with(tool);
        let (json, found) = (part.get("json"), part.get("searchResult"));
        match (json.or(found), structured) {
            (Some(value), _) if kind.is_empty() => texts.push(value.to_string()),
            (_, true) => texts.push(part.to_string()),
            _ => match part_of(part)? {
                ContentPart::Text(text) => texts.push(text),
                ContentPart::Medium(name) => media.push(name),
                ContentPart::Aside => {}
                ContentPart::Refusal(_) | ContentPart::Call(_) | ContentPart::Result(..) => return Err(unknown(part)),
            },
        }
    }
    Ok((texts.join("\n"), media))
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

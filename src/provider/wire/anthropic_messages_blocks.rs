//! Decodes and encodes messages of Anthropic's dialect as lists of blocks.

use super::anthropic_messages::{NAME, READER};
use super::document::WireError;
use super::passthrough::{self, Filled};
use crate::provider::chat::{Message, Piece, Role, ToolCall};
use serde_json::{Map, Value, json};

/// The content without its text and blocks: `""`, `[]`, or unchanged.
pub(super) fn emptied(content: &Value) -> Value {
    match content {
        Value::String(_) => Value::from(""),
        Value::Array(_) => json!([]),
        other => other.clone(),
    }
}

fn text_piece(block: &Value) -> Option<(&str, Piece)> {
    let text = block.get("text")?.as_str().filter(|_| block["type"] == "text")?;
    let mut wire = block.clone();
    wire["text"] = Value::from("");
    Some((text, Piece::Text { bytes: text.len(), wire }))
}

pub(super) fn read_text_blocks(content: &Value) -> (String, Vec<Piece>) {
    let mut said = content.as_str().unwrap_or_default().to_owned();
    let blocks = content.as_array().into_iter().flatten();
    let pieces = blocks.map(|block| match text_piece(block) {
        Some((text, piece)) => {
            said.push_str(text);
            piece
        }
        None => Piece::Other { wire: block.clone() },
    });
    let pieces = pieces.collect();
    (said, pieces)
}

pub(super) fn read_blocks(blocks: &[Value], role: Role) -> (Message, Vec<Piece>) {
    let mut message = Message::text(role, "");
    let mut pieces = Vec::with_capacity(blocks.len());
    for block in blocks {
        if let Some((text, piece)) = text_piece(block) {
            message.content.push_str(text);
            pieces.push(piece);
        } else if block["type"] == "tool_use" && block["input"].is_object() {
            let mut wire = block.clone();
            let string = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
            message.calls.push(ToolCall {
                id: string("id"),
                name: string("name"),
                arguments: block["input"].to_string(),
            });
            for (key, hole) in [("id", json!("")), ("name", json!("")), ("input", json!({}))] {
                wire[key] = hole;
            }
            pieces.push(Piece::Call { wire });
        } else {
            pieces.push(Piece::Other { wire: block.clone() });
        }
    }
    (message, pieces)
}

pub(super) fn read_message(at: &str, wire: &Map<String, Value>, messages: &mut Vec<Message>) -> Result<(), WireError> {
    let role = match wire.get("role").and_then(Value::as_str) {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        _ => return Err(READER.wrong(&format!("{at}/role"), "a role", wire.get("role"))),
    };
    let content = wire.get("content").unwrap_or(&Value::Null);
    let mut envelope = wire.clone();
    if envelope.contains_key("content") {
        envelope.insert("content".to_owned(), emptied(content));
    }
    let mut around = passthrough::around(envelope);
    let Some(blocks) = content.as_array() else {
        let said = content.as_str().unwrap_or_default();
        messages
            .push(Message { passthrough: passthrough::keep(NAME, around(), Vec::new()), ..Message::text(role, said) });
        return Ok(());
    };
    let is_result = |block: &Value| block["type"] == "tool_result" && role == Role::User;
    let mut any = false;
    for group in blocks.chunk_by(|one, other| !is_result(one) && !is_result(other)) {
        let mut fields = around();
        any = true;
        if let [result] = group
            && is_result(result)
        {
            let (content, pieces) = read_text_blocks(&result["content"]);
            let mut block = result.clone();
            if let Some(content) = block.get_mut("content") {
                *content = emptied(content);
            }
            block["tool_use_id"] = Value::from("");
            fields.insert("block".to_owned(), block);
            let answers = result["tool_use_id"].as_str().unwrap_or_default();
            messages.push(Message {
                passthrough: passthrough::keep(NAME, fields, pieces),
                ..Message::tool_result(answers, content)
            });
        } else {
            let (message, pieces) = read_blocks(group, role);
            messages.push(Message { passthrough: passthrough::keep(NAME, fields, pieces), ..message });
        }
    }
    if !any {
        messages
            .push(Message { passthrough: passthrough::keep(NAME, around(), Vec::new()), ..Message::text(role, "") });
    }
    Ok(())
}

/// Whether a result says that its tool failed.
pub(super) fn is_failed(message: &Message) -> bool {
    let block = passthrough::of(NAME, message.passthrough.as_ref()).and_then(|kept| kept.fields.get("block"));
    block.is_some_and(|block| block["is_error"] == true)
}

/// The passages that a message holds as blocks of their own (`search_result`, `document`), as objects with `id`, `title` and
/// `text`.
pub(super) fn passages(message: &Message) -> Vec<Value> {
    passthrough::others(NAME, message).filter_map(passage).collect()
}

fn passage(block: &Value) -> Option<Value> {
    let joined = |content: &Value| match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            (!texts.is_empty()).then(|| texts.join("\n\n"))
        }
        _ => None,
    };
    let title = block["title"].as_str();
    let (id, text) = match block["type"].as_str()? {
        "search_result" => (block["source"].as_str(), joined(&block["content"])),
        "document" => {
            let source = &block["source"];
            let plain = source["data"].as_str().filter(|_| source["type"] == "text").map(str::to_owned);
            (title, plain.or_else(|| joined(&source["content"])))
        }
        _ => return None,
    };
    let id = id.or(title).unwrap_or_default();
    Some(json!({"id": id, "title": title.unwrap_or_default(), "text": text?}))
}

/// Splits the messages into the request's system prompt and the conversation.
pub(super) fn split_system(messages: &[Message]) -> (&[Message], &[Message]) {
    let in_conversation = |message: &Message| {
        message.role != Role::System
            || passthrough::of(NAME, message.passthrough.as_ref())
                .is_some_and(|passthrough| passthrough.fields.contains_key("envelope"))
    };
    messages.split_at(messages.iter().position(in_conversation).unwrap_or(messages.len()))
}

pub(super) fn write_system(messages: &[Message]) -> Option<Value> {
    if let [only] = messages {
        let around =
            passthrough::of(NAME, only.passthrough.as_ref()).and_then(|passthrough| passthrough.fields.get("system"));
        return Some(if around.is_some_and(Value::is_array) {
            Value::Array(write_blocks(only))
        } else {
            Value::from(only.content.as_str())
        });
    }
    (!messages.is_empty()).then(|| messages.iter().flat_map(write_blocks).collect())
}

pub(super) fn write_messages(messages: &[Message]) -> Value {
    let mut written: Vec<Value> = Vec::new();
    for message in messages {
        let passthrough = passthrough::of(NAME, message.passthrough.as_ref());
        let envelope =
            passthrough.and_then(|passthrough| passthrough.fields.get("envelope")).and_then(passthrough::object);
        // Most models accept no later system message, so it is sent as a user message.
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        let results_before = written.last().is_some_and(|last| {
            last["role"] == "user"
                && last["content"]
                    .as_array()
                    .is_some_and(|blocks| blocks.last().is_some_and(|block| block["type"] == "tool_result"))
        });
        // The results of one turn must be in one message.
        let joins = match passthrough {
            Some(_) => envelope.is_none() && written.last().is_some_and(|last| last["role"] == role),
            None => message.role == Role::Tool && results_before,
        };
        if !joins {
            written.push(envelope.cloned().unwrap_or_else(|| {
                let plain = message.role != Role::Tool && message.calls.is_empty();
                json!({"role": role, "content": if plain { json!("") } else { json!([]) }})
            }));
        }
        let Some(content) = written.last_mut().and_then(|wire| wire.as_object_mut()) else { continue };
        match content.get_mut("content") {
            Some(Value::Array(blocks)) => blocks.extend(write_blocks(message)),
            Some(Value::String(said)) => said.push_str(&message.content),
            _ if message.content.is_empty() => {}
            _ => _ = content.insert("content".to_owned(), Value::from(message.content.as_str())),
        }
    }
    Value::Array(written)
}

fn write_blocks(message: &Message) -> Vec<Value> {
    let passthrough = passthrough::of(NAME, message.passthrough.as_ref());
    let filled = passthrough::fill(message, passthrough);
    let mut blocks = filled.iter().map(|piece| match piece {
        Filled::Text(text, template) => {
            let mut block =
                template.map_or_else(|| json!({"type": "text", "text": ""}), |template| (*template).clone());
            block["text"] = Value::from(*text);
            block
        }
        Filled::Call(call, template) => {
            let mut block = template.map_or_else(|| json!({"type": "tool_use"}), |template| (*template).clone());
            block["id"] = Value::from(call.id.as_str());
            block["name"] = Value::from(call.name.as_str());
            block["input"] = passthrough::arguments_object(&call.arguments);
            block
        }
        Filled::Other(block) => (*block).clone(),
    });
    if message.role != Role::Tool {
        return blocks.collect();
    }
    let template = passthrough.and_then(|passthrough| passthrough.fields.get("block")).and_then(passthrough::object);
    let mut result =
        template.cloned().unwrap_or_else(|| json!({"type": "tool_result", "tool_use_id": "", "content": ""}));
    result["tool_use_id"] = Value::from(message.answers.as_deref().unwrap_or_default());
    match result.get_mut("content") {
        Some(Value::Array(content)) => content.extend(blocks.by_ref()),
        None if message.content.is_empty() => {}
        _ => result["content"] = Value::from(message.content.as_str()),
    }
    vec![result]
}

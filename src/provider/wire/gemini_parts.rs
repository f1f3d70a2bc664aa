//! Decodes and encodes Gemini's contents and their parts.
//!
//! A model's parts are one neutral message; a user's parts are one message per function response and one for the parts
//! in between, all but the first linked to the first's envelope.

use super::call_ids::{CallIds, generated};
use super::gemini::NAME;
use super::passthrough::{self, Filled};
use crate::provider::chat::{Message, Piece, Role, ToolCall};
use serde_json::{Map, Value, json};

const CALL: [&str; 2] = ["functionCall", "function_call"];
const RESPONSE: [&str; 2] = ["functionResponse", "function_response"];

/// The spelling of a key that an object uses.
pub(super) fn key_of(map: &Map<String, Value>, spellings: &[&'static str; 2]) -> Option<&'static str> {
    spellings.iter().find(|key| map.contains_key(**key)).copied()
}

fn key_in(part: &Value, spellings: &[&'static str; 2]) -> Option<&'static str> {
    part.as_object().and_then(|part| key_of(part, spellings)).filter(|key| part[*key].is_object())
}

/// Decodes one content as one or more messages.
pub(super) fn read_content(wire: &Map<String, Value>, role: Role, ids: &mut CallIds) -> Vec<Message> {
    let mut envelope = wire.clone();
    if let Some(Value::Array(parts)) = envelope.get_mut("parts") {
        parts.clear();
    }
    let mut around = passthrough::around(envelope);
    let parts = wire.get("parts").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let is_response = |part: &Value| role == Role::User && key_in(part, &RESPONSE).is_some();
    let mut messages: Vec<Message> = parts
        .chunk_by(|one, other| !is_response(one) && !is_response(other))
        .map(|group| match group {
            [part] if is_response(part) => read_response(part, around(), ids),
            _ => read_parts(group, role, around(), ids),
        })
        .collect();
    if messages.is_empty() {
        messages
            .push(Message { passthrough: passthrough::keep(NAME, around(), Vec::new()), ..Message::text(role, "") });
    }
    messages
}

fn read_parts(parts: &[Value], role: Role, fields: Map<String, Value>, ids: &mut CallIds) -> Message {
    let mut message = Message::text(role, "");
    let mut pieces = Vec::with_capacity(parts.len());
    for part in parts {
        let thought = part["thought"] == true;
        let text = part.get("text").and_then(Value::as_str).filter(|_| !thought);
        if let Some(text) = text {
            message.content.push_str(text);
            let mut wire = part.clone();
            wire["text"] = Value::from("");
            pieces.push(Piece::Text { bytes: text.len(), wire });
        } else if let Some(key) = key_in(part, &CALL).filter(|_| role == Role::Assistant) {
            let call = &part[key];
            let name = call["name"].as_str().unwrap_or_default().to_owned();
            let id = ids.of_call(&name, id_of(call));
            let arguments =
                call.get("args").filter(|args| args.is_object()).map_or_else(|| "{}".to_owned(), Value::to_string);
            message.calls.push(ToolCall { id, name, arguments });
            let mut wire = part.clone();
            for (word, hole) in [("id", json!("")), ("name", json!("")), ("args", json!({}))] {
                if let Some(place) = wire[key].get_mut(word).filter(|place| !place.is_null() && **place != "") {
                    // A given id is marked; a generated one is not written.
                    *place = if word == "id" { json!("*") } else { hole };
                }
            }
            pieces.push(Piece::Call { wire });
        } else {
            pieces.push(Piece::Other { wire: part.clone() });
        }
    }
    Message { passthrough: passthrough::keep(NAME, fields, pieces), ..message }
}

fn read_response(part: &Value, mut fields: Map<String, Value>, ids: &mut CallIds) -> Message {
    let mut template = part.clone();
    let mut answers = String::new();
    let mut content = String::new();
    if let Some(key) = key_in(part, &RESPONSE) {
        let response = &part[key];
        let name = response["name"].as_str().unwrap_or_default();
        let given = id_of(response);
        if given.is_some() {
            template[key]["id"] = json!("*");
        }
        answers = ids.of_result(name, given);
        if let Some(said) = response.get("response") {
            content = read_said(said);
            template[key]["response"] = if only_result(said).is_some() { json!({"result": ""}) } else { json!({}) };
        }
    }
    fields.insert("part".to_owned(), template);
    Message { passthrough: passthrough::keep(NAME, fields, Vec::new()), ..Message::tool_result(answers, content) }
}

/// The id that a call or a response has.
fn id_of(part: &Value) -> Option<String> {
    part["id"].as_str().filter(|id| !id.is_empty()).map(str::to_owned)
}

/// The text of a response that is only text.
fn only_result(said: &Value) -> Option<&str> {
    said.as_object().filter(|said| said.len() == 1).and_then(|said| said.get("result")?.as_str())
}

fn read_said(said: &Value) -> String {
    only_result(said).map_or_else(|| said.to_string(), str::to_owned)
}

/// The system instruction, from all leading system messages.
pub(super) fn write_system(messages: &[Message]) -> Option<Value> {
    let first = messages.first()?;
    let envelope = passthrough::of(NAME, first.passthrough.as_ref())
        .and_then(|passthrough| passthrough.fields.get("envelope"))
        .and_then(passthrough::object);
    let mut system = envelope.cloned().unwrap_or_else(|| json!({"parts": []}));
    let parts: Vec<Value> = messages.iter().flat_map(write_parts).collect();
    if !parts.is_empty() || system.get("parts").is_some() {
        system["parts"] = Value::Array(parts);
    }
    Some(system)
}

/// Encodes the conversation.
pub(super) fn write_contents(messages: &[Message]) -> Value {
    let mut written: Vec<Value> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let passthrough = passthrough::of(NAME, message.passthrough.as_ref());
        let envelope =
            passthrough.and_then(|passthrough| passthrough.fields.get("envelope")).and_then(passthrough::object);
        let role = if message.role == Role::Assistant { "model" } else { "user" };
        let after_result = index.checked_sub(1).is_some_and(|before| messages[before].role == Role::Tool);
        // The results of one turn must be in one content.
        let joins = match passthrough {
            Some(_) => {
                envelope.is_none() && written.last().is_some_and(|last| last["role"] != "model" || role == "model")
            }
            None => message.role == Role::Tool && after_result,
        };
        if !joins {
            written.push(envelope.cloned().unwrap_or_else(|| json!({"role": role, "parts": []})));
        }
        let parts = match message.role {
            Role::Tool => vec![write_response(message, &messages[..index])],
            _ => write_parts(message),
        };
        if let Some(content) = written.last_mut().filter(|_| !parts.is_empty()) {
            match content.get_mut("parts") {
                Some(Value::Array(all)) => all.extend(parts),
                _ => content["parts"] = Value::Array(parts),
            }
        }
    }
    Value::Array(written)
}

fn write_parts(message: &Message) -> Vec<Value> {
    let passthrough = passthrough::of(NAME, message.passthrough.as_ref());
    let parts = passthrough::fill(message, passthrough).into_iter().map(|piece| match piece {
        Filled::Text(text, template) => {
            let mut part = template.cloned().unwrap_or_else(|| json!({}));
            part["text"] = Value::from(text);
            part
        }
        Filled::Call(call, None) => {
            json!({CALL[0]: {"id": call.id, "name": call.name, "args": passthrough::arguments_object(&call.arguments)}})
        }
        Filled::Call(call, Some(template)) => {
            let mut part = template.clone();
            let key = key_in(&part, &CALL).unwrap_or(CALL[0]);
            if part[key]["id"] == "*" {
                part[key]["id"] = Value::from(call.id.as_str());
            }
            part[key]["name"] = Value::from(call.name.as_str());
            let args = passthrough::arguments_object(&call.arguments);
            if part[key].get("args").is_some() || args != json!({}) {
                part[key]["args"] = args;
            }
            part
        }
        Filled::Other(part) => part.clone(),
    });
    parts.collect()
}

fn write_response(message: &Message, before: &[Message]) -> Value {
    let answers = message.answers.as_deref().unwrap_or_default();
    // Parsed as an object only if it would be encoded to the same text: spaces and field order belong to the tool's
    // text.
    let object = || match serde_json::from_str(&message.content) {
        Ok(said @ Value::Object(_)) if read_said(&said) == message.content => said,
        _ => json!({"result": message.content}),
    };
    let template = passthrough::of(NAME, message.passthrough.as_ref())
        .and_then(|passthrough| passthrough.fields.get("part"))
        .and_then(passthrough::object);
    if let Some(template) = template {
        let mut part = template.clone();
        let key = key_in(&part, &RESPONSE).unwrap_or(RESPONSE[0]);
        if part[key]["id"] == "*" {
            part[key]["id"] = Value::from(answers);
        }
        match part[key].get("response") {
            Some(response) if response.get("result").is_some() => {
                part[key]["response"] = json!({"result": message.content});
            }
            None if message.content.is_empty() => {}
            _ => part[key]["response"] = object(),
        }
        return part;
    }
    let mut calls = before.iter().rev().flat_map(|message| message.calls.iter().map(move |call| (message, call)));
    let called = calls.find(|(_, call)| call.id == answers);
    let name = called.map_or(answers, |(_, call)| call.name.as_str());
    let mut response = json!({"name": name, "response": object()});
    // An id generated here is not sent to Google.
    let ours = called.is_some_and(|(said, call)| said.passthrough.is_some() && generated(call).is_some());
    if !ours {
        response["id"] = Value::from(answers);
    }
    json!({RESPONSE[0]: response})
}

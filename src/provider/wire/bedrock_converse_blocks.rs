//! Decodes and encodes Converse's messages as lists of blocks.
//!
//! An assistant's blocks are one neutral message; a user's blocks are one message per tool result and one for the blocks
//! in between, all but the first linked to the first's envelope.

use super::bedrock_converse::{NAME, READER};
use super::document::WireError;
use super::passthrough::{self, Filled};
use crate::cassette::decode_base64;
use crate::provider::chat::{Message, Piece, Role, ToolCall};
use serde_json::{Map, Value, json};

const CALL: &str = "toolUse";
const RESULT: &str = "toolResult";

fn has(block: &Value, key: &str) -> bool {
    block.get(key).is_some_and(Value::is_object)
}

/// Reads the system prompt and leaves an empty list in its place.
pub(super) fn read_system(system: &mut Value) -> Option<Message> {
    let blocks = std::mem::take(system.as_array_mut()?);
    Some(read_blocks(&blocks, Role::System, Map::new()))
}

/// Reads one message as one or more.
pub(super) fn read_message(at: &str, wire: &Map<String, Value>, messages: &mut Vec<Message>) -> Result<(), WireError> {
    let role = match wire.get("role").and_then(Value::as_str) {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        _ => return Err(READER.wrong(&format!("{at}/role"), "user or assistant", wire.get("role"))),
    };
    let Some(Value::Array(blocks)) = wire.get("content") else {
        return Err(READER.wrong(&format!("{at}/content"), "a list", wire.get("content")));
    };
    let mut envelope = wire.clone();
    envelope.insert("content".to_owned(), json!([]));
    let mut around = passthrough::around(envelope);
    let is_result = |block: &Value| role == Role::User && has(block, RESULT);
    for group in blocks.chunk_by(|one, other| !is_result(one) && !is_result(other)) {
        messages.push(match group {
            [block] if is_result(block) => read_result(block, around()),
            _ => read_blocks(group, role, around()),
        });
    }
    if blocks.is_empty() {
        messages.push(read_blocks(&[], role, around()));
    }
    Ok(())
}

/// Reads an answer's message.
pub(super) fn read_answer(wire: &Map<String, Value>) -> Message {
    let blocks = wire.get("content").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let envelope = json!({"role": "assistant", "content": []});
    read_blocks(blocks, Role::Assistant, Map::from_iter([("envelope".to_owned(), envelope)]))
}

fn read_blocks(blocks: &[Value], role: Role, fields: Map<String, Value>) -> Message {
    let mut message = Message::text(role, "");
    let mut pieces = Vec::with_capacity(blocks.len());
    for block in blocks {
        let mut wire = block.clone();
        if let Some(text) = block.get("text").and_then(Value::as_str) {
            message.content.push_str(text);
            wire["text"] = Value::from("");
            pieces.push(Piece::Text { bytes: text.len(), wire });
        } else if role == Role::Assistant && has(block, CALL) {
            let call = &block[CALL];
            let word = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let input = call.get("input").filter(|input| input.is_object());
            let arguments = input.map_or_else(|| "{}".to_owned(), Value::to_string);
            message.calls.push(ToolCall { id: word("toolUseId"), name: word("name"), arguments });
            if let Some(input) = wire[CALL].get_mut("input").filter(|input| input.is_object()) {
                *input = json!({});
            }
            pieces.push(Piece::Call { wire });
        } else {
            pieces.push(Piece::Other { wire });
        }
    }
    Message { passthrough: passthrough::keep(NAME, fields, pieces), ..message }
}

fn read_result(block: &Value, mut fields: Map<String, Value>) -> Message {
    let result = &block[RESULT];
    let answers = result.get("toolUseId").and_then(Value::as_str).unwrap_or_default();
    let mut content = String::new();
    let mut pieces = Vec::new();
    for part in result.get("content").and_then(Value::as_array).into_iter().flatten() {
        let mut wire = part.clone();
        let said = match (part.get("text"), part.get("json")) {
            (Some(Value::String(text)), _) => Some(("text", text.clone())),
            (None, Some(value)) => Some(("json", value.to_string())),
            _ => None,
        };
        match said {
            Some((key, said)) => {
                wire[key] = Value::from("");
                content.push_str(&said);
                pieces.push(Piece::Text { bytes: said.len(), wire });
            }
            None => pieces.push(Piece::Other { wire }),
        }
    }
    let mut template = block.clone();
    if let Some(Value::Array(parts)) = template[RESULT].get_mut("content") {
        parts.clear();
    }
    fields.insert("block".to_owned(), template);
    Message { passthrough: passthrough::keep(NAME, fields, pieces), ..Message::tool_result(answers, content) }
}

/// Encodes the conversation.
pub(super) fn write_messages(messages: &[Message]) -> Value {
    let mut written: Vec<Value> = Vec::new();
    for message in messages {
        let passthrough = passthrough::of(NAME, message.passthrough.as_ref());
        let envelope =
            passthrough.and_then(|passthrough| passthrough.fields.get("envelope")).and_then(passthrough::object);
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        let last_is_result = written.last().is_some_and(|last| {
            last["content"].as_array().and_then(|blocks| blocks.last()).is_some_and(|block| has(block, RESULT))
        });
        // The results of one turn must be in one message.
        let joins = match passthrough {
            Some(_) => envelope.is_none() && written.last().is_some_and(|last| last["role"] == role),
            None => message.role == Role::Tool && last_is_result,
        };
        if !joins {
            written.push(envelope.cloned().unwrap_or_else(|| json!({"role": role, "content": []})));
        }
        if let Some(Value::Array(content)) = written.last_mut().and_then(|last| last.get_mut("content")) {
            content.extend(write_blocks(message));
        }
    }
    Value::Array(written)
}

/// Whether a result says that its tool failed.
pub(super) fn is_failed(message: &Message) -> bool {
    let block = passthrough::of(NAME, message.passthrough.as_ref()).and_then(|kept| kept.fields.get("block"));
    block.is_some_and(|block| block[RESULT]["status"] == "error")
}

/// The passages that a message holds as blocks of their own (`searchResult`, `document`), as objects with `id`, `title` and
/// `text`.
pub(super) fn passages(message: &Message) -> Vec<Value> {
    passthrough::others(NAME, message).filter_map(passage).collect()
}

fn passage(block: &Value) -> Option<Value> {
    let texts = |content: &Value| {
        let parts: Vec<&str> = content.as_array()?.iter().filter_map(|part| part["text"].as_str()).collect();
        Some(parts.join("\n\n"))
    };
    let (found, document) = (&block["searchResult"], &block["document"]);
    let (id, title, text) = if found.is_object() {
        (&found["source"], &found["title"], texts(&found["content"]))
    } else {
        let source = &document["source"];
        // Bytes of another format than these are no text.
        let plain = document["format"].as_str().is_none_or(|format| ["txt", "md", "csv", "html"].contains(&format));
        let bytes = || String::from_utf8(decode_base64(source["bytes"].as_str().filter(|_| plain)?)?).ok();
        let text = source["text"].as_str().map(str::to_owned).or_else(|| texts(&source["content"])).or_else(bytes);
        (&document["name"], &document["name"], text)
    };
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Some(json!({"id": word(id), "title": word(title), "text": text.filter(|text| !text.is_empty())?}))
}

/// Writes an id or a name of a call, unless it had none.
fn write_word(block: &mut Value, key: &str, word: &str) {
    if !word.is_empty() || block.get(key).is_some() {
        block[key] = Value::from(word);
    }
}

pub(super) fn write_blocks(message: &Message) -> Vec<Value> {
    let passthrough = passthrough::of(NAME, message.passthrough.as_ref());
    let filled = passthrough::fill(message, passthrough).into_iter().map(|piece| match piece {
        Filled::Text(text, template) => write_text(text, template),
        Filled::Call(call, template) => {
            let mut block =
                template.filter(|block| has(block, CALL)).cloned().unwrap_or_else(|| json!({CALL: {"input": {}}}));
            write_word(&mut block[CALL], "toolUseId", &call.id);
            write_word(&mut block[CALL], "name", &call.name);
            if block[CALL].get("input").is_some_and(Value::is_object) || call.arguments != "{}" {
                block[CALL]["input"] = passthrough::arguments_object(&call.arguments);
            }
            block
        }
        Filled::Other(block) => block.clone(),
    });
    if message.role != Role::Tool {
        return filled.collect();
    }
    let template = passthrough.and_then(|passthrough| passthrough.fields.get("block"));
    let template = template.filter(|block| has(block, RESULT));
    let mut block = template.cloned().unwrap_or_else(|| json!({RESULT: {"content": []}}));
    write_word(&mut block[RESULT], "toolUseId", message.answers.as_deref().unwrap_or_default());
    let parts: Vec<Value> = filled.collect();
    if !parts.is_empty() {
        block[RESULT]["content"] = Value::Array(parts);
    }
    vec![block]
}

/// A text in its template; a document that is still one stays a document.
fn write_text(text: &str, template: Option<&Value>) -> Value {
    let mut block = template.cloned().unwrap_or_else(|| json!({}));
    if block.get("json").is_some() && block.get("text").is_none() {
        if let Ok(document) = serde_json::from_str::<Value>(text) {
            block["json"] = document;
            return block;
        }
        block = json!({});
    }
    block["text"] = Value::from(text);
    block
}

/// A block of a stream that has begun.
#[derive(Debug, Default)]
pub(super) struct Begun {
    block: Map<String, Value>,
    input: String,
}

impl Begun {
    pub(super) fn start(&mut self, start: Option<&Value>) {
        self.block = start.and_then(Value::as_object).cloned().unwrap_or_default();
    }

    pub(super) fn add(&mut self, delta: Option<&Value>) {
        for (key, more) in delta.and_then(Value::as_object).into_iter().flatten() {
            match (key.as_str(), more) {
                (CALL, _) => self.input.push_str(more.get("input").and_then(Value::as_str).unwrap_or_default()),
                ("reasoningContent", Value::Object(parts)) => {
                    let reasoning = self.block.entry(key.clone()).or_insert_with(|| json!({}));
                    if !reasoning.is_object() {
                        *reasoning = json!({});
                    }
                    for (key, more) in parts {
                        // Pieces of a text come flat, and stand in an object in a whole answer.
                        let holder =
                            if key == "redactedContent" { &mut *reasoning } else { &mut reasoning["reasoningText"] };
                        append(holder, key, more);
                    }
                }
                _ => match self.block.get_mut(key) {
                    Some(Value::String(sum)) if more.is_string() => sum.push_str(more.as_str().unwrap_or_default()),
                    _ => _ = self.block.insert(key.clone(), more.clone()),
                },
            }
        }
    }

    pub(super) fn whole(mut self) -> Value {
        if let Some(Value::Object(call)) = self.block.get_mut(CALL) {
            call.insert("input".to_owned(), passthrough::arguments_object(&self.input));
        }
        Value::Object(self.block)
    }
}

/// Appends a text to a member, or sets it.
fn append(holder: &mut Value, key: &str, more: &Value) {
    if !holder.is_object() {
        *holder = json!({});
    }
    match (holder.get_mut(key), more.as_str()) {
        (Some(Value::String(sum)), Some(more)) => sum.push_str(more),
        _ => holder[key] = more.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_is_a_document_is_read_as_its_text_and_written_back_as_a_document() {
        let block = json!({RESULT: {"toolUseId": "c", "content": [{"json": {"chunks": [{"id": "a"}]}}]}});
        let wire = json!({"role": "user", "content": [block]});
        let mut messages = Vec::new();
        read_message("", wire.as_object().expect("an object"), &mut messages).expect("decodes");
        assert_eq!(messages[0].content, "{\"chunks\":[{\"id\":\"a\"}]}");
        assert_eq!(write_messages(&messages), json!([wire]));
        messages[0].content = "plain".to_owned();
        assert_eq!(write_messages(&messages)[0]["content"][0][RESULT]["content"], json!([{"text": "plain"}]));
    }

    #[test]
    fn blocks_of_search_results_and_documents_are_passages() {
        let text = json!([{"text": "Within 30 days."}]);
        for block in [
            json!({"searchResult": {"source": "returns-1", "title": "Returns", "content": text, "citations": {"enabled": true}}}),
            json!({"document": {"format": "txt", "name": "returns-1", "source": {"text": "Within 30 days."}}}),
            json!({"document": {"name": "returns-1", "source": {"content": text}}}),
            json!({"document": {"format": "txt", "name": "returns-1", "source": {"bytes": "V2l0aGluIDMwIGRheXMu"}}}),
        ] {
            for wire in [json!([{RESULT: {"toolUseId": "c", "content": [block]}}]), json!([block])] {
                let wire = json!({"role": "user", "content": wire});
                let mut messages = Vec::new();
                read_message("", wire.as_object().expect("an object"), &mut messages).expect("decodes");
                let found = passages(&messages[0]);
                assert_eq!(
                    (&found[0]["id"], &found[0]["text"]),
                    (&json!("returns-1"), &json!("Within 30 days.")),
                    "{block}"
                );
                assert_eq!(write_messages(&messages), json!([wire]));
            }
        }
    }

    #[test]
    fn reasoning_that_came_in_pieces_stands_as_in_a_whole_answer() {
        let mut begun = Begun::default();
        for delta in [json!({"text": "h"}), json!({"text": "m"}), json!({"signature": "s"})] {
            begun.add(Some(&json!({"reasoningContent": delta})));
        }
        let expected = json!({"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}});
        assert_eq!(begun.whole(), expected);
        let mut odd = Begun::default();
        odd.start(Some(&json!({"reasoningContent": 7})));
        odd.add(Some(&json!({"reasoningContent": {"text": "x"}})));
        assert!(odd.whole().is_object());
    }
}

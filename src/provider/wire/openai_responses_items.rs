//! Groups the items of Responses into messages and back.
//!
//! An item with text is kept with the length of each text in its place, because a message may have several parts.

use super::document::{Reader, WireError};
use super::passthrough::{self, Filled};
use crate::provider::chat::{Message, Piece, Role, ToolCall};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Decodes a request's items.
pub(super) fn read(reader: Reader, items: &[Value]) -> Result<Vec<Message>, WireError> {
    let mut messages: Vec<Turn> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let at = format!("/input/{index}");
        reader.object(&at, item)?;
        match kind(item) {
            "message" => {
                let role = match item.get("role").and_then(Value::as_str) {
                    Some("user") => Role::User,
                    Some("system" | "developer") => Role::System,
                    Some("assistant") => Role::Assistant,
                    _ => return Err(reader.wrong(&format!("{at}/role"), "a role", item.get("role"))),
                };
                turn(&mut messages, role).add(item);
            }
            kind if is_result(kind) => {
                // A result of the local shell may name its call by `id` alone.
                let id = ["call_id", "id"].iter().find_map(|name| item[*name].as_str()).unwrap_or_default();
                let mut result = Turn::new(Role::Tool);
                result.message.answers = Some(id.to_owned());
                result.add(item);
                messages.push(result);
            }
            _ => turn(&mut messages, Role::Assistant).add(item),
        }
    }
    Ok(messages.into_iter().map(|turn| turn.close(reader.0)).collect())
}

/// Decodes a response's items as one message of the model.
pub(super) fn read_turn(dialect: &str, items: &[Value]) -> Message {
    let mut turn = Turn::new(Role::Assistant);
    for item in items.iter().filter(|item| item.is_object()) {
        // The service ran it.
        let is_hosted = is_result(kind(item)) || built_in(kind(item)).is_some() && result_of(item, items).is_some();
        if is_hosted {
            turn.pieces.push(Piece::Other { wire: item.clone() });
            continue;
        }
        // In a request that repeats it, a message without this role would be another's.
        match kind(item) {
            "message" if item.get("role").is_none_or(|role| role != "assistant") => {
                let mut item = item.clone();
                item["role"] = Value::from("assistant");
                turn.add(&item);
            }
            _ => turn.add(item),
        }
    }
    turn.close(dialect)
}

/// Encodes messages as items.
pub(super) fn write(dialect: &str, messages: &[Message]) -> Value {
    let custom = messages.iter().flat_map(|message| {
        let pieces = passthrough::of(dialect, message.passthrough.as_ref()).map_or(&[][..], |kept| &kept.pieces[..]);
        let calls = pieces.iter().filter_map(|piece| if let Piece::Call { wire } = piece { Some(wire) } else { None });
        calls.zip(&message.calls).filter(|(wire, _)| kind(wire) == CUSTOM).map(|(_, call)| call.id.as_str())
    });
    let custom: BTreeSet<&str> = custom.collect();
    messages.iter().flat_map(|message| write_message(dialect, message, &custom)).collect()
}

/// A call of a custom tool, whose input is any text.
const CUSTOM: &str = "custom_tool_call";

/// Calls of tools that OpenAI defines and the agent runs: the item, the tool, and the member that holds the arguments.
const BUILT_IN: [(&str, (&str, &str)); 4] = [
    ("shell_call", ("shell", "action")),
    ("local_shell_call", ("local_shell", "action")),
    ("apply_patch_call", ("apply_patch", "operation")),
    ("computer_call", ("computer", "action")),
];

/// The tool of such a call, and the member that holds its arguments.
pub(crate) fn built_in(kind: &str) -> Option<(&'static str, &'static str)> {
    BUILT_IN.into_iter().find(|(known, _)| *known == kind).map(|(_, of)| of)
}

/// The member that holds the arguments of such a call: a computer may get several actions at once.
fn member_of(call: &Value, member: &'static str) -> &'static str {
    if call.get("actions").is_some() && call.get(member).is_none() { "actions" } else { member }
}

/// The result of a call among the items of the same answer: then the service ran it.
pub(super) fn result_of<'i>(call: &Value, items: &'i [Value]) -> Option<&'i Value> {
    let found = items.iter().find(|item| is_result(kind(item)) && item["call_id"] == call["call_id"]);
    found.and_then(|result| result.get("output"))
}

fn is_result(kind: &str) -> bool {
    let of_call = kind.strip_suffix("_output");
    of_call.is_some_and(|call| matches!(call, "function_call" | CUSTOM) || built_in(call).is_some())
}

/// The members of a call that hold its id, name and arguments.
fn call_keys(call: &Value) -> [&'static str; 3] {
    ["call_id", "name", if kind(call) == CUSTOM { "input" } else { "arguments" }]
}

fn kind(item: &Value) -> &str {
    match item.get("type").and_then(Value::as_str) {
        Some(kind) => kind,
        None if item.get("role").is_some() => "message",
        None => "",
    }
}

/// The message of an item: consecutive items of the model are one message.
fn turn(messages: &mut Vec<Turn>, role: Role) -> &mut Turn {
    let joins = role == Role::Assistant && messages.last().is_some_and(|last| last.message.role == Role::Assistant);
    if !joins {
        messages.push(Turn::new(role));
    }
    let last = messages.len() - 1;
    &mut messages[last]
}

struct Turn {
    message: Message,
    pieces: Vec<Piece>,
}

impl Turn {
    fn new(role: Role) -> Self {
        Self { message: Message::text(role, ""), pieces: Vec::new() }
    }

    fn add(&mut self, item: &Value) {
        let mut wire = item.clone();
        let piece = match kind(item) {
            "message" => {
                let said = take_texts(wire.get_mut("content"));
                self.message.content.push_str(&said);
                Piece::Text { bytes: said.len(), wire }
            }
            kind if is_result(kind) => {
                let said = match wire.get_mut("output") {
                    output @ Some(Value::Array(_) | Value::String(_)) => take_texts(output),
                    _ => String::new(),
                };
                if let Some(id) = wire.get_mut("call_id") {
                    *id = Value::from("");
                }
                self.message.content.push_str(&said);
                Piece::Text { bytes: said.len(), wire }
            }
            "function_call" | CUSTOM => {
                let keys = call_keys(item);
                let [id, name, arguments] = keys.map(|key| item[key].as_str().unwrap_or_default().to_owned());
                self.message.calls.push(ToolCall { id, name, arguments });
                for key in keys {
                    wire[key] = Value::from("");
                }
                Piece::Call { wire }
            }
            kind => match built_in(kind) {
                Some((tool, member)) => {
                    let arguments = wire.get_mut(member_of(item, member)).map(Value::take).unwrap_or_default();
                    let arguments = arguments.to_string();
                    let id = item["call_id"].as_str().unwrap_or_default().to_owned();
                    self.message.calls.push(ToolCall { id, name: tool.to_owned(), arguments });
                    if let Some(id) = wire.get_mut("call_id") {
                        *id = Value::from("");
                    }
                    Piece::Call { wire }
                }
                None => Piece::Other { wire },
            },
        };
        self.pieces.push(piece);
    }

    fn close(self, dialect: &str) -> Message {
        Message { passthrough: passthrough::keep(dialect, Map::new(), self.pieces), ..self.message }
    }
}

/// Removes the texts from a content and leaves their lengths.
fn take_texts(content: Option<&mut Value>) -> String {
    match content {
        Some(Value::Array(parts)) => {
            let mut said = String::new();
            for part in parts {
                for place in texts_of(part, Value::is_string) {
                    let text = place.as_str().unwrap_or_default();
                    said.push_str(text);
                    *place = Value::from(text.len());
                }
            }
            said
        }
        Some(place @ Value::String(_)) => {
            let said = place.as_str().unwrap_or_default().to_owned();
            *place = Value::from(said.len());
            said
        }
        _ => String::new(),
    }
}

/// Members of a part that hold its text, or the length of it: what a command printed is one.
const TEXTS: [&str; 3] = ["text", "stdout", "stderr"];

/// Where the texts of a part are, or their lengths.
fn texts_of(part: &mut Value, is_it: fn(&Value) -> bool) -> impl Iterator<Item = &mut Value> {
    let members = part.as_object_mut().into_iter().flatten();
    members.filter(move |(name, value)| TEXTS.contains(&name.as_str()) && is_it(value)).map(|(_, value)| value)
}

/// Restores a text in a content from [`take_texts`]; a text of another length goes into the first position.
fn put_texts(content: &mut Value, said: &str) {
    if content.is_u64() {
        *content = Value::from(said);
        return;
    }
    let Some(parts) = content.as_array_mut() else {
        if !said.is_empty() {
            *content = Value::from(said);
        }
        return;
    };
    let mut places: Vec<&mut Value> = parts.iter_mut().flat_map(|part| texts_of(part, Value::is_u64)).collect();
    let lengths: Vec<usize> = places.iter().filter_map(|place| place.as_u64()).map(|bytes| bytes as usize).collect();
    let texts = passthrough::split(said, &lengths).unwrap_or_else(|| vec![said]);
    let mut texts = texts.into_iter();
    for place in &mut places {
        **place = Value::from(texts.next().unwrap_or_default());
    }
    if let Some(left) = texts.next().filter(|left| !left.is_empty()) {
        parts.push(json!({"type": "input_text", "text": left}));
    }
}

/// Writes the items of a message; `custom` are the ids of earlier calls of custom tools.
fn write_message(dialect: &str, message: &Message, custom: &BTreeSet<&str>) -> Vec<Value> {
    let passthrough = passthrough::of(dialect, message.passthrough.as_ref());
    let mut items = Vec::new();
    for piece in passthrough::fill(message, passthrough) {
        items.push(match piece {
            Filled::Text(said, Some(template)) => {
                let mut item = template.clone();
                if message.role == Role::Tool {
                    if let Some(id) = item.get_mut("call_id") {
                        *id = Value::from(message.answers.as_deref().unwrap_or_default());
                    }
                    if let Some(output) = item.get_mut("output").filter(|output| output.is_u64() || output.is_array()) {
                        put_texts(output, said);
                    }
                } else if let Some(content) = item.get_mut("content") {
                    put_texts(content, said);
                }
                item
            }
            Filled::Text(said, None) if message.role != Role::Tool => {
                json!({"role": message.role.as_str(), "content": said})
            }
            Filled::Text(..) => continue,
            Filled::Call(call, template) => {
                let mut item = template.cloned().unwrap_or_else(|| json!({"type": "function_call"}));
                if let Some((_, member)) = built_in(kind(&item)) {
                    if let Some(id) = item.get_mut("call_id") {
                        *id = Value::from(call.id.as_str());
                    }
                    if let Some(arguments) = item.get_mut(member_of(template.unwrap_or(&Value::Null), member)) {
                        *arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
                    }
                    items.push(item);
                    continue;
                }
                for (key, word) in call_keys(&item).into_iter().zip([&call.id, &call.name, &call.arguments]) {
                    item[key] = Value::from(word.as_str());
                }
                item
            }
            Filled::Other(item) => item.clone(),
        });
    }
    if message.role == Role::Tool && items.is_empty() {
        let answers = message.answers.as_deref().unwrap_or_default();
        let kind = if custom.contains(answers) { "custom_tool_call_output" } else { "function_call_output" };
        items.push(json!({"type": kind, "call_id": answers, "output": message.content}));
    }
    if items.is_empty() {
        items.push(json!({"role": message.role.as_str(), "content": message.content}));
    }
    items
}

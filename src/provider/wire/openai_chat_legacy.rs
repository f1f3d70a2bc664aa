//! The format of Chat Completions before tools: `functions`, one `function_call` per message, results with the role
//! `function`.
//!
//! A legacy call has no id, see [`super::call_ids`]. A document decoded from this format, including results of legacy
//! calls, is encoded in it.

use super::call_ids::CallIds;
use super::document::{ToolShape, text};
use super::passthrough;
use crate::provider::chat::{Message, Piece, ToolCall, ToolChoice, ToolDefinition};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const CALL: &str = "function_call";
const FUNCTIONS: &str = "functions";

/// The legacy call of a message, if it has one and no current call.
pub(super) fn read_call(
    message: &Map<String, Value>,
    calls: &mut Vec<ToolCall>,
    pieces: &mut Vec<Piece>,
    ids: &mut CallIds,
) {
    let Some(Value::Object(wire)) = message.get(CALL).filter(|_| calls.is_empty()) else { return };
    let word = |key: &str| wire.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let arguments = match wire.get("arguments") {
        Some(object @ Value::Object(_)) => object.to_string(),
        _ => word("arguments"),
    };
    let mut template = wire.clone();
    for key in ["name", "arguments"] {
        passthrough::clear(template.get_mut(key));
    }
    pieces.push(Piece::Call { wire: json!({ CALL: template }) });
    calls.push(ToolCall { id: ids.of_call(&word("name"), None), name: word("name"), arguments });
}

/// Whether the position of a call is a legacy one.
pub(super) fn is_place(template: &Value) -> bool {
    template.get(CALL).is_some_and(Value::is_object)
}

/// Inserts the call into a message with a legacy position for it.
pub(super) fn write_call(message: &mut Map<String, Value>, call: &ToolCall, template: &Value) {
    let mut wire = template[CALL].clone();
    let arguments = passthrough::arguments_for(wire.get("arguments"), &call.arguments);
    for (key, word) in [("name", Value::from(call.name.as_str())), ("arguments", arguments)] {
        if wire.get(key).is_some_and(|place| !place.is_null()) || word != "" {
            wire[key] = word;
        }
    }
    message.insert(CALL.to_owned(), wire);
}

/// Removes the legacy call from a message's fields and keeps its position.
pub(super) fn blank_call(fields: &mut Map<String, Value>) {
    if let Some(Value::Object(call)) = fields.get_mut(CALL) {
        call.clear();
    }
}

/// Removes the position of a legacy call that the message no longer has.
pub(super) fn drop_blank(message: &mut Map<String, Value>) {
    if message.get(CALL).is_some_and(|call| *call == json!({})) {
        message.shift_remove(CALL);
    }
}

/// Names of legacy calls by id, for results that were not decoded from the wire.
pub(super) fn names<'m>(dialect: &str, messages: &'m [Message]) -> BTreeMap<&'m str, &'m str> {
    let legacy = messages.iter().filter(|message| {
        passthrough::of(dialect, message.passthrough.as_ref()).is_some_and(|passthrough| {
            passthrough.pieces.iter().any(|piece| matches!(piece, Piece::Call { wire } if is_place(wire)))
        })
    });
    legacy.flat_map(|message| &message.calls).map(|call| (call.id.as_str(), call.name.as_str())).collect()
}

/// The functions offered by a request; what is not neutral of them stays in its place.
pub(super) fn take_functions(fields: &mut Map<String, Value>, shape: &ToolShape) -> Vec<ToolDefinition> {
    shape.take(fields.get_mut(FUNCTIONS), |_| true)
}

/// Whether a request has its tools by their legacy name alone.
pub(super) fn is_in(fields: &Map<String, Value>) -> bool {
    fields.contains_key(FUNCTIONS) && !fields.contains_key("tools")
}

/// The tool choice by its legacy name.
pub(super) fn read_choice(fields: &Map<String, Value>) -> Option<ToolChoice> {
    match fields.get(CALL)? {
        Value::String(word) if word == "auto" => Some(ToolChoice::Auto),
        Value::String(word) if word == "none" => Some(ToolChoice::None),
        named => named.get("name")?.as_str().map(|name| ToolChoice::Named(name.to_owned())),
    }
}

/// Writes functions and choice by their legacy names, into a body that was decoded with them; returns false for any
/// other body.
pub(super) fn write_functions(
    body: &mut Map<String, Value>,
    tools: &[ToolDefinition],
    choice: &ToolChoice,
    shape: &ToolShape,
) -> bool {
    if body.contains_key("tools") {
        return false;
    }
    let Some(Value::Array(templates)) = body.get_mut(FUNCTIONS).map(Value::take) else { return false };
    let name = |template: &Value| Some(text(template.as_object()?, "name").to_owned());
    let write = |template: Option<Value>, tool: &ToolDefinition| shape.write(template, tool);
    body.insert(FUNCTIONS.to_owned(), Value::Array(passthrough::place_tools(templates, tools, name, write)));
    if read_choice(body).unwrap_or_default() != *choice {
        let written = match (choice, tools) {
            (ToolChoice::Named(name), _) => json!({"name": name}),
            // The legacy format cannot require an arbitrary function; a single one is named instead.
            (ToolChoice::Required, [only]) => json!({"name": only.name}),
            (ToolChoice::None, _) => json!("none"),
            (ToolChoice::Auto | ToolChoice::Required, _) => json!("auto"),
        };
        body.insert(CALL.to_owned(), written);
    }
    true
}

/// Appends a piece of a streamed legacy call.
pub(super) fn add(message: &mut Map<String, Value>, delta: &Value) {
    let Value::Object(delta) = delta else { return };
    let call = message.entry(CALL).or_insert(Value::Null);
    if !call.is_object() {
        *call = json!({});
    }
    for (key, value) in delta {
        match (call.get_mut(key.as_str()), value) {
            (_, Value::Null) => {}
            (Some(Value::String(sum)), Value::String(more)) if key == "arguments" => sum.push_str(more),
            (Some(Value::String(name)), _) if key == "name" && !name.is_empty() => {}
            _ => call[key.as_str()] = value.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::provider::chat::{ChatRequest, Finish, Message, Role, ToolChoice};
    use crate::provider::wire::Dialect;
    use crate::transport::sse;
    use serde_json::{Value, json};

    const CHAT: &Dialect = super::super::openai_chat::DIALECT;

    fn conversation() -> Value {
        let call = |arguments: &str| json!({"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": arguments}});
        json!({"model": "m", "function_call": "auto",
            "functions": [{"name": "f", "description": "d", "parameters": {"type": "object"}, "extra": 1}],
            "messages": [{"role": "user", "content": "q"}, call("{\"q\": 1}"), {"role": "function", "name": "f", "content": "one"},
                call("{\"q\": 2}"), {"role": "function", "name": "f", "content": "two"}]})
    }

    #[test]
    fn a_conversation_of_functions_is_read_and_written_back_as_it_was() {
        let body = conversation();
        let request = CHAT.decode_request("", &body).expect("a request");
        assert_eq!(request.tools[0].name, "f");
        let calls: Vec<&str> =
            request.messages.iter().flat_map(|message| &message.calls).map(|call| call.id.as_str()).collect();
        let answered: Vec<&str> = request.messages.iter().filter_map(|message| message.answers.as_deref()).collect();
        assert_eq!((calls, answered), (vec!["f#0", "f#1"], vec!["f#0", "f#1"]));
        assert_eq!(request.messages[2].role, Role::Tool);
        assert_eq!(CHAT.encode_request(&request), body);
        let named = ChatRequest { tool_choice: ToolChoice::Required, ..request };
        assert_eq!(CHAT.encode_request(&named)["function_call"], json!({"name": "f"}));
    }

    #[test]
    fn a_result_of_a_legacy_call_goes_back_by_its_functions_name() {
        let answer = json!({"choices": [{"finish_reason": "function_call", "message":
            {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}}}]});
        let reply = CHAT.decode_response(&answer).expect("an answer");
        assert_eq!((reply.finish.clone(), reply.calls[0].id.as_str()), (Finish::ToolCalls, "f#0"));
        let mut request = CHAT.decode_request("", &conversation()).expect("a request");
        request.messages = vec![reply.to_message(), Message::tool_result("f#0", "found")];
        let written = CHAT.encode_request(&request);
        assert_eq!(written["messages"][0]["function_call"], json!({"name": "f", "arguments": "{}"}));
        assert_eq!(written["messages"][1], json!({"role": "function", "name": "f", "content": "found"}));
        request.messages[0].calls.clear();
        assert_eq!(CHAT.encode_request(&request)["messages"][0].get("function_call"), None);
    }

    #[test]
    fn a_streamed_legacy_call_is_put_together() {
        let pieces = [
            json!({"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": ""}}),
            json!({"function_call": {"arguments": "{\"q\""}}),
            json!({"function_call": {"arguments": ": 1}"}}),
        ];
        let mut stream = pieces
            .iter()
            .map(|delta| {
                format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
            })
            .collect::<Vec<_>>()
            .concat();
        stream.push_str(
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"function_call\"}]}\n\ndata: [DONE]\n\n",
        );
        let mut assembler = CHAT.assembler();
        for event in sse::read_all(stream.as_bytes()).expect("short") {
            assembler.push(&event).expect("a chunk");
        }
        let reply = CHAT.decode_response(&assembler.document()).expect("an answer");
        assert_eq!((reply.calls[0].name.as_str(), reply.calls[0].arguments.as_str()), ("f", "{\"q\": 1}"));
    }
}

//! Tools of Chat Completions: definitions, choices and calls.
//!
//! A tool is a `function` with arguments, or a `custom` tool whose `input` is any text. Both are neutral tools; a custom
//! one has no schema, and the arguments of its calls are the text.

use super::document::{ToolShape, text};
use super::passthrough;
use crate::provider::chat::{Piece, ToolCall, ToolChoice, ToolDefinition};
use serde_json::{Map, Value, json};

/// The shape of a definition.
pub(super) const TOOL: ToolShape = ToolShape { parameters: &["parameters"] };

/// The kinds of tools, by the member that holds what is specific to each, and the member of a call that holds its
/// arguments.
const KINDS: [(&str, &str); 2] = [("function", "arguments"), ("custom", "input")];

/// The kind of a tool or a call; a function unless it says otherwise.
pub(super) fn kind(wire: &Value) -> (&'static str, &'static str) {
    let named = |(kind, _): &&(&str, &str)| wire.get(*kind).is_some_and(Value::is_object);
    *KINDS.iter().find(named).unwrap_or(&KINDS[0])
}

/// Whether a call is one of a custom tool.
pub(super) fn is_custom(call: &Value) -> bool {
    kind(call) == KINDS[1]
}

pub(super) fn read_tools(tools: &[Value]) -> Vec<ToolDefinition> {
    tools.iter().filter_map(|tool| Some(TOOL.read(tool.get(kind(tool).0)?.as_object()?))).collect()
}

pub(super) fn blank_tool(tool: &mut Value) {
    if let Some(Value::Object(definition)) = tool.get_mut(kind(tool).0) {
        *definition = TOOL.template(definition);
    }
}

pub(super) fn name_of(template: &Value) -> Option<String> {
    Some(text(template.get(kind(template).0)?.as_object()?, "name").to_owned())
}

pub(super) fn write_tool(template: Option<Value>, tool: &ToolDefinition) -> Value {
    let mut wire = template.unwrap_or_else(|| json!({"type": "function"}));
    let (kind, _) = kind(&wire);
    let definition = wire.get_mut(kind).and_then(Value::as_object_mut).map(std::mem::take);
    wire[kind] = Value::Object(TOOL.fill(tool, definition.unwrap_or_default()));
    wire
}

pub(super) fn read_choice(value: &Value) -> Option<ToolChoice> {
    match value.as_str() {
        Some("auto") => Some(ToolChoice::Auto),
        // `any` is Mistral's value.
        Some("required" | "any") => Some(ToolChoice::Required),
        Some("none") => Some(ToolChoice::None),
        Some(_) => None,
        None => {
            // A named tool, or a list of allowed ones with its own mode.
            let name = value.get(kind(value).0).and_then(|named| named.get("name")?.as_str());
            name.map(|name| ToolChoice::Named(name.to_owned()))
                .or_else(|| read_choice(value.pointer("/allowed_tools/mode")?))
        }
    }
}

/// Writes a choice among these tools, as they stand in the body.
pub(super) fn write_choice(choice: &ToolChoice, tools: Option<&Value>) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::Required => json!("required"),
        ToolChoice::None => json!("none"),
        ToolChoice::Named(name) => {
            let mut tools = tools.and_then(Value::as_array).into_iter().flatten();
            let (kind, _) = tools.find(|tool| name_of(tool).as_ref() == Some(name)).map_or(KINDS[0], kind);
            json!({"type": kind, kind: {"name": name}})
        }
    }
}

/// Pointers to the id, name and arguments of a call.
fn pointers(call: &Value) -> [String; 3] {
    let (kind, arguments) = kind(call);
    ["/id".to_owned(), format!("/{kind}/name"), format!("/{kind}/{arguments}")]
}

/// Reads the calls of a message, and appends the rest of each to `pieces`.
pub(super) fn read_calls(message: &Map<String, Value>, pieces: &mut Vec<Piece>) -> Vec<ToolCall> {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    calls
        .into_iter()
        .flatten()
        .map(|wire| {
            let pointers = pointers(wire);
            let mut template = wire.clone();
            for pointer in &pointers {
                passthrough::clear(template.pointer_mut(pointer));
            }
            pieces.push(Piece::Call { wire: template });
            let [id, name, arguments] = pointers.map(|pointer| match wire.pointer(&pointer) {
                Some(object @ Value::Object(_)) => object.to_string(),
                Some(Value::String(text)) => text.clone(),
                _ => String::new(),
            });
            ToolCall { id, name, arguments }
        })
        .collect()
}

/// Writes one call, into the rest of it if there is one.
pub(super) fn write_call(call: &ToolCall, template: Option<&Value>) -> Value {
    let Some(template) = template else {
        return json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}});
    };
    let mut wire = template.clone();
    let pointers = pointers(template);
    let arguments = passthrough::arguments_for(wire.pointer(&pointers[2]), &call.arguments);
    let words = [Value::from(call.id.as_str()), Value::from(call.name.as_str()), arguments];
    for (pointer, word) in pointers.iter().zip(words) {
        match wire.pointer_mut(pointer) {
            Some(place) if !(place.is_null() && word == "") => *place = word,
            _ => {}
        }
    }
    wire
}

#[cfg(test)]
mod tests {
    use super::super::{Dialect, openai_chat, openai_responses};
    use super::*;
    use crate::provider::chat::{ChatRequest, Message, Role};

    const SQL: &str = "SELECT * FROM users WHERE age > 25";

    /// A request of each dialect that defines, calls and answers a custom tool.
    fn requests() -> [(&'static Dialect, Value); 2] {
        let format = json!({"type": "grammar", "syntax": "regex", "definition": "SELECT .+"});
        let definition = json!({"name": "write_sql", "description": "Writes SQL.", "format": format});
        let chat = json!({
            "model": "m",
            "messages": [
                {"role": "user", "content": "Who is older than 25?"},
                {"role": "assistant", "content": null,
                 "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "write_sql", "input": SQL}}]},
                {"role": "tool", "tool_call_id": "c1", "content": "3 rows"}],
            "tools": [{"type": "custom", "custom": definition}],
            "tool_choice": {"type": "custom", "custom": {"name": "write_sql"}}});
        let mut tool = definition;
        tool["type"] = json!("custom");
        let responses = json!({
            "model": "m",
            "input": [
                {"role": "user", "content": "Who is older than 25?"},
                {"type": "custom_tool_call", "id": "ct", "call_id": "c1", "name": "write_sql", "input": SQL},
                {"type": "custom_tool_call_output", "call_id": "c1", "output": "3 rows"}],
            "tools": [tool],
            "tool_choice": {"type": "custom", "name": "write_sql"}});
        [(openai_chat::DIALECT, chat), (openai_responses::DIALECT, responses)]
    }

    #[test]
    fn a_custom_tool_its_call_and_its_result_are_read_and_written_back_as_they_were() {
        for (dialect, body) in requests() {
            let request = dialect.decode_request("", &body).expect("decodes");
            let tool = &request.tools[0];
            assert_eq!((tool.name.as_str(), tool.description.as_str()), ("write_sql", "Writes SQL."));
            assert_eq!(tool.parameters, Value::Null, "free text has no schema");
            assert_eq!(request.tool_choice, ToolChoice::Named("write_sql".into()));
            let call = ToolCall { id: "c1".into(), name: "write_sql".into(), arguments: SQL.into() };
            assert_eq!(request.messages[1].calls, [call]);
            let result = &request.messages[2];
            let result = (result.role, result.answers.as_deref(), result.content.as_str());
            assert_eq!(result, (Role::Tool, Some("c1"), "3 rows"));
            assert_eq!(dialect.encode_request(&request), body);
            let free = ChatRequest { tool_choice: ToolChoice::Auto, ..request.clone() };
            let free = dialect.decode_request("", &dialect.encode_request(&free)).expect("decodes");
            let again = dialect.encode_request(&ChatRequest { tool_choice: request.tool_choice, ..free });
            assert_eq!(again["tool_choice"], body["tool_choice"], "the choice names the kind of the tool");
        }
    }

    #[test]
    fn a_new_call_of_a_custom_tool_goes_back_as_one_and_so_does_our_result() {
        let chat = json!({"model": "m", "choices": [{"index": 0, "finish_reason": "tool_calls", "message":
            {"role": "assistant", "content": null,
             "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "write_sql", "input": SQL}}]}}]});
        let item = json!({"type": "custom_tool_call", "id": "ct", "call_id": "c1", "name": "write_sql", "input": SQL, "status": "completed"});
        let responses = json!({"id": "r", "model": "m", "status": "completed", "output": [item]});
        for ((dialect, body), answer) in requests().into_iter().zip([chat, responses]) {
            let reply = dialect.decode_response(&answer).expect("decodes");
            assert_eq!((reply.calls.len(), reply.calls[0].arguments.as_str()), (1, SQL));
            let mut request = dialect.decode_request("", &body).expect("decodes");
            request.messages.truncate(1);
            request.messages.extend([reply.to_message(), Message::tool_result("c1", "3 rows")]);
            let written = dialect.encode_request(&request);
            let list = written.get("messages").or_else(|| written.get("input")).expect("a conversation");
            let expected = body.get("messages").or_else(|| body.get("input")).expect("a conversation");
            assert_eq!(list[2], expected[2]);
            let input = list[1].pointer("/tool_calls/0/custom/input").or_else(|| list[1].get("input"));
            assert_eq!(input, Some(&json!(SQL)), "{list:#}");
        }
    }

    #[test]
    fn the_input_of_a_custom_call_is_assembled_from_a_stream() {
        let pieces = ["SELECT * ", "FROM users ", "WHERE age > 25"];
        let delta = |call: Value| json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]});
        let mut chat = vec![delta(
            json!({"index": 0, "id": "c1", "type": "custom", "custom": {"name": "write_sql", "input": ""}}),
        )];
        chat.extend(pieces.map(|piece| delta(json!({"index": 0, "custom": {"input": piece}}))));
        chat.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}));
        let item = json!({"type": "custom_tool_call", "call_id": "c1", "name": "write_sql", "input": ""});
        let mut responses = vec![json!({"type": "response.output_item.added", "output_index": 0, "item": item})];
        let more = |piece| json!({"type": "response.custom_tool_call_input.delta", "output_index": 0, "delta": piece});
        responses.extend(pieces.map(more));
        responses.push(json!({"type": "response.completed", "response": {"status": "completed", "output": []}}));
        for (dialect, events) in [(openai_chat::DIALECT, chat), (openai_responses::DIALECT, responses)] {
            let mut assembler = dialect.assembler();
            for event in events {
                let stream = format!("data: {event}\n\n");
                let event = &crate::transport::sse::read_all(stream.as_bytes()).expect("short")[0];
                assembler.push(event).expect("no error");
            }
            let reply = dialect.decode_response(&assembler.document()).expect("decodes");
            let call = ToolCall { id: "c1".into(), name: "write_sql".into(), arguments: SQL.into() };
            assert_eq!(reply.calls, [call], "{}", dialect.name());
        }
    }
}

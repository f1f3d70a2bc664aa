//! Anthropic's Messages.
//!
//! A message on the wire is a list of blocks. An assistant's blocks are one neutral message; a user's are one for each
//! tool result and one for the blocks between, all but the first joined to the first's envelope. Thinking blocks and
//! their signatures, server tools and documents are kept in place. There is no sampling seed here, and a bound on
//! output is obligatory: without one, [`MAX_TOKENS`] is sent.

use super::document::{Reader, ToolShape, WireError, plus, put, small, text, tokens};
use super::passthrough::{self, Filled};
use crate::chat::{
    ChatRequest, ChatResponse, Finish, Message, Piece, Role, ToolCall, ToolChoice, ToolDefinition, Usage,
};
use serde_json::{Map, Value, json};

pub use super::anthropic_messages_stream::Assembler;

/// The dialect's name.
pub const NAME: &str = crate::settings::Dialect::AnthropicMessages.name();

/// Output tokens asked for where the request says nothing.
pub const MAX_TOKENS: u32 = 4096;

const READER: Reader = Reader(NAME);
const TOOL: ToolShape = ToolShape { parameters: &["input_schema"] };

/// Reads a request's body.
pub fn decode_request(body: &Value) -> Result<ChatRequest, WireError> {
    let mut fields = READER.object("", body)?.clone();
    let mut messages = Vec::new();
    if let Some(system) = fields.get_mut("system") {
        let (content, pieces) = read_text_blocks(system);
        let around = Map::from_iter([("system".to_owned(), emptied(system))]);
        messages.push(Message {
            passthrough: passthrough::keep(NAME, around, pieces),
            ..Message::text(Role::System, content)
        });
        *system = Value::Null;
    }
    for (index, message) in READER.list(&fields, "messages")?.iter().enumerate() {
        let at = format!("/messages/{index}");
        read_message(&at, READER.object(&at, message)?, &mut messages)?;
    }
    let tools = fields.get("tools").and_then(Value::as_array).into_iter().flatten();
    let tools: Vec<_> =
        tools.filter(|tool| is_function(tool)).filter_map(|tool| Some(TOOL.read(tool.as_object()?))).collect();
    let choice = fields.get("tool_choice");
    let request = ChatRequest {
        model: READER.string(&fields, "model")?.to_owned(),
        messages,
        tools: tools.into(),
        tool_choice: choice.and_then(read_choice).unwrap_or(ToolChoice::Auto),
        temperature: fields.get("temperature").and_then(Value::as_f64),
        max_tokens: fields.get("max_tokens").and_then(small),
        seed: None,
        parallel_calls: choice.and_then(read_parallel),
        passthrough: None,
    };
    fields.insert("model".to_owned(), Value::from(""));
    fields.insert("messages".to_owned(), json!([]));
    if let Some(Value::Array(tools)) = fields.get_mut("tools") {
        for tool in tools.iter_mut().filter(|tool| is_function(tool)) {
            *tool = tool.as_object().map_or(Value::Null, |tool| Value::Object(TOOL.template(tool)));
        }
    }
    Ok(ChatRequest { passthrough: passthrough::keep(NAME, fields, Vec::new()), ..request })
}

/// Writes a request's body.
pub fn encode_request(request: &ChatRequest, tools: Option<Value>) -> Value {
    let passthrough = passthrough::of(NAME, request.passthrough.as_ref());
    let mut body = passthrough.map(|passthrough| passthrough.fields.clone()).unwrap_or_default();
    body.insert("model".to_owned(), Value::from(request.model.as_str()));
    let limit = request.max_tokens.or(passthrough.is_none().then_some(MAX_TOKENS));
    put(&mut body, "max_tokens", limit.as_ref(), small, |number| json!(number));
    let (system, messages) = split_system(&request.messages);
    match write_system(system) {
        Some(system) => _ = body.insert("system".to_owned(), system),
        None => _ = body.shift_remove("system"),
    }
    body.insert("messages".to_owned(), write_messages(messages));
    passthrough::write_tools(&mut body, tools, &request.tools, name_of, write_tool);
    let written = body.get("tool_choice");
    let read = written.and_then(read_choice).unwrap_or(ToolChoice::Auto);
    if read != request.tool_choice || written.and_then(read_parallel) != request.parallel_calls {
        match write_choice(&request.tool_choice, request.parallel_calls) {
            choice if request.tools.is_empty() && choice["type"] != "none" => _ = body.shift_remove("tool_choice"),
            choice => _ = body.insert("tool_choice".to_owned(), choice),
        }
    }
    put(&mut body, "temperature", request.temperature.as_ref(), Value::as_f64, |number| json!(number));
    Value::Object(body)
}

fn name_of(tool: &Value) -> Option<String> {
    is_function(tool).then(|| tool.get("name")?.as_str().map(str::to_owned)).flatten()
}

fn write_tool(template: Option<Value>, tool: &ToolDefinition) -> Value {
    let template = template.and_then(|template| template.as_object().cloned()).unwrap_or_default();
    Value::Object(TOOL.fill(tool, template))
}

/// Reads a whole response.
pub fn decode_response(body: &Value) -> Result<ChatResponse, WireError> {
    if let Some(reported) = super::error::reported(body) {
        return Err(reported);
    }
    let document = READER.object("", body)?;
    let blocks = READER.list(document, "content")?;
    let message = read_blocks(blocks, Role::Assistant);
    let envelope = json!({"role": "assistant", "content": []});
    let reason = document.get("stop_reason").and_then(Value::as_str);
    let refusal = (reason == Some("refusal")).then(|| {
        let explained = body.pointer("/stop_details/explanation").and_then(Value::as_str);
        explained.unwrap_or("the model refused and gave no reason").to_owned()
    });
    let plain = message.1.iter().all(|piece| match piece {
        Piece::Other { .. } => false,
        Piece::Text { wire, .. } | Piece::Call { wire } => wire.as_object().is_some_and(|wire| wire.len() <= 4),
    }) && message.1.len() <= 1;
    let around = Map::from_iter([("envelope".to_owned(), envelope)]);
    Ok(ChatResponse {
        model: text(document, "model").to_owned(),
        finish: match reason {
            Some("end_turn" | "stop_sequence") => Finish::Stop,
            Some("tool_use") => Finish::ToolCalls,
            Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
            Some("refusal") => Finish::ContentFilter,
            other => Finish::Other(other.unwrap_or_default().to_owned()),
        },
        passthrough: if plain { None } else { passthrough::keep(NAME, around, message.1) },
        content: message.0.content,
        calls: message.0.calls,
        refusal,
        usage: usage(body),
    })
}

fn usage(body: &Value) -> Usage {
    let Some(usage) = body.get("usage") else { return Usage::default() };
    let cached = tokens(usage, "/cache_read_input_tokens");
    // Anthropic counts what it reads from and writes to its cache beside the input.
    let input = tokens(usage, "/input_tokens")
        .and_then(|input| plus(plus(Some(input), cached), tokens(usage, "/cache_creation_input_tokens")));
    Usage { input, cached, output: tokens(usage, "/output_tokens") }
}

/// Tools of the server have a dated type; ours have none, or `custom`.
fn is_function(tool: &Value) -> bool {
    tool.is_object() && tool.get("type").is_none_or(|kind| kind == "custom" || kind.is_null())
}

fn read_choice(choice: &Value) -> Option<ToolChoice> {
    match choice.get("type")?.as_str()? {
        "auto" => Some(ToolChoice::Auto),
        "any" => Some(ToolChoice::Required),
        "none" => Some(ToolChoice::None),
        "tool" => Some(ToolChoice::Named(choice.get("name")?.as_str()?.to_owned())),
        _ => None,
    }
}

fn read_parallel(choice: &Value) -> Option<bool> {
    choice.get("disable_parallel_tool_use").and_then(Value::as_bool).map(|disabled| !disabled)
}

fn write_choice(choice: &ToolChoice, parallel: Option<bool>) -> Value {
    let mut written = match choice {
        ToolChoice::Auto => json!({"type": "auto"}),
        ToolChoice::Required => json!({"type": "any"}),
        ToolChoice::None => json!({"type": "none"}),
        ToolChoice::Named(name) => json!({"type": "tool", "name": name}),
    };
    if let Some(parallel) = parallel.filter(|_| *choice != ToolChoice::None) {
        written["disable_parallel_tool_use"] = Value::from(!parallel);
    }
    written
}

/// What is left of a content when its text and blocks are taken out: `""`, `[]` or as it was.
fn emptied(content: &Value) -> Value {
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

fn read_text_blocks(content: &Value) -> (String, Vec<Piece>) {
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

fn read_blocks(blocks: &[Value], role: Role) -> (Message, Vec<Piece>) {
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

fn read_message(at: &str, wire: &Map<String, Value>, messages: &mut Vec<Message>) -> Result<(), WireError> {
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
    let mut envelope = Some(envelope);
    let mut around = move || {
        let envelope = envelope.take().map(|envelope| ("envelope".to_owned(), Value::Object(envelope)));
        Map::from_iter(envelope)
    };
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

/// The messages that are the request's system prompt, and those of the conversation.
fn split_system(messages: &[Message]) -> (&[Message], &[Message]) {
    let in_conversation = |message: &Message| {
        message.role != Role::System
            || passthrough::of(NAME, message.passthrough.as_ref())
                .is_some_and(|passthrough| passthrough.fields.contains_key("envelope"))
    };
    messages.split_at(messages.iter().position(in_conversation).unwrap_or(messages.len()))
}

fn write_system(messages: &[Message]) -> Option<Value> {
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

fn write_messages(messages: &[Message]) -> Value {
    let mut written: Vec<Value> = Vec::new();
    for message in messages {
        let passthrough = passthrough::of(NAME, message.passthrough.as_ref());
        let envelope =
            passthrough.and_then(|passthrough| passthrough.fields.get("envelope")).and_then(passthrough::object);
        // A later system message has no place of its own in most models: the user says it.
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        let results_before = written.last().is_some_and(|last| {
            last["role"] == "user"
                && last["content"]
                    .as_array()
                    .is_some_and(|blocks| blocks.last().is_some_and(|block| block["type"] == "tool_result"))
        });
        // The results of one turn belong into one message.
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

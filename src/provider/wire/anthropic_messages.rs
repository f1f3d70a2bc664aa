//! Dialect of Anthropic's Messages API.
//!
//! A message on the wire is a list of blocks. An assistant's blocks are one neutral message; a user's blocks are one
//! message per tool result and one for the blocks in between, all but the first linked to the first's envelope.
//! Thinking blocks with their signatures, server tools and documents are kept in place. There is no sampling seed, and
//! a limit on output is required: without one, [`MAX_TOKENS`] is sent.

use super::anthropic_messages_stream::Assembler as Blocks;
use super::assembler::Assembler;
use super::document::{Reader, ToolShape, WireError, put, small, text, usage_beside_cache};
use super::{Dialect, USUAL, anthropic_messages_blocks as blocks, ending, passthrough};
use crate::cassette::{Layout, Place, Profile};
use crate::provider::chat::{ChatRequest, ChatResponse, Finish, Message, Piece, Role, ToolChoice};
use crate::settings::Auth;
use serde_json::{Map, Value, json};

/// The dialect's name.
pub(crate) const NAME: &str = "anthropic-messages";

/// Path of its endpoint, below the base URL.
const ENDPOINT: &str = "/v1/messages";

static PROFILE: Profile = Profile { name: NAME, version: 1, drop: &["/metadata"], layout: &LAYOUT };

static LAYOUT: Layout = Layout {
    model: Some("/model"),
    conversation: &["/messages"],
    prompts: &[Place::at("/system"), Place::at("/system/*/text")],
    prompt_members: &["/system"],
    tools: Some("/tools"),
    tool_names: &["/name", "/type"],
    role: "/role",
    text: "/content",
    calls: &[Place::at("/content/*/id").when("type", &["tool_use"])],
    results: &[Place::at("/content/*/tool_use_id").when("type", &["tool_result"])],
    continues: &["/thread/previous_message_id"],
    ..Layout::NONE
};

/// Limit on output tokens if the request has none.
pub const MAX_TOKENS: u32 = 4096;

pub(super) const READER: Reader = Reader(NAME);
const TOOL: ToolShape = ToolShape { parameters: &["input_schema"] };

/// The dialect.
pub const DIALECT: &Dialect = &Dialect {
    about: "Anthropic Messages; the base URL is `https://api.anthropic.com`.",
    profile: &PROFILE,
    auth: Auth::XApiKey,
    headers: &[("anthropic-version", "2023-06-01")],
    proxied: true,
    path: |_, _| ENDPOINT.to_owned(),
    endpoint: |_, path| ending(path, ENDPOINT),
    decode_request: |_, body| decode_request(body),
    encode: encode_request,
    decode_response,
    encode_error,
    assembler: || Assembler::of(Blocks::default()),
    ..USUAL
};

fn encode_error(status: u16, code: &str, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": message, "code": code}})
}

/// Decodes a request's body.
fn decode_request(body: &Value) -> Result<ChatRequest, WireError> {
    let mut fields = READER.object("", body)?.clone();
    let mut messages = Vec::new();
    if let Some(system) = fields.get_mut("system") {
        let (content, pieces) = blocks::read_text_blocks(system);
        let around = Map::from_iter([("system".to_owned(), blocks::emptied(system))]);
        messages.push(Message {
            passthrough: passthrough::keep(NAME, around, pieces),
            ..Message::text(Role::System, content)
        });
        *system = Value::Null;
    }
    for (index, message) in READER.list(&fields, "messages")?.iter().enumerate() {
        let at = format!("/messages/{index}");
        blocks::read_message(&at, READER.object(&at, message)?, &mut messages)?;
    }
    let tools = TOOL.take(fields.get_mut("tools"), is_function);
    let choice = fields.get("tool_choice");
    let request = ChatRequest {
        tools: tools.into(),
        tool_choice: choice.and_then(read_choice).unwrap_or_default(),
        temperature: fields.get("temperature").and_then(Value::as_f64),
        max_tokens: fields.get("max_tokens").and_then(small),
        parallel_calls: choice.and_then(read_parallel),
        ..ChatRequest::new(READER.string(&fields, "model")?, messages)
    };
    fields.insert("model".to_owned(), Value::from(""));
    fields.insert("messages".to_owned(), json!([]));
    Ok(ChatRequest { passthrough: passthrough::keep(NAME, fields, Vec::new()), ..request })
}

/// Encodes a request's body.
fn encode_request(request: &ChatRequest, tools: Option<Value>) -> Value {
    let passthrough = passthrough::of(NAME, request.passthrough.as_ref());
    let mut body = passthrough.map(|passthrough| passthrough.fields.clone()).unwrap_or_default();
    body.insert("model".to_owned(), Value::from(request.model.as_str()));
    let limit = request.max_tokens.or(passthrough.is_none().then_some(MAX_TOKENS));
    put(&mut body, "max_tokens", limit.as_ref(), small, |number| json!(number));
    let (system, messages) = blocks::split_system(&request.messages);
    match blocks::write_system(system) {
        Some(system) => _ = body.insert("system".to_owned(), system),
        None => _ = body.shift_remove("system"),
    }
    body.insert("messages".to_owned(), blocks::write_messages(messages));
    passthrough::write_tools(&mut body, tools, &request.tools, name_of, |template, tool| TOOL.write(template, tool));
    let written = body.get("tool_choice");
    let read = written.and_then(read_choice).unwrap_or_default();
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
    tool.as_object().filter(|_| is_function(tool)).map(|tool| text(tool, "name").to_owned())
}

fn decode_response(body: &Value) -> Result<ChatResponse, WireError> {
    let document = READER.answer(body)?;
    let blocks = READER.list(document, "content")?;
    let message = blocks::read_blocks(blocks, Role::Assistant);
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
        usage: usage_beside_cache(body, USAGE),
    })
}

/// Members of an answer's usage.
const USAGE: [&str; 4] = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"];

/// Server tools have a dated type; ours have none, or `custom`.
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

//! Dialect of OpenAI's Responses API and compatible servers.
//!
//! The conversation is a flat list of items. Consecutive items of the model (messages, calls, reasoning, its own
//! searches) are one neutral message; calls and their results are linked by `call_id`. Unknown items stay in place.
//! There is no sampling seed.

use super::assembler::Assembler;
use super::document::{Reader, ToolShape, WireError, put, small, text, tokens};
use super::openai_responses_stream::Assembler as Items;
use super::{Dialect, UNCOMPARED, USUAL, ending, openai_responses_items as items, passthrough};
use crate::cassette::{Layout, Place, Profile};
use crate::provider::chat::{ChatRequest, ChatResponse, Finish, Message, Role, ToolChoice, ToolDefinition, Usage};
use serde_json::{Map, Value, json};

/// The dialect's name.
pub(crate) const NAME: &str = "openai-responses";

/// Path of its endpoint, below the base URL.
const ENDPOINT: &str = "/responses";

static PROFILE: Profile = Profile { name: NAME, version: 1, drop: UNCOMPARED, layout: &LAYOUT };

pub(super) static LAYOUT: Layout = Layout {
    model: Some("/model"),
    conversation: &["/input"],
    prompts: &[Place::at("/instructions").folded()],
    prompt_members: &["/instructions"],
    tools: Some("/tools"),
    tool_names: &["/name", "/type"],
    role: "/role",
    text: "/content",
    calls: &[Place::at("/call_id").when("type", &["function_call", "custom_tool_call"])],
    results: &[Place::at("/call_id").when("type", &["function_call_output", "custom_tool_call_output"])],
    continues: &["/previous_response_id", "/conversation"],
    references: Some(("type", &["item_reference"])),
    ..Layout::NONE
};

const TOOL: ToolShape = ToolShape { parameters: &["parameters"] };

/// The dialect.
pub const DIALECT: &Dialect = &Dialect {
    about: "OpenAI Responses; the base URL ends in `/v1`.",
    profile: &PROFILE,
    proxied: true,
    path: |_, _| ENDPOINT.to_owned(),
    endpoint: |_, path| ending(path, ENDPOINT),
    decode_request: |_, body| decode(NAME, body),
    encode: |request, tools| encode(NAME, request, tools),
    decode_response: |body| reply(NAME, body),
    assembler: || Assembler::of(Items::default()),
    ..USUAL
};

pub(super) fn decode(dialect: &'static str, body: &Value) -> Result<ChatRequest, WireError> {
    let reader = Reader(dialect);
    let mut fields = reader.object("", body)?.clone();
    let mut messages = Vec::new();
    if let Some(Value::String(instructions)) = fields.get_mut("instructions") {
        messages.push(Message::text(Role::System, std::mem::take(instructions)));
    }
    match fields.get("input") {
        Some(Value::String(said)) => messages.push(Message::text(Role::User, said.clone())),
        Some(Value::Array(listed)) => messages.extend(items::read(reader, listed)?),
        // A prompt template or a stored conversation may replace the input.
        None if fields.contains_key("prompt") || fields.contains_key("conversation") => {}
        other => return Err(reader.wrong("/input", "a string or a list", other)),
    }
    let tools = TOOL.take(fields.get_mut("tools"), is_callable);
    let request = ChatRequest {
        tools: tools.into(),
        tool_choice: fields.get("tool_choice").and_then(read_choice).unwrap_or_default(),
        temperature: fields.get("temperature").and_then(Value::as_f64),
        max_tokens: fields.get("max_output_tokens").and_then(small),
        parallel_calls: fields.get("parallel_tool_calls").and_then(Value::as_bool),
        ..ChatRequest::new(text(&fields, "model"), messages)
    };
    for (key, hole) in [("model", json!("")), ("input", json!([]))] {
        if let Some(place) = fields.get_mut(key) {
            *place = if place.is_string() { json!("") } else { hole };
        }
    }
    Ok(ChatRequest { passthrough: passthrough::keep(dialect, fields, Vec::new()), ..request })
}

pub(super) fn encode(dialect: &'static str, request: &ChatRequest, tools: Option<Value>) -> Value {
    let passthrough = passthrough::of(dialect, request.passthrough.as_ref());
    let mut body = passthrough.map(|passthrough| passthrough.fields.clone()).unwrap_or_default();
    if !request.model.is_empty() || body.contains_key("model") {
        body.insert("model".to_owned(), Value::from(request.model.as_str()));
    }
    // A leading system message becomes the instructions, unless it was decoded from an item.
    let mut messages = &request.messages[..];
    let instructions = messages
        .first()
        .filter(|first| first.role == Role::System && passthrough::of(dialect, first.passthrough.as_ref()).is_none());
    if let Some(first) = instructions {
        body.insert("instructions".to_owned(), Value::from(first.content.as_str()));
        messages = &messages[1..];
    } else if body.get("instructions").is_some_and(Value::is_string) {
        body.shift_remove("instructions");
    }
    match (body.get("input"), messages) {
        (Some(Value::String(_)), [only]) if only.role == Role::User && only.passthrough.is_none() => {
            body.insert("input".to_owned(), Value::from(only.content.as_str()));
        }
        (None, []) => {}
        _ => _ = body.insert("input".to_owned(), items::write(dialect, messages)),
    }
    passthrough::write_tools(&mut body, tools, &request.tools, name_of, write_tool);
    let ours = passthrough.is_none() && !request.tools.is_empty();
    if ours || body.get("tool_choice").and_then(read_choice).unwrap_or_default() != request.tool_choice {
        let choice = match &request.tool_choice {
            ToolChoice::Auto => json!("auto"),
            ToolChoice::Required => json!("required"),
            ToolChoice::None => json!("none"),
            ToolChoice::Named(name) => {
                let mut tools = body.get("tools").and_then(Value::as_array).into_iter().flatten();
                let kind = tools.find(|tool| name_of(tool).as_ref() == Some(name)).and_then(|tool| tool.get("type"));
                json!({"type": kind.cloned().unwrap_or_else(|| json!("function")), "name": name})
            }
        };
        body.insert("tool_choice".to_owned(), choice);
    }
    put(&mut body, "parallel_tool_calls", request.parallel_calls.as_ref(), Value::as_bool, |flag| json!(flag));
    put(&mut body, "temperature", request.temperature.as_ref(), Value::as_f64, |number| json!(number));
    put(&mut body, "max_output_tokens", request.max_tokens.as_ref(), small, |number| json!(number));
    Value::Object(body)
}

fn name_of(tool: &Value) -> Option<String> {
    tool.as_object().filter(|_| is_callable(tool)).map(|tool| text(tool, "name").to_owned())
}

fn write_tool(template: Option<Value>, tool: &ToolDefinition) -> Value {
    let ours = || Map::from_iter([("type".to_owned(), Value::from("function")), ("strict".to_owned(), json!(false))]);
    let template = template.and_then(|template| template.as_object().cloned()).unwrap_or_else(ours);
    Value::Object(TOOL.fill(tool, template))
}

/// Whether the caller runs the tool: a function, or a custom tool, which takes any text. The service runs the others.
fn is_callable(tool: &Value) -> bool {
    tool.get("type").is_some_and(|kind| kind == "function" || kind == "custom")
}

fn read_choice(value: &Value) -> Option<ToolChoice> {
    match value.as_str() {
        Some("auto") => Some(ToolChoice::Auto),
        Some("required") => Some(ToolChoice::Required),
        Some("none") => Some(ToolChoice::None),
        Some(_) => None,
        None if is_callable(value) => Some(ToolChoice::Named(value.get("name")?.as_str()?.to_owned())),
        // A list of allowed tools has its own mode; a server tool has no neutral form.
        None => read_choice(value.get("mode")?),
    }
}

pub(super) fn reply(dialect: &'static str, body: &Value) -> Result<ChatResponse, WireError> {
    if let Some(reported) = super::error::reported(body).or_else(|| super::error::broken_off(body)) {
        return Err(reported);
    }
    let reader = Reader(dialect);
    let document = reader.object("", body)?;
    let output = reader.list(document, "output")?;
    let message = items::read_turn(dialect, output);
    let status = text(document, "status");
    let reason = body.pointer("/incomplete_details/reason").and_then(Value::as_str);
    Ok(ChatResponse {
        model: text(document, "model").to_owned(),
        refusal: refusal(output),
        finish: match (status, reason) {
            ("completed" | "", _) if !message.calls.is_empty() => Finish::ToolCalls,
            ("completed" | "", _) => Finish::Stop,
            ("incomplete", Some("max_output_tokens")) => Finish::Length,
            ("incomplete", Some("content_filter")) => Finish::ContentFilter,
            ("incomplete", Some(reason)) => Finish::Other(reason.to_owned()),
            (status, _) => Finish::Other(status.to_owned()),
        },
        passthrough: message.passthrough,
        content: message.content,
        calls: message.calls,
        usage: usage(body),
    })
}

fn refusal(output: &[Value]) -> Option<String> {
    let parts = output.iter().filter_map(|item| item.get("content")?.as_array()).flatten();
    let words: Vec<&str> = parts.filter_map(|part| part.get("refusal")?.as_str()).collect();
    (!words.is_empty()).then(|| words.concat())
}

fn usage(body: &Value) -> Usage {
    let Some(usage) = body.get("usage") else { return Usage::default() };
    Usage {
        input: tokens(usage, "/input_tokens"),
        cached: tokens(usage, "/input_tokens_details/cached_tokens"),
        written: None,
        output: tokens(usage, "/output_tokens"),
    }
}

//! Dialect of OpenAI Chat Completions, for OpenAI and compatible servers.
//!
//! These deviations are always accepted: content as a list of parts, arguments as an object, usage below `x_groq`,
//! cached tokens under four names, reasoning that `completion_tokens` omits, calls without an index, requests with the
//! model in the path and answers of a content filter (Azure), and the format before tools (`legacy`).

use super::assembler::Assembler;
use super::call_ids::CallIds;
use super::document::{Reader, WireError, put, small, text};
use super::framing::Framing;
use super::openai_chat_stream::Assembler as Chunks;
use super::openai_chat_tools::{
    TOOL, blank_tool, name_of, read_calls, read_choice, read_tools, write_call, write_choice, write_tool,
};
use super::passthrough::{self, Filled};
use super::{Dialect, UNCOMPARED, ending, openai_chat_answer as answer, openai_chat_legacy as legacy};
use crate::cassette::{Layout, Place, Profile};
use crate::provider::chat::{ChatRequest, Message, Piece, Role};
use crate::settings::{Auth, Quirks};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The dialect's name.
pub(super) const NAME: &str = "openai-chat";

/// Path of its endpoint, below the base URL.
const ENDPOINT: &str = "/chat/completions";

static PROFILE: Profile = Profile { name: NAME, version: 1, drop: UNCOMPARED, layout: &LAYOUT };

pub(super) static LAYOUT: Layout = Layout {
    model: Some("/model"),
    conversation: &["/messages"],
    system: Some(("role", &["system", "developer"])),
    tools: Some("/tools"),
    tool_names: &["/function/name", "/custom/name", "/name", "/type"],
    role: "/role",
    text: "/content",
    calls: &[Place::at("/tool_calls/*/id").folded()],
    call_names: &[Place::at("/tool_calls/*/function/name"), Place::at("/tool_calls/*/custom/name")],
    results: &[Place::at("/tool_call_id").when("role", &["tool"]).folded()],
    ..Layout::NONE
};

/// The dialect.
pub const DIALECT: &Dialect = &Dialect {
    about: "OpenAI Chat Completions, and the many servers that speak it; the base URL ends in `/v1`.",
    profile: &PROFILE,
    auth: Auth::Bearer,
    headers: &[],
    searches: false,
    proxied: true,
    retired: false,
    own_host: None,
    framing: Framing::Events,
    path: |_, _| ENDPOINT.to_owned(),
    endpoint: |_, path| ending(path, ENDPOINT),
    decode_request: |path, body| {
        let mut request = decode(NAME, body)?;
        if request.model.is_empty() {
            deployment(path).unwrap_or_default().clone_into(&mut request.model);
        }
        Ok(request)
    },
    encode: |request, tools| encode(NAME, request, tools),
    asks_for_stream: |_, body| body.get("stream") == Some(&Value::Bool(true)),
    ask_for_stream: |fields| {
        fields.insert("stream".to_owned(), json!(true));
        fields.insert("stream_options".to_owned(), json!({"include_usage": true}));
    },
    apply_quirks: Quirks::chat,
    decode_response: |body| answer::read(NAME, body),
    encode_error: |_, code, message| json!({"error": {"message": message, "type": code, "param": null, "code": code}}),
    assembler: || Assembler::of(Chunks::default()),
};

/// The deployment in an Azure path.
fn deployment(path: &str) -> Option<&str> {
    let name = path.split_once("/deployments/")?.1.split(['/', '?']).next()?;
    Some(name).filter(|name| !name.is_empty())
}

pub(super) fn decode(dialect: &'static str, body: &Value) -> Result<ChatRequest, WireError> {
    let reader = Reader(dialect);
    let mut fields = reader.object("", body)?.clone();
    let model = match fields.get("model") {
        // Azure names the model only in the path.
        None | Some(Value::Null) => String::new(),
        Some(_) => reader.string(&fields, "model")?.to_owned(),
    };
    let mut ids = CallIds::default();
    let listed = reader.list(&fields, "messages")?;
    let messages = listed
        .iter()
        .enumerate()
        .map(|(index, message)| {
            let at = format!("/messages/{index}");
            read_message(reader, &at, reader.object(&at, message)?, &mut ids)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let functions = legacy::take_functions(&mut fields, &TOOL);
    let tools = fields.get("tools").and_then(Value::as_array).map_or(functions, |tools| read_tools(tools));
    let choice = fields.get("tool_choice").and_then(read_choice);
    let choice = choice.or_else(|| if legacy::is_in(&fields) { legacy::read_choice(&fields) } else { None });
    let request = ChatRequest {
        tools: tools.into(),
        tool_choice: choice.unwrap_or_default(),
        temperature: fields.get("temperature").and_then(Value::as_f64),
        max_tokens: ["max_completion_tokens", "max_tokens"].iter().find_map(|key| small(fields.get(*key)?)),
        seed: fields.get("seed").and_then(small),
        parallel_calls: fields.get("parallel_tool_calls").and_then(Value::as_bool),
        ..ChatRequest::new(model, messages)
    };
    if fields.get("model").is_some_and(Value::is_string) {
        fields.insert("model".to_owned(), Value::from(""));
    }
    fields.insert("messages".to_owned(), json!([]));
    if let Some(Value::Array(tools)) = fields.get_mut("tools") {
        tools.iter_mut().for_each(blank_tool);
    }
    Ok(ChatRequest { passthrough: passthrough::keep(dialect, fields, Vec::new()), ..request })
}

pub(super) fn encode(dialect: &'static str, request: &ChatRequest, tools: Option<Value>) -> Value {
    let passthrough = passthrough::of(dialect, request.passthrough.as_ref());
    let mut body = passthrough.map(|passthrough| passthrough.fields.clone()).unwrap_or_default();
    // A request decoded without a model has it in its path.
    if passthrough.is_none() || body.get("model").is_some_and(Value::is_string) {
        body.insert("model".to_owned(), Value::from(request.model.as_str()));
    }
    let names = legacy::names(dialect, &request.messages);
    body.insert(
        "messages".to_owned(),
        request.messages.iter().map(|message| write_message(dialect, message, &names)).collect(),
    );
    if !legacy::write_functions(&mut body, &request.tools, &request.tool_choice, &TOOL) {
        passthrough::write_tools(&mut body, tools, &request.tools, name_of, write_tool);
        let ours = passthrough.is_none() && !request.tools.is_empty();
        if ours || body.get("tool_choice").and_then(read_choice).unwrap_or_default() != request.tool_choice {
            let choice = write_choice(&request.tool_choice, body.get("tools"));
            body.insert("tool_choice".to_owned(), choice);
        }
    }
    // Servers reject the flag in a request without tools.
    let parallel = request.parallel_calls.filter(|_| passthrough.is_some() || !request.tools.is_empty());
    put(&mut body, "parallel_tool_calls", parallel.as_ref(), Value::as_bool, |flag| json!(flag));
    put(&mut body, "temperature", request.temperature.as_ref(), Value::as_f64, |number| json!(number));
    let limit = if body.contains_key("max_completion_tokens") { "max_completion_tokens" } else { "max_tokens" };
    put(&mut body, limit, request.max_tokens.as_ref(), small, |number| json!(number));
    put(&mut body, "seed", request.seed.as_ref(), small, |number| json!(number));
    Value::Object(body)
}

fn read_message(reader: Reader, at: &str, wire: &Map<String, Value>, ids: &mut CallIds) -> Result<Message, WireError> {
    let role = match wire.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => Role::Tool,
        _ => return Err(reader.wrong(&format!("{at}/role"), "a role", wire.get("role"))),
    };
    let mut fields = wire.clone();
    let (content, mut pieces) = read_content(wire.get("content"));
    let mut calls = read_calls(wire, &mut pieces);
    legacy::read_call(wire, &mut calls, &mut pieces, ids);
    legacy::blank_call(&mut fields);
    match fields.get_mut("content") {
        Some(Value::Array(parts)) => parts.clear(),
        Some(Value::String(content)) => content.clear(),
        _ => {}
    }
    if let Some(Value::Array(calls)) = fields.get_mut("tool_calls") {
        calls.clear();
    }
    let answers = wire.get("tool_call_id").and_then(Value::as_str).map(str::to_owned);
    if answers.is_some() {
        fields.insert("tool_call_id".to_owned(), Value::from(""));
    }
    let by_name = wire.get("role").is_some_and(|role| role == "function");
    let answers = answers.or_else(|| by_name.then(|| ids.of_result(text(wire, "name"), None)));
    Ok(Message { role, content, calls, answers, passthrough: passthrough::keep(reader.0, fields, pieces) })
}

/// The text of a content, and its pieces if it is a list.
pub(super) fn read_content(content: Option<&Value>) -> (String, Vec<Piece>) {
    match content {
        Some(Value::String(content)) => (content.clone(), Vec::new()),
        Some(Value::Array(parts)) => {
            let mut content = String::new();
            let pieces = parts.iter().map(|part| match part.get("text").and_then(Value::as_str) {
                Some(text) if part.get("type").is_none_or(|kind| kind == "text") => {
                    content.push_str(text);
                    let mut wire = part.clone();
                    wire["text"] = Value::from("");
                    Piece::Text { bytes: text.len(), wire }
                }
                _ => Piece::Other { wire: part.clone() },
            });
            let pieces = pieces.collect();
            (content, pieces)
        }
        _ => (String::new(), Vec::new()),
    }
}

fn write_message(dialect: &str, message: &Message, names: &BTreeMap<&str, &str>) -> Value {
    let passthrough = passthrough::of(dialect, message.passthrough.as_ref());
    let mut wire = passthrough.map(|passthrough| passthrough.fields.clone()).unwrap_or_default();
    let function = message.answers.as_deref().and_then(|id| names.get(id)).filter(|_| passthrough.is_none());
    if let Some(name) = function {
        wire.insert("role".to_owned(), Value::from("function"));
        wire.insert("name".to_owned(), Value::from(*name));
        wire.insert("content".to_owned(), Value::from(""));
    } else if passthrough.is_none() {
        wire.insert("role".to_owned(), Value::from(message.role.as_str()));
        if message.role == Role::Tool {
            wire.insert("tool_call_id".to_owned(), Value::from(""));
        }
        let only_calls = message.content.is_empty() && !message.calls.is_empty();
        wire.insert("content".to_owned(), if only_calls { Value::Null } else { Value::from("") });
    }
    let filled = passthrough::fill(message, passthrough);
    let list = matches!(wire.get("content"), Some(Value::Array(_)));
    if list {
        let parts = filled.iter().filter_map(|piece| match piece {
            Filled::Text(text, Some(template)) => {
                let mut part = (*template).clone();
                part["text"] = Value::from(*text);
                Some(part)
            }
            Filled::Text(text, None) => Some(json!({"type": "text", "text": text})),
            Filled::Other(part) => Some((*part).clone()),
            Filled::Call(..) => None,
        });
        wire.insert("content".to_owned(), parts.collect());
    } else if !message.content.is_empty() {
        wire.insert("content".to_owned(), Value::from(message.content.as_str()));
    }
    let mut calls: Vec<Value> = Vec::new();
    for piece in &filled {
        match piece {
            Filled::Call(call, Some(template)) if legacy::is_place(template) => {
                legacy::write_call(&mut wire, call, template);
            }
            Filled::Call(call, template) => calls.push(write_call(call, *template)),
            Filled::Text(..) | Filled::Other(_) => {}
        }
    }
    legacy::drop_blank(&mut wire);
    if !calls.is_empty() {
        wire.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    if let Some(answers) = message.answers.as_ref().filter(|_| wire.contains_key("tool_call_id")) {
        wire.insert("tool_call_id".to_owned(), Value::from(answers.as_str()));
    }
    Value::Object(wire)
}

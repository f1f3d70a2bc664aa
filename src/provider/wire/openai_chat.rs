//! OpenAI Chat Completions, as its own server and the compatible ones write it.
//!
//! Departures that are read without being asked for: content as a list of parts, arguments as an object, usage below
//! `x_groq`, cached tokens under four names, reasoning that `completion_tokens` leaves out, calls without an
//! index, requests whose model stands in the path and answers of a content filter (Azure), the words before tools (`legacy`).

use super::call_ids::CallIds;
use super::document::{Reader, ToolShape, WireError, put, small, text, tokens};
use super::openai_chat_legacy as legacy;
use super::passthrough::{self, Filled};
use crate::chat::{
    ChatRequest, ChatResponse, Finish, Message, Passthrough, Piece, Role, ToolCall, ToolChoice, ToolDefinition, Usage,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

pub use super::openai_chat_stream::Assembler;

/// The dialect's name.
pub const NAME: &str = crate::settings::Dialect::OpenAiChat.name();

const TOOL: ToolShape = ToolShape { parameters: &["parameters"] };

/// What servers want back beside text and calls: reasoning that a signature protects.
const SENT_BACK: [&str; 3] = ["reasoning_details", "reasoning_content", "thinking_blocks"];

/// Reads a request's body.
pub fn decode_request(body: &Value) -> Result<ChatRequest, WireError> {
    decode(NAME, body)
}

/// Writes a request's body.
pub fn encode_request(request: &ChatRequest, tools: Option<Value>) -> Value {
    encode(NAME, request, tools)
}

/// Reads a whole response.
pub fn decode_response(body: &Value) -> Result<ChatResponse, WireError> {
    reply(NAME, body)
}

pub(super) fn decode(dialect: &'static str, body: &Value) -> Result<ChatRequest, WireError> {
    let reader = Reader(dialect);
    let mut fields = reader.object("", body)?.clone();
    let model = match fields.get("model") {
        // Azure names the model in the path alone.
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
    let tools = fields.get("tools").and_then(Value::as_array);
    let tools = tools.map_or_else(|| legacy::read_functions(&fields, &TOOL), |tools| read_tools(tools));
    let choice = fields.get("tool_choice").and_then(read_choice).or_else(|| legacy::read_choice(&fields));
    let request = ChatRequest {
        model,
        messages,
        tools: tools.into(),
        tool_choice: choice.unwrap_or(ToolChoice::Auto),
        temperature: fields.get("temperature").and_then(Value::as_f64),
        max_tokens: ["max_completion_tokens", "max_tokens"].iter().find_map(|key| small(fields.get(*key)?)),
        seed: fields.get("seed").and_then(small),
        parallel_calls: fields.get("parallel_tool_calls").and_then(Value::as_bool),
        passthrough: None,
    };
    if fields.get("model").is_some_and(Value::is_string) {
        fields.insert("model".to_owned(), Value::from(""));
    }
    fields.insert("messages".to_owned(), json!([]));
    if let Some(Value::Array(tools)) = fields.get_mut("tools") {
        tools.iter_mut().for_each(blank_tool);
    }
    legacy::blank_functions(&mut fields, &TOOL);
    Ok(ChatRequest { passthrough: passthrough::keep(dialect, fields, Vec::new()), ..request })
}

pub(super) fn encode(dialect: &'static str, request: &ChatRequest, tools: Option<Value>) -> Value {
    let passthrough = passthrough::of(dialect, request.passthrough.as_ref());
    let mut body = passthrough.map(|passthrough| passthrough.fields.clone()).unwrap_or_default();
    // What was read without a model has it in its path.
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
        if ours || body.get("tool_choice").and_then(read_choice).unwrap_or(ToolChoice::Auto) != request.tool_choice {
            body.insert("tool_choice".to_owned(), write_choice(&request.tool_choice));
        }
    }
    // Servers refuse the flag in a request without tools.
    let parallel = request.parallel_calls.filter(|_| passthrough.is_some() || !request.tools.is_empty());
    put(&mut body, "parallel_tool_calls", parallel.as_ref(), Value::as_bool, |flag| json!(flag));
    put(&mut body, "temperature", request.temperature.as_ref(), Value::as_f64, |number| json!(number));
    let limit = if body.contains_key("max_completion_tokens") { "max_completion_tokens" } else { "max_tokens" };
    put(&mut body, limit, request.max_tokens.as_ref(), small, |number| json!(number));
    put(&mut body, "seed", request.seed.as_ref(), small, |number| json!(number));
    Value::Object(body)
}

fn read_tools(tools: &[Value]) -> Vec<ToolDefinition> {
    tools.iter().filter_map(|tool| Some(TOOL.read(tool.get("function")?.as_object()?))).collect()
}

fn blank_tool(tool: &mut Value) {
    if let Some(Value::Object(function)) = tool.get_mut("function") {
        *function = TOOL.template(function);
    }
}

fn name_of(template: &Value) -> Option<String> {
    template.get("function")?.get("name")?.as_str().map(str::to_owned)
}

fn write_tool(template: Option<Value>, tool: &ToolDefinition) -> Value {
    let mut wire = template.unwrap_or_else(|| json!({"type": "function"}));
    let function = wire.get_mut("function").and_then(Value::as_object_mut).map(std::mem::take);
    wire["function"] = Value::Object(TOOL.fill(tool, function.unwrap_or_default()));
    wire
}

pub(super) fn read_choice(value: &Value) -> Option<ToolChoice> {
    match value.as_str() {
        Some("auto") => Some(ToolChoice::Auto),
        // Mistral's word.
        Some("required" | "any") => Some(ToolChoice::Required),
        Some("none") => Some(ToolChoice::None),
        Some(_) => None,
        None => {
            // A named function, or a list of those allowed with a mode of its own.
            let name = value.pointer("/function/name").and_then(Value::as_str);
            name.map(|name| ToolChoice::Named(name.to_owned()))
                .or_else(|| read_choice(value.pointer("/allowed_tools/mode")?))
        }
    }
}

fn write_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::Required => json!("required"),
        ToolChoice::None => json!("none"),
        ToolChoice::Named(name) => json!({"type": "function", "function": {"name": name}}),
    }
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
    let answers = answers.or_else(|| by_name.then(|| ids.answer(text(wire, "name"))));
    Ok(Message { role, content, calls, answers, passthrough: passthrough::keep(reader.0, fields, pieces) })
}

/// The text of a content, and its pieces where it is a list.
fn read_content(content: Option<&Value>) -> (String, Vec<Piece>) {
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

fn read_calls(message: &Map<String, Value>, pieces: &mut Vec<Piece>) -> Vec<ToolCall> {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    calls
        .into_iter()
        .flatten()
        .map(|wire| {
            let mut template = wire.clone();
            for pointer in ["/id", "/function/name", "/function/arguments"] {
                match template.pointer_mut(pointer) {
                    Some(Value::String(text)) => text.clear(),
                    Some(Value::Object(object)) => object.clear(),
                    _ => {}
                }
            }
            pieces.push(Piece::Call { wire: template });
            let string = |pointer: &str| wire.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            let arguments = match wire.pointer("/function/arguments") {
                Some(object @ Value::Object(_)) => object.to_string(),
                _ => string("/function/arguments"),
            };
            ToolCall { id: string("/id"), name: string("/function/name"), arguments }
        })
        .collect()
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

fn write_call(call: &ToolCall, template: Option<&Value>) -> Value {
    let Some(template) = template else {
        return json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}});
    };
    let mut wire = template.clone();
    let arguments = match wire.pointer("/function/arguments") {
        Some(Value::Object(_)) => passthrough::arguments_object(&call.arguments),
        _ => Value::from(call.arguments.as_str()),
    };
    let words = [("/id", Value::from(call.id.as_str())), ("/function/name", Value::from(call.name.as_str()))];
    for (pointer, word) in words.into_iter().chain([("/function/arguments", arguments)]) {
        match wire.pointer_mut(pointer) {
            Some(place) if !(place.is_null() && word == "") => *place = word,
            _ => {}
        }
    }
    wire
}

pub(super) fn reply(dialect: &'static str, body: &Value) -> Result<ChatResponse, WireError> {
    if let Some(message) = super::error::filtered(body) {
        return Ok(ChatResponse {
            model: text(body.as_object().unwrap_or(&Map::new()), "model").to_owned(),
            content: String::new(),
            refusal: Some(message),
            calls: Vec::new(),
            finish: Finish::ContentFilter,
            usage: usage(body),
            passthrough: None,
        });
    }
    if let Some(reported) = super::error::reported(body) {
        return Err(reported);
    }
    let reader = Reader(dialect);
    let document = reader.object("", body)?;
    let choice = reader.list(document, "choices")?.first();
    let choice = choice.ok_or_else(|| reader.wrong("/choices/0", "a choice", None))?;
    let filtered = choice.get("finish_reason").is_some_and(|reason| reason == "content_filter");
    let none = Map::new();
    let message = match choice.get("message") {
        Some(Value::Object(message)) => message,
        // Azure's filter leaves nothing of an answer that it stopped.
        None | Some(Value::Null) if filtered => &none,
        other => return Err(reader.wrong("/choices/0/message", "an object", other)),
    };
    let (content, mut pieces) = read_content(message.get("content"));
    let mut calls = read_calls(message, &mut pieces);
    legacy::read_call(message, &mut calls, &mut pieces, &mut CallIds::default());
    let refusal = Some(text(message, "refusal")).filter(|words| !words.is_empty()).map(str::to_owned);
    let refusal = refusal.or_else(|| (filtered && message.is_empty()).then(|| filtered_for(choice)));
    Ok(ChatResponse {
        model: text(document, "model").to_owned(),
        passthrough: sent_back(dialect, message, pieces),
        finish: finish(choice.get("finish_reason").and_then(Value::as_str), !calls.is_empty()),
        content,
        refusal,
        calls,
        usage: usage(body),
    })
}

/// What a content filter says that it found.
fn filtered_for(choice: &Value) -> String {
    let results = choice.get("content_filter_results").and_then(Value::as_object).into_iter().flatten();
    let found: Vec<&str> =
        results.filter(|(_, result)| result["filtered"] == true).map(|(name, _)| name.as_str()).collect();
    if found.is_empty() {
        "the content filter removed the answer".to_owned()
    } else {
        format!("the content filter removed the answer: {}", found.join(", "))
    }
}

/// What goes back with the reply: signed reasoning, a list of parts, and what a call carries beside its words.
fn sent_back(dialect: &str, message: &Map<String, Value>, pieces: Vec<Piece>) -> Option<Arc<Passthrough>> {
    let mut fields = Map::from_iter([("role".to_owned(), Value::from("assistant"))]);
    let list = message.get("content").is_some_and(Value::is_array);
    let none = message.get("content").is_none_or(|content| content.is_null() || content == "");
    let content = if list {
        json!([])
    } else if none {
        Value::Null
    } else {
        json!("")
    };
    fields.insert("content".to_owned(), content);
    for key in SENT_BACK {
        // DeepSeek wants its reasoning back between a call and its result, and refuses it in a finished turn.
        let wanted = key != "reasoning_content" || pieces.iter().any(|piece| matches!(piece, Piece::Call { .. }));
        if let Some(value) = message.get(key).filter(|value| wanted && !value.is_null()) {
            fields.insert(key.to_owned(), value.clone());
        }
    }
    let signed = pieces.iter().any(
        |piece| matches!(piece, Piece::Call { wire } if wire.get("extra_content").is_some() || legacy::is_place(wire)),
    );
    if fields.len() == 2 && !list && !signed {
        return None;
    }
    let pieces = pieces.into_iter().map(|piece| match piece {
        Piece::Call { mut wire } => {
            // The index is a word of streams; servers reject it in a request.
            wire.as_object_mut().map(|call| call.shift_remove("index"));
            Piece::Call { wire }
        }
        piece => piece,
    });
    passthrough::keep(dialect, fields, pieces.collect())
}

fn finish(reason: Option<&str>, calls: bool) -> Finish {
    match reason {
        Some("stop") => Finish::Stop,
        Some("tool_calls" | "function_call") => Finish::ToolCalls,
        Some("length") => Finish::Length,
        Some("content_filter") => Finish::ContentFilter,
        Some(other) => Finish::Other(other.to_owned()),
        None if calls => Finish::ToolCalls,
        None => Finish::Other(String::new()),
    }
}

fn usage(body: &Value) -> Usage {
    let usage = body.get("usage").filter(|usage| usage.is_object()).or_else(|| body.pointer("/x_groq/usage"));
    let Some(usage) = usage else { return Usage::default() };
    let input = tokens(usage, "/prompt_tokens");
    let output = tokens(usage, "/completion_tokens");
    let reasoning = tokens(usage, "/completion_tokens_details/reasoning_tokens").unwrap_or(0);
    // xAI counts reasoning beside the completion; only the total shows it.
    let apart = tokens(usage, "/total_tokens").zip(input).zip(output).is_some_and(|((total, input), output)| {
        reasoning > 0 && input.checked_add(output).and_then(|sum| sum.checked_add(reasoning)) == Some(total)
    });
    let cached =
        ["/prompt_tokens_details/cached_tokens", "/cached_tokens", "/num_cached_tokens", "/prompt_cache_hit_tokens"];
    Usage {
        input,
        cached: cached.iter().find_map(|pointer| tokens(usage, pointer)),
        output: output.map(|output| if apart { output + reasoning } else { output }),
    }
}

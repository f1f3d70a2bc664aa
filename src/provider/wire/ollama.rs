//! Dialect of Ollama's own API: `/api/chat`, and `/api/generate` for a prompt without a conversation.
//!
//! Tools are written as OpenAI's; arguments of calls are objects. Calls have ids in newer versions only: a call without
//! one gets an id from its name and position, which is not sent. Sampling parameters are in `options`. A stream is the
//! default, with one JSON document in each line. Ollama ignores a choice of tools; servers that know one read OpenAI's.

use super::assembler::{Assemble, Assembler};
use super::call_ids::{CallIds, generated};
use super::document::{Reader, WireError, put, small, text, tokens, with_member};
use super::framing::Framing;
use super::openai_chat_tools::{blank_tool, name_of, read_choice, read_tools, write_choice, write_tool};
use super::{Dialect, USUAL, passthrough};
use crate::cassette::{Layout, Place, Profile};
use crate::provider::chat::{ChatRequest, ChatResponse, Finish, Message, Role, ToolCall, Usage};
use serde_json::{Map, Value, json};

const NAME: &str = "ollama";
const READER: Reader = Reader(NAME);
const CHAT: &str = "/api/chat";
const GENERATE: &str = "/api/generate";

static PROFILE: Profile = Profile { name: NAME, version: 1, drop: &["/keep_alive"], layout: &LAYOUT };

// Results name functions, which may be called repeatedly, so there are no calls and results to check.
static LAYOUT: Layout = Layout {
    model: Some("/model"),
    conversation: &["/messages", "/prompt"],
    system: Some(("role", &["system"])),
    prompts: &[Place::at("/system")],
    prompt_members: &["/system"],
    tools: Some("/tools"),
    tool_names: &["/function/name", "/type"],
    role: "/role",
    text: "/content",
    call_names: &[Place::at("/tool_calls/*/function/name")],
    ..Layout::NONE
};

/// The dialect.
pub(crate) const DIALECT: &Dialect = &Dialect {
    about: "Ollama's own API; the base URL is `http://localhost:11434`.",
    profile: &PROFILE,
    proxied: true,
    framing: Framing::Lines,
    path: |_, _| CHAT.to_owned(),
    // Many applications have a path `/api/chat`, so the address must be Ollama's port or host.
    endpoint: |host, path| {
        let is_ollama = host.ends_with(":11434") || host == "ollama.com";
        Some(path).filter(|path| is_ollama && [CHAT, GENERATE].contains(path))
    },
    decode_request: |_, body| decode_request(body),
    encode: encode_request,
    asks_for_stream: |_, body| body.get("stream") != Some(&Value::Bool(false)),
    decode_response,
    encode_error: |_, code, message| json!({"error": message, "code": code}),
    assembler: || Assembler::of(Lines::default()),
    ..USUAL
};

/// Decodes a request's body, of either path.
fn decode_request(body: &Value) -> Result<ChatRequest, WireError> {
    let mut fields = READER.object("", body)?.clone();
    let mut messages = Vec::new();
    if let (Some(Value::String(prompt)), None) = (fields.get("prompt"), fields.get("messages")) {
        let system = text(&fields, "system");
        messages.extend((!system.is_empty()).then(|| Message::text(Role::System, system)));
        messages.push(Message::text(Role::User, prompt.as_str()));
    } else {
        let mut ids = CallIds::default();
        for (index, message) in READER.list(&fields, "messages")?.iter().enumerate() {
            let at = format!("/messages/{index}");
            messages.push(read_message(&at, READER.object(&at, message)?, &mut ids)?);
        }
        fields.insert("messages".to_owned(), json!([]));
    }
    let option = |key: &str| fields.get("options").and_then(|options| options.get(key));
    let request = ChatRequest {
        tools: fields.get("tools").and_then(Value::as_array).map(|tools| read_tools(tools)).unwrap_or_default().into(),
        tool_choice: fields.get("tool_choice").and_then(read_choice).unwrap_or_default(),
        temperature: option("temperature").and_then(Value::as_f64),
        max_tokens: option("num_predict").and_then(small),
        seed: option("seed").and_then(small),
        ..ChatRequest::new(READER.string(&fields, "model")?, messages)
    };
    fields.insert("model".to_owned(), Value::from(""));
    if let Some(Value::Array(tools)) = fields.get_mut("tools") {
        tools.iter_mut().for_each(blank_tool);
    }
    Ok(ChatRequest { passthrough: passthrough::keep(NAME, fields, Vec::new()), ..request })
}

/// Encodes a request's body, of the path that it was decoded from, else of `/api/chat`.
fn encode_request(request: &ChatRequest, tools: Option<Value>) -> Value {
    let passthrough = passthrough::of(NAME, request.passthrough.as_ref());
    let mut body = passthrough.map(|passthrough| passthrough.fields.clone()).unwrap_or_default();
    body.insert("model".to_owned(), Value::from(request.model.as_str()));
    if passthrough.is_none() {
        body.insert("stream".to_owned(), json!(false));
    }
    if body.contains_key("prompt") && !body.contains_key("messages") {
        let said = |role| request.messages.iter().rev().find(|message| message.role == role);
        let words = [("system", said(Role::System)), ("prompt", said(Role::User))];
        for (key, message) in words.into_iter().filter_map(|(key, message)| Some((key, message?))) {
            body.insert(key.to_owned(), Value::from(message.content.as_str()));
        }
    } else {
        let messages = request.messages.iter().enumerate();
        let written = messages.map(|(index, message)| write_message(message, &request.messages[..index])).collect();
        body.insert("messages".to_owned(), written);
    }
    passthrough::write_tools(&mut body, tools, &request.tools, name_of, write_tool);
    if body.get("tool_choice").and_then(read_choice).unwrap_or_default() != request.tool_choice {
        let choice = write_choice(&request.tool_choice, body.get("tools"));
        body.insert("tool_choice".to_owned(), choice);
    }
    with_member(&mut body, "options", |options| {
        put(options, "temperature", request.temperature.as_ref(), Value::as_f64, |number| json!(number));
        put(options, "num_predict", request.max_tokens.as_ref(), small, |number| json!(number));
        put(options, "seed", request.seed.as_ref(), small, |number| json!(number));
    });
    Value::Object(body)
}

fn read_message(at: &str, wire: &Map<String, Value>, ids: &mut CallIds) -> Result<Message, WireError> {
    let role = match wire.get("role").and_then(Value::as_str) {
        Some("system") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        _ => {
            let expected = "system, user, assistant or tool";
            return Err(READER.wrong(&format!("{at}/role"), expected, wire.get("role")));
        }
    };
    let mut fields = wire.clone();
    let mut message = Message::text(role, text(wire, "content"));
    if let Some(Value::String(content)) = fields.get_mut("content") {
        content.clear();
    }
    for call in fields.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
        message.calls.push(read_call(call, ids));
    }
    if role == Role::Tool {
        let name = ["tool_name", "name"].map(|key| text(wire, key)).concat();
        message.answers = Some(ids.of_result(&name, given(fields.get_mut("tool_call_id"))));
    }
    message.passthrough = passthrough::keep(NAME, fields, Vec::new());
    Ok(message)
}

/// A given id, which is marked in its place.
fn given(id: Option<&mut Value>) -> Option<String> {
    let id = id.filter(|id| id.as_str().is_some_and(|id| !id.is_empty()))?;
    std::mem::replace(id, json!("*")).as_str().map(str::to_owned)
}

/// Reads a call, and leaves in its place what is not neutral; a given id is marked.
fn read_call(call: &mut Value, ids: &mut CallIds) -> ToolCall {
    let function = call.get("function");
    let name = function.and_then(|function| function.get("name")?.as_str()).unwrap_or_default().to_owned();
    let arguments = match function.and_then(|function| function.get("arguments")) {
        Some(Value::String(text)) => text.clone(),
        Some(arguments @ Value::Object(_)) => arguments.to_string(),
        _ => "{}".to_owned(),
    };
    let id = ids.of_call(&name, given(call.get_mut("id")));
    if let Some(Value::Object(arguments)) = call.pointer_mut("/function/arguments") {
        arguments.clear();
    }
    ToolCall { id, name, arguments }
}

fn write_message(message: &Message, before: &[Message]) -> Value {
    let passthrough = passthrough::of(NAME, message.passthrough.as_ref());
    let mut fields = passthrough.map(|passthrough| passthrough.fields.clone()).unwrap_or_default();
    fields.insert("role".to_owned(), Value::from(message.role.as_str()));
    if passthrough.is_none() || !message.content.is_empty() || fields.get("content").is_some_and(Value::is_string) {
        fields.insert("content".to_owned(), Value::from(message.content.as_str()));
    }
    let answers = message.answers.as_deref().unwrap_or_default();
    if fields.get("tool_call_id").is_some_and(|id| id == "*") {
        fields.insert("tool_call_id".to_owned(), Value::from(answers));
    } else if passthrough.is_none() && message.role == Role::Tool {
        let call = before.iter().rev().flat_map(|message| &message.calls).find(|call| call.id == answers);
        fields.insert("tool_name".to_owned(), Value::from(call.map_or(answers, |call| call.name.as_str())));
        // An id generated here is not sent.
        if call.is_none_or(|call| generated(call).is_none()) {
            fields.insert("tool_call_id".to_owned(), Value::from(answers));
        }
    }
    let templates = fields.get("tool_calls").and_then(Value::as_array).cloned().unwrap_or_default();
    if !message.calls.is_empty() {
        let calls = message.calls.iter().enumerate();
        let written = calls.map(|(index, call)| write_call(call, templates.get(index))).collect();
        fields.insert("tool_calls".to_owned(), written);
    } else if !templates.is_empty() {
        fields.shift_remove("tool_calls");
    }
    Value::Object(fields)
}

fn write_call(call: &ToolCall, template: Option<&Value>) -> Value {
    // A call without a function stays as it is.
    let odd = template.is_some_and(|template| template.get("function").is_none()) && call.name.is_empty();
    let template = template.filter(|template| odd || template.get("function").is_some_and(Value::is_object));
    let mut wire = template.cloned().unwrap_or_else(|| json!({"function": {"arguments": {}}}));
    if wire.get("id").is_some_and(|id| id == "*") || template.is_none() && generated(call).is_none() {
        wire["id"] = Value::from(call.id.as_str());
    }
    if odd {
        return wire;
    }
    wire["function"]["name"] = Value::from(call.name.as_str());
    match wire["function"].get("arguments") {
        Some(Value::String(_)) => wire["function"]["arguments"] = Value::from(call.arguments.as_str()),
        None if call.arguments == "{}" => {}
        _ => wire["function"]["arguments"] = passthrough::arguments_object(&call.arguments),
    }
    wire
}

/// Decodes a whole response, of either path.
fn decode_response(body: &Value) -> Result<ChatResponse, WireError> {
    let document = READER.answer(body)?;
    let message = match (document.get("message"), document.get("response")) {
        (Some(Value::Object(wire)), _) => read_message("/message", wire, &mut CallIds::default())?,
        (None, Some(Value::String(said))) => Message::text(Role::Assistant, said.as_str()),
        (found, _) => return Err(READER.wrong("/message", "a message", found)),
    };
    let done = document.get("done") == Some(&Value::Bool(true));
    let reason = document.get("done_reason").and_then(Value::as_str);
    let is_plain = message.calls.is_empty()
        && message.passthrough.as_ref().is_none_or(|passthrough| !passthrough.fields.contains_key("thinking"));
    Ok(ChatResponse {
        model: text(document, "model").to_owned(),
        finish: match reason.or(done.then_some("stop")) {
            Some("stop") if !message.calls.is_empty() => Finish::ToolCalls,
            Some("stop") => Finish::Stop,
            Some("length") => Finish::Length,
            other => Finish::Other(other.unwrap_or_default().to_owned()),
        },
        passthrough: if is_plain { None } else { message.passthrough },
        content: message.content,
        refusal: None,
        calls: message.calls,
        usage: Usage {
            input: tokens(body, "/prompt_eval_count"),
            output: tokens(body, "/eval_count"),
            ..Usage::default()
        },
    })
}

/// Assembles the lines of a stream: texts are joined, calls are listed, and of all else the last value stays.
#[derive(Debug, Default)]
struct Lines {
    fields: Map<String, Value>,
}

impl Assemble for Lines {
    fn push(&mut self, line: &Value) {
        for (key, value) in line.as_object().into_iter().flatten() {
            match (key.as_str(), value) {
                ("message", Value::Object(more)) => {
                    if let Value::Object(message) = self.fields.entry(key.clone()).or_insert_with(|| json!({})) {
                        more.iter().for_each(|(key, value)| add(message, key, value));
                    }
                }
                _ => add(&mut self.fields, key, value),
            }
        }
    }

    fn complete(&self) -> bool {
        self.fields.get("done") == Some(&Value::Bool(true))
    }

    fn document(&mut self) -> Value {
        Value::Object(std::mem::take(&mut self.fields))
    }
}

fn add(fields: &mut Map<String, Value>, key: &str, value: &Value) {
    match (key, fields.get_mut(key), value) {
        ("content" | "thinking" | "response", Some(Value::String(sum)), Value::String(more)) => sum.push_str(more),
        ("tool_calls", Some(Value::Array(calls)), Value::Array(more)) => calls.extend(more.iter().cloned()),
        _ => _ = fields.insert(key.to_owned(), value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_without_a_conversation_is_read_and_written_back() {
        let body =
            json!({"model": "m", "system": "Be brief.", "prompt": "Frost?", "options": {"seed": 7}, "raw": false});
        let request = DIALECT.decode_request(GENERATE, &body).expect("decodes");
        let said: Vec<_> = request.messages.iter().map(|message| (message.role, message.content.as_str())).collect();
        assert_eq!(said, [(Role::System, "Be brief."), (Role::User, "Frost?")]);
        assert_eq!(request.seed, Some(7));
        assert_eq!(DIALECT.encode_request(&request), body);
        let mut assembler = Lines::default();
        for line in [
            json!({"model": "m", "response": "Minus ", "done": false}),
            json!({"model": "m", "response": "five.", "done": true, "done_reason": "length", "eval_count": 4}),
        ] {
            assert!(!assembler.complete());
            assembler.push(&line);
        }
        assert!(assembler.complete());
        let reply = DIALECT.decode_response(&assembler.document()).expect("an answer");
        assert_eq!((reply.content.as_str(), reply.finish), ("Minus five.", Finish::Length));
        assert_eq!((reply.usage.input, reply.usage.output), (None, Some(4)), "no number is not zero");
    }

    #[test]
    fn a_stream_is_the_default_and_an_address_is_ollamas_by_its_port() {
        assert!(DIALECT.asks_for_stream(CHAT, &json!({})));
        assert!(!DIALECT.asks_for_stream(CHAT, &json!({"stream": false})));
        assert_eq!(DIALECT.endpoint("localhost:11434", CHAT), Some(CHAT));
        assert_eq!(DIALECT.endpoint("shop.example", CHAT), None, "many applications have this path");
    }

    #[test]
    fn a_call_without_an_id_is_answered_by_its_name_and_no_id_is_sent() {
        let call =
            json!({"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]});
        let reply = DIALECT.decode_response(&json!({"model": "m", "message": call, "done": true})).expect("an answer");
        assert_eq!((reply.calls[0].id.as_str(), reply.finish.clone()), ("f#0", Finish::ToolCalls));
        let result = Message::tool_result(reply.calls[0].id.clone(), "found");
        let written = [reply.to_message(), result.clone()];
        assert_eq!(write_message(&written[0], &[]), call);
        let expected = json!({"role": "tool", "tool_name": "f", "content": "found"});
        assert_eq!(write_message(&result, &written[..1]), expected);
    }
}

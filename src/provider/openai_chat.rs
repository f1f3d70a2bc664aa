//! OpenAI Chat Completions, and the many servers that speak it.

use super::failure::{error_of, failure, from_error, malformed};
use super::retry::{Failure, RetryPolicy, attempt};
use super::{Attempted, ChatModel};
use crate::cassette::Redactor;
use crate::chat::{ChatRequest, ChatResponse, Finish, Message, Role, ToolCall, ToolChoice, Usage};
use crate::clock::{BoxFuture, Clock};
use crate::transport::{HttpRequest, HttpResponse, Service, Transport};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where a server departs from the dialect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quirks {
    /// Sends `max_completion_tokens` instead of `max_tokens`.
    pub max_completion_tokens: bool,
}

/// A chat model behind `POST {base}/chat/completions`.
pub struct OpenAiChat {
    transport: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    policy: RetryPolicy,
    quirks: Quirks,
    redactor: Redactor,
    calls: AtomicU64,
}

impl OpenAiChat {
    /// A model reached through `transport`; one for each trial, as the waits between retries count its calls.
    pub fn new(transport: Arc<dyn Transport>, clock: Arc<dyn Clock>, policy: RetryPolicy, quirks: Quirks) -> Self {
        Self { transport, clock, policy, quirks, redactor: Redactor::default(), calls: AtomicU64::new(0) }
    }

    /// With known secrets, for the service's error messages.
    #[must_use]
    pub fn with_redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }
}

impl ChatModel for OpenAiChat {
    fn complete<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Attempted<ChatResponse>> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        Box::pin(attempt(
            self.transport.as_ref(),
            self.clock.as_ref(),
            &self.policy,
            call,
            || HttpRequest {
                service: Service::Model,
                profile: "openai-chat",
                method: "POST",
                path: "/chat/completions".to_owned(),
                body: encode(request, self.quirks),
            },
            |response| decode(response, &self.redactor),
        ))
    }
}

/// The body of a request.
pub fn encode(request: &ChatRequest, quirks: Quirks) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    body.insert("messages".to_owned(), request.messages.iter().map(message).collect());
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let mut function = Map::new();
            function.insert("name".to_owned(), tool.name.as_str().into());
            function.insert("description".to_owned(), tool.description.as_str().into());
            // A clone: `json!` would serialise it, member by member.
            function.insert("parameters".to_owned(), tool.parameters.clone());
            Value::Object(Map::from_iter([
                ("type".to_owned(), "function".into()),
                ("function".to_owned(), Value::Object(function)),
            ]))
        });
        body.insert("tools".to_owned(), tools.collect());
        let choice = match &request.tool_choice {
            ToolChoice::Auto => json!("auto"),
            ToolChoice::Required => json!("required"),
            ToolChoice::None => json!("none"),
            ToolChoice::Named(name) => json!({"type": "function", "function": {"name": name}}),
        };
        body.insert("tool_choice".to_owned(), choice);
        if let Some(parallel) = request.parallel_calls {
            body.insert("parallel_tool_calls".to_owned(), json!(parallel));
        }
    }
    if let Some(temperature) = request.temperature {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    if let Some(limit) = request.max_tokens {
        let name = if quirks.max_completion_tokens { "max_completion_tokens" } else { "max_tokens" };
        body.insert(name.to_owned(), json!(limit));
    }
    if let Some(seed) = request.seed {
        body.insert("seed".to_owned(), json!(seed));
    }
    Value::Object(body)
}

fn message(message: &Message) -> Value {
    match message.role {
        Role::Tool => {
            json!({"role": "tool", "tool_call_id": message.answers.as_deref().unwrap_or_default(), "content": message.content})
        }
        Role::Assistant if !message.calls.is_empty() => {
            let content = if message.content.is_empty() { Value::Null } else { json!(message.content) };
            let calls: Vec<Value> = message
                .calls
                .iter()
                .map(|call| {
                    json!({"id": call.id, "type": "function",
                        "function": {"name": call.name, "arguments": call.arguments}})
                })
                .collect();
            Value::Object(Map::from_iter([
                ("role".to_owned(), "assistant".into()),
                ("content".to_owned(), content),
                ("tool_calls".to_owned(), Value::Array(calls)),
            ]))
        }
        role => json!({"role": role.as_str(), "content": message.content}),
    }
}

#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Option<Tokens>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    message: Option<Reply>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Reply {
    #[serde(default)]
    content: Option<Value>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default, rename = "prompt_tokens")]
    prompt: Option<u64>,
    #[serde(default, rename = "completion_tokens")]
    completion: Option<u64>,
    #[serde(default, rename = "prompt_tokens_details")]
    details: Option<Details>,
    /// Where Moonshot puts what OpenAI puts into the details.
    #[serde(default, rename = "cached_tokens")]
    cached: Option<u64>,
    /// Where Mistral does.
    #[serde(default, rename = "num_cached_tokens")]
    num_cached: Option<u64>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(default, rename = "cached_tokens")]
    cached: Option<u64>,
}

/// Reads a response, success or not.
///
/// # Errors
/// [`Failure`] with the kind of error that the response reports, or `Malformed` when it cannot be read.
pub fn decode(response: &HttpResponse, redactor: &Redactor) -> Result<ChatResponse, Failure> {
    if !(200..300).contains(&response.status) {
        return Err(failure(response, redactor));
    }
    let completion: Completion = serde_json::from_slice(&response.body)
        .map_err(|error| malformed(response, &format!("the completion cannot be read: {error}"), redactor))?;
    // Gateways answer 200 and put the upstream's error into the body.
    if let Some(error) = completion.error.filter(|error| !error.is_null()) {
        let status = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        let status = status.filter(|code| (400..600).contains(code));
        let wrapped = json!({ "error": error });
        return Err(from_error(error_of(&wrapped), status, &response.body, redactor));
    }
    let choice = completion.choices.and_then(|choices| choices.into_iter().next());
    let Some(choice) = choice else {
        return Err(malformed(response, "the completion has no choices", redactor));
    };
    let Some(reply) = choice.message else {
        return Err(malformed(response, "the completion's choice has no message", redactor));
    };
    let calls = reply.tool_calls.unwrap_or_default().into_iter().map(call).collect::<Option<Vec<_>>>();
    let Some(calls) = calls else {
        return Err(malformed(response, "a tool call of the completion names no function", redactor));
    };
    Ok(ChatResponse {
        model: completion.model.unwrap_or_default(),
        content: reply.content.map(text).unwrap_or_default(),
        refusal: reply.refusal.filter(|words| !words.is_empty()),
        finish: finish(choice.finish_reason.as_deref(), !calls.is_empty()),
        calls,
        usage: completion.usage.map(usage).unwrap_or_default(),
        kept: None,
    })
}

fn call(call: Call) -> Option<ToolCall> {
    let function = call.function?;
    let arguments = match function.arguments {
        Some(Value::String(text)) => text,
        // Some servers send the arguments as an object.
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    };
    Some(ToolCall { id: call.id.unwrap_or_default(), name: function.name?, arguments })
}

/// Content as text: a string, or the text parts of a list.
fn text(content: Value) -> String {
    match content {
        Value::String(text) => text,
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str()));
            texts.collect::<Vec<_>>().concat()
        }
        _ => String::new(),
    }
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

fn usage(tokens: Tokens) -> Usage {
    let detailed = tokens.details.and_then(|details| details.cached);
    Usage { input: tokens.prompt, cached: detailed.or(tokens.cached).or(tokens.num_cached), output: tokens.completion }
}

#[cfg(test)]
mod tests {
    use super::super::ErrorKind;
    use super::*;
    use crate::chat::ToolDefinition;
    use std::time::Duration;

    fn request() -> ChatRequest {
        let call = ToolCall { id: "c1".to_owned(), name: "find".to_owned(), arguments: "{\"q\":1}".to_owned() };
        ChatRequest {
            model: "m".to_owned(),
            messages: vec![
                Message::text(Role::System, "Be brief."),
                Message::text(Role::User, "Hello"),
                Message { role: Role::Assistant, content: String::new(), calls: vec![call], answers: None, kept: None },
                Message::tool_result("c1", "found"),
            ],
            tools: Arc::from([ToolDefinition {
                name: "find".to_owned(),
                description: "Finds.".to_owned(),
                parameters: json!({"type": "object"}),
            }]),
            tool_choice: ToolChoice::Named("find".to_owned()),
            temperature: Some(0.5),
            max_tokens: Some(100),
            seed: Some(7),
            parallel_calls: Some(false),
            kept: None,
        }
    }

    fn decode_body(status: u16, body: &Value) -> Result<ChatResponse, Failure> {
        let body = bytes::Bytes::from(body.to_string());
        decode(&HttpResponse { status, headers: Vec::new(), body, took: Duration::ZERO }, &Redactor::default())
    }

    #[test]
    fn a_request_is_encoded_as_the_dialect_says() {
        assert_eq!(
            encode(&request(), Quirks::default()),
            json!({
                "model": "m",
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "Hello"},
                    {"role": "assistant", "content": null, "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{\"q\":1}"}}]},
                    {"role": "tool", "tool_call_id": "c1", "content": "found"},
                ],
                "tools": [{"type": "function", "function": {
                    "name": "find", "description": "Finds.", "parameters": {"type": "object"}}}],
                "tool_choice": {"type": "function", "function": {"name": "find"}},
                "parallel_tool_calls": false,
                "temperature": 0.5,
                "max_tokens": 100,
                "seed": 7,
            })
        );
        let newer = encode(&request(), Quirks { max_completion_tokens: true });
        assert_eq!((newer.get("max_tokens"), &newer["max_completion_tokens"]), (None, &json!(100)));
        for (choice, word) in
            [(ToolChoice::Auto, "auto"), (ToolChoice::Required, "required"), (ToolChoice::None, "none")]
        {
            let body = encode(&ChatRequest { tool_choice: choice, ..request() }, Quirks::default());
            assert_eq!(body["tool_choice"], json!(word));
        }
        let bare = ChatRequest { tools: Arc::from([]), ..request() };
        assert_eq!(encode(&bare, Quirks::default()).get("tool_choice"), None);
    }

    #[test]
    fn calls_null_content_cached_tokens_and_finish_are_read() {
        let reply = decode_body(200, &json!({
            "model": "m-1", "choices": [{"finish_reason": "tool_calls", "message": {"role": "assistant", "content": null,
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1"}},
                    {"id": "b", "type": "function", "function": {"name": "g", "arguments": {"y": 2}}}]}}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}}))
        .expect("decodes");
        assert_eq!(reply.content, "");
        assert_eq!(reply.finish, Finish::ToolCalls);
        let arguments: Vec<&str> = reply.calls.iter().map(|call| call.arguments.as_str()).collect();
        assert_eq!(arguments, ["{\"x\": 1", "{\"y\":2}"]);
        assert_eq!(reply.usage, Usage { input: Some(10), cached: Some(4), output: Some(3) });
    }

    #[test]
    fn refusals_parts_and_missing_usage_are_read() {
        let reply = decode_body(
            200,
            &json!({"choices": [{"finish_reason": "eos", "message": {
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "refusal": "I will not."}}]}),
        )
        .expect("decodes");
        assert_eq!((reply.content.as_str(), reply.refusal.as_deref()), ("ab", Some("I will not.")));
        assert_eq!(reply.finish, Finish::Other("eos".to_owned()));
        assert_eq!(reply.usage, Usage::default());
    }

    #[test]
    fn what_is_no_completion_is_an_error_of_its_kind() {
        for (status, body, kind) in [
            (200, json!({"choices": []}), ErrorKind::Malformed),
            (200, json!({"choices": null}), ErrorKind::Malformed),
            (200, json!({"choices": [{"message": {"tool_calls": [{"id": "a"}]}}]}), ErrorKind::Malformed),
            (200, json!("words"), ErrorKind::Malformed),
            (200, json!({"error": {"code": 429, "message": "upstream is busy"}}), ErrorKind::RateLimit),
            (429, json!({"error": {"type": "insufficient_quota", "message": "pay"}}), ErrorKind::Quota),
            (500, json!(null), ErrorKind::Server),
        ] {
            assert_eq!(decode_body(status, &body).expect_err("an error").kind, kind, "{body}");
        }
    }
}

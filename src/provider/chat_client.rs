//! Client of a chat model over HTTP, in any dialect: encode, send with retries, decode. `wire` does the translation.

use super::failure::{failure, malformed, unreadable};
use super::retry::{Failure, attempt};
use super::wire::Dialect;
use super::{Access, Attempted, ChatModel, stream};
use crate::cassette::Redactor;
use crate::platform::clock::BoxFuture;
use crate::platform::lock::lock;
use crate::platform::{lenient_json, secrets};
use crate::provider::chat::{ChatRequest, ChatResponse, ToolDefinition};
use crate::settings::Quirks;
use crate::transport::{HttpRequest, HttpResponse, Service};
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A chat model that speaks some dialect.
pub struct ChatClient {
    dialect: &'static Dialect,
    quirks: Quirks,
    streaming: bool,
    access: Access,
    redactor: Redactor,
    calls: AtomicU64,
    last: Mutex<Option<Last>>,
}

/// The last request's body, with the definitions of its tools.
struct Last {
    tools: Arc<[ToolDefinition]>,
    body: Arc<Value>,
}

impl ChatClient {
    /// Creates a client; one per trial, because waits between retries depend on its number of calls. Errors contain no
    /// secret that is declared by then.
    pub fn new(dialect: &'static Dialect, access: Access) -> Self {
        let (quirks, redactor) = (Quirks::default(), secrets::declared());
        let (calls, last) = (AtomicU64::new(0), Mutex::new(None));
        Self { dialect, quirks, streaming: false, access, redactor, calls, last }
    }

    /// Sets the deviations of the server from its dialect.
    #[must_use]
    pub fn with_quirks(mut self, quirks: Quirks) -> Self {
        self.quirks = quirks;
        self
    }

    /// Requests streams, so that the time to the first token is known.
    #[must_use]
    pub fn streaming(mut self, streaming: bool) -> Self {
        self.streaming = streaming;
        self
    }

    fn request(&self, request: &ChatRequest) -> HttpRequest {
        let body = Arc::new(encode(self.dialect, &self.quirks, self.streaming, request, self.written(request)));
        *lock(&self.last) = Some(Last { tools: Arc::clone(&request.tools), body: Arc::clone(&body) });
        let path = self.quirks.path(self.dialect.path(&request.model, self.streaming));
        let request = HttpRequest::new(Service::Model, self.dialect.profile, "POST", path, body);
        HttpRequest { stream: self.streaming.then(|| stream::ended_by(self.dialect)), ..request }
    }

    /// The encoded tools of the last request, if these are the same and that request is no longer in use.
    fn written(&self, request: &ChatRequest) -> Option<Value> {
        let Last { tools, body } = lock(&self.last).take()?;
        if !Arc::ptr_eq(&tools, &request.tools) || request.passthrough.is_some() {
            return None;
        }
        let at = self.dialect.profile.layout.tools.unwrap_or("/tools");
        Arc::try_unwrap(body).ok()?.pointer_mut(at).map(Value::take)
    }
}

impl ChatModel for ChatClient {
    fn complete<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Attempted<ChatResponse>> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        Box::pin(attempt(
            &self.access,
            call,
            || self.request(request),
            |response| decode(self.dialect, response, &self.redactor),
            |response| stream::first_token(self.dialect, response),
        ))
    }
}

/// Encodes a request's body in the dialect, adapted to the server; `tools` is the encoding from an earlier request with
/// the same tools.
pub fn encode(
    dialect: &Dialect,
    quirks: &Quirks,
    streaming: bool,
    request: &ChatRequest,
    tools: Option<Value>,
) -> Value {
    let mut body = dialect.encode_again(request, tools);
    if let (true, Value::Object(fields)) = (streaming, &mut body) {
        dialect.ask_for_stream(fields);
    }
    quirks.apply(dialect, &mut body);
    body
}

/// Decodes a response, successful or not, whole or streamed.
///
/// # Errors
/// [`Failure`] with the kind of error that the response reports, or `Malformed` if it cannot be decoded.
pub fn decode(dialect: &Dialect, response: &HttpResponse, redactor: &Redactor) -> Result<ChatResponse, Failure> {
    if !(200..300).contains(&response.status) {
        return Err(failure(response, redactor));
    }
    if stream::is_stream(dialect, response) {
        return stream::decode(dialect, response, redactor);
    }
    let body = lenient_json::read(&response.body)
        .map_err(|error| malformed(response, &format!("the completion cannot be read: {error}"), redactor))?;
    dialect.decode_response(&body).map_err(|error| unreadable(response, &error, redactor))
}

#[cfg(test)]
mod tests {
    use super::super::ErrorKind;
    use super::super::wire::{dialects, openai_chat};
    use super::*;
    use crate::platform::clock::VirtualClock;
    use crate::provider::RetryPolicy;
    use crate::provider::chat::{Finish, Message, Role, ToolCall, ToolChoice, ToolDefinition, Usage};
    use crate::transport::{Transport, TransportError};
    use serde_json::json;
    use std::time::Duration;

    fn request() -> ChatRequest {
        let call = ToolCall { id: "c1".to_owned(), name: "find".to_owned(), arguments: "{\"q\":1}".to_owned() };
        ChatRequest {
            model: "m".to_owned(),
            messages: vec![
                Message::text(Role::System, "Be brief."),
                Message::text(Role::User, "Hello"),
                Message {
                    role: Role::Assistant,
                    content: String::new(),
                    calls: vec![call],
                    answers: None,
                    passthrough: None,
                },
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
            passthrough: None,
        }
    }

    fn decode_body(status: u16, body: &Value) -> Result<ChatResponse, Failure> {
        let body = bytes::Bytes::from(body.to_string());
        let response = HttpResponse { status, headers: Vec::new(), body, took: Duration::ZERO, chunks: Vec::new() };
        decode(openai_chat::DIALECT, &response, &Redactor::default())
    }

    #[test]
    fn a_chat_request_has_exactly_the_members_that_recordings_pin() {
        let encode = |request: &ChatRequest| encode(openai_chat::DIALECT, &Quirks::default(), false, request, None);
        assert_eq!(
            encode(&request()),
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
        for (choice, word) in
            [(ToolChoice::Auto, "auto"), (ToolChoice::Required, "required"), (ToolChoice::None, "none")]
        {
            assert_eq!(encode(&ChatRequest { tool_choice: choice, ..request() })["tool_choice"], json!(word));
        }
        let bare = ChatRequest { tools: Arc::from([]), tool_choice: ToolChoice::Auto, ..request() };
        assert_eq!(encode(&bare).get("tool_choice"), None);
    }

    /// Never responds.
    struct Nowhere;

    impl Transport for Nowhere {
        fn send(&self, _: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
            Box::pin(std::future::pending())
        }
    }

    #[test]
    fn tools_are_written_once_a_conversation_and_stand_in_every_request() {
        let (transport, clock) = (Arc::new(Nowhere), Arc::new(VirtualClock::at(jiff::Timestamp::UNIX_EPOCH)));
        for dialect in dialects() {
            let client = ChatClient::new(
                dialect,
                Access { transport: transport.clone(), clock: clock.clone(), policy: RetryPolicy::default() },
            );
            let fresh = |request: &ChatRequest| encode(dialect, &Quirks::default(), false, request, None);
            let first = request();
            assert_eq!(client.written(&first), None, "nothing was asked yet");
            let held = client.request(&first);
            assert_eq!(client.written(&first), None, "the first request is on its way");
            drop(held);
            for _ in 0..2 {
                assert_eq!(*client.request(&first).body, fresh(&first), "{}", dialect.name());
            }
            assert!(client.written(&first).is_some(), "{}", dialect.name());
            drop(client.request(&first));
            let other = ChatRequest { tools: Arc::from([]), tool_choice: ToolChoice::Auto, ..request() };
            assert_eq!(*client.request(&other).body, fresh(&other), "{}", dialect.name());
        }
    }

    #[test]
    fn what_a_reply_wants_back_goes_back_with_the_next_request() {
        let reply = decode_body(200, &json!({"choices": [{"finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function",
                "function": {"name": "find", "arguments": "{}"}, "extra_content": {"google": {"thought_signature": "s"}}}]}}]}))
        .expect("decodes");
        let messages = vec![Message::text(Role::User, "Hello"), reply.to_message(), Message::tool_result("a", "x")];
        let body =
            encode(openai_chat::DIALECT, &Quirks::default(), false, &ChatRequest { messages, ..request() }, None);
        assert_eq!(body["messages"][1]["tool_calls"][0]["extra_content"]["google"]["thought_signature"], json!("s"));
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
        assert_eq!(reply.usage, Usage { input: Some(10), cached: Some(4), written: None, output: Some(3) });
    }

    #[test]
    fn an_answer_that_ends_within_an_emoji_is_an_answer() {
        let body = r#"{"choices": [{"finish_reason": "length", "message": {"content": "By \ud83d"}}]}"#;
        let (headers, chunks) = (Vec::new(), Vec::new());
        let response = HttpResponse { status: 200, headers, body: body.into(), took: Duration::ZERO, chunks };
        let reply = decode(openai_chat::DIALECT, &response, &Redactor::default()).expect("decodes");
        assert_eq!(reply.content, "By \u{fffd}");
    }

    #[test]
    fn what_is_no_completion_is_an_error_of_its_kind() {
        for (status, body, kind) in [
            (200, json!({"choices": []}), ErrorKind::Malformed),
            (200, json!({"choices": null}), ErrorKind::Malformed),
            (200, json!("words"), ErrorKind::Malformed),
            (200, json!({"error": {"code": 429, "message": "upstream is busy"}}), ErrorKind::RateLimit),
            (429, json!({"error": {"type": "insufficient_quota", "message": "pay"}}), ErrorKind::Quota),
            (500, json!(null), ErrorKind::Server),
        ] {
            assert_eq!(decode_body(status, &body).expect_err("an error").kind, kind, "{body}");
        }
    }
}

//! The APIs of the model on the service's side. A dialect of `provider::wire` reads the request, a file of this folder
//! writes the completion, whole or as the events of a stream.
//!
//! Mistakes are answered like those of the real services, with status 400 and an error in the shape of the API. Token
//! counts are estimates: a quarter of the characters.

mod anthropic_messages;
mod gemini;
mod openai_chat;
mod openai_responses;

use super::model::Completion;
use crate::provider::chat::{ChatRequest, Message, ToolChoice};
use crate::provider::tool_result;
use crate::provider::wire::{self, Dialect, WireError};
use serde_json::Value;

/// Characters of a call's arguments in each event of a stream.
const PIECE: usize = 24;

pub(super) struct Api {
    /// Reads its requests and writes its errors.
    pub dialect: &'static Dialect,
    write: fn(&Answer<'_>) -> Value,
    events: fn(&Value) -> Vec<Value>,
    framing: Framing,
}

/// How the events of a stream are written.
#[derive(Clone, Copy, PartialEq)]
enum Framing {
    /// Data alone, and `[DONE]` at the end; the last event, with the token counts, only on request.
    Done,
    /// Each with the name in its `type`.
    Named,
    /// Data alone, or one JSON array unless the path asks for events.
    Array,
}

pub(super) static CHAT: Api = Api {
    dialect: wire::openai_chat::DIALECT,
    write: openai_chat::write,
    events: openai_chat::events,
    framing: Framing::Done,
};

pub(super) static RESPONSES: Api = Api {
    dialect: wire::openai_responses::DIALECT,
    write: openai_responses::write,
    events: openai_responses::events,
    framing: Framing::Named,
};

pub(super) static MESSAGES: Api = Api {
    dialect: wire::anthropic_messages::DIALECT,
    write: anthropic_messages::write,
    events: anthropic_messages::events,
    framing: Framing::Named,
};

pub(super) static GEMINI: Api =
    Api { dialect: wire::gemini::DIALECT, write: gemini::write, events: gemini::events, framing: Framing::Array };

/// What an API writes.
struct Answer<'a> {
    model: &'a str,
    completion: &'a Completion,
    /// Unique per completion.
    id: &'a str,
    /// Tokens read.
    read: u64,
    /// Tokens written.
    wrote: u64,
}

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("there must be at least one message")]
    NoMessages,
    #[error("the tool choice names `{0}`, which is not among the tools")]
    ChoiceNotOffered(String),
}

impl Api {
    /// Decodes a request.
    ///
    /// # Errors
    /// The mistake, in words.
    pub(super) fn read(&self, path: &str, body: &Value) -> Result<ChatRequest, Refused> {
        let mut request = self.dialect.decode_request(path, body)?;
        if request.messages.is_empty() {
            return Err(Refused::NoMessages);
        }
        if let ToolChoice::Named(name) = &request.tool_choice
            && !request.tools.iter().any(|tool| tool.name == *name)
        {
            return Err(Refused::ChoiceNotOffered(name.clone()));
        }
        for message in request.messages.iter_mut().filter(|message| anthropic_messages::reports_an_error(message)) {
            if tool_result::error(&tool_result::document(&message.content)).is_none() {
                message.content.insert_str(0, "Error: ");
            }
        }
        Ok(request)
    }

    /// Encodes a completion; `id` is unique per completion.
    pub(super) fn write(&self, request: &ChatRequest, completion: &Completion, id: &str) -> Value {
        let called = |calls: &[crate::provider::chat::ToolCall]| {
            calls.iter().map(|call| call.name.len() + call.arguments.len()).sum::<usize>()
        };
        let characters = |message: &Message| message.content.len() + called(&message.calls);
        let tools = request.tools.iter().map(|tool| tool.description.len() + tool.parameters.to_string().len());
        let read = tokens(request.messages.iter().map(characters).sum::<usize>() + tools.sum::<usize>());
        let said = completion.text.len() + completion.refusal.as_ref().map_or(0, String::len);
        let wrote = tokens(said + called(&completion.calls));
        (self.write)(&Answer { model: &request.model, completion, id, read, wrote })
    }

    /// The pieces of a stream of that answer, and their content type; `body` and `path` are those of the request.
    pub(super) fn pieces(&self, answer: &Value, path: &str, body: &Value) -> (Vec<String>, &'static str) {
        let mut events = (self.events)(answer);
        if self.framing == Framing::Done && body.pointer("/stream_options/include_usage") != Some(&Value::Bool(true)) {
            events.pop();
        }
        if self.framing == Framing::Array && !path.contains("alt=sse") {
            let last = events.len().saturating_sub(1);
            let open = |at| if at == 0 { "[" } else { ",\n" };
            let close = |at| if at == last { "]" } else { "" };
            let listed = events.iter().enumerate().map(|(at, event)| format!("{}{event}{}", open(at), close(at)));
            return (listed.collect(), "application/json");
        }
        let name = |event: &Value| match self.framing {
            Framing::Named => format!("event: {}\n", event["type"].as_str().unwrap_or_default()),
            Framing::Done | Framing::Array => String::new(),
        };
        let mut pieces: Vec<String> = events.iter().map(|event| format!("{}data: {event}\n\n", name(event))).collect();
        if self.framing == Framing::Done {
            pieces.push("data: [DONE]\n\n".to_owned());
        }
        (pieces, "text/event-stream")
    }
}

pub(super) fn tokens(characters: usize) -> u64 {
    characters.div_ceil(4) as u64
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

/// Arguments in short pieces.
fn cut(arguments: &str) -> Vec<String> {
    let characters: Vec<char> = arguments.chars().collect();
    characters.chunks(PIECE).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::chat::{Finish, Role, ToolCall};
    use serde_json::json;

    static APIS: [&Api; 4] = [&CHAT, &RESPONSES, &MESSAGES, &GEMINI];

    fn completion(calls: bool) -> Completion {
        let call =
            |id: &str, arguments: &str| ToolCall { id: id.into(), name: "f".into(), arguments: arguments.into() };
        let made = [call("a", "{\"query\":\"Wärme und Kälte im Gewächshaus, heute\"}"), call("b", "{}")];
        let finish = if calls { Finish::ToolCalls } else { Finish::Stop };
        Completion {
            text: "Two words.".into(),
            refusal: None,
            calls: if calls { made.into() } else { Vec::new() },
            finish,
        }
    }

    fn request() -> ChatRequest {
        ChatRequest::new("m-1", vec![Message::text(Role::User, "Look")])
    }

    #[test]
    fn each_api_writes_what_its_dialect_reads_whole_and_in_pieces() {
        for api in APIS {
            for calls in [true, false] {
                let (name, said) = (api.dialect.name(), completion(calls));
                let whole = api.write(&request(), &said, "id");
                let streamed = json!({"stream_options": {"include_usage": true}});
                let (pieces, _) = api.pieces(&whole, "/m:streamGenerateContent?alt=sse", &streamed);
                assert!(pieces.len() >= 3, "{name}: {pieces:?}");
                let mut assembler = api.dialect.assembler();
                for event in crate::transport::sse::read_all(pieces.concat().as_bytes()).expect("short") {
                    assembler.push(&event).expect("an event");
                }
                assert!(assembler.complete(), "{name}");
                for document in [whole, assembler.document()] {
                    let read = api.dialect.decode_response(&document).expect("decodes");
                    assert_eq!(
                        (read.content, read.model, read.finish),
                        (said.text.clone(), "m-1".into(), said.finish.clone())
                    );
                    let names = |calls: &[ToolCall]| calls.iter().map(|call| call.name.clone()).collect::<Vec<_>>();
                    assert_eq!(names(&read.calls), names(&said.calls), "{name}");
                    for (read, said) in read.calls.iter().zip(&said.calls) {
                        let value = |call: &ToolCall| serde_json::from_str::<Value>(&call.arguments).expect("JSON");
                        assert_eq!(value(read), value(said), "{name}");
                    }
                    assert!(read.usage.input > Some(0) && read.usage.output > Some(0), "{name}");
                }
            }
        }
    }

    #[test]
    fn a_refusal_and_arguments_that_are_no_object_reach_the_client_of_each_api() {
        for api in APIS {
            let refused = Completion {
                text: String::new(),
                refusal: Some("No.".into()),
                calls: Vec::new(),
                finish: Finish::ContentFilter,
            };
            let read = api.dialect.decode_response(&api.write(&request(), &refused, "id")).expect("decodes");
            assert!(read.finish == Finish::ContentFilter || read.refusal.is_some(), "{}", api.dialect.name());
            let mut torn = completion(true);
            torn.calls[0].arguments.pop();
            let read = api.dialect.decode_response(&api.write(&request(), &torn, "id")).expect("decodes");
            // Two of them have no words for arguments that are no object.
            let torn = &torn.calls[0].arguments;
            let wrapped = json!({ "invalid_arguments": torn }).to_string();
            assert!([torn, &wrapped].contains(&&read.calls[0].arguments), "{}: {read:?}", api.dialect.name());
        }
    }

    #[test]
    fn a_stream_of_gemini_without_events_is_one_array() {
        let whole = GEMINI.write(&request(), &completion(true), "id");
        let (pieces, content) = GEMINI.pieces(&whole, "/m:streamGenerateContent", &json!({}));
        assert_eq!(content, "application/json");
        let array: Value = serde_json::from_str(&pieces.concat()).expect("JSON");
        assert_eq!(GEMINI.dialect.decode_response(&array).expect("decodes").content, "Two words.");
    }

    #[test]
    fn a_result_that_is_marked_as_an_error_is_one_and_keeps_what_it_says() {
        let read = |content: &str, is_error: bool| {
            let result = json!({"type": "tool_result", "tool_use_id": "a", "content": content, "is_error": is_error});
            let call = json!({"type": "tool_use", "id": "a", "name": "f", "input": {}});
            let messages = json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": [call]},
                {"role": "user", "content": [result]}]);
            MESSAGES.read("", &json!({"model": "m", "messages": messages})).expect("valid").messages[2].content.clone()
        };
        let told = "{\"error\":{\"message\":\"down\",\"retryable\":true}}";
        assert_eq!((read("down", true).as_str(), read("down", false).as_str()), ("Error: down", "down"));
        assert_eq!(read(told, true), told);
    }

    #[test]
    fn requests_that_make_no_sense_are_refused_with_the_reason() {
        let asked = json!([{"role": "user", "content": "x"}]);
        for (body, part) in [
            (json!({}), "messages"),
            (json!({"model": "m", "messages": []}), "at least one message"),
            (json!({"messages": [{"role": "wizard", "content": "x"}]}), "role"),
            (json!({"messages": asked, "tool_choice": {"type": "function", "function": {"name": "gone"}}}), "gone"),
        ] {
            let error = CHAT.read("/chat/completions", &body).expect_err(part);
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}

//! Assembles and times streamed answers.
//!
//! A stream counts only if it signals its end; otherwise the connection broke. The time to the first token is the
//! arrival of the bytes with which the answer first contains text, a refusal or a call.

use super::failure::{malformed, unreadable};
use super::retry::Failure;
use super::wire::{Dialect, WireError};
use crate::cassette::Redactor;
use crate::provider::chat::ChatResponse;
use crate::transport::sse::Event;
use crate::transport::{HttpResponse, StreamEnd};
use std::time::Duration;

/// Whether a response is a stream: a server may also send a whole answer although a stream was requested.
pub(super) fn is_stream(dialect: &Dialect, response: &HttpResponse) -> bool {
    dialect.framing.is_stream(&response.headers, &response.body)
}

/// The transport's test for the end of a stream.
pub(crate) fn ended_by(dialect: &'static Dialect) -> StreamEnd {
    StreamEnd::new(move |body| ended(dialect, body))
}

/// Whether a stream is complete: it contains its last event, or one that reports an error instead.
fn ended(dialect: &Dialect, body: &[u8]) -> bool {
    let Ok(events) = dialect.framing.read(body) else { return true };
    let mut assembler = dialect.assembler();
    events.iter().any(|event| assembler.push(event).is_err()) || assembler.complete()
}

/// Assembles and decodes a whole stream.
pub(super) fn decode(dialect: &Dialect, response: &HttpResponse, redactor: &Redactor) -> Result<ChatResponse, Failure> {
    let framing = dialect.framing;
    let events = framing.read(&response.body).map_err(|long| malformed(response, &long.to_string(), redactor))?;
    let mut assembler = dialect.assembler();
    for event in &events {
        assembler.push(event).map_err(|error| unreadable(response, &error, redactor))?;
    }
    if !assembler.complete() {
        return Err(unreadable(response, &WireError::Cut, redactor));
    }
    dialect.decode_response(&assembler.document()).map_err(|error| unreadable(response, &error, redactor))
}

/// Arrival of the first text, refusal or call, counted from sending; `None` if there is none, or no stream.
pub(super) fn first_token(dialect: &Dialect, response: &HttpResponse) -> Option<Duration> {
    if response.chunks.is_empty() || !is_stream(dialect, response) {
        return None;
    }
    let events = dialect.framing.read(&response.body).ok()?;
    // An answer only grows, so a binary search finds the first event after which it has content.
    let counts: Vec<usize> = (1..=events.len()).collect();
    let silent = counts.partition_point(|count| !says_something(dialect, &events[..*count]));
    let end = events.get(silent)?.bytes.end.min(response.body.len());
    response.chunks.iter().find(|chunk| chunk.end >= end).map(|chunk| chunk.at)
}

fn says_something(dialect: &Dialect, events: &[Event]) -> bool {
    let mut assembler = dialect.assembler();
    if events.iter().any(|event| assembler.push(event).is_err()) {
        return false;
    }
    dialect
        .decode_response(&assembler.document())
        .is_ok_and(|reply| !reply.content.is_empty() || !reply.calls.is_empty() || reply.refusal.is_some())
}

#[cfg(test)]
mod tests {
    use super::super::wire::{anthropic_messages, gemini, openai_chat};
    use super::*;
    use crate::cassette::Chunk;
    use crate::provider::ErrorKind;
    use serde_json::{Map, Value, json};

    const CHAT: [&str; 5] = [
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n",
        "data: [DONE]\n\n",
    ];
    const MESSAGES: [&str; 6] = [
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":1}}}\n\n",
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"find\",\"input\":{}}}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}}\n\n",
        "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":2}}\n\n",
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    ];

    fn response(events: &[&str]) -> HttpResponse {
        let mut body = String::new();
        let chunks = events.iter().zip(1..).map(|(event, at)| {
            body.push_str(event);
            Chunk { at: Duration::from_millis(at * 10), end: body.len() }
        });
        let chunks = chunks.collect();
        let headers = vec![("content-type".to_owned(), "text/event-stream; charset=utf-8".to_owned())];
        HttpResponse { status: 200, headers, body: body.into(), took: Duration::from_millis(99), chunks }
    }

    #[test]
    fn the_first_token_is_the_first_word_or_call_and_not_the_first_byte() {
        assert_eq!(first_token(openai_chat::DIALECT, &response(&CHAT)), Some(Duration::from_millis(20)));
        assert_eq!(first_token(anthropic_messages::DIALECT, &response(&MESSAGES)), Some(Duration::from_millis(20)));
        assert_eq!(first_token(openai_chat::DIALECT, &response(&CHAT[..1])), None);
        let untyped = HttpResponse { headers: Vec::new(), ..response(&CHAT) };
        assert_eq!(first_token(openai_chat::DIALECT, &untyped), Some(Duration::from_millis(20)), "told by its body");
        let whole = HttpResponse { body: "{\"choices\": []}".into(), headers: Vec::new(), ..response(&CHAT) };
        assert_eq!(first_token(openai_chat::DIALECT, &whole), None);
    }

    #[test]
    fn an_emoji_that_two_events_share_is_read_whole() {
        let events = [
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"By \\ud83d\"}}]}\n\n",
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\\udeb2.\"},\"finish_reason\":\"stop\"}]}\n\n",
            CHAT[4],
        ];
        let reply = decode(openai_chat::DIALECT, &response(&events), &Redactor::default()).expect("whole");
        assert_eq!(reply.content, "By 🚲.");
    }

    #[test]
    fn a_stream_is_read_when_it_ended_and_is_a_broken_connection_when_not() {
        let read = |dialect, events: &[&str]| decode(dialect, &response(events), &Redactor::default());
        let reply = read(openai_chat::DIALECT, &CHAT).expect("whole");
        assert_eq!((reply.content.as_str(), reply.usage.output), ("Hello", Some(2)));
        assert_eq!(read(anthropic_messages::DIALECT, &MESSAGES).expect("whole").calls[0].name, "find");
        for (dialect, events) in [(openai_chat::DIALECT, &CHAT[..2]), (anthropic_messages::DIALECT, &MESSAGES[..4])] {
            assert_eq!(read(dialect, events).expect_err("cut").kind, ErrorKind::Connection);
            assert!(!ended_by(dialect).is_whole(events.concat().as_bytes()));
        }
        assert!(ended_by(openai_chat::DIALECT).is_whole(CHAT.concat().as_bytes()));
    }

    #[test]
    fn an_error_within_a_stream_ends_it_and_is_told() {
        let failed = [
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n",
        ];
        assert!(ended_by(anthropic_messages::DIALECT).is_whole(failed[0].as_bytes()));
        let failure =
            decode(anthropic_messages::DIALECT, &response(&failed), &Redactor::default()).expect_err("failed");
        assert_eq!((failure.kind, failure.message.as_str()), (ErrorKind::Overloaded, "busy"));
    }

    #[test]
    fn each_dialect_is_asked_in_its_own_way() {
        let asked = |dialect: &Dialect| {
            let mut fields = Map::new();
            dialect.ask_for_stream(&mut fields);
            Value::Object(fields)
        };
        assert_eq!(asked(openai_chat::DIALECT), json!({"stream": true, "stream_options": {"include_usage": true}}));
        assert_eq!(asked(anthropic_messages::DIALECT), json!({"stream": true}));
        assert_eq!(asked(gemini::DIALECT), json!({}));
    }
}

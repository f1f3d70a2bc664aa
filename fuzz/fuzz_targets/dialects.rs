//! Every dialect: no document or stream makes it panic, a request that decodes is the same after encoding, and so is
//! the answer of a model that goes back, and one that we write whole and streamed.
//!
//! The first byte names the dialect, the second one what the rest is.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use ragcheck::internals::provider::chat::{ChatRequest, ChatResponse, Finish, Message, Role};
use ragcheck::internals::provider::wire::{Dialect, Said, WireError, dialects, error_message};
use serde_json::Value;

/// The document that a stream makes; `None` if it is broken or reports an error.
fn assembled(dialect: &Dialect, bytes: &[u8]) -> Option<Value> {
    let events = dialect.framing.read(bytes).ok()?;
    let mut assembler = dialect.assembler();
    for event in &events {
        if let Err(error) = assembler.push(event) {
            assert!(!error.to_string().is_empty());
            return None;
        }
    }
    let _ = assembler.complete();
    Some(assembler.document())
}

/// An answer goes back as the message that it is, in its own dialect.
fn answer(dialect: &Dialect, body: &Value) {
    let reply = match dialect.decode_response(body) {
        Ok(reply) => reply,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let request = ChatRequest::new("m", vec![Message::text(Role::User, "q"), reply.to_message()]);
    let written = dialect.encode_request(&request);
    let again = request_of(dialect, &written, body);
    if reply.content.is_empty() && reply.calls.is_empty() {
        return;
    }
    let back: Vec<_> = again.messages.iter().filter(|message| message.role == Role::Assistant).collect();
    let text: String = back.iter().map(|message| message.content.as_str()).collect();
    assert_eq!(text, reply.content, "{}\n{body}\n{written}", dialect.name());
    let calls: Vec<_> = back.iter().flat_map(|message| &message.calls).collect();
    assert_eq!(calls, reply.calls.iter().collect::<Vec<_>>(), "{}\n{body}\n{written}", dialect.name());
}

fn request_of(dialect: &Dialect, written: &Value, from: &Value) -> ChatRequest {
    let read = dialect.decode_request("", written);
    read.unwrap_or_else(|error: WireError| panic!("{}: {error}\n{from}\n{written}", dialect.name()))
}

fn document(dialect: &Dialect, rest: &[u8]) {
    let Ok(body) = serde_json::from_slice(rest) else { return };
    answer(dialect, &body);
    if let Ok(request) = dialect.decode_request("", &body) {
        let written = dialect.encode_request(&request);
        assert_eq!(request_of(dialect, &written, &body), request, "{}\n{body}\n{written}", dialect.name());
    }
}

/// An answer that we write says the same whole and streamed. The rest is its end, text, tool and arguments.
fn said(dialect: &Dialect, rest: &[u8]) {
    let text = String::from_utf8_lossy(rest);
    let mut parts = text.splitn(4, '\n').map(str::to_owned);
    let [end, text, tool, arguments] = std::array::from_fn(|_| parts.next().unwrap_or_default());
    let finish = match end.as_str() {
        "length" => Finish::Length,
        "filter" => Finish::ContentFilter,
        _ if tool.is_empty() => Finish::Stop,
        _ => Finish::ToolCalls,
    };
    let call = (!tool.is_empty()).then_some((tool, arguments));
    let said = Said { call, finish, refuses: end == "refuses", ..Said::text("m", &text) };
    let (Some(whole), Some(pieces)) = (said.whole(dialect.name()), said.stream(dialect.name())) else { return };
    let stream: String = pieces.into_iter().map(|(_, piece)| piece).collect();
    let streamed = assembled(dialect, stream.as_bytes()).expect("our own stream");
    let read = |body: &Value| {
        let read = dialect.decode_response(body);
        let read = read.unwrap_or_else(|error| panic!("{}: {error}\n{said:?}\n{body}", dialect.name()));
        answer(dialect, body);
        let ChatResponse { content, refusal, calls, finish, .. } = read;
        (content, refusal, calls.into_iter().map(|call| (call.name, call.arguments)).collect::<Vec<_>>(), finish)
    };
    assert_eq!(read(&streamed), read(&whole), "{}\n{said:?}\n{streamed}\n{whole}", dialect.name());
}

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let [which, kind, rest @ ..] = bytes else { return Corpus::Reject };
    let Some(dialect) = dialects().nth(usize::from(*which) % dialects().count()) else { return Corpus::Reject };
    match kind % 4 {
        0 => document(dialect, rest),
        1 => _ = assembled(dialect, rest).map(|body| answer(dialect, &body)),
        2 => _ = error_message(&String::from_utf8_lossy(rest)),
        _ => said(dialect, rest),
    }
    Corpus::Keep
});

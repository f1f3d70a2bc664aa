//! Messages of the Model Context Protocol: how requests are compared, and what a call of a tool returned.
//!
//! A request is a JSON-RPC object. Its id, its `_meta` (progress token, trace, and since 2026-07-28 the version and the
//! client) and the client's name do not count; its method, tool and parameters do.

use crate::cassette::Layout;
use crate::platform::{lenient_json, numbers};
use crate::transport::{HttpResponse, Profile, sse};
use serde_json::{Map, Value};

/// Matching profile of requests to MCP servers.
pub(crate) static MCP: Profile = Profile {
    drop: &["/jsonrpc", "/id", "/params/_meta", "/params/clientInfo"],
    layout: &Layout { conversation: &["/params"], ..Layout::NONE },
    ..Profile::plain("mcp")
};
/// The method that calls a tool.
const CALL: &str = "tools/call";
/// The method that lists tools.
const LIST: &str = "tools/list";

/// What a JSON-RPC message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message {
    /// It wants an answer.
    Request,
    /// A notification: it has none.
    Notification,
    /// The answer to a request of the other side.
    Response,
    /// No message, or several in one body.
    Invalid,
}

/// What a message is.
pub(crate) fn message(body: &Value) -> Message {
    let id = body.get("id").is_some_and(|id| id.is_string() || numbers::digits(id).is_some());
    match (method(body), id) {
        (Some(_), true) => Message::Request,
        (Some(_), false) => Message::Notification,
        (None, _) if body.get("result").is_some() || body.get("error").is_some() => Message::Response,
        (None, _) => Message::Invalid,
    }
}

/// The method of a message.
pub(crate) fn method(body: &Value) -> Option<&str> {
    body.get("method")?.as_str()
}

/// The path under which a request is recorded: its method, and the tool, resource or prompt.
pub(crate) fn path(body: &Value) -> String {
    let name = ["/params/name", "/params/uri"].into_iter().find_map(|at| body.pointer(at)?.as_str());
    let method = method(body).unwrap_or_default();
    name.map_or_else(|| format!("/{method}"), |name| format!("/{method}/{name}"))
}

/// Whether a request is of a version without a handshake (2026-07-28 and later): it says its version itself.
pub(crate) fn is_stateless(body: &Value) -> bool {
    let meta = body.pointer("/params/_meta").and_then(Value::as_object);
    meta.is_some_and(|meta| meta.contains_key("io.modelcontextprotocol/protocolVersion"))
}

/// The tool that a request calls, and its arguments.
pub(crate) fn called(body: &Value) -> Option<(&str, Value)> {
    let tool = body.pointer("/params/name")?.as_str().filter(|_| method(body) == Some(CALL))?;
    let arguments = body.pointer("/params/arguments").map(|given| numbers::nearest(given).into_owned());
    Some((tool, arguments.unwrap_or_else(|| Value::Object(Map::new()))))
}

/// The messages of an answer, of a document or of a stream, with the nearest numbers that numbers here hold.
pub(crate) fn messages(response: &HttpResponse) -> Vec<Value> {
    let read =
        |text: &[u8]| lenient_json::read(text).or_else(|_| Ok(numbers::nearest(&numbers::read(text)?).into_owned()));
    messages_by(read, response)
}

/// The messages of an answer with their numbers as they are written, for [`numbers::write()`].
pub(crate) fn written_messages(response: &HttpResponse) -> Vec<Value> {
    messages_by(written_message, response)
}

/// A message with its numbers as they are written, for [`numbers::write()`].
///
/// # Errors
/// What is wrong with the text.
pub(crate) fn written_message(text: &[u8]) -> serde_json::Result<Value> {
    lenient_json::read(&numbers::as_written(text))
}

fn messages_by(read: impl Fn(&[u8]) -> serde_json::Result<Value>, response: &HttpResponse) -> Vec<Value> {
    if sse::is_stream(&response.headers, &response.body) {
        let events = sse::read_all(&response.body).unwrap_or_default();
        return events.iter().filter_map(|event| read(event.data.as_bytes()).ok()).collect();
    }
    read(&response.body).into_iter().collect()
}

/// Whether a stream has what ends it: the answer, or a request of the server that nobody answers within it.
pub(crate) fn has_ended(stream: &[u8]) -> bool {
    let events = sse::read_all(stream).unwrap_or_default();
    let mut all = events.iter().filter_map(|event| written_message(event.data.as_bytes()).ok());
    all.any(|one| matches!(message(&one), Message::Response | Message::Request))
}

/// What a call of a tool came to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ran {
    /// The result: the structured one, else the texts, parsed if they are JSON.
    Done(Value),
    /// The tool or the server reports an error.
    Failed(String),
    /// The server asks the client for input first, and the client calls again.
    Asks,
}

/// What the answer to a call of a tool says.
pub(crate) fn ran(response: &HttpResponse) -> Ran {
    let all = messages(response);
    let Some(answer) = all.iter().find(|one| message(one) == Message::Response) else {
        return Ran::Failed(format!("HTTP {} without an answer", response.status));
    };
    if let Some(error) = answer.get("error") {
        let words = error.get("message").and_then(Value::as_str);
        return Ran::Failed(words.map_or_else(|| error.to_string(), str::to_owned));
    }
    let result = &answer["result"];
    if result["resultType"] == "input_required" {
        return Ran::Asks;
    }
    let parts = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    let text = texts.join("\n");
    if result["isError"] == true {
        return Ran::Failed(text);
    }
    Ran::Done(match &result["structuredContent"] {
        Value::Null if texts.is_empty() => Value::Array(parts.to_vec()),
        Value::Null => super::tool_result::document(&text),
        structured => structured.clone(),
    })
}

/// Tools of a catalogue, by name.
pub(crate) fn tools(request: &Value, response: &HttpResponse) -> Vec<(String, Value)> {
    if method(request) != Some(LIST) {
        return Vec::new();
    }
    let all = messages(response);
    let lists = all.iter().filter_map(|one| one.pointer("/result/tools")?.as_array()).flatten();
    lists.filter_map(|tool| Some((tool["name"].as_str()?.to_owned(), tool.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cassette::{Redactor, Request, key};
    use serde_json::json;
    use std::time::Duration;

    fn response(body: &str, kind: &str) -> HttpResponse {
        let headers = vec![("content-type".to_owned(), kind.to_owned())];
        let (took, chunks) = (Duration::ZERO, Vec::new());
        HttpResponse { status: 200, headers, body: body.to_owned().into(), took, chunks }
    }

    fn key_of(body: &Value) -> String {
        key(Request { profile: &MCP, method: "POST", path: &path(body), body }, &Redactor::default())
    }

    #[test]
    fn ids_progress_tokens_and_the_client_do_not_count_and_arguments_and_tools_do() {
        let call = |id: Value, tool: &str, arguments: Value, meta: Value| {
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": {"name": tool, "arguments": arguments, "_meta": meta}})
        };
        let base = key_of(&call(json!(1), "refund", json!({"amount": 5}), json!({"progressToken": 1})));
        assert_eq!(base, key_of(&call(json!("x"), "refund", json!({"amount": 5}), json!({"progressToken": "other"}))));
        let bare = json!({"method": "tools/call", "params": {"name": "refund", "arguments": {"amount": 5}}});
        assert_eq!(base, key_of(&bare));
        assert_ne!(base, key_of(&call(json!(1), "refund", json!({"amount": 6}), json!({}))));
        assert_ne!(base, key_of(&call(json!(1), "charge", json!({"amount": 5}), json!({}))));
        assert_ne!(base, key_of(&call(json!(1), "refund", json!({"amount": 5, "_meta": 1}), json!({}))));
        let hello = |version: &str, client: &str| json!({"id": 0, "method": "initialize", "params": {"protocolVersion": version, "clientInfo": {"name": client}}});
        assert_eq!(key_of(&hello("2025-11-25", "a")), key_of(&hello("2025-11-25", "b")));
        assert_ne!(key_of(&hello("2025-11-25", "a")), key_of(&hello("2025-06-18", "a")));
    }

    #[test]
    fn amounts_of_any_length_are_compared_by_their_digits_and_read_as_the_nearest_number() {
        let call = |wei: &str| {
            let text =
                format!(r#"{{"id":1,"method":"tools/call","params":{{"name":"pay","arguments":{{"wei":{wei}}}}}}}"#);
            numbers::read(text.as_bytes()).expect("JSON")
        };
        let (one, other) = ("1000000000000000000000000000001", "1000000000000000000000000000007");
        assert_ne!(key_of(&call(one)), key_of(&call(other)));
        assert_ne!(key_of(&call(one)), key_of(&call(&format!("\"{one}\""))));
        assert_eq!(key_of(&call("1.50")), key_of(&call("1.5")));
        assert_eq!(called(&call(one)), Some(("pay", json!({"wei": 1e30}))));
        let long_id = numbers::read(br#"{"id":123456789012345678901234567890,"method":"ping"}"#).expect("JSON");
        assert_eq!(message(&long_id), Message::Request);
        let far = response(r#"{"id":1,"result":{"structuredContent":{"n":1e400,"m":1}}}"#, "application/json");
        assert_eq!(ran(&far), Ran::Done(json!({"n": "1e400", "m": 1})));
    }

    #[test]
    fn a_result_is_read_structured_as_json_as_text_and_as_an_error_from_a_document_and_a_stream() {
        let answer = |result: Value| json!({"jsonrpc": "2.0", "id": 3, "result": result}).to_string();
        let text = |words: &str| json!([{"type": "text", "text": words}]);
        for (body, expected) in [
            (answer(json!({"content": text("[1]"), "structuredContent": {"a": 1}})), Ran::Done(json!({"a": 1}))),
            (answer(json!({"content": text("{\"a\": 1}")})), Ran::Done(json!({"a": 1}))),
            (answer(json!({"content": text("done")})), Ran::Done(json!("done"))),
            (answer(json!({"content": text("no such order"), "isError": true})), Ran::Failed("no such order".into())),
            (answer(json!({"resultType": "input_required", "inputRequests": {}})), Ran::Asks),
            (json!({"id": 1, "error": {"code": -32602, "message": "bad"}}).to_string(), Ran::Failed("bad".into())),
        ] {
            assert_eq!(ran(&response(&body, "application/json")), expected, "{body}");
            let progress = json!({"method": "notifications/progress", "params": {"progressToken": 1}});
            let stream = format!("event: message\ndata: {progress}\n\ndata: {body}\n\n");
            assert_eq!(ran(&response(&stream, "text/event-stream")), expected, "{stream}");
            assert!(has_ended(stream.as_bytes()) && !has_ended(format!("data: {progress}\n\n").as_bytes()));
        }
        assert_eq!(ran(&response("", "text/plain")), Ran::Failed("HTTP 200 without an answer".into()));
    }

    #[test]
    fn a_message_is_a_request_a_notification_a_response_or_none() {
        for (body, expected) in [
            (json!({"id": 0, "method": "ping"}), Message::Request),
            (json!({"id": "a", "method": "ping"}), Message::Request),
            (json!({"method": "notifications/initialized"}), Message::Notification),
            (json!({"id": 1, "result": {}}), Message::Response),
            (json!({"id": null, "error": {}}), Message::Response),
            (json!([{"id": 0, "method": "ping"}]), Message::Invalid),
            (json!({}), Message::Invalid),
            (Value::Null, Message::Invalid),
        ] {
            assert_eq!(message(&body), expected, "{body}");
        }
    }
}

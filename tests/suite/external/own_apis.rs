//! Ollama's and Bedrock's own requests and answers, as their clients and servers write them.

use super::apis::{Api, Asks, FOUND, TOOL};
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

pub fn path(asks: Asks) -> String {
    match asks.api {
        Api::Ollama => "/model/api/chat".into(),
        _ if asks.stream => format!("/model/model/{}/converse-stream", asks.model),
        _ => format!("/model/model/{}/converse", asks.model),
    }
}

/// The first request of a turn, or the second with what the search gave.
pub fn body(asks: Asks, question: &str, second: bool) -> Value {
    let schema = json!({"type": "object", "properties": {"query": {"type": "string"}}});
    let arguments = json!({"query": "helmet"});
    let result = json!({"chunks": [{"id": "manual#4", "text": FOUND}]});
    if asks.api == Api::Ollama {
        let mut messages = vec![json!({"role": "system", "content": asks.prompt})];
        messages.push(json!({"role": "user", "content": question}));
        if second {
            messages.push(json!({"role": "assistant", "content": "",
                "tool_calls": [{"function": {"name": TOOL, "arguments": arguments}}]}));
            messages.push(json!({"role": "tool", "tool_name": TOOL, "content": result.to_string()}));
        }
        let function = json!({"name": TOOL, "description": "Searches.", "parameters": schema});
        return json!({"model": asks.model, "stream": asks.stream, "messages": messages,
            "tools": [{"type": "function", "function": function}], "options": {"temperature": 0}});
    }
    let mut messages = vec![json!({"role": "user", "content": [{"text": question}]})];
    if second {
        let call = json!({"toolUseId": "call_1", "name": TOOL, "input": arguments});
        let output = json!({"toolUseId": "call_1", "content": [{"json": result}], "status": "success"});
        messages.push(json!({"role": "assistant", "content": [{"toolUse": call}]}));
        messages.push(json!({"role": "user", "content": [{"toolResult": output}]}));
    }
    let tool = json!({"name": TOOL, "description": "Searches.", "inputSchema": {"json": schema}});
    json!({"system": [{"text": asks.prompt}], "messages": messages, "toolConfig": {"tools": [{"toolSpec": tool}]}})
}

/// The provider's answer; `None` for any other path.
pub fn provide(uri: &Uri, headers: &HeaderMap, asked: &Value, second: bool) -> Option<Response> {
    let arguments = json!({"query": "helmet"});
    let path = uri.path();
    if path == "/api/chat" {
        let message = if second {
            json!({"role": "assistant", "content": FOUND})
        } else {
            let call = json!({"function": {"name": TOOL, "arguments": arguments}});
            json!({"role": "assistant", "content": "", "tool_calls": [call]})
        };
        let at = "2026-11-23T10:00:00.5Z";
        let last = |message: Value| {
            json!({"model": asked["model"], "created_at": at, "message": message, "done": true, "done_reason": "stop",
                "total_duration": 9, "prompt_eval_count": 10, "eval_count": 5})
        };
        if asked["stream"] == false {
            return Some(axum::Json(last(message)).into_response());
        }
        let first = json!({"model": asked["model"], "created_at": at, "message": message, "done": false});
        let stream = format!("{first}\n{}\n", last(json!({"role": "assistant", "content": ""})));
        return Some(([("content-type", "application/x-ndjson")], stream).into_response());
    }
    let stream = path.ends_with("/fake-1/converse-stream");
    if !stream && !path.ends_with("/fake-1/converse") {
        return None;
    }
    assert!(headers.get("authorization").is_some_and(|key| key.as_bytes().starts_with(b"Bearer ")), "its key");
    let usage = json!({"inputTokens": 10, "outputTokens": 5, "totalTokens": 15});
    let (block, stop) = if second {
        (json!({"text": FOUND}), "end_turn")
    } else {
        (json!({"toolUse": {"toolUseId": "call_1", "name": TOOL, "input": arguments}}), "tool_use")
    };
    if !stream {
        let message = json!({"role": "assistant", "content": [block]});
        let whole = json!({"output": {"message": message}, "stopReason": stop, "usage": usage,
            "metrics": {"latencyMs": 7}});
        return Some(axum::Json(whole).into_response());
    }
    let mut body = frame("messageStart", &json!({"role": "assistant"}));
    let delta = if second {
        json!({"text": FOUND})
    } else {
        let start = json!({"toolUse": {"toolUseId": "call_1", "name": TOOL}});
        body.extend(frame("contentBlockStart", &json!({"contentBlockIndex": 0, "start": start})));
        json!({"toolUse": {"input": arguments.to_string()}})
    };
    body.extend(frame("contentBlockDelta", &json!({"contentBlockIndex": 0, "delta": delta, "p": "abc"})));
    body.extend(frame("contentBlockStop", &json!({"contentBlockIndex": 0})));
    body.extend(frame("messageStop", &json!({"stopReason": stop})));
    body.extend(frame("metadata", &json!({"usage": usage, "metrics": {"latencyMs": 7}})));
    Some(([("content-type", "application/vnd.amazon.eventstream")], body).into_response())
}

/// A frame of Amazon's event stream. The checksums hold bytes that are no UTF-8, as they do in most real frames.
fn frame(kind: &str, payload: &Value) -> Vec<u8> {
    let size = |bytes: usize| u32::try_from(bytes).expect("short").to_be_bytes();
    let mut headers = Vec::new();
    for (name, value) in [(":event-type", kind), (":content-type", "application/json"), (":message-type", "event")] {
        headers.push(u8::try_from(name.len()).expect("short"));
        headers.extend(name.as_bytes());
        headers.push(7);
        headers.extend(u16::try_from(value.len()).expect("short").to_be_bytes());
        headers.extend(value.as_bytes());
    }
    let payload = payload.to_string().into_bytes();
    let checksum = [0xff, 0xfe, 0x80, 0x81];
    let length = size(16 + headers.len() + payload.len());
    [&length[..], &size(headers.len()), &checksum, &headers, &payload, &checksum].concat()
}

//! Answers of the simulator in the format of OpenAI's Chat Completions.

use super::{Answer, cut, words};
use crate::provider::chat::Finish;
use serde_json::{Value, json};

pub(super) fn write(answer: &Answer<'_>) -> Value {
    let completion = answer.completion;
    let mut message = json!({"role": "assistant", "content": Value::Null, "refusal": completion.refusal});
    if !completion.text.is_empty() {
        message["content"] = json!(completion.text);
    }
    if !completion.calls.is_empty() {
        let calls = completion.calls.iter().map(|call| {
            json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
        });
        message["tool_calls"] = calls.collect();
    }
    let finish = match &completion.finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::ContentFilter => "content_filter",
        Finish::Other(word) => word,
    };
    let (read, wrote) = (answer.read, answer.wrote);
    json!({
        "id": format!("chatcmpl-{}", answer.id),
        "object": "chat.completion",
        "created": 0,
        "model": answer.model,
        "choices": [{"index": 0, "message": message, "logprobs": Value::Null, "finish_reason": finish}],
        "usage": {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote},
    })
}

/// The chunks of a whole answer, word by word; the last one has the token counts.
pub(super) fn events(answer: &Value) -> Vec<Value> {
    let event = |choices: Value, tokens: &Value| {
        let mut chunk = answer.clone();
        chunk["object"] = json!("chat.completion.chunk");
        chunk["choices"] = choices;
        chunk["usage"] = tokens.clone();
        chunk
    };
    let choice = |delta: Value, finish: &Value| {
        event(json!([{"index": 0, "delta": delta, "finish_reason": finish}]), &Value::Null)
    };
    let none = Value::Null;
    let message = answer.pointer("/choices/0/message").unwrap_or(&none);
    let mut events = vec![choice(json!({"role": "assistant", "content": ""}), &none)];
    for field in ["content", "refusal"] {
        let text = message.get(field).and_then(Value::as_str).unwrap_or_default();
        events.extend(words(text).map(|word| choice(json!({ field: word }), &none)));
    }
    let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    for (index, call) in calls.enumerate() {
        let mut opening = call.clone();
        opening["index"] = json!(index);
        opening["function"]["arguments"] = json!("");
        events.push(choice(json!({"tool_calls": [opening]}), &none));
        let arguments = call.pointer("/function/arguments").and_then(Value::as_str).unwrap_or_default();
        events.extend(
            cut(arguments).into_iter().map(|piece| {
                choice(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}), &none)
            }),
        );
    }
    events.push(choice(json!({}), answer.pointer("/choices/0/finish_reason").unwrap_or(&none)));
    events.push(event(json!([]), answer.get("usage").unwrap_or(&none)));
    events
}

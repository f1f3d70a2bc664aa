//! Answers of the simulator in the format of Anthropic's Messages.

use super::{Answer, cut, words};
use crate::provider::chat::{Finish, Message};
use crate::provider::wire::arguments_object;
use serde_json::{Value, json};

/// Whether a tool result says beside its text that the tool failed.
pub(super) fn reports_an_error(message: &Message) -> bool {
    let block = message.passthrough.as_ref().and_then(|kept| kept.fields.get("block"));
    block.is_some_and(|block| block["is_error"] == true)
}

pub(super) fn write(answer: &Answer<'_>) -> Value {
    let completion = answer.completion;
    let text = (!completion.text.is_empty()).then(|| json!({"type": "text", "text": completion.text}));
    let calls = completion.calls.iter().map(|call| {
        json!({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_object(&call.arguments)})
    });
    let content: Vec<Value> = text.into_iter().chain(calls).collect();
    let reason = match &completion.finish {
        Finish::Stop => "end_turn",
        Finish::ToolCalls => "tool_use",
        Finish::Length => "max_tokens",
        Finish::ContentFilter => "refusal",
        Finish::Other(word) => word,
    };
    let mut message = json!({
        "id": format!("msg_{}", answer.id),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": Value::Null,
        "usage": {"input_tokens": answer.read, "output_tokens": answer.wrote},
    });
    if let Some(refusal) = &completion.refusal {
        message["stop_details"] = json!({"type": "refusal", "explanation": refusal});
    }
    message
}

/// The events of a whole answer, word by word.
pub(super) fn events(answer: &Value) -> Vec<Value> {
    let mut begun = answer.clone();
    for (member, value) in [("content", json!([])), ("stop_reason", Value::Null)] {
        begun[member] = value;
    }
    begun["usage"]["output_tokens"] = json!(1);
    let mut events = vec![json!({"type": "message_start", "message": begun})];
    let blocks = answer["content"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, block) in blocks.iter().enumerate() {
        let is_call = block["type"] == "tool_use";
        let mut opening = block.clone();
        let deltas: Vec<Value> = if is_call {
            opening["input"] = json!({});
            let pieces = cut(&block["input"].to_string());
            pieces.into_iter().map(|piece| json!({"type": "input_json_delta", "partial_json": piece})).collect()
        } else {
            opening["text"] = json!("");
            let said = words(block["text"].as_str().unwrap_or_default());
            said.map(|word| json!({"type": "text_delta", "text": word})).collect()
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": opening}));
        events.extend(
            deltas.into_iter().map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let mut delta = json!({"stop_reason": answer["stop_reason"], "stop_sequence": Value::Null});
    if let Some(details) = answer.get("stop_details") {
        delta["stop_details"] = details.clone();
    }
    let usage = json!({"output_tokens": answer["usage"]["output_tokens"]});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": usage}));
    events.push(json!({"type": "message_stop"}));
    events
}

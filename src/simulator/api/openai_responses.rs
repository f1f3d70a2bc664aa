//! Answers of the simulator in the format of OpenAI's Responses.

use super::{Answer, cut, words};
use crate::provider::chat::Finish;
use serde_json::{Map, Value, json};

pub(super) fn write(answer: &Answer<'_>) -> Value {
    let (completion, id) = (answer.completion, answer.id);
    let mut content = Vec::new();
    if !completion.text.is_empty() {
        content.push(json!({"type": "output_text", "text": completion.text, "annotations": []}));
    }
    if let Some(refusal) = &completion.refusal {
        content.push(json!({"type": "refusal", "refusal": refusal}));
    }
    let mut output = Vec::new();
    if !content.is_empty() || completion.calls.is_empty() {
        output.push(json!({"type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
            "content": content}));
    }
    output.extend(completion.calls.iter().map(|call| {
        json!({"type": "function_call", "id": format!("fc_{}", call.id), "call_id": call.id, "name": call.name,
            "arguments": call.arguments, "status": "completed"})
    }));
    let cut_off = match completion.finish {
        Finish::Length => Some("max_output_tokens"),
        Finish::ContentFilter if completion.refusal.is_none() => Some("content_filter"),
        _ => None,
    };
    let (read, wrote) = (answer.read, answer.wrote);
    json!({
        "id": format!("resp_{id}"),
        "object": "response",
        "created_at": 0,
        "status": if cut_off.is_some() { "incomplete" } else { "completed" },
        "error": Value::Null,
        "incomplete_details": cut_off.map(|reason| json!({"reason": reason})),
        "instructions": Value::Null,
        "metadata": {},
        "model": answer.model,
        "output": output,
        "parallel_tool_calls": true,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": read, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": wrote, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": read + wrote,
        },
    })
}

/// The events of a whole answer, word by word.
pub(super) fn events(answer: &Value) -> Vec<Value> {
    let mut begun = answer.clone();
    for (member, value) in [("status", json!("in_progress")), ("output", json!([])), ("usage", Value::Null)] {
        begun[member] = value;
    }
    let mut events = vec![
        json!({"type": "response.created", "response": begun}),
        json!({"type": "response.in_progress", "response": begun}),
    ];
    let items = answer["output"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, item) in items.iter().enumerate() {
        let mut of_item = |kind: &str, more: Value| {
            let mut event = Map::from_iter([("type".to_owned(), json!(format!("response.{kind}")))]);
            event.insert("output_index".to_owned(), json!(index));
            if !kind.starts_with("output_item") {
                event.insert("item_id".to_owned(), item["id"].clone());
            }
            event.extend(more.as_object().cloned().unwrap_or_default());
            events.push(Value::Object(event));
        };
        let mut opening = item.clone();
        opening["status"] = json!("in_progress");
        if item["type"] == "function_call" {
            opening["arguments"] = json!("");
            of_item("output_item.added", json!({"item": opening}));
            let arguments = item["arguments"].as_str().unwrap_or_default();
            for piece in cut(arguments) {
                of_item("function_call_arguments.delta", json!({"delta": piece}));
            }
            of_item("function_call_arguments.done", json!({"name": item["name"], "arguments": arguments}));
        } else {
            opening["content"] = json!([]);
            of_item("output_item.added", json!({"item": opening}));
            let parts = item["content"].as_array().map_or(&[][..], Vec::as_slice);
            for (part, whole) in parts.iter().enumerate() {
                let (kind, key) =
                    if whole["type"] == "refusal" { ("refusal", "refusal") } else { ("output_text", "text") };
                let mut empty = whole.clone();
                empty[key] = json!("");
                of_item("content_part.added", json!({"content_index": part, "part": empty}));
                for word in words(whole[key].as_str().unwrap_or_default()) {
                    let delta = json!({"content_index": part, "delta": word, "logprobs": []});
                    of_item(&format!("{kind}.delta"), delta);
                }
                let done = json!({"content_index": part, key: whole[key], "logprobs": []});
                of_item(&format!("{kind}.done"), done);
                of_item("content_part.done", json!({"content_index": part, "part": whole}));
            }
        }
        of_item("output_item.done", json!({"item": item}));
    }
    let end = if answer["status"] == "completed" { "response.completed" } else { "response.incomplete" };
    events.push(json!({"type": end, "response": answer}));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    events
}

//! Google's generateContent. Its calls have no ids.

use super::{Answer, words};
use crate::provider::chat::Finish;
use crate::provider::wire::arguments_object;
use serde_json::{Value, json};

pub(super) fn write(answer: &Answer<'_>) -> Value {
    let completion = answer.completion;
    let text = (!completion.text.is_empty()).then(|| json!({"text": completion.text}));
    let calls = completion.calls.iter().map(|call| {
        let args = arguments_object(&call.arguments);
        json!({"functionCall": {"name": call.name, "args": args}})
    });
    let parts: Vec<Value> = text.into_iter().chain(calls).collect();
    let reason = match &completion.finish {
        Finish::Stop | Finish::ToolCalls => "STOP",
        Finish::Length => "MAX_TOKENS",
        Finish::ContentFilter => "SAFETY",
        Finish::Other(word) => word,
    };
    let (read, wrote) = (answer.read, answer.wrote);
    json!({
        "candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": reason}],
        "usageMetadata": {"promptTokenCount": read, "candidatesTokenCount": wrote, "totalTokenCount": read + wrote},
        "modelVersion": answer.model,
        "responseId": answer.id,
    })
}

/// The chunks of a whole answer: text word by word, each call whole.
pub(super) fn events(answer: &Value) -> Vec<Value> {
    let candidate = &answer["candidates"][0];
    let whole = candidate["content"]["parts"].as_array().map_or(&[][..], Vec::as_slice);
    let parts = whole.iter().flat_map(|part| match part["text"].as_str() {
        Some(text) => words(text).map(|word| json!({"text": word})).collect(),
        None => vec![part.clone()],
    });
    let mut events: Vec<Value> = parts
        .map(|part| {
            let mut chunk = answer.clone();
            chunk["candidates"] = json!([{"index": 0, "content": {"role": "model", "parts": [part]}}]);
            chunk["usageMetadata"] = json!({"promptTokenCount": answer["usageMetadata"]["promptTokenCount"]});
            chunk
        })
        .collect();
    let mut last = answer.clone();
    last["candidates"][0]["content"]["parts"] = json!([{"text": ""}]);
    events.push(last);
    events
}

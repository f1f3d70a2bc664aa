//! Assembles the events of a Messages stream.
//!
//! Blocks are built by index from their start and their deltas: text, JSON of a tool's input, thinking, signatures,
//! citations. A second `message_start` with another id restarts the message, as gateways do when they fall back to
//! another upstream; with the same id it is a repetition.

use super::assembler::{Assemble, append};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::mem::take;

/// Assembles events into a message.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    message: Map<String, Value>,
    blocks: BTreeMap<u64, Block>,
    stopped: bool,
}

#[derive(Debug, Default)]
struct Block {
    value: Value,
    input: String,
}

impl Assemble for Assembler {
    fn push(&mut self, data: &Value) {
        let index = data["index"].as_u64().unwrap_or(0);
        match data["type"].as_str().unwrap_or_default() {
            "message_start" => {
                if let Some(message) = data["message"].as_object()
                    && self.message.get("id").is_none_or(|id| *id != data["message"]["id"])
                {
                    self.message.clone_from(message);
                    // Replies to server tools arrive whole, without events for their blocks.
                    let whole = data["message"]["content"].as_array().into_iter().flatten().enumerate();
                    let whole = whole
                        .map(|(index, value)| (index as u64, Block { value: value.clone(), input: String::new() }));
                    self.blocks = whole.collect();
                }
            }
            "content_block_start" => {
                _ = self.blocks.insert(index, Block { value: data["content_block"].clone(), input: String::new() });
            }
            "content_block_delta" => {
                if let Some(block) = self.blocks.get_mut(&index) {
                    block.add(&data["delta"]);
                }
            }
            "message_delta" => {
                for (key, value) in data["delta"].as_object().into_iter().flatten() {
                    self.message.insert(key.clone(), value.clone());
                }
                for (key, value) in data.as_object().into_iter().flatten() {
                    match (key.as_str(), value) {
                        ("type" | "delta", _) => {}
                        ("usage", Value::Object(more)) => {
                            if let Value::Object(usage) = self.message.entry("usage").or_insert_with(|| json!({})) {
                                usage.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
                            }
                        }
                        _ => _ = self.message.insert(key.clone(), value.clone()),
                    }
                }
            }
            "message_stop" => self.stopped = true,
            // Pings, ends of blocks, and unknown events.
            _ => {}
        }
    }

    fn complete(&self) -> bool {
        self.stopped
    }

    fn document(&mut self) -> Value {
        let content = take(&mut self.blocks).into_values().map(Block::whole).collect();
        self.message.insert("content".to_owned(), content);
        Value::Object(take(&mut self.message))
    }
}

impl Block {
    fn add(&mut self, delta: &Value) {
        match delta["type"].as_str().unwrap_or_default() {
            "text_delta" => self.append("text", &delta["text"]),
            "thinking_delta" => self.append("thinking", &delta["thinking"]),
            "signature_delta" => self.append("signature", &delta["signature"]),
            "compaction_delta" => self.append("content", &delta["content"]),
            "input_json_delta" => self.input.push_str(delta["partial_json"].as_str().unwrap_or_default()),
            "citations_delta" => {
                if let Some(block) = self.value.as_object_mut() {
                    let citations = block.entry("citations").or_insert(Value::Null);
                    if citations.is_null() {
                        *citations = json!([]);
                    }
                    if let Some(citations) = citations.as_array_mut() {
                        citations.push(delta["citation"].clone());
                    }
                }
            }
            _ => {}
        }
    }

    fn append(&mut self, key: &str, more: &Value) {
        let (Some(block), Some(more)) = (self.value.as_object_mut(), more.as_str()) else { return };
        append(block.entry(key).or_insert(Value::Null), more);
    }

    fn whole(mut self) -> Value {
        if !self.input.trim().is_empty() && self.value.is_object() {
            self.value["input"] = super::passthrough::arguments_object(&self.input);
        }
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(events: &[Value]) -> Assembler {
        let mut assembler = Assembler::default();
        for event in events {
            assembler.push(event);
        }
        assembler
    }

    fn start(id: &str) -> Value {
        json!({"type": "message_start", "message": {"id": id, "content": [], "usage": {"input_tokens": 5}}})
    }

    #[test]
    fn signatures_inputs_and_citations_are_put_together() {
        let block =
            |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
        let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
        let mut message = sum(&[
            start("m"),
            block(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
            block(1, json!({"type": "tool_use", "id": "t", "name": "f", "input": {}})),
            block(2, json!({"type": "text", "text": ""})),
            delta(1, json!({"type": "input_json_delta", "partial_json": "{\"a\""})),
            delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
            delta(1, json!({"type": "input_json_delta", "partial_json": ":1}"})),
            delta(0, json!({"type": "signature_delta", "signature": "s"})),
            delta(2, json!({"type": "citations_delta", "citation": {"n": 1}})),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}}),
        ]);
        assert!(!message.complete());
        assert_eq!(
            message.document(),
            json!({"id": "m", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
            {"type": "text", "text": "", "citations": [{"n": 1}]}],
            "usage": {"input_tokens": 5, "output_tokens": 3}, "stop_reason": "tool_use"})
        );
    }

    #[test]
    fn another_message_starts_over_and_the_same_one_does_not() {
        let text = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "a"}});
        assert_eq!(sum(&[start("m"), text.clone(), start("m")]).document()["content"], json!([text["content_block"]]));
        assert_eq!(sum(&[start("m"), text, start("n")]).document()["content"], json!([]));
    }
}

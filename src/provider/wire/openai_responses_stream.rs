//! Assembles the events of a Responses stream.
//!
//! Items are built by `output_index` (ids may change between events) from their start and their deltas; a finished item
//! replaces the built one. The last event repeats the whole response; if its output is empty, as some gateways leave
//! it, the items received are used. Perplexity's Agent API uses the same events and adds some.

use super::assembler::{Assemble, append};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::mem::take;

/// Assembles events into a response.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    response: Map<String, Value>,
    items: BTreeMap<u64, Value>,
    ended: bool,
}

impl Assemble for Assembler {
    fn push(&mut self, data: &Value) {
        let index = data["output_index"].as_u64().unwrap_or(0);
        let kind = data["type"].as_str().unwrap_or_default();
        match kind {
            "response.output_item.added" | "response.output_item.done" => {
                _ = self.items.insert(index, data["item"].clone());
            }
            "response.content_part.added" | "response.content_part.done" => {
                *self.place(index, "content", data["content_index"].as_u64()) = data["part"].clone();
            }
            "response.output_text.delta" | "response.reasoning_text.delta" => {
                self.append(index, data, "content", "text");
            }
            "response.refusal.delta" => self.append(index, data, "content", "refusal"),
            "response.reasoning_summary_part.added" | "response.reasoning_summary_part.done" => {
                *self.place(index, "summary", data["summary_index"].as_u64()) = data["part"].clone();
            }
            "response.reasoning_summary_text.delta" => {
                let more = data["delta"].as_str().unwrap_or_default();
                add(self.place(index, "summary", data["summary_index"].as_u64()), "text", more);
            }
            "response.function_call_arguments.delta" | "response.mcp_call_arguments.delta" => {
                let more = data["delta"].as_str().unwrap_or_default();
                add(self.items.entry(index).or_insert_with(|| json!({})), "arguments", more);
            }
            "response.custom_tool_call_input.delta" => {
                let more = data["delta"].as_str().unwrap_or_default();
                add(self.items.entry(index).or_insert_with(|| json!({})), "input", more);
            }
            _ => {}
        }
        if let Some(response) = data["response"].as_object() {
            self.response.clone_from(response);
            self.ended |= matches!(kind, "response.completed" | "response.incomplete" | "response.cancelled");
        }
    }

    fn complete(&self) -> bool {
        self.ended
    }

    fn document(&mut self) -> Value {
        let told = self.response.get("output").and_then(Value::as_array).is_some_and(|output| !output.is_empty());
        if !(self.ended && told) {
            self.response.insert("output".to_owned(), take(&mut self.items).into_values().collect());
        }
        Value::Object(take(&mut self.response))
    }
}

impl Assembler {
    fn append(&mut self, index: u64, data: &Value, list: &str, key: &str) {
        let more = data["delta"].as_str().unwrap_or_default();
        add(self.place(index, list, data["content_index"].as_u64()), key, more);
    }

    /// The part `part` of the item's list; parts are consecutive, so an index far ahead means the next one.
    fn place(&mut self, index: u64, list: &str, part: Option<u64>) -> &mut Value {
        let item = self.items.entry(index).or_insert_with(|| json!({}));
        if !item[list].is_array() {
            if !item.is_object() {
                *item = json!({});
            }
            item[list] = json!([]);
        }
        let length = item[list].as_array().map_or(0, Vec::len);
        let part = usize::try_from(part.unwrap_or(0)).unwrap_or(length).min(length);
        if part == length
            && let Some(parts) = item[list].as_array_mut()
        {
            parts.push(json!({}));
        }
        &mut item[list][part]
    }
}

fn add(place: &mut Value, key: &str, more: &str) {
    let Some(map) = place.as_object_mut() else { return };
    append(map.entry(key).or_insert(Value::Null), more);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events() -> Vec<Value> {
        vec![
            json!({"type": "response.created", "response": {"id": "r", "output": []}}),
            json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "a", "content": []}}),
            json!({"type": "response.content_part.added", "output_index": 0, "content_index": 0, "part": {"type": "output_text", "text": ""}}),
            json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "he"}),
            json!({"type": "response.output_text.delta", "item_id": "b", "output_index": 0, "content_index": 0, "delta": "llo"}),
            json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "function_call", "arguments": ""}}),
            json!({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "{}"}),
        ]
    }

    #[test]
    fn deltas_build_the_items_that_an_empty_last_event_lacks() {
        let mut assembler = Assembler::default();
        for event in &events() {
            assembler.push(event);
        }
        assert!(!assembler.complete());
        assembler
            .push(&json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}));
        assert!(assembler.complete());
        assert_eq!(
            assembler.document(),
            json!({"id": "r", "status": "completed", "output": [
            {"type": "message", "id": "a", "content": [{"type": "output_text", "text": "hello"}]},
            {"type": "function_call", "arguments": "{}"}]})
        );
    }

    #[test]
    fn the_last_event_is_not_counted_twice() {
        let mut assembler = Assembler::default();
        for event in &events() {
            assembler.push(event);
        }
        let whole = json!([{"type": "message", "content": [{"type": "output_text", "text": "hello"}]}]);
        assembler.push(&json!({"type": "response.completed", "response": {"output": whole}}));
        assert_eq!(assembler.document()["output"], whole);
    }

    #[test]
    fn a_part_far_ahead_asks_for_no_memory() {
        let mut assembler = Assembler::default();
        assembler.push(&json!({"type": "response.output_text.delta", "output_index": u64::MAX, "content_index": u64::MAX, "delta": "x"}));
        assert_eq!(assembler.document()["output"], json!([{"content": [{"text": "x"}]}]));
    }
}

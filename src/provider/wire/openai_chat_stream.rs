//! Assembles the chunks of a Chat Completions stream.
//!
//! Strings of a delta are appended, lists of calls and of reasoning are joined by index, and the last value of any
//! other member counts. Servers omit indices, repeat names, send empty choices first and usage last, or send a
//! cumulative `message` with each delta (Perplexity's Sonar), which is not counted twice.

use super::assembler::Assemble;
use super::document::text;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::mem::take;

/// Assembles chunks into a completion.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    fields: Map<String, Value>,
    choices: BTreeMap<u64, Map<String, Value>>,
    done: bool,
}

impl Assemble for Assembler {
    fn push(&mut self, chunk: &Value) {
        let Some(chunk) = chunk.as_object() else { return };
        for (key, value) in chunk {
            match key.as_str() {
                "choices" => {
                    for (position, choice) in value.as_array().into_iter().flatten().enumerate() {
                        self.push_choice(position as u64, choice);
                    }
                }
                // Padding against traffic analysis.
                "obfuscation" => {}
                "object" => _ = self.fields.insert(key.clone(), Value::from("chat.completion")),
                "x_groq" => merge_objects(self.fields.entry(key.clone()).or_insert_with(|| json!({})), value),
                _ if value.is_null() || value == "" => _ = self.fields.entry(key.clone()).or_insert(value.clone()),
                _ => _ = self.fields.insert(key.clone(), value.clone()),
            }
        }
    }

    fn done(&mut self) {
        self.done = true;
    }

    fn filtered(&mut self, message: &str) -> bool {
        if self.choices.is_empty() {
            self.push_choice(0, &json!({"index": 0, "delta": {}}));
        }
        for choice in self.choices.values_mut() {
            choice.insert("finish_reason".to_owned(), Value::from("content_filter"));
            if let Some(Value::Object(said)) = choice.get_mut("message") {
                said.insert("refusal".to_owned(), Value::from(message));
            }
        }
        self.done = true;
        true
    }

    fn complete(&self) -> bool {
        self.done
            || !self.choices.is_empty()
                && self
                    .choices
                    .values()
                    .all(|choice| choice.get("finish_reason").is_some_and(|reason| !reason.is_null()))
    }

    fn document(&mut self) -> Value {
        let choices = take(&mut self.choices).into_values().map(Value::Object).collect();
        self.fields.insert("choices".to_owned(), choices);
        Value::Object(take(&mut self.fields))
    }
}

impl Assembler {
    fn push_choice(&mut self, position: u64, choice: &Value) {
        let Some(choice) = choice.as_object() else { return };
        let index = choice.get("index").and_then(Value::as_u64).unwrap_or(position);
        let sum = self.choices.entry(index).or_insert_with(|| {
            let empty =
                json!({"index": index, "message": {"role": "assistant", "content": null}, "finish_reason": null});
            empty.as_object().cloned().unwrap_or_default()
        });
        for (key, value) in choice {
            match key.as_str() {
                "index" | "message" => {}
                "delta" => {
                    if let (Some(Value::Object(message)), Some(delta)) = (sum.get_mut("message"), value.as_object()) {
                        add(message, delta);
                    }
                }
                "logprobs" if value.is_object() && sum.get("logprobs").is_some_and(Value::is_object) => {
                    for list in ["content", "refusal"] {
                        let more = value.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
                        if let Some(Value::Array(tokens)) = sum.get_mut("logprobs").and_then(|logs| logs.get_mut(list))
                        {
                            tokens.extend(more);
                        }
                    }
                }
                _ if value.is_null() => _ = sum.entry(key.clone()).or_insert(Value::Null),
                _ => _ = sum.insert(key.clone(), value.clone()),
            }
        }
    }
}

fn merge_objects(sum: &mut Value, more: &Value) {
    if let (Value::Object(sum), Value::Object(more)) = (sum, more) {
        sum.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
}

fn add(message: &mut Map<String, Value>, delta: &Map<String, Value>) {
    for (key, value) in delta {
        match key.as_str() {
            "tool_calls" => add_calls(message.entry(key.clone()).or_insert_with(|| json!([])), value),
            "function_call" => super::openai_chat_legacy::add(message, value),
            "reasoning_details" => add_details(message.entry(key.clone()).or_insert_with(|| json!([])), value),
            "content" if value.is_array() || message.get("content").is_some_and(Value::is_array) => {
                add_parts(message.entry(key.clone()).or_insert(Value::Null), value);
            }
            "content" | "refusal" | "reasoning" | "reasoning_content" => {
                append(message.entry(key.clone()).or_insert(Value::Null), value);
            }
            "role" if value == "" => {}
            _ if value.is_null() => _ = message.entry(key.clone()).or_insert(Value::Null),
            _ => _ = message.insert(key.clone(), value.clone()),
        }
    }
}

fn append(sum: &mut Value, more: &Value) {
    match (&mut *sum, more) {
        (Value::String(sum), Value::String(more)) => sum.push_str(more),
        (Value::Null, more) => *sum = more.clone(),
        _ => {}
    }
}

fn add_calls(sum: &mut Value, more: &Value) {
    if sum.is_null() {
        *sum = json!([]);
    }
    let (Value::Array(calls), Some(more)) = (sum, more.as_array()) else { return };
    for delta in more {
        let Some(delta) = delta.as_object() else { continue };
        let id = text(delta, "id");
        let named =
            ["function", "custom"].iter().filter_map(|kind| delta.get(*kind)?.get("name")).any(|name| name != "");
        let place = match delta.get("index").and_then(Value::as_u64) {
            Some(index) => calls.iter().rposition(|call| call.get("index").and_then(Value::as_u64) == Some(index)),
            None if id.is_empty() && !named => calls.len().checked_sub(1),
            None => calls.iter().rposition(|call| !id.is_empty() && call.get("id").is_some_and(|known| known == id)),
        };
        // Some servers number every call 0: a new id with a name starts a new call.
        let place = place.filter(|place| {
            let known = calls[*place].get("id").and_then(Value::as_str).unwrap_or_default();
            !named || id.is_empty() || known.is_empty() || known == id
        });
        match place {
            Some(place) => {
                if let Value::Object(call) = &mut calls[place] {
                    add_call(call, delta);
                }
            }
            None => calls.push(Value::Object(delta.clone())),
        }
    }
}

fn add_call(call: &mut Map<String, Value>, delta: &Map<String, Value>) {
    for (key, value) in delta {
        match (key.as_str(), value) {
            (_, Value::Null) => {}
            ("function" | "custom", Value::Object(more)) => {
                let Value::Object(function) = call.entry(key.clone()).or_insert_with(|| json!({})) else { continue };
                let arguments = if key == "custom" { "input" } else { "arguments" };
                append(function.entry(arguments).or_insert(Value::Null), more.get(arguments).unwrap_or(&Value::Null));
                if text(function, "name").is_empty() {
                    function.insert("name".to_owned(), more.get("name").cloned().unwrap_or_else(|| Value::from("")));
                }
            }
            ("id" | "type", _) if !text(call, key).is_empty() => {}
            _ => _ = call.insert(key.clone(), value.clone()),
        }
    }
}

fn add_details(sum: &mut Value, more: &Value) {
    let (Value::Array(details), Some(more)) = (sum, more.as_array()) else { return };
    for delta in more {
        let same =
            |detail: &Value| detail.get("index") == delta.get("index") && detail.get("type") == delta.get("type");
        // Only running text is appended; encrypted pieces arrive whole.
        let running = delta.get("text").is_some() || delta.get("summary").is_some() || delta.get("signature").is_some();
        match details.iter().rposition(same).filter(|_| running && delta.get("index").is_some()) {
            Some(place) => {
                let (Value::Object(detail), Some(delta)) = (&mut details[place], delta.as_object()) else { continue };
                for (key, value) in delta {
                    match key.as_str() {
                        "text" | "summary" => append(detail.entry(key.clone()).or_insert(Value::Null), value),
                        _ if value.is_null() => {}
                        _ => _ = detail.insert(key.clone(), value.clone()),
                    }
                }
            }
            None => details.push(delta.clone()),
        }
    }
}

/// Appends content that is a list, such as Mistral's thinking followed by a string.
fn add_parts(sum: &mut Value, more: &Value) {
    let parts = |value: &Value| match value {
        Value::Array(parts) => parts.clone(),
        Value::String(text) if !text.is_empty() => vec![json!({"type": "text", "text": text})],
        _ => Vec::new(),
    };
    let mut all = parts(sum);
    for part in parts(more) {
        match all.last_mut() {
            Some(Value::Object(last)) if last.get("type") == part.get("type") && part.get("text").is_some() => {
                append(last.entry("text").or_insert(Value::Null), &part["text"]);
            }
            Some(Value::Object(last)) if last.get("type") == part.get("type") && part.get("thinking").is_some() => {
                if let (Some(Value::Array(thoughts)), Some(more)) =
                    (last.get_mut("thinking"), part["thinking"].as_array())
                {
                    thoughts.extend(more.iter().cloned());
                }
            }
            _ => all.push(part),
        }
    }
    *sum = Value::Array(all);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(deltas: &[Value]) -> Value {
        let mut assembler = Assembler::default();
        for delta in deltas {
            assembler.push(&json!({"id": "c", "choices": [{"index": 0, "delta": delta}]}));
        }
        assembler.document()["choices"][0]["message"].take()
    }

    #[test]
    fn calls_are_joined_by_index_and_keep_their_first_name() {
        let message = sum(&[
            json!({"role": "assistant", "content": null, "tool_calls": [
                {"index": 1, "id": "b", "function": {"name": "g", "arguments": ""}},
                {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}}]}),
            json!({"tool_calls": [{"index": 0, "function": {"name": "", "arguments": "}"}}]}),
            json!({"tool_calls": [{"index": 1, "function": {"arguments": "[]"}}]}),
        ]);
        let said: Vec<_> =
            message["tool_calls"].as_array().expect("calls").iter().map(|call| &call["function"]).collect();
        assert_eq!(said, [&json!({"name": "g", "arguments": "[]"}), &json!({"name": "f", "arguments": "{}"})]);
    }

    #[test]
    fn calls_that_all_have_index_zero_or_none_are_told_apart_by_id() {
        for index in [json!(0), Value::Null] {
            let call = |id: &str| json!({"tool_calls": [{"index": index, "id": id, "function": {"name": "f", "arguments": "{}"}}]});
            assert_eq!(sum(&[call("a"), call("b")])["tool_calls"].as_array().map(Vec::len), Some(2), "{index}");
        }
    }

    #[test]
    fn thinking_in_lists_is_kept_before_the_text() {
        let thinking =
            |text: &str| json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]});
        let message = sum(&[thinking("a"), thinking("b"), json!({"content": "x"}), json!({"content": "y"})]);
        assert_eq!(message["content"][0]["thinking"].as_array().map(Vec::len), Some(2));
        assert_eq!(message["content"][1]["text"], "xy");
    }

    #[test]
    fn a_stream_is_complete_at_its_last_word_or_when_each_choice_has_ended() {
        let mut assembler = Assembler::default();
        assembler.push(&json!({"choices": [], "prompt_filter_results": []}));
        assert!(!assembler.complete());
        assembler.push(&json!({"choices": [{"index": 0, "delta": {"content": "x"}}]}));
        assert!(!assembler.complete());
        assembler.push(&json!({"choices": [{"index": 0, "finish_reason": "stop"}]}));
        assert!(assembler.complete());
        let mut cut = Assembler::default();
        cut.done();
        assert!(cut.complete());
    }
}

//! Assembles the chunks of a Gemini stream.
//!
//! Parts are appended; consecutive text and consecutive thoughts are joined. A function call may arrive in pieces
//! (`partialArgs` with a JSON path each, `willContinue` until it is complete).

use super::assembler::{Assemble, append};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::mem::take;

/// Maximum depth and list length in a path of a partial argument.
const DEEPEST: usize = 32;
const LONGEST: usize = 4096;

/// Assembles chunks into a response.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    fields: Map<String, Value>,
    candidates: BTreeMap<u64, Candidate>,
}

#[derive(Debug, Default)]
struct Candidate {
    fields: Map<String, Value>,
    content: Map<String, Value>,
    parts: Vec<Value>,
    /// Whether the last part is an incomplete call.
    open: bool,
}

impl Assemble for Assembler {
    fn push(&mut self, chunk: &Value) {
        for (key, value) in chunk.as_object().into_iter().flatten() {
            match (key.as_str(), value) {
                ("candidates", _) => {
                    for (position, candidate) in value.as_array().into_iter().flatten().enumerate() {
                        let index = candidate["index"].as_u64().unwrap_or(position as u64);
                        self.candidates.entry(index).or_default().push(candidate);
                    }
                }
                // Only a chunk without a total adds to the earlier numbers.
                ("usageMetadata", Value::Object(more)) if !more.contains_key("totalTokenCount") => {
                    if let Value::Object(usage) = self.fields.entry(key.clone()).or_insert_with(|| json!({})) {
                        usage.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
                    }
                }
                _ => _ = self.fields.insert(key.clone(), value.clone()),
            }
        }
    }

    fn complete(&self) -> bool {
        self.fields.get("promptFeedback").is_some_and(|feedback| feedback.get("blockReason").is_some())
            || !self.candidates.is_empty()
                && self.candidates.values().all(|candidate| candidate.fields.contains_key("finishReason"))
    }

    fn document(&mut self) -> Value {
        if !self.candidates.is_empty() {
            let candidates = take(&mut self.candidates).into_values().map(|mut candidate| {
                candidate.content.insert("parts".to_owned(), Value::Array(candidate.parts));
                candidate.fields.insert("content".to_owned(), Value::Object(candidate.content));
                Value::Object(candidate.fields)
            });
            self.fields.insert("candidates".to_owned(), candidates.collect());
        }
        Value::Object(take(&mut self.fields))
    }
}

impl Candidate {
    fn push(&mut self, candidate: &Value) {
        for (key, value) in candidate.as_object().into_iter().flatten() {
            if key != "content" {
                self.fields.insert(key.clone(), value.clone());
            }
        }
        for (key, value) in candidate["content"].as_object().into_iter().flatten() {
            if key == "parts" {
                value.as_array().into_iter().flatten().for_each(|part| self.push_part(part));
            } else {
                self.content.insert(key.clone(), value.clone());
            }
        }
    }

    fn push_part(&mut self, part: &Value) {
        if let Some(call) = part.get("functionCall") {
            return self.push_call(part, call);
        }
        let text = part["text"].as_str();
        match (self.parts.last_mut(), text) {
            (Some(Value::Object(last)), Some(text))
                if last.get("text").is_some()
                    && last.get("thought") == part.get("thought")
                    // A signature belongs to one part: nothing is appended to it.
                    && last.get("thoughtSignature").is_none() =>
            {
                if text.is_empty()
                    && last.get("text").is_some_and(|text| text != "")
                    && part.get("thoughtSignature").is_some()
                {
                    self.parts.push(part.clone());
                    return;
                }
                if let Some(Value::String(sum)) = last.get_mut("text") {
                    sum.push_str(text);
                }
                if let Some(signature) = part.get("thoughtSignature") {
                    last.insert("thoughtSignature".to_owned(), signature.clone());
                }
            }
            _ => self.parts.push(part.clone()),
        }
    }

    fn push_call(&mut self, part: &Value, call: &Value) {
        let continues = call.get("willContinue") == Some(&Value::Bool(true));
        let named = call.get("name").is_some();
        if named || !self.open {
            let mut whole = part.clone();
            if let Some(function) = whole["functionCall"].as_object_mut() {
                function.shift_remove("willContinue");
                function.shift_remove("partialArgs");
            }
            self.parts.push(whole);
        }
        if let Some(function) = self.parts.last_mut().and_then(|last| last.get_mut("functionCall")) {
            for piece in call["partialArgs"].as_array().into_iter().flatten() {
                let args = match function.as_object_mut() {
                    Some(function) => function.entry("args").or_insert_with(|| json!({})),
                    None => continue,
                };
                set(args, piece);
            }
        }
        self.open = continues;
    }
}

/// Sets one partial argument at its path; strings at the same path are appended.
fn set(args: &mut Value, piece: &Value) {
    let Some(steps) = piece["jsonPath"].as_str().and_then(steps) else { return };
    let mut place = args;
    for step in steps {
        place = match step {
            Step::Key(key) => {
                if !place.is_object() {
                    *place = json!({});
                }
                let Value::Object(map) = place else { return };
                map.entry(key).or_insert(Value::Null)
            }
            Step::Index(index) => {
                if !place.is_array() {
                    *place = json!([]);
                }
                let Value::Array(list) = place else { return };
                while list.len() <= index {
                    list.push(Value::Null);
                }
                &mut list[index]
            }
        };
    }
    if let Some(more) = piece["stringValue"].as_str() {
        append(place, more);
    } else if let Some(value) = ["numberValue", "boolValue"].iter().find_map(|key| piece.get(*key)) {
        *place = value.clone();
    } else if piece.get("nullValue").is_some() {
        *place = Value::Null;
    }
}

enum Step {
    Key(String),
    Index(usize),
}

/// Splits a path such as `$.recipe.steps[2]` or `$['a b']`; `None` for anything else.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() == DEEPEST {
            return None;
        }
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            steps.push(Step::Key(after[..end].to_owned()));
            rest = &after[end..];
        } else {
            let after = rest.strip_prefix('[')?;
            let quote = after.chars().next().filter(|letter| ['\'', '"'].contains(letter));
            let (inside, behind) = if let Some(quote) = quote {
                let (key, behind) = after[1..].split_once(&format!("{quote}]"))?;
                (Step::Key(key.to_owned()), behind)
            } else {
                let (index, behind) = after.split_once(']')?;
                (Step::Index(index.parse().ok().filter(|index| *index < LONGEST)?), behind)
            };
            steps.push(inside);
            rest = behind;
        }
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(parts: &[Value]) -> Value {
        let mut assembler = Assembler::default();
        for part in parts {
            assembler.push(&json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]}));
        }
        assembler.document()["candidates"][0]["content"]["parts"].take()
    }

    #[test]
    fn text_is_joined_but_not_across_thoughts_and_signatures() {
        let parts = sum(&[
            json!({"text": "hm", "thought": true}),
            json!({"text": "m", "thought": true}),
            json!({"text": "a"}),
            json!({"text": "b"}),
            json!({"text": "", "thoughtSignature": "s"}),
            json!({"text": "c"}),
        ]);
        assert_eq!(
            parts,
            json!([{"text": "hmm", "thought": true}, {"text": "ab"},
            {"text": "", "thoughtSignature": "s"}, {"text": "c"}])
        );
    }

    #[test]
    fn a_call_in_pieces_is_put_together_by_its_paths() {
        let piece = |path: &str, key: &str, value: Value| json!({"functionCall": {"willContinue": true, "partialArgs": [{"jsonPath": path, key: value}]}});
        let parts = sum(&[
            json!({"functionCall": {"name": "f", "willContinue": true}, "thoughtSignature": "s"}),
            piece("$.list[1].name", "stringValue", json!("a")),
            piece("$.list[1].name", "stringValue", json!("b")),
            piece("$['odd key']", "numberValue", json!(0.5)),
            json!({"functionCall": {}}),
            json!({"functionCall": {"name": "g"}}),
        ]);
        assert_eq!(
            parts,
            json!([
            {"functionCall": {"name": "f", "args": {"list": [null, {"name": "ab"}], "odd key": 0.5}}, "thoughtSignature": "s"},
            {"functionCall": {"name": "g"}}])
        );
    }

    #[test]
    fn hostile_paths_ask_for_nothing() {
        assert!(steps("$[99999999999]").is_none());
        assert!(steps(&format!("${}", ".a".repeat(DEEPEST + 1))).is_none());
        assert!(steps("list").is_none());
        let parts = sum(&[
            json!({"functionCall": {"name": "f", "partialArgs": [{"jsonPath": "$[70000]", "stringValue": "x"}]}}),
        ]);
        assert_eq!(parts[0]["functionCall"]["args"], json!({}));
    }
}

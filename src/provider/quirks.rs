//! Deviations of servers from their dialect, as data: applied to a request's body after encoding.
//!
//! Dialects do not know about servers. A quirk removes only what the server refuses or ignores; the change is therefore
//! visible in the recording and in the evidence built from it.

use super::wire::Dialect;
use crate::settings::Quirks;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

impl Quirks {
    /// The path with the suffix that the server needs.
    pub(super) fn path(&self, path: String) -> String {
        match &self.api_version {
            None => path,
            Some(version) => {
                let joint = if path.contains('?') { '&' } else { '?' };
                format!("{path}{joint}api-version={version}")
            }
        }
    }

    /// Adapts `body`, encoded in `dialect`, to the server.
    pub(super) fn apply(&self, dialect: &Dialect, body: &mut Value) {
        let Value::Object(fields) = body else { return };
        (dialect.apply_quirks)(self, fields);
        if self.no_tool_choice {
            fields.shift_remove("tool_choice");
            fields.shift_remove("toolConfig");
        }
        if self.no_parallel_flag {
            fields.shift_remove("parallel_tool_calls");
            if let Some(Value::Object(choice)) = fields.get_mut("tool_choice") {
                choice.shift_remove("disable_parallel_tool_use");
            }
        }
        if self.no_temperature {
            fields.shift_remove("temperature");
            if let Some(Value::Object(generation)) = fields.get_mut("generationConfig") {
                generation.shift_remove("temperature");
            }
        }
    }

    /// Quirks that only servers of Chat Completions have.
    pub(super) fn chat(&self, fields: &mut Map<String, Value>) {
        if self.max_completion_tokens {
            rename(fields, "max_tokens", "max_completion_tokens");
        }
        if self.random_seed {
            rename(fields, "seed", "random_seed");
        }
        if self.any_for_required && fields.get("tool_choice").is_some_and(|choice| choice == "required") {
            fields.insert("tool_choice".to_owned(), json!("any"));
        }
        if self.no_stream_options {
            fields.shift_remove("stream_options");
        }
        if self.nine_character_ids {
            for message in fields.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
                shorten(message.get_mut("tool_call_id"));
                for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
                    shorten(call.get_mut("id"));
                }
            }
        }
    }
}

fn rename(fields: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = fields.shift_remove(from) {
        fields.insert(to.to_owned(), value);
    }
}

/// Replaces an id by nine characters derived from it; one that already fits stays.
fn shorten(id: Option<&mut Value>) {
    let Some(Value::String(id)) = id else { return };
    if id.len() != 9 || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        let digest = Sha256::digest(id.as_bytes());
        let letters = b"0123456789abcdefghijklmnopqrstuvwxyz";
        *id = digest.iter().take(9).map(|byte| char::from(letters[usize::from(*byte) % letters.len()])).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::openai_chat;
    use super::*;

    fn body() -> Value {
        json!({"model": "m", "messages": [
                {"role": "assistant", "tool_calls": [{"id": "call_1234567890"}, {"id": "abcDEF123"}]},
                {"role": "tool", "tool_call_id": "call_1234567890"}],
            "tools": [{}], "tool_choice": "required", "parallel_tool_calls": false, "temperature": 0.5,
            "max_tokens": 9, "seed": 3, "stream": true, "stream_options": {"include_usage": true}})
    }

    #[test]
    fn each_quirk_changes_its_own_member_and_no_quirk_changes_nothing() {
        let changed = |quirks: Quirks| {
            let mut changed = body();
            quirks.apply(openai_chat::DIALECT, &mut changed);
            changed
        };
        assert_eq!(changed(Quirks::default()), body());
        let quirks = Quirks { max_completion_tokens: true, ..Quirks::default() };
        assert_eq!(
            (changed(quirks.clone()).get("max_tokens"), &changed(quirks)["max_completion_tokens"]),
            (None, &json!(9))
        );
        let quirks = Quirks { any_for_required: true, random_seed: true, ..Quirks::default() };
        assert_eq!(
            (&changed(quirks.clone())["tool_choice"], &changed(quirks)["random_seed"]),
            (&json!("any"), &json!(3))
        );
        let quirks = Quirks {
            no_tool_choice: true,
            no_parallel_flag: true,
            no_temperature: true,
            no_stream_options: true,
            ..Quirks::default()
        };
        let bare = changed(quirks);
        for gone in ["tool_choice", "parallel_tool_calls", "temperature", "stream_options"] {
            assert_eq!(bare.get(gone), None, "{gone}");
        }
    }

    #[test]
    fn ids_of_nine_characters_still_link_results_to_calls() {
        let mut changed = body();
        Quirks { nine_character_ids: true, ..Quirks::default() }.apply(openai_chat::DIALECT, &mut changed);
        let id = changed.pointer("/messages/0/tool_calls/0/id").and_then(Value::as_str).expect("an id").to_owned();
        assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
        assert_eq!(changed.pointer("/messages/1/tool_call_id"), Some(&json!(id)));
        assert_eq!(changed.pointer("/messages/0/tool_calls/1/id"), Some(&json!("abcDEF123")));
    }

    #[test]
    fn a_version_goes_behind_the_path_and_behind_what_is_there_already() {
        let azure = Quirks { api_version: Some("2024-10-21".to_owned()), ..Quirks::default() };
        assert_eq!(azure.path("/chat/completions".to_owned()), "/chat/completions?api-version=2024-10-21");
        assert_eq!(azure.path("/x?alt=sse".to_owned()), "/x?alt=sse&api-version=2024-10-21");
        assert_eq!(Quirks::default().path("/x".to_owned()), "/x");
    }
}

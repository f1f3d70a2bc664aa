//! The invariant of every conversation that is sent: a tool message answers a call that was made before.

use serde_json::Value;
use std::collections::BTreeSet;

/// What breaks the invariant, in words; `None` when nothing does or the body holds no messages.
pub(super) fn broken(body: &Value) -> Option<String> {
    let messages = body.get("messages")?.as_array()?;
    let mut calls = BTreeSet::new();
    for (place, message) in messages.iter().enumerate() {
        for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            calls.extend(call.get("id").and_then(Value::as_str));
        }
        if message.get("role").and_then(Value::as_str) == Some("tool") {
            let id = message.get("tool_call_id").and_then(Value::as_str).unwrap_or_default();
            if !calls.contains(id) {
                return Some(format!("message {place} answers the call {id:?}, which no message before it makes"));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_message_without_a_call_before_it_is_found() {
        let call = json!({"role": "assistant", "tool_calls": [{"id": "a"}]});
        let answer = json!({"role": "tool", "tool_call_id": "a", "content": ""});
        assert_eq!(broken(&json!({"messages": [call, answer]})), None);
        assert!(broken(&json!({"messages": [answer, call]})).is_some_and(|words| words.starts_with("message 0")));
        assert_eq!(broken(&json!({"input": "no messages"})), None);
    }
}

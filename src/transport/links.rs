//! Checks the invariant of every conversation sent: each result answers an earlier call.
//!
//! Chat Completions and Anthropic's Messages hold calls and results in `messages`, Responses and Perplexity's Agent API
//! as items of `input`. Gemini's results name functions, which may be called repeatedly, so they are not checked.

use serde_json::Value;
use std::collections::BTreeSet;

/// Describes the violation of the invariant; `None` if there is none or the body holds no conversation.
pub(crate) fn broken(body: &Value) -> Option<String> {
    let kept = |name: &&str| body.get(name).is_some_and(|value| !value.is_null());
    if ["previous_response_id", "conversation"].iter().any(kept) {
        return None;
    }
    let list = |key: &str| body.get(key).and_then(Value::as_array);
    let mut calls = BTreeSet::new();
    for (place, message) in list("messages").or_else(|| list("input"))?.iter().enumerate() {
        let blocks = || message.get("content").and_then(Value::as_array).into_iter().flatten();
        for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            calls.extend(text(call, "id"));
        }
        calls.extend(blocks().filter(|block| is(block, "tool_use")).filter_map(|block| text(block, "id")));
        if is(message, "item_reference") {
            return None;
        }
        if is(message, "function_call") {
            calls.extend(text(message, "call_id"));
        }
        let tool = text(message, "role") == Some("tool");
        let results = blocks().filter(|block| is(block, "tool_result")).map(|block| text(block, "tool_use_id"));
        let results = results
            .chain(tool.then(|| text(message, "tool_call_id")))
            .chain(is(message, "function_call_output").then(|| text(message, "call_id")));
        for id in results.map(Option::unwrap_or_default) {
            if !calls.contains(id) {
                return Some(format!("message {place} answers the call {id:?}, which no message before it makes"));
            }
        }
    }
    None
}

fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

fn is(value: &Value, kind: &str) -> bool {
    text(value, "type") == Some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_result_without_a_call_before_it_is_found_in_every_dialect() {
        let chat = (
            "messages",
            json!({"role": "assistant", "tool_calls": [{"id": "a"}]}),
            json!({"role": "tool", "tool_call_id": "a", "content": ""}),
        );
        let blocks = (
            "messages",
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}),
        );
        let items = (
            "input",
            json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}),
            json!({"type": "function_call_output", "call_id": "a", "output": "x"}),
        );
        for (key, call, answer) in [chat, blocks, items] {
            assert_eq!(broken(&json!({ key: [call, answer] })), None);
            let words = broken(&json!({ key: [answer, call] })).expect("broken");
            assert!(words.starts_with("message 0 answers the call \"a\""), "{words}");
        }
        assert_eq!(broken(&json!({"input": "no messages"})), None);
        assert_eq!(broken(&json!({"input": [[101, 7], [9]]})), None, "token ids");
    }

    #[test]
    fn a_call_that_the_service_keeps_may_be_answered() {
        let answer = json!({"type": "function_call_output", "call_id": "a", "output": "x"});
        for body in [
            json!({"previous_response_id": "resp_1", "input": [answer]}),
            json!({"conversation": {"id": "conv_1"}, "input": [answer]}),
            json!({"input": [{"type": "item_reference", "id": "fc_1"}, answer]}),
        ] {
            assert_eq!(broken(&body), None, "{body}");
        }
        assert!(broken(&json!({"previous_response_id": null, "input": [answer]})).is_some());
    }
}

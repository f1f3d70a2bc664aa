//! Checks the invariant of every conversation sent: each result answers an earlier call.
//!
//! A dialect's layout says where calls and results have their ids. Where results name functions, which may be called
//! repeatedly, it names none, and nothing is checked.

use super::{HttpRequest, Service};
use crate::cassette::{Layout, is_marked};
use serde_json::Value;
use std::collections::BTreeSet;

/// The violation in a request; `None` for one to a declared service, whose bodies are nobody's conversation.
pub(super) fn broken_in(request: &HttpRequest) -> Option<String> {
    let read = !matches!(request.service, Service::Declared(_));
    if read { broken(request.profile.layout, &request.body) } else { None }
}

/// Describes the violation of the invariant; `None` if there is none or the body holds no conversation.
pub(crate) fn broken(layout: &Layout, body: &Value) -> Option<String> {
    let given = |at: &&str| body.pointer(at).is_some_and(|value| !value.is_null());
    if layout.continues.iter().any(given) {
        return None;
    }
    let mut calls = BTreeSet::new();
    for (place, message) in layout.messages(body).iter().enumerate() {
        if layout.references.is_some_and(|mark| is_marked(message, mark)) {
            return None;
        }
        layout.calls.iter().for_each(|ids| ids.each(message, &mut |id| calls.extend(id.and_then(Value::as_str))));
        let mut unknown = None;
        for ids in layout.results {
            ids.each(message, &mut |id| {
                let id = id.and_then(Value::as_str).unwrap_or_default();
                if !calls.contains(id) {
                    unknown.get_or_insert(id);
                }
            });
        }
        if let Some(id) = unknown {
            return Some(format!("message {place} answers the call {id:?}, which no message before it makes"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cassette::Place;
    use crate::provider::{EXACT, wire};
    use serde_json::json;

    fn layout(dialect: &str) -> &'static Layout {
        wire::by_name(dialect).expect(dialect).profile.layout
    }

    #[test]
    fn a_result_without_a_call_before_it_is_found_in_every_dialect() {
        const ODD: Layout = Layout {
            conversation: &["/payload/turns"],
            calls: &[Place::at("/wants/*/ref")],
            results: &[Place::at("/for").when("kind", &["outcome"])],
            ..Layout::NONE
        };
        let chat = [
            json!({"role": "assistant", "tool_calls": [{"id": "a"}]}),
            json!({"role": "tool", "tool_call_id": "a", "content": ""}),
        ];
        let blocks = [
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}),
        ];
        let items = [
            json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}),
            json!({"type": "function_call_output", "call_id": "a", "output": "x"}),
        ];
        let custom = [
            json!({"type": "custom_tool_call", "call_id": "a", "name": "f", "input": "free text"}),
            json!({"type": "custom_tool_call_output", "call_id": "a", "output": "x"}),
        ];
        let turns = [json!({"kind": "model", "wants": [{"ref": "a"}]}), json!({"kind": "outcome", "for": "a"})];
        for (layout, member, [call, answer]) in [
            (layout("openai-chat"), "messages", &chat),
            (layout("anthropic-messages"), "messages", &blocks),
            (layout("openai-responses"), "input", &items),
            (layout("openai-responses"), "input", &custom),
            (layout("perplexity-agent"), "input", &items),
            (layout("perplexity-sonar"), "messages", &chat),
            (EXACT.layout, "messages", &chat),
            (EXACT.layout, "messages", &blocks),
            (EXACT.layout, "input", &items),
            (&ODD, "turns", &turns),
        ] {
            let body = |messages: [&Value; 2]| match member {
                "turns" => json!({"payload": {"turns": messages}}),
                member => json!({ member: messages }),
            };
            assert_eq!(broken(layout, &body([call, answer])), None);
            let words = broken(layout, &body([answer, call])).expect("broken");
            assert!(words.starts_with("message 0 answers the call \"a\""), "{words}");
        }
        let nameless = json!({"messages": [{"role": "tool", "content": ""}]});
        assert!(broken(layout("openai-chat"), &nameless).is_some(), "a result must say what it answers");
        assert_eq!(broken(EXACT.layout, &json!({"input": "no messages"})), None);
        assert_eq!(broken(EXACT.layout, &json!({"input": [[101, 7], [9]]})), None, "token ids");
    }

    #[test]
    fn a_call_that_the_service_keeps_may_be_answered() {
        let answer = json!({"type": "function_call_output", "call_id": "a", "output": "x"});
        let layout = layout("openai-responses");
        for body in [
            json!({"previous_response_id": "resp_1", "input": [answer]}),
            json!({"conversation": {"id": "conv_1"}, "input": [answer]}),
            json!({"input": [{"type": "item_reference", "id": "fc_1"}, answer]}),
        ] {
            assert_eq!(broken(layout, &body), None, "{body}");
        }
        assert!(broken(layout, &json!({"previous_response_id": null, "input": [answer]})).is_some());
        let result =
            json!([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}]);
        for (thread, follows) in
            [(json!({"type": "create"}), false), (json!({"type": "continue", "previous_message_id": "msg_1"}), true)]
        {
            let found = broken(self::layout("anthropic-messages"), &json!({"thread": thread, "messages": result}));
            assert_eq!(found.is_none(), follows, "{thread}");
        }
    }
}

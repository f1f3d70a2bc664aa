//! Calls are unknown where their spans cannot be read, or show that something of them is missing.

use super::{agent, answer, chat, made, read, result, run, span, user};
use crate::trace::Member;
use serde_json::{Value, json};

#[test]
fn calls_are_unknown_where_a_completion_cannot_be_read_or_its_span_shows_that_something_is_missing() {
    let absent = |spans: &[Value]| read(spans).remove(0).told.and_then(|told| told.absent).expect("members");
    let says = |output: &str| json!({"gen_ai.operation.name": "chat", "gen_ai.input.messages": [user("q?")], "gen_ai.output.messages": output});
    let told = |more: Value| {
        let mut told = says(&json!([answer()]).to_string());
        more.as_object().expect("members").iter().for_each(|(name, value)| told[name] = value.clone());
        span(2, (1.0, 2.0), &told)
    };
    let of = |parts: Value| told(json!({"gen_ai.output.messages": [{"role": "assistant", "parts": parts}]}));
    let raw = |output: &str| {
        span(2, (1.0, 2.0), &json!({"openinference.span.kind": "LLM", "input.value": "q?", "output.value": output}))
    };
    let lost = |mut span: Value, name: &str| {
        span[name] = 3.into();
        span
    };
    let whole = json!([answer(), made("c1", "refund", &json!({"amount": 500}))]).to_string();
    let flat =
        span(2, (1.0, 2.0), &json!({"openinference.span.kind": "LLM", "llm.output_messages.0.message.content": "So."}));
    let tool = |parts: Value| {
        [of(json!([{"type": "text", "content": "So."}])), of(parts)].map(|span| absent(&[agent(), span]))
    };
    assert!(tool(json!([{"type": "generic", "foo": 1}])).map(|one| one.contains(&Member::Calls)) == [false, true]);
    let before = chat(3, (3.0, 4.0), &[user("q?")], &answer());
    let asks = told(json!({"gen_ai.response.finish_reasons": ["tool_calls"]}));
    let silent = |finish: &str| {
        span(2, (1.0, 2.0), &json!({"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": [finish]}))
    };
    let mute = span(2, (1.0, 2.0), &json!({"gen_ai.operation.name": "chat"}));
    let later = |span: &Value| run(5, (2.1, 2.2), span);
    for (spans, is_unknown) in [
        (vec![told(json!({"gen_ai.output.messages": whole[..whole.len() - 30]}))], true),
        (vec![told(json!({"gen_ai.output.messages": format!("{}… [300 more]", &whole[..30])}))], true),
        (vec![told(json!({"gen_ai.output.messages": "[{'role': 'assistant', 'content': 'So.'}]"}))], true),
        (vec![told(json!({"gen_ai.input.messages": whole[..40]})), before.clone()], true),
        (vec![raw(&whole[..whole.len() - 30])], true),
        (vec![raw("[1] says so, {name} too")], false),
        (vec![raw("{\"days\": 30}\nSo it is.")], false),
        (vec![raw("{name}, it is 30 days")], false),
        (vec![of(json!([{"type": "data_query", "name": "x"}, {"type": "text", "content": "So."}]))], true),
        (vec![of(json!([{"executableCode": {"code": "print(1)"}}, {"text": "So."}]))], true),
        (vec![of(json!([{"type": "tool_call", "id": "c1"}, {"type": "text", "content": "So."}]))], true),
        (
            vec![of(
                json!([{"type": "reasoning", "content": "x"}, {"type": "input_image"}, {"text": "So."}, {"inlineData": {}}]),
            )],
            false,
        ),
        (
            vec![of(json!([{"type": "tool-approval-request", "toolCallId": "c1"}, {"type": "text", "text": "So."}]))],
            false,
        ),
        (vec![lost(flat.clone(), "droppedAttributesCount")], true),
        (vec![lost(told(json!({})), "droppedAttributesCount")], false),
        (vec![lost(flat.clone(), "droppedEventsCount")], false),
        (vec![flat, lost(silent("stop"), "droppedEventsCount")], true),
        (vec![before.clone(), lost(span(5, (2.0, 2.1), &json!({})), "droppedAttributesCount")], true),
        (vec![asks.clone()], true),
        (vec![asks.clone(), later(&json!({"id": "c1"}))], false),
        (
            vec![
                asks,
                chat(3, (3.0, 4.0), &[user("q?"), made("c1", "refund", &json!({})), result("c1", "so")], &answer()),
            ],
            false,
        ),
        (vec![silent("tool_calls"), before.clone()], true),
        (vec![silent("stop"), before.clone()], false),
        (vec![mute.clone(), before], true),
        (vec![mute], false),
    ] {
        let spans = [&[agent()], &spans[..]].concat();
        assert_eq!(absent(&spans).contains(&Member::Calls), is_unknown, "{spans:?}");
    }
}

//! Tests of spans that say what another says.

use super::super::{Span, stories};
use serde_json::json;

#[test]
fn completions_with_one_id_that_contradict_each_other_count_each() {
    let said = |text: &str| json!({"gen_ai.output.messages": [{"role": "assistant", "content": text}]});
    let asked = |text: &str| json!({"gen_ai.input.messages": [{"role": "user", "content": text}]});
    let call = json!({"gen_ai.output.messages": [{"role": "assistant", "content": "one",
        "tool_calls": [{"id": "c1", "function": {"name": "delete_all", "arguments": "{}"}}]}]});
    let tokens = |name: &str, count: u64| json!({format!("gen_ai.usage.{name}"): count});
    let cached = json!({"gen_ai.usage.input_tokens": 900, "gen_ai.usage.cache_read.input_tokens": 800});
    for (outer, inner, counted) in [
        (said("one"), call, 2),
        (said("one"), said("two"), 2),
        (said("one"), said("one "), 1),
        (asked("Why?"), asked("Who?"), 2),
        (tokens("output_tokens", 5), tokens("output_tokens", 6), 2),
        (tokens("input_tokens", 5), tokens("input_tokens", 6), 2),
        (tokens("input_tokens", 5), said("one"), 1),
        (tokens("input_tokens", 100), cached, 1),
        (said("one"), json!({"error.type": "timeout"}), 2),
    ] {
        let span = |id: &str, (start_ns, end_ns): (u64, u64), more: &serde_json::Value| {
            let mut attributes = json!({"gen_ai.operation.name": "chat", "gen_ai.response.id": "chatcmpl-123"});
            attributes.as_object_mut().expect("attributes").extend(more.as_object().expect("members").clone());
            let attributes = attributes.as_object().expect("attributes").clone();
            Span { trace: "t".into(), id: id.into(), start_ns, end_ns, attributes, ..Span::default() }
        };
        let spans = vec![span("a", (1, 500_000_000), &outer), span("b", (100_000_000, 300_000_000), &inner)];
        assert_eq!(stories(spans, &[]).remove(0).completions().count(), counted, "{outer} {inner}");
    }
}

#[test]
fn spans_around_others_count_once_with_all_calls_unless_they_are_around_several_or_ran_otherwise() {
    let span = |id: &str, parent: &str, (start_ns, end_ns): (u64, u64), told: serde_json::Value| {
        let attributes = told.as_object().expect("attributes").clone();
        let parent = (!parent.is_empty()).then(|| parent.to_owned());
        Span { trace: "t".into(), id: id.into(), parent, start_ns, end_ns, attributes, ..Span::default() }
    };
    let chat = |said: &serde_json::Value| json!({"gen_ai.operation.name": "chat", "gen_ai.output.messages": [said], "gen_ai.usage.input_tokens": 7});
    let words = json!({"role": "assistant", "content": "So."});
    let call = |id: &str, arguments: &str| json!({"role": "assistant", "tool_calls": [{"id": id, "function": {"name": "look", "arguments": arguments}}]});
    let (one, same) = (call("c1", "{}"), call("", "{}"));
    let mute = json!({"gen_ai.operation.name": "chat"});
    for (outer, inner, expected) in [
        (chat(&words), vec![chat(&one)], (1, 1)),
        (chat(&one), vec![chat(&words)], (1, 1)),
        (chat(&one), vec![chat(&one)], (1, 1)),
        (chat(&one), vec![chat(&same)], (1, 1)),
        (chat(&one), vec![chat(&call("framework", "{\"a\": 1}"))], (1, 1)),
        (mute.clone(), vec![chat(&one)], (1, 1)),
        (chat(&words), vec![chat(&one), chat(&words)], (2, 1)),
        (chat(&one), vec![chat(&one), chat(&words)], (2, 1)),
        (chat(&one), vec![mute.clone(), mute.clone()], (2, 1)),
        (chat(&one), vec![mute], (1, 1)),
    ] {
        let mut spans = vec![span("o", "", (1_000, 99_000), outer.clone())];
        spans.extend(
            (1..)
                .zip(&inner)
                .map(|(at, told)| span(&format!("i{at}"), "o", (at * 10_000, at * 10_000 + 5_000), told.clone())),
        );
        let story = stories(spans, &[]).remove(0);
        let said = story.completions().filter_map(|done| match &done.operation {
            super::Operation::Completed(one) => one.output.as_ref(),
            _ => None,
        });
        let calls = said.flatten().map(|said| said.calls.len()).sum::<usize>();
        assert_eq!((story.completions().count(), calls), expected, "{outer} {inner:?}");
    }
    let twice = ["a", "b"].map(|id| span(id, "o", (10_000, 20_000), chat(&one)));
    let story = stories([vec![span("o", "", (1_000, 99_000), chat(&words))], twice.to_vec()].concat(), &[]).remove(0);
    assert_eq!(story.completions().count(), 1, "two instrumentations side by side below a third");
    let run = |arguments: serde_json::Value, more: (&str, &str)| json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.call.arguments": arguments, more.0: more.1});
    let (asked, got) = (json!({"q": "a"}), json!({"q": "b", "k": 3}));
    let (none, mcp) = (("x", "y"), ("mcp.method.name", "tools/call"));
    for (outer, inner, expected) in [
        (run(asked.clone(), none), run(asked.clone(), none), vec![&asked]),
        (run(asked.clone(), none), run(json!({"q": "a", "k": 3}), none), vec![&asked]),
        (run(json!({"q": "abc…"}), none), run(json!({"q": "abcdef"}), none), vec![&json!({"q": "abc…"})]),
        (run(asked.clone(), none), run(got.clone(), none), vec![&asked, &got]),
        (run(asked.clone(), none), run(got.clone(), mcp), vec![&got]),
    ] {
        let spans = vec![span("o", "", (1_000, 99_000), outer.clone()), span("i", "o", (2_000, 9_000), inner.clone())];
        let story = stories(spans, &[]).remove(0);
        let ran = story.operations.iter().filter(|done| !done.is_repeated).filter_map(|done| match &done.operation {
            super::Operation::Ran(ran) => ran.arguments.as_ref(),
            _ => None,
        });
        assert_eq!(ran.collect::<Vec<_>>(), expected, "{outer} {inner}");
    }
}

#[test]
fn one_answer_that_two_siblings_report_counts_once_and_a_later_one_with_its_id_too() {
    let span = |id: &str, (start_ns, end_ns): (u64, u64), more: serde_json::Value| {
        let mut attributes = json!({"gen_ai.operation.name": "chat", "gen_ai.response.id": "r1"});
        attributes.as_object_mut().expect("attributes").extend(more.as_object().expect("members").clone());
        let attributes = attributes.as_object().expect("attributes").clone();
        Span { trace: "t".into(), id: id.into(), start_ns, end_ns, attributes, ..Span::default() }
    };
    let shown = span("a", (1_000, 9_000), json!({"gen_ai.output.messages": [{"role": "assistant", "content": ""}]}));
    let words = json!([{"role": "assistant", "content": "So."}]);
    let client = span("b", (2_000, 8_000), json!({"gen_ai.usage.input_tokens": 7, "gen_ai.output.messages": words}));
    let later = span("c", (20_000, 30_000), json!({}));
    let story = stories(vec![client, shown, later], &[]).remove(0);
    let completions: Vec<_> = story.completions().map(|done| (done.at_ns, &done.operation)).collect();
    assert_eq!(completions.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1_000, 20_000]);
    let super::Operation::Completed(one) = completions[0].1 else { panic!("{completions:?}") };
    let said = one.output.as_ref().map(|said| said[0].text.as_str());
    assert_eq!((one.input_tokens, said), (Some(7), Some("So.")), "the words of the one that has them");
}

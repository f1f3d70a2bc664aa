//! Conversations told message by message.

use super::*;
use serde_json::json;

fn told(messages: &Value, graded: bool) -> Result<Vec<String>, String> {
    let roles = BTreeMap::from([("human".to_owned(), "user".to_owned())]);
    let events = events(messages.as_array().expect("a list"), &roles, "m", graded)?;
    let line = |event: &Event| {
        let what = match &event.what {
            What::TurnStarted { query } => format!("asked {query}"),
            What::ModelCalled(called) => match &called.reply {
                Reply::Completion(done) => format!("model {:?} {}", done.text, done.calls.join(",")),
                Reply::Failure { .. } => "failure".into(),
            },
            What::ToolCalled(call) => match &call.outcome {
                ToolOutcome::Ok(ToolResult::Other(value)) => format!("{} {} = {value}", call.tool, call.arguments),
                _ => format!("{} {} without result", call.tool, call.arguments),
            },
            What::TurnEnded(end) => match &end.outcome {
                TurnOutcome::Answered(answer) => format!("answer {}", answer.text),
                TurnOutcome::Failed { kind, message } => format!("{kind} {message}"),
            },
            _ => return None,
        };
        Some(format!("{} {what}", event.turn + 1))
    };
    Ok(events.iter().filter_map(line).collect())
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

#[test]
fn calls_get_their_results_by_id_and_turns_their_answers() {
    let messages = json!([
        {"role": "system", "content": "be brief"},
        {"role": "assistant", "content": "Good day!"},
        {"role": "human", "content": "q1"},
        {"role": "user", "content": [{"type": "text", "text": "and"}, {"type": "image_url"}]},
        {"role": "assistant", "content": null, "tool_calls": [call("1", "a", "{\"x\": 1}"), call("2", "b", "oops")]},
        {"role": "tool", "tool_call_id": "2", "content": "two"},
        {"role": "tool", "tool_call_id": "1", "content": "{\"ok\": true}"},
        {"role": "assistant", "content": "a1"},
        {"role": "user", "content": "q2"},
        {"role": "assistant", "content": null, "refusal": "no"},
    ]);
    let lines = told(&messages, false).expect("a conversation");
    let expected = [
        "1 asked q1\nand\n[image_url]",
        "1 model \"\" a,b",
        "1 a {\"x\":1} = {\"ok\":true}",
        "1 b \"oops\" = \"two\"",
        "1 model \"a1\" ",
        "1 answer a1",
        "2 asked q2",
        "2 model \"\" ",
        "2 refused no",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_turn_that_ends_with_a_call_or_a_result_never_ended() {
    let asked = json!({"role": "user", "content": "q"});
    let calling = json!({"role": "assistant", "content": "wait", "tool_calls": [call("1", "a", "{}")]});
    let result = json!({"role": "tool", "tool_call_id": "1", "content": ""});
    for messages in [json!([asked, calling]), json!([asked, calling, result])] {
        let lines = told(&messages, true).expect("a conversation");
        assert!(lines.iter().all(|line| !line.contains("answer")), "{lines:?}");
        assert_eq!(lines.len(), 3, "{lines:?}");
    }
}

#[test]
fn closing_words_are_an_unanswered_query_unless_the_conversation_was_graded() {
    let messages = json!([
        {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "thanks"}
    ]);
    assert_eq!(told(&messages, false).expect("told").last().map(String::as_str), Some("2 asked thanks"));
    assert_eq!(told(&messages, true).expect("told").last().map(String::as_str), Some("1 answer a"));
    let silent = json!([{"role": "user", "content": "q"}]);
    assert_eq!(told(&silent, true).expect("told"), ["1 asked q"], "silence from the start stays a failure");
}

#[test]
fn the_older_function_messages_are_read_too() {
    let messages = json!([
        {"role": "user", "content": "q"},
        {"role": "assistant", "function_call": {"name": "f", "arguments": {"x": 1}}},
        {"role": "function", "name": "f", "content": "3"},
    ]);
    assert_eq!(told(&messages, false).expect("told")[2], "1 f {\"x\":1} = 3");
}

#[test]
fn what_contradicts_itself_is_refused_with_its_place() {
    for (messages, part) in [
        (
            json!([{"role": "user", "content": "q"}, {"role": "tool", "tool_call_id": "9"}]),
            "message 2: it is the result of the call `9`",
        ),
        (json!([{"role": "narrator", "content": "q"}]), "message 1: the role `narrator`"),
        (json!([{"content": "q"}]), "no `role`"),
        (json!([3]), "it is 3"),
        (json!([{"role": "user", "content": 3}]), "`content` is 3"),
        (json!([{"role": "assistant", "tool_calls": [{}]}]), "call 1 has no `function`"),
        (json!([{"role": "assistant", "tool_calls": "x"}]), "`tool_calls` is a text"),
        (json!([{"role": "system", "content": "q"}]), "nobody asks"),
        (json!([]), "nobody asks"),
    ] {
        let mistake = told(&messages, false).expect_err(part);
        assert!(mistake.contains(part), "{mistake}");
    }
}

proptest::proptest! {
    #[test]
    fn no_list_of_messages_makes_a_panic(picks in proptest::collection::vec(0..8_usize, 0..12), graded in proptest::bool::ANY) {
        let pool = [
            json!({"role": "user", "content": "q"}),
            json!({"role": "assistant", "content": "a"}),
            json!({"role": "assistant", "content": "", "tool_calls": [call("1", "a", "{}")]}),
            json!({"role": "assistant", "tool_calls": [call("", "b", "[")]}),
            json!({"role": "tool", "tool_call_id": "1", "content": "r"}),
            json!({"role": "function", "name": "b", "content": "r"}),
            json!({"role": "system"}),
            json!({"role": "assistant", "function_call": {"name": "b"}}),
        ];
        let messages: Vec<Value> = picks.iter().map(|pick| pool[*pick].clone()).collect();
        let asked = picks.iter().filter(|pick| **pick == 0).count();
        if let Ok(lines) = told(&Value::Array(messages), graded) {
            // Every reply in a turn comes after that turn's question.
            proptest::prop_assert!(lines[0].starts_with("1 asked"));
            proptest::prop_assert!(lines.iter().filter(|line| line.contains(" asked q")).count() <= asked);
        }
    }
}

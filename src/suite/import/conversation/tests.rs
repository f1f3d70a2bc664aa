//! Tests of conversations, message by message.

use super::*;
use serde_json::json;

fn told(messages: &Value, graded: bool) -> Result<Vec<String>, ConversationError> {
    told_by(messages, &json!({"roles": {"human": "user"}}), graded.then_some(1.0))
}

fn told_by(messages: &Value, given: &Value, grade: Option<f64>) -> Result<Vec<String>, ConversationError> {
    let mut mapping = Mapping::default();
    mapping.read(given).expect("a mapping");
    let events = events(messages.as_array().expect("a list"), &mapping, "m", grade, &Roles::default())?.events;
    let line = |event: &Event| {
        let what = match &event.what {
            What::TurnStarted { query } => format!("asked {query}"),
            What::ModelCalled(called) => match &called.reply {
                Reply::Completion(done) => format!("model {:?} {}", done.text, done.calls.join(",")),
                Reply::Failure { .. } => "failure".into(),
            },
            What::ToolCalled(call) => match &call.outcome {
                ToolOutcome::Ok(ToolResult::Other(value)) => format!("{} {} = {value}", call.tool, call.arguments),
                ToolOutcome::Rejected(rejection) => format!("{} {} {}", call.tool, call.arguments, rejection.cause),
                _ => panic!("imported calls gave something or did not run"),
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
        "1 asked q1\nand",
        "1 model \"\" a,b",
        "1 a {\"x\":1} = {\"ok\":true}",
        "1 b \"oops\" not_json",
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
fn an_answer_stands_where_it_was_given_and_calls_after_it_come_after_it() {
    let asked = json!({"role": "user", "content": "q"});
    let answer = |text: &str| json!({"role": "assistant", "content": text});
    let calling = json!({"role": "assistant", "content": null, "tool_calls": [call("1", "a", "{}")]});
    let result = json!({"role": "tool", "tool_call_id": "1", "content": "r"});
    let late = told(&json!([asked, answer("so"), calling, result]), false).expect("told");
    assert_eq!(late[1], "1 model \"so\" ");
    assert!(late[2].starts_with("1 unfinished the agent went on calling"), "{late:?}");
    assert_eq!(late[4], "1 a {} = \"r\"");
    let early = told(&json!([asked, answer("wait"), calling, result, answer("so")]), false).expect("told");
    assert_eq!(early.last().map(String::as_str), Some("1 answer so"), "{early:?}");
    assert_eq!(early.iter().filter(|line| line.contains("answer")).count(), 1);
}

#[test]
fn a_call_without_a_result_was_not_executed() {
    let messages = json!([
        {"role": "user", "content": "q"},
        {"role": "assistant", "tool_calls": [call("1", "a", "{}"), call("2", "b", ""), call("3", "c", "[1]")]},
        {"role": "tool", "tool_call_id": "2", "content": "r"},
        {"role": "tool", "tool_call_id": "3", "content": "not an object"},
    ]);
    let lines = told(&messages, false).expect("told");
    assert_eq!(lines[2..], ["1 a {} no_result", "1 b {} = \"r\"", "1 c [1] not_json"]);
}

#[test]
fn parallel_calls_of_one_tool_keep_their_own_results_with_and_without_ids() {
    for (first, second, named) in [("", "", "a"), ("1", "1", "a")] {
        let messages = json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "tool_calls": [call(first, "a", "{\"x\": 1}"), call(second, "a", "{\"x\": 2}")]},
            {"role": "tool", "tool_call_id": first, "name": named, "content": "one"},
            {"role": "tool", "tool_call_id": second, "name": named, "content": "two"},
        ]);
        let lines = told(&messages, false).expect("told");
        assert_eq!(lines[2..], ["1 a {\"x\":1} = \"one\"", "1 a {\"x\":2} = \"two\""]);
    }
    let reused = json!([
        {"role": "user", "content": "q"},
        {"role": "assistant", "tool_calls": [call("1", "a", "{\"x\": 1}")]},
        {"role": "assistant", "tool_calls": [call("1", "a", "{\"x\": 2}")]},
        {"role": "tool", "tool_call_id": "1", "content": "two"},
    ]);
    let lines = told(&reused, false).expect("told");
    assert!(lines[2].ends_with("no_result") && lines[4].ends_with("= \"two\""), "{lines:?}");
    let both = json!([
        {"role": "user", "content": "q"},
        {"role": "assistant", "tool_calls": [call("1", "a", "{}"), call("2", "b", "{}")]},
        {"role": "tool", "tool_call_ids": ["1", "2"], "content": "r"},
    ]);
    assert!(told(&both, false).expect("told")[2..].iter().all(|line| line.ends_with("= \"r\"")));
}

#[test]
fn closing_words_are_a_query_unless_they_are_thanks_or_the_mapping_or_a_grade_says_otherwise() {
    let ending = |words: &str| json!([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": words}]);
    let queries = |words: &str, closing: &str, grade| {
        let lines = told_by(&ending(words), &json!({"closing": closing}), grade).expect("told");
        lines.iter().filter(|line| line.contains(" asked ")).count()
    };
    assert_eq!(queries("and the price", "thanks", None), 2);
    assert_eq!(queries("thanks, bye", "thanks", None), 1);
    assert_eq!(queries("thanks, bye", "query", None), 2);
    assert_eq!(queries("and the price", "ignored", None), 1);
    assert_eq!(queries("and the price", "thanks", Some(0.0)), 1, "whoever graded it watched it to its end");
    let silent = json!([{"role": "user", "content": "thanks"}]);
    assert_eq!(told(&silent, true).expect("told"), ["1 asked thanks"], "silence from the start stays a failure");
}

#[test]
fn silence_that_was_graded_as_a_failure_is_one_and_no_error() {
    assert_eq!(told_by(&json!([]), &json!({}), Some(0.0)), Ok(Vec::new()));
    assert!(told_by(&json!([]), &json!({}), Some(1.0)).is_err());
    assert!(told_by(&json!([]), &json!({}), None).is_err());
}

#[test]
fn a_reminder_of_the_framework_after_a_result_is_no_query_where_it_is_mapped() {
    let messages = json!([
        {"role": "user", "content": "q"},
        {"role": "assistant", "tool_calls": [call("1", "a", "{}")]},
        {"role": "tool", "tool_call_id": "1", "content": "r"},
        {"role": "user", "content": "Reminder: cite your sources."},
        {"role": "assistant", "content": "so"},
        {"role": "user", "content": "Reminder: you promised a price."},
        {"role": "assistant", "content": "9"},
    ]);
    let asked = |mapping: Value| {
        let lines = told_by(&messages, &mapping, None).expect("told");
        lines.into_iter().filter(|line| line.contains(" asked ")).collect::<Vec<_>>()
    };
    assert_eq!(asked(json!({})).len(), 3);
    let mapped = asked(json!({"reminders": ["Reminder:"]}));
    assert_eq!(mapped, ["1 asked q", "2 asked Reminder: you promised a price."], "only after a result");
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
            json!([{"role": "user", "content": "q"}, {"role": "tool", "tool_call_id": "9", "content": "x"}]),
            "message 2: it is the result of the call `9`",
        ),
        (json!([{"role": "narrator", "content": "q"}]), "message 1: the role `narrator`"),
        (json!([{"content": "q"}]), "an object with `content`, which is not understood; read are OpenAI chat"),
        (json!([3]), "it is 3"),
        (json!([{"role": "user", "content": 3}]), "`content` is 3"),
        (json!([{"role": "assistant", "tool_calls": [{}]}]), "call 1 has no `function`"),
        (json!([{"role": "assistant", "tool_calls": "x"}]), "`tool_calls` is a text"),
        (json!([{"role": "system", "content": "q"}]), "neither a question nor an answer"),
        (json!([]), "neither a question nor an answer"),
    ] {
        let mistake = told(&messages, false).expect_err(part);
        assert!(mistake.to_string().contains(part), "{mistake}");
    }
}

#[test]
fn the_arguments_of_a_tool_that_answers_are_the_answer_and_without_a_role_it_is_not_shown() {
    let asks =
        |id: &str, tool: &str, arguments: &str| json!({"role": "assistant", "tool_calls": [call(id, tool, arguments)]});
    let gives = |id: &str, content: &str| json!({"role": "tool", "tool_call_id": id, "content": content});
    let user = || json!({"role": "user", "content": "q"});
    let read = |messages: &[Value], tool: Option<&str>| {
        let roles: Roles = tool.map(|tool| (tool.to_owned(), Role::Respond)).into_iter().collect();
        let told = events(messages, &Mapping::default(), "m", Some(1.0), &roles).expect("a conversation");
        let ends = told.events.iter().filter_map(|event| match &event.what {
            What::TurnEnded(end) => Some(match &end.outcome {
                TurnOutcome::Answered(answer) => answer.text.clone(),
                TurnOutcome::Failed { kind, .. } => kind.clone(),
            }),
            _ => None,
        });
        (ends.collect::<Vec<_>>(), told.absent.is_some_and(|absent| absent.contains(&Member::Answers)), told.notes)
    };
    let answered = asks("1", "final_answer", "{\"answer\": \"X-12\"}");
    let look = || [asks("0", "look", "{}"), gives("0", "so")];
    let done = gives("1", "Final result processed.");
    let none: [&str; 0] = [];
    for (messages, ends) in [
        (vec![user(), answered.clone(), done.clone()], vec!["X-12"]),
        (vec![user(), answered.clone()], vec!["X-12"]),
        (
            [&[user()], &look()[..], &[answered.clone(), done.clone(), user(), answered.clone()]].concat(),
            vec!["X-12"; 2],
        ),
        (vec![user(), asks("1", "final_answer", "{\"n\": 5, \"unit\": \"m\"}")], vec!["{\"n\":5,\"unit\":\"m\"}"]),
        // Another attempt after arguments that the framework refused.
        (
            vec![
                user(),
                asks("1", "final_answer", "{}"),
                done.clone(),
                asks("2", "final_answer", "{\"answer\": \"X\"}"),
            ],
            vec!["X"],
        ),
        (vec![user(), answered.clone(), done.clone(), json!({"role": "assistant", "content": "Bye."})], vec!["Bye."]),
        ([&[user(), answered.clone(), done.clone()], &look()[..]].concat(), none.to_vec()),
    ] {
        let (found, is_hidden, _) = read(&messages, Some("final_answer"));
        assert_eq!((found, is_hidden), (ends.iter().map(ToString::to_string).collect(), false), "{messages:?}");
    }
    let (ends, is_hidden, notes) = read(&[user(), answered.clone(), done.clone()], None);
    assert!(ends.is_empty() && is_hidden && notes[0].contains("`roles: {respond: final_answer}`"), "{notes:?}");
    for tool in ["look", "finalize_booking", "get_response", "auto_reply"] {
        let (ends, is_hidden, _) = read(&[user(), asks("1", tool, "{}"), gives("1", "so")], None);
        assert!(ends.is_empty() && !is_hidden, "a turn that ends with a call of `{tool}` never ended");
    }
    let is_hidden = read(&[user(), answered, done], Some("say")).1;
    assert!(!is_hidden, "the scenario says which tool answers");
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
            // Every reply in a turn comes after the question of that turn.
            proptest::prop_assert!(lines[0].starts_with("1 asked"));
            proptest::prop_assert!(lines.iter().filter(|line| line.contains(" asked q")).count() <= asked);
        }
    }
}

//! Calls and results that are text.

use super::results::{found, passage};
use super::*;

#[test]
fn results_in_the_users_words_behind_a_text_with_the_calls_are_read_if_it_is_clear_whose_they_are() {
    let listed = |ids: &[&str]| {
        let all: Vec<String> = ids.iter().map(|id| format!("{{'id': '{id}', 'type': 'function'}}")).collect();
        format!("Calling tools:\n[{}]", all.join(", "))
    };
    let told_by = |ids: &[&str], observed: &[String]| {
        let mut conversation = vec![json!({"role": "user", "content": "why?"})];
        let made: Vec<Value> =
            ids.iter().map(|id| call(id, "look", &json!({"query": id}))["tool_calls"][0].clone()).collect();
        let mut exchanges =
            vec![model(&mut conversation, json!({"role": "assistant", "content": null, "tool_calls": made}))];
        conversation.pop();
        conversation.push(say("assistant", listed(ids)));
        conversation.extend(observed.iter().map(|text| say("user", text.clone())));
        exchanges.push(model(&mut conversation, json!({"role": "assistant", "content": "because"})));
        told(exchanges).0
    };
    let seen = |id: &str| format!("Observation:\n{}", passage(id));
    assert_eq!(found(&told_by(&["call_1"], &[seen("a#1")])), [Some(vec!["a#1".to_owned()])]);
    let two = told_by(&["call_1", "call_2"], &[seen("a#1"), seen("b#1")]);
    assert_eq!(found(&two), [Some(vec!["a#1".to_owned()]), Some(vec!["b#1".to_owned()])]);
    let failed = told_by(&["call_1"], &["Call id: call_1\nError:\ndown".to_owned()]);
    assert!(matches!(calls(&failed)[0].outcome, ToolOutcome::Failed { .. }), "{failed:?}");
    let joined = told_by(&["call_1", "call_2"], &["Observation:\n80 euros\n90 euros".to_owned()]);
    let both = ToolOutcome::Ok(ToolResult::other(json!("80 euros\n90 euros")));
    assert!(calls(&joined).iter().all(|call| call.outcome == both), "one text for two calls of a tool: {joined:?}");
    let lines = told_by(&["call_1", "call_2"], &[format!("Observation:\n{}\n{}", passage("a#1"), passage("b#1"))]);
    assert_eq!(found(&lines), [Some(vec!["a#1".to_owned()]), Some(vec!["b#1".to_owned()])]);
    // The conversation goes on without the call, as smolagents reports an argument that the tool does not have.
    let left_out_by = |more: &[Value]| {
        let mut conversation = vec![say("user", "why?".to_owned())];
        let mut exchanges = vec![model(&mut conversation, call("call_1", "say", &json!({"answer": "so it is"})))];
        conversation.pop();
        conversation.extend(more.iter().cloned());
        if let [one] = more
            && one["content"].as_str().is_some_and(|words| words.starts_with("why?"))
        {
            conversation.remove(0);
        }
        exchanges.push(model(&mut conversation, say("assistant", "because".to_owned())));
        calls(&told(exchanges).0)[0].outcome.clone()
    };
    let left_out = |words: &str| left_out_by(&[say("user", words.to_owned())]);
    let refused = left_out("Error:\nArgument sources is not in the tool's input schema");
    assert!(matches!(refused, ToolOutcome::Failed { .. }), "{refused:?}");
    let joined = left_out("why?\nError:\nError executing tool 'say': the index is down\nPlease try again");
    assert!(matches!(joined, ToolOutcome::Failed { .. }), "it stands behind the question: {joined:?}");
    assert!(left_out("Search first, please.").is_unseen(), "the agent asked again");
    let in_place = |own: &str| [say("assistant", own.to_owned()), say("user", "Name your sources.".to_owned())];
    assert!(left_out_by(&in_place("(called say)")).is_unseen(), "the agent asked again, in other words");
    assert!(!left_out_by(&in_place("So it is: so it is.")).is_unseen(), "the agent keeps the answer");
}

fn say(role: &str, text: String) -> Value {
    json!({"role": role, "content": text})
}

/// The calls of an agent that tells its model everything in one prompt, which grows.
fn by_prompt(steps: &[(&str, &str)]) -> Vec<What> {
    let mut prompt = "Answer with Thought, Action, Action Input, or a Final Answer.\nQuestion: why?\n".to_owned();
    let mut exchanges = Vec::new();
    for (said, observed) in steps {
        let mut conversation = vec![say("user", prompt.clone())];
        exchanges.push(model(&mut conversation, say("assistant", (*said).to_owned())));
        prompt = format!("{prompt}{said}\nObservation: {observed}\nThought:");
    }
    told(exchanges).0
}

#[test]
fn an_action_in_a_text_is_a_call_with_the_observation_in_the_next_request() {
    let look = "Thought: I look.\nAction: look\nAction Input: {\"query\": \"one\"}";
    let hit = passage("a#1").to_string();
    let end = ("Thought: done.\nFinal Answer: because", "");
    let one = by_prompt(&[(look, &hit), (&look.replace("one", "two"), "Error: down"), end]);
    assert_eq!(found(&one), [Some(vec!["a#1".to_owned()]), None]);
    assert_eq!(calls(&one)[0].arguments, json!({"query": "one"}));
    assert!(matches!(calls(&one)[1].outcome, ToolOutcome::Failed { .. }), "{one:?}");
    assert!(!one.iter().any(|what| matches!(what, What::FedBack(_) | What::Searched(_))), "{one:?}");

    // The same as messages, and an observation that its model made up.
    let mut conversation = vec![say("user", "why?".to_owned())];
    let mut exchanges = vec![model(&mut conversation, say("assistant", format!("{look}\nObservation: made up")))];
    conversation.push(say("user", format!("Observation: {hit}")));
    exchanges.push(model(&mut conversation, say("assistant", "Thought: so.\nFinal Answer: because".to_owned())));
    assert_eq!(found(&told(exchanges).0), [Some(vec!["a#1".to_owned()])]);

    // DSPy's fields.
    let chosen = "[[ ## next_thought ## ]]\nI look.\n\n[[ ## next_tool_name ## ]]\nlook\n\n[[ ## next_tool_args ## ]]\n{\"query\": \"one\"}\n\n[[ ## completed ## ]]";
    let mut exchanges = vec![model(&mut vec![say("user", "why?".to_owned())], say("assistant", chosen.to_owned()))];
    let trajectory = format!(
        "[[ ## trajectory ## ]]\n[[ ## tool_name_0 ## ]]\nlook\n\n[[ ## observation_0 ## ]]\n{hit}\n\nRespond with the corresponding output fields, starting with `[[ ## answer ## ]]`."
    );
    exchanges.push(model(&mut vec![say("user", trajectory)], say("assistant", "because".to_owned())));
    assert_eq!(found(&told(exchanges).0), [Some(vec!["a#1".to_owned()])]);
}

#[test]
fn a_text_without_an_action_of_a_tool_is_no_call_and_one_without_an_observation_has_no_result() {
    for said in [
        "Actions speak louder.\nAction: none is needed.",
        "Action: None\nAction Input: x",
        "Action: Final Answer\nAction Input: y",
    ] {
        let plain = by_prompt(&[(said, "so"), ("Final Answer: because", "")]);
        assert!(calls(&plain).is_empty(), "{plain:?}");
    }
    // What the model makes up in the place of a result is none.
    let mut conversation = vec![say("user", "why?".to_owned())];
    let made_up = "Action: look\nAction Input: one\nObservation: 99 euros";
    let mut exchanges = vec![model(&mut conversation, say("assistant", made_up.to_owned()))];
    conversation.push(say("user", "Result: 27 euros".to_owned()));
    exchanges.push(model(&mut conversation, say("assistant", "because".to_owned())));
    assert!(calls(&told(exchanges).0)[0].outcome.is_unseen());
    let mut conversation = vec![say("user", "why?".to_owned())];
    let look = "Action: look\nAction Input: one";
    let exchanges = vec![
        model(&mut conversation, say("assistant", look.to_owned())),
        model(&mut conversation, say("assistant", "because".to_owned())),
    ];
    let (events, _) = told(exchanges);
    assert!(calls(&events).len() == 1 && calls(&events)[0].outcome.is_unseen(), "{events:?}");
    assert_eq!(calls(&events)[0].arguments, json!("one"));
}

//! A search that the agent makes without a call: what it found stands in the next system prompt.

use super::*;

/// The two requests of an agent that puts its results into the system prompt of the second and never shows the call.
fn two_stages(prompt: &str) -> Vec<Passed> {
    let tools = json!([{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]);
    let asked = |system: &str, choice: &str| {
        json!({"model": "m", "tools": tools, "tool_choice": choice, "messages": [
            {"role": "system", "content": system}, {"role": "user", "content": "why?"}]})
    };
    let answer = |finish: &str, said: Value| json!({"model": "m", "choices": [{"index": 0, "finish_reason": finish, "message": said}]});
    let found = call("1", "look", &json!({"query": "cause"}));
    let said = json!({"role": "assistant", "content": "because"});
    vec![
        passed(
            Service::Model,
            openai_chat::DIALECT,
            asked("You MUST look.", "required"),
            200,
            &answer("tool_calls", found),
        ),
        passed(Service::Model, openai_chat::DIALECT, asked(prompt, "none"), 200, &answer("stop", said)),
    ]
}

#[test]
fn documents_in_the_next_system_prompt_are_the_result_of_the_search_and_the_replys_sources_those_of_the_answer() {
    let document = json!({"id": "m#4", "text": "The press is serviced every 500 hours."});
    let other = json!({"id": "m#9", "text": "The lathe is oiled once a week."});
    let body = json!({"answer": "because", "sources": [document, other]});
    let exchanges = || two_stages("Answer from these.\n[1] The press is serviced every 500 hours.");
    let (events, outcome) = told_with(exchanges(), &body, None);
    let ToolOutcome::Ok(ToolResult::Search(found)) = &calls(&events)[0].outcome else { panic!("{events:?}") };
    assert_eq!(found.hits.iter().map(|hit| hit.id.as_str()).collect::<Vec<_>>(), ["m#4"], "the other was not shown");
    let TurnOutcome::Answered(answer) = outcome else { panic!("no answer") };
    assert_eq!(answer.sources.iter().map(|source| source.id.as_str()).collect::<Vec<_>>(), ["m#4", "m#9"]);
    assert!(answer.used_internal_kb && answer.traceable && answer.unseen.is_empty(), "{answer:?}");
    // If the sources are elsewhere in the reply, the pointer says where.
    let elsewhere = json!({"answer": "because", "meta": {"docs": [document]}});
    let (events, outcome) = told_with(exchanges(), &elsewhere, Some("/meta/docs"));
    assert!(matches!(&calls(&events)[0].outcome, ToolOutcome::Ok(ToolResult::Search(_))), "{events:?}");
    assert!(matches!(outcome, TurnOutcome::Answered(answer) if answer.sources[0].id == "m#4"));
}

#[test]
fn a_search_that_neither_prompt_nor_reply_shows_is_unseen_and_so_is_what_the_answer_is_made_of() {
    let (events, outcome) = told(two_stages("Answer briefly."));
    assert!(calls(&events)[0].outcome.is_unseen(), "{events:?}");
    let TurnOutcome::Answered(answer) = outcome else { panic!("no answer") };
    assert_eq!(answer.unseen, ["sources", "used_internal_kb"]);
    assert!(!answer.traceable);
    // A source without a name leaves all of them unknown, and one that was not shown is no evidence of the search.
    for sources in [json!([{"page": 3}]), json!([{"id": "m#9", "text": "The lathe is oiled once a week."}])] {
        let (events, _) = told_with(two_stages("Answer briefly."), &json!({"sources": sources}), None);
        assert!(calls(&events)[0].outcome.is_unseen(), "{sources}");
    }
}

#[test]
fn a_reply_that_lists_no_source_uses_none_though_documents_were_found() {
    let exchanges = || two_stages("Answer from these.\n{\"chunks\": [{\"id\": \"m#4\", \"text\": \"so\"}]}");
    let used = |body: &Value| {
        let (events, outcome) = told_with(exchanges(), body, None);
        assert!(matches!(&calls(&events)[0].outcome, ToolOutcome::Ok(ToolResult::Search(_))), "{events:?}");
        let TurnOutcome::Answered(answer) = outcome else { panic!("no answer") };
        (answer.used_internal_kb, answer.unseen)
    };
    assert_eq!(used(&json!({"answer": "I found nothing.", "sources": []})), (false, Vec::new()));
    assert_eq!(used(&json!({"answer": "because"})), (true, vec!["sources".to_owned()]));
}

fn system(text: &str) -> Value {
    json!({"role": "system", "content": text})
}

#[test]
fn a_call_that_the_agent_writes_into_the_conversation_is_a_call_with_its_result_and_counts_once() {
    let forced = call("own-1", "look", &json!({"query": "cause"}));
    let mut conversation = vec![system("Look first."), json!({"role": "user", "content": "why?"}), forced];
    result(&mut conversation, "own-1", &json!({"chunks": [{"id": "a#1", "text": "so"}]}));
    let first = model(&mut conversation, call("1", "look", &json!({"query": "more"})));
    result(&mut conversation, "1", &json!({"chunks": []}));
    let second = model(&mut conversation, json!({"role": "assistant", "content": "because"}));
    let (events, _) = told(vec![first, second]);
    let made: Vec<_> = calls(&events).iter().map(|call| (call.id.as_str(), call.outcome.is_unseen())).collect();
    assert_eq!(made, [("own-1", false), ("1", false)]);
    assert!(matches!(events[0], What::ToolCalled(_)), "{events:?}");
}

#[test]
fn calls_of_earlier_turns_and_a_call_under_another_id_are_not_told_again() {
    let earlier = call("old", "look", &json!({"query": "old"}));
    let mut conversation = vec![json!({"role": "user", "content": "what?"}), earlier];
    result(&mut conversation, "old", &json!({"chunks": []}));
    conversation.extend([json!({"role": "assistant", "content": "that"}), json!({"role": "user", "content": "why?"})]);
    let first = model(&mut conversation, call("1", "look", &json!({"query": "cause"})));
    conversation.pop();
    conversation.push(call("renamed", "look", &json!({"query": "cause"})));
    result(&mut conversation, "renamed", &json!({"chunks": []}));
    let second = model(&mut conversation, json!({"role": "assistant", "content": "because"}));
    let (events, _) = told(vec![first, second]);
    assert_eq!(calls(&events).len(), 1, "{events:?}");
}

/// The search of an agent that has no tools, by what it tells the model and the sources of its reply.
fn prompted(asked: Vec<Value>, sources: &Value) -> (Option<ToolOutcome>, crate::trace::Answer) {
    let mut conversation = asked;
    let one = model(&mut conversation, json!({"role": "assistant", "content": "because"}));
    let (events, outcome) = told_with(vec![one], &json!({"sources": sources}), None);
    let TurnOutcome::Answered(answer) = outcome else { panic!("an answer") };
    let searches = events.into_iter().find_map(|what| match what {
        What::Searched(search) => Some(search.outcome),
        _ => None,
    });
    (searches, answer)
}

#[test]
fn passages_in_a_prompt_without_tools_are_what_the_agent_found_and_sources_that_stand_nowhere_are_not_shown() {
    let user = |text: &str| json!({"role": "user", "content": text});
    let passages = "Context:\n[a#1] So it is.\n\nQuestion: why?";
    for asked in [vec![system(passages), user("why?")], vec![system("Be brief."), user(passages)]] {
        let (found, answer) = prompted(asked, &json!(["a#1"]));
        let Some(ToolOutcome::Ok(ToolResult::Search(search))) = found else { panic!("{found:?}") };
        assert_eq!((search.hits[0].id.as_str(), search.hits[0].excerpt.as_str()), ("a#1", "[a#1] So it is.…"));
        assert!(answer.traceable && answer.used_internal_kb && answer.unseen.is_empty(), "{answer:?}");
    }
    let (hidden, answer) = prompted(vec![system("Be brief."), user("why?")], &json!(["a#1"]));
    assert!(hidden.is_some_and(|outcome| outcome.is_unseen()) && !answer.traceable);
    let (none, answer) = prompted(vec![system("Be brief."), user("why?")], &json!([]));
    assert!(none.is_none() && !answer.used_internal_kb);
}

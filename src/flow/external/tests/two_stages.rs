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

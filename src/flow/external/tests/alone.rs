//! What happens without a call of the model, and conversations that the service keeps.

use super::*;

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

/// The search of an agent that offers these tools and calls none, or ends with a call of `ends_with`; the reply is
/// "Open from 7:00 for 18 euros."
fn offering(prompt: &str, tools: &[&str], ends_with: Option<&str>, sources: &Value) -> Option<ToolOutcome> {
    let said = match ends_with {
        Some(tool) => call("1", tool, &json!({"answer": "Open from 7:00 for 18 euros."})),
        None => json!({"role": "assistant", "content": "Open from 7:00 for 18 euros."}),
    };
    let mut one = model(&mut vec![system(prompt), json!({"role": "user", "content": "why?"})], said);
    let tools: Vec<Value> = tools.iter().map(|tool| json!({"type": "function", "function": {"name": tool}})).collect();
    Arc::make_mut(&mut one.request.body)["tools"] = tools.into();
    let (known, roles) = ([(Role::User, "why?".to_owned())], roles());
    let mut builder = TraceBuilder::new(&roles, &Plain, &known, 0);
    assert!(builder.hear(vec![one]).is_none());
    let reply = Reply::Answer { text: "Open from 7:00 for 18 euros.".into(), body: json!({"sources": sources}) };
    builder.end(reply).expect("a reply");
    builder.events.into_iter().find_map(|(_, what)| match what {
        What::Searched(search) => Some(search.outcome),
        _ => None,
    })
}

#[test]
fn passages_in_a_prompt_beside_tools_that_did_not_search_are_what_the_agent_found() {
    let prompt = "Context:\nIt is open from 7:00 and costs 18 euros.\n\nQuestion: why?";
    let quoted = json!([{"id": "a#1", "text": "It is open from 7:00 and costs 18 euros."}]);
    for (tools, ends_with) in [(["cancel"], None), (["look"], None), (["say"], Some("say")), (["Reply"], Some("Reply"))]
    {
        let found = offering(prompt, &tools, ends_with, &quoted);
        let Some(ToolOutcome::Ok(ToolResult::Search(search))) = found else { panic!("{tools:?}: {found:?}") };
        assert_eq!(search.hits[0].id, "a#1");
        for unread in [json!(["b"]), json!([]), Value::Null] {
            let hidden = offering(prompt, &tools, ends_with, &unread);
            // Whoever could search and did not is not excused by numbers in its prompt.
            let is_unseen = hidden.is_some_and(|outcome| outcome.is_unseen());
            assert_eq!(is_unseen, tools != ["look"], "{tools:?}, {unread}");
        }
    }
}

#[test]
fn an_agent_that_can_search_and_does_not_found_nothing_where_no_prompt_holds_what_it_says() {
    for prompt in [
        "Be brief. The manuals: a.md, b.md.",
        "Say in 7 words what [{\"id\": \"a.md\"}] says.",
        "Examples: [{\"id\": \"ex-1\", \"text\": \"And dinner? It costs 18 euros, from 7:00.\"}]",
        "Today is 2026-07-18.",
    ] {
        for sources in [json!(["a.md"]), json!([{"id": "a.md", "text": "It is 18 euros, from 7:00."}]), Value::Null] {
            assert_eq!(offering(prompt, &["look", "cancel"], None, &sources), None, "{prompt} {sources}");
        }
    }
    assert_eq!(offering("Be brief.", &["find"], None, &json!(["a.md"])), None, "a tool without a role");
}

#[test]
fn a_search_that_the_provider_makes_itself_is_one_whose_result_is_not_shown() {
    let body = r#"{"id":"r1","model":"m","output":[{"type":"file_search_call","id":"f","status":"completed"},
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":"so \"type\":\"x\""}]}]}"#;
    let one = passed(
        Service::Model,
        openai_responses::DIALECT,
        json!({"model": "m", "input": "why?"}),
        200,
        &serde_json::from_str(body).expect("JSON"),
    );
    let (events, _) = told(vec![one]);
    let hidden = events.iter().find_map(|what| match what {
        What::Searched(search) => Some(search.outcome.is_unseen()),
        _ => None,
    });
    assert_eq!(hidden, Some(true), "{events:?}");
}

#[test]
fn a_request_that_continues_an_answer_is_read_with_what_came_before_it() {
    let answer = |id: &str, said: &str| {
        json!({"id": id, "model": "m", "output": [{"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": said}]}]})
    };
    let asked = |body: Value, answered: &Value| passed(Service::Model, openai_responses::DIALECT, body, 200, answered);
    let mut all = vec![
        asked(json!({"model": "m", "instructions": "Be brief.", "input": "why?"}), &answer("r1", "because")),
        asked(
            json!({"model": "m", "previous_response_id": "r1", "input": [{"role": "user", "content": "really?"}]}),
            &answer("r2", "yes"),
        ),
        asked(json!({"model": "m", "previous_response_id": "elsewhere", "input": "and?"}), &answer("r3", "no")),
    ];
    Chains::default().follow(&mut all);
    let texts = |one: &Passed| -> Vec<String> {
        let asked = crate::provider::observed::asked(&one.request).expect("a request");
        asked.messages.into_iter().map(|message| message.content).collect()
    };
    assert_eq!(texts(&all[1]), ["why?", "because", "really?"]);
    assert_eq!(texts(&all[2]), ["and?"]);
}

#[test]
fn an_answer_in_the_background_is_the_one_that_was_fetched_when_it_was_complete() {
    let responses = |status: &str, output: Value| {
        json!({"id": "r1", "object": "response", "model": "m", "background": true, "status": status, "output": output,
            "usage": {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}})
    };
    let said =
        json!([{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "because"}]}]);
    let begun = passed(
        Service::Model,
        openai_responses::DIALECT,
        json!({"model": "m", "input": "why?", "background": true}),
        200,
        &responses("queued", json!([])),
    );
    let aside = |method: &'static str, path: &str, sent: Value, answered: &Value| {
        let mut one = passed(Service::Model, openai_responses::DIALECT, sent, 200, answered);
        one.request.profile = &crate::provider::EXACT;
        (one.request.method, one.request.path) = (method, path.to_owned());
        one
    };
    let fetched =
        |status: &str, output: Value| aside("GET", "/responses/r1?a=b", Value::Null, &responses(status, output));
    let (other, waiting) = (json!([{"type": "message"}]), fetched("in_progress", json!([])));
    let mut all = vec![begun, waiting, fetched("completed", said.clone()), fetched("completed", other)];
    Chains::default().follow(&mut all);
    let read = crate::provider::observed::completion(&all[0].request, &all[0].result).result.expect("an answer");
    assert_eq!((read.content.as_str(), read.usage.input), ("because", Some(7)));
    let polled = all[1].result.as_ref().expect("a response");
    assert!(String::from_utf8_lossy(&polled.body).contains("in_progress"));

    let items = json!({"items": [{"role": "user", "content": "what?"}]});
    let mut kept = vec![
        aside("POST", "/conversations", items.clone(), &json!({"id": "c1", "object": "conversation"})),
        aside("POST", "/conversations/c1/items?include=x", items.clone(), &json!({"object": "list"})),
        aside("GET", "/conversations/c1/items", items, &json!({"object": "list"})),
        passed(
            Service::Model,
            openai_responses::DIALECT,
            json!({"model": "m", "conversation": "c1", "input": "why?"}),
            200,
            &responses("completed", said),
        ),
    ];
    Chains::default().follow(&mut kept);
    assert_eq!(kept[3].request.body["input"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_request_of_a_thread_of_messages_is_read_with_its_prompt_its_tools_and_what_came_before_it() {
    let answer = |id: &str, content: Value| json!({"id": id, "model": "m", "role": "assistant", "content": content});
    let asked =
        |body: Value, answered: &Value| passed(Service::Model, anthropic_messages::DIALECT, body, 200, answered);
    let user = |content: Value| json!({"role": "user", "content": content});
    let tools = json!([{"name": "look", "input_schema": {"type": "object"}}]);
    let called = json!([{"type": "tool_use", "id": "t1", "name": "look", "input": {"query": "cause"}}]);
    let found = json!([{"type": "tool_result", "tool_use_id": "t1", "content": "so"}]);
    let thread = |before: &str| json!({"type": "continue", "previous_message_id": before});
    let first = json!({"model": "m", "max_tokens": 9, "system": "Be brief.", "tools": tools, "thread": {"type": "create"},
        "messages": [user(json!("why?"))]});
    let second = json!({"model": "m", "max_tokens": 9, "thread": thread("m1"), "messages": [user(found)]});
    let elsewhere = json!({"model": "m", "max_tokens": 9, "thread": thread("m0"), "messages": [user(json!("and?"))]});
    let mut all = vec![
        asked(first, &answer("m1", called)),
        asked(second, &answer("m2", json!([{"type": "text", "text": "because"}]))),
        asked(elsewhere, &answer("m3", json!([{"type": "text", "text": "no"}]))),
    ];
    Chains::default().follow(&mut all);
    let read = |one: &Passed| crate::provider::observed::asked(&one.request).expect("a request");
    let roles: Vec<Role> = read(&all[1]).messages.into_iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool]);
    assert_eq!((read(&all[1]).tools.len(), read(&all[2]).messages.len()), (1, 1));
}

#[test]
fn tools_that_openai_defines_are_calls_of_the_agent_and_those_that_the_provider_runs_are_calls_with_results() {
    let said = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "because"}]});
    let answer = |output: Value| json!({"id": "r", "model": "m", "output": output});
    let asked = |input: Value, output: Value| {
        let tools = json!([{"type": "shell"}, {"type": "web_search"}]);
        let body = json!({"model": "m", "input": input, "tools": tools});
        passed(Service::Model, openai_responses::DIALECT, body, 200, &answer(output))
    };
    let user = json!({"role": "user", "content": "why?"});
    let shell = json!({"type": "shell_call", "id": "s", "call_id": "c", "action": {"commands": ["ls"]}});
    let printed = json!({"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "a.txt", "stderr": ""}]});
    let passage = json!({"results": [{"id": "a#1", "text": "so"}]}).to_string();
    let hosted = json!([{"type": "mcp_call", "id": "m", "name": "look", "arguments": "{}", "output": passage},
        {"type": "mcp_call", "id": "n", "name": "look", "arguments": "{\"page\": 2}", "output": null},
        {"type": "web_search_call", "id": "w", "status": "completed", "action": {"query": "frost"}}, said]);
    let (events, _) = told(vec![asked(json!([user]), json!([shell])), asked(json!([user, shell, printed]), hosted)]);
    let made: Vec<(&str, &ToolOutcome)> = calls(&events).iter().map(|call| (&*call.tool, &call.outcome)).collect();
    assert_eq!(made.iter().map(|(tool, _)| *tool).collect::<Vec<_>>(), ["shell", "look", "look", "web_search"]);
    assert!(matches!(made[0].1, ToolOutcome::Ok(ToolResult::Other(out)) if *out == "a.txt"), "{events:?}");
    let ToolOutcome::Ok(ToolResult::Search(found)) = made[1].1 else { panic!("{events:?}") };
    assert_eq!(found.hits[0].id, "a#1");
    let unshown = |outcome: &ToolOutcome| matches!(outcome, ToolOutcome::Ok(ToolResult::Other(out)) if *out == ToolResult::UNSHOWN);
    assert!(unshown(made[2].1), "{events:?}");
    let searched = events.iter().filter(|what| matches!(what, What::Searched(_))).count();
    assert_eq!(searched, 1, "`web_search` has no role: {events:?}");
}

#[test]
fn a_call_that_was_answered_before_lends_its_result_to_no_other_conversation() {
    let asks = |words: &str| vec![json!({"role": "user", "content": words})];
    let (mut one, mut two) = (asks("one?"), asks("two?"));
    let query = json!({"query": "same"});
    let mut exchanges = vec![model(&mut two, call("b1", "look", &query))];
    result(&mut two, "b1", &json!({"chunks": [{"id": "b#1", "text": "so"}]}));
    exchanges.push(model(&mut two, call("b2", "look", &json!({"query": "more"}))));
    exchanges.push(model(&mut one, call("a1", "look", &query)));
    result(&mut two, "b2", &json!({"chunks": []}));
    exchanges.push(model(&mut two, json!({"role": "assistant", "content": "because"})));
    result(&mut one, "a1", &json!({"error": "down"}));
    exchanges.push(model(&mut one, json!({"role": "assistant", "content": "I do not know."})));
    let (events, _) = told(exchanges);
    let of_a1 = calls(&events).into_iter().find(|call| call.id == "a1").expect("the call");
    assert!(matches!(of_a1.outcome, ToolOutcome::Failed { .. }), "{of_a1:?}");
}

#[test]
fn an_answer_that_was_cut_off_is_no_part_of_the_conversation() {
    let cut = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r1\",\"status\":\"in_progress\",\"output\":[]}}\n\n";
    let body = |input: &str| json!({"model": "m", "conversation": "c1", "input": input, "stream": true});
    let whole = json!({"id": "r2", "model": "m", "status": "completed", "output": []});
    let mut all = vec![
        passed(Service::Model, openai_responses::DIALECT, body("why?"), 200, &Value::Null),
        passed(Service::Model, openai_responses::DIALECT, body("why?"), 200, &whole),
        passed(Service::Model, openai_responses::DIALECT, body("really?"), 200, &whole),
    ];
    let first = all[0].result.as_mut().expect("a response");
    first.body = cut.into();
    first.headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
    Chains::default().follow(&mut all);
    let lengths: Vec<usize> = all.iter().map(|one| one.request.body["input"].as_array().map_or(1, Vec::len)).collect();
    assert_eq!(lengths, [1, 1, 2]);
}

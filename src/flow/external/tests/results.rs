//! Results of calls whose ids repeat, and what a dialect says of a result beside its text.

use super::*;

/// The ids that each search of a turn found; `None` for a call that did not work.
pub(super) fn found(events: &[What]) -> Vec<Option<Vec<String>>> {
    let hits = |outcome: &ToolOutcome| match outcome {
        ToolOutcome::Ok(ToolResult::Search(found)) => Some(found.hits.iter().map(|hit| hit.id.clone()).collect()),
        _ => None,
    };
    calls(events).into_iter().map(|call| hits(&call.outcome)).collect()
}

pub(super) fn passage(id: &str) -> Value {
    json!({"chunks": [{"id": id, "text": "so"}]})
}

#[test]
fn a_call_whose_id_repeats_has_the_result_behind_it() {
    // The first turn of the conversation had the same id.
    let mut conversation = vec![json!({"role": "user", "content": "when?"})];
    conversation.push(call("call_0", "look", &json!({"query": "earlier"})));
    result(&mut conversation, "call_0", &passage("earlier#1"));
    conversation.push(json!({"role": "assistant", "content": "then"}));
    conversation.push(json!({"role": "user", "content": "why?"}));
    let mut exchanges = vec![model(&mut conversation, call("call_0", "look", &json!({"query": "one"})))];
    result(&mut conversation, "call_0", &json!({"chunks": []}));
    exchanges.push(model(&mut conversation, call("call_0", "look", &json!({"query": "two"}))));
    result(&mut conversation, "call_0", &passage("b#1"));
    exchanges.push(model(&mut conversation, json!({"role": "assistant", "content": "because"})));
    let (events, _) = told(exchanges);
    assert_eq!(found(&events), [Some(vec![]), Some(vec!["b#1".to_owned()])]);
}

#[test]
fn calls_of_one_completion_with_one_id_have_their_results_in_order() {
    let mut conversation = vec![json!({"role": "user", "content": "why?"})];
    let both = ["one", "two"].map(|query| call("x", "look", &json!({"query": query}))["tool_calls"][0].clone());
    let said = json!({"role": "assistant", "content": null, "tool_calls": both});
    let mut exchanges = vec![model(&mut conversation, said)];
    result(&mut conversation, "x", &passage("a#1"));
    result(&mut conversation, "x", &passage("b#1"));
    exchanges.push(model(&mut conversation, json!({"role": "assistant", "content": "because"})));
    let (events, _) = told(exchanges);
    assert_eq!(found(&events), [Some(vec!["a#1".to_owned()]), Some(vec!["b#1".to_owned()])]);
}

#[test]
fn a_call_to_which_the_agent_gives_another_id_has_its_result() {
    let mut conversation = vec![json!({"role": "user", "content": "why?"})];
    let both = ["one", "two"].map(|query| call(query, "look", &json!({"query": query}))["tool_calls"][0].clone());
    let said = json!({"role": "assistant", "content": null, "tool_calls": both});
    let mut exchanges = vec![model(&mut conversation, said.clone())];
    let mut renamed = said;
    for (place, id) in ["own-1", "own-2"].into_iter().enumerate() {
        renamed["tool_calls"][place]["id"] = id.into();
    }
    conversation.pop();
    conversation.push(renamed);
    result(&mut conversation, "own-1", &passage("a#1"));
    result(&mut conversation, "own-2", &passage("b#1"));
    exchanges.push(model(&mut conversation, json!({"role": "assistant", "content": "because"})));
    let (events, _) = told(exchanges);
    assert_eq!(found(&events), [Some(vec!["a#1".to_owned()]), Some(vec!["b#1".to_owned()])]);
}

#[test]
fn parallel_conversations_with_equal_ids_have_each_their_own_results() {
    let asks = |words: &str| vec![json!({"role": "user", "content": words})];
    let (mut one, mut two) = (asks("one?"), asks("two?"));
    let mut exchanges = vec![model(&mut one, call("look#0", "look", &json!({"query": "one"})))];
    exchanges.push(model(&mut two, call("look#0", "look", &json!({"query": "two"}))));
    result(&mut one, "look#0", &passage("one#1"));
    result(&mut two, "look#0", &passage("two#1"));
    for conversation in [&mut one, &mut two] {
        exchanges.push(model(conversation, json!({"role": "assistant", "content": "because"})));
    }
    let (events, _) = told(exchanges);
    let made = calls(&events);
    for call in made {
        let query = call.arguments["query"].as_str().expect("a query");
        let ToolOutcome::Ok(ToolResult::Search(found)) = &call.outcome else { panic!("{call:?}") };
        assert_eq!(found.hits[0].id, format!("{query}#1"));
    }
}

/// A turn with one search over Messages, whose result is that block.
fn searched(block: &Value) -> Vec<What> {
    let dialect = anthropic_messages::DIALECT;
    let used = json!({"type": "tool_use", "id": "t1", "name": "look", "input": {"query": "cause"}});
    let answer = |content: Value, stop: &str| json!({"model": "m", "content": [content], "stop_reason": stop});
    let mut messages = vec![json!({"role": "user", "content": "why?"})];
    let tools = json!([{"name": "look", "input_schema": {"type": "object"}}]);
    let asked = |messages: &[Value]| json!({"model": "m", "max_tokens": 9, "tools": tools, "messages": messages});
    let first = passed(Service::Model, dialect, asked(&messages), 200, &answer(used.clone(), "tool_use"));
    messages.push(json!({"role": "assistant", "content": [used]}));
    messages.push(json!({"role": "user", "content": [block]}));
    let text = json!({"type": "text", "text": "because"});
    let second = passed(Service::Model, dialect, asked(&messages), 200, &answer(text, "end_turn"));
    told(vec![first, second]).0
}

#[test]
fn a_result_that_its_dialect_marks_as_an_error_has_failed_whatever_its_text_says() {
    for content in [json!("the index is offline"), json!([{"type": "text", "text": "the index is offline"}])] {
        let block =
            |failed: bool| json!({"type": "tool_result", "tool_use_id": "t1", "is_error": failed, "content": content});
        let events = searched(&block(true));
        assert!(
            matches!(&calls(&events)[0].outcome, ToolOutcome::Failed { message, .. } if message == "the index is offline")
        );
        assert!(matches!(calls(&searched(&block(false)))[0].outcome, ToolOutcome::Ok(_)));
    }
}

#[test]
fn passages_in_blocks_of_search_results_and_documents_are_read() {
    let text = json!([{"type": "text", "text": "Within 30 days."}]);
    let source = json!({"type": "text", "media_type": "text/plain", "data": "Within 30 days."});
    for block in [
        json!({"type": "search_result", "source": "returns-1", "title": "Returns", "content": text}),
        json!({"type": "document", "title": "returns-1", "source": source}),
        json!({"type": "document", "title": "returns-1", "source": {"type": "content", "content": text}}),
    ] {
        let events = searched(&json!({"type": "tool_result", "tool_use_id": "t1", "content": [block]}));
        let ToolOutcome::Ok(ToolResult::Search(found)) = &calls(&events)[0].outcome else { panic!("{block}") };
        assert_eq!((found.hits[0].id.as_str(), found.hits[0].excerpt.as_str()), ("returns-1", "Within 30 days."));
    }
}

#[test]
fn text_beside_a_document_is_a_part_of_the_result() {
    let source = json!({"type": "text", "media_type": "text/plain", "data": "Within 30 days."});
    let content = json!([{"type": "text", "text": "Order 123 has shipped."}, {"type": "document", "title": "returns-1", "source": source}]);
    let events = searched(&json!({"type": "tool_result", "tool_use_id": "t1", "content": content}));
    let ToolOutcome::Ok(ToolResult::Search(found)) = &calls(&events)[0].outcome else { panic!("{events:?}") };
    let texts: Vec<&str> = found.hits.iter().map(|hit| hit.excerpt.as_str()).collect();
    assert_eq!(texts, ["Within 30 days.", "Order 123 has shipped."]);
}

#[test]
fn passages_in_blocks_of_a_prompt_without_tools_are_what_the_agent_found() {
    let block = json!({"type": "search_result", "source": "returns-1", "title": "Returns", "content": [{"type": "text", "text": "Within 30 days."}]});
    let asked = json!({"model": "m", "max_tokens": 9, "messages": [
        {"role": "user", "content": [block, {"type": "text", "text": "why?"}]}]});
    let answer = json!({"model": "m", "content": [{"type": "text", "text": "because"}], "stop_reason": "end_turn"});
    let exchange = passed(Service::Model, anthropic_messages::DIALECT, asked, 200, &answer);
    let reply = json!({"answer": "because", "sources": ["returns-1"]});
    let (events, _) = told_with(vec![exchange], &reply, Some("/sources"));
    let searched = events.iter().find_map(|what| if let What::Searched(search) = what { Some(search) } else { None });
    let Some(ToolOutcome::Ok(ToolResult::Search(found))) = searched.map(|search| &search.outcome) else {
        panic!("{events:?}")
    };
    assert_eq!(found.hits[0].id, "returns-1");
}

/// A conversation in which the model asks the web, with that result, and whose reply names these sources.
fn searched_web(found: &Value, sources: &Value) -> (Vec<What>, TurnOutcome) {
    let mut conversation = vec![json!({"role": "user", "content": "why?"})];
    let mut exchanges = vec![model(&mut conversation, call("1", "look", &json!({"query": "cause"})))];
    result(&mut conversation, "1", &json!({"chunks": [{"id": "https://docs.example/a", "text": "so"}]}));
    exchanges.push(model(&mut conversation, call("2", "web", &json!({"query": "cause now"}))));
    result(&mut conversation, "2", found);
    exchanges.push(model(&mut conversation, call("3", "keep", &json!({"keywords": ["cause"], "result_id": "web-1"}))));
    result(&mut conversation, "3", &json!({"ok": true}));
    exchanges.push(model(&mut conversation, json!({"role": "assistant", "content": "because"})));
    told_with(exchanges, &json!({"answer": "because", "sources": sources}), Some("/sources"))
}

#[test]
fn the_pages_of_a_web_search_that_is_no_service_with_a_dialect_are_an_external_result() {
    let page =
        json!({"id": "web-1", "title": "T", "link": "https://a.example/", "content": "Now", "published": "2026"});
    let sources = json!(["web-1", "https://a.example", "https://docs.example/a", "https://other.example"]);
    let (events, outcome) = searched_web(&json!({"answer": "All of it.", "results": [page]}), &sources);
    let made = calls(&events);
    let ToolOutcome::Ok(ToolResult::External(found)) = &made[1].outcome else { panic!("{:?}", made[1]) };
    let names: Vec<&str> = found.citations.iter().map(|page| page.url.as_str()).collect();
    assert_eq!(names, ["web-1", "https://a.example/"]);
    for part in ["All of it.", "Now", "2026"] {
        assert!(found.answer.contains(part), "{}", found.answer);
    }
    let ToolOutcome::Ok(ToolResult::Indexed(entry)) = &made[2].outcome else { panic!("{:?}", made[2]) };
    assert_eq!(entry.result, found.result, "what was stored for a page is of its result");
    let TurnOutcome::Answered(answer) = outcome else { panic!("no answer") };
    let kinds: Vec<&str> = answer.sources.iter().map(|source| source.kind.as_str()).collect();
    assert_eq!(kinds, ["external", "external", "internal", "external"], "a source is of the kind of what gave it");
    assert!(answer.traceable);
    // What cannot be read stays hidden.
    let (_, outcome) = searched_web(&json!("a page of text"), &sources);
    assert!(matches!(outcome, TurnOutcome::Answered(answer) if !answer.traceable));
}

#[test]
fn calls_that_one_answer_of_the_model_asked_for_are_no_retries_of_each_other_and_a_later_one_is() {
    let story = |again: bool| {
        let mut conversation = vec![json!({"role": "user", "content": "why?"})];
        let both = ["one", "two"].map(|id| call(id, "find", &json!({"query": id}))["tool_calls"][0].clone());
        let said = json!({"role": "assistant", "content": null, "tool_calls": both});
        let mut exchanges = vec![model(&mut conversation, said)];
        result(&mut conversation, "one", &json!({"error": "down"}));
        result(&mut conversation, "two", &json!({"price": 5}));
        if again {
            exchanges.push(model(&mut conversation, call("three", "find", &json!({"query": "one"}))));
            result(&mut conversation, "three", &json!({"price": 6}));
        }
        exchanges.push(model(&mut conversation, json!({"role": "assistant", "content": "because"})));
        let (events, _) = told(exchanges);
        let booked =
            |what: &What| if let What::Retried(one) = what { Some((one.account, one.recovered)) } else { None };
        events.iter().filter_map(booked).collect::<Vec<_>>()
    };
    assert_eq!(story(false), []);
    assert_eq!(story(true), [(Account::Tool, true)]);
}

//! What traffic and spans both show counts once.

use super::*;

/// The tools and searches of a turn between its model calls, and what is odd.
fn between(exchanges: Vec<Passed>, spans: Vec<Value>) -> (Vec<String>, Vec<String>) {
    let (events, notes) = told_with_spans(exchanges, spans);
    (kinds(&events).into_iter().filter(|kind| kind != "model").collect(), notes)
}

#[test]
fn a_search_counts_once_however_little_its_span_says() {
    // Contents are not captured: the search belongs to the call of the completion before it.
    let bare = |id: u64| span(id, 99, &json!({"gen_ai.operation.name": "retrieval"}));
    for spans in [vec![bare(2)], vec![completion(1), bare(2), completion(4)]] {
        assert_eq!(between(searched("a#1"), spans), (vec!["look".to_owned()], Vec::new()));
    }
    // One before any completion is the agent's own.
    let (kinds, _) = between(searched("a#1"), vec![bare(1), completion(2), completion(4)]);
    assert_eq!(kinds, ["search ", "look"]);
    // Other words for the same documents, which is told.
    let reworded = json!({"gen_ai.retrieval.query.text": "the cause"});
    let (kinds, notes) = between(searched("a#1"), vec![retrieval(2, &reworded)]);
    assert_eq!(kinds, ["look"]);
    assert_eq!(notes, ["a call of `look` has another query in its span: traffic counts"]);
    let (kinds, _) = between(searched("b#2"), vec![retrieval(2, &reworded)]);
    assert_eq!(kinds, ["look", "search the cause"]);
}

#[test]
fn a_run_and_its_search_side_by_side_count_once() {
    let ran = |id: u64, more: &Value| {
        let mut ran = run(id, "look", more);
        ran["end_time"] = json!((id + 2) * 1_000_000_000);
        ran
    };
    let own = json!({"id": "1", "arguments": {"query": "cause"}});
    for spans in [
        vec![ran(2, &own), retrieval(3, &json!({}))],
        // The search begins first, by another clock.
        vec![retrieval(1, &json!({})), ran(2, &own)],
    ] {
        assert_eq!(between(searched("a#1"), spans), (vec!["look".to_owned()], Vec::new()));
    }
    // After the run, the same words are another search.
    let (kinds, _) = between(searched("a#1"), vec![ran(2, &own), retrieval(5, &json!({}))]);
    assert_eq!(kinds, ["look", "search cause"]);
}

#[test]
fn a_run_with_an_id_that_no_message_has_is_the_call_with_its_arguments() {
    let known = json!({"id": "framework-7", "arguments": {"query": "cause"}});
    assert_eq!(between(searched("a#1"), vec![run(2, "look", &known)]).0, ["look"]);
    let other = json!({"id": "framework-7", "arguments": {"query": "another"}});
    assert_eq!(between(searched("a#1"), vec![run(2, "look", &other)]).0, ["look", "look"]);
    // The call has a run of its own.
    let own = json!({"id": "1", "arguments": {"query": "cause"}});
    let (kinds, _) = between(searched("a#1"), vec![run(2, "look", &known), run(3, "look", &own)]);
    assert_eq!(kinds, ["look", "look"]);
}

#[test]
fn two_spans_of_one_call_count_once_and_the_last_says_how_it_ended() {
    let mut conversation = vec![json!({"role": "user", "content": "why?"})];
    let asked =
        || vec![model(&mut vec![json!({"role": "user", "content": "why?"})], call("1", "other", &json!({"n": 1})))];
    let mut failed = run(2, "other", &json!({"id": "1"}));
    failed["attributes"]["error.type"] = json!("timeout");
    let (events, notes) = told_with_spans(asked(), vec![failed, run(3, "other", &json!({"id": "1", "result": 5}))]);
    assert_eq!(calls(&events).len(), 1, "{events:?}");
    assert_eq!(calls(&events)[0].outcome, ToolOutcome::Ok(ToolResult::other(json!(5))));
    assert_eq!(notes, ["1 run of a tool with the call of a later one, which counts"]);
    // Servers that number the calls of each completion anew: two calls.
    let mut exchanges = vec![model(&mut conversation, call("call_0", "other", &json!({"n": 1})))];
    result(&mut conversation, "call_0", &json!(5));
    exchanges.push(model(&mut conversation, call("call_0", "other", &json!({"n": 1}))));
    let again = json!({"id": "call_0", "arguments": {"n": 1}, "result": 5});
    let spans = vec![completion(1), run(2, "other", &again), completion(3), run(4, "other", &again)];
    assert_eq!(between(exchanges, spans), (vec!["other".to_owned(); 2], Vec::new()));
}

#[test]
fn a_search_whose_vectors_failed_in_traffic_counts_once_with_what_its_span_found() {
    let exchanges = || {
        let mut conversation = vec![json!({"role": "user", "content": "why?"})];
        vec![vectors("query: cause", 503), model(&mut conversation, json!({"role": "assistant", "content": "because"}))]
    };
    assert_eq!(between(exchanges(), Vec::new()).0, ["search query: cause"]);
    let (events, _) = told_with_spans(exchanges(), vec![retrieval(2, &json!({}))]);
    let found: Vec<_> =
        events.iter().filter_map(|what| if let What::Searched(one) = what { Some(one) } else { None }).collect();
    assert!(
        matches!(found.as_slice(), [one] if !one.attempts.is_empty()
        && matches!(&one.outcome, ToolOutcome::Ok(ToolResult::Search(found)) if found.hits[0].id == "a#1")),
        "{found:?}"
    );
}

#[test]
fn what_ranks_the_documents_of_a_search_is_a_part_of_it() {
    let ranked = |id: u64, query: &str| {
        span(
            id,
            99,
            &json!({"openinference.span.kind": "RERANKER", "reranker.query": query,
            "reranker.output_documents.0.document.id": "z#9"}),
        )
    };
    let mut conversation = vec![json!({"role": "user", "content": "why?"})];
    let exchanges = vec![model(&mut conversation, json!({"role": "assistant", "content": "because"}))];
    let (events, _) = told_with_spans(exchanges.clone(), vec![retrieval(2, &json!({})), ranked(3, "cause")]);
    let What::Searched(search) = &events[0] else { panic!("{events:?}") };
    assert!(matches!(&search.outcome, ToolOutcome::Ok(ToolResult::Search(found)) if found.hits[0].id == "z#9"));
    assert_eq!(kinds(&events), ["search cause", "model"]);
    // Of other words, it ranks something that no span shows.
    let (kinds, _) = between(exchanges, vec![retrieval(2, &json!({})), ranked(3, "another")]);
    assert_eq!(kinds, ["search cause", "search another"]);
}

#[test]
fn completions_of_a_search_service_are_none_of_the_model() {
    let mut conversation = vec![json!({"role": "user", "content": "why?"})];
    let mut exchanges = vec![model(&mut conversation, call("1", "web", &json!({"query": "cause"})))];
    exchanges.push(search("cause", "so"));
    result(&mut conversation, "1", &json!({"answer": "so"}));
    exchanges.push(model(&mut conversation, json!({"role": "assistant", "content": "because"})));
    let chat =
        |id: u64, model: &str| span(id, 99, &json!({"gen_ai.operation.name": "chat", "gen_ai.response.model": model}));
    let own =
        run(5, "keep", &json!({"arguments": {"keywords": ["cause"], "result_id": "w-7"}, "result": {"ok": true}}));
    let spans = vec![chat(1, "m"), chat(2, "sonar"), own, chat(7, "m")];
    assert_eq!(between(exchanges, spans), (vec!["web".to_owned(), "keep".to_owned()], Vec::new()));
}

//! Spans beside the traffic of a turn.

mod joins;

use super::*;
use crate::trace::spans::{read, stories};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A span that begins at that second, within the span with that id.
fn span(id: u64, parent: u64, attributes: &Value) -> Value {
    json!({"name": "s", "context": {"trace_id": TRACE, "span_id": format!("{id:016x}")}, "start_time": id * 1_000_000_000,
        "parent_id": format!("{parent:016x}"), "end_time": id * 1_000_000_000 + 5, "attributes": attributes})
}

fn run(id: u64, tool: &str, more: &Value) -> Value {
    let mut attributes = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool});
    for (name, value) in more.as_object().expect("attributes") {
        attributes[format!("gen_ai.tool.call.{name}")] = value.clone();
    }
    span(id, 99, &attributes)
}

fn completion(id: u64) -> Value {
    span(id, 99, &json!({"gen_ai.operation.name": "chat"}))
}

/// The events of a turn with these exchanges and spans, and what is odd.
fn told_with_spans(exchanges: Vec<Passed>, spans: Vec<Value>) -> (Vec<What>, Vec<String>) {
    let known = [(Role::User, "why?".to_owned())];
    let roles = roles();
    let mut builder = TraceBuilder::new(&roles, &Plain, &known, 0);
    assert!(builder.hear(exchanges).is_none());
    let spans = read(Value::Array(spans).to_string().as_bytes()).expect("spans").spans;
    let outside = [format!("{:016x}", 99)];
    let mut all = stories(spans, &outside);
    let notes: Vec<String> = all.iter_mut().flat_map(|story| builder.add_spans(story)).collect();
    builder.end(Reply::Answer { text: "because".into(), body: json!({"answer": "because"}) }).expect("a reply");
    (builder.events.into_iter().map(|(_, what)| what).collect(), notes)
}

fn kinds(events: &[What]) -> Vec<String> {
    let kind = |what: &What| match what {
        What::ModelCalled(_) => "model".to_owned(),
        What::ToolCalled(call) => call.tool.clone(),
        What::Searched(search) => format!("search {}", search.query),
        What::Logged(entry) => entry.described().0.to_owned(),
        other => format!("{other:?}"),
    };
    events.iter().map(kind).collect()
}

#[test]
fn what_no_model_asked_for_stands_before_the_model_call_that_follows_it() {
    let mut conversation = vec![json!({"role": "user", "content": "why?"})];
    let exchanges = vec![
        model(&mut conversation, json!({"role": "assistant", "content": "cause"})),
        model(&mut conversation, json!({"role": "assistant", "content": "because"})),
    ];
    let search = json!({"openinference.span.kind": "RETRIEVER", "input.value": "cause",
        "retrieval.documents.0.document.id": "a#1", "retrieval.documents.0.document.content": "so"});
    let mut keep =
        run(5, "keep", &json!({"arguments": {"keywords": ["Cause"], "result_id": "w-7"}, "result": {"ok": true}}));
    keep["events"] = json!([{"name": "ragcheck", "attributes":
        {"ragcheck.logged": json!({"reflection": {"step": 1, "trigger": "empty", "text": "t", "shown": ""}}).to_string()}}]);
    let spans = vec![completion(1), span(2, 99, &search), completion(4), keep.clone()];
    let (events, notes) = told_with_spans(exchanges.clone(), spans);
    assert_eq!(kinds(&events), ["model", "search cause", "model", "keep", "reflection"]);
    assert!(matches!(&events[1], What::Searched(found)
        if matches!(&found.outcome, ToolOutcome::Ok(ToolResult::Search(found)) if found.hits[0].id == "a#1")));
    assert!(
        matches!(&calls(&events)[0].outcome, ToolOutcome::Ok(ToolResult::Indexed(written)) if written.keywords == ["cause"])
    );
    assert_eq!(notes, Vec::<String>::new());
    // Without spans of completions they stand before the last model call.
    let (events, _) = told_with_spans(exchanges.clone(), vec![span(2, 99, &search), keep]);
    assert_eq!(kinds(&events), ["model", "search cause", "keep", "reflection", "model"]);
    let (_, notes) = told_with_spans(exchanges, vec![completion(1), completion(2), completion(3)]);
    assert_eq!(notes, ["its spans tell 3 completions of the model and its traffic 2: traffic counts"]);
}

#[test]
fn thousands_of_runs_of_a_turn_are_added_in_their_order() {
    let mut conversation = vec![json!({"role": "user", "content": "why?"})];
    let exchanges = vec![
        model(&mut conversation, json!({"role": "assistant", "content": "cause"})),
        model(&mut conversation, json!({"role": "assistant", "content": "because"})),
    ];
    let one = |n: u64| run(n, "keep", &json!({"id": format!("c{n}"), "arguments": {"n": n}, "result": n}));
    let spans = [completion(100)].into_iter().chain((200..3_200).map(one)).chain([completion(4_000)]);
    let (events, notes) = told_with_spans(exchanges, spans.collect());
    assert_eq!((events.len(), notes.as_slice()), (3_002, &[][..]));
    let told: Vec<u64> = calls(&events).iter().filter_map(|call| call.arguments["n"].as_u64()).collect();
    assert_eq!(told, (200..3_200).collect::<Vec<_>>());
    assert!(matches!((&events[0], &events[3_001]), (What::ModelCalled(_), What::ModelCalled(_))));
}

#[test]
fn a_call_that_both_show_counts_once_and_traffic_decides() {
    let asked = |results: Option<&Value>| {
        let mut conversation = vec![json!({"role": "user", "content": "why?"})];
        let mut exchanges = vec![model(&mut conversation, call("1", "other", &json!({"n": 1})))];
        if let Some(content) = results {
            result(&mut conversation, "1", content);
            exchanges.push(model(&mut conversation, json!({"role": "assistant", "content": "because"})));
        }
        exchanges
    };
    let with = |results: Option<&Value>, more: &Value| {
        let (events, notes) = told_with_spans(asked(results), vec![run(2, "other", more)]);
        let made = calls(&events);
        assert_eq!(made.len(), 1, "{events:?}");
        (made[0].outcome.clone(), notes)
    };
    let five = ToolOutcome::Ok(ToolResult::other(json!(5)));
    // The span shows the result that no message shows: by the id of the call, or by its name.
    for id in [json!({"id": "1", "result": 5}), json!({"arguments": {"n": 1}, "result": 5})] {
        assert_eq!(with(None, &id), (five.clone(), Vec::new()));
    }
    assert_eq!(with(Some(&json!(5)), &json!({"id": "1", "result": 5})), (five.clone(), Vec::new()));
    let (outcome, notes) = with(Some(&json!(5)), &json!({"id": "1", "result": 6}));
    assert_eq!(
        (outcome, notes),
        (five, vec!["a call of `other` has another result in its span: traffic counts".to_owned()])
    );
    let (outcome, _) = with(None, &json!({"id": "1"}));
    assert!(outcome.is_unseen(), "{outcome:?}");
    // A call with another id is another call.
    let (events, _) = told_with_spans(asked(None), vec![run(2, "other", &json!({"id": "2", "result": 5}))]);
    assert_eq!(calls(&events).len(), 2);
}

#[test]
fn documents_of_a_search_within_a_run_are_its_result() {
    let mut conversation = vec![json!({"role": "user", "content": "why?"})];
    let mut exchanges = vec![model(&mut conversation, call("1", "look", &json!({"query": "cause"})))];
    result(&mut conversation, "1", &json!("So it is."));
    exchanges.push(model(&mut conversation, json!({"role": "assistant", "content": "because"})));
    let documents = json!({"gen_ai.operation.name": "retrieval", "gen_ai.data_source.id": "shelf",
        "gen_ai.retrieval.documents": [{"id": "a#1", "content": "So it is."}]});
    let spans = vec![run(2, "look", &json!({"id": "1", "result": "So it is."})), span(3, 2, &documents)];
    let (events, notes) = told_with_spans(exchanges, spans);
    assert_eq!(kinds(&events), ["model", "look", "model"]);
    let ToolOutcome::Ok(ToolResult::Search(found)) = &calls(&events)[0].outcome else { panic!("{events:?}") };
    assert_eq!((found.hits[0].id.as_str(), found.kb_id.as_str(), notes.len()), ("a#1", "shelf", 0));
}

/// A search with its result in traffic: the model asked for it and answered.
fn searched(passage: &str) -> Vec<Passed> {
    let mut conversation = vec![json!({"role": "user", "content": "why?"})];
    let mut exchanges = vec![model(&mut conversation, call("1", "look", &json!({"query": "cause"})))];
    let found = json!({"chunks": [{"id": passage, "text": "So it is."}]});
    result(&mut conversation, "1", &found);
    exchanges.push(model(&mut conversation, json!({"role": "assistant", "content": "because"})));
    exchanges
}

fn retrieval(id: u64, more: &Value) -> Value {
    let mut attributes = json!({"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": "cause",
        "gen_ai.retrieval.documents": [{"id": "a#1", "content": "So it is."}]});
    for (name, value) in more.as_object().expect("attributes") {
        attributes[name] = value.clone();
    }
    span(id, 99, &attributes)
}

#[test]
fn a_search_that_traffic_shows_with_its_result_counts_once_and_gets_what_only_its_span_says() {
    let origin = json!({"a#1": {"result": "w-7", "keywords": ["cause"]}}).to_string();
    let more = json!({"ragcheck.without_learned": [], "ragcheck.learned": origin, "gen_ai.data_source.id": "shelf"});
    let (events, notes) = told_with_spans(searched("a#1"), vec![retrieval(2, &more)]);
    assert_eq!((kinds(&events), notes), (vec!["model".into(), "look".into(), "model".into()], Vec::<String>::new()));
    let ToolOutcome::Ok(ToolResult::Search(found)) = &calls(&events)[0].outcome else { panic!("{events:?}") };
    assert_eq!((found.kb_id.as_str(), found.without_learned.len()), ("shelf", 0));
    assert_eq!(found.hits[0].learned.as_ref().map(|learned| learned.result.as_str()), Some("w-7"));
    // Other documents than the model was shown: the traffic counts.
    let (events, notes) = told_with_spans(searched("b#2"), vec![retrieval(2, &json!({}))]);
    let ToolOutcome::Ok(ToolResult::Search(found)) = &calls(&events)[0].outcome else { panic!("{events:?}") };
    assert_eq!((calls(&events).len(), found.hits[0].id.as_str()), (1, "b#2"));
    assert_eq!(notes, ["a call of `look` found other documents in its span: traffic counts"]);
    // A second search of the same words is another one.
    let (events, _) = told_with_spans(searched("a#1"), vec![retrieval(2, &json!({})), retrieval(3, &json!({}))]);
    assert_eq!(kinds(&events).iter().filter(|kind| *kind == "search cause").count(), 1, "{:?}", kinds(&events));
}

#[test]
fn a_span_says_that_a_call_which_failed_in_traffic_did_not_run() {
    let exchanges = |content: &Value| {
        let mut conversation = vec![json!({"role": "user", "content": "why?"})];
        let mut exchanges = vec![model(&mut conversation, call("1", "other", &json!({"n": 1})))];
        result(&mut conversation, "1", content);
        exchanges.push(model(&mut conversation, json!({"role": "assistant", "content": "because"})));
        exchanges
    };
    let with = |content: &Value, outcome: &str| {
        let mut ran = run(2, "other", &json!({"id": "1", "result": content}));
        ran["attributes"]["ragcheck.outcome"] = json!(outcome);
        let (events, notes) = told_with_spans(exchanges(content), vec![ran]);
        (calls(&events)[0].outcome.clone(), notes)
    };
    let early = json!({"error": {"message": "too early"}});
    assert!(matches!(with(&early, "out_of_order"), (ToolOutcome::OutOfOrder(why), notes)
        if why.reason == "too early" && notes.is_empty()));
    assert!(matches!(with(&early, "refused"), (ToolOutcome::Rejected(_), notes) if notes.is_empty()));
    assert!(matches!(with(&early, "failed"), (ToolOutcome::Failed { .. }, notes) if notes.is_empty()));
    // Without an error in the traffic it is told; another word says nothing.
    let (outcome, notes) = with(&json!(5), "failed");
    assert_eq!(outcome, ToolOutcome::Ok(ToolResult::other(json!(5))));
    assert!(matches!(notes.as_slice(), [note] if note.contains("failed by its span")), "{notes:?}");
    let (_, notes) = with(&json!(5), "rejected");
    assert!(matches!(notes.as_slice(), [note] if note.contains("is `rejected`, which is none of `ok`")), "{notes:?}");
    let (outcome, notes) = with(&json!(5), "out_of_order");
    assert_eq!(outcome, ToolOutcome::Ok(ToolResult::other(json!(5))));
    assert_eq!(notes, ["a call of `other` is out_of_order in its span, and has a result: traffic counts"]);
}

#[test]
fn entries_of_the_log_stand_around_the_runs_of_their_time_and_name_messages_by_their_digests() {
    let mut ran = run(2, "look", &json!({"id": "1"}));
    ran["attributes"]["ragcheck.outcome"] = json!("ok");
    let event = |at: u64, kind: &str, members: &Value| json!({"name": kind, "timestamp": at, "attributes": members});
    let mut agent = span(1, 99, &json!({"gen_ai.operation.name": "invoke_agent"}));
    agent["end_time"] = json!(9_000_000_000_u64);
    agent["events"] = json!([
        // Half a millisecond after the begin of the run that it led to, by another clock.
        event(
            2_000_500_000,
            "ragcheck.thought",
            &json!({"ragcheck.step": 1, "ragcheck.text": "t", "ragcheck.approach": "direct"})
        ),
        event(
            2_000_600_000,
            "ragcheck.reflection",
            &json!({"ragcheck.step": 1, "ragcheck.trigger": "empty",
            "ragcheck.text": "Look again.", "ragcheck.shown": "why?"})
        ),
        event(2_000_700_000, "ragcheck.wrong", &json!({"ragcheck.step": 1})),
    ]);
    let chat = |id: u64| span(id, 1, &json!({"gen_ai.operation.name": "chat"}));
    let spans = vec![agent, span(10, 99, &json!({"gen_ai.operation.name": "chat"})), ran, chat(3)];
    let mut spans = spans;
    spans[1]["start_time"] = json!(1_000_000_001_u64);
    spans[1]["end_time"] = json!(1_000_000_100_u64);
    let (events, notes) = told_with_spans(searched("a#1"), spans);
    assert_eq!(kinds(&events), ["model", "thought", "look", "reflection", "model"]);
    let What::Logged(crate::trace::Logged::Reflection { shown, .. }) = &events[3] else { panic!("{events:?}") };
    assert_eq!(*shown, crate::flow::digest(Role::User, "why?"));
    assert!(
        matches!(notes.as_slice(), [note] if note.starts_with("an entry `ragcheck.wrong` cannot be read")),
        "{notes:?}"
    );
}

/// A hundred turns with spans that are broken in every way that a structure can be: nothing panics, and what is not an
/// event is a note.
#[test]
fn broken_structures_beside_traffic_neither_panic_nor_get_lost() {
    for round in 0..100_u64 {
        let parents = [0, 2, 3, 2, 99, 7_777, 4];
        let mut spans: Vec<Value> = (0..6_u64)
            .map(|n| {
                let id = 2 + (n * (round % 3 + 1)) % 5;
                let parent = parents[usize::try_from((n * 5 + round) % 7).expect("small")];
                let mut one = run(id, &format!("tool-{n}"), &json!({"arguments": {"n": n}, "result": n}));
                one["parent_id"] = json!(format!("{parent:016x}"));
                one["start_time"] =
                    json!([0, u64::MAX, 1, 5_000_000_000][usize::try_from((n + round) % 4).expect("small")]);
                one["end_time"] = json!(if round % 2 == 0 { 0 } else { 3 });
                one
            })
            .collect();
        if round % 5 == 0 {
            spans.push(spans[0].clone());
        }
        if round % 7 == 0 {
            spans[1]["attributes"]["gen_ai.tool.call.result"] = json!("x".repeat(200_000));
        }
        let (events, notes) = told_with_spans(searched("a#1"), spans.clone());
        let tools: Vec<String> = calls(&events).iter().map(|call| call.tool.clone()).collect();
        let seen = |n: u64| tools.iter().filter(|one| **one == format!("tool-{n}")).count();
        assert!((0..6).all(|n| seen(n) <= 1), "{round}: {tools:?}");
        // What is no event is counted in a note.
        let lost = (0..6).filter(|n| seen(*n) == 0).count();
        let named = notes.iter().filter(|note| note.contains("circle") || note.contains("id of another"));
        let named: usize = named.filter_map(|note| note.split(' ').next()?.parse::<usize>().ok()).sum();
        assert!(lost <= named, "{round}: {tools:?} {notes:?}");
        assert!(notes.iter().any(|note| note.contains("impossible time")), "{round}: {notes:?}");
    }
}

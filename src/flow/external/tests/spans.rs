//! Spans beside the traffic of a turn.

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
    let mut telling = TraceBuilder::new(&roles, &Plain, &known, 0);
    assert!(telling.hear(exchanges).is_none());
    let spans = read(Value::Array(spans).to_string().as_bytes()).expect("spans").spans;
    let outside = [format!("{:016x}", 99)];
    let notes: Vec<String> = stories(spans, &outside).iter().flat_map(|story| telling.add_spans(story)).collect();
    telling.end(Reply::Answer { text: "because".into(), body: json!({"answer": "because"}) }).expect("a reply");
    (telling.into_events().into_iter().map(|(_, what)| what).collect(), notes)
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

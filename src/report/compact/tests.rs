use super::*;
use crate::metric::sample::searching_itself;
use crate::report::sample;
use crate::report::searchable::Searchable;
use crate::trace::{NamedPassage, PassageText};
use serde_json::{Value, json};

fn encoded(copies: usize) -> Value {
    let run = sample::run(copies);
    let mut encoder = Encoder::default();
    for (trace, result) in run.traces.iter().zip(&run.evaluation.trials.to_vec()) {
        encoder.add(trace, Beside::default(), result);
    }
    serde_json::from_slice(&encoder.finish().1).expect("a block is JSON")
}

#[test]
fn every_event_of_every_trial_is_there() {
    let run = sample::run(1);
    let block = encoded(1);
    for (trial, trace) in block["t"].as_array().expect("trials").iter().zip(&run.traces) {
        assert_eq!(trial["e"].as_array().expect("events").len(), trace.events.len());
    }
}

#[test]
fn a_search_of_the_flows_own_is_a_call_that_no_completion_asked_for() {
    let run = sample::run(1);
    let own = searching_itself(&run.traces[0]);
    let mut encoder = Encoder::default();
    encoder.add(&own, Beside::default(), &run.evaluation.trials.to_vec()[0]);
    let block: Value = serde_json::from_slice(&encoder.finish().1).expect("a block is JSON");
    let rows: Vec<&Value> = block["t"][0]["e"].as_array().expect("events").iter().collect();
    let search = rows.iter().find(|row| row[3] == "t" && row[4][2] == "search").expect("a search");
    assert_eq!((&search[4][0][0], &search[4][0][1]), (&Value::Null, &json!("search")));
    assert_eq!(Searchable::of(&own), Searchable::of(&run.traces[0]), "found by the same words");
}

#[test]
fn a_long_string_is_kept_once_however_often_it_is_used() {
    let run = sample::run(1);
    let strings = |copies: usize| {
        let mut encoder = Encoder::default();
        for _ in 0..copies {
            encoder.add(&run.traces[1], Beside::default(), &run.evaluation.trials.to_vec()[1]);
        }
        let block: Value = serde_json::from_slice(&encoder.finish().1).expect("a block is JSON");
        block["s"].as_array().expect("strings").len()
    };
    assert!(strings(1) > 5);
    assert_eq!(strings(1), strings(3));
}

#[test]
fn a_text_of_several_blocks_is_stored_once_for_all_from_the_second_one_on() {
    let run = sample::run(1);
    let result = &run.evaluation.trials.to_vec()[1];
    let mut common = CommonTexts::default();
    let blocks: Vec<Value> = (0..3)
        .map(|_| {
            let mut encoder = Encoder::default();
            encoder.swap_common(&mut common);
            encoder.add(&run.traces[1], Beside::default(), result);
            encoder.swap_common(&mut common);
            serde_json::from_slice(&encoder.finish().1).expect("a block is JSON")
        })
        .collect();
    let own = |place: usize| blocks[place]["s"].as_array().expect("strings").clone();
    let shared: Vec<Value> = serde_json::from_slice(&common.json()).expect("an array");
    assert!(own(0).len() > 5 && own(1).is_empty() && own(2).is_empty());
    assert_eq!(shared.len(), own(0).len());
    assert_eq!(blocks[1], blocks[2]);
    let asked = |block: &Value| {
        let events = block["t"][0]["e"].as_array().expect("events").clone();
        events.iter().find(|event| event[3] == "u").map(|event| event[4][0].as_i64().expect("a long question"))
    };
    let (first, second) = (asked(&blocks[0]).expect("asked"), asked(&blocks[1]).expect("asked"));
    assert!(first >= 0 && second < 0);
    assert_eq!(own(0)[first as usize], shared[(-1 - second) as usize]);
}

#[test]
fn a_passage_is_there_whole_and_a_grade_with_what_it_rests_on() {
    let run = sample::run(1);
    let search = run.traces[0].searches().next().expect("a search");
    let (hit, base) = (&search.hits[0], search.kb_id.clone());
    let text = format!("{} and what follows", hit.excerpt);
    let passage = PassageText { base, id: hit.id.clone(), title: hit.title.clone(), text: text.clone() };
    let passages = [NamedPassage::of(passage).into()];
    let grade = json!({"version": 1, "trial": "t", "conversation": 0, "turn": 0, "label": "turn 1", "answer": "a",
        "item": "grounded", "kind": "model", "value": "fail", "evidence": "the words it quotes", "model": "grader",
        "rubric": "r", "content": "c"});
    let grades = [serde_json::from_value(grade).expect("a grade")];
    let mut encoder = Encoder::default();
    let beside = Beside { grades: &grades, passages: &passages };
    encoder.add(&run.traces[0], beside, &run.evaluation.trials.to_vec()[0]);
    let block: Value = serde_json::from_slice(&encoder.finish().1).expect("a block is JSON");
    assert_eq!(block["t"][0]["g"], json!([[0, 0, "grounded", "fail", "the words it quotes", "", "grader"]]));
    let strings = block["s"].as_array().expect("strings");
    assert!(strings.contains(&json!(text)), "{strings:?}");
    let whole = |event: &Value| event[4][4][0][5].as_u64().map(|at| strings[at as usize].clone());
    let events = block["t"][0]["e"].as_array().expect("events");
    let found = events.iter().find(|event| event[4][2] == "search").and_then(whole);
    assert_eq!(found, Some(json!(text)));
}

#[test]
fn the_service_of_a_completion_and_a_request_outside_any_call_are_written() {
    let run = sample::run(1);
    let mut trace = run.traces[0].clone();
    let called = |event: &Event| matches!(event.what, What::ModelCalled(_));
    let mut model = trace.events.iter().find(|event| called(event)).expect("a completion").clone();
    if let What::ModelCalled(called) = &mut model.what {
        called.service = Some("claude".to_owned());
    }
    let requested = |status: u16, failed: Option<&str>| {
        let attempt = json!({"status": status, "took_us": 5});
        let one = json!({"service": "vectors", "method": "GET", "path": "/heartbeat", "failed": failed,
            "took_us": 5, "attempts": [attempt]});
        let what = What::Requested(serde_json::from_value(one).expect("a request"));
        Event { at_us: 0, conversation: 0, turn: 0, what }
    };
    trace.events = vec![model, requested(200, None), requested(503, Some("down"))];
    let mut encoder = Encoder::default();
    encoder.add(&trace, Beside::default(), &run.evaluation.trials.to_vec()[0]);
    let block: Value = serde_json::from_slice(&encoder.finish().1).expect("a block is JSON");
    let strings = block["s"].as_array().expect("strings");
    let text = |value: &Value| match value.as_u64() {
        Some(number) => strings[number as usize].as_str().expect("text").to_owned(),
        None => value.as_str().unwrap_or_default().to_owned(),
    };
    let events = &block["t"][0]["e"];
    assert_eq!(text(&events[0][4][0][6]), "claude", "{events}");
    for (place, outcome, told) in
        [(1, "answered", "GET /heartbeat: HTTP 200"), (2, "unanswered", "GET /heartbeat: HTTP 503, FAILED: down")]
    {
        let row = &events[place][4];
        assert_eq!((text(&row[0][1]).as_str(), row[2].as_str()), ("vectors", Some(outcome)), "{row}");
        assert_eq!(text(&row[3]), told, "{row}");
    }
}

#[test]
fn endless_text_and_endless_trials_are_cut() {
    let run = sample::run(1);
    let mut trace = run.traces[0].clone();
    let query = "x".repeat(100_000);
    let event = Event { at_us: 0, conversation: 0, turn: 0, what: What::TurnStarted { query } };
    trace.events = vec![event; EVENTS + 5];
    let mut encoder = Encoder::default();
    encoder.add(&trace, Beside::default(), &run.evaluation.trials.to_vec()[0]);
    let block: Value = serde_json::from_slice(&encoder.finish().1).expect("a block is JSON");
    assert_eq!(block["t"][0]["c"], 5);
    let longest = block["s"].as_array().expect("strings").iter().filter_map(Value::as_str).map(|s| s.chars().count());
    assert_eq!(longest.max(), Some(TEXT));
}

//! `ragcheck promote`: the case of a trace passes `check` and runs, and its expectations hold on the trace and fail when it is
//! broken.

use super::project::{Outcome, Project};
use super::simulator::Simulator;
use serde_json::{Value, json};

const SCENARIO: &str = "scenarios/questions.yaml";

/// A trace of an agent whose tools have other names than those of the scenario.
fn trace() -> Value {
    json!({"id": "prod-1", "model": "m", "recorded_at": "2026-07-02T10:00:00Z",
        "roles": {"search_docs": "knowledge", "reply": "respond"},
        "conversations": [{"turns": [{
            "message": "How high is the deposit for a cargo bike, key sk-proj-Zq8vN2mK4xT7wR1yB5cD9fG3hJ6kL0pS?",
            "calls": [
                {"id": "c1", "tool": "search_docs", "arguments": {"query": "deposit cargo bike"}, "outcome": "ok"},
                {"id": "c2", "tool": "reply", "arguments": {}, "outcome": "ok", "result": {}}],
            "searches": [{"call": "c1", "passages": [{"id": "hire#1", "title": "Deposit", "text": "The deposit is 80 euros."}]}],
            "answer": {"text": "It is 80 euros [1].", "sources": [{"id": "hire#1"}]}}]}]})
}

fn promote(project: &Project, trace: &Value, more: &[&str]) -> Outcome {
    project.write("trace.json", &trace.to_string());
    project.run(&[&["promote", "trace.json", "--case", "from-production", "--scenario", SCENARIO][..], more].concat())
}

/// The verdict of a trace by the expectations of the promoted case.
fn verdict(project: &Project, mut trace: Value) -> String {
    trace["case"] = json!("from-production");
    project.write("again.json", &trace.to_string());
    project.run(&["score", "--import", "again.json", "--scenario", SCENARIO]);
    project.latest("run.json")["trials"][0]["verdict"].as_str().expect("a verdict").to_owned()
}

#[test]
fn a_promoted_case_passes_check_and_runs_and_holds_no_secret() {
    let project = Project::starter();
    let outcome = promote(&project, &trace(), &[]);
    outcome.expect_code(0);
    let scenario = project.read(SCENARIO);
    assert!(!scenario.contains("Zq8vN2mK4xT7"), "{scenario}");
    let at = |words: &str| outcome.stdout.find(words).unwrap_or_else(|| panic!("{words}: {}", outcome.stdout));
    assert!(at("in_order") < at("knowledge_base_search") && at("knowledge_base_search") < at("generate_response"));
    assert!(at("# Promoted from trace.json") < at("- case: \"from-production\"") && at("80") > 0);
    assert!(scenario.contains("  # found hire#1: The deposit is 80 euros."), "{scenario}");
    assert!(outcome.stderr.contains("no lane: a trace holds no exchanges"), "{}", outcome.stderr);
    project.run(&["check"]).expect_code(0);
    let _simulator = Simulator::start(&project, "simulator/behaviour.yaml");
    let recorded = project.run(&["run", SCENARIO, "--only", "from-production", "--mode", "record"]);
    assert!(recorded.stdout.contains("2 trials: 2 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    let replayed = project.run(&["run", SCENARIO, "--only", "from-production"]);
    assert!(replayed.stdout.contains("2 trials: 2 PASS"), "{}{}", replayed.stdout, replayed.stderr);
    let again = promote(&project, &trace(), &[]);
    again.expect_code(2);
    assert!(again.stderr.contains("has a case `from-production` already"), "{}", again.stderr);
}

#[test]
fn a_promoted_case_is_printed_as_json_by_its_schema() {
    let project = Project::starter();
    let outcome = promote(&project, &trace(), &["--output", "json"]);
    outcome.expect_code(0);
    let printed = super::schemas::valid("promote", &outcome.stdout);
    assert_eq!(printed["case"]["case"], "from-production", "{printed}");
}

#[test]
fn keys_reach_neither_a_case_nor_a_trace_in_any_format() {
    const KEY: &str = "sk-proj-Zq8vN2mK4xT7wR1yB5cD9fG3hJ6kL0pS";
    let asked = json!([{"role": "user", "content": format!("My key is {KEY}. How high is the deposit?")}]);
    let said = json!({"role": "assistant", "content": format!("Not {KEY}, but 80 euros.")});
    let attributes = [
        ("gen_ai.operation.name", "chat".to_owned()),
        ("gen_ai.input.messages", asked.to_string()),
        ("gen_ai.output.messages", said.to_string()),
    ];
    let attributes: Vec<Value> =
        attributes.map(|(key, value)| json!({"key": key, "value": {"stringValue": value}})).into();
    let span = json!({"traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "spanId": "00f067aa0ba902b7", "name": KEY,
        "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000001000000000", "attributes": attributes});
    for (format, file) in [
        ("messages", json!({"messages": [asked[0], said]})),
        ("otlp", json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})),
        ("evals", json!({"item": {"key": KEY}, "sample": {"input": asked, "output": [said]}})),
    ] {
        let project = Project::starter();
        let outcome = promote(&project, &file, &[]);
        outcome.expect_code(0);
        let scored = project.run(&["score", "--import", "trace.json"]);
        assert!(scored.stderr.contains(&format!("read as `{format}`")), "{}", scored.stderr);
        assert!(project.traces()[0].to_string().contains("80 euros"));
        let run = project.newest();
        let files =
            ["traces.jsonl", "plan.json", "run.json", "index.html"].map(|file| project.read(&format!("{run}/{file}")));
        let all =
            [files.concat(), project.read(SCENARIO), outcome.stdout, outcome.stderr, scored.stdout, scored.stderr];
        assert!(!all.concat().contains("Zq8vN2mK4xT7"), "{format}");
    }
}

#[test]
fn proposed_expectations_hold_on_the_trace_and_fail_when_it_is_broken() {
    let project = Project::starter();
    // The agent itself: its tools have the names of the scenario.
    let mut own = trace();
    let turn = &mut own["conversations"][0]["turns"][0];
    turn["calls"][0]["tool"] = json!("knowledge_base_search");
    turn["calls"][1]["tool"] = json!("generate_response");
    own["roles"] = json!({"knowledge_base_search": "knowledge", "generate_response": "respond"});
    promote(&project, &own, &[]).expect_code(0);
    assert_eq!(verdict(&project, own.clone()), "PASS");
    let broken = |path: &str, value: Value| {
        let mut trace = own.clone();
        *trace.pointer_mut(&format!("/conversations/0/turns/0{path}")).expect("a member") = value;
        trace
    };
    for (path, value) in [
        ("/calls/0/tool", json!("perplexity_search")),
        ("/calls/0/outcome", json!("failed")),
        ("/answer/text", json!("It is 90 euros [1].")),
        ("/answer/sources", json!([])),
        ("/answer", Value::Null),
    ] {
        assert_eq!(verdict(&project, broken(path, value)), "FAIL", "{path}");
    }
}

#[test]
fn a_trace_without_contents_says_what_is_missing_and_several_are_listed() {
    let project = Project::starter();
    let before = project.read(SCENARIO);
    let mut bare = trace();
    bare["conversations"][0]["turns"][0].as_object_mut().expect("a turn").remove("answer");
    let outcome = promote(&project, &bare, &[]);
    outcome.expect_code(2);
    assert!(
        outcome.stderr.contains("(turns[].message)") && outcome.stderr.contains("turns[].answer"),
        "{}",
        outcome.stderr
    );
    let outcome = promote(&project, &json!([trace(), bare]), &[]);
    outcome.expect_code(2);
    assert!(outcome.stderr.contains("has 2 traces: name one, --trace"), "{}", outcome.stderr);
    assert_eq!(project.read(SCENARIO), before);
    promote(&project, &json!([trace(), bare]), &["--trace", "1"]).expect_code(0);
}

#[test]
fn spans_keep_the_history_and_rows_of_evals_their_criteria() {
    let project = Project::starter();
    let capture = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/telemetry/langsmith.jsonl");
    std::fs::copy(capture, project.path("runs.jsonl")).expect("a capture");
    let promote = |file: &str, case: &str, trace: &str| {
        let outcome = project.run(&["promote", file, "--case", case, "--scenario", SCENARIO, "--trace", trace]);
        outcome.expect_code(0);
        outcome
    };
    let outcome = promote("runs.jsonl", "third", "01a20e83b70d");
    let (hello, asked) =
        (outcome.stdout.find("Hello").expect("history"), outcome.stdout.find("clean the kettle").expect("a question"));
    assert!(hello < asked && outcome.stdout.contains("turns:"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains("search_docs"), "a failed call is not expected: {}", outcome.stdout);
    let first = promote("runs.jsonl", "first", "01a20e83b524");
    assert!(first.stderr.contains("the call of `search_docs` is not expected"), "{}", first.stderr);
    let rows = [
        json!({"testing_criteria": [{"type": "string_check", "name": "is", "input": "{{sample.output_text}}", "operation": "like",
            "reference": "{{item.label}}"}], "input_messages": {"type": "template",
            "template": [{"role": "user", "content": "{{item.question}}"}]}}),
        json!({"item": {"question": "What is the deposit?", "label": "80 euros"}}),
    ];
    project.write("rows.jsonl", &rows.map(|row| format!("{row}\n")).concat());
    let outcome = promote("rows.jsonl", "row", "row-1");
    assert!(outcome.stdout.contains("80 euros") && outcome.stdout.contains("exact: true"), "{}", outcome.stdout);
    project.run(&["check"]).expect_code(0);
}

#[test]
fn a_turn_without_an_answer_makes_a_case_that_expects_one_and_fails_until_there_is_one() {
    for (answer, more) in [(Value::Null, vec![]), (json!({"text": " "}), vec![]), (Value::Null, vec!["It is 77."])] {
        let project = Project::starter();
        let mut turns: Vec<Value> =
            more.iter().map(|text| json!({"message": "How high?", "answer": {"text": text}})).collect();
        turns.push(json!({"message": "How high is the deposit?", "answer": answer}));
        let trace = json!({"conversations": [{"turns": turns}]});
        let outcome = promote(&project, &trace, &[]);
        outcome.expect_code(0);
        let note = format!("turn {} ended without an answer: the case expects one", turns.len());
        assert!(
            outcome.stdout.contains("matches") && outcome.stderr.contains(&note),
            "{}{}",
            outcome.stdout,
            outcome.stderr
        );
        project.run(&["check"]).expect_code(0);
        assert_eq!(verdict(&project, trace.clone()), "FAIL");
        let mut answered = trace;
        answered["conversations"][0]["turns"][turns.len() - 1]["answer"] = json!({"text": "80 euros."});
        assert_eq!(verdict(&project, answered), "PASS");
    }
}

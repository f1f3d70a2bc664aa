//! Agents that send spans while a trial runs: what traffic does not show is measured, recorded and replayed.

use super::started::run;
use super::{Stage, events, sdk_python};
use serde_json::Value;
use std::path::Path;

/// The shipped project with a scenario for the program, and that variables and lines of its target.
fn stage(python: &str, program: &str, env: &str, target: &str) -> Stage {
    let stage = Stage::set();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/external").join(program);
    let scenario = format!(
        "scenario: agent\nflow: external\nmodel: {{provider: simulator, name: greenhouse-1}}\ntarget:\n  command: \
         ['{python}', '{}']\n  env: {{{env}}}\n  http: http://127.0.0.1:{{{{port}}}}/chat\n{target}roles: {{knowledge: \
         search_docs, index: remember}}\ncases:\n  - case: warranty\n    ask: How long does the warranty of the Canopy \
         last?\n    expect: {{calls: [{{exact: [search_docs, remember]}}]}}\n",
        program.display()
    );
    stage.project.write("agent.yaml", &scenario);
    stage
}

const LANE: &str = "fixtures/cassettes/agent/warranty/external.base.1.yaml";
const SPANS: &str = "  spans: true\n";

/// Asserts that the only trace has the search with its passage and the index write, in the order of the agent.
fn shows_all(traces: &[Value]) {
    let calls = events(&traces[0], "tool_called");
    let tools: Vec<&Value> = calls.iter().map(|call| &call["tool"]).collect();
    assert_eq!(tools, ["search_docs", "remember"], "{calls:?}");
    assert_eq!(calls[0].pointer("/outcome/ok/search/hits/0/id"), Some(&Value::from("warranty#1")), "{}", calls[0]);
    assert_eq!(calls[1].pointer("/outcome/ok/indexed/keywords/0"), Some(&Value::from("warranty")), "{}", calls[1]);
    let all = traces[0]["events"].as_array().expect("events");
    let place = |kind: &str| all.iter().position(|event| event["what"].get(kind).is_some()).expect(kind);
    assert!(place("tool_called") < place("model_called"), "the search came before the model");
}

#[test]
#[ignore = "needs python3, its standard library alone"]
fn needs_a_bare_interpreter_spans_show_what_traffic_does_not_and_are_recorded() {
    let before = stage("python3", "spans_agent.py", "SPANS: off", "");
    let outcome = run(&before, &["--mode", "live"]);
    outcome.expect_code(3);
    assert!(outcome.stdout.contains("the agent offered no tool"), "{}", outcome.stdout);
    assert!(events(&before.project.traces()[0], "tool_called").is_empty());

    let mut stage = stage("python3", "spans_agent.py", "SPANS: 'on'", SPANS);
    let recorded = run(&stage, &["--mode", "record"]);
    assert!(recorded.stdout.contains("1 trial: 1 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    let traces = stage.project.traces();
    shows_all(&traces);
    assert!(traces[0]["notes"].as_array().is_none_or(Vec::is_empty), "{}", traces[0]["notes"]);
    let lane = stage.project.read(LANE);
    assert!(lane.contains("spans:") && lane.contains("tool search_docs"), "{lane}");
    stage.simulator = None;
    let replayed = run(&stage, &[]);
    assert!(replayed.stdout.contains("1 trial: 1 PASS"), "{}{}", replayed.stdout, replayed.stderr);
    assert_eq!(stage.project.traces(), traces, "a replay of the same agent has the same bytes");
    // Today's spans are judged, and what differs is told.
    stage.project.edit("agent.yaml", "SPANS: 'on'", "SPANS: 'on', SHELF: 'moved#7'");
    run(&stage, &[]);
    let traces = stage.project.traces();
    let found = events(&traces[0], "tool_called")[0].to_string();
    assert!(found.contains("moved#7"), "{found}");
    let notes = traces[0]["notes"].to_string();
    assert!(notes.contains("its spans differ from the recorded ones") && notes.contains("moved#7"), "{notes}");
}

#[test]
#[ignore = "needs python3, its standard library alone"]
fn needs_a_bare_interpreter_without_spans_of_the_trial_calls_are_not_measured() {
    for (how, words) in [("'off'", "no spans came within 10 s after 1 turn"), ("alone", "spans of other traces came")] {
        let stage = stage("python3", "spans_agent.py", &format!("SPANS: {how}"), SPANS);
        let outcome = run(&stage, &["--mode", "live"]);
        outcome.expect_code(3);
        let trace = &stage.project.traces()[0];
        assert!(trace["notes"].to_string().contains(words), "{how}: {}", trace["notes"]);
        assert!(events(trace, "tool_called").is_empty(), "a span of another trace belongs to no trial");
        assert!(outcome.stdout.contains("turns[].calls"), "{}", outcome.stdout);
    }
}

#[test]
#[ignore = "needs python3, its standard library alone"]
fn needs_a_bare_interpreter_an_export_that_cannot_be_read_may_show_anything_so_calls_are_not_measured() {
    let stage = stage("python3", "spans_agent.py", "SPANS: cut", SPANS);
    stage.project.edit("agent.yaml", "{exact: [search_docs, remember]}", "{never: delete_account}");
    let outcome = run(&stage, &["--mode", "live"]);
    outcome.expect_code(3);
    let trace = &stage.project.traces()[0];
    let notes = trace["notes"].to_string();
    assert!(notes.contains("1 part of its spans could not be read") && notes.contains("these are no spans"), "{notes}");
    assert_eq!(events(trace, "tool_called").len(), 2, "the whole export is read");
    assert!(outcome.stdout.contains("turns[].calls"), "{}", outcome.stdout);
}

#[test]
#[ignore = "needs python3, its standard library alone"]
fn needs_a_bare_interpreter_spans_of_a_client_alone_do_not_show_that_no_tool_ran() {
    let stage = stage("python3", "spans_agent.py", "SPANS: client", SPANS);
    let outcome = run(&stage, &["--mode", "live"]);
    outcome.expect_code(3);
    let trace = &stage.project.traces()[0];
    let words = "the spans of 1 turn are none of an agent, a tool or a search";
    assert!(trace["notes"].to_string().contains(words), "{}", trace["notes"]);
    assert!(outcome.stdout.contains("turns[].calls"), "{}", outcome.stdout);
}

#[test]
#[ignore = "needs the clients that `tests/sdks/install` installs: RAGCHECK_SDKS"]
fn needs_sdks_the_sdk_of_opentelemetry_exports_by_the_variables_that_are_set() {
    let stage = stage(&sdk_python(), "../../sdks/otel_spans.py", "SPANS: 'on'", SPANS);
    let outcome = run(&stage, &["--mode", "live"]);
    assert!(outcome.stdout.contains("1 trial: 1 PASS"), "{}{}", outcome.stdout, outcome.stderr);
    shows_all(&stage.project.traces());
}

#[test]
#[ignore = "needs python3, its standard library alone"]
fn needs_a_bare_interpreter_spans_that_come_after_their_turn_belong_to_it() {
    let stage = stage("python3", "spans_agent.py", "SPANS: late", SPANS);
    stage.project.edit(
        "agent.yaml",
        "    ask: How long does the warranty of the Canopy last?\n    expect: ",
        "    turns:\n      - ask: How long does the warranty of the Canopy last?\n      - ask: And that of the Sprig?\n        expect: ",
    );
    let outcome = run(&stage, &["--mode", "live"]);
    assert!(outcome.stdout.contains("1 trial: 1 PASS"), "{}{}", outcome.stdout, outcome.stderr);
    let trace = &stage.project.traces()[0];
    let all = trace["events"].as_array().expect("events").iter();
    let called = all.filter(|event| event["what"].get("tool_called").is_some());
    let turns: Vec<(u64, String)> = called
        .map(|event| (event["turn"].as_u64().unwrap_or_default(), event["what"]["tool_called"]["tool"].to_string()))
        .collect();
    let tools = [(0, "search_docs"), (0, "remember"), (1, "search_docs"), (1, "remember")];
    assert_eq!(turns, tools.map(|(turn, tool)| (turn, format!("{tool:?}"))));
    assert!(trace["notes"].as_array().is_none_or(Vec::is_empty), "{}", trace["notes"]);
}

#[test]
fn the_page_about_spans_lists_all_attributes_and_events_that_ragcheck_reads() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/how-to/spans.md");
    let text = std::fs::read_to_string(&page).expect("the page");
    let rows = ragcheck::internals::metric::span_attributes();
    let rows: String = rows.iter().map(|cells| format!("| {} |\n", cells.join(" | "))).collect();
    let table = format!("| name | on | value, or attributes (`?` optional) |\n|---|---|---|\n{rows}");
    let (head, rest) = text.split_once("| name | on | value").expect("the table");
    let (_, tail) = rest.split_once("\n\n").expect("text after the table");
    let wanted = format!("{head}{table}\n{tail}");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&page, &wanted).expect("the page is written");
    }
    assert_eq!(std::fs::read_to_string(&page).expect("the page"), wanted);
}

#[test]
fn spans_of_an_agent_without_http_are_a_mistake_because_they_belong_to_no_trial() {
    let stage = stage("python3", "spans_agent.py", "SPANS: 'on'", SPANS);
    stage.project.edit("agent.yaml", "  http: http://127.0.0.1:{{port}}/chat\n", "");
    let checked = stage.project.run(&["check", "agent.yaml"]);
    checked.expect_code(2);
    let said = format!("{}{}", checked.stdout, checked.stderr);
    assert!(said.contains("gets no `traceparent`"), "{said}");
}

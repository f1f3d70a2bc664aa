//! An agent whose answer is the arguments of an output tool: its model has to call it, streams the call, and gets no result of
//! it. `init` and runs without a key.

use super::first_contact::{init, ragcheck, read, said};
use super::started::{ask, plain, run, stage, turns};
use serde_json::{Value, json};
use std::fs;

/// Replies at `/ask` with the arguments of the call, read from the stream.
pub(super) fn agent(port: u16) {
    let text = json!({"type": "string"});
    let schema = json!({"type": "object", "properties": {"advice": text, "risk": {"type": "integer"}},
        "required": ["advice", "risk"]});
    let tool =
        json!({"type": "function", "function": {"name": "present", "description": "Ends it", "parameters": schema}});
    turns(port, |path, words| {
        if path != "/ask" {
            return Some(("404 Not Found", String::new()));
        }
        let message = json!({"role": "user", "content": words});
        let asked = json!({"model": "greenhouse-1", "stream": true, "messages": [message], "tools": [tool], "tool_choice": "required"});
        let pieces = ask(&asked);
        let events = pieces.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
        let arguments = events.filter_map(|event| {
            Some(event.pointer("/choices/0/delta/tool_calls/0/function/arguments")?.as_str()?.to_owned())
        });
        Some(("200 OK", arguments.collect()))
    });
}

#[test]
fn an_answer_in_a_streamed_call_of_an_output_tool_is_met_without_a_key_and_its_call_is_asserted() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(".gitignore"), "node_modules").expect("a file");
    let workflow = ".github/workflows/ragcheck.yml";
    fs::create_dir_all(folder.path().join(".github/workflows")).expect("a folder");
    fs::write(folder.path().join(workflow), "name: mine\n").expect("a file");
    let made = init(folder.path(), "structured", &[]);
    made.expect_code(0);
    let words = said(&made);
    assert!(words.contains("added `/reports/`, `/.ragcheck/` to your .gitignore"), "{words}");
    assert_eq!(read(folder.path(), ".gitignore"), "node_modules\n/reports/\n/.ragcheck/\n");
    assert_eq!(read(folder.path(), workflow), "name: mine\n", "only files of git are added to");
    let scenario = read(folder.path(), "scenarios/agent.yaml");
    for line in ["  answer: /advice", "  respond: 'present'", "      calls: [{in_order: ['present']}]"] {
        assert!(scenario.lines().any(|one| one == line), "{line}:\n{scenario}");
    }
    ragcheck(folder.path(), "structured", &["run"]).expect_code(0);
}

#[test]
fn where_no_answer_is_found_the_message_is_about_the_attempt_that_reached_the_model() {
    let folder = tempfile::tempdir().expect("a folder");
    let outcome = init(folder.path(), "unreadable", &[]);
    outcome.expect_code(2);
    let words = said(&outcome);
    for part in
        ["POST /ask with {\"message\":", "reaches the model", "{\"risk\":1}", "`target.answer`", "nothing was written"]
    {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert!(!words.contains("422"), "{words}");
}

#[test]
fn a_recording_that_cannot_be_measured_names_the_role_that_is_missing_and_is_not_called_unfinished() {
    let stage = stage("structured", "  http: http://127.0.0.1:{{port}}/ask\n  answer: /advice\n");
    plain(&stage, "  - {case: advice, ask: What now?, expect: {calls: [{in_order: [present]}]}}\n");
    let recorded = run(&stage, &["--mode", "record"]);
    recorded.expect_code(3);
    let words = said(&recorded);
    assert!(words.contains("`roles: {respond: present}`"), "{words}");
    let again = run(&stage, &["--mode", "record"]);
    assert!(!again.stderr.contains("is not finished"), "a resumed run would run nothing: {}", again.stderr);
    stage.project.edit("agent.yaml", "cases:", "roles: {respond: present}\ncases:");
    let measured = run(&stage, &["--mode", "record"]);
    assert!(measured.stdout.contains("1 trial: 1 PASS"), "{}{}", measured.stdout, measured.stderr);
}

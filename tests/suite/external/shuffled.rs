//! An agent whose language writes the members of JSON in another order in each process, as Java's `Map.of` and Lua's tables.

use super::started::{ask, plain, run, stage};
use serde_json::{Map, Value, json};
use std::io::{BufRead, Write};

/// Reads lines; what its tool found has another order in each process, of which each leaves a file in `folder`.
#[expect(clippy::print_stdout, reason = "the process of an agent talks by its output")]
pub(super) fn agent(folder: &str) {
    let processes = || std::fs::read_dir(folder).expect("a folder").count();
    let place = processes();
    std::fs::write(format!("{folder}/{}", std::process::id()), "").expect("a file");
    let shuffled = |members: &[(&str, Value)]| {
        let mut members = members.to_vec();
        let count = members.len();
        members.rotate_left(place % count);
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>()
    };
    for line in std::io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let words = asked["message"].as_str().expect("words");
        let arguments = Value::from(shuffled(&[("query", json!(words)), ("top", json!(3))])).to_string();
        let limit = if words.contains("changed") { processes() } else { 60 };
        let passage =
            shuffled(&[("id", json!("warranty")), ("text", json!("It has 60 months.")), ("limit", json!(limit))]);
        let found =
            Value::from(shuffled(&[("results", json!([passage])), ("query", json!(words)), ("took", json!(3))]));
        let call = json!({"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": arguments}});
        let body = ask(&json!({"model": "greenhouse-1", "messages": [
            {"role": "user", "content": words},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": found.to_string()},
        ]}));
        let body: Value = serde_json::from_str(&body).unwrap_or_default();
        println!("{}", json!({"answer": body.pointer("/choices/0/message/content").unwrap_or(&json!("nothing"))}));
        std::io::stdout().flush().expect("flushed");
    }
    std::process::exit(0);
}

#[test]
fn members_of_json_in_another_order_in_each_process_match_and_give_the_trace_of_the_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut stage = stage(&format!("shuffled {}", folder.path().display()), "");
    plain(
        &stage,
        "  - {case: warranty, ask: How long does the warranty last?, expect: {answer: {matches: ['[a-z]{3}']}}}\n",
    );
    let recorded = run(&stage, &["--mode", "record"]);
    assert!(recorded.stdout.contains("1 trial: 1 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    let traces = stage.project.traces();
    stage.simulator = None;
    for _ in 0..2 {
        let replayed = run(&stage, &[]);
        assert!(replayed.stdout.contains("1 trial: 1 PASS"), "{}{}", replayed.stdout, replayed.stderr);
        assert_eq!(stage.project.traces(), traces);
    }
    let processes = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert!(processes >= 4, "each had another order: {processes}");
}

#[test]
fn a_value_that_differs_beside_the_order_of_members_is_a_miss_that_names_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let stage = stage(&format!("shuffled {}", folder.path().display()), "");
    plain(&stage, "  - {case: changed, ask: Has the warranty changed?, expect: {answer: {matches: ['[a-z]{3}']}}}\n");
    let recorded = run(&stage, &["--mode", "record"]);
    recorded.expect_code(3);
    assert!(recorded.stdout.contains("message 3 (tool) changed"), "{}{}", recorded.stdout, recorded.stderr);
}

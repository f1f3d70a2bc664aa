//! Conditions on arguments and results of calls by JSON pointer: they hold, they fail with what was asked, mistakes have places.

use super::project::Outcome;
use crate::program::program;
use std::fs;
use std::path::Path;
use std::process::Command;

const CALLS: &str = "calls: [{before: [knowledge_base_search, generate_response]}]";

/// What a run says where the first case of a new project expects `calls`.
fn expecting(folder: &Path, calls: &str) -> Outcome {
    let ragcheck = |arguments: &[&str]| Outcome::of(Command::new(program()).args(arguments).current_dir(folder));
    ragcheck(&["init"]);
    let scenario = folder.join("scenarios/questions.yaml");
    let text = fs::read_to_string(&scenario).expect("the scenario");
    assert!(text.contains(CALLS));
    fs::write(&scenario, text.replacen(CALLS, calls, 1)).expect("written");
    let outcome = ragcheck(&["run", "--only", "deposit"]);
    fs::write(&scenario, text).expect("put back");
    outcome
}

#[test]
fn arguments_and_results_are_held_to_conditions_by_pointer() {
    let folder = tempfile::tempdir().expect("a folder");
    let search = |more: &str| format!("calls: [{{superset: [{{tool: knowledge_base_search, {more}}}]}}]");
    let with = |more: &str| expecting(folder.path(), &search(more));
    with("arguments: {/query: {matches: deposit}}, result: {/hits/0/id: {matches: '^hire#'}}").expect_code(0);

    let other = with("result: {/hits/0/id: {equals: 'hire#99'}}");
    other.expect_code(1);
    let words = "calls.superset knowledge_base_search (result/hits/0/id = \"hire#99\")";
    // Where lines break depends on the width.
    let said = other.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(words), "{said}");
    // A place that the result has not is no success.
    with("result: {/hits/99/id: {matches: ''}}").expect_code(1);
    with("arguments: {/query/0: {matches: ''}}").expect_code(1);

    for (more, words) in [
        ("result: {hits.0.id: {equals: a}}", "write `/hits/0/id`"),
        ("arguments: {/qery: {equals: a}}", "has no argument `qery`"),
        ("result: {/hits: {matches: a}}, outcome: failed", "a call that failed has no result"),
    ] {
        let mistake = with(more);
        mistake.expect_code(2);
        assert!(mistake.stderr.contains(words) && mistake.stderr.contains("questions.yaml:"), "{}", mistake.stderr);
    }
}

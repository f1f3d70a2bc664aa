//! The example with tools of its own: expected by name when it runs, and in a log of its conversations.

use super::project::{Outcome, copy};
use crate::program::program;
use std::path::{Path, PathBuf};
use std::process::Command;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/orders-agent")
}

fn run(folder: &Path, arguments: &[&str]) -> Outcome {
    let mut run = Command::new(program());
    Outcome::of(run.args(arguments).current_dir(folder).env("NO_COLOR", "1"))
}

#[test]
fn the_example_is_sound_and_every_lane_has_its_recording() {
    let checked = ragcheck::internals::cli::check::check(&example(), &[], None, None);
    assert!(checked.diagnostics.is_empty(), "{}", checked.text(false));
}

/// A file of the only run: an import is not the latest.
fn imported(folder: &std::path::Path, file: &str) -> String {
    let runs = std::fs::read_dir(folder.join("reports")).expect("reports").map(|entry| entry.expect("an entry").path());
    let runs: Vec<_> = runs.filter(|path| path.is_dir()).collect();
    assert!(runs.len() == 1 && !folder.join("reports/latest").exists(), "{runs:?}");
    std::fs::read_to_string(runs[0].join(file)).expect(file)
}

#[test]
fn a_log_is_judged_by_the_scenario_of_its_agent_and_a_tool_that_was_not_offered_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    copy(&example(), folder.path());
    let import = ["score", "--import", "messages", "log.jsonl", "--scenario", "scenarios/orders.yaml"];
    let outcome = run(folder.path(), &[&import[..], &["--criteria", "criteria.yaml"]].concat());
    outcome.expect_code(3);
    let json = imported(folder.path(), "run.json");
    let evaluated: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let trial = |case: &str| {
        let trials = evaluated["trials"].as_array().expect("trials");
        trials.iter().find(|trial| trial["case"] == case).expect(case).clone()
    };
    assert_eq!(trial("on-its-way")["verdict"], "PASS", "{json}");
    let lost = trial("lost");
    assert_eq!(lost["verdict"], "FAIL", "{json}");
    let failed = lost["checks"].as_array().expect("checks").iter().find(|check| check["passed"] == false);
    assert!(failed.expect("a failed check")["what"].as_str().expect("words").contains("calls.before: lookup_order"));
    let unable = trial("no-such-order");
    assert_eq!(unable["verdict"], "ERROR", "{json}");
    let why = unable["error"].as_str().expect("why");
    assert!(why.contains("the agent offered create_ticket") && why.contains("`lookup_order`"), "{why}");
    let first = evaluated["criteria"].as_array().expect("criteria").first().expect("ORD-1").clone();
    assert_eq!((first["n"].as_u64(), first["successes"].as_u64()), (Some(2), Some(1)), "{json}");
}

#[test]
fn a_criterion_about_a_role_that_no_tool_plays_measures_nothing_and_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    copy(&example(), folder.path());
    let row = "criteria:\n  - {id: responds, metric: first_attempt_rate, target: '>= 95%', kind: point}\n";
    std::fs::write(folder.path().join("role.yaml"), row).expect("written");
    let outcome = run(folder.path(), &["score", "--import", "messages", "log.jsonl", "--criteria", "role.yaml"]);
    outcome.expect_code(1);
    let csv = imported(folder.path(), "criteria.csv");
    assert!(csv.contains("NOT_MEASURED"), "{csv}");
}

#[test]
#[ignore = "needs python3, its standard library alone"]
fn needs_a_bare_interpreter_the_agent_replays_its_shipped_recordings() {
    let folder = tempfile::tempdir().expect("a folder");
    copy(&example(), folder.path());
    let scenario = folder.path().join("scenarios/orders.yaml");
    let text = std::fs::read_to_string(&scenario).expect("the scenario");
    let outcome = run(folder.path(), &["run"]);
    std::fs::write(&scenario, text.replace("before: [lookup_order", "before: [look_up_order")).expect("the scenario");
    let misspelt = run(folder.path(), &["run"]);
    outcome.expect_code(0);
    assert!(outcome.stdout.contains("3 trials: 3 PASS"), "{}", outcome.stdout);
    misspelt.expect_code(3);
    let told = format!("{}{}", misspelt.stdout, misspelt.stderr);
    assert!(told.contains("the agent offered lookup_order, create_ticket"), "{told}");
}

//! Declared faults of our flows: many at once, each accounted for, and the fault matrix of the shipped suite.

use super::project::Project;
use super::schemas::valid;
use super::simulator::recording;
use serde_json::Value;
use std::fmt::Write as _;

/// Names of all faults, as the command lists them.
fn kinds(project: &Project) -> Vec<String> {
    let refused = project.run(&["faults", "--fault", "no-such-fault"]);
    let listed = refused.stderr.split("known: ").nth(1).and_then(|rest| rest.lines().next());
    let kinds: Vec<String> = listed.expect("a list").split(", ").map(|name| name.trim().to_owned()).collect();
    assert!(kinds.len() > 25, "{kinds:?}");
    kinds
}

/// One fault of each kind, at places that `seed` chooses; each with its place in words.
fn declared(kinds: &[String], seed: usize) -> (String, Vec<String>) {
    let mut file = "faults:\n".to_owned();
    let mut expected = Vec::new();
    for (number, kind) in kinds.iter().enumerate() {
        let call = (number * 7 + seed * 3) % 5 + 1;
        let at = if kind.starts_with("tool-") {
            format!("call {call} of any tool")
        } else if kind == "index-unwritable" {
            "the keyword index".to_owned()
        } else {
            format!("request {call} to model")
        };
        let call = if kind == "index-unwritable" { String::new() } else { format!(", call: {call}") };
        let _ = writeln!(file, "  - {{fault: {kind}{call}}}");
        expected.push(format!("{kind} at {at}"));
    }
    (file, expected)
}

/// Runs the shipped suite with one fault of each kind in every trial; returns the number of trials.
fn faulty(project: &Project, seed: usize) -> usize {
    let (file, expected) = declared(&kinds(project), seed);
    project.write("faults.yaml", &file);
    let outcome = project.run(&["run", "--faults", "faults.yaml", "--no-history"]);
    assert!([1, 3].contains(&outcome.code), "{}{}", outcome.stdout, outcome.stderr);
    let traces = project.traces();
    for trace in &traces {
        let told = format!("{} {}", trace["notes"], trace["end"]);
        for fault in &expected {
            assert!(told.contains(fault.as_str()), "{fault} is not accounted for in {}: {told}", trace["trial"]);
        }
        let kind = &trace["end"]["error"]["kind"];
        assert!(kind != "panic" && kind != "deadlock", "{}: {}", trace["trial"], trace["end"]);
    }
    traces.len()
}

#[test]
fn a_fault_of_each_kind_in_every_trial_is_accounted_for_and_none_panics_or_hangs() {
    let project = Project::shipped();
    let trials = faulty(&project, 1);
    assert!(trials > 100, "{trials}");
}

#[test]
#[ignore = "ten thousand trials: .ci/slow"]
fn ten_thousand_faulty_trials_account_for_every_fault_and_none_panics_or_hangs() {
    let project = Project::shipped();
    let mut trials = 0;
    for seed in 1.. {
        trials += faulty(&project, seed);
        if trials >= 10_000 {
            break;
        }
    }
}

/// The cells of the shipped project, changed by `change`.
fn cells(arguments: &[&str], change: impl Fn(&Project)) -> Vec<Value> {
    let project = Project::shipped();
    change(&project);
    let outcome = project.run(&[&["faults", "--format", "json"], arguments].concat());
    let found = valid("faults", &outcome.stdout);
    let cells = found["cells"].as_array().expect("cells").clone();
    assert_eq!(outcome.code, i32::from(!of(&cells, "wrong").is_empty()), "{}", outcome.stderr);
    cells
}

fn of<'c>(cells: &'c [Value], verdict: &str) -> Vec<&'c Value> {
    cells.iter().filter(|cell| cell["verdict"] == verdict).collect()
}

/// Faults of a request that the same request, sent once more, is spared. A stall may use up the turn.
const PASSING: [&str; 9] = [
    "rate-limit", "rate-limit-seconds", "rate-limit-ms", "rate-limit-date", "server-error", "unavailable",
    "overloaded", "reset", "delay",
];

/// The scenarios of the flows, and the cases that stand for each: one search and two, one turn and more, tenants, nothing
/// found, a service that fails by itself.
const CASES: [(&str, &[&str]); 4] = [
    ("knowledge", &["valve-error", "two-passages"]),
    (
        "two-stage",
        &["grounded-plan-price", "tenants-side-by-side", "history-follow-up", "nothing-found", "provider-error"],
    ),
    ("react", &["one-step", "nothing-found"]),
    ("managed-rag", &["error-code", "nothing-found", "versions", "two-calls"]),
];

#[test]
fn no_cell_of_the_flows_is_wrong_and_each_single_fault_that_passes_is_recovered_from() {
    for (scenario, cases) in CASES {
        expect_none_wrong(scenario, cases);
    }
}

#[test]
#[ignore = "four thousand cells: .ci/slow"]
fn no_cell_of_any_case_of_the_flows_is_wrong_and_each_single_fault_that_passes_is_recovered_from() {
    for (scenario, _) in CASES {
        expect_none_wrong(scenario, &["*"]);
    }
}

fn expect_none_wrong(scenario: &str, cases: &[&str]) {
    let only: Vec<String> = cases.iter().map(|case| format!("--only={case}")).collect();
    let file = format!("scenarios/{scenario}.yaml");
    let arguments: Vec<&str> = [file.as_str()].into_iter().chain(only.iter().map(String::as_str)).collect();
    let cells = cells(&arguments, |_| ());
    assert_eq!(of(&cells, "wrong"), Vec::<&Value>::new(), "{scenario}");
    let once = |cell: &&Value| {
        PASSING.contains(&cell["fault"].as_str().expect("a fault"))
            && !cell["place"].as_str().expect("a place").contains("later")
    };
    let once: Vec<&Value> = cells.iter().filter(once).collect();
    assert!(once.len() > 30, "{scenario}: {}", once.len());
    assert_eq!(once.iter().find(|cell| cell["verdict"] != "recovered"), None, "{scenario}");
    for cell in of(&cells, "not_recorded") {
        assert!(cell["calls"].as_u64() > Some(0), "{cell}");
    }
}

#[test]
fn a_flow_that_is_told_not_to_retry_ends_with_a_clear_error_and_is_not_wrong() {
    let never = |project: &Project| {
        let scenario = project.read("scenarios/knowledge.yaml");
        let limited = scenario.replacen("\ncases:", "\nlimits: {transport_retries: 0}\ncases:", 1);
        assert!(limited != scenario && !scenario.contains("\nlimits:"), "{scenario}");
        project.write("scenarios/knowledge.yaml", &limited);
    };
    let cells = cells(&["scenarios/knowledge.yaml", "--fault", "reset"], never);
    assert_eq!(of(&cells, "clear_error").len(), cells.len(), "{cells:?}");
}

#[test]
fn what_a_replay_cannot_decide_is_recorded_in_lanes_of_their_own_within_the_limit_and_replayed() {
    let (project, simulator) = recording();
    let lane = "fixtures/cassettes/knowledge/valve-error/tool-rag.base.1.yaml";
    let before = project.read(lane);
    let matrix = |more: &[&str]| {
        let only = ["faults", "scenarios/knowledge.yaml", "--only", "valve-error", "--format", "json"];
        let kinds =
            ["no-tool-call", "malformed-arguments", "tool-fails", "reset"].map(|kind| format!("--fault={kind}"));
        let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
        let outcome = project.run(&[&only[..], &kinds, more].concat());
        let found: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{}", outcome.stderr));
        found["cells"].as_array().expect("cells").clone()
    };
    let told = |cells: &[Value]| -> Vec<String> {
        cells.iter().map(|cell| format!("{} {} {}", cell["fault"], cell["place"], cell["verdict"])).collect()
    };
    let offline = matrix(&[]);
    let open = of(&offline, "not_recorded").len();
    assert!(open >= 3 && !of(&offline, "recovered").is_empty(), "{offline:?}");
    let bounded = matrix(&["--mode", "record", "--max-calls", "2"]);
    let cut = of(&bounded, "not_recorded");
    assert!(cut.iter().any(|cell| cell["why"].to_string().contains("--max-calls 2 is used up")), "{bounded:?}");
    let recorded = matrix(&["--mode", "record"]);
    assert!(of(&recorded, "not_recorded").is_empty() && of(&recorded, "wrong").is_empty(), "{recorded:?}");
    assert_eq!(recorded.len(), offline.len());
    let decided = offline.iter().zip(&recorded).filter(|(cell, _)| cell["verdict"] != "not_recorded");
    for (cell, now) in decided {
        assert_eq!(cell, now, "what a replay decides is not recorded");
    }
    drop(simulator);
    assert_eq!(told(&matrix(&[])), told(&recorded), "the lanes replay without the model");
    assert_eq!(project.read(lane), before, "no recording of a case changes");
    let lanes = std::fs::read_dir(project.path("fixtures/fault-cassettes/knowledge")).expect("lanes");
    let lanes =
        lanes.filter_map(Result::ok).filter(|entry| entry.file_name().to_string_lossy().starts_with("valve-error+"));
    assert_eq!(lanes.count(), open, "a lane for each cell that a replay left open");
}

#[test]
#[ignore = "the whole suite: .ci/slow"]
fn no_cell_of_the_shipped_suite_is_wrong() {
    let cells = cells(&[], |_| ());
    assert_eq!(of(&cells, "wrong"), Vec::<&Value>::new());
    assert!(of(&cells, "recovered").len() > 1000, "{}", cells.len());
}

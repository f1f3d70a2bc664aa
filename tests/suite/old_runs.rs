//! Run folders of older builds are judged as they were: `tests/runs/<plan version>` holds what such a build wrote.

use super::project::{Outcome, Project};
use std::fs;
use std::path::Path;

/// Trial and verdict of each row of a CSV file with these columns.
fn columns(text: &str, wanted: [&str; 2]) -> Vec<String> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a head").split(',').collect();
    let places = wanted.map(|name| names.iter().position(|known| *known == name).expect(name));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            places.map(|place| cells[place]).join(",")
        })
        .collect()
}

/// The folder of a committed run, and the outcome of scoring a copy of it as `reports/old`.
fn scored(version: &str) -> (Project, Outcome) {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runs").join(version);
    let project = Project::shipped();
    let folder = project.path("reports/old");
    fs::create_dir_all(&folder).expect("a folder");
    for file in ["plan.json", "traces.jsonl"] {
        fs::copy(kept.join(file), folder.join(file)).expect(file);
    }
    let outcome = project.run(&["score", "reports/old"]);
    (project, outcome)
}

#[test]
fn a_run_whose_plan_is_of_the_first_version_is_scored_with_the_verdicts_that_it_had() {
    let (project, outcome) = scored("version-1");
    outcome.expect_code(4);
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runs/version-1/verdicts.csv");
    let expected = fs::read_to_string(kept).expect("the verdicts");
    let trials = fs::read_to_string(project.path("reports/old/trials.csv")).expect("trials.csv");
    assert_eq!(columns(&trials, ["id", "verdict"]), expected.lines().collect::<Vec<_>>());
    let told = project.read("reports/old/run.json");
    assert!(
        told.contains("scored by the rules of this one: each criterion counts per unit or per conversation"),
        "{told}"
    );
    let criteria = project.read("reports/old/criteria.csv");
    for counted in [",unit,", ",conversation,"] {
        assert!(criteria.lines().any(|row| row.contains(counted)), "{counted} {criteria}");
    }
}

#[test]
fn a_plan_of_a_newer_build_is_refused_with_what_to_do() {
    let (project, _) = scored("version-1");
    project.edit("reports/old/plan.json", "\"version\": 1,", "\"version\": 1000,");
    let outcome = project.run(&["score", "reports/old"]);
    outcome.expect_code(2);
    assert!(outcome.stderr.contains("newer than this build reads"), "{}", outcome.stderr);
}

#[test]
fn traces_with_lists_of_values_are_scored_with_the_figures_that_they_had_and_written_with_named_members() {
    let (project, outcome) = scored("positional");
    outcome.expect_code(0);
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runs/positional");
    let read = |file: &str| fs::read_to_string(kept.join(file)).expect(file);
    assert!(read("traces.jsonl").contains("\"citations\":[[") && read("traces.jsonl").contains("\"spans\":[["));
    assert_eq!(project.read("reports/old/trials.csv"), read("trials.csv"));
    let named: serde_json::Value = serde_json::from_str(&project.read("reports/old/run.json")).expect("JSON");
    assert_eq!(named["trials"][0]["retries"]["transport"], 0);
}

#[test]
fn the_failed_trials_of_a_run_json_of_version_1_are_run_again() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runs/positional");
    let project = Project::shipped();
    fs::create_dir_all(project.path("reports/latest")).expect("a folder");
    for file in ["plan.json", "traces.jsonl"] {
        fs::copy(kept.join(file), project.path("reports/latest").join(file)).expect(file);
    }
    let old = fs::read_to_string(kept.join("run.json")).expect("run.json");
    let [passed, failed] = ["PASS", "FAIL"].map(|word| format!("\"verdict\": \"{word}\",\n      \"checks\""));
    assert!(old.contains(&passed) && old.contains("\"version\": 1,"));
    project.write("reports/latest/run.json", &old.replacen(&passed, &failed, 1));
    let scenarios = ["scenarios/external.yaml", "scenarios/managed-rag-plain.yaml"];
    let only = ["--only", "plain-two-pages", "--only", "*/feed-in-tariff/tool-rag.base.1"];
    let again = project.run(&[&["run", "--failed", "--no-history"], &scenarios[..], &only].concat());
    let told = format!("{}{}", again.stdout, again.stderr);
    // Criteria were added since, so the verdicts of the old run do not stand beside new ones.
    assert!(told.contains("PART (1 of 2 trials, selected by --failed)"), "{told}");
    assert!(told.contains("not merged with it") && told.contains("criteria.criteria: 25 then"), "{told}");
}

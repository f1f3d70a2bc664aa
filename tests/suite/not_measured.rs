//! Nothing measured is never success.

use super::project::{Project, whole};
use std::fs;

#[test]
fn without_its_traces_a_run_never_passes() {
    let (source, _) = whole();
    let folder = tempfile::tempdir().expect("a folder");
    fs::copy(source.path("reports/latest/plan.json"), folder.path().join("plan.json")).expect("the plan");
    let text = source.read("reports/latest/traces.jsonl");
    let place = folder.path().display().to_string();
    // None, all but one, and only those of cases that are left out of a criterion.
    let few = |keep: &dyn Fn(&str) -> bool| text.split_inclusive('\n').filter(|line| keep(line)).collect::<String>();
    let first = text.lines().next().expect("a trace");
    for kept in [few(&|_| false), few(&|line| line.trim_end() != first), few(&|line| line.contains("forgotten-twice"))]
    {
        fs::write(folder.path().join("traces.jsonl"), &kept).expect("traces");
        let outcome = source.run(&["score", &place]);
        outcome.expect_code(3);
        assert!(outcome.stdout.contains("planned, and there is no trace of it"), "{}", outcome.stdout);
    }
}

#[test]
fn a_selection_that_measures_nothing_fails_and_says_what_was_not_measured() {
    let project = Project::shipped();
    project.write(
        "only-learned.yaml",
        "about: One figure.\ncriteria:\n  - id: LEARNED\n    about: It is found again.\n    metric: learned_retrieval\n    target: \">= 20%\"\n    kind: confidence\n",
    );
    let arguments = ["run", "scenarios/knowledge.yaml", "--criteria", "only-learned.yaml"];
    let outcome = project.run(&arguments);
    outcome.expect_code(1);
    assert!(outcome.stdout.contains("NOT_MEASURED LEARNED"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("NOT_MEASURED: LEARNED"), "{}", outcome.stdout);
    // Declared, it is let through, and still shown.
    project.edit("ragcheck.yaml", "not_measured_ok: [SC-004]", "not_measured_ok: [LEARNED]");
    let outcome = project.run(&arguments);
    outcome.expect_code(0);
    assert!(outcome.stdout.contains("NOT_MEASURED"), "{}", outcome.stdout);
}

#[test]
fn a_selected_case_that_is_left_out_of_every_criterion_is_judged_by_itself_and_they_say_not_measured() {
    let project = Project::shipped();
    let outcome = project.run(&["run", "scenarios/recovery.yaml", "--only", "search-forgotten-twice"]);
    outcome.expect_code(0);
    assert!(outcome.stdout.contains("(NOT_MEASURED)") && !outcome.stdout.contains("(PASS)"), "{}", outcome.stdout);
}

#[test]
fn a_proxy_never_passes_even_when_it_is_required() {
    let project = Project::shipped();
    // What the file writes itself stands in the place of what the flow declares.
    let required = "criteria:\n  - {id: SC-004, metric: satisfaction, target: '>= 10%', kind: point, required: true}\n";
    project.edit("scenarios/success-criteria.yaml", "criteria:\n", required);
    project.edit("ragcheck.yaml", "not_measured_ok: [SC-004]", "not_measured_ok: []");
    let outcome = project.run(&["run"]);
    outcome.expect_code(1);
    assert!(outcome.stdout.contains("NOT_MEASURED: SC-004"), "{}", outcome.stdout);
}

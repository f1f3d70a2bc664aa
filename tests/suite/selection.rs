//! A selection of cases is judged by its cases, so that it can be green: `--only`, `--exclude`, `--tag`.

use super::project::Project;

const ONE: [&str; 4] = ["run", "scenarios/knowledge.yaml", "--only", "valve-error"];

#[test]
fn a_selection_whose_cases_pass_ends_with_0_and_shows_the_criteria() {
    let project = Project::shipped();
    let outcome = project.run(&ONE);
    outcome.expect_code(0);
    assert!(outcome.stdout.contains("3 selected trials passed"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("selected by --only valve-error"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("(INCONCLUSIVE, met)"), "the criteria are not shown: {}", outcome.stdout);
    let run = project.latest("run.json");
    assert!(run["criteria"].as_array().is_some_and(|rows| rows.len() > 5));
}

#[test]
fn a_selected_case_that_fails_fails_the_run_and_one_that_was_not_selected_does_not() {
    let project = Project::shipped();
    project.edit("scenarios/knowledge.yaml", "contains: [38 to 46 ohms]", "contains: [99 ohms]");
    let outcome = project.run(&ONE);
    outcome.expect_code(1);
    assert!(outcome.stdout.contains("3 of 3 selected trials failed"), "{}", outcome.stdout);
    project.run(&["run", "scenarios/knowledge.yaml", "--exclude", "valve-error"]).expect_code(0);
    project.run(&["run", "scenarios/knowledge.yaml", "--tag", "warranty", "--tag", "plans"]).expect_code(0);
    project.run(&["run", "scenarios/knowledge.yaml", "--tag", "errors"]).expect_code(1);
}

#[test]
fn a_selection_that_selects_everything_is_judged_as_the_whole_run_is() {
    let project = Project::shipped();
    let run = |more: &[&str]| {
        let outcome = project.run(&[&["run", "scenarios/knowledge.yaml", "--no-history"], more].concat());
        let run = project.latest("run.json");
        let conclusion = run["conclusion"].as_str().expect("a conclusion");
        // Behind what was chosen stands the same.
        let conclusion = conclusion
            .split_once("): ")
            .filter(|_| conclusion.starts_with("PART"))
            .map_or(conclusion, |(_, rest)| rest);
        (outcome.code, conclusion.to_owned())
    };
    let whole = run(&[]);
    assert!(whole.1.contains("SC-005"), "{whole:?}");
    for everything in [&["--only", "*"][..], &["--only", "knowledge/*"]] {
        assert_eq!(run(everything), whole, "{everything:?}");
    }
    assert_ne!(run(&["--only", "valve-error"]), whole, "a selection is judged by its cases");
}

#[test]
fn a_criterion_that_fails_over_the_selection_is_named_in_the_last_line_and_decides_nothing() {
    let project = Project::shipped();
    let criteria = "about: One.\ncriteria:\n  - {id: OUTSIDE, about: Every query goes outside., metric: mandatory_call_rate(external), \
                    target: '>= 90%', kind: confidence}\n";
    project.write("one.yaml", criteria);
    let outcome = project.run(&[&ONE[..], &["--criteria", "one.yaml"]].concat());
    outcome.expect_code(0);
    let said = "3 selected trials passed; FAIL over the selection: OUTSIDE;";
    assert!(outcome.stdout.contains(said), "{}", outcome.stdout);
}

#[test]
fn tags_and_patterns_that_name_nothing_are_mistakes() {
    let project = Project::shipped();
    let tag = project.run(&["list", "--tag", "warrenty"]);
    tag.expect_code(2);
    assert!(tag.stderr.contains("no case has the tag `warrenty`") && tag.stderr.contains("warranty"), "{}", tag.stderr);
    let all = project.run(&["list", "--exclude", "*"]);
    all.expect_code(2);
    let kept = project.run(&["list", "scenarios/knowledge.yaml", "--exclude", "valve-*", "--exclude", "knowledge/w*"]);
    kept.expect_code(0);
    assert!(
        kept.stdout.contains("descaling") && !kept.stdout.contains("valve-error") && !kept.stdout.contains("wind-lock"),
        "{}",
        kept.stdout
    );
}

#[test]
fn a_project_without_recordings_gets_one_note_and_one_command() {
    let project = Project::shipped();
    std::fs::remove_dir_all(project.path("fixtures/cassettes")).expect("recordings");
    let outcome = project.run(&["check"]);
    outcome.expect_code(0);
    assert_eq!(outcome.stdout.matches("recorded yet").count(), 1, "{}", outcome.stdout);
    assert_eq!(outcome.stdout.matches("have no recording").count(), 0, "{}", outcome.stdout);
    assert!(outcome.stdout.contains("ragcheck run --mode record"), "{}", outcome.stdout);
}

#[test]
fn a_scenario_file_alone_is_judged_by_its_gates_and_by_what_it_decides() {
    let project = Project::shipped();
    for (file, open) in [
        ("scenarios/react.yaml", "compaction-saves (NOT_MEASURED)"),
        ("scenarios/knowledge.yaml", "SC-001 (INCONCLUSIVE)"),
    ] {
        let outcome = project.run(&["run", file]);
        outcome.expect_code(0);
        let run = project.latest("run.json");
        let conclusion = run["conclusion"].as_str().expect("a conclusion");
        assert!(!conclusion.contains("PART ("), "{conclusion}");
        assert!(conclusion.contains("; not decided by these scenarios: ") && conclusion.contains(open), "{conclusion}");
        assert!(
            !outcome.stdout.contains("NOT_MEASURED SC-"),
            "what others measure is told row by row: {}",
            outcome.stdout
        );
    }
    // What it measures counts: an expectation that a case misses, and a criterion that fails.
    project.edit("scenarios/knowledge.yaml", "contains: [38 to 46 ohms]", "contains: [99 ohms]");
    project.run(&["run", "scenarios/knowledge.yaml"]).expect_code(1);
}

#[test]
fn all_scenarios_by_name_are_judged_as_the_whole_and_others_by_their_own_criteria() {
    let project = Project::shipped();
    let text = project.read("ragcheck.yaml");
    let few = "scenarios: [scenarios/react.yaml, scenarios/react-down.yaml]";
    project.write("ragcheck.yaml", &text.replacen("scenarios: [scenarios/*.yaml]", few, 1));
    // Nothing in the project measures SC-001: named or not, that fails.
    for paths in [&[][..], &["scenarios/react.yaml", "scenarios/react-down.yaml"], &["scenarios/react*.yaml"][..]] {
        let outcome = project.run(&[&["run"], paths].concat());
        outcome.expect_code(1);
        assert!(outcome.stdout.contains("NOT_MEASURED: SC-001"), "{paths:?}: {}", outcome.stdout);
        assert!(!outcome.stdout.contains("not decided by these scenarios"), "{paths:?}: {}", outcome.stdout);
    }
    // Criteria that were typed are those to judge by, all of them.
    let typed = ["run", "scenarios/react.yaml", "--criteria", "scenarios/success-criteria.yaml"];
    project.run(&typed).expect_code(1);
    project.run(&typed[..2]).expect_code(0);
}

#[test]
fn a_scenario_that_nothing_required_counts_does_not_pass_alone() {
    let project = Project::shipped();
    let text = project.read("scenarios/react-down.yaml");
    project.write("scenarios/react-down.yaml", &format!("{}\ngates: []\n", without_gates(&text)));
    let criteria = project.read("scenarios/success-criteria.yaml");
    let own = criteria.replace("tool-rag, react", "tool-rag");
    project.write("scenarios/success-criteria.yaml", &own);
    let outcome = project.run(&["run", "scenarios/react-down.yaml"]);
    outcome.expect_code(1);
    assert!(outcome.stdout.contains("nothing was shown"), "{}", outcome.stdout);
}

/// A scenario's text without what it says of gates.
fn without_gates(text: &str) -> String {
    let kept = text.lines().filter(|line| !line.starts_with("gates"));
    kept.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_shipped_scenario_of_each_flow_and_kind_passes_alone() {
    let of_kinds =
        ["context", "limits", "managed-rag-ends", "managed-rag-plain", "react-down", "react-prompts", "two-stage-down"];
    pass_alone(|name| of_kinds.contains(&name), of_kinds.len());
}

#[test]
#[ignore = "every shipped scenario: .ci/slow"]
fn every_shipped_scenario_passes_alone() {
    pass_alone(|_| true, 21);
}

/// Runs each shipped scenario that `chosen` names, alone; there are so many at least.
fn pass_alone(chosen: impl Fn(&str) -> bool, least: usize) {
    let project = Project::shipped();
    let text = project.read("ragcheck.yaml");
    assert!(text.starts_with('#') && text.contains("scenarios: [scenarios/*.yaml]"), "{text}");
    let files =
        std::fs::read_dir(project.path("scenarios")).expect("scenarios").map(|file| file.expect("a file").path());
    let files = files.filter(|file| std::fs::read_to_string(file).is_ok_and(|text| text.contains("\nscenario: ")));
    let mut files: Vec<_> = files.filter_map(|file| Some(file.file_name()?.to_string_lossy().into_owned())).collect();
    files.retain(|file| chosen(file.trim_end_matches(".yaml")));
    files.sort();
    assert!(files.len() >= least, "{files:?}");
    let red = files.iter().filter_map(|file| {
        let outcome = project.run(&["run", &format!("scenarios/{file}")]);
        (outcome.code != 0).then(|| format!("{file} ends with {}: {}", outcome.code, outcome.stdout))
    });
    let red: Vec<String> = red.collect();
    assert!(red.is_empty(), "{}", red.join("\n"));
}

#[test]
fn a_flow_alone_passes_and_criteria_that_its_trials_cannot_be_asked_are_named_in_one_line() {
    let project = Project::shipped();
    let outcome = project.run(&["run", "--flow", "react"]);
    outcome.expect_code(0);
    let run = project.latest("run.json");
    let conclusion = run["conclusion"].as_str().expect("a conclusion");
    assert!(conclusion.contains("; not asked of the selected trials: SC-001, SC-002, "), "{conclusion}");
    assert!(!outcome.stdout.contains("NOT_MEASURED SC-"), "told once, not row by row: {}", outcome.stdout);
    // What can be asked of them and has no unit stays NOT_MEASURED, and fails the run.
    let grade = "about: One.\ncriteria:\n  - {id: TOLD, about: Searches outside are indexed, metric: retry_recovery, \
                 target: '>= 80%', kind: confidence}\n";
    project.write("one.yaml", grade);
    let asked = project.run(&["run", "--variant", "turned-round", "--criteria", "one.yaml"]);
    asked.expect_code(1);
    assert!(asked.stdout.contains("NOT_MEASURED: TOLD"), "{}", asked.stdout);
    let other = grade.replace("metric: retry_recovery,", "metric: retry_recovery, flow: tool-rag,");
    project.write("one.yaml", &other);
    let unasked = project.run(&["run", "--variant", "turned-round", "--criteria", "one.yaml"]);
    unasked.expect_code(0);
    assert!(unasked.stdout.replace('\n', " ").contains("not asked of the selected trials: TOLD"), "{}", unasked.stdout);
}

#[test]
fn the_line_that_reproduces_a_run_ends_with_its_exit_code() {
    let reproduced = |project: &Project, run: &[&str], code: i32| {
        project.run(&[run, &["--report", "markdown=out/report.md"]].concat()).expect_code(code);
        let text = project.read("out/report.md");
        let line = text.split("Reproduce it:\n\n```sh\n").nth(1).and_then(|rest| rest.lines().next());
        let line = line.unwrap_or_else(|| panic!("{text}")).to_owned();
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        project.run(&words).expect_code(code);
        line
    };
    let project = Project::shipped();
    project.edit("scenarios/knowledge.yaml", "contains: [38 to 46 ohms]", "contains: [99 ohms]");
    let line = reproduced(&project, &["run", "scenarios/knowledge.yaml"], 1);
    assert!(line.starts_with("ragcheck run scenarios/knowledge.yaml --only "), "{line}");
    // A lane that is missing.
    let project = Project::shipped();
    std::fs::remove_file(project.path("fixtures/cassettes/knowledge/descaling/tool-rag.base.2.yaml")).expect("a lane");
    reproduced(&project, &["run", "scenarios/knowledge.yaml"], 3);
    // A criterion that all scenarios decide, none of whose cases fails.
    let project = Project::shipped();
    let text = project.read("ragcheck.yaml");
    let few = "scenarios: [scenarios/react.yaml, scenarios/react-down.yaml]";
    project.write("ragcheck.yaml", &text.replacen("scenarios: [scenarios/*.yaml]", few, 1));
    assert_eq!(reproduced(&project, &["run"], 1), "ragcheck run");
    // Undecided: a case alone would pass.
    project.write("scenarios/success-criteria.yaml", "about: One.\ncriteria:\n  - {id: CASES, about: Cases pass, metric: case_pass_rate, target: '>= 99%', kind: confidence}\n");
    assert_eq!(reproduced(&project, &["run"], 4), "ragcheck run");
}

#[test]
fn the_line_that_reproduces_a_run_has_the_criteria_repetitions_and_selection_that_were_typed() {
    let reproduced = |project: &Project, run: &[&str], code: i32| {
        project.run(&[run, &["--report", "markdown=out/report.md"]].concat()).expect_code(code);
        let text = project.read("out/report.md");
        let line = text.split("Reproduce it:\n\n```sh\n").nth(1).and_then(|rest| rest.lines().next());
        let line = line.unwrap_or_else(|| panic!("{text}")).replace('\'', "");
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        project.run(&words).expect_code(code);
        line
    };
    let project = Project::shipped();
    let text = project.read("ragcheck.yaml");
    let two = "scenarios: [scenarios/knowledge.yaml, scenarios/react.yaml]";
    project.write("ragcheck.yaml", &text.replacen("scenarios: [scenarios/*.yaml]", two, 1));
    // The project's own criteria pass here, and a path beside typed criteria is no part of the project.
    project.write("one.yaml", "about: One.\ncriteria:\n  - {id: CASES, about: Cases pass, metric: case_pass_rate, target: '>= 99%', kind: confidence}\n");
    let scenario = "scenarios/knowledge.yaml";
    let line = reproduced(&project, &["run", scenario, "--criteria", "one.yaml"], 4);
    assert_eq!(line, format!("ragcheck run {scenario} --criteria one.yaml"));
    // A fourth repetition has no recording.
    let line = reproduced(&project, &["run", scenario, "--repeat", "40", "--only", "valve-error"], 3);
    assert_eq!(line, format!("ragcheck run {scenario} --repeat 40 --only knowledge/valve-error"));
    // Neither has another flow.
    project.write("one.yaml", "about: One.\ncriteria:\n  - {id: OUTSIDE, about: Queries go outside, metric: mandatory_call_rate(external), target: '= 100%', kind: invariant}\n");
    let line = reproduced(&project, &["run", "--flow", "tool-rag", "--criteria", "one.yaml"], 1);
    assert_eq!(line, "ragcheck run --criteria one.yaml --flow tool-rag");
    // What is left out elsewhere is no case of the scenario that fails, and another trial of the case is in ERROR.
    project.edit(scenario, "contains: [38 to 46 ohms]", "contains: [99 ohms]");
    let line = reproduced(&project, &["run", "--exclude", "one-step"], 1);
    assert_eq!(line, format!("ragcheck run {scenario} --only knowledge/valve-error"));
    std::fs::remove_file(project.path("fixtures/cassettes/knowledge/valve-error/tool-rag.base.2.yaml"))
        .expect("a lane");
    let line = reproduced(&project, &["run", scenario, "--only", "*/tool-rag.base.1"], 1);
    assert_eq!(line, format!("ragcheck run {scenario} --only knowledge/valve-error/tool-rag.base.1"));
    // The plan's id depends on what runs, not on how it was typed.
    let plan = |run: &[&str]| {
        project.run(run);
        project.latest("plan.json")
    };
    let paths = ["scenarios/knowledge.yaml", "scenarios/react.yaml"];
    let (whole, typed) = (plan(&["run"]), plan(&["run", paths[0], paths[1]]));
    assert_eq!((&whole["id"], &whole["typed"]), (&typed["id"], &serde_json::Value::Null));
    assert_eq!(typed["typed"], serde_json::json!({"paths": paths}));
}

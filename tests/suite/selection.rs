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
    assert!(outcome.stdout.contains("(INCONCLUSIVE)"), "the criteria are not shown: {}", outcome.stdout);
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
    for (file, open) in
        [("scenarios/react.yaml", "SC-001 (NOT_MEASURED)"), ("scenarios/knowledge.yaml", "SC-001 (INCONCLUSIVE)")]
    {
        let outcome = project.run(&["run", file]);
        outcome.expect_code(0);
        let run = project.latest("run.json");
        let conclusion = run["conclusion"].as_str().expect("a conclusion");
        assert!(!conclusion.contains("PART"), "{conclusion}");
        assert!(conclusion.contains("; not decided by these scenarios: ") && conclusion.contains(open), "{conclusion}");
        assert!(
            !outcome.stdout.contains("NOT_MEASURED SC-"),
            "what others measure is told row by row: {}",
            outcome.stdout
        );
    }
    // What it measures counts: an expectation that a case misses, and a criterion that fails.
    project.run(&["run", "scenarios/parameters.yaml"]).expect_code(1);
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

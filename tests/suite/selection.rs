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

//! What people know from other test tools: a sample of the cases, each trial printed, completions, mistakes as annotations.

use super::project::{Outcome, Project};
use std::collections::BTreeSet;

const SCENARIO: &str = "scenarios/knowledge.yaml";

/// Cases of the newest run.
fn cases(project: &Project) -> BTreeSet<String> {
    let trials = project.traces();
    trials
        .iter()
        .map(|trace| trace["trial"].as_str().expect("an id").rsplit_once('/').expect("a case").0.to_owned())
        .collect()
}

#[test]
fn a_sample_has_so_many_cases_and_is_the_same_for_a_seed_and_another_for_others() {
    let project = Project::shipped();
    let mut drawn = BTreeSet::new();
    for seed in ["1", "2", "3", "4"] {
        let typed = ["run", SCENARIO, "--filter-sample", "2", "--seed", seed];
        project.run(&typed).expect_code(0);
        let first = cases(&project);
        assert_eq!(first.len(), 2, "{first:?}");
        project.run(&typed);
        assert_eq!(cases(&project), first);
        drawn.insert(first);
    }
    assert!(drawn.len() > 1, "every seed draws the same: {drawn:?}");
    project.run(&["run", SCENARIO, "--filter-sample", "1000"]).expect_code(0);
    assert_eq!(cases(&project).len(), 8);
    project.run(&["run", SCENARIO, "--filter-sample", "0"]).expect_code(2);
}

#[test]
fn each_trial_is_printed_with_its_verdict_and_why_it_did_not_pass() {
    let project = Project::shipped();
    project.edit(SCENARIO, "contains: [38 to 46 ohms]", "contains: [99 ohms]");
    let outcome = project.run(&["run", SCENARIO, "-v"]);
    outcome.expect_code(1);
    let rows: Vec<&str> = outcome.stdout.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(rows.len(), 24, "{}", outcome.stdout);
    let failed: Vec<&&str> = rows.iter().filter(|row| row.starts_with("FAIL ")).collect();
    assert_eq!(failed.len(), 3, "{rows:?}");
    assert!(failed.iter().all(|row| row.contains("knowledge/valve-error/tool-rag.base.") && row.contains("expected")));
}

#[test]
fn mistakes_in_files_are_annotations_where_a_runner_reads_them_and_nowhere_else() {
    let project = Project::shipped();
    project.edit(SCENARIO, "repeat: 3", "repeta: 3, ::stop-commands::x");
    for typed in [&["check"][..], &["run", SCENARIO]] {
        let outcome = Outcome::of(project.command(typed).env("GITHUB_ACTIONS", "true"));
        outcome.expect_code(2);
        let lines: Vec<&str> = outcome.stderr.lines().filter(|line| line.starts_with("::")).collect();
        assert!(!lines.is_empty(), "{}", outcome.stderr);
        for line in lines {
            assert!(line.starts_with("::error file=scenarios/knowledge.yaml,line="), "{line}");
        }
        let plain = Outcome::of(project.command(typed).env_remove("GITHUB_ACTIONS"));
        assert!(!plain.stderr.contains("::error") && !plain.stdout.contains("::error"), "{}", plain.stderr);
    }
}

#[test]
fn a_shell_reads_the_completions() {
    let project = Project::shipped();
    let outcome = project.run(&["completions", "bash"]);
    outcome.expect_code(0);
    project.write("completions.bash", &outcome.stdout);
    let script = "source ./completions.bash; COMP_WORDS=(ragcheck che); COMP_CWORD=1; _ragcheck ragcheck che ragcheck; \
                  echo \"${COMPREPLY[@]}\"";
    let mut shell = std::process::Command::new("bash");
    let told = shell.args(["-c", script]).current_dir(project.path("")).output().expect("bash");
    assert_eq!(String::from_utf8_lossy(&told.stdout).trim(), "check", "{}", String::from_utf8_lossy(&told.stderr));
}

//! Mistakes of whoever types or writes: exit code 2, with the place and what to do, and no run folder.

use super::project::{Outcome, Project};

fn two(project: &Project, arguments: &[&str]) -> Outcome {
    let outcome = project.run(arguments);
    outcome.expect_code(2);
    if arguments[0] == "check" {
        // Its mistakes are its result.
        return Outcome { code: 2, stdout: String::new(), stderr: outcome.stdout };
    }
    assert_eq!(outcome.stdout, "", "a mistake is no result: {arguments:?}");
    assert!(outcome.stderr.starts_with("error: "), "{arguments:?}: {}", outcome.stderr);
    assert!(!project.path("reports/latest").exists(), "{arguments:?} left a run");
    outcome
}

#[test]
fn an_unreadable_scenario_is_shown_with_line_and_column() {
    let project = Project::shipped();
    project.edit("scenarios/knowledge.yaml", "  - case: wind-lock\n", "  - case: [wind-lock\n");
    let outcome = two(&project, &["run"]);
    let line =
        1 + project.read("scenarios/knowledge.yaml").lines().position(|line| line.contains("[wind-lock")).expect("it");
    let place = regex::Regex::new(r"--> scenarios/knowledge\.yaml:(\d+):(\d+)").expect("a pattern");
    let found = place.captures(&outcome.stderr).unwrap_or_else(|| panic!("{}", outcome.stderr));
    let shown: usize = found[1].parse().expect("a line");
    assert!(shown.abs_diff(line) <= 1, "line {line} is at fault, {shown} is shown: {}", outcome.stderr);
    two(&project, &["check"]);
}

#[test]
fn a_document_that_no_run_can_read_is_an_error_of_check_too() {
    let project = Project::starter();
    let document = project.read("knowledge/bikes/hire.md");
    let utf16: Vec<u8> = std::iter::once(0xfeff).chain(document.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    std::fs::write(project.path("knowledge/bikes/hire.md"), utf16).expect("written");
    for command in ["run", "check"] {
        let outcome = two(&project, &[command]);
        let told = "knowledge/bikes/hire.md:1: the file is not UTF-8 text, but UTF-16: save it as UTF-8";
        assert!(outcome.stderr.contains(told), "{command}: {}", outcome.stderr);
    }
}

#[test]
fn a_criteria_file_that_is_to_be_run_is_told_to_be_no_scenario() {
    let project = Project::starter();
    for command in ["run", "list"] {
        let outcome = two(&project, &[command, "scenarios/criteria.yaml"]);
        assert!(outcome.stderr.contains("this is no scenario: it has criteria"), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("scenarios/criteria.yaml"), "{}", outcome.stderr);
    }
    project.run(&["check", "scenarios/criteria.yaml"]).expect_code(0);
}

#[test]
fn before_the_first_run_every_command_about_runs_says_what_makes_one() {
    let project = Project::starter();
    let trial = "questions/deposit/tool-rag.strict.1";
    let elsewhere = format!("reports/nowhere/{trial}");
    let commands: [&[&str]; 6] = [
        &["show", trial],
        &["show", &elsewhere],
        &["score"],
        &["score", "reports/nowhere"],
        &["report", "--to", "markdown"],
        &["judge", "reports/latest"],
    ];
    for command in commands {
        let outcome = two(&project, command);
        assert!(outcome.stderr.contains("ragcheck run"), "{command:?}: {}", outcome.stderr);
    }
}

#[test]
fn imported_conversations_without_a_reward_are_said_to_have_none() {
    let project = Project::starter();
    let talk = r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}"#;
    project.write("log.jsonl", talk);
    let outcome = project.run(&["score", "--import", "messages", "log.jsonl"]);
    assert!(outcome.stdout.contains("no trial has a reward or an expectation"), "{}", outcome.stdout);
}

#[test]
fn a_misspelt_key_is_shown_with_its_line_and_the_key_that_was_meant() {
    let project = Project::shipped();
    project.edit("scenarios/external.yaml", "    tags: [energy]\n", "    tgas: [energy]\n");
    let outcome = two(&project, &["run"]);
    assert!(outcome.stderr.contains("--> scenarios/external.yaml:13:5"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("tgas") && outcome.stderr.contains("`tags`"), "{}", outcome.stderr);
}

#[test]
fn all_mistakes_are_told_at_once() {
    let project = Project::shipped();
    project.edit("scenarios/external.yaml", "    tags: [energy]\n", "    tgas: [energy]\n");
    project.edit("scenarios/knowledge.yaml", "flow: tool-rag\n", "flow: tool-rga\n");
    let wrong = "criteria:\n  - {id: X, metric: keyword_covrage, target: '>= 95%', kind: confidence}\n";
    project.edit("scenarios/success-criteria.yaml", "criteria:\n", wrong);
    let outcome = two(&project, &["check"]);
    for (file, words) in [
        ("scenarios/external.yaml", "tgas:"),
        ("scenarios/knowledge.yaml", "tool-rga"),
        ("scenarios/success-criteria.yaml", "keyword_covrage"),
    ] {
        let line = 1 + project.read(file).lines().position(|line| line.contains(words)).expect(words);
        assert!(outcome.stderr.contains(&format!("{file}:{line}:")), "{file}:{line}: {}", outcome.stderr);
    }
}

#[test]
fn what_the_command_line_does_not_know_is_refused() {
    let project = Project::shipped();
    for arguments in [
        &["bogus"][..],
        &["run", "--bogus"],
        &["run", "--mode", "guess"],
        &["run", "--repeat", "0"],
        &["run", "--jobs", "none"],
        &["report", "--to", "pdf"],
    ] {
        two(&project, arguments);
    }
}

#[test]
fn a_selection_that_matches_nothing_is_refused_with_what_there_is() {
    let project = Project::shipped();
    let outcome = two(&project, &["run", "--only", "no-such-case"]);
    assert!(outcome.stderr.contains("ragcheck list"), "{}", outcome.stderr);
    let outcome = two(&project, &["run", "--flow", "tool-rga"]);
    assert!(outcome.stderr.contains("tool-rag"), "{}", outcome.stderr);
    two(&project, &["run", "--variant", "forced"]);
    two(&project, &["run", "--failed"]);
    two(&project, &["list", "--only", "no-such-case"]);
}

#[test]
fn files_that_are_not_there_are_named() {
    let project = Project::shipped();
    for (arguments, name) in [
        (&["run", "scenarios/nowhere.yaml"][..], "scenarios/nowhere.yaml"),
        (&["run", "--criteria", "nowhere.yaml"], "nowhere.yaml"),
        (&["score", "reports/nowhere"], "reports/nowhere"),
        (&["report", "reports/nowhere", "--to", "csv"], "reports/nowhere"),
        (&["show", "reports/nowhere/a/b/c"], "reports/nowhere"),
        (&["simulate", "nowhere.yaml"], "nowhere.yaml"),
        (&["knowledge", "search", "nowhere", "query"], "nowhere"),
    ] {
        let outcome = two(&project, arguments);
        assert!(outcome.stderr.contains(name), "{arguments:?}: {}", outcome.stderr);
    }
}

#[test]
fn criteria_that_cannot_be_used_are_shown_with_their_line() {
    let project = Project::shipped();
    let criterion =
        "criteria:\n  - id: A\n    about: It.\n    metric: latency_p95\n    target: \">= 95%\"\n    kind: confidence\n";
    project.write("bad.yaml", &format!("about: A time with a rate for a target.\n{criterion}"));
    let outcome = two(&project, &["run", "--criteria", "bad.yaml"]);
    assert!(outcome.stderr.contains("--> bad.yaml:6:"), "{}", outcome.stderr);
}

#[test]
fn knowledge_that_is_not_there_is_an_error_of_the_scenario() {
    let project = Project::shipped();
    project.edit("scenarios/knowledge.yaml", "knowledge: fernlight\n", "knowledge: fernlicht\n");
    let outcome = two(&project, &["run"]);
    assert!(outcome.stderr.contains("scenarios/knowledge.yaml:6:12"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("fernlicht"), "{}", outcome.stderr);
}

#[test]
fn a_run_folder_that_was_cut_short_names_the_line() {
    let project = Project::shipped();
    project.run(&["run", "scenarios/knowledge.yaml"]);
    let folder = "reports/cut";
    for file in ["plan.json", "traces.jsonl"] {
        project.write(&format!("{folder}/{file}"), &project.read(&format!("reports/latest/{file}")));
    }
    let text = project.read("reports/cut/traces.jsonl");
    let mut lines: Vec<&str> = text.lines().collect();
    lines[2] = &lines[2][..200];
    project.write("reports/cut/traces.jsonl", &lines.join("\n"));
    let outcome = project.run(&["score", folder]);
    outcome.expect_code(2);
    assert!(outcome.stderr.contains("traces.jsonl"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("line 3"), "{}", outcome.stderr);
}

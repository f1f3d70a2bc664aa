//! "What to do": one list on the terminal, in the page, in the summary and in the annotations, whose commands do what they are printed
//! for.

use super::project::{Outcome, Project};
use super::simulator::Simulator;
use std::fs;

const SCENARIO: &str = "scenarios/knowledge.yaml";
const COST: &str = "about 3 model calls for 1 trial; cost unknown: ragcheck.yaml declares no";

/// The last block of the output.
fn block(outcome: &Outcome) -> &str {
    outcome.stdout.split("\nWhat to do\n").nth(1).unwrap_or_else(|| panic!("{}{}", outcome.stdout, outcome.stderr))
}

/// The printed commands, each with what stands before it: `record`.
fn commands(outcome: &Outcome) -> Vec<(String, String)> {
    let line = |line: &str| {
        let (purpose, command) = line.strip_prefix("  ")?.split_once(": ragcheck ")?;
        Some((purpose.to_owned(), command.to_owned()))
    };
    block(outcome).lines().filter_map(line).collect()
}

fn run(project: &Project, command: &str) -> Outcome {
    let words: Vec<&str> = command.split(' ').collect();
    project.run(&words)
}

/// A project of whose scenario one lane has no recording and one case expects something else.
fn broken() -> Project {
    let project = Project::shipped();
    project.edit(SCENARIO, "contains: [38 to 46 ohms]", "contains: [99 ohms]");
    fs::remove_file(project.path("fixtures/cassettes/knowledge/firewall/tool-rag.base.1.yaml")).expect("a lane");
    project
}

#[test]
fn every_printed_command_does_what_it_is_printed_for() {
    let project = broken();
    let outcome = project.run(&["run", SCENARIO]);
    outcome.expect_code(3);
    let found = commands(&outcome);
    let purposes: Vec<&str> = found.iter().map(|(purpose, _)| purpose.as_str()).collect();
    assert_eq!(purposes, ["dry run", "record", "see it", "run it again"], "{}", outcome.stdout);
    assert!(block(&outcome).replace("\n    ", " ").contains(COST), "{}", outcome.stdout);
    let said = "FAILS knowledge/valve-error (3 trials): expected \"99 ohms\"; the answer says \"Measure the coil: 38 to 46 ohms";
    assert!(block(&outcome).replace('\n', " ").contains(said), "{}", outcome.stdout);

    let dry = run(&project, &found[0].1);
    dry.expect_code(0);
    assert!(dry.stdout.contains("1 lane to record again: 1 lane missing"), "{}", dry.stdout);
    let show = run(&project, &found[2].1);
    show.expect_code(0);
    assert!(
        show.stdout.starts_with("FAIL\n  expected turn 1: answer.contains: 99 ohms; the answer says: "),
        "{}",
        show.stdout
    );
    run(&project, &found[3].1).expect_code(1);

    let simulator = Simulator::start(&project, "fixtures/simulator/fernlight.yaml");
    let recorded = run(&project, &found[1].1);
    assert!([0, 1].contains(&recorded.code), "{}{}", recorded.stdout, recorded.stderr);
    drop(simulator);
    let again = project.run(&["run", SCENARIO]);
    again.expect_code(1);
    assert!(!again.stdout.contains("NOT RECORDED"), "{}", again.stdout);
}

#[test]
fn page_summary_and_annotations_have_the_list_of_the_terminal() {
    let project = broken();
    let outcome = project.run(&["run", SCENARIO, "--report", "markdown=out.md,annotations=out.txt"]);
    outcome.expect_code(3);
    let page = project.read(&format!("{}/index.html", project.newest())).replace("&#x2f;", "/");
    for (file, text) in [("page", page), ("summary", project.read("out.md")), ("annotations", project.read("out.txt"))]
    {
        for (_, command) in commands(&outcome) {
            assert!(text.contains(&format!("ragcheck {command}")), "{command} is not in the {file}: {text}");
        }
        for words in ["NOT RECORDED", "knowledge/firewall", "38 to 46 ohms", COST] {
            assert!(text.contains(words), "{words} is not in the {file}");
        }
    }
}

#[test]
fn a_run_that_is_not_the_newest_is_named_in_the_command_that_shows_a_trial() {
    let project = broken();
    project.run(&["run", SCENARIO]).expect_code(3);
    let older = project.newest();
    project.run(&["run", "scenarios/react.yaml"]);
    let scored = project.run(&["score", &older]);
    let (_, show) = commands(&scored).into_iter().find(|(purpose, _)| purpose == "see it").expect("a command");
    assert!(show.contains(&older), "{show}");
    run(&project, &show).expect_code(0);
}

#[test]
fn a_failed_criterion_is_said_in_plain_words_with_the_case_that_fails_it_most() {
    let project = Project::shipped();
    project.write(
        "one.yaml",
        "about: One.\ncriteria:\n  - {id: FAST, about: Answers come at once, metric: latency_p95, target: '<= 1s', kind: confidence}\n",
    );
    let outcome = project.run(&["run", SCENARIO, "--criteria", "one.yaml"]);
    outcome.expect_code(1);
    let told = block(&outcome).replace('\n', " ");
    let row = &project.latest("run.json")["criteria"][0];
    let (n, late) = (row["n"].as_u64().expect("n"), row["n"].as_u64().zip(row["successes"].as_u64()).expect("both"));
    let words = format!(
        "FAILS FAST, Answers come at once: {} of {n} queries took 1 s or longer (observed p95 ",
        late.0 - late.1
    );
    assert!(told.contains(&words) && told.contains("; in 8 cases, most in knowledge/"), "{told}");
    for (purpose, command) in commands(&outcome) {
        assert_eq!(purpose, "see it");
        let show = run(&project, &command);
        show.expect_code(0);
        assert!(show.stdout.contains("violates FAST, turn 1: slower than 1 s: "), "{}", show.stdout);
    }
}

//! Runs that stop when every required gate is settled: what they save, and that a replay keeps to their rule.

use super::project::{Outcome, Project};
use super::simulator::Simulator;
use serde_json::Value;

const CRITERIA: &str = "about: Two gates that a run until decided settles at different passes.
criteria:
  - id: FIRST
    about: The response tool answers at the first attempt
    metric: first_attempt_rate(generate_response)
    target: \">= 60%\"
    kind: confidence
  - id: SEARCH
    about: Every query searches
    metric: mandatory_call_rate(knowledge_base_search)
    target: \"= 100%\"
    kind: invariant
    floor: \">= 70%\"
";

const SCENARIO: &str = "scenario: sequential
flow: tool-rag
knowledge: fernlight
model: {provider: simulator, name: any}
cases:
  - {case: one, ask: How long does the warranty of the Canopy last?, expect: {answer: {matches: [warranty]}}}
  - {case: two, ask: What does the warranty of the Canopy cover?, expect: {answer: {matches: [warranty]}}}
";

const OBEDIENT: &str = "name: obedient
seed: 1
pace: declared
model:
  latency: {constant: 100ms}
search:
  latency: {constant: 100ms}
  topics:
    - when: {asks: '.'}
      answer: One source treats this question in general terms [1].
      results:
        - {title: General remarks, url: 'https://encyclopedia.example.org/general', snippet: No figures are given.}
";

/// A project with a scenario of two cases, a simulator that obeys, and two gates.
pub fn prepared() -> (Project, Simulator) {
    let project = Project::shipped();
    project.write("obedient.yaml", OBEDIENT);
    let simulator = Simulator::start(&project, "obedient.yaml");
    project.write("few.yaml", CRITERIA);
    project.write("sequential.yaml", SCENARIO);
    (project, simulator)
}

fn record(project: &Project) -> Outcome {
    let asked = ["--mode", "record", "--until-decided", "--max-trials", "25"];
    let given: Vec<&str> = ["run", "sequential.yaml", "--criteria", "few.yaml"].into_iter().chain(asked).collect();
    project.run(&given)
}

const REPLAY: [&str; 4] = ["run", "sequential.yaml", "--criteria", "few.yaml"];

/// The sentence on where a run stopped.
fn stopped(project: &Project) -> String {
    project.latest("run.json")["stopped"]["sentence"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_recording_stops_when_its_gates_are_settled_and_replays_by_the_same_rule_to_the_same_bytes() {
    let (project, simulator) = prepared();
    let recorded = record(&project);
    recorded.expect_code(0);
    let sentence = "stopped after pass 5 of 12: 10 of 24 trials";
    assert!(recorded.stdout.contains(sentence), "{}", recorded.stdout);
    drop(simulator);
    let design: Value =
        serde_json::from_str(&project.read("fixtures/cassettes/sequential/stopping.json")).expect("a design");
    assert_eq!((&design["max_passes"], &design["stopped_after"]), (&Value::from(12), &Value::from(5)));
    let theirs = project.report("reports/latest");
    let replayed = project.run(&REPLAY);
    replayed.expect_code(0);
    assert!(replayed.stdout.contains(sentence), "{}", replayed.stdout);
    assert_eq!(project.report("reports/latest"), theirs, "verdicts, bounds and bytes");
    let scored = project.run(&["score"]);
    let without_path = |text: &str| text.split("report:").next().unwrap_or_default().to_owned();
    assert_eq!(without_path(&scored.stdout), without_path(&replayed.stdout));
    assert_eq!(project.report("reports/latest"), theirs);
    let run = project.latest("run.json");
    let row = &run["criteria"][0];
    assert_eq!((&row["n"], &row["sequential"]["rule"]), (&Value::from(6), &Value::from("6 units without a failure")));
}

#[test]
fn a_replay_never_judges_what_was_stopped_as_if_its_number_had_been_fixed() {
    let (project, simulator) = prepared();
    record(&project).expect_code(0);
    drop(simulator);
    // Ten lanes are there; asked for as a fixed number they would be judged by bounds for a fixed number.
    let arguments: Vec<&str> = REPLAY.into_iter().chain(["--repeat", "5"]).collect();
    project.run(&arguments).expect_code(0);
    assert_eq!(stopped(&project), "went through all of 5 passes: 10 of 10 trials");
    let criteria = project.latest("run.json")["criteria"].clone();
    assert!(criteria.as_array().expect("rows").iter().all(|row| row["sequential"].is_object()), "{criteria}");
    // A target that was raised afterwards needs lanes that were never recorded.
    project.edit("few.yaml", ">= 60%", ">= 85%");
    let outcome = project.run(&REPLAY);
    outcome.expect_code(3);
    assert!(outcome.stdout.contains("this lane has no recording"), "{}", outcome.stdout);
}

#[test]
fn recordings_say_that_they_were_made_until_decided_where_stopping_json_is_gone() {
    let (project, simulator) = prepared();
    record(&project).expect_code(0);
    drop(simulator);
    project.run(&REPLAY).expect_code(0);
    let theirs = project.latest("run.json")["criteria"].clone();
    std::fs::remove_file(project.path("fixtures/cassettes/sequential/stopping.json")).expect("removed");
    let replayed = project.run(&REPLAY);
    replayed.expect_code(0);
    assert_eq!(project.latest("run.json")["criteria"], theirs, "judged by the same rule");
    let told = format!("{}{}", replayed.stdout, replayed.stderr);
    assert!(told.contains("stopping.json of sequential is gone; its recordings say"), "{told}");
}

#[test]
fn recording_a_fixed_number_again_lifts_the_rule() {
    let (project, _simulator) = prepared();
    record(&project).expect_code(0);
    let fixed: Vec<&str> = REPLAY.into_iter().chain(["--mode", "record", "--repeat", "6"]).collect();
    project.run(&fixed).expect_code(0);
    assert!(!project.path("fixtures/cassettes/sequential/stopping.json").exists());
    assert_eq!(stopped(&project), "");
}

#[test]
fn what_cannot_stop_by_itself_is_refused_with_what_to_do() {
    let (project, simulator) = prepared();
    drop(simulator);
    let refused = |more: &[&str], word: &str| {
        let arguments: Vec<&str> = REPLAY.iter().chain(more).copied().collect();
        let outcome = project.run(&arguments);
        outcome.expect_code(2);
        assert!(outcome.stderr.contains(word), "{more:?}: {}", outcome.stderr);
    };
    refused(&["--until-decided"], "the number of these recordings was planned");
    refused(&["--max-trials", "9"], "--until-decided");
    refused(&["--mode", "live", "--until-decided"], "--max-trials N (one pass is 2 trials)");
    refused(&["--mode", "live", "--until-decided", "--max-trials", "1"], "less than one pass");
    project.edit("few.yaml", "criteria:", "estimand: population\ncriteria:");
    refused(&["--mode", "live", "--until-decided", "--max-trials", "9"], "estimand: population");
    project.write("fixtures/cassettes/sequential/stopping.json", "{\"version\": 99");
    refused(&[], "stopping.json");
}

#[test]
fn a_stopping_design_and_gradings_that_changed_since_the_base_are_named_like_recordings() {
    let (project, simulator) = prepared();
    record(&project).expect_code(0);
    drop(simulator);
    for typed in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "--no-gpg-sign", "-m", "base"],
    ] {
        let mut git = std::process::Command::new("git");
        Outcome::of(git.args(typed).current_dir(project.path("."))).expect_code(0);
    }
    let replay = || project.run(&[&REPLAY[..], &["--base-commit", "HEAD"]].concat());
    assert!(replay().stdout.contains("every recording is as it was at "), "{}", replay().stdout);
    // A line end changes nothing but the bytes.
    let grading = std::fs::read_dir(project.path("fixtures/cassettes/judge")).expect("gradings");
    let grading = grading.map(|entry| entry.expect("an entry").path()).find(|path| path.is_file()).expect("a grading");
    let name = format!("judge/{}", grading.file_name().expect("a name").to_string_lossy());
    for file in ["fixtures/cassettes/sequential/stopping.json".to_owned(), format!("fixtures/cassettes/{name}")] {
        project.write(&file, &(project.read(&file) + "\n"));
    }
    let told = super::external::plain(&replay().stdout);
    assert!(
        told.contains("2 recordings CHANGED since ") && told.contains(&format!("sequential/stopping.json, {name}")),
        "{told}"
    );
}

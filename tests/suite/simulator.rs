//! The built-in simulator, as a process of its own: recorded, then replayed, to the same verdicts.

use super::project::{Outcome, Project};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

const LANE: &str = "fixtures/cassettes/external/feed-in-tariff/tool-rag.base.1.yaml";
const RECORD: [&str; 7] =
    ["run", "scenarios/external.yaml", "--mode", "record", "--only", "feed-in-tariff", "--repeat=1"];

/// A simulator that is stopped with the test.
pub struct Simulator {
    child: Child,
    pub address: String,
}

impl Simulator {
    /// Starts one on a free port, and has the project ask it.
    pub fn start(project: &Project, behaviour: &str) -> Self {
        let mut command = project.command(&["simulate", behaviour, "--port", "0"]);
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the simulator");
        let mut line = String::new();
        BufReader::new(child.stderr.take().expect("stderr")).read_line(&mut line).expect("a line");
        let address =
            line.split("http://").nth(1).and_then(|rest| rest.split(';').next()).unwrap_or_else(|| panic!("{line}"));
        project.write("ragcheck.yaml", &project.read("ragcheck.yaml").replace("127.0.0.1:8091", address));
        Self { child, address: address.to_owned() }
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The shipped project, its simulator's address changed, and the simulator without its pauses.
pub fn recording() -> (Project, Simulator) {
    let project = Project::shipped();
    project.edit("fixtures/simulator/fernlight.yaml", "pace: real", "pace: declared");
    let simulator = Simulator::start(&project, "fixtures/simulator/fernlight.yaml");
    (project, simulator)
}

fn verdicts(project: &Project) -> Vec<String> {
    let run = project.latest("run.json");
    let rows = run["criteria"].as_array().expect("criteria").iter();
    rows.map(|row| format!("{} {} {} of {}", row["id"], row["verdict"], row["successes"], row["n"])).collect()
}

#[test]
fn what_was_recorded_replays_to_the_same_verdicts_and_says_that_it_is_simulated() {
    let (project, simulator) = recording();
    let before = project.read(LANE);
    let recorded = project.run(&RECORD);
    assert!(recorded.stdout.contains("1 trial: 1 PASS"), "{}", recorded.stdout);
    let (theirs, traces) = (verdicts(&project), project.traces());
    drop(simulator);
    let replayed = project.run(&["run", "scenarios/external.yaml", "--only", "feed-in-tariff", "--repeat=1"]);
    assert_eq!(replayed.code, recorded.code);
    assert_eq!(verdicts(&project), theirs);
    assert_eq!(project.traces(), traces, "a recording reports what its replay gives");
    assert_eq!(traces[0]["evidence"]["recorded_from"], "simulator");
    let after = project.read(LANE);
    assert!(after.contains("recorded_from:\n  model: \"simulator\"\n  search: \"simulator\"\n"), "{after}");
    // Recorded alone, while nothing under test changed, it does not take the place of the first.
    assert!(before.contains("\ntake: 1\n") && after.contains("\ntake: 1\n"), "{after}");
    assert!(after.contains("  - take: 2\n") && !before.contains("  - take: 2\n"), "the take is not counted: {after}");
}

#[test]
fn a_recording_without_its_service_fails_and_leaves_the_old_one_whole() {
    let (project, simulator) = recording();
    drop(simulator);
    let before = project.read(LANE);
    project.edit("scenarios/external.yaml", "repeat: 3\n", "repeat: 3\nlimits: {transport_retries: 0}\n");
    let outcome = project.run(&RECORD);
    outcome.expect_code(3);
    assert!(outcome.stdout.contains("nothing was written; an earlier recording is as it was"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("connection"), "{}", outcome.stdout);
    assert_eq!(project.read(LANE), before);
    let replayed = project.run(&["run", "scenarios/external.yaml", "--only", "feed-in-tariff", "--repeat=1"]);
    assert!(replayed.stdout.contains("1 trial: 1 PASS"), "{}", replayed.stdout);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the recorder is another process, and is to be met in the middle")]
fn a_recording_that_is_interrupted_leaves_the_old_one_whole() {
    let project = Project::shipped();
    // At its real pace a trial takes seconds.
    let _simulator = Simulator::start(&project, "fixtures/simulator/fernlight.yaml");
    let before = project.read(LANE);
    let mut recorder = project.command(&RECORD).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    std::thread::sleep(std::time::Duration::from_millis(700));
    recorder.kill().expect("it is still running");
    recorder.wait().expect("it ends");
    assert_eq!(project.read(LANE), before);
    let folder = std::fs::read_dir(project.path("fixtures/cassettes/external/feed-in-tariff")).expect("the case");
    assert_eq!(folder.count(), 3, "something half-written lies beside the recordings");
    assert!(!project.path("reports/latest").exists());
}

#[test]
#[ignore = "forty moments: .ci/slow"]
#[expect(clippy::disallowed_methods, reason = "the recorder is another process, and is to be met in the middle")]
fn a_recording_that_is_killed_at_any_moment_leaves_recordings_that_replay() {
    let (project, _simulator) = recording();
    for moment in 0..40 {
        let mut recorder =
            project.command(&RECORD).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
        std::thread::sleep(std::time::Duration::from_millis(25 * moment));
        // It may have ended by itself.
        let _ = recorder.kill();
        recorder.wait().expect("it ends");
        let replayed = project.run(&["run", "scenarios/external.yaml", "--only", "feed-in-tariff"]);
        assert!(replayed.stdout.contains("3 trials: 3 PASS"), "{moment}: {}{}", replayed.stdout, replayed.stderr);
    }
}

#[test]
fn a_suite_that_was_never_recorded_can_be_recorded_from_nothing() {
    let (project, simulator) = recording();
    project.write(
        "mine.yaml",
        "scenario: mine\nflow: tool-rag\nknowledge: fernlight\nmodel: {provider: simulator, name: any}\ncases:\n  - case: one\n    ask: How long does the warranty of the Canopy last?\n    expect: {answer: {matches: [warranty]}}\n",
    );
    let outcome = project.run(&["run", "mine.yaml"]);
    outcome.expect_code(3);
    let said = "ragcheck cassette refresh --missed --yes mine.yaml";
    assert!(outcome.stdout.contains(said), "{}", outcome.stdout);
    let typed: Vec<&str> = said.split(' ').skip(1).collect();
    project.run(&typed);
    drop(simulator);
    let replayed = project.run(&["run", "mine.yaml"]);
    assert!(replayed.stdout.contains("1 trial: 1 PASS"), "{}", replayed.stdout);
}

#[test]
fn a_behaviour_with_a_mistake_is_refused_with_its_line() {
    let project = Project::shipped();
    project.edit("fixtures/simulator/try.yaml", "pace: real", "pase: real");
    let outcome = Outcome::of(&mut project.command(&["simulate", "fixtures/simulator/try.yaml", "--port", "0"]));
    outcome.expect_code(2);
    assert!(outcome.stderr.contains("fixtures/simulator/try.yaml:6:1"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("pase"), "{}", outcome.stderr);
}

//! Live and recording runs against a simulator: streams, budgets, interruption, keys.

use super::project::{Outcome, Project};
use super::simulator::{Simulator, recording};
use serde_json::Value;
use std::process::{Command, Stdio};

const LIVE: [&str; 7] = ["run", "scenarios/external.yaml", "--mode", "live", "--repeat=1", "--jobs", "1"];
const DOCUMENT: &str = "fixtures/knowledge/fernlight/controllers.md";
const MINE: &str = "scenario: mine
flow: tool-rag
knowledge: fernlight
model: {provider: simulator, name: any, stream: true}
cases:
  - case: one
    ask: How long does the warranty of the Canopy last?
    expect: {answer: {matches: [warranty]}}
";

/// The shipped project with the address of a simulator in it.
fn served(simulator: &str, change: impl Fn(&Project)) -> (Project, Simulator) {
    let project = Project::shipped();
    change(&project);
    let simulator = Simulator::start(&project, simulator);
    (project, simulator)
}

/// Every object below `value` that has this member.
fn having<'v>(value: &'v Value, member: &str, found: &mut Vec<&'v Value>) {
    match value {
        Value::Object(entries) => {
            if entries.contains_key(member) {
                found.push(value);
            }
            entries.values().for_each(|value| having(value, member, found));
        }
        Value::Array(items) => items.iter().for_each(|value| having(value, member, found)),
        _ => {}
    }
}

#[test]
fn streams_are_recorded_with_the_arrival_of_their_pieces_and_replayed_with_the_same_times() {
    let (project, simulator) = served("fixtures/simulator/try.yaml", |project| {
        project.edit("fixtures/simulator/try.yaml", "median: 400ms", "median: 80ms");
        project.write("mine.yaml", MINE);
    });
    let recorded = project.run(&["run", "mine.yaml", "--mode", "record"]);
    assert!(recorded.stdout.contains("1 trial"), "{}{}", recorded.stdout, recorded.stderr);
    let traces = project.traces();
    assert_eq!(traces[0]["evidence"]["mode"], "replay", "{}", recorded.stdout);
    let (mut streamed, mut called) = (Vec::new(), Vec::new());
    having(&traces[0], "first_token_us", &mut streamed);
    having(&traces[0], "tool_choice", &mut called);
    assert!(!streamed.is_empty() && streamed.len() == called.len(), "{}", traces[0]);
    for call in streamed {
        let (first, took) = (call["first_token_us"].as_u64().expect("µs"), call["took_us"].as_u64().expect("µs"));
        assert!(first > 0 && first < took, "the first token after {first} µs of {took}");
    }
    let cassette = project.read("fixtures/cassettes/mine/one/tool-rag.base.1.yaml");
    for part in ["stream: true", "chunks:", "[DONE]", "include_usage: true"] {
        assert!(cassette.contains(part), "{part} is missing in\n{cassette}");
    }
    drop(simulator);
    let replayed = project.run(&["run", "mine.yaml"]);
    assert_eq!(replayed.code, recorded.code, "{}", replayed.stdout);
    assert_eq!(project.traces(), traces, "times included");
}

#[test]
fn recordings_that_cannot_be_written_are_an_error_before_anything_is_sent() {
    let (project, simulator) = served("fixtures/simulator/try.yaml", |project| project.write("mine.yaml", MINE));
    project.write("fixtures/cassettes/mine", "a file where the folder of the scenario belongs");
    let refused = project.run(&["run", "mine.yaml", "--mode", "record"]);
    refused.expect_code(2);
    for part in ["recordings cannot be written to", "mine", "nothing was sent", "`cassettes` in ragcheck.yaml"] {
        assert!(refused.stderr.contains(part), "{part} is missing in\n{}", refused.stderr);
    }
    assert_eq!(refused.stderr.matches("cannot be written").count(), 1, "{}", refused.stderr);
    assert!(!project.path("reports/.unfinished").exists(), "no run was begun");
    drop(simulator);
}

#[test]
fn variants_are_interleaved_in_an_order_drawn_from_the_seed_and_reported_in_that_of_the_plan() {
    let (project, _simulator) = served("fixtures/simulator/try.yaml", |project| {
        project.edit(
            "fixtures/simulator/try.yaml",
            "median: 400ms, sigma: 0.3, max: 2s",
            "median: 5ms, sigma: 0.1, max: 9ms",
        );
        let cases =
            (1..=6).map(|n| format!("  - {{case: c{n}, ask: How long does the warranty of the Canopy last?, expect: {{answer: {{matches: [a]}}}}}}\n"));
        let variants = "variants: {feedback: {enforcement: feedback}, forced: {enforcement: forced}}\n";
        let head = "scenario: mine\nflow: tool-rag\nknowledge: fernlight\nmodel: {provider: simulator, name: any}\n";
        project.write("mine.yaml", &format!("{head}{variants}cases:\n{}", cases.collect::<String>()));
    });
    // With so many requests only the trials that were begun first are whole.
    let ended = project.run(&["run", "mine.yaml", "--mode", "live", "--jobs", "1", "--seed", "3", "--max-calls", "7"]);
    ended.expect_code(3);
    let plan = project.latest("plan.json");
    let planned: Vec<&str> =
        plan["trials"].as_array().expect("trials").iter().map(|trial| trial["id"].as_str().expect("id")).collect();
    let places = plan["order"].as_array().expect("an order").iter();
    let order: Vec<&str> = places.map(|place| planned[place.as_u64().expect("a place") as usize]).collect();
    let case = |trial: &str| trial.split("/tool-rag").next().map(str::to_owned);
    assert!(order.chunks(2).all(|block| case(block[0]) == case(block[1])), "{order:?}");
    let traces = project.traces();
    let trial = |trace: &Value| trace["trial"].as_str().expect("a trial").to_owned();
    assert_eq!(traces.iter().map(trial).collect::<Vec<_>>(), planned, "reported in the order of the plan");
    let whole: std::collections::BTreeSet<String> =
        traces.iter().filter(|trace| trace["end"] == "completed").map(trial).collect();
    let first: std::collections::BTreeSet<String> = order[..whole.len()].iter().map(ToString::to_string).collect();
    assert!(!whole.is_empty() && whole == first, "{whole:?} of {order:?}");
    assert_ne!(order[0], planned[0], "this seed begins with the other variant");

    project.run(&["run", "mine.yaml", "--seed", "3"]);
    assert!(project.latest("plan.json").get("order").is_none(), "a replay has no order");
}

#[test]
fn what_failed_is_run_again_as_a_part_where_a_document_has_changed() {
    let project = Project::starter();
    project.edit("scenarios/questions.yaml", "80 euros", "90 euros");
    project.run(&["run"]).expect_code(1);
    project.edit("knowledge/bikes/hire.md", "80 euros", "90 euros");
    let again = project.run(&["run", "--failed"]);
    assert!(again.stderr.contains("so this run is a part and not merged with it"), "{}", again.stderr);
    assert!(again.stderr.contains("knowledge.bikes: ") && again.stdout.contains("PART ("), "{}", again.stderr);
}

#[test]
fn a_run_that_may_not_call_any_more_keeps_what_is_finished_and_says_what_is_missing() {
    let (project, _simulator) = recording();
    let arguments: Vec<&str> = LIVE.into_iter().chain(["--max-calls", "5"]).collect();
    let outcome = project.run(&arguments);
    outcome.expect_code(3);
    assert!(outcome.stderr.contains("stopped: --max-calls 5 is used up"), "{}", outcome.stderr);
    let traces = project.traces();
    let stopped = |trace: &&Value| trace["end"].to_string().contains("stopped");
    let missing = traces.iter().filter(stopped).count();
    assert!(traces.len() > 2 && missing == traces.len() - 1, "{missing} of {} are missing", traces.len());
    assert_eq!(traces[0]["end"], "completed");
    assert!(
        outcome.stderr.contains(&format!("{missing} of {} trials are missing", traces.len())),
        "{}",
        outcome.stderr
    );

    assert!(outcome.stdout.contains("PART ("), "{}", outcome.stdout);
    assert!(!project.path("reports/latest").exists(), "an unfinished run is not the latest");

    let again = project.run(&["run", "scenarios/external.yaml", "--mode", "live", "--repeat=2", "--resume"]);
    again.expect_code(2);
    assert!(again.stderr.contains("what is asked for is not what was begun"), "{}", again.stderr);
    assert!(again.stderr.contains("trials: ") && again.stderr.contains("--repeat=1"), "{}", again.stderr);
    let first = traces[0].clone();
    let more: Vec<&str> = LIVE.into_iter().chain(["--resume"]).collect();
    // The plan is the same, what it searches is not.
    let document = project.read(DOCUMENT);
    project.write(DOCUMENT, &format!("{document}\n\nThe Canopy also comes in red.\n"));
    let other = project.run(&more);
    other.expect_code(2);
    assert!(other.stderr.contains("knowledge.fernlight: "), "{}", other.stderr);
    project.write(DOCUMENT, &document);
    let resumed = project.run(&more);
    let traces = project.traces();
    assert!(
        traces.len() == missing + 1 && traces.iter().all(|trace| trace["end"] == "completed"),
        "{}",
        resumed.stderr
    );
    assert_eq!(traces[0], first, "what was finished is taken over as it was");
    assert!(!resumed.stdout.contains("PART ("), "{}", resumed.stdout);
    assert!(project.path("reports/latest").exists());
    let nothing = project.run(&more);
    nothing.expect_code(2);
    assert!(nothing.stderr.contains("there is no unfinished run"), "{}", nothing.stderr);
}

#[test]
fn a_bound_on_requests_finishes_trials_instead_of_being_spread_over_all() {
    let (project, _simulator) = recording();
    let many = ["run", "scenarios/external.yaml", "--mode", "live", "--repeat=3", "--jobs", "32", "--max-calls", "24"];
    let outcome = project.run(&many);
    outcome.expect_code(3);
    let traces = project.traces();
    let finished = traces.iter().filter(|trace| trace["end"] == "completed").count();
    assert!(finished >= 2, "{finished} of {} trials finished\n{}", traces.len(), outcome.stderr);
}

#[test]
fn a_replay_has_no_budget() {
    let outcome = Project::shipped().run(&["run", "--max-calls", "5"]);
    outcome.expect_code(2);
    assert!(outcome.stderr.contains("--mode live"), "{}", outcome.stderr);
}

#[test]
fn a_run_whose_time_is_over_ends_and_leaves_recordings_whole() {
    let (project, _simulator) = served("fixtures/simulator/fernlight.yaml", |_| {});
    let lane = "fixtures/cassettes/external/feed-in-tariff/tool-rag.base.1.yaml";
    let before = project.read(lane);
    let limited = ["run", "scenarios/external.yaml", "--mode", "record", "--repeat=1", "--timeout", "300ms"];
    let outcome = project.run(&limited);
    outcome.expect_code(3);
    assert!(outcome.stderr.contains("--timeout 300ms"), "{}", outcome.stderr);
    assert_eq!(project.read(lane), before);
}

#[cfg(unix)]
#[test]
#[expect(clippy::disallowed_methods, reason = "the run is another process, and is to be met in the middle")]
fn an_interrupted_run_still_writes_its_report() {
    let (project, _simulator) = served("fixtures/simulator/fernlight.yaml", |_| {});
    let mut command = project.command(&LIVE);
    let run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    Outcome::of(Command::new("kill").args(["-INT", &run.id().to_string()])).expect_code(0);
    let output = run.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("stopped: the run was interrupted"), "{told}");
    assert!(project.traces().iter().any(|trace| trace["end"].to_string().contains("stopped")));
}

#[test]
fn a_missing_key_names_its_variable_and_an_environment_file_gives_it() {
    let (project, _simulator) = recording();
    project.edit(
        "ragcheck.yaml",
        "    dialect: openai-chat\n",
        "    dialect: openai-chat\n    key: SIMULATED_MODEL_KEY\n",
    );
    let one: Vec<&str> = LIVE.into_iter().chain(["--only", "feed-in-tariff"]).collect();
    let outcome = project.run(&one);
    outcome.expect_code(3);
    assert!(outcome.stdout.contains("SIMULATED_MODEL_KEY"), "{}", outcome.stdout);

    project.write("keys.env", "# for this test\nexport SIMULATED_MODEL_KEY='not-a-real-key-77'\n");
    let given: Vec<&str> = one.iter().copied().chain(["--env-file", "keys.env"]).collect();
    let outcome = project.run(&given);
    assert!(outcome.stdout.contains("1 trial: 1 PASS"), "{}{}", outcome.stdout, outcome.stderr);

    project.write("keys.env", "A=1\nnot-a-real-key-77\n");
    let outcome = project.run(&given);
    outcome.expect_code(2);
    assert!(outcome.stderr.contains("keys.env, line 2"), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("real-key"), "{}", outcome.stderr);
}

//! When an agent asks: late in a turn, many requests at once, after its reply, and between two trials.

use super::agent::ServiceSettings;
use super::{LANE, Stage, events};
use std::time::Duration;

#[test]
fn an_agent_that_is_late_is_refused_and_awaited_so_that_the_next_trial_is_its_own() {
    let stage = Stage::set();
    let ponders = Duration::from_millis(1500);
    let agent = stage.agent(ServiceSettings { ponders, ..ServiceSettings::default() }, "limits: {turn: 1s}\n");
    let outcome = stage.run(&["--mode", "live"]);
    outcome.expect_code(3);
    assert!(outcome.stdout.contains("gave no reply within 1 s (limits.turn)"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains("next trial"), "{}", outcome.stdout);
    let refused = agent.refused();
    assert!(refused.len() == 1 && refused[0].contains("the turn ran into its time limit"), "{refused:?}");
    for trace in stage.project.traces() {
        assert_eq!(trace["end"] == "completed", trace["case"] != "frost", "{}: {}", trace["case"], trace["end"]);
    }
}

#[test]
fn an_agent_that_hangs_when_it_has_asked_its_model_fails_its_turn_which_counts_as_unanswered() {
    let stage = Stage::set();
    let lingers = Duration::from_millis(1500);
    let _agent = stage.agent(ServiceSettings { lingers, ..ServiceSettings::default() }, "limits: {turn: 1s}\n");
    let outcome = stage.run(&["--mode", "live"]);
    let said = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(said.contains("gave no reply within 1 s (limits.turn)") && !said.contains("ERROR"), "{said}");
    let trials: Vec<_> = stage.project.traces();
    let frost: Vec<_> = trials.iter().filter(|trace| trace["case"] == "frost").collect();
    assert!(!frost.is_empty() && trials.iter().all(|trace| trace["end"] == "completed"), "{said}");
    for trace in frost {
        let ends = events(trace, "turn_ended");
        assert_eq!(ends.last().expect("a turn")["outcome"]["failed"]["kind"], "timeout", "{trace}");
    }
    let rows = stage.project.latest("run.json");
    let unanswered: u64 =
        rows["latency"].as_array().expect("rows").iter().filter_map(|row| row["unanswered"].as_u64()).sum();
    assert!(unanswered > 0, "{}", rows["latency"]);
}

#[test]
fn requests_that_an_agent_sends_at_once_are_recorded_whichever_arrives_first() {
    // On a machine under load the last request arrives long after the first: an answer that is there by then would make
    // them two requests in a row, in the recording and rightly so.
    let mut stage = Stage::answering_after("400ms");
    let ways = ServiceSettings { asks_at_once: 8, ..ServiceSettings::default() };
    let _agent = stage.agent(ways, "");
    let recorded = stage.run(&["--mode", "record", "--repeat=3", "--only", "warranty"]);
    assert!(!recorded.stdout.contains("cassette broken"), "{}{}", recorded.stdout, recorded.stderr);
    let traces = stage.project.traces();
    assert!(traces.len() == 3 && traces.iter().all(|trace| trace["end"] == "completed"), "{traces:?}");
    assert_eq!(events(&traces[0], "model_called").len(), 10, "{}", traces[0]);
    stage.simulator = None;
    for _ in 0..2 {
        let replayed = stage.run(&["--repeat=3", "--only", "warranty"]);
        assert_eq!(replayed.code, recorded.code, "{}{}", replayed.stdout, replayed.stderr);
        assert_eq!(stage.project.traces(), traces);
    }
}

#[test]
fn an_agent_that_asks_after_its_reply_is_refused_and_its_own_trial_is_an_error() {
    for mode in ["live", "record"] {
        let stage = Stage::set();
        let ways = ServiceSettings { asks_after: Some(Duration::from_millis(20)), ..ServiceSettings::default() };
        let agent = stage.agent(ways, "");
        let outcome = stage.run(&["--mode", mode, "--only", "warranty"]);
        outcome.expect_code(3);
        for part in ["went on asking after its reply: 1 request", "let the agent reply when"] {
            assert!(outcome.stdout.contains(part), "{part} is missing in\n{}{}", outcome.stdout, outcome.stderr);
        }
        assert!(agent.refused().iter().any(|why| why.contains("the agent has replied")), "{:?}", agent.refused());
        assert!(!stage.project.path(LANE).exists(), "nothing is recorded of it");
    }
}

#[test]
fn every_trial_of_an_agent_that_asks_after_its_reply_is_an_error_and_not_the_first_alone() {
    let stage = Stage::set();
    let ways = ServiceSettings { asks_after: Some(Duration::from_millis(20)), ..ServiceSettings::default() };
    let _agent = stage.agent(ways, "");
    let outcome = stage.run(&["--mode", "record", "--jobs", "1"]);
    outcome.expect_code(3);
    assert!(outcome.stdout.contains("3 trials: 3 ERROR"), "{}{}", outcome.stdout, outcome.stderr);
}

#[test]
fn what_an_agent_asks_between_two_trials_is_noted_on_the_one_that_follows() {
    let stage = Stage::set();
    let ways = ServiceSettings { asks_on_reset: true, ..ServiceSettings::default() };
    let _agent = stage.agent(ways, "");
    let outcome = stage.run(&["--mode", "live", "--only", "warranty"]);
    let note = stage.project.traces()[0]["notes"][0].to_string();
    assert!(
        note.contains("before this trial, 1 request of the agent came when no trial ran"),
        "{note}{}",
        outcome.stderr
    );
}

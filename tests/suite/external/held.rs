//! Held services of an agent that runs elsewhere: a recording answers its searches, and its model is live.

use super::agent::ServiceSettings;
use super::{Stage, events};
use crate::hold::without_search;
use crate::simulator::Simulator;
use serde_json::{Value, json};

const HOLD: [&str; 5] = ["--mode", "live", "--hold", "search", "--no-history"];

fn changed_prompt() -> ServiceSettings {
    ServiceSettings { prompt: "Help with greenhouses, and be brief.", ..ServiceSettings::default() }
}

/// A recording of the agent, which is gone.
fn recorded() -> Stage {
    let stage = Stage::set();
    let _agent = stage.agent(ServiceSettings::default(), "");
    let recorded = stage.run(&["--mode", "record"]);
    assert!(recorded.stdout.contains("3 trials: 3 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    stage
}

#[test]
fn another_prompt_is_a_miss_in_replay_and_passes_with_a_live_model_and_the_recorded_search() {
    let stage = recorded();
    let _agent = stage.agent(changed_prompt(), "");
    let replayed = stage.run(&["--no-history"]);
    assert!(replayed.stdout.contains("3 trials: 3 ERROR"), "{}{}", replayed.stdout, replayed.stderr);
    without_search(&stage.project, stage.simulator.as_ref().expect("a model"));
    let outcome = stage.run(&[&HOLD[..], &["--on-new", "fail"]].concat());
    assert!(outcome.stdout.contains("3 trials: 3 PASS"), "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stdout.contains("held 2 of 2 calls"), "{}", outcome.stdout);
    let held = &stage.project.latest("run.json")["held"];
    assert_eq!((&held["calls"], &held["held"], &held["new"]), (&json!(2), &json!(2), &json!(0)), "{held}");
    let traces = stage.project.traces();
    let marks = |kind: &str| {
        let attempts = |called: &&Value| called["attempts"].as_array().cloned().unwrap_or_default();
        let found = traces.iter().flat_map(|trace| events(trace, kind)).collect::<Vec<_>>();
        found.iter().flat_map(attempts).map(|attempt| attempt["held"].clone()).collect::<Vec<_>>()
    };
    // Both questions about frost search.
    let searches: Vec<Value> = marks("tool_called").into_iter().filter(|mark| !mark.is_null()).collect();
    assert_eq!(searches, [json!("recorded"), json!("recorded")]);
    assert!(marks("model_called").len() > 6 && marks("model_called").iter().all(Value::is_null));
    assert!(traces.iter().all(|trace| trace["evidence"]["mode"] == "live"));
}

#[test]
fn a_search_with_other_words_is_a_miss_that_names_the_recorded_one_or_is_asked_and_counted() {
    let mut stage = recorded();
    let address = stage.simulator.take().expect("a model").address.clone();
    stage.project.edit("outside.yaml", "night frost forecast", "frost forecast for the night");
    let project = stage.project.read("ragcheck.yaml");
    stage.project.write("ragcheck.yaml", &project.replace(&address, "127.0.0.1:8091"));
    stage.simulator = Some(Simulator::start(&stage.project, "outside.yaml"));
    let _agent = stage.agent(changed_prompt(), "");
    let failed = stage.run(&[&HOLD[..], &["--on-new", "fail"]].concat());
    let words = failed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("3 trials: 1 PASS, 2 ERROR"), "{}{}", failed.stdout, failed.stderr);
    for part in ["cassette miss", "agent/frost", "--on-new live"] {
        assert!(words.contains(part), "{part}: {words}");
    }
    let asked = stage.run(&HOLD);
    assert!(asked.stdout.contains("3 trials: 3 PASS"), "{}{}", asked.stdout, asked.stderr);
    assert!(asked.stdout.contains("held 0 of 2 calls; 2 new, in 2 cases"), "{}", asked.stdout);
    assert_eq!(stage.project.latest("run.json")["held"]["new_in"], json!(["agent/frost", "agent/remembers"]));
}

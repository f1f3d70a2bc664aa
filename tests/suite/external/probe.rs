//! A probe reads what an agent's keyword index holds: recorded runs and replays ask the running agent.

use super::agent::{Index, ServiceSettings};
use super::{Stage, bare, plain};
use serde_json::Value;

/// Criteria of the project that a probe measures, as gates of the scenario; `KEYWORDS` is an expectation.
const PROBE: &str = "probe: {http: 'http://PROBED/keywords?of={{conversation_id}}', at: /index/keywords}
gates:
  - {id: indexed, metric: keyword_coverage, target: '= 100%', kind: point, required: true}
";

fn with_index(index: Index) -> ServiceSettings {
    ServiceSettings { index, ..ServiceSettings::default() }
}

impl Stage {
    /// Starts an agent with that index, and names its address in the probe.
    fn probed(&self, index: Index) -> super::agent::Agent {
        let agent = self.agent(with_index(index), PROBE);
        let scenario = self.project.read("agent.yaml").replace("PROBED", &agent.address.to_string());
        let asked = "      answer: {cites: ['https://weather.example.org/tonight']}\n";
        let keywords = format!("{asked}      keywords: {{indexed: true, include: [frost warning]}}\n");
        self.project.write("agent.yaml", &scenario.replace(asked, &keywords));
        agent
    }

    fn gate(&self) -> Value {
        let run = self.project.latest("run.json");
        let mut gates = run["gates"].as_array().expect("gates").iter();
        gates.find(|gate| gate["id"].as_str().is_some_and(|id| id.ends_with("indexed"))).cloned().expect("the gate")
    }
}

#[test]
fn an_index_that_is_read_by_a_probe_is_judged_as_it_answers_now_in_replay_too() {
    let mut stage = Stage::set();
    let agent = stage.probed(Index::Whole);
    let recorded = stage.run(&["--mode", "record"]);
    assert!(recorded.stdout.contains("3 trials: 3 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    assert_eq!((&stage.gate()["verdict"], &stage.gate()["n"]), (&"PASS".into(), &2.into()), "{}", stage.gate());
    stage.simulator = None;
    let traces = stage.project.traces();
    let replayed = stage.run(&[]);
    assert!(replayed.stdout.contains("3 trials: 3 PASS"), "{}{}", replayed.stdout, replayed.stderr);
    assert_eq!(stage.project.traces(), traces, "the replay writes other traces");
    drop(agent);

    // The recording is the same: only the agent's index has changed.
    for (index, said) in [(Index::Leaky, "not every keyword was found again"), (Index::Misfiled, "not every keyword")] {
        let _agent = stage.probed(index);
        let broken = stage.run(&[]);
        assert_eq!(broken.code, 1, "{index:?}: {}{}", broken.stdout, broken.stderr);
        let gate = stage.gate();
        assert_eq!((&gate["verdict"], &gate["n"]), (&"FAIL".into(), &2.into()), "{gate}");
        assert!(plain(&broken.stdout).contains(said), "{index:?}: {}", broken.stdout);
    }
    for (index, said) in [
        (Index::Down, "answered with HTTP 500"),
        (Index::Page, "`/index/keywords` holds no list of keywords (`probe.at`); the answer begins with: <html>"),
    ] {
        let _agent = stage.probed(index);
        let unread = stage.run(&[]);
        assert_eq!(unread.code, 3, "{index:?}: {}{}", unread.stdout, unread.stderr);
        assert!(plain(&unread.stdout).contains(said), "{index:?}: {}", unread.stdout);
        assert!(unread.stdout.contains("3 trials: 1 PASS, 2 ERROR"), "{}", unread.stdout);
    }
}

#[test]
fn an_index_that_is_written_behind_the_reply_is_read_at_the_end_of_the_trial() {
    let stage = Stage::set();
    // Three cases decide no criterion of the project, so also the whole index ends with 1.
    for (index, code, verdict, ends) in [
        (Index::Whole, 1, "PASS", "3 trials: 3 PASS"),
        (Index::Leaky, 1, "FAIL", "3 trials: 3 PASS"),
        (Index::Down, 3, "ERROR", "3 trials: 1 PASS, 2 ERROR"),
    ] {
        let agent = stage.agent(with_index(index), &PROBE.replace("at: /index", "after: trial, at: /index"));
        let scenario = stage.project.read("agent.yaml").replace("PROBED", &agent.address.to_string());
        stage.project.write("agent.yaml", &scenario);
        let outcome = stage.run(&["--mode", "live"]);
        assert_eq!(outcome.code, code, "{index:?}: {}{}", outcome.stdout, outcome.stderr);
        assert_eq!(stage.gate()["verdict"], verdict, "{}", stage.gate());
        assert!(outcome.stdout.contains(ends), "{index:?}: {}", outcome.stdout);
    }
}

#[test]
fn the_index_of_a_declared_service_comes_from_its_recording_alone() {
    let mut stage = Stage::set();
    let start = |stage: &Stage, index: Index| {
        let probe =
            PROBE.replace("http: 'http://PROBED/keywords?of={{conversation_id}}'", "http: /keywords, service: store");
        let agent = stage.agent(with_index(index), &format!("{probe}services: {{store: {{http: 'http://PROBED'}}}}\n"));
        let scenario = stage.project.read("agent.yaml").replace("PROBED", &agent.address.to_string());
        stage.project.write("agent.yaml", &scenario);
        agent
    };
    let agent = start(&stage, Index::Whole);
    let recorded = stage.run(&["--mode", "record"]);
    assert!(recorded.stdout.contains("3 trials: 3 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    let (gate, traces) = (stage.gate(), stage.project.traces());
    assert_eq!((&gate["verdict"], &gate["n"]), (&"PASS".into(), &2.into()), "{gate}");
    drop(agent);
    stage.simulator = None;
    // The store is another one now: a replay asks nobody.
    let _agent = start(&stage, Index::Down);
    let replayed = stage.run(&[]);
    assert!(replayed.stdout.contains("3 trials: 3 PASS"), "{}{}", replayed.stdout, replayed.stderr);
    assert_eq!(bare(stage.project.traces()), bare(traces));
}

#[test]
fn a_probe_that_could_read_nothing_is_a_mistake_of_the_scenario() {
    let stage = Stage::set();
    for (probe, said) in [
        ("probe: {http: 'http://127.0.0.1:{{port}}/keywords'}\n", "`{{port}}` is the port of a process"),
        ("probe: {http: 'http://127.0.0.1:8100/keywords', at: index.keywords}\n", "not a JSON pointer"),
        ("probe: {http: /keywords, service: vectors}\n", "no HTTP service of this name"),
        (
            "probe: {http: keywords, service: store}\nservices: {store: {http: 'http://127.0.0.1:9'}}\n",
            "not a path at the service",
        ),
    ] {
        let _agent = stage.agent(ServiceSettings::default(), probe);
        let refused = stage.run(&[]);
        assert_eq!(refused.code, 2, "{probe}: {}{}", refused.stdout, refused.stderr);
        assert!(refused.stderr.contains(said), "{probe}: {}", refused.stderr);
    }
}

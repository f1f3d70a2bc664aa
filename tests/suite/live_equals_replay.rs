//! A shipped recording served over HTTP to the live transport gives the trace that its replay gives, timings aside.
//!
//! The server looks up each request by its key among what is left of the trial's cassette, so a request that is not
//! the recorded one, byte for byte where bytes count, is turned away and the traces differ.

use super::project::Project;
use ragcheck::internals::cassette::{self, Cassette, Outcome, Redactor};
use ragcheck::internals::provider::wire::{openai_chat, perplexity_agent};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate, matchers};

/// One repetition of cases of many kinds: retries of every account, a service that is down, conversations side by
/// side, history, other languages.
const SELECTED: [&str; 9] = [
    "external/feed-in-tariff",
    "recovery/search-forgotten-once",
    "recovery/response-forgotten-twice",
    "recovery/model-busy",
    "recovery/outside-recovers",
    "recovery/outside-down",
    "context/outside-follow-up",
    "languages/*",
    "learning/*",
];

/// Serves the exchanges of cassettes, by the seed of the trial that asks.
struct Recordings {
    left: Mutex<BTreeMap<String, Cassette>>,
    strangers: Mutex<Vec<String>>,
}

impl Respond for &'static Recordings {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let trial = request.headers.get("x-ragcheck-seed").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (dialect, path) = match request.url.path() {
            "/v1/chat/completions" => (openai_chat::DIALECT, "/chat/completions"),
            path => (perplexity_agent::DIALECT, path),
        };
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let asked = cassette::Request { profile: dialect.profile, method: "POST", path, body: &body };
        let key = cassette::key(asked, &Redactor::default());
        let mut left = self.left.lock().expect("no panic");
        let pool = left.get_mut(trial).map(|cassette| &mut cassette.exchanges);
        let found = pool.and_then(|pool| Some(pool.remove(pool.iter().position(|exchange| exchange.key == key)?)));
        let Some(Outcome::Response { status, headers, body, .. }) = found.map(|exchange| exchange.outcome) else {
            self.strangers.lock().expect("no panic").push(format!("{trial} {path} {body}"));
            return ResponseTemplate::new(404);
        };
        let template = ResponseTemplate::new(status).set_body_bytes(body.to_vec());
        headers.iter().fold(template, |answer, (name, value)| answer.insert_header(name.as_str(), value.as_str()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_live_trace_of_a_recording_equals_its_replay() {
    let project = Project::shipped();
    let mut arguments = ["run", "--verbose", "--repeat", "1", "--jobs", "16"].map(str::to_owned).to_vec();
    for case in SELECTED {
        arguments.extend(["--only".to_owned(), case.to_owned()]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    project.run(&arguments);
    let replayed = project.traces();
    assert!(replayed.len() > 15, "{} trials", replayed.len());

    let recordings: &'static Recordings = Box::leak(Box::new(Recordings {
        left: Mutex::new(replayed.iter().map(|trace| load(&project, trace)).collect()),
        strangers: Mutex::default(),
    }));
    let server = MockServer::start().await;
    Mock::given(matchers::method("POST")).respond_with(recordings).mount(&server).await;
    let address = server.address().to_string();
    project.write("ragcheck.yaml", &project.read("ragcheck.yaml").replace("127.0.0.1:8091", &address));
    let (project, outcome) = tokio::task::spawn_blocking({
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        move || {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).chain(["--mode", "live"]).collect();
            let outcome = project.run(&arguments);
            (project, outcome)
        }
    })
    .await
    .expect("the live run");

    let strangers = recordings.strangers.lock().expect("no panic").clone();
    assert!(strangers.is_empty(), "requests that no recording holds:\n{}", strangers.join("\n"));
    let live = project.traces();
    assert_eq!(live.len(), replayed.len(), "{}", outcome.stdout);
    for (live, replayed) in live.iter().zip(&replayed) {
        assert_eq!(live["evidence"]["mode"], "live");
        assert_eq!(replayed["evidence"]["mode"], "replay");
        assert_eq!(timeless(live), timeless(replayed), "{}", live["trial"]);
    }
    let left = recordings.left.lock().expect("no panic");
    let unasked: Vec<&String> =
        left.iter().filter(|(_, left)| !left.exchanges.is_empty()).map(|(trial, _)| trial).collect();
    assert!(unasked.is_empty(), "recorded exchanges that the live run did not ask for: {unasked:?}");
    assert!(!outcome.stdout.contains("REPLAYED"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("LIVE"), "{}", outcome.stdout);
}

fn load(project: &Project, trace: &Value) -> (String, Cassette) {
    let trial = trace["trial"].as_str().expect("a trial").to_owned();
    let (scenario, _) = trial.split_once('/').expect("a scenario");
    let file = project.path(&format!("fixtures/cassettes/{trial}.yaml"));
    let blobs = cassette::blobs_dir(Path::new(&project.path("fixtures/cassettes")), scenario);
    let loaded = Cassette::load(&file, &blobs).unwrap_or_else(|why| panic!("{trial}: {why}"));
    // What a simulator is told: the seed, and no name.
    (format!("{:016x}", trace["seed"].as_u64().expect("a seed")), loaded)
}

/// The events by conversation without times, and how the trial ended: conversations that run side by side may
/// interleave in another way.
fn timeless(trace: &Value) -> (BTreeMap<u64, Vec<Value>>, Value) {
    let mut events: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    for event in trace["events"].as_array().expect("events") {
        let mut event = event.clone();
        strip(&mut event);
        events.entry(event["conversation"].as_u64().unwrap_or_default()).or_default().push(event);
    }
    let mut rest = trace.clone();
    strip(&mut rest);
    let rest_of = rest.as_object_mut().expect("a trace");
    for name in ["events", "evidence", "plan", "digest"] {
        rest_of.remove(name);
    }
    (events, rest)
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            entries.retain(|name, _| !name.ends_with("_us"));
            entries.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

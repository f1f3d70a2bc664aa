//! Declared faults for agents that are only observed. The agent is a process of this test binary, which meets every fault
//! well but one, whose name it is given.

use super::Stage;
use super::started::{plain, proxy, run, stage, turns};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const CASE: &str = "  - {case: warranty, ask: How long does the warranty of the Canopy last?, expect: {answer: {matches: \
                    ['[a-z]{3}']}}}\n";
/// Faults after which the agent does not ask again.
const LASTING: [&str; 5] = ["quota", "too-large", "context-length", "refusal", "content-filter"];
const HTTP: &str = "  http: http://127.0.0.1:{{port}}/chat\n  answer: /reply/text\n";
/// Kinds that strike the only request of the agent, which streams, and whose model calls a tool.
const KINDS: [&str; 25] = [
    "rate-limit", "rate-limit-seconds", "rate-limit-ms", "rate-limit-date", "quota", "server-error", "unavailable",
    "overloaded", "too-large", "context-length", "reset", "stall", "delay", "cut-before-token", "cut-after-token",
    "cut-in-arguments", "no-end-marker", "error-in-stream", "no-usage", "no-tool-call", "wrong-tool",
    "malformed-arguments", "length-stop", "content-filter", "refusal",
];

/// What one request came to: the arguments of `final_answer` and whether tokens were reported, or the fault.
type Met = Result<(String, bool), &'static str>;

/// Asks its model by a stream, at most twice, and replies with what it gives `final_answer`. It meets the fault `broken`
/// with an empty reply, as if nothing were wrong.
pub(super) fn agent(port: u16, broken: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("one");
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().pool_max_idle_per_host(0).build().expect("a client");
    let reply = |text: &str| Some(("200 OK", json!({"reply": {"text": text}}).to_string()));
    turns(port, |_, words| {
        let mut last = "";
        for _ in 0..2 {
            let began = Instant::now();
            last = match runtime.block_on(ask(&client, words)) {
                Ok((_, false)) if broken == "no-usage" => broken,
                Ok(_) if broken == "delay" && began.elapsed() > Duration::from_millis(900) => broken,
                Ok((answer, _)) => return reply(&answer),
                Err(fault) => fault,
            };
            if last == broken {
                return reply("");
            }
            if LASTING.contains(&last) {
                break;
            }
        }
        Some(("502 Bad Gateway", json!({"error": format!("the model did not answer: {last}")}).to_string()))
    });
}

async fn ask(client: &reqwest::Client, words: &str) -> Met {
    let tool = json!({"type": "function", "function": {"name": "final_answer", "description": "Answers.",
        "parameters": {"type": "object", "properties": {"answer": {}}, "required": ["answer"]}}});
    let body = json!({"model": "greenhouse-1", "messages": [{"role": "user", "content": words}], "tools": [tool],
        "stream": true, "stream_options": {"include_usage": true}});
    let sent = client.post(format!("http://{}/model/v1/chat/completions", proxy())).body(body.to_string());
    let sent = sent.header("content-type", "application/json").header("authorization", "Bearer a-key").send().await;
    let Ok(mut response) = sent else { return Err("reset") };
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let (mut text, mut broken_off) = (Vec::new(), false);
    loop {
        match response.chunk().await {
            Ok(Some(bytes)) => text.extend_from_slice(&bytes),
            Ok(None) => break,
            Err(_) => {
                broken_off = true;
                break;
            }
        }
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    match status {
        200 => read(&text, broken_off),
        429 if text.contains("insufficient_quota") => Err("quota"),
        429 => Err(match headers.get("retry-after").and_then(|wait| wait.to_str().ok()) {
            _ if headers.contains_key("retry-after-ms") => "rate-limit-ms",
            Some(wait) if wait.parse::<u64>().is_ok() => "rate-limit-seconds",
            Some(wait) if wait.ends_with(" GMT") => "rate-limit-date",
            Some(other) => panic!("{other}"),
            None => "rate-limit",
        }),
        500 => Err("server-error"),
        503 => Err("unavailable"),
        529 => Err("overloaded"),
        413 => Err("too-large"),
        400 if text.contains("context_length_exceeded") => Err("context-length"),
        504 => Err("stall"),
        other => panic!("{other} {text}"),
    }
}

fn read(text: &str, broken_off: bool) -> Met {
    let (mut said, mut refused, mut arguments, mut name) = (String::new(), false, String::new(), String::new());
    let (mut finish, mut usage, mut ended) = (String::new(), false, false);
    for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        if data == "[DONE]" {
            ended = true;
            continue;
        }
        let chunk: Value = serde_json::from_str(data).expect("an event");
        if !chunk["error"].is_null() {
            return Err("error-in-stream");
        }
        usage |= chunk["usage"].is_object();
        let delta = &chunk["choices"][0]["delta"];
        said.push_str(delta["content"].as_str().unwrap_or_default());
        refused |= delta["refusal"].is_string();
        let call = &delta["tool_calls"][0]["function"];
        name.push_str(call["name"].as_str().unwrap_or_default());
        arguments.push_str(call["arguments"].as_str().unwrap_or_default());
        finish.push_str(chunk["choices"][0]["finish_reason"].as_str().unwrap_or_default());
    }
    if broken_off {
        return Err(match () {
            () if text.is_empty() => "reset",
            () if !arguments.is_empty() => "cut-in-arguments",
            () if said.is_empty() => "cut-before-token",
            () => "cut-after-token",
        });
    }
    let answer = serde_json::from_str::<Value>(&arguments).ok();
    match finish.as_str() {
        _ if !ended => Err("no-end-marker"),
        "length" => Err("length-stop"),
        "content_filter" => Err("content-filter"),
        _ if refused => Err("refusal"),
        "stop" => Err("no-tool-call"),
        _ if name != "final_answer" => Err("wrong-tool"),
        _ => match answer {
            Some(answer) => Ok((answer["answer"].as_str().unwrap_or_default().to_owned(), usage)),
            None => Err("malformed-arguments"),
        },
    }
}

/// A recording of the agent, whose simulator is gone.
fn recorded() -> Stage {
    let mut stage = stage("faulty none", HTTP);
    plain(&stage, CASE);
    stage.project.edit(
        "agent.yaml",
        "cases:",
        "roles: {respond: final_answer}\nlimits: {request: 1s, turn: 20s}\ncases:",
    );
    let recorded = run(&stage, &["--mode", "record"]);
    assert!(recorded.stdout.contains("1 trial: 1 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    stage.simulator = None;
    stage
}

/// The cells of an agent that is broken in that way: fault, place, verdict.
fn cells(stage: &Stage, broken: &str) -> Vec<(String, String, String)> {
    let scenario = stage.project.read("agent.yaml");
    stage.project.write("agent.yaml", &scenario.replace("faulty none", &format!("faulty {broken}")));
    let outcome = stage.project.run(&["faults", "agent.yaml", "--format", "json"]);
    stage.project.write("agent.yaml", &scenario);
    let read: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{}", outcome.stderr));
    let cells = read["cells"].as_array().expect("cells").iter();
    let text = |cell: &Value, member: &str| cell[member].as_str().expect("a text").to_owned();
    let cells: Vec<_> = cells.map(|cell| (text(cell, "fault"), text(cell, "place"), text(cell, "verdict"))).collect();
    let wrong = cells.iter().any(|(.., verdict)| verdict == "wrong");
    assert_eq!(outcome.code, i32::from(wrong), "{}", outcome.stderr);
    cells
}

fn fails_its_own_cell_and_no_other(stage: &Stage, broken: &str) {
    let cells = cells(stage, broken);
    assert!(cells.iter().any(|(fault, ..)| fault == broken), "{broken} is in no cell");
    for (fault, place, verdict) in &cells {
        assert_eq!(verdict == "wrong", fault == broken, "{broken}: {fault} at {place} is {verdict}");
    }
}

#[test]
fn an_agent_that_retries_once_recovers_from_what_passes_and_ends_the_rest_with_a_clear_error() {
    let cells = cells(&recorded(), "none");
    let found: BTreeSet<&str> = cells.iter().map(|(fault, ..)| fault.as_str()).collect();
    assert_eq!(found, BTreeSet::from(KINDS));
    for (fault, place, verdict) in &cells {
        let lasting = LASTING.contains(&fault.as_str()) || place.contains("and later");
        let expected = if lasting { "clear_error" } else { "recovered" };
        assert_eq!(verdict, expected, "{fault} at {place}");
    }
}

#[test]
fn an_agent_that_is_broken_for_one_fault_fails_the_cell_of_that_fault_and_no_other() {
    let stage = recorded();
    for broken in ["rate-limit-seconds", "cut-in-arguments", "length-stop"] {
        fails_its_own_cell_and_no_other(&stage, broken);
    }
}

#[test]
#[ignore = "25 agents: .ci/slow"]
fn each_of_25_broken_agents_fails_its_own_cell_and_no_other() {
    let stage = recorded();
    for broken in KINDS {
        fails_its_own_cell_and_no_other(&stage, broken);
    }
}

#[test]
fn a_fault_of_a_scenario_strikes_a_recorded_agent_live_and_in_replay_and_is_in_no_recording() {
    let mut stage = stage("faulty none", HTTP);
    plain(&stage, CASE);
    let with = |fault: &str| format!("faults: [{{fault: {fault}}}]\nlimits: {{request: 1s, turn: 20s}}\ncases:");
    stage.project.edit("agent.yaml", "cases:", &with("server-error"));
    let note = "declared fault server-error at request 1 to model";
    let recorded = run(&stage, &["--mode", "record"]);
    assert!(recorded.stdout.contains("1 trial: 1 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    let lane = stage.project.read("fixtures/cassettes/agent/warranty/external.base.1.yaml");
    assert!(!lane.contains("declared") && lane.matches("status: ").count() == 1, "{lane}");
    let live = run(&stage, &["--mode", "live", "--no-history"]);
    assert!(live.stdout.contains("1 trial: 1 PASS"), "{}{}", live.stdout, live.stderr);
    assert!(stage.project.traces()[0]["notes"].to_string().contains(note), "{}", stage.project.traces()[0]);
    stage.simulator = None;
    let replayed = run(&stage, &[]);
    assert!(replayed.stdout.contains("1 trial: 1 PASS"), "{}{}", replayed.stdout, replayed.stderr);
    let trace = &stage.project.traces()[0];
    assert!(trace["notes"].to_string().contains(note), "{trace}");
    let attempts = super::events(trace, "model_called").into_iter().filter_map(|called| called["attempts"].as_array());
    assert_eq!(attempts.flatten().map(|one| one["status"].as_u64()).collect::<Vec<_>>(), [Some(500), Some(200)]);

    // Where it never lands, nothing is known of how the agent meets it.
    stage.project.edit("agent.yaml", "{fault: server-error}", "{fault: server-error, call: 7}");
    let missed = run(&stage, &[]);
    assert!(missed.stdout.contains("a declared fault never landed"), "{}{}", missed.stdout, missed.stderr);
    assert!(missed.stdout.contains("1 trial: 1 NOT_MEASURED") && missed.code != 0, "{}", missed.stdout);
}

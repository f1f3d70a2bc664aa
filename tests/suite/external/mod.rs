//! An agent that runs elsewhere: recorded against a simulator, the simulator stopped, replayed to the same bytes.

mod agent;
mod apis;
mod beside;
mod borders;
mod broken_tools;
mod bytes;
#[cfg(unix)]
mod clients;
mod desk;
mod faulty;
mod first_contact;
mod forms;
mod four_systems;
mod held;
mod lost_retry;
mod mcp;
#[cfg(unix)]
mod mcp_servers;
mod own_apis;
mod poisoned;
mod probe;
mod providers;
#[cfg(unix)]
mod python;
mod runner;
mod runner_examples;
mod sessions;
mod shuffled;
mod spans;
mod start;
mod started;
mod structured;
mod timing;
mod vanishing;

pub use desk::plain;

use super::ports;
use super::project::{Outcome, Project};
use super::secrets::walk;
use super::simulator::Simulator;
use agent::{Agent, KEY, ServiceSettings};
use ragcheck::internals::cassette::{self, Cassette};
use ragcheck::internals::trial::proxy::Proxy;
use serde_json::{Value, json};
use std::cell::Cell;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

const LANE: &str = "fixtures/cassettes/agent/warranty/external.base.1.yaml";
const BEHAVIOUR: &str = "name: outside
seed: 3
pace: declared
embeddings: {dimensions: 8, latency: {constant: 5ms}}
tools: {knowledge_base_search: search_docs, perplexity_search: web_search, index_keywords: remember, generate_response: final_answer}
model:
  latency: {constant: 5ms}
  rules:
    - when: {asks: frost}
      sufficient: false
      external_query: night frost forecast
      keywords: [frost warning, cold nights, marrow valley]
    - {when: {asks: forgetful}, habits: {forget_response: {times: 1}}}
search:
  latency: {constant: 9ms}
  topics:
    - when: {asks: '.'}
      answer: Minus five degrees tonight [1].
      results: [{title: Tonight, url: 'https://weather.example.org/tonight', snippet: Minus five.}]
";
const SCENARIO: &str = "scenario: agent
flow: external
model: {provider: simulator, name: greenhouse-1}
search: {provider: simulator-search, name: perplexity/sonar}
target: {http: 'http://AGENT/chat', answer: /reply/text}
reset: {http: 'http://AGENT/reset'}
proxy: PROXY
roles: {knowledge: search_docs, external: web_search, index: remember, respond: final_answer}
cases:
  - case: warranty
    ask: How long does the warranty of the Canopy last?
    expect:
      calls: [{exact: [search_docs, final_answer]}]
      answer: {contains: [60 months], cites: [warranty]}
      sources: {internal: true, external: false}
      within: 10s
  - case: frost
    ask: Is there frost tonight?
    expect:
      calls:
        - in_order: [search_docs, web_search, {tool: remember, outcome: ok}, final_answer]
      answer: {cites: ['https://weather.example.org/tonight']}
      sources: {external: true}
  - case: remembers
    turns:
      - ask: How long does the warranty of the Canopy last?
        expect: {answer: {contains: [60 months]}}
      - ask: And when does the forgetful frost guard switch the heater on?
        expect: {answer: {contains: [frost guard]}, retries: [{account: model, at_least: 1, recovered: true}]}
";

/// The shipped project with a scenario for an agent at `agent`, and a port for its proxy.
struct Stage {
    project: Project,
    simulator: Option<Simulator>,
    proxy: SocketAddr,
    /// The agent that was started last, which runs are told.
    named: Cell<Option<SocketAddr>>,
}

impl Stage {
    fn set() -> Self {
        Self::answering_after("5ms")
    }

    /// With a model that needs this time for each completion.
    fn answering_after(latency: &str) -> Self {
        let project = Project::without_scenarios();
        project.write("outside.yaml", &BEHAVIOUR.replace("constant: 5ms", &format!("constant: {latency}")));
        let simulator = Simulator::start(&project, "outside.yaml");
        let proxy = ports::free_address().parse().expect("an address");
        Self { project, simulator: Some(simulator), proxy, named: Cell::new(None) }
    }

    fn agent(&self, ways: ServiceSettings, more: &str) -> Agent {
        let agent = Agent::start(self.proxy, ways);
        let scenario = SCENARIO
            .replace("AGENT", &agent.address.to_string())
            .replace("PROXY", &self.proxy.to_string())
            .replace("cases:\n", &format!("{more}cases:\n"));
        self.project.write("agent.yaml", &scenario);
        self.named.set(Some(agent.address));
        agent
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = self.project.command(&["run", "agent.yaml"]);
        let named = self.named.get().map(|address| format!("--agent=http://{address}"));
        command.args(named).args(more);
        command
    }

    fn run(&self, more: &[&str]) -> Outcome {
        Outcome::of(&mut self.command(more))
    }

    /// Records, stops the simulator, and replays; both runs must be the same to the byte.
    fn recorded_and_replayed(&mut self) -> Vec<Value> {
        let recorded = self.run(&["--mode", "record"]);
        assert!(recorded.stdout.contains("3 trials: 3 PASS"), "{}{}", recorded.stdout, recorded.stderr);
        let (theirs, traces) = (self.project.report("reports/latest"), self.project.traces());
        self.simulator = None;
        let replayed = self.run(&[]);
        assert_eq!(replayed.code, recorded.code, "{}{}", replayed.stdout, replayed.stderr);
        assert_eq!(self.project.traces(), traces);
        assert!(self.project.report("reports/latest") == theirs, "the replay writes other bytes");
        assert!(!replayed.stderr.contains("not asked for"), "{}", replayed.stderr);
        traces
    }
}

/// The folder that `tests/sdks/install FOLDER` has filled.
fn sdks() -> PathBuf {
    PathBuf::from(std::env::var_os("RAGCHECK_SDKS").expect("RAGCHECK_SDKS names the folder of `tests/sdks/install`"))
}

/// The interpreter in it.
fn sdk_python() -> String {
    sdks().join("python/bin/python").display().to_string()
}

/// Every event of that kind, with its content.
fn events<'t>(trace: &'t Value, kind: &str) -> Vec<&'t Value> {
    trace["events"].as_array().expect("events").iter().filter_map(|event| event["what"].get(kind)).collect()
}

/// Every file below a folder that holds these words.
fn holding(folder: &Path, words: &str, found: &mut Vec<String>) {
    walk(folder, &mut |file| {
        if String::from_utf8_lossy(&fs::read(file).expect("a file")).contains(words) {
            found.push(file.display().to_string());
        }
    });
}

#[test]
fn what_was_recorded_replays_to_the_same_verdicts_and_bytes_without_its_providers() {
    let mut stage = Stage::set();
    let agent = stage.agent(ServiceSettings::default(), "");
    let traces = stage.recorded_and_replayed();
    assert_eq!(agent.resets(), 9, "before each trial, and before the replay of what was recorded");
    assert_eq!(traces[0]["evidence"]["recorded_from"], "simulator");
    assert_eq!(traces[0]["evidence"]["mode"], "replay");
    let searched = &events(&traces[0], "tool_called")[0];
    assert_eq!(searched["tool"], "search_docs");
    assert_eq!(searched["outcome"]["ok"]["search"]["hits"][0]["id"], "warranty#1");
    let outside = events(&traces[1], "tool_called");
    let found = outside.iter().find(|call| call["tool"] == "web_search").expect("a search");
    assert_eq!(found["outcome"]["ok"]["external"]["result"], "web-1");
    assert_eq!(found["attempts"].as_array().map(Vec::len), Some(1));
    assert!(!events(&traces[2], "fed_back").is_empty(), "{}", traces[2]);
    let last = events(&traces[2], "turn_ended");
    assert!(last[1]["took_us"].as_u64().expect("µs") > 0);

    let mut found = Vec::new();
    holding(&stage.project.path(""), KEY, &mut found);
    assert!(found.is_empty(), "the agent's key is in {found:?}");
    let cassette = stage.project.read(LANE);
    assert!(cassette.contains("name: \"search_docs\"") || cassette.contains("$blob"), "{cassette}");
}

/// A lane as that recorder would have written it, with the ending of its files; streams stay as they are.
fn as_recorded_by(recorder: &str, lane: &Path, blobs: &Path) -> (String, &'static str) {
    let cassette = Cassette::load(lane, blobs).expect("a cassette");
    let exchanges: Vec<_> = cassette.exchanges.iter().zip(cassette.requests()).collect();
    let parts = exchanges.iter().map(|(exchange, request)| {
        let cassette::Outcome::Response { status, body, headers, .. } = &exchange.outcome else {
            panic!("no response")
        };
        let host = if exchange.service == "search" { "https://api.perplexity.ai" } else { "https://models.example/v1" };
        let kind = headers.iter().find(|(name, _)| name == "content-type").map_or("application/json", |(_, kind)| kind);
        let (url, body) = (format!("{host}{}", request.path), String::from_utf8_lossy(body).into_owned());
        (url, request.body.to_string(), *status, kind.to_owned(), body)
    });
    match recorder {
        "vcr" => {
            let one = |(url, sent, status, kind, body): (String, String, u16, String, String)| {
                json!({"request": {"method": "POST", "uri": url, "body": sent, "headers": {}},
                    "response": {"status_code": status, "headers": {"Content-Type": [kind]}, "content": body}})
            };
            (json!({"version": 1, "interactions": parts.map(one).collect::<Vec<_>>()}).to_string(), "json")
        }
        "go-vcr" => {
            let one = |(url, sent, status, kind, body): (String, String, u16, String, String)| {
                json!({"request": {"method": "POST", "url": url, "body": sent, "headers": {}},
                    "response": {"code": status, "headers": {"Content-Type": [kind]}, "body": body, "duration": "20ms"}})
            };
            (json!({"version": 2, "interactions": parts.map(one).collect::<Vec<_>>()}).to_string(), "yaml")
        }
        "har" => {
            let one = |(url, sent, status, kind, body): (String, String, u16, String, String)| {
                json!({"time": 20, "request": {"method": "POST", "url": url, "headers": [], "postData": {"text": sent}},
                    "response": {"status": status, "headers": [{"name": "Content-Type", "value": kind}],
                        "content": {"size": body.len(), "mimeType": kind, "text": body}}})
            };
            (json!({"log": {"entries": parts.map(one).collect::<Vec<_>>()}}).to_string(), "har")
        }
        _ => {
            let mut text = "httprr trace v1\n".to_owned();
            for (url, sent, status, kind, body) in parts {
                let (host, path) = url["https://".len()..].split_once('/').expect("a path");
                let request = format!("POST https://{host}/{path} HTTP/1.1\r\nHost: {host}\r\n\r\n{sent}");
                let response = format!(
                    "HTTP/1.1 {status} OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
                    body.len()
                );
                text += &format!("{} {}\n{request}{response}", request.len(), response.len());
            }
            (text, "httprr")
        }
    }
}

#[test]
fn lanes_imported_from_other_recorders_replay_behind_the_agent_and_their_streams_as_streams() {
    let mut stage = Stage::set();
    let _agent = stage.agent(ServiceSettings { stream: true, ..ServiceSettings::default() }, "");
    stage.recorded_and_replayed();
    let recordings = stage.project.path("fixtures/cassettes/agent");
    let cases = ["warranty", "frost", "remembers"];
    let recorders = ["vcr", "har", "go-vcr", "httprr"];
    for (recorder, case) in recorders.into_iter().flat_map(|recorder| cases.map(|case| (recorder, case))) {
        let lane = recordings.join(case).join("external.base.1.yaml");
        let (text, ending) = as_recorded_by(recorder, &lane, &recordings.join("blobs"));
        stage.project.write(&format!("{recorder}/{case}.{ending}"), &text);
    }
    for recorder in recorders {
        fs::remove_dir_all(&recordings).expect("the recordings");
        let import = stage.project.run(&["cassette", "import", recorder, "--scenario", "agent"]);
        import.expect_code(0);
        assert!(import.stderr.contains("headers of requests are left out"), "{}", import.stderr);
        let replayed = stage.run(&[]);
        assert!(replayed.stdout.contains("3 trials: 3 PASS"), "{recorder}: {}{}", replayed.stdout, replayed.stderr);
    }
    // The case of a trace takes such a recording as its lane.
    let turn = json!({"message": "How long does the warranty of the Canopy last?",
        "calls": [{"tool": "search_docs", "arguments": {}, "outcome": "ok", "result": {}}],
        "answer": {"text": "It lasts 60 months."}});
    stage.project.write("prod.json", &json!({"conversations": [{"turns": [turn]}]}).to_string());
    let promote = ["promote", "prod.json", "--case", "promoted", "--scenario", "agent.yaml"];
    stage.project.run(&[&promote[..], &["--recording", "har/warranty.har"]].concat()).expect_code(0);
    let replayed = stage.run(&["--only", "promoted"]);
    assert!(replayed.stdout.contains("1 trial: 1 PASS"), "{}{}", replayed.stdout, replayed.stderr);
}

/// What the proxy answers to a request with these headers, sent while an agent's turn is running.
fn status_of(proxy: SocketAddr, headers: &str) -> String {
    let mut stream = std::net::TcpStream::connect(proxy).expect("the proxy listens");
    let body = "{\"model\":\"m\",\"messages\":[]}";
    let length = body.len();
    let request = format!(
        "POST /model/v1/chat/completions HTTP/1.1\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn no_web_page_is_answered_by_the_proxy() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("one");
    let proxy = runtime.block_on(Proxy::open(SocketAddr::from(([127, 0, 0, 1], 0)))).expect("a proxy");
    let address = proxy.address();
    for page in [
        "Host: 127.0.0.1\r\nOrigin: https://evil.example\r\n",
        "Host: 127.0.0.1\r\nOrigin: null\r\n",
        "Host: evil.example\r\n",
    ] {
        assert_eq!(status_of(address, page), "HTTP/1.1 403 Forbidden", "{page}");
    }
    let program = status_of(address, "Host: localhost\r\n");
    assert_eq!(program, "HTTP/1.1 400 Bad Request", "it is served: no trial is running");
}

#[test]
fn what_traffic_cannot_show_is_not_measured_and_says_why() {
    let stage = Stage::set();
    let _agent = stage.agent(ServiceSettings::default(), "");
    let outcome = stage.run(&["--mode", "live"]);
    assert!(outcome.stdout.contains("LIVE"), "{}{}", outcome.stdout, outcome.stderr);
    let run = stage.project.latest("run.json");
    let row = |id: &str| run["criteria"].as_array().expect("criteria").iter().find(|row| row["id"] == id).expect(id);
    for (id, why) in [("SC-003", "keyword index"), ("SC-006", "without learned keywords")] {
        assert_eq!(row(id)["verdict"], "NOT_MEASURED", "{}", row(id));
        assert!(row(id).to_string().contains(why), "{}", row(id));
    }
    for (id, successes, n) in [("SC-001", 4, 4), ("SC-002", 3, 4), ("SC-008", 1, 1)] {
        assert_eq!((row(id)["successes"].as_u64(), row(id)["n"].as_u64()), (Some(successes), Some(n)), "{}", row(id));
    }
}

#[test]
fn streams_pass_through_with_their_bytes() {
    let mut stage = Stage::set();
    let _agent = stage.agent(ServiceSettings { stream: true, ..ServiceSettings::default() }, "");
    let traces = stage.recorded_and_replayed();
    assert!(events(&traces[0], "model_called").iter().all(|call| call["first_token_us"].is_u64()), "{}", traces[0]);
    let cassette = stage.project.read(LANE);
    assert!(cassette.contains("chunks:") && cassette.contains("[DONE]"), "{cassette}");
}

#[test]
fn calls_side_by_side_tell_one_story() {
    let mut stage = Stage::set();
    let _agent = stage.agent(ServiceSettings { both_at_once: true, ..ServiceSettings::default() }, "");
    let traces = stage.recorded_and_replayed();
    let calls = events(&traces[1], "tool_called");
    assert_eq!(calls.iter().filter(|call| call["tool"] == "web_search").count(), 2, "{}", traces[1]);
}

/// Traces without the id of their plan, and their digests: an agent at another address makes another plan.
fn bare(traces: Vec<serde_json::Value>) -> Vec<serde_json::Value> {
    let without = |mut trace: serde_json::Value| {
        trace.as_object_mut().expect("a trace").retain(|member, _| !["plan", "digest"].contains(&member.as_str()));
        trace
    };
    traces.into_iter().map(without).collect()
}

#[test]
fn what_the_agent_mints_is_bound_where_vars_say_and_a_miss_where_they_do_not() {
    let vars = "vars:\n  day: {at: /messages/0/content, match: 'day (\\d+)'}\n  ticket: {at: /messages/0/content, match: 'TK-\\d+'}\n";
    let mut stage = Stage::set();
    let agent = stage.agent(ServiceSettings { mints: Some(71_000), ..ServiceSettings::default() }, vars);
    let traces = stage.recorded_and_replayed();
    let cassette = stage.project.read("fixtures/cassettes/agent/remembers/external.base.1.yaml");
    assert!(cassette.contains("{{day#1}}") && cassette.contains("TK-7100"), "{cassette}");
    drop(agent);

    let _other = stage.agent(ServiceSettings { mints: Some(83_000), ..ServiceSettings::default() }, vars);
    let outcome = stage.run(&[]);
    assert!(outcome.stdout.contains("3 trials: 3 PASS"), "{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(bare(stage.project.traces()), bare(traces), "traces tell the values of the recording");

    let _third = stage.agent(ServiceSettings { mints: Some(90_000), ..ServiceSettings::default() }, "");
    let outcome = stage.run(&["--only", "warranty"]);
    outcome.expect_code(3);
    assert!(outcome.stdout.contains("system prompt changed"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("TK-90000"), "{}", outcome.stdout);
}

#[test]
fn a_recording_that_its_own_replay_does_not_repeat_is_an_error_that_names_vars() {
    let stage = Stage::set();
    let _agent = stage.agent(ServiceSettings { mints: Some(71_000), ..ServiceSettings::default() }, "");
    let outcome = stage.run(&["--mode", "record", "--only", "warranty"]);
    outcome.expect_code(3);
    let said = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["declare them in the scenario, below `vars:`", "- ", "ticket: {at: '/messages/0/content', match: "] {
        assert!(said.contains(words), "{words}: {}", outcome.stdout);
    }
}

#[test]
fn a_changed_prompt_of_the_agents_is_an_explained_miss() {
    let mut stage = Stage::set();
    let agent = stage.agent(ServiceSettings::default(), "");
    stage.recorded_and_replayed();
    drop(agent);
    let changed = stage.agent(ServiceSettings { prompt: "Help with glasshouses.", ..ServiceSettings::default() }, "");
    let outcome = stage.run(&[]);
    outcome.expect_code(3);
    let again = format!("ragcheck cassette refresh --missed --yes agent.yaml --agent http://{}", changed.address);
    for part in ["cassette miss (3 trials)", "system prompt changed", "+ Help with glasshouses.", &again] {
        assert!(outcome.stdout.contains(part), "{part} is missing in\n{}", outcome.stdout);
    }
}

#[test]
fn every_difference_of_every_lane_is_printed_however_many_differ() {
    let mut stage = Stage::set();
    // Cases beside the three that there are; each asks for something of its own.
    let more = |word: &str| {
        let case = |number: usize| {
            format!(
                "  - {{case: more-{number}, ask: How long does guarantee {word}{number} of the Canopy last?, expect: {{within: 10s}}}}\n"
            )
        };
        (0..9).map(case).collect::<String>()
    };
    let agent = stage.agent(ServiceSettings::default(), "");
    let scenario = stage.project.read("agent.yaml");
    stage.project.write("agent.yaml", &(scenario.clone() + &more("old")));
    let recorded = stage.run(&["--mode", "record"]);
    assert!(recorded.stdout.contains("12 trials: "), "{}{}", recorded.stdout, recorded.stderr);
    stage.simulator = None;
    for differing in [2, 9] {
        let mut lanes = more("old");
        for number in 0..differing {
            lanes = lanes.replace(&format!("old{number} "), &format!("new{number} "));
        }
        stage.project.write("agent.yaml", &(scenario.clone() + &lanes));
        let replayed = stage.run(&[]);
        replayed.expect_code(3);
        for number in 0..differing {
            for part in
                [format!("- How long does guarantee old{number} "), format!("+ How long does guarantee new{number} ")]
            {
                assert!(replayed.stdout.contains(&part), "{part} is missing in\n{}", replayed.stdout);
            }
        }
    }
    drop(agent);
}

#[test]
fn an_agent_that_is_down_is_an_error_with_its_address_and_the_base_urls_it_needs() {
    let mut stage = Stage::set();
    let agent = stage.agent(ServiceSettings::default(), "");
    stage.recorded_and_replayed();
    let address = agent.address.to_string();
    drop(agent);
    let outcome = stage.run(&[]);
    outcome.expect_code(3);
    let base = format!("http://{}/model/v1", stage.proxy);
    for part in [address.as_str(), base.as_str(), "agent not reached"] {
        assert!(outcome.stdout.contains(part), "{part} is missing in\n{}", outcome.stdout);
    }
}

#[test]
fn a_scenario_alone_has_no_agent_spoken_to_live_recording_or_in_replay() {
    let mut stage = Stage::set();
    let agent = stage.agent(ServiceSettings::default(), "");
    stage.recorded_and_replayed();
    let (resets, named) = (agent.resets(), format!("--agent http://{}", agent.address));
    for mode in ["replay", "record", "live"] {
        let unnamed = stage.project.run(&["run", "agent.yaml", "--mode", mode]);
        unnamed.expect_code(2);
        assert!(unnamed.stderr.contains(&named), "{}", unnamed.stderr);
        let other = stage.project.run(&["run", "agent.yaml", "--agent=http://127.0.0.1:9", "--mode", mode]);
        other.expect_code(2);
        assert!(other.stderr.contains(&named) && other.stderr.contains("http://127.0.0.1:9/"), "{}", other.stderr);
    }
    let refresh = stage.project.run(&["cassette", "refresh", "--missed", "--yes", "agent.yaml"]);
    refresh.expect_code(2);
    assert!(refresh.stderr.contains(&named), "{}", refresh.stderr);
    let mut by_variable = stage.project.command(&["run", "agent.yaml", "--only", "warranty"]);
    by_variable.env("RAGCHECK_AGENT", format!("http://127.0.0.1:9 http://{}", agent.address));
    assert_eq!(agent.resets(), resets, "nobody was spoken to");
    let told = Outcome::of(&mut by_variable);
    assert!(told.stdout.contains("1 trial: 1 PASS"), "{}{}", told.stdout, told.stderr);
    assert_eq!(agent.resets(), resets + 1);
}

#[test]
fn a_proxy_of_the_environment_is_not_asked_for_the_agent() {
    let mut stage = Stage::set();
    let _agent = stage.agent(ServiceSettings::default(), "");
    stage.recorded_and_replayed();
    let snooping = TcpListener::bind("127.0.0.1:0").expect("a port");
    snooping.set_nonblocking(true).expect("it does not wait");
    let address = format!("http://{}", snooping.local_addr().expect("an address"));
    let mut replay = stage.command(&[]);
    for variable in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        replay.env(variable, &address);
    }
    replay.env_remove("NO_PROXY").env_remove("no_proxy");
    let outcome = Outcome::of(&mut replay);
    assert!(outcome.stdout.contains("3 trials: 3 PASS"), "{}{}", outcome.stdout, outcome.stderr);
    assert!(snooping.accept().is_err(), "the proxy was asked");
}

#[test]
fn a_third_host_that_the_agent_asks_for_is_refused_and_makes_the_trial_an_error_or_a_note() {
    for (host, named, path) in [
        (
            "http://third.example/collect?all",
            "GET http://third.example/collect, which is for third.example",
            "http://third.example/collect",
        ),
        ("https://third.example/", "CONNECT third.example:443, which is for third.example:443", "third.example:443"),
    ] {
        let stage = Stage::set();
        let ways = ServiceSettings { third_host: Some(host), ..ServiceSettings::default() };
        let _agent = stage.agent(ways, "");
        let refused = stage.run(&["--mode", "live", "--only", "warranty"]);
        refused.expect_code(3);
        let note = format!("your agent asked {named}: this proxy leads to the model and the search service alone");
        assert!(desk::plain(&refused.stdout).contains(&note), "{}{}", refused.stdout, refused.stderr);
        stage.project.edit("agent.yaml", "/reply/text}", &format!("/reply/text, may_refuse: ['{path}']}}"));
        let outcome = stage.run(&["--mode", "live", "--only", "warranty"]);
        assert!(outcome.stdout.contains("1 trial: 1 PASS"), "{}{}", outcome.stdout, outcome.stderr);
        assert!(desk::plain(&outcome.stdout).contains(&note), "{}{}", outcome.stdout, outcome.stderr);
        assert_eq!(stage.project.traces()[0]["notes"][0], format!("{note} (`target.may_refuse`)"));
        let run = stage.project.newest();
        let page = stage.project.read(&format!("{run}/index.html"));
        assert!(page.contains("this proxy leads to the model and the search service alone"));
        let shown = stage.project.run(&["show", &format!("{run}/agent/warranty/external.base.1")]);
        assert!(shown.stdout.contains(&note), "{}", shown.stdout);
    }
}

#[test]
fn a_port_that_is_taken_is_said_with_what_to_do() {
    let stage = Stage::set();
    let _agent = stage.agent(ServiceSettings::default(), "");
    let _taken = TcpListener::bind(stage.proxy).expect("the port");
    let outcome = stage.run(&["--mode", "live", "--only", "warranty"]);
    outcome.expect_code(3);
    assert!(outcome.stdout.contains("cannot listen"), "{}", outcome.stdout);
}

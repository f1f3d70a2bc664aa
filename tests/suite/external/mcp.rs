//! Tools of MCP servers: recorded with the trial, and replayed without the server. The server and the agent are processes
//! of this test binary; the agent starts its server as clients do, with few variables.

use super::started::{KIND, complete, exchange, plain, run, stage};
use super::{Stage, events};
use crate::project::Outcome;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

const TOKEN: &str = "tk-0123456789abcdef0123";
const START: &str = "fixtures/cassettes/agent/external.base.start.yaml";
const RUNS_AS: &str = "external::started::runs_as_an_agent";

/// Serves by lines. `folder` gets a file for each start; a file `reason` in it makes a parameter necessary.
#[expect(clippy::print_stdout, reason = "a server by lines talks by its output")]
pub(super) fn server(folder: &str) {
    let folder = Path::new(folder);
    std::fs::write(folder.join(format!("started-{}", std::process::id())), "").expect("a file");
    let say = |message: Value| {
        println!("{message}");
        std::io::stdout().flush().expect("flushed");
    };
    let mut lines = std::io::stdin().lines().map_while(Result::ok).map(|line| {
        let message: Value = serde_json::from_str(&line).expect("JSON");
        message
    });
    let mut is_greeted = false;
    while let Some(asked) = lines.next() {
        let Some(id) = asked.get("id") else { continue };
        let answer = |result: Value| say(json!({"jsonrpc": "2.0", "id": id, "result": result}));
        let text = |words: &str| json!({"content": [{"type": "text", "text": words}]});
        let parameters = &asked["params"];
        let stateless = parameters["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string();
        match asked["method"].as_str().expect("a method") {
            "initialize" => {
                is_greeted = true;
                answer(json!({"protocolVersion": parameters["protocolVersion"], "capabilities": {"tools": {}},
                    "serverInfo": {"name": "tickets", "version": "1"}}));
            }
            _ if !is_greeted && !stateless => {
                say(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32002, "message": "not initialized"}}));
            }
            "server/discover" => answer(json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})),
            "tools/list" => {
                let required =
                    if folder.join("reason").exists() { json!(["order", "reason"]) } else { json!(["order"]) };
                let schema = json!({"type": "object", "required": required,
                    "properties": {"order": {"type": "number"}, "reason": {"type": "string"}}});
                answer(json!({"tools": [{"name": "issue_refund", "inputSchema": schema}]}));
            }
            "tools/call" => match parameters["name"].as_str().expect("a tool") {
                "issue_refund" => {
                    let token = &parameters["_meta"]["progressToken"];
                    say(
                        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}}),
                    );
                    answer(text(&json!({"refunded": parameters["arguments"]["order"]}).to_string()));
                }
                "whose" => {
                    let question = json!({"message": "Whose order?", "requestedSchema": {}});
                    say(json!({"jsonrpc": "2.0", "id": "s-1", "method": "elicitation/create", "params": question}));
                    let said = lines.next().expect("an answer");
                    assert_eq!(said["id"], "s-1");
                    answer(text(&format!("the order of {}", said["result"]["content"]["name"])));
                }
                "fails" => {
                    let mut result = text("no such order");
                    result["isError"] = json!(true);
                    answer(result);
                }
                "long" => answer(text(&"word ".repeat(400_000))),
                "secret" => answer(text(&format!("the token is {}", std::env::var("TICKETS_TOKEN").expect("a token")))),
                "slow" => {
                    let next = lines.next().expect("a cancellation");
                    assert_eq!(next["method"], "notifications/cancelled");
                    std::fs::write(folder.join("cancelled"), next["params"]["requestId"].to_string()).expect("a file");
                }
                _ => std::process::exit(3),
            },
            other => panic!("{other}"),
        }
    }
    std::process::exit(0);
}

/// The client of an agent: `ragcheck mcp-record` before the server.
struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last: u64,
    /// Members of `_meta` in each request.
    meta: Value,
}

impl Client {
    fn start(folder: &str) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut command = Command::new(crate::program::program());
        command.args(["mcp-record", "--name", "tickets", "--"]).arg(program);
        command.args(["--ignored", "--exact", RUNS_AS, "--nocapture"]);
        // As clients start their servers: without the variables of the agent.
        command.env_clear().env(KIND, format!("mcp-server {folder}")).env("TICKETS_TOKEN", TOKEN).env("PORT", "0");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("ragcheck");
        let (input, output) = (child.stdin.take().expect("in"), child.stdout.take().expect("out"));
        // Other ids in each process: they are not compared.
        let last = u64::from(std::process::id()) * 1000;
        Self { child, input, output: BufReader::new(output), last, meta: json!({"progressToken": last}) }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").and_then(|()| self.input.flush()).expect("sent");
    }

    #[expect(clippy::disallowed_methods, reason = "the agent is a foreign process with a time of its own")]
    fn ask(&mut self, method: &str, mut parameters: Value) -> Value {
        self.last += 1;
        parameters["_meta"] = self.meta.clone();
        self.send(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": parameters}));
        if parameters["name"] == "slow" {
            let cancelled = json!({"requestId": self.last});
            // Until the server has the request.
            std::thread::sleep(std::time::Duration::from_millis(700));
            self.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
            return json!({"error": {"message": "given up"}});
        }
        let mut progress = String::new();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("a line") > 0, "the server is gone");
            let heard: Value = serde_json::from_str(&line).expect("JSON alone");
            if heard["method"] == "elicitation/create" {
                let said = json!({"action": "accept", "content": {"name": "Ada"}});
                self.send(&json!({"jsonrpc": "2.0", "id": heard["id"], "result": said}));
            } else if heard["method"] == "notifications/progress" {
                assert_eq!(heard["params"]["progressToken"], self.meta["progressToken"]);
                " (with progress)".clone_into(&mut progress);
            } else if heard["id"] == self.last {
                let mut heard = heard;
                heard["progress"] = json!(progress);
                return heard;
            }
        }
    }
}

/// An agent that calls the tool which the user names, and says what it returned. `more` is the version, the folder, and
/// what is added to the number of an order.
#[expect(clippy::print_stdout, reason = "the process of an agent talks by its output")]
pub(super) fn agent(more: &str) {
    let mut words = more.split(' ');
    let (version, folder) = (words.next().expect("a version"), words.next().expect("a folder"));
    let shift: u32 = words.next().map_or(0, |number| number.parse().expect("a number"));
    let mut client = Client::start(folder);
    if version == "2026-07-28" {
        client.meta["io.modelcontextprotocol/protocolVersion"] = json!(version);
        assert!(client.ask("server/discover", json!({}))["result"].is_object());
    } else {
        let hello =
            json!({"protocolVersion": version, "capabilities": {"elicitation": {}}, "clientInfo": {"name": "x"}});
        assert_eq!(client.ask("initialize", hello)["result"]["protocolVersion"], version);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }
    assert_eq!(client.ask("tools/list", json!({}))["result"]["tools"][0]["name"], "issue_refund");
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    for line in std::io::stdin().lines() {
        let asked: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let words = asked["message"].as_str().expect("words");
        complete(words);
        let (tool, order) = words.split_once(' ').expect("a tool and an order");
        let order = order.parse::<u32>().expect("a number") + shift;
        let heard = client.ask("tools/call", json!({"name": tool, "arguments": {"order": order}}));
        let said = heard["result"]["content"][0]["text"].as_str().or(heard["error"]["message"].as_str());
        let said: String = said.expect("a text").chars().take(2000).collect();
        println!("{}", json!({"answer": format!("{said}{}", heard["progress"].as_str().unwrap_or_default())}));
        std::io::stdout().flush().expect("flushed");
    }
    drop(client.input);
    let _ = client.child.wait();
    std::process::exit(0);
}

fn with_server(version: &str, cases: &[(&str, &str, &str)]) -> (Stage, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let stage = stage(&format!("mcp-agent {version} {}", folder.path().display()), "");
    let case = |(name, ask, expect): &(&str, &str, &str)| {
        format!("  - {{case: {name}, ask: {ask}, expect: {{answer: {{contains: ['{expect}']}}}}}}\n")
    };
    plain(&stage, &cases.iter().map(case).collect::<String>());
    (stage, folder)
}

fn started(folder: &tempfile::TempDir) -> usize {
    let files = std::fs::read_dir(folder.path()).expect("a folder").map_while(Result::ok);
    files.filter(|file| file.file_name().to_string_lossy().starts_with("started-")).count()
}

fn said(outcome: &Outcome) -> String {
    format!("{}{}", outcome.stdout, outcome.stderr).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn tools_of_a_server_are_recorded_and_replayed_without_it_in_a_version_with_and_without_a_handshake() {
    for version in ["2025-11-25", "2026-07-28"] {
        let refunded = "{\"refunded\":7} (with progress)";
        let mut cases = vec![("refund", "issue_refund 7", refunded), ("fails", "fails 1", "no such order")];
        cases.extend([("long", "long 1", "word word"), ("secret", "secret 1", "the token is [redacted:")]);
        if version == "2025-11-25" {
            cases.push(("whose", "whose 3", "the order of \"Ada\""));
        }
        let (mut stage, folder) = with_server(version, &cases);
        let recorded = run(&stage, &["--mode", "record", "--jobs", "2"]);
        let all = format!("{0} trials: {0} PASS", cases.len());
        assert!(recorded.stdout.contains(&all), "{}{}", recorded.stdout, recorded.stderr);
        let (traces, starts) = (stage.project.traces(), started(&folder));
        assert!(starts > 0, "it was asked");
        let start = stage.project.read(START);
        assert!(start.contains("tools/list") && !start.contains("tools/call"), "{start}");
        assert_eq!(start.contains("initialize"), version == "2025-11-25", "{start}");
        let lanes = stage.project.path("fixtures/cassettes/agent");
        let mut leaks = Vec::new();
        super::holding(&lanes, TOKEN, &mut leaks);
        assert!(leaks.is_empty(), "{leaks:?}");
        for trace in &traces {
            let calls = events(trace, "tool_called");
            assert_eq!(calls.len(), 1, "{trace}");
            let failed = !calls[0]["outcome"]["failed"].is_null();
            assert_eq!(failed, trace["case"] == "fails", "{}", calls[0]);
        }
        stage.simulator = None;
        let replayed = run(&stage, &["--jobs", "2"]);
        assert!(replayed.stdout.contains(&all), "{}{}", replayed.stdout, replayed.stderr);
        assert!(!replayed.stderr.contains("not asked for"), "{}", replayed.stderr);
        assert_eq!(stage.project.traces(), traces);
        assert_eq!(started(&folder), starts, "a replay starts no server");
    }
}

#[test]
fn a_call_with_another_argument_is_a_miss_that_names_the_nearest_recording_and_the_argument() {
    let cases = [("refund", "issue_refund 7", "refunded"), ("other", "fails 1", "no such order")];
    let (mut stage, folder) = with_server("2025-06-18", &cases);
    let recorded = run(&stage, &["--mode", "record"]);
    assert!(recorded.stdout.contains("2 trials: 2 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    let starts = started(&folder);
    stage.simulator = None;
    stage.project.edit("agent.yaml", "issue_refund 7", "issue_refund 7");
    let kind = format!("mcp-agent 2025-06-18 {}", folder.path().display());
    stage.project.edit("agent.yaml", &kind, &format!("{kind} 1"));
    let replayed = run(&stage, &[]);
    replayed.expect_code(3);
    let words = said(&replayed);
    assert!(words.contains("2 trials: 2 ERROR"), "{words}");
    for part in [
        "cassette miss (1 trial) POST /tools/call/issue_refund: input changed",
        "nearest: fixtures/cassettes/agent/refund/external.base.1.yaml exchange 1: only the input differs",
        "arguments.order: - 7 + 8",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert_eq!(started(&folder), starts, "{words}");
    let trace = stage.project.read("reports/latest/agent-output.jsonl");
    assert!(!trace.contains("panicked"), "{trace}");
}

#[test]
fn a_changed_catalogue_is_told_with_the_cases_that_use_the_tool_when_recorded_and_by_check() {
    let cases =
        [("one", "issue_refund 7", "refunded"), ("two", "issue_refund 8", "refunded"), ("none", "fails 1", "no")];
    let (stage, folder) = with_server("2025-11-25", &cases);
    let recorded = run(&stage, &["--mode", "record"]);
    assert!(recorded.stdout.contains("3 trials: 3 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    assert!(!recorded.stderr.contains("issue_refund"), "{}", recorded.stderr);
    let check = || stage.project.run(&["check", "agent.yaml", "--warn-recordings-after", "36500d"]);
    assert!(!check().stdout.contains("issue_refund"), "{}", check().stdout);
    std::fs::write(folder.path().join("reason"), "").expect("a file");
    let again = run(&stage, &["--mode", "record"]);
    let told = "note: issue_refund of `tickets` now requires `reason`: 2 cases use it";
    assert!(again.stderr.contains(told), "{}{}", again.stdout, again.stderr);
    let checked = check();
    checked.expect_code(0);
    let told = "issue_refund of `tickets` now requires `reason`: 2 cases use it as before";
    assert!(checked.stdout.contains(told), "{}", checked.stdout);
}

#[test]
fn a_server_that_dies_is_an_outage_and_a_request_that_is_given_up_is_cancelled_at_the_server() {
    let (stage, folder) = with_server("2025-11-25", &[("dies", "dies 1", "x"), ("slow", "slow 1", "given up")]);
    let recorded = run(&stage, &["--mode", "record", "--jobs", "1"]);
    let words = said(&recorded);
    assert!(words.contains("1 PASS, 1 ERROR"), "{words}");
    assert!(words.contains("502"), "{words}");
    assert!(folder.path().join("cancelled").exists(), "{words}");
    assert!(!stage.project.path("fixtures/cassettes/agent/dies/external.base.1.yaml").exists());
}

#[test]
fn outside_of_a_run_nothing_is_started_and_the_reason_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(crate::program::program());
    command.args(["mcp-record", "--name", "tickets", "--"]).arg(program);
    command.args(["--ignored", "--exact", RUNS_AS, "--nocapture"]).env_remove("RAGCHECK_PROXY");
    command.env(KIND, format!("mcp-server {}", folder.path().display())).stdin(Stdio::null());
    let outcome = Outcome::of(&mut command);
    outcome.expect_code(2);
    assert!(outcome.stderr.contains("no run of ragcheck started this agent"), "{}", outcome.stderr);
    assert_eq!((outcome.stdout.as_str(), started(&folder)), ("", 0));
}

/// A server over streamable HTTP: with sessions before 2026-07-28, and answers as streams. It counts requests.
struct HttpServer {
    address: SocketAddr,
    asked: Arc<AtomicU32>,
    sessions: Arc<Mutex<BTreeSet<String>>>,
}

impl HttpServer {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (asked, sessions) = (Arc::new(AtomicU32::new(0)), Arc::default());
        let (count, known) = (Arc::clone(&asked), Arc::clone(&sessions));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let number = count.fetch_add(1, Ordering::SeqCst);
                answer_http(stream, number, &known);
            }
        });
        Self { address, asked, sessions }
    }
}

fn answer_http(mut stream: std::net::TcpStream, number: u32, sessions: &Mutex<BTreeSet<String>>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a clone"));
    let (mut head, mut line) = (String::new(), String::new());
    while reader.read_line(&mut line).unwrap_or(0) > 2 {
        head.push_str(&std::mem::take(&mut line).to_ascii_lowercase());
    }
    let header =
        |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap_or_default();
    let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
    reader.read_exact(&mut body).expect("a body");
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let session = header("mcp-session-id").to_owned();
    let (mut status, mut more, mut kind, mut answer) = ("200 OK", String::new(), "application/json", String::new());
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
    let is_known =
        header("mcp-protocol-version") == "2026-07-28" || sessions.lock().expect("sessions").contains(&session);
    match asked["method"].as_str() {
        Some("initialize") => {
            sessions.lock().expect("sessions").insert(format!("s-{number}"));
            more = format!("Mcp-Session-Id: s-{number}\r\n");
            answer = result(json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {}}))
                .to_string();
        }
        _ if !is_known => (status, answer) = ("404 Not Found", "no such session".to_owned()),
        None => drop(sessions.lock().expect("sessions").remove(&session)),
        Some("tools/list") => answer = result(json!({"tools": [{"name": "look", "inputSchema": {}}]})).to_string(),
        Some("tools/call") => {
            kind = "text/event-stream";
            let found = match asked["params"]["name"].as_str() {
                Some("asks") => json!({"jsonrpc": "2.0", "id": 9, "method": "sampling/createMessage", "params": {}}),
                _ => result(json!({"content": [{"type": "text", "text": "found 3"}]})),
            };
            answer = format!(": first\n\nevent: message\ndata: {found}\n\n");
        }
        Some(_) => status = "202 Accepted",
    }
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{more}");
    // A stream stays open after its answer.
    if kind == "text/event-stream" {
        let _ = stream.write_all(format!("{head}Connection: close\r\n\r\n{answer}").as_bytes());
        let _ = stream.read(&mut [0]);
    } else {
        let _ = stream.write_all(
            format!("{head}Content-Length: {}\r\nConnection: close\r\n\r\n{answer}", answer.len()).as_bytes(),
        );
    }
}

/// An agent that reaches its server over HTTP, by the version `more`.
#[expect(clippy::print_stdout, reason = "the process of an agent talks by its output")]
pub(super) fn agent_over_http(version: &str) {
    let url = std::env::var("TICKETS_URL").expect("the server");
    let meta = match version {
        "2026-07-28" => json!({"io.modelcontextprotocol/protocolVersion": version}),
        _ => json!({}),
    };
    let mut last = u64::from(std::process::id()) * 1000;
    let mut ask = |method: &str, mut parameters: Value| {
        last += 1;
        parameters["_meta"] = meta.clone();
        let body = json!({"jsonrpc": "2.0", "id": last, "method": method, "params": parameters});
        let head = format!(
            "POST \nMcp-Protocol-Version: {version}\r\nContent-Type: application/json\r\nAuthorization: Bearer {TOKEN}\r\n"
        );
        let (_, answer) = exchange(&url, &head, body.to_string().as_bytes());
        let document = answer.rsplit("data: ").next().expect("an event").trim();
        let answer: Value = serde_json::from_str(document).unwrap_or_else(|_| panic!("{answer}"));
        assert_eq!(answer["id"], last);
        answer
    };
    if version != "2026-07-28" {
        ask("initialize", json!({"protocolVersion": version, "capabilities": {}}));
        assert_eq!(exchange(&url, "GET ", b"").0, 405);
    }
    assert_eq!(ask("tools/list", json!({}))["result"]["tools"][0]["name"], "look");
    for line in std::io::stdin().lines() {
        let asked: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let tool = asked["message"].as_str().expect("words");
        complete(tool);
        let heard = ask("tools/call", json!({"name": tool, "arguments": {}}));
        let said = heard["result"]["content"][0]["text"].as_str().or(heard["error"]["message"].as_str());
        println!("{}", json!({"answer": said}));
        std::io::stdout().flush().expect("flushed");
    }
    std::process::exit(0);
}

fn over_http(version: &str, server: &HttpServer, cases: &str) -> Stage {
    let stage = stage(&format!("mcp-http {version}"), "");
    plain(&stage, cases);
    let services = format!("services:\n  tickets: {{mcp: 'http://{}/mcp', env: TICKETS_URL}}\ncases:", server.address);
    stage.project.edit("agent.yaml", "cases:", &services);
    stage
}

#[test]
fn a_server_over_http_is_recorded_in_a_session_of_each_trial_and_replayed_with_the_server_stopped() {
    let case = |name: &str| format!("  - {{case: {name}, ask: look, expect: {{answer: {{contains: [found 3]}}}}}}\n");
    for version in ["2025-11-25", "2026-07-28"] {
        let server = HttpServer::open();
        let mut stage = over_http(version, &server, &["one", "two"].map(case).concat());
        let recorded = run(&stage, &["--mode", "record", "--jobs", "2"]);
        assert!(recorded.stdout.contains("2 trials: 2 PASS"), "{}{}", recorded.stdout, recorded.stderr);
        let sessions = server.sessions.lock().expect("sessions").len();
        assert_eq!(sessions, if version == "2026-07-28" { 0 } else { 3 }, "one of the start, and one of each trial");
        let mut leaks = Vec::new();
        super::holding(&stage.project.path("fixtures/cassettes/agent"), TOKEN, &mut leaks);
        assert!(leaks.is_empty(), "{leaks:?}");
        let (traces, asked) = (stage.project.traces(), server.asked.load(Ordering::SeqCst));
        stage.simulator = None;
        let replayed = run(&stage, &["--jobs", "2"]);
        assert!(replayed.stdout.contains("2 trials: 2 PASS"), "{}{}", replayed.stdout, replayed.stderr);
        assert_eq!((stage.project.traces(), server.asked.load(Ordering::SeqCst)), (traces, asked));
    }
}

#[test]
fn declared_faults_strike_the_requests_to_a_server_over_http_and_are_in_no_recording() {
    let case = "  - {case: one, ask: look, expect: {answer: {matches: ['.']}}}\n";
    for version in ["2025-11-25", "2026-07-28"] {
        let server = HttpServer::open();
        let mut stage = over_http(version, &server, case);
        let recorded = run(&stage, &["--mode", "record"]);
        assert!(recorded.stdout.contains("1 trial: 1 PASS"), "{}{}", recorded.stdout, recorded.stderr);
        stage.simulator = None;
        let asked = server.asked.load(Ordering::SeqCst);
        let scenario = stage.project.read("agent.yaml");
        for (fault, heard) in
            [("server-error", "HTTP 500"), ("rate-limit", "HTTP 429"), ("reset", "ragcheck: "), ("stall", "ragcheck: ")]
        {
            let faults = format!("faults: [{{fault: {fault}, service: tickets}}]\nlimits: {{request: 1s}}\ncases:");
            stage.project.write("agent.yaml", &scenario.replace("cases:", &faults));
            let outcome = run(&stage, &[]);
            let trace = &stage.project.traces()[0];
            let note = format!("declared fault {fault} at request 1 to tickets");
            assert!(trace["notes"].to_string().contains(&note), "{fault}: {trace}{}", outcome.stderr);
            let called = events(trace, "tool_called");
            assert!(called[0]["outcome"]["failed"].is_object(), "{fault} {heard}: {}", called[0]);
        }
        assert_eq!(server.asked.load(Ordering::SeqCst), asked, "a replay asks nobody");
    }
}

#[test]
fn a_server_that_asks_back_within_a_stream_over_http_makes_the_trial_an_error_that_says_so() {
    let server = HttpServer::open();
    let stage = over_http("2025-11-25", &server, "  - {case: asks, ask: asks, expect: {answer: {matches: ['.']}}}\n");
    let recorded = run(&stage, &["--mode", "record"]);
    recorded.expect_code(3);
    let words = said(&recorded);
    assert!(words.contains("its server asked back (`sampling/createMessage`) within the stream"), "{words}");
}

#[test]
#[ignore = "needs python3"]
fn needs_a_bare_interpreter_the_example_replays_its_recordings_without_its_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/mcp-agent");
    crate::project::copy(&example, folder.path());
    std::fs::remove_file(folder.path().join("server.py")).expect("the server");
    let program = Path::new(crate::program::program());
    let own = program.parent().expect("a folder").to_path_buf();
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&others))).expect("a path");
    let outcome = Outcome::of(Command::new(program).arg("run").current_dir(folder.path()).env("PATH", path));
    assert!(outcome.stdout.contains("3 trials: 3 PASS"), "{}{}", outcome.stdout, outcome.stderr);
}

//! An agent that somebody else started: its trials run side by side if it forwards the `traceparent` of its turns.

use super::started::plain;
use super::{SCENARIO, Stage};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How many of its turns forward the header.
#[derive(Clone, Copy, PartialEq)]
enum Forwards {
    All,
    /// The first so many.
    First(usize),
    None,
}

/// An agent with a thread for each turn, which counts the turns at the same time.
struct Threads {
    address: SocketAddr,
    most: Arc<AtomicUsize>,
}

#[derive(Clone)]
struct Turns {
    proxy: SocketAddr,
    forwards: Forwards,
    begun: Arc<AtomicUsize>,
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Threads {
    fn start(proxy: SocketAddr, forwards: Forwards) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (address, most) = (listener.local_addr().expect("an address"), Arc::new(AtomicUsize::new(0)));
        let counter = || Arc::new(AtomicUsize::new(0));
        let turns = Turns { proxy, forwards, begun: counter(), now: counter(), most: Arc::clone(&most) };
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let turns = turns.clone();
                std::thread::spawn(move || turns.answer(stream));
            }
        });
        Self { address, most }
    }
}

impl Turns {
    #[expect(clippy::disallowed_methods, reason = "the agent is a foreign process with a time of its own")]
    fn answer(&self, mut stream: TcpStream) {
        let (traceparent, body) = read(&stream);
        let Some(words) = body["message"].as_str() else {
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
            return;
        };
        self.most.fetch_max(self.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let turn = self.begun.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(250));
        let forwards = match self.forwards {
            Forwards::All => true,
            Forwards::First(number) => turn < number,
            Forwards::None => false,
        };
        let said = ask(self.proxy, words, &traceparent, forwards);
        let reply = json!({"answer": said}).to_string();
        self.now.fetch_sub(1, Ordering::SeqCst);
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            reply.len()
        );
        let _ = stream.write_all(format!("{head}{reply}").as_bytes());
    }
}

/// The `traceparent` and the body of a turn.
fn read(stream: &TcpStream) -> (String, Value) {
    let mut reader = BufReader::new(stream.try_clone().expect("a clone"));
    let (mut line, mut length, mut traceparent) = (String::new(), 0, String::new());
    while reader.read_line(&mut line).unwrap_or(0) > 2 {
        let lower = line.to_ascii_lowercase();
        length = lower.strip_prefix("content-length:").map_or(length, |n| n.trim().parse().unwrap_or(0));
        if let Some(value) = lower.strip_prefix("traceparent:") {
            value.trim().clone_into(&mut traceparent);
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    (traceparent, serde_json::from_slice(&body).unwrap_or_default())
}

fn ask(proxy: SocketAddr, words: &str, traceparent: &str, forwards: bool) -> String {
    let body = json!({"model": "greenhouse-1", "messages": [{"role": "user", "content": words}]}).to_string();
    let header = if forwards { format!("traceparent: {traceparent}\r\n") } else { String::new() };
    let mut stream = TcpStream::connect(proxy).expect("the proxy");
    let head = format!(
        "POST /model/v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n{header}Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").expect("a body").1).unwrap_or_default();
    body.pointer("/choices/0/message/content").and_then(Value::as_str).unwrap_or("nothing").to_owned()
}

const CASES: usize = 9;

/// A scenario with as many cases whose agent is a thread for each turn.
fn stage(forwards: Forwards) -> (Stage, Threads) {
    let stage = Stage::set();
    let agent = Threads::start(stage.proxy, forwards);
    points_to(&stage, &agent);
    let case = |number: usize| {
        format!(
            "  - {{case: c{number}, ask: 'Question {number}: how long?', expect: {{answer: {{matches: ['[a-z]{{3}}']}}}}}}\n"
        )
    };
    plain(&stage, &(0..CASES).map(case).collect::<String>());
    stage.project.edit("agent.yaml", "answer: /reply/text", "answer: /answer");
    (stage, agent)
}

fn points_to(stage: &Stage, agent: &Threads) {
    stage.named.set(Some(agent.address));
    if stage.project.path("agent.yaml").exists() {
        let scenario = stage.project.read("agent.yaml");
        let place = scenario.find("http://127.0.0.1:").expect("an address");
        let end = place + scenario[place..].find("/chat").expect("a path");
        let now = format!("{}http://{}{}", &scenario[..place], agent.address, &scenario[end..]);
        stage.project.write("agent.yaml", &now);
    } else {
        let scenario = SCENARIO.replace("AGENT", &agent.address.to_string());
        // The proxy's address is above the line at which `plain` cuts.
        let proxy = format!("proxy: {}\nreset:", stage.proxy);
        let scenario = scenario.replace("proxy: PROXY\n", "").replacen("reset:", &proxy, 1);
        stage.project.write("agent.yaml", &scenario);
    }
}

#[test]
fn trials_run_side_by_side_once_all_requests_of_the_first_carried_its_trace_id() {
    let (mut stage, agent) = stage(Forwards::All);
    let recorded = stage.run(&["--mode", "record", "--jobs", "4"]);
    assert!(recorded.stdout.contains("9 trials: 9 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    assert!(agent.most.load(Ordering::SeqCst) >= 2, "while recording");
    for number in 0..CASES {
        let lane = stage.project.read(&format!("fixtures/cassettes/agent/c{number}/external.base.1.yaml"));
        let own = format!("Question {number}:");
        assert!(lane.matches("ordinal:").count() == 1 && lane.contains(&own), "a lane holds its own requests: {lane}");
    }
    stage.simulator = None;
    agent.most.store(0, Ordering::SeqCst);
    let traces = stage.project.traces();
    for (jobs, most) in [("4", 2..=4), ("1", 1..=1)] {
        agent.most.store(0, Ordering::SeqCst);
        let replayed = stage.run(&["--jobs", jobs]);
        assert!(replayed.stdout.contains("9 trials: 9 PASS"), "{}{}", replayed.stdout, replayed.stderr);
        let seen = agent.most.load(Ordering::SeqCst);
        assert!(most.contains(&seen), "{seen} with --jobs {jobs}");
        assert_eq!(stage.project.traces(), traces, "the same traces, side by side or not");
    }
}

#[test]
fn an_agent_that_forwards_nothing_or_declares_reset_runs_one_trial_at_a_time() {
    let (stage, agent) = stage(Forwards::None);
    let outcome = stage.run(&["--mode", "record", "--jobs", "4"]);
    assert!(outcome.stdout.contains("9 trials: 9 PASS"), "{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(agent.most.load(Ordering::SeqCst), 1);
    let forwarding = Threads::start(stage.proxy, Forwards::All);
    points_to(&stage, &forwarding);
    let reset = format!("reset: {{http: 'http://{}/reset'}}\ncases:", forwarding.address);
    stage.project.edit("agent.yaml", "cases:", &reset);
    let outcome = stage.run(&["--jobs", "4"]);
    assert!(outcome.stdout.contains("9 trials"), "{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(forwarding.most.load(Ordering::SeqCst), 1, "a reset concerns the whole agent");
}

#[test]
fn a_request_without_a_trace_id_ends_the_trials_under_way_and_the_rest_runs_one_at_a_time() {
    let (mut stage, agent) = stage(Forwards::All);
    let recorded = stage.run(&["--mode", "record", "--jobs", "4"]);
    assert!(recorded.stdout.contains("9 trials: 9 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    stage.simulator = None;
    drop(agent);
    let agent = Threads::start(stage.proxy, Forwards::First(1));
    points_to(&stage, &agent);
    let outcome = stage.run(&["--jobs", "3"]);
    outcome.expect_code(3);
    let said = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("your agent asked POST /model/v1/chat/completions, without the `traceparent` of a trial"),
        "{said}"
    );
    assert!(said.contains("the others of this run run one after another"), "{said}");
    let errors = stage.project.traces().iter().filter(|trace| trace["end"] != "completed").count();
    assert!((1..=3).contains(&errors), "those under way, and no others: {errors}");
    let passed = CASES - errors;
    assert!(said.contains(&format!("9 trials: {passed} PASS, {errors} ERROR")), "{said}");
}

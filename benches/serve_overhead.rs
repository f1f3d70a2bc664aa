//! Our own time in one question to the chat service: the time of an exchange over HTTP with `ragcheck serve`, less the time
//! of its model calls, which a model on this machine answers at once.
//!
//! `cargo bench --bench serve_overhead`: prints p50, p95 and p99 of the whole exchange and of ours, by flow, for one session after
//! another and for eight at once. The budget is 20 ms at p95 for one at a time: a question is stored on disk before it is
//! acknowledged.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a bench prints, and measures the machine's time")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Questions of one measurement.
const QUESTIONS: usize = 300;
/// What a question may cost at p95, one at a time.
const BUDGET: Duration = Duration::from_millis(20);

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the binary in a project, and gives the address that it prints.
fn start(folder: &Path, arguments: &[&str]) -> (Process, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ragcheck"));
    command.args(arguments).current_dir(folder).stderr(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().expect("the binary");
    let mut line = String::new();
    let mut lines = BufReader::new(child.stderr.take().expect("stderr"));
    lines.read_line(&mut line).expect("a line");
    std::thread::spawn(move || lines.read_to_string(&mut String::new()));
    let address = line.split("http://").nth(1).and_then(|rest| rest.split(';').next());
    let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
    (Process(child), address)
}

fn ask(address: &str, body: &Value) -> Value {
    let text = body.to_string();
    let mut stream = TcpStream::connect(address).expect("a connection");
    let head = format!(
        "POST /api/chat/query HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        text.len()
    );
    stream.write_all((head + &text).as_bytes()).expect("is sent");
    let mut raw = String::new();
    stream.read_to_string(&mut raw).expect("an answer");
    let (head, body) = raw.split_once("\r\n\r\n").expect("an answer");
    assert!(head.starts_with("HTTP/1.1 200"), "{raw}");
    serde_json::from_str(body).expect("JSON")
}

/// The q-th quantile, 0 to 1, of sorted times.
fn quantile(times: &[Duration], q: f64) -> Duration {
    let place = (times.len() as f64 * q).ceil() as usize;
    times.get(place.saturating_sub(1)).copied().unwrap_or_default()
}

fn measured(address: &str, tenant: Option<&str>, questions: usize) -> Vec<Duration> {
    let mut body = json!({"query": "What does error E-17 mean, and how many ohms should the valve coil have?"});
    if let Some(tenant) = tenant {
        body["tenant_id"] = json!(tenant);
    }
    let mut times = Vec::with_capacity(questions);
    for _ in 0..questions {
        let began = Instant::now();
        ask(address, &body);
        times.push(began.elapsed());
    }
    times
}

/// Time of the model's and search service's exchanges in each turn of the log, in order of their ends.
fn of_services(log: &str) -> Vec<Duration> {
    let mut open: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    let mut turns = Vec::new();
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let session = line["session"].as_str().unwrap_or_default().to_owned();
        let what = &line["what"];
        let took = what["model_called"]["took_us"].as_u64().unwrap_or_default();
        *open.entry(session.clone()).or_default() += took;
        if !what["turn_ended"].is_null() {
            turns.push(Duration::from_micros(open.remove(&session).unwrap_or_default()));
        }
    }
    turns
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut copy = Command::new("cp");
    copy.arg("-r").args(["ragcheck.yaml", "scenarios", "fixtures"].map(|part| root.join(part))).arg(folder.path());
    assert!(copy.status().is_ok_and(|status| status.success()));
    let behaviour = folder.path().join("fixtures/simulator/fernlight.yaml");
    let text = std::fs::read_to_string(&behaviour).expect("the behaviour").replace("pace: real", "pace: declared");
    std::fs::write(&behaviour, text).expect("the behaviour");
    let (_simulator, address) = start(folder.path(), &["simulate", "fixtures/simulator/fernlight.yaml", "--port", "0"]);
    let project = folder.path().join("ragcheck.yaml");
    let text = std::fs::read_to_string(&project).expect("the project").replace("127.0.0.1:8091", &address);
    std::fs::write(&project, text).expect("the project");
    for (flow, tenant) in [("two-stage", Some("fernlight")), ("tool-rag", None)] {
        let (_service, address) = start(folder.path(), &["serve", "--flow", flow, "--listen", "127.0.0.1:0"]);
        measured(&address, tenant, 20);
        let log = folder.path().join(format!(".ragcheck/serve/{flow}/events.jsonl"));
        let before = of_services(&std::fs::read_to_string(&log).expect("the log")).len();
        let whole = measured(&address, tenant, QUESTIONS);
        let services = of_services(&std::fs::read_to_string(&log).expect("the log")).split_off(before);
        let mut ours: Vec<Duration> =
            whole.iter().zip(&services).map(|(whole, model)| whole.saturating_sub(*model)).collect();
        ours.sort();
        let p95 = quantile(&ours, 0.95);
        println!(
            "{flow}, one at a time: ours p50 {:?}, p95 {p95:?}, p99 {:?} of {QUESTIONS} questions",
            quantile(&ours, 0.5),
            quantile(&ours, 0.99)
        );
        let crowd: Vec<_> = (0..8)
            .map(|_| {
                let address = address.clone();
                std::thread::spawn(move || measured(&address, tenant, QUESTIONS / 8))
            })
            .collect();
        let mut all: Vec<Duration> = crowd.into_iter().flat_map(|thread| thread.join().expect("answers")).collect();
        all.sort();
        println!(
            "{flow}, eight at once: whole p50 {:?}, p95 {:?}, p99 {:?}",
            quantile(&all, 0.5),
            quantile(&all, 0.95),
            quantile(&all, 0.99)
        );
        assert!(p95 <= BUDGET, "{flow}: {p95:?} of our own at p95, {BUDGET:?} are allowed");
    }
}

//! Five kinds of service, each form of outage, for ever and for three requests: never a verdict, never a recording, never
//! a point of the history, and nothing paid twice.

use super::project::{Outcome, Project};
use super::simulator::Simulator;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const KINDS: [&str; 5] = ["embeddings", "managed", "model", "search", "vectors"];
const TOKEN: &str = "simulated-service-account-0451";
const ACCOUNT: &str = "simulated-account-number-0815";
const WARRANTY: &str = "How many months does the warranty of the Sprig controller last from delivery?";

/// A response that every faulty service gives; status 0 closes the connection.
type Form = (u16, &'static str, &'static str);

/// The forms, and whether a service that shows one is asked again often enough to outlast three of it.
const FORMS: [(Form, bool); 10] = [
    ((404, "application/json", "{\"error\": {\"message\": \"none\"}}"), false),
    ((424, "application/json", "{\"error\": \"inference failed\"}"), true),
    ((429, "application/json", "{}"), true),
    ((498, "application/json", "{}"), true),
    ((500, "application/json", "{}"), true),
    ((200, "application/json", "{\"error\": {\"code\": 502, \"message\": \"upstream\"}}"), true),
    ((200, "application/json", ""), false),
    ((200, "text/html", "<html>Please log in</html>"), false),
    ((200, "text/plain", "upstream connect error"), false),
    ((0, "", ""), true),
];

/// What the services do now: the form, how many requests of each kind get it, and how many came.
#[derive(Default)]
struct State {
    form: Option<Form>,
    most: Option<usize>,
    asked: BTreeMap<String, usize>,
}

/// Services below `/KIND` of one address, each the simulator's but for the faults, and a Chroma of one passage.
struct Services {
    address: String,
    state: Arc<Mutex<State>>,
}

fn request(connection: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut read = Vec::new();
    loop {
        let head = read.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = head {
            let text = String::from_utf8_lossy(&read[..end]).into_owned();
            let length = text.to_ascii_lowercase();
            let length =
                length.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.trim().parse().ok());
            let length: usize = length.unwrap_or(0);
            if read.len() >= end + 4 + length {
                return Some((text, read[end + 4..].to_vec()));
            }
        }
        let mut part = [0; 4096];
        match connection.read(&mut part) {
            Ok(count) if count > 0 => read.extend_from_slice(&part[..count]),
            _ => return None,
        }
    }
}

fn answer(status: u16, kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nretry-after-ms: 1\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

/// A Chroma with one collection of one passage.
fn chroma(path: &str) -> Vec<u8> {
    let body = if path.ends_with("/count") {
        json!(1)
    } else if path.ends_with("/query") {
        json!({"ids": [["warranty.md#1"]], "distances": [[0.1]], "metadatas": [[{"title": "Warranty"}]],
            "documents": [["The warranty of the Sprig controller lasts 24 months from delivery."]]})
    } else {
        json!({"id": "c1", "name": "fernlight", "metadata": {"embedding_model": "counted-words"}})
    };
    answer(200, "application/json", &body.to_string())
}

/// The simulator's answer to a request whose path begins with the name of its kind.
fn forwarded(simulator: &str, head: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let head = head.replacen(&format!(" /{kind}/"), " /", 1);
    let mut service = TcpStream::connect(simulator).expect("the simulator");
    let _ = service.write_all(format!("{head}\r\nconnection: close\r\n\r\n").as_bytes());
    let _ = service.write_all(body);
    let mut all = Vec::new();
    let _ = service.read_to_end(&mut all);
    all
}

impl Services {
    fn start(simulator: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        let state: Arc<Mutex<State>> = Arc::default();
        let (shared, simulator) = (Arc::clone(&state), simulator.to_owned());
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let (Ok(mut connection), shared, simulator) = (connection, Arc::clone(&shared), simulator.clone())
                else {
                    continue;
                };
                std::thread::spawn(move || {
                    let _ = connection.set_read_timeout(Some(Duration::from_secs(10)));
                    let Some((head, body)) = request(&mut connection) else { return };
                    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                    let kind = path.split('/').nth(1).unwrap_or_default();
                    let kind = if path.starts_with("/api/v2") { "vectors" } else { kind }.to_owned();
                    let fault = {
                        let mut state = shared.lock().expect("unpoisoned");
                        let number = state.asked.entry(kind.clone()).or_default();
                        *number += 1;
                        let number = *number;
                        let faulty = KINDS.contains(&kind.as_str()) && state.most.is_none_or(|most| number <= most);
                        state.form.filter(|_| faulty)
                    };
                    let bytes = match fault {
                        Some((0, ..)) => return,
                        Some((status, content, body)) => answer(status, content, body),
                        None if kind == "vectors" => chroma(&path),
                        None => forwarded(&simulator, &head, &kind, &body),
                    };
                    let _ = connection.write_all(&bytes);
                });
            }
        });
        Self { address, state }
    }

    fn set(&self, form: Option<Form>, most: Option<usize>) {
        *self.state.lock().expect("unpoisoned") = State { form, most, asked: BTreeMap::new() };
    }

    fn asked(&self, kind: &str) -> usize {
        self.state.lock().expect("unpoisoned").asked.get(kind).copied().unwrap_or(0)
    }
}

/// A project with a scenario for each kind of service, whose one is faulty, and one whose services all work.
fn project(at: &str) -> Project {
    let project = Project::without_scenarios();
    std::fs::remove_dir_all(project.path("scenarios")).expect("removed");
    let providers: String = ["good", "model", "search", "embeddings", "control"]
        .iter()
        .map(|name| {
            format!(
                "  {name}-model: {{dialect: openai-chat, base_url: 'http://{at}/{name}/v1', quirks: {{trial_header: true}}}}\n  \
                 {name}-search: {{dialect: perplexity-agent, base_url: 'http://{at}/{name}', quirks: {{trial_header: true}}}}\n"
            )
        })
        .collect();
    project.write(
        "ragcheck.yaml",
        &format!(
            "scenarios: [scenarios/*.yaml]\ncassettes: cassettes\nknowledge: fixtures/knowledge\nproviders:\n{providers}\
             knowledge_bases:\n  vec: {{server: 'chroma://{at}/fernlight', embeddings: {{provider: good-model, model: counted-words}}}}\n  \
             emb: {{folder: fernlight-vectors, embeddings: {{provider: embeddings-model, model: counted-words}}}}\n\
             managed_retrieval:\n  box: {{base_url: 'http://{at}/managed', kb_id: fernlight-box, token: NUCLIA_TOKEN, \
             api_key: NUCLIA_ACCOUNT, trial_header: true}}\n"
        ),
    );
    let halse = "What does Halse county pay for solar surplus from a small greenhouse roof?";
    let code = "What does error E-17 mean, and how many ohms should the valve coil have?";
    for (name, flow, model, search, knowledge, ask) in [
        ("model", "tool-rag", "model", "good", "knowledge: fernlight", WARRANTY),
        ("search", "tool-rag", "good", "search", "knowledge: fernlight", halse),
        ("managed", "managed-rag", "good", "", "managed_retrieval: box", code),
        ("vectors", "tool-rag", "good", "good", "knowledge: vec", WARRANTY),
        ("embeddings", "tool-rag", "good", "good", "knowledge: emb", WARRANTY),
        ("control", "tool-rag", "control", "good", "knowledge: fernlight", WARRANTY),
    ] {
        let search = if search.is_empty() {
            String::new()
        } else {
            format!("search: {{provider: {search}-search, name: perplexity/sonar}}\n")
        };
        project.write(
            &format!("scenarios/{name}.yaml"),
            &format!(
                "scenario: {name}\nflow: {flow}\n{knowledge}\n{search}model: {{provider: {model}-model, name: fernlight-sim, \
                 temperature: 0.2, max_tokens: 700}}\ncases:\n  - {{case: c, ask: '{ask}', expect: {{answer: {{matches: ['.']}}}}}}\n"
            ),
        );
    }
    project
}

fn record(project: &Project, more: &[&str]) -> Outcome {
    let mut command = project.command(&[&["run", "--mode", "record"], more].concat());
    command.env("RAGCHECK_TRUST", "NUCLIA_TOKEN=127.0.0.1 NUCLIA_ACCOUNT=127.0.0.1");
    Outcome::of(command.env("NUCLIA_TOKEN", TOKEN).env("NUCLIA_ACCOUNT", ACCOUNT))
}

fn verdicts(project: &Project) -> BTreeMap<String, String> {
    let run = project.latest("run.json");
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    run["trials"]
        .as_array()
        .expect("trials")
        .iter()
        .map(|trial| (text(&trial["scenario"]), text(&trial["verdict"])))
        .collect()
}

/// The scenarios that have a recording.
fn recorded(project: &Project) -> BTreeSet<String> {
    let folders = std::fs::read_dir(project.path("cassettes")).into_iter().flatten().flatten();
    let named = folders.filter(|folder| folder.path().join("c").is_dir());
    named.map(|folder| folder.file_name().to_string_lossy().into_owned()).collect()
}

fn clear(project: &Project) {
    for part in ["cassettes", "reports"] {
        let _ = std::fs::remove_dir_all(project.path(part));
    }
    let _ = std::fs::remove_file(project.path("history.jsonl"));
}

#[test]
fn an_outage_of_any_service_is_an_error_or_judged_as_without_and_nothing_is_paid_twice() {
    // A status that is final and one that passes, an error in a body, a page for people, a closed connection.
    expect_errors([0, 2, 5, 7, 9].map(|form| FORMS[form]));
}

#[test]
#[ignore = "every form of outage: .ci/slow"]
fn an_outage_of_any_service_in_any_form_is_an_error_or_judged_as_without_and_nothing_is_paid_twice() {
    expect_errors(FORMS);
}

fn expect_errors(forms: impl IntoIterator<Item = (Form, bool)>) {
    let simulated = Project::shipped();
    simulated.edit("fixtures/simulator/fernlight.yaml", "pace: real", "pace: declared");
    let simulator = Simulator::start(&simulated, "fixtures/simulator/fernlight.yaml");
    let services = Services::start(&simulator.address);
    let project = project(&services.address);
    services.set(None, None);
    record(&project, &[]).expect_code(0);
    let without = verdicts(&project);
    assert_eq!(without.len(), 6);
    for (form, outlasted) in forms {
        clear(&project);
        services.set(Some(form), None);
        let outcome = record(&project, &[]);
        outcome.expect_code(3);
        let found = verdicts(&project);
        for kind in KINDS {
            assert_eq!(found[kind], "ERROR", "{form:?} for ever: {kind}\n{}", outcome.stdout);
        }
        assert_eq!(found["control"], "PASS", "{form:?}");
        assert_eq!(recorded(&project), BTreeSet::from(["control".to_owned()]), "{form:?}");
        assert!(!project.path("history.jsonl").exists(), "{form:?}");

        services.set(None, None);
        record(&project, &["--resume"]).expect_code(0);
        assert_eq!(verdicts(&project), without, "{form:?}, resumed");
        assert_eq!(services.asked("control"), 0, "{form:?}: what was finished is paid twice");

        clear(&project);
        services.set(Some(form), Some(3));
        record(&project, &[]);
        let found = verdicts(&project);
        for (kind, verdict) in &found {
            let as_without = *verdict == without[kind];
            assert!(
                as_without || KINDS.contains(&kind.as_str()) && verdict == "ERROR",
                "{form:?} thrice: {kind} {verdict}"
            );
            assert_eq!(recorded(&project).contains(kind), as_without, "{form:?} thrice: {kind}");
        }
        let outlasts = KINDS.iter().any(|kind| found[*kind] == without[*kind]);
        assert_eq!(outlasts, outlasted, "{form:?} thrice: {found:?}");
    }
}

#[test]
fn a_managed_service_that_refuses_the_key_ends_the_run_before_a_model_is_paid() {
    let simulated = Project::shipped();
    let simulator = Simulator::start(&simulated, "fixtures/simulator/fernlight.yaml");
    let services = Services::start(&simulator.address);
    let project = project(&services.address);
    services.set(Some((401, "application/json", "{\"detail\": \"no\"}")), None);
    let outcome = record(&project, &[]);
    outcome.expect_code(3);
    assert!(verdicts(&project).values().all(|verdict| verdict == "ERROR"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("refuses the key (HTTP 401)"), "{}", outcome.stdout);
    let asked = ["good", "control", "model", "search"].map(|kind| services.asked(kind));
    assert_eq!((asked, services.asked("managed")), ([0; 4], 1));
}

#[test]
fn check_names_every_key_that_is_not_set_or_not_trusted_before_the_first_request() {
    let project = project("127.0.0.1:9");
    let text = project.read("ragcheck.yaml");
    let text = text
        .replace("'http://127.0.0.1:9/model/v1', quirks", "'http://127.0.0.1:9/model/v1', key: NOBODY_SAID, quirks");
    project.write("ragcheck.yaml", &text);
    let mut command = project.command(&["check"]);
    command.env("RAGCHECK_TRUST", "NUCLIA_TOKEN=127.0.0.1 NUCLIA_ACCOUNT=127.0.0.1");
    let outcome = Outcome::of(command.env_remove("NUCLIA_TOKEN").env_remove("NUCLIA_ACCOUNT"));
    outcome.expect_code(0);
    for named in ["NUCLIA_TOKEN", "NUCLIA_ACCOUNT", "--trust NOBODY_SAID=127.0.0.1"] {
        assert!(outcome.stdout.contains(named), "{named}: {}", outcome.stdout);
    }
}

//! Models that are turned off soon: named by `check`, offline, from what their provider announced while recording or from the
//! program's table.

use super::project::{Outcome, Project};
use super::simulator::Simulator;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

fn check(project: &Project, now: &str) -> String {
    let outcome =
        Outcome::of(project.command(&["check"]).env("RAGCHECK_NOW", now).env("OPENAI_API_KEY", "sk-not-used-here-1"));
    outcome.expect_code(0);
    outcome.stdout
}

#[test]
fn a_model_is_named_ninety_days_before_its_end_and_after_it() {
    let project = Project::starter();
    project.edit(
        "scenarios/questions.yaml",
        "{provider: simulator, name: starter-model",
        "{provider: openai, name: gpt-4o-mini",
    );
    let early = check(&project, "2026-06-01T00:00:00Z");
    assert!(!early.contains("turned off"), "{early}");
    let soon = check(&project, "2026-12-01T00:00:00Z");
    for words in [
        "`openai/gpt-4o-mini` is turned off on 2027-01-14, by the table of",
        "scenarios/questions.yaml",
        "name `gpt-6-luna` in `model` and record again",
    ] {
        assert!(soon.contains(words), "{words}: {soon}");
    }
    let late = check(&project, "2027-02-01T00:00:00Z");
    assert!(late.contains("`openai/gpt-4o-mini` was turned off on 2027-01-14"), "{late}");
    project.edit("scenarios/questions.yaml", "gpt-4o-mini", "gpt-6-luna");
    assert!(!check(&project, "2027-02-01T00:00:00Z").contains("turned off"));
}

#[test]
fn what_a_provider_announces_while_recording_is_kept_with_the_recordings_and_wins_over_the_table() {
    let project = Project::starter();
    let simulator = Simulator::start(&project, "simulator/behaviour.yaml");
    let provider = Announcing::before(&simulator.address);
    let settings = project.read("ragcheck.yaml").replace(&simulator.address, &provider.address);
    let settings = settings.replacen("/v1\n", "/v1\n    key: HOSTED_API_KEY\n", 1);
    project.write("ragcheck.yaml", &settings);
    let record = ["run", "--mode", "record", "--only", "deposit", "--variant", "strict", "--no-history"];
    let recorded = Outcome::of(
        project
            .command(&record)
            .env("HOSTED_API_KEY", "hosted-key-0123456789")
            .env("RAGCHECK_TRUST", format!("HOSTED_API_KEY={}", provider.address)),
    );
    assert_eq!(recorded.code, 0, "{}\n{}", recorded.stdout, recorded.stderr);
    let kept = project.read("recordings/model-ends.json");
    assert_eq!(kept, "{\n  \"simulator/starter-model\": {\n    \"shutdown_date\": \"2027-03-31\"\n  }\n}\n");
    // `check` asks nobody.
    drop(simulator);
    let told = check(&project, "2027-02-01T00:00:00Z");
    let words =
        "`simulator/starter-model` is turned off on 2027-03-31, announced by its provider (recordings/model-ends.json)";
    assert!(told.contains(words), "{told}");
    assert!(!check(&project, "2026-12-01T00:00:00Z").contains("turned off"));
    project.write("recordings/model-ends.json", "[");
    assert!(check(&project, "2027-02-01T00:00:00Z").contains("recordings/model-ends.json"));
}

/// A provider in front of the simulator that lists its models, one of them with an end; one request a connection.
struct Announcing {
    address: String,
}

impl Announcing {
    fn before(simulator: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (address, simulator) = (listener.local_addr().expect("an address").to_string(), simulator.to_owned());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let simulator = simulator.clone();
                std::thread::spawn(move || answer(stream, &simulator));
            }
        });
        Self { address }
    }
}

fn answer(mut stream: TcpStream, simulator: &str) {
    let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        if line == "\r\n" {
            break;
        }
        if !lower.starts_with("connection:") {
            head += &line;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the body");
    if head.starts_with("GET /v1/models ") {
        assert!(head.to_ascii_lowercase().contains("authorization: bearer hosted-key"), "{head}");
        let list = serde_json::json!({"object": "list", "data": [
            {"id": "starter-model", "object": "model", "created": 1, "owned_by": "x", "shutdown_date": "2027-03-31"},
            {"id": "another-model", "object": "model", "created": 1, "owned_by": "x", "shutdown_date": "2026-12-24"},
            {"id": "third-model", "object": "model", "created": 1, "owned_by": "x", "shutdown_date": null},
        ]});
        let list = list.to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length";
        write!(stream, "{head}: {}\r\n\r\n{list}", list.len()).expect("written");
        return;
    }
    let mut upstream = TcpStream::connect(simulator).expect("the simulator");
    write!(upstream, "{head}connection: close\r\n\r\n").expect("sent");
    upstream.write_all(&body).expect("sent");
    std::io::copy(&mut upstream, &mut stream).expect("answered");
}

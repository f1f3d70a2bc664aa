//! An outage is no failure of the agent: it is an error of the run, told once, and nothing good is lost by it.

use super::project::Project;
use super::simulator::{Simulator, recording};
use std::io::{Read, Write};
use std::net::TcpListener;

const LANE: &str = "fixtures/cassettes/external/feed-in-tariff/tool-rag.base.1.yaml";
const ONE: [&str; 6] = ["run", "scenarios/external.yaml", "--only", "feed-in-tariff", "--repeat=2", "--mode"];

/// A server that gives every request this answer, for as long as the test runs.
fn answering(status: u16, content: &'static str, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { continue };
            let mut request = Vec::new();
            let whole = |request: &[u8]| {
                let text = String::from_utf8_lossy(request).to_ascii_lowercase();
                let (head, body) = text.split_once("\r\n\r\n")?;
                let length: usize = head.split("content-length: ").nth(1)?.lines().next()?.trim().parse().ok()?;
                (body.len() >= length).then_some(())
            };
            while whole(&request).is_none() {
                let mut part = [0; 4096];
                match connection.read(&mut part) {
                    Ok(read) if read > 0 => request.extend_from_slice(&part[..read]),
                    _ => break,
                }
            }
            let length = body.len();
            let head = format!("HTTP/1.1 {status} X\r\ncontent-type: {content}\r\nx-should-retry: false\r\n");
            let _ = write!(connection, "{head}content-length: {length}\r\nconnection: close\r\n\r\n{body}");
        }
    });
    address
}

/// The shipped project, with all its services at that address.
fn at(address: &str) -> Project {
    let project = Project::shipped();
    project.write("ragcheck.yaml", &project.read("ragcheck.yaml").replace("127.0.0.1:8091", address));
    project
}

#[test]
fn what_ended_the_turn_from_outside_is_an_error_told_once_and_adds_no_point_to_the_history() {
    for (status, content, body, told) in [
        (401, "application/json", "{\"error\": {\"message\": \"no such key\"}}", "authentication failed (HTTP 401)"),
        (404, "application/json", "{\"error\": {\"message\": \"no such model\"}}", "not found (HTTP 404)"),
        (200, "text/html", "<html>Please log in</html>", "a page for people instead of an answer (HTTP 200)"),
        (503, "application/json", "{}", "the service is overloaded (HTTP 503)"),
    ] {
        let address = answering(status, content, body);
        let project = at(&address);
        let outcome = project.run(&[&ONE[..], &["live"]].concat());
        outcome.expect_code(3);
        let told = format!("{told} from {address}");
        assert_eq!(outcome.stdout.matches(&told).count(), 1, "{told}\n{}", outcome.stdout);
        assert!(outcome.stdout.contains("(2 trials)"), "{}", outcome.stdout);
        assert!(outcome.stdout.contains("stays planned"), "{}", outcome.stdout);
        assert!(!project.path("history.jsonl").exists(), "an outage has no point in the history");
    }
}

#[test]
fn a_request_that_is_refused_for_its_content_counts_against_the_agent() {
    let body = "{\"error\": {\"message\": \"tools[0] is not valid\"}}";
    let project = at(&answering(400, "application/json", body));
    let outcome = project.run(&[&ONE[..], &["live"]].concat());
    assert_ne!(outcome.code, 0, "{}", outcome.stdout);
    assert!(!outcome.stdout.contains("provider error"), "{}", outcome.stdout);
    assert!(project.traces().iter().all(|trace| trace["end"] == "completed"));
}

#[test]
fn an_outage_replaces_no_recording() {
    let project = at(&answering(429, "application/json", "{\"error\": {\"message\": \"slower\"}}"));
    let before = project.read(LANE);
    let outcome = project.run(&[&ONE[..], &["record"]].concat());
    outcome.expect_code(3);
    assert!(outcome.stdout.contains("too many requests (HTTP 429)"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("an earlier recording is as it was"), "{}", outcome.stdout);
    assert_eq!(project.read(LANE), before);
}

#[test]
fn a_fault_that_the_simulator_declares_says_so_and_is_judged_as_the_agents_work() {
    let (project, simulator): (Project, Simulator) = recording();
    let faulty = ["run", "scenarios/recovery.yaml", "--only", "model-error", "--repeat=1", "--mode", "record"];
    let recorded = project.run(&faulty);
    drop(simulator);
    let traces = project.traces();
    assert_eq!(traces[0]["end"], "completed", "{}{}", recorded.stdout, recorded.stderr);
    assert!(traces[0].to_string().contains("\"declared_fault\":true"), "{}", traces[0]);
    let lane = "fixtures/cassettes/recovery/model-error/tool-rag.base.1.yaml";
    assert!(project.read(lane).contains("x-ragcheck-declared-fault"), "the recording keeps it");
}

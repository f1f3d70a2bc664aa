//! An agent that no longer repeats a request that failed when it was recorded: its provider is not asked in a replay, so
//! nothing is down.

use super::Stage;
use super::started::{plain, run, stage};
use crate::project::Outcome;
use crate::scripted_model;
use serde_json::json;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener};

/// A provider that answers its first request with this status, and all others with a completion.
fn provider(first: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for (number, mut stream) in listener.incoming().map_while(Result::ok).enumerate() {
            let mut reader = BufReader::new(stream.try_clone().expect("a clone"));
            scripted_model::body(&mut reader).expect("a body");
            let (status, body) = if number == 0 {
                (first, json!({"error": {"message": "try again"}}))
            } else {
                let message = json!({"role": "assistant", "content": "It lasts 60 months."});
                let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
                let usage = json!({"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14});
                (
                    "200 OK",
                    json!({"id": "c1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}),
                )
            };
            let body = body.to_string();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
        }
    });
    address
}

fn said(outcome: &Outcome) -> String {
    outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An agent of this kind whose provider fails at first.
fn failing_at_first(kind: &str, first: &'static str) -> Stage {
    let stage = stage(kind, "");
    let own = format!("providers:\n  own: {{dialect: openai-chat, base_url: 'http://{}/v1'}}", provider(first));
    stage.project.edit("ragcheck.yaml", "providers:", &own);
    stage.project.edit("agent.yaml", "model: {provider: simulator,", "model: {provider: own,");
    let expected = "expect: {answer: {contains: [60 months]}}";
    plain(&stage, &format!("  - {{case: warranty, ask: How long does the warranty last?, {expected}}}\n"));
    stage
}

#[test]
fn an_agent_that_lost_its_retry_asks_less_than_recorded_and_no_provider_is_down() {
    for first in ["500 Down", "429 Slow"] {
        let stage = failing_at_first("lines retries", first);
        let recorded = run(&stage, &["--mode", "record"]);
        assert!(recorded.stdout.contains("1 trial: 1 PASS"), "{first}: {}{}", recorded.stdout, recorded.stderr);
        assert!(run(&stage, &[]).stdout.contains("1 trial: 1 PASS"), "{first}");
        stage.project.edit("agent.yaml", "lines retries", "lines gives up");
        let outcome = run(&stage, &[]);
        outcome.expect_code(3);
        let said = said(&outcome);
        for words in [
            "1 recorded completion was not asked for: the agent asks its model less than when it was recorded",
            "does it still repeat a request that failed?",
            "NOT RECORDED",
            "--mode record",
        ] {
            assert!(said.contains(words), "{first}: {words}: {said}");
        }
        for words in ["DOWN", "provider error", "says nothing about the agent"] {
            assert!(!said.contains(words), "{first}: {words}: {said}");
        }
    }
}

#[test]
fn an_agent_that_never_repeated_a_request_is_not_recorded_with_an_outage() {
    let stage = failing_at_first("lines gives up", "500 Down");
    let outcome = run(&stage, &["--mode", "record"]);
    outcome.expect_code(3);
    let said = said(&outcome);
    assert!(said.contains("the service failed (HTTP 500)") && !said.contains("not asked for"), "{said}");
}

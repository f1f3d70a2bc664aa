//! Clients that vanish in the middle leave nothing in the recording of another trial.

use super::started::plain;
use super::{SCENARIO, Stage};
use crate::scripted_model;
use serde_json::{Value, json};
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

const WAITS: Duration = Duration::from_millis(700);

fn request(words: &str) -> (String, String) {
    let body = json!({"model": "greenhouse-1", "messages": [{"role": "user", "content": words}]}).to_string();
    let head = format!(
        "POST /model/v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    (head, body)
}

/// An agent that, asked to vanish, leaves a request without waiting for its answer, begins another whose body ends in
/// the time of the next trial, and closes the connection of its turn. Otherwise it thinks first and asks once.
#[expect(clippy::disallowed_methods, reason = "the agent is a foreign process with a time of its own")]
fn agent(proxy: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let body = read(&stream);
            let words = body["message"].as_str().unwrap_or_default().to_owned();
            if words.contains("vanish") {
                let (head, body) = request("Left behind.");
                let mut left = TcpStream::connect(proxy).expect("the proxy");
                left.write_all(format!("{head}{body}").as_bytes()).expect("sent");
                drop(left);
                let mut slow = TcpStream::connect(proxy).expect("the proxy");
                let (head, body) = request("Still under way.");
                slow.write_all(format!("{head}{}", &body[..20]).as_bytes()).expect("sent");
                let mut cut = slow.try_clone().expect("a clone");
                std::thread::spawn(move || {
                    std::thread::sleep(WAITS / 2);
                    let _ = cut.write_all(&body.as_bytes()[20..]);
                    let _ = cut.read_to_string(&mut String::new());
                });
                let mut half = TcpStream::connect(proxy).expect("the proxy");
                let (head, body) = request("Broken off.");
                half.write_all(format!("{head}{}", &body[..20]).as_bytes()).expect("sent");
                std::thread::sleep(Duration::from_millis(50));
                continue;
            }
            if body.is_null() {
                continue;
            }
            std::thread::sleep(WAITS);
            let (head, body) = request(&words);
            let mut asked = TcpStream::connect(proxy).expect("the proxy");
            asked.write_all(format!("{head}{body}").as_bytes()).expect("sent");
            let mut answer = String::new();
            asked.read_to_string(&mut answer).expect("an answer");
            let reply = json!({"answer": "It is sixty months."}).to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                reply.len()
            );
            let _ = stream.write_all(format!("{head}{reply}").as_bytes());
        }
    });
    address
}

fn read(stream: &TcpStream) -> Value {
    let mut reader = BufReader::new(stream.try_clone().expect("a clone"));
    let body = scripted_model::body(&mut reader).expect("a body").unwrap_or_default();
    serde_json::from_slice(&body).unwrap_or_default()
}

#[test]
fn a_client_that_vanishes_in_the_middle_leaves_nothing_in_the_next_trial() {
    let mut stage = Stage::set();
    let address = agent(stage.proxy);
    stage.named.set(Some(address));
    let proxy = format!("proxy: {}\nreset:", stage.proxy);
    let scenario = SCENARIO.replace("AGENT", &address.to_string()).replace("proxy: PROXY\n", "");
    let scenario = scenario.replace("answer: /reply/text", "answer: /answer").replacen("reset:", &proxy, 1);
    stage.project.write("agent.yaml", &scenario);
    let case = |name: &str, ask: &str| {
        format!("  - {{case: {name}, ask: '{ask}', expect: {{answer: {{contains: [sixty]}}}}}}\n")
    };
    let others: Vec<String> = ["first", "second", "third"].map(|name| case(name, &format!("The {name}?"))).into();
    plain(&stage, &format!("{}{}{}{}", others[0], case("gone", "Please vanish."), others[1], others[2]));
    let recorded = stage.run(&["--mode", "record", "--jobs", "1"]);
    assert!(recorded.stdout.contains("4 trials: 3 PASS, 1 ERROR"), "{}{}", recorded.stdout, recorded.stderr);
    assert!(!stage.project.path("fixtures/cassettes/agent/gone").exists());
    for name in ["first", "second", "third"] {
        let lane = stage.project.read(&format!("fixtures/cassettes/agent/{name}/external.base.1.yaml"));
        assert_eq!(lane.matches("ordinal:").count(), 1, "{name} holds its own request alone: {lane}");
        assert!(lane.contains(&format!("The {name}?")), "{lane}");
    }
    for trace in stage.project.traces().iter().filter(|trace| trace["case"] != "gone") {
        assert_eq!(trace["end"], "completed", "{trace}");
        assert_eq!(super::events(trace, "model_called").len(), 1, "{trace}");
    }
    stage.simulator = None;
    let replayed = stage.run(&["--jobs", "1"]);
    assert!(replayed.stdout.contains("4 trials: 3 PASS, 1 ERROR"), "{}{}", replayed.stdout, replayed.stderr);
}

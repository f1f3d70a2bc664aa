//! An agent as many frameworks make it: it reads a form, keeps its conversations in sessions that a cookie names, and sends its
//! texts as `text/html`.

use super::started::{complete, plain, run, stage};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

pub(super) fn agent(port: u16) {
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port");
    let mut turns: Vec<u32> = Vec::new();
    for mut stream in listener.incoming().map_while(Result::ok) {
        let mut reader = BufReader::new(stream.try_clone().expect("a clone"));
        let (mut session, mut length, mut line) = (None, 0, String::new());
        while reader.read_line(&mut line).unwrap_or(0) > 2 {
            let head = std::mem::take(&mut line).trim().to_ascii_lowercase();
            length = head.strip_prefix("content-length: ").map_or(length, |n| n.parse().expect("a length"));
            session = head.strip_prefix("cookie: sid=").map(|n| n.parse().expect("a session")).or(session);
        }
        let mut form = String::new();
        reader.take(length).read_to_string(&mut form).expect("a form");
        let message = form.split('&').find_map(|field| field.strip_prefix("message="));
        let Some(message) = message else { continue };
        let session: usize = session.unwrap_or(turns.len());
        turns.resize(turns.len().max(session + 1), 0);
        turns[session] += 1;
        complete(&message.replace('+', " ").replace("%3F", "?"));
        let body = format!("Turn {} &amp; more", turns[session]);
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=UTF-8\r\nSet-Cookie: sid={session}; Path=/; HttpOnly\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
    }
}

#[test]
fn a_form_is_sent_and_a_conversation_keeps_the_cookies_that_its_agent_sets() {
    let http = "  http: http://127.0.0.1:{{port}}/chat\n  headers: {content-type: application/x-www-form-urlencoded}\n";
    let stage = stage("forms", http);
    let turn = |n: u32| {
        format!(
            "      - {{ask: How long does the warranty last?, expect: {{answer: {{contains: ['Turn {n} & more']}}}}}}\n"
        )
    };
    let case = |name: &str| format!("  - case: {name}\n    turns:\n{}{}", turn(1), turn(2));
    plain(&stage, &(case("one") + &case("two")));
    for mode in ["record", "replay"] {
        let outcome = run(&stage, &["--mode", mode, "--jobs", "1"]);
        assert!(outcome.stdout.contains("2 trials: 2 PASS"), "{mode}: {}{}", outcome.stdout, outcome.stderr);
    }
}

//! What services do beside documents: they give an agent a session by cookie, token or challenge, stream, and open websockets.
//! One server is the model (`/v1`) and the service (`/kb`). The agent is this test binary, as in `started`.

use super::desk::plain;
use super::started::KIND;
use crate::project::{Outcome, Project};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const FOUND: &str = "Damaged batteries can be returned within 37 days.";
const SESSION: &str = "c2Vzc2lvbi0xMjM0NTY3ODkw";
const TOKEN: &str = "gAAAAABtoken1234567890";
/// Time between two pieces of a stream, and how long the agent waits for one.
const PIECE: Duration = Duration::from_millis(250);
const PATIENCE: Duration = Duration::from_millis(700);

/// Sends a request; the head of the response, and a reader of its body.
fn ask(url: &str, method: &str, headers: &str, body: &str) -> (String, BufReader<TcpStream>) {
    let (host, path) = url.trim_start_matches("http://").split_once('/').unwrap_or((url, ""));
    let mut stream = TcpStream::connect(host).expect("a server");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let length = body.len();
    let head = format!(
        "{method} /{path} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let (mut reader, mut head) = (BufReader::new(stream), String::new());
    while reader.read_line(&mut head).unwrap_or(0) > 2 {}
    (head, reader)
}

fn whole(mut reader: BufReader<TcpStream>) -> String {
    let mut body = String::new();
    let _ = reader.read_to_string(&mut body);
    body
}

fn values(head: &str, name: &str) -> Vec<String> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).collect()
}

/// The cookies that a client keeps: no `Secure` one over plain HTTP, none of another domain, none for other paths.
fn jar(head: &str, path: &str) -> String {
    let kept = values(head, "set-cookie").into_iter().filter(|cookie| {
        let lower = cookie.to_ascii_lowercase();
        let of_path =
            lower.split("; path=").nth(1).is_none_or(|own| path.starts_with(own.split(';').next().unwrap_or("")));
        of_path && !lower.contains("secure") && !lower.contains("domain=")
    });
    kept.filter_map(|cookie| Some(cookie.split(';').next()?.to_owned())).collect::<Vec<_>>().join("; ")
}

fn first(head: &str, name: &str) -> String {
    values(head, name).pop().unwrap_or_else(|| format!("no {name}"))
}

/// What the service says, asked in this way.
fn found(way: &str) -> String {
    let kb = std::env::var("KB").expect("the service");
    let at = |path: &str| format!("{kb}{path}");
    match way {
        "cookie" => {
            let (head, _) = ask(&at("/login"), "POST", "", "{}");
            let cookies = jar(&head, &format!("/{}", kb.rsplit('/').next().unwrap_or_default()));
            if !cookies.contains("AuthSession=") || !cookies.contains("lang=") {
                return format!("not logged in: {head}");
            }
            // The session stands in a body, too.
            let session =
                cookies.split("AuthSession=").nth(1).unwrap_or_default().split(';').next().unwrap_or_default();
            let body = json!({"session": session}).to_string();
            whole(ask(&at("/find"), "POST", &format!("Cookie: {cookies}\r\n"), &body).1)
        }
        "session" => {
            let given = whole(ask(&at("/login"), "POST", "", "{}").1);
            let given: Value = serde_json::from_str(&given).unwrap_or_default();
            let session = given["session"].as_str().unwrap_or_default();
            whole(ask(&at("/find"), "POST", &format!("Cookie: AuthSession={session}\r\n"), &given.to_string()).1)
        }
        "token" => {
            let (head, _) = ask(&at("/login"), "POST", "", "{}");
            whole(ask(&at("/find"), "GET", &format!("X-Auth-Token: {}\r\n", first(&head, "x-subject-token")), "").1)
        }
        "challenge" => {
            let (head, _) = ask(&at("/digest"), "GET", "", "");
            let nonce = first(&head, "www-authenticate").split('"').nth(3).unwrap_or_default().to_owned();
            let answer = format!("Authorization: Digest nonce=\"{nonce}\", response=\"{}\"\r\n", std::process::id());
            if nonce.is_empty() { head } else { whole(ask(&at("/digest"), "GET", &answer, "").1) }
        }
        "socket" => {
            let upgrade = "Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
            whole(ask(&at("/socket"), "GET", upgrade, "").1)
        }
        "minted" => {
            // Small numbers would now and then have no letter among their digits.
            let number = format!("{:016x}", u64::from(std::process::id()).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let session = format!("{}-{}-{}", &number[..8], &number[8..12], &number[12..]);
            whole(ask(&at(&format!("/find?q=battery&session={session}")), "GET", "X-Auth-Token: x\r\n", "").1)
        }
        "method" => whole(ask(&at("/find"), "SEARCH", "", "").1),
        "h2c" => whole(ask(&at("/find"), "GET", "Upgrade: h2c\r\nX-Auth-Token: x\r\n", "").1),
        "events" => {
            let (_, reader) = ask(&at("/events"), "GET", "", "");
            reader.lines().map_while(Result::ok).find(|line| line.starts_with("data:")).unwrap_or_default()
        }
        // A part of what it reads is of use, and the service breaks off after it.
        "breaks" => {
            let first = whole(ask(&at("/breaks"), "GET", "", "").1);
            if first.contains("data:") { whole(ask(&at("/find"), "GET", "X-Auth-Token: x\r\n", "").1) } else { first }
        }
        _ => FOUND.to_owned(),
    }
}

/// The model's words about these, streamed: `busy` where a piece takes too long. `leaves` at the number.
fn said(passages: &str, streams: bool, leaves: bool) -> String {
    let base = std::env::var("OPENAI_BASE_URL").expect("the model");
    let messages = json!([{"role": "user", "content": passages}]);
    let body = json!({"model": "m", "stream": streams, "messages": messages}).to_string();
    let kind = "Content-Type: application/json\r\n";
    let (_, reader) = ask(&format!("{base}/chat/completions"), "POST", kind, &body);
    if !streams {
        let body = whole(reader);
        let body =
            body.find('{').and_then(|start| serde_json::from_str::<Value>(&body[start..]).ok()).unwrap_or_default();
        return body["choices"][0]["message"]["content"].as_str().unwrap_or("nothing").to_owned();
    }
    let mut text = String::new();
    for line in reader.lines() {
        let Ok(line) = line else { return "busy".to_owned() };
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let event: Value = serde_json::from_str(data).unwrap_or_default();
        text.push_str(event["choices"][0]["delta"]["content"].as_str().unwrap_or_default());
        if data == "[DONE]" || leaves && text.contains("37") {
            break;
        }
    }
    text
}

#[expect(clippy::print_stdout, reason = "the process of an agent talks by its output")]
pub(super) fn agent(way: &str) {
    for _ in std::io::stdin().lock().lines() {
        let answer = said(&found(way), ["stream", "leaves"].contains(&way), way == "leaves");
        println!("{}", json!({"answer": answer}));
        std::io::stdout().flush().expect("flushed");
    }
    std::process::exit(0);
}

fn give(stream: &mut TcpStream, status: &str, headers: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(head.as_bytes())
}

fn stream_of(stream: &mut TcpStream, events: &mut dyn Iterator<Item = String>) -> std::io::Result<()> {
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes())?;
    for event in events {
        stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())?;
        std::thread::sleep(PIECE);
    }
    stream.write_all(b"0\r\n\r\n")
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut head, mut length) = (String::new(), 0);
    while reader.read_line(&mut head)? > 2 {
        let last = head.lines().last().unwrap_or_default().to_ascii_lowercase();
        length = last.strip_prefix("content-length:").map_or(length, |value| value.trim().parse().unwrap_or(0));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let lower = head.to_ascii_lowercase();
    let path = head.split(' ').nth(1).unwrap_or_default();
    match path.split('?').next().unwrap_or_default() {
        "/kb/login" => {
            let headers = format!(
                "Set-Cookie: AuthSession={SESSION}; Domain=kb.example; Path=/kb; Secure; Expires=Wed, 21 Oct 2099 07:28:00 \
                 GMT\r\nSet-Cookie: lang=en; HttpOnly\r\nX-Subject-Token: {TOKEN}\r\n"
            );
            give(&mut stream, "200 OK", &headers, &json!({"session": SESSION}).to_string())
        }
        "/kb/find" if head.contains(&format!("AuthSession={SESSION}")) || lower.contains("x-auth-token:") => {
            give(&mut stream, "200 OK", "", &json!({"results": [{"id": "returns#1", "text": FOUND}]}).to_string())
        }
        "/kb/digest" if !lower.contains("authorization: digest nonce=\"abc123\"") => {
            let challenge = "WWW-Authenticate: Digest realm=\"kb\", nonce=\"abc123\"\r\n";
            give(&mut stream, "401 Unauthorized", challenge, "{}")
        }
        "/kb/digest" => give(&mut stream, "200 OK", "", &json!({"results": [{"id": "r", "text": FOUND}]}).to_string()),
        "/kb/events" => {
            let events = std::iter::once(format!("data: {FOUND}\n\n"));
            stream_of(&mut stream, &mut events.chain(std::iter::repeat(": still here\n\n".to_owned())))
        }
        "/kb/breaks" => {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
            let event = "data: half of it\n\n";
            stream.write_all(format!("{head}{:x}\r\n{event}\r\nffff\r\ndata:", event.len()).as_bytes())
        }
        "/v1/chat/completions" => {
            let known = String::from_utf8_lossy(&body).contains("37 days");
            let words = if known { "You can return it within 37 days." } else { "Sorry, I found nothing." };
            if !String::from_utf8_lossy(&body).contains("\"stream\":true") {
                let message = json!({"role": "assistant", "content": words});
                let body = json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices":
                    [{"index": 0, "finish_reason": "stop", "message": message}]});
                return give(&mut stream, "200 OK", "Content-Type: application/json\r\n", &body.to_string());
            }
            let event = |delta: Value, reason: Option<&str>| {
                let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
                let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]});
                format!("data: {chunk}\n\n")
            };
            let mut events: Vec<String> =
                words.split_inclusive(' ').map(|word| event(json!({"content": word}), None)).collect();
            events.extend((0..4).map(|_| event(json!({"content": " "}), None)));
            events.extend([event(json!({}), Some("stop")), "data: [DONE]\n\n".to_owned()]);
            stream_of(&mut stream, &mut events.into_iter())
        }
        _ => give(&mut stream, "401 Unauthorized", "", "{}"),
    }
}

/// The address of the server, and how often it was asked.
fn serve() -> (String, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (address, asked) = (listener.local_addr().expect("an address"), Arc::new(AtomicU32::new(0)));
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            count.fetch_add(1, Ordering::SeqCst);
            std::thread::spawn(move || answer(stream));
        }
    });
    (format!("http://{address}"), asked)
}

fn project(way: &str, server: &str) -> Project {
    let project = Project::empty();
    project.write(
        "ragcheck.yaml",
        &format!(
            "scenarios: [agent.yaml]\ncassettes: cassettes\nreports: reports\nproviders:\n  own: {{dialect: openai-chat, \
             base_url: '{server}/v1'}}\n"
        ),
    );
    let program = std::env::current_exe().expect("this program");
    project.write(
        "agent.yaml",
        &format!(
            "scenario: agent\nflow: external\nmodel: {{provider: own, name: m}}\nservices: {{kb: {{http: '{server}/kb', env: \
             KB, optional: true}}}}\ntarget:\n  command: ['{}', --ignored, --exact, external::started::runs_as_an_agent, \
             --nocapture]\n  env: {{{KIND}: 'sessions {way}'}}\ncases:\n  - {{case: battery, ask: How long can I return a \
             battery?, expect: {{answer: {{contains: ['37']}}}}}}\n",
            program.display()
        ),
    );
    project
}

fn run(project: &Project, mode: &str) -> Outcome {
    project.run(&["run", "--mode", mode, "--no-history"])
}

/// The recording, after a live trial, a recording and a replay that asks nobody have passed.
fn passes(way: &str) -> (Project, String) {
    let (server, asked) = serve();
    let project = project(way, &server);
    let mut before = 0;
    for mode in ["live", "record", "replay"] {
        let outcome = run(&project, mode);
        assert!(outcome.stdout.contains("1 trial: 1 PASS"), "{way}, {mode}: {}{}", outcome.stdout, outcome.stderr);
        let now = asked.load(Ordering::SeqCst);
        assert_eq!(now == before, mode == "replay", "{way}, {mode}");
        before = now;
    }
    let recording = project.read("cassettes/agent/battery/external.base.1.yaml");
    (project, recording)
}

#[test]
fn an_agent_logs_in_by_cookie_token_or_challenge_and_the_recording_holds_neither_cookie_nor_token() {
    for (way, kept) in [
        ("cookie", "AuthSession=[redacted:cookie]; Path=ragcheck-service:"),
        ("cookie", "lang=[redacted:cookie]; HttpOnly"),
        ("cookie", "session: \"[redacted:cookie]\""),
        ("session", "session: \"[redacted:cookie]\""),
        ("token", "x-subject-token: \"[redacted:x-subject-token]\""),
        ("challenge", "nonce=\"abc123\""),
    ] {
        let (project, recording) = passes(way);
        assert!(recording.contains(kept), "{way}: {kept} is not in\n{recording}");
        for secret in [SESSION, TOKEN, "lang=en"] {
            assert!(!recording.contains(secret), "{way}: {recording}");
            assert!(!project.read("reports/latest/traces.jsonl").contains(secret), "{way}");
        }
        project.run(&["cassette", "scan"]).expect_code(0);
    }
}

#[test]
fn a_stream_reaches_the_agent_as_it_comes_and_one_that_never_ends_is_recorded_until_the_agent_leaves() {
    let (_, whole) = passes("stream");
    assert!(whole.contains("[DONE]") && !whole.contains("left-open"), "{whole}");
    let (_, events) = passes("events");
    assert!(events.contains(FOUND) && events.contains("x-ragcheck-left-open: \"1\""), "{events}");
}

#[test]
fn what_came_of_a_stream_before_its_service_broke_off_reaches_the_agent_in_a_replay_too() {
    let (project, recording) = passes("breaks");
    assert!(recording.contains("half of it") && recording.contains("x-ragcheck-broken-off: \"1\""), "{recording}");
    let traces = project.read("reports/latest/traces.jsonl");
    assert!(traces.contains("the service broke off its answer"), "{traces}");
}

#[test]
fn an_agent_that_leaves_its_models_stream_before_the_end_is_not_judged() {
    let (server, _) = serve();
    let project = project("leaves", &server);
    for mode in ["live", "record"] {
        let outcome = run(&project, mode);
        outcome.expect_code(3);
        let told = plain(&outcome.stdout);
        assert!(told.contains("your agent left the stream before its end") && !told.contains("PASS"), "{told}");
    }
}

#[test]
fn a_websocket_and_a_method_that_are_not_served_are_an_error_that_says_so_and_another_upgrade_is_ignored() {
    let (server, _) = serve();
    for (way, words) in [
        ("socket", "your agent asked GET /kb/socket, to open a websocket, which cannot be recorded"),
        ("method", "your agent asked SEARCH /kb/find, which is not served by this method; served there: GET, POST"),
    ] {
        let project = project(way, &server);
        for mode in ["live", "record"] {
            let outcome = run(&project, mode);
            outcome.expect_code(3);
            let told = plain(&outcome.stdout);
            assert!(told.contains(words) && !told.contains("FAIL"), "{told}");
            assert!(!project.path("cassettes/agent").exists(), "it was recorded");
        }
    }
    passes("h2c");
}

#[test]
fn a_value_in_a_query_that_the_agent_generates_gets_a_line_of_vars_that_works() {
    let (server, _) = serve();
    let project = project("minted", &server);
    let outcome = run(&project, "record");
    outcome.expect_code(3);
    let line = outcome.stdout.lines().find(|line| line.contains("{at: path, match: '"));
    let line = line.unwrap_or_else(|| panic!("no line in {}", outcome.stdout)).trim().to_owned();
    assert!(
        line.starts_with("session: ") && plain(&outcome.stdout).contains("the query changed"),
        "{}",
        outcome.stdout
    );
    let scenario = project.read("agent.yaml");
    project.write("agent.yaml", &format!("{scenario}vars:\n  {line}\n"));
    for mode in ["record", "replay"] {
        let outcome = run(&project, mode);
        assert!(outcome.stdout.contains("1 trial: 1 PASS"), "{mode}: {}", outcome.stdout);
    }
}

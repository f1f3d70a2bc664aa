//! Clients that mean harm, or are merely broken: nobody else notices them.

use super::*;
use std::io::{Read, Write};
use std::net::TcpStream;

/// The head of a question of that many bytes.
fn head(address: &str, length: usize, more: &str) -> String {
    format!(
        "POST /api/chat/query HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{more}\r\n"
    )
}

/// A connection on which that was sent; reading waits for a minute at most.
fn sent(address: &str, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a limit");
    stream.write_all(bytes).expect("is sent");
    stream
}

/// What comes until these words do, or until the connection ends.
fn read_until(stream: &mut TcpStream, words: &str) -> String {
    let (mut all, mut piece) = (Vec::new(), [0; 1024]);
    while !String::from_utf8_lossy(&all).contains(words) {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(read) => all.extend_from_slice(&piece[..read]),
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

#[test]
fn what_is_no_request_gets_an_error_in_the_same_shape_and_asks_nobody() {
    let (project, _simulator, service) = served("two-stage", &[]);
    let raw = |body: &[u8], kind: &str| {
        let head = format!(
            "POST /api/chat/query HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            service.address,
            body.len()
        );
        let mut stream = sent(&service.address, &[head.as_bytes(), body].concat());
        read_until(&mut stream, "}}")
    };
    let deep = format!("{{\"query\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let bodies: [(&[u8], &str, &str); 8] = [
        (b"{\"query\": \"\xff\xfe\"}", "application/json", " 400 "),
        (b"{\"query\": \"Why?\"", "application/json", " 400 "),
        (b"{\"query\": 7}", "application/json", " 400 "),
        (b"{\"query\": \"a\", \"query\": \"b\"}", "application/json", " 400 "),
        (b"[]", "application/json", " 400 "),
        (b"", "application/json", " 400 "),
        (deep.as_bytes(), "application/json", " 400 "),
        (b"query=Why", "application/x-www-form-urlencoded", " 415 "),
    ];
    for (body, kind, status) in bodies {
        let answered = raw(body, kind);
        let shown = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
        assert!(answered.starts_with(&format!("HTTP/1.1{status}")), "{shown}: {answered}");
        assert!(answered.contains(r#"{"error":{"kind":"invalid_request""#), "{shown}: {answered}");
    }
    let whole = format!("GET /health HTTP/1.1\r\nHost: {}\r\nX-Long: {}\r\n\r\n", service.address, "x".repeat(2 << 20));
    let mut stream = TcpStream::connect(&service.address).expect("a connection");
    // It may be refused before all of it was sent.
    let _ = stream.write_all(whole.as_bytes());
    drop(stream);
    for origin in ["null", "http://localhost:3000", "https://evil.example"] {
        let page = post(&service.address, &json!({"query": "Why?"}), &[("Origin", origin)]);
        assert_eq!(kind(&page), (403, "forbidden"), "{origin}");
    }
    assert_eq!(service.get("/health").status, 200);
    assert!(project.read(".ragcheck/serve/two-stage/events.jsonl").is_empty());
}

#[test]
fn requests_one_after_another_in_one_piece_are_all_answered() {
    let (_project, _simulator, service) = served("two-stage", &[]);
    let one = format!("GET /health HTTP/1.1\r\nHost: {}\r\n\r\n", service.address);
    let last = format!("GET /health HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", service.address);
    let mut stream = sent(&service.address, format!("{one}{one}{last}").as_bytes());
    let answered = read_until(&mut stream, "never");
    assert_eq!(answered.matches("HTTP/1.1 200").count(), 3, "{answered}");
}

#[test]
fn a_request_that_arrives_slowly_holds_nobodys_place() {
    let (_project, _simulator, service) = served("two-stage", &["--max-requests", "1"]);
    let begun = format!("{}{{\"query\"", head(&service.address, 500, ""));
    let slow: Vec<TcpStream> = (0..20).map(|_| sent(&service.address, begun.as_bytes())).collect();
    let asked = Asked { tenant: Some("fernlight"), ..Asked::new(QUESTION) };
    assert_eq!(service.ask(&asked).status, 200);
    drop(slow);
    assert_eq!(service.ask(&asked).status, 200);
}

/// A service whose model takes its time, with one place.
fn slow() -> (Project, Simulator, Service) {
    let project = Project::shipped();
    let usual = "lognormal: {median: 700ms, sigma: 0.4, max: 6s}";
    project.edit("fixtures/simulator/fernlight.yaml", usual, "constant: 900ms");
    let simulator = Simulator::start(&project, "fixtures/simulator/fernlight.yaml");
    let service = Service::start(&project, "two-stage", &["--max-requests", "1"]);
    (project, simulator, service)
}

#[test]
fn a_stream_that_nobody_reads_holds_its_place_until_its_turn_ends_and_its_answer_is_kept() {
    let (project, _simulator, service) = slow();
    let asked = Asked { tenant: Some("fernlight"), ..Asked::new(QUESTION) };
    let first = service.ask(&asked);
    let session = first.body["session_id"].as_str().expect("a session").to_owned();
    let body = json!({"query": "And what does E-21 report?", "session_id": session}).to_string();
    let head = head(&service.address, body.len(), "Accept: text/event-stream\r\n");
    let mut stream = sent(&service.address, format!("{head}{body}").as_bytes());
    assert!(read_until(&mut stream, "event: status").contains("event: status"));
    // Its turn has begun, and takes nearly two seconds: no other question is taken, and this session's is busy.
    let other = service.ask(&asked);
    assert_eq!(kind(&other), (503, "overloaded"));
    drop(stream);
    let stored = || project.read(&format!(".ragcheck/serve/two-stage/sessions/{session}.json"));
    let kept = (0..600).any(|_| {
        client::wait(Duration::from_millis(100));
        stored().contains("E-21")
    });
    assert!(kept, "{}", stored());
    let again = (0..600).any(|_| {
        client::wait(Duration::from_millis(100));
        service.ask(&Asked { session: Some(&session), ..Asked::new("Why?") }).status == 200
    });
    assert!(again, "the place is free again, and so is the session");
}

#[test]
fn half_a_request_does_not_keep_a_service_from_stopping() {
    let (_project, _simulator, mut service) = served("two-stage", &[]);
    let no_head = sent(&service.address, b"POST /api/chat/query HTTP/1.1\r\nHost:");
    let no_body = sent(&service.address, format!("{}{{", head(&service.address, 500, "")).as_bytes());
    assert_eq!(service.get("/health").status, 200);
    service.signal("-TERM");
    assert_eq!(service.ends(), Some(0));
    drop((no_head, no_body));
}

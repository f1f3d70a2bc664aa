//! What a service of an agent's own gets and gives through the proxy: the bytes of a body, compressed or not, the headers
//! that clients read, and redirects.

use super::started::{complete, plain, run, stage};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const CASE: &str = "  - {case: warranty, ask: How long does the warranty of the Canopy last?, expect: {answer: {contains: \
                    ['shelved by Shelf; 2 books; more at /books?page=2; cancelled refreshed, 48213 bytes']}}}\n";
/// A body that is other bytes once it is parsed and printed again: a number too large for a double, escapes, an end of line.
const BODY: &str = "{\"delete\": {\"_id\": 12345678901234567890123, \"path\": \"a\\/b\"}}\n";

/// One exchange over plain sockets: the whole response.
fn ask(url: &str, head: &str, body: &[u8]) -> String {
    let (host, path) = url.trim_start_matches("http://").split_once('/').unwrap_or((url, ""));
    let (method, headers) = head.split_once('\n').unwrap_or((head, ""));
    let mut stream = TcpStream::connect(host).expect("a server");
    let length = body.len();
    let request = format!(
        "{method} /{path} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).and_then(|()| stream.write_all(body)).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn header(response: &str, name: &str) -> String {
    let lines = response.lines().take_while(|line| !line.is_empty());
    let mut found = lines.filter_map(|line| line.split_once(": "));
    found.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).unwrap_or_default()
}

/// Takes a book from its shelf, in a compressed body, follows a redirect, and reads where there are more.
#[expect(clippy::print_stdout, reason = "the process of an agent talks by its output")]
pub(super) fn agent() {
    let shelf = std::env::var("SHELF_URL").expect("the service");
    for line in std::io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(BODY.as_bytes()).expect("memory");
        let kind = "POST\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n";
        let taken = ask(&format!("{shelf}/_bulk"), kind, &packed.finish().expect("memory"));
        let moved = ask(&format!("{shelf}/books"), "GET", b"");
        let listed = ask(&header(&moved, "location"), "GET", b"");
        let more = header(&listed, "link");
        let more = more.trim_start_matches('<').split('>').next().unwrap_or_default().replace(&shelf, "");
        let body_of = |answer: &str| answer.rsplit("\r\n\r\n").next().unwrap_or_default().to_owned();
        let cancelled = body_of(&ask(&format!("{shelf}/orders/7"), "DELETE", b""));
        let refreshed =
            body_of(&ask(&format!("{shelf}/orders/7/refresh"), "POST\nContent-Type: text/plain\r\n", b"now"));
        let size = header(&ask(&format!("{shelf}/files/7"), "HEAD", b""), "content-length");
        let books = listed.rsplit("\r\n\r\n").next().unwrap_or_default();
        let _ = complete(asked["message"].as_str().expect("words"));
        let answer = format!(
            "shelved by {}; {books}; more at {more}; {cancelled} {refreshed}, {size} bytes",
            header(&taken, "x-elastic-product")
        );
        println!("{}", json!({"answer": answer}));
        std::io::stdout().flush().expect("flushed");
    }
    std::process::exit(0);
}

/// The shelf, and what came to it.
fn shelf() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let asked = Arc::clone(&seen);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream.try_clone().expect("a clone"));
            let (mut head, mut length) = (String::new(), 0);
            while reader.read_line(&mut head).unwrap_or(0) > 2 {
                let last = head.lines().last().unwrap_or_default().to_ascii_lowercase();
                length = last.strip_prefix("content-length:").map_or(length, |value| value.trim().parse().unwrap_or(0));
            }
            let mut body = vec![0; length];
            let _ = reader.read_exact(&mut body);
            let asked_for = head.split(' ').nth(1).unwrap_or_default().to_owned();
            asked.lock().expect("no panic").push(format!("{head}{}", String::from_utf8_lossy(&body)));
            let (status, headers, body) = match asked_for.as_str() {
                "/_bulk" if body == BODY.as_bytes() => ("200 OK", "X-Elastic-Product: Shelf\r\n".to_owned(), "{}"),
                "/books" => ("307 Moved", "Location: /books?page=1\r\n".to_owned(), ""),
                "/books?page=1" => {
                    let link = format!("Link: <http://{address}/books?page=2>; rel=\"next\"\r\n");
                    ("200 OK", link, "2 books")
                }
                // Some services refuse an empty body of a type.
                "/orders/7" if !head.to_ascii_lowercase().contains("content-type") => {
                    ("200 OK", String::new(), "cancelled")
                }
                "/orders/7/refresh" if head.contains("text/plain") => ("200 OK", String::new(), "refreshed"),
                "/files/7" => ("200 OK", String::new(), ""),
                _ => ("400 Bad", String::new(), "{}"),
            };
            let length = if asked_for == "/files/7" { 48213 } else { body.len() };
            let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    (format!("http://{address}"), seen)
}

#[test]
fn a_service_gets_the_bytes_and_headers_of_an_agent_alone_and_the_agent_its_headers_and_redirects_in_replays_too() {
    let (url, seen) = shelf();
    let mut stage = stage("bytes", "");
    plain(&stage, CASE);
    stage.project.edit(
        "agent.yaml",
        "cases:",
        &format!("services: {{shelf: {{http: '{url}', env: SHELF_URL}}}}\ncases:"),
    );
    let recorded = run(&stage, &["--mode", "record"]);
    assert!(recorded.stdout.contains("1 trial: 1 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    let seen = seen.lock().expect("no panic").clone();
    assert_eq!(seen.len(), 6, "{seen:?}");
    assert!(seen[0].ends_with(BODY) && !seen[0].to_ascii_lowercase().contains("content-encoding"), "{seen:?}");
    let lane = stage.project.read("fixtures/cassettes/agent/warranty/external.base.1.yaml");
    assert!(lane.contains("x-elastic-product") && lane.contains("<ragcheck-service:/books?page=2>"), "{lane}");
    stage.simulator = None;
    let replayed = run(&stage, &[]);
    assert!(replayed.stdout.contains("1 trial: 1 PASS"), "{}{}", replayed.stdout, replayed.stderr);
}

#[test]
fn a_declared_service_that_no_trial_asked_is_noted_unless_it_is_optional_or_cases_were_left_out() {
    let (url, _seen) = shelf();
    let stage = stage("bytes", "");
    plain(&stage, CASE);
    let services = format!(
        "services: {{shelf: {{http: '{url}', env: SHELF_URL}}, kb: {{http: '{url}', env: KB_URL}}, \
         spare: {{http: '{url}', env: SPARE_URL, optional: true}}}}\ncases:"
    );
    stage.project.edit("agent.yaml", "cases:", &services);
    for (more, place) in [(&["--mode", "record"][..], "recordings"), (&["--mode", "live"], "run"), (&[], "recordings")]
    {
        let ran = run(&stage, more);
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(told.contains("1 trial: 1 PASS"), "{told}");
        assert!(
            told.contains("agent: `kb` was never asked in th") && told.contains("does the agent read KB_URL?"),
            "{told}"
        );
        assert!(
            told.contains(place) && !told.contains("`shelf` was never") && !told.contains("`spare` was never"),
            "{told}"
        );
    }
    let part = run(&stage, &["--only", "warranty"]);
    assert!(!format!("{}{}", part.stdout, part.stderr).contains("never asked"), "{}{}", part.stdout, part.stderr);
}

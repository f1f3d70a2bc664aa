//! An outage is no failure of the agent: it is an error of the run, told once, and nothing good is lost by it.

use super::ports;
use super::project::Project;
use super::simulator::{Simulator, recording};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const LANE: &str = "fixtures/cassettes/external/feed-in-tariff/tool-rag.base.1.yaml";
const ONE: [&str; 6] = ["run", "scenarios/external.yaml", "--only", "feed-in-tariff", "--repeat=2", "--mode"];

/// Reads a request whole.
fn received(connection: &mut TcpStream) {
    // Who begins with a handshake sends no request before it is answered.
    let _ = connection.set_read_timeout(Some(Duration::from_secs(2)));
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
}

/// A server that does this with every connection whose request it has read, for as long as the test runs.
fn serving(answer: impl Fn(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { continue };
            received(&mut connection);
            answer(connection);
        }
    });
    address
}

/// A server that gives every request this answer.
fn answering(status: u16, content: &'static str, body: &'static str) -> String {
    serving(move |mut connection| {
        let length = body.len();
        let head = format!("HTTP/1.1 {status} X\r\ncontent-type: {content}\r\nx-should-retry: false\r\n");
        let _ = write!(connection, "{head}content-length: {length}\r\nconnection: close\r\n\r\n{body}");
    })
}

/// An address where nobody listens.
fn nobody() -> String {
    ports::free_address()
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
        (403, "application/json", "{\"error\": {\"message\": \"not for you\"}}", "authentication failed (HTTP 403)"),
        (500, "application/json", "{}", "the service failed (HTTP 500)"),
        (401, "application/json", "{\"error\": {\"message\": \"no such key\"}}", "authentication failed (HTTP 401)"),
        (
            404,
            "application/json",
            "{\"error\": {\"message\": \"no such model\"}}",
            "not found, or not available (HTTP 404)",
        ),
        (408, "application/json", "{}", "no answer in time (HTTP 408)"),
        (425, "application/json", "{}", "the service was not ready (HTTP 425)"),
        (200, "application/json", "", "an answer that cannot be read (HTTP 200)"),
        (200, "application/json", "null", "an answer that cannot be read (HTTP 200)"),
        (200, "text/plain", "upstream connect error", "an answer that cannot be read (HTTP 200)"),
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

/// What a live run of one trial at that address says, which must be an error with this cause, told once.
fn expect_outage(project: &Project, address: &str, cause: &str) {
    let outcome =
        project.run(&["run", "scenarios/external.yaml", "--only", "feed-in-tariff", "--repeat=1", "--mode", "live"]);
    outcome.expect_code(3);
    let told = format!("{cause} from {address}");
    assert_eq!(outcome.stdout.matches(&told).count(), 1, "{told}\n{}{}", outcome.stdout, outcome.stderr);
    assert!(!project.path("history.jsonl").exists(), "{cause}: an outage has no point in the history");
}

#[test]
fn a_server_that_is_not_there_has_no_certificate_or_hangs_up_is_an_outage_with_its_host() {
    let connection = "no connection, or a broken one";
    let refused = nobody();
    expect_outage(&at(&refused), &refused, connection);

    let plain = answering(200, "application/json", "{}");
    let encrypted = at(&plain);
    encrypted.write(
        "ragcheck.yaml",
        &encrypted.read("ragcheck.yaml").replace(&format!("http://{plain}"), &format!("https://{plain}")),
    );
    expect_outage(&encrypted, &plain, connection);

    let cut = serving(|mut connection| {
        let _ = write!(
            connection,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{{\"choices\":"
        );
    });
    expect_outage(&at(&cut), &cut, connection);
}

#[test]
fn a_server_that_never_answers_is_an_outage_when_the_time_of_its_requests_is_over() {
    let hanging = serving(|connection| {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_mins(1));
            drop(connection);
        });
    });
    let project = at(&hanging);
    project.edit(
        "scenarios/external.yaml",
        "repeat: 3\n",
        "repeat: 3\nlimits: {request: 300ms, transport_retries: 1}\n",
    );
    expect_outage(&project, &hanging, "no answer in time");
    // Its turn is over first, while it is asked again.
    project.edit(
        "scenarios/external.yaml",
        "limits: {request: 300ms, transport_retries: 1}",
        "limits: {request: 1s, turn: 1500ms, transport_retries: 5}",
    );
    expect_outage(&project, &hanging, "no answer in time");
    assert_eq!(project.read(LANE), Project::shipped().read(LANE));
}

#[test]
fn a_turn_that_is_over_while_a_service_asks_to_wait_met_an_outage() {
    let waiting = serving(|mut connection| {
        let _ = write!(
            connection,
            "HTTP/1.1 429 X\r\ncontent-type: application/json\r\nretry-after: 99999999999999999999\r\n\
             content-length: 2\r\nconnection: close\r\n\r\n{{}}"
        );
    });
    let project = at(&waiting);
    project.edit("scenarios/external.yaml", "repeat: 3\n", "repeat: 3\nlimits: {turn: 1s}\n");
    expect_outage(&project, &waiting, "too many requests (HTTP 429)");
}

#[test]
fn too_many_requests_are_an_outage_when_the_retries_end_and_not_before() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let busy = serving(move |mut connection| {
        counted.fetch_add(1, Ordering::SeqCst);
        let head = "HTTP/1.1 429 X\r\nretry-after-ms: 1\r\ncontent-type: application/json\r\ncontent-length: 2\r\n";
        let _ = write!(connection, "{head}connection: close\r\n\r\n{{}}");
    });
    expect_outage(&at(&busy), &busy, "too many requests (HTTP 429)");
    assert!(asked.load(Ordering::SeqCst) > 1, "it was asked once");
}

#[test]
fn what_a_gateway_refuses_for_its_words_counts_against_the_agent_though_the_status_is_that_of_a_bad_key() {
    let body = "{\"error\": {\"code\": 403, \"message\": \"This model requires moderation. Your input was flagged.\", \
                \"metadata\": {\"flagged_input\": \"how\"}}}";
    let project = at(&answering(403, "application/json", body));
    let outcome = project.run(&[&ONE[..], &["live"]].concat());
    assert!(!outcome.stdout.contains("provider error"), "{}", outcome.stdout);
    assert!(project.traces().iter().all(|trace| trace["end"] == "completed"), "{}", outcome.stdout);
}

/// The shipped project with a simulator, but a search service that is down at this address.
fn without_search(down: &str) -> (Project, Simulator) {
    let (project, simulator) = recording();
    let text = project.read("ragcheck.yaml");
    let (before, search) = text.split_once("  simulator-search:").expect("the search service");
    let (address, after) = search.split_once("base_url: http://").expect("its address");
    let (_, after) = after.split_once('\n').expect("a line");
    project.write("ragcheck.yaml", &format!("{before}  simulator-search:{address}base_url: http://{down}\n{after}"));
    (project, simulator)
}

#[test]
fn an_outage_that_the_agent_went_on_after_is_an_error_too_and_is_neither_recorded_nor_a_point_of_the_history() {
    let down = answering(503, "application/json", "{}");
    let (project, _simulator) = without_search(&down);
    let before = project.read(LANE);
    for mode in ["live", "record"] {
        let outcome = project.run(&[&ONE[..], &[mode]].concat());
        outcome.expect_code(3);
        let told = format!("the service is overloaded (HTTP 503) from {down}");
        assert!(outcome.stdout.contains(&told), "{}{}", outcome.stdout, outcome.stderr);
    }
    assert_eq!(project.read(LANE), before);
    assert!(!project.path("history.jsonl").exists(), "an outage has no point in the history");
}

#[test]
fn an_outage_of_a_service_that_the_scenario_declares_optional_is_judged_and_named() {
    let down = answering(503, "application/json", "{}");
    let (project, _simulator) = without_search(&down);
    project.edit("scenarios/external.yaml", "repeat: 3\n", "repeat: 3\noptional: [search]\n");
    let outcome = project.run(&[&ONE[..], &["live"]].concat());
    assert!(!outcome.stdout.contains("provider error"), "{}{}", outcome.stdout, outcome.stderr);
    let note = format!(
        "note: the service `search` is optional, and the trial is judged with its outage: the service is overloaded (HTTP 503) from {down} (2 trials)"
    );
    let said = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(&note), "{}", outcome.stdout);
    assert!(project.latest("run.json")["notes"][0].as_str().expect("a note").contains(&down));
    let page = project.read(&format!("{}/index.html", project.newest()));
    assert!(page.contains("is optional, and the trial is judged with its outage"));
}

#[test]
fn a_dead_grader_gives_errors_and_no_grades() {
    let project = Project::shipped();
    project.run(&["run", "scenarios/external.yaml"]);
    let dead = nobody();
    project.write("ragcheck.yaml", &project.read("ragcheck.yaml").replace("127.0.0.1:8091", &dead));
    let judged = project.run(&["judge", "reports/latest", "--mode", "live"]);
    judged.expect_code(3);
    assert!(judged.stderr.contains("provider error"), "{}{}", judged.stdout, judged.stderr);
    let grades = project.path("reports/latest/grades.jsonl");
    let text = std::fs::read_to_string(grades).unwrap_or_default();
    assert!(!text.contains("\"fail\"") && !text.contains("\"pass\""), "{text}");
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

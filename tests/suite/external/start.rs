//! What an agent's process asks before its first turn: recorded once, served to every process, and no part of a trial.

use super::started::{KIND, Shelf, complete, exchange, plain, run, stage};
use super::{Stage, events};
use crate::project::Outcome;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::atomic::Ordering;

const LANE: &str = "fixtures/cassettes/agent/external.base.start.yaml";
const TARGET: &str = "  http: http://127.0.0.1:{{port}}/chat\n";

/// What it asks its service before it takes a turn: who it is, and `more`.
fn identity(more: &str) -> String {
    let shelf = std::env::var("SHELF_URL").expect("the service");
    let (status, body) = exchange(&shelf, "GET /auth/identity", b"");
    if !more.is_empty() {
        exchange(&shelf, &format!("GET /{more}"), b"");
    }
    format!("{status} {body}")
}

/// A server whose answers say who it is; one turn at a time.
pub(super) fn serve(port: u16, more: &str) {
    let own = identity(more);
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port");
    for stream in listener.incoming() {
        let mut stream = stream.expect("a connection");
        let mut reader = BufReader::new(stream.try_clone().expect("a clone"));
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).unwrap_or(0) > 2 {
            let lower = line.to_ascii_lowercase();
            length = lower.strip_prefix("content-length:").map_or(length, |n| n.trim().parse().unwrap_or(0));
            line.clear();
        }
        if length == 0 {
            continue;
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        let asked: Value = serde_json::from_slice(&body).expect("JSON");
        let said = complete(asked["message"].as_str().expect("words"));
        let reply = json!({"answer": format!("{own} {said}")}).to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            reply.len()
        );
        stream.write_all(format!("{head}{reply}").as_bytes()).expect("sent");
    }
}

/// The same without a server. It takes long to start, and its first turn is there before.
#[expect(clippy::print_stdout, reason = "the process of an agent talks by its output")]
#[expect(clippy::disallowed_methods, reason = "the agent is a foreign process with a time of its own")]
pub(super) fn serve_lines(more: &str) {
    std::thread::sleep(std::time::Duration::from_millis(300));
    let own = identity(more);
    for line in std::io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let said = complete(asked["message"].as_str().expect("words"));
        println!("{}", json!({"answer": format!("{own} {said}")}));
        std::io::stdout().flush().expect("flushed");
    }
    std::process::exit(0);
}

/// Three cases of an agent that asks its shelf at the start, and expects the first answer of the shelf.
fn with_shelf(kind: &str, target: &str, shelf: &Shelf) -> Stage {
    let stage = stage(kind, target);
    let case = |name: &str| {
        format!(
            "  - {{case: {name}, ask: How long does the {name} last?, expect: {{answer: {{contains: ['200 {{\"books\": 0}}']}}}}}}\n"
        )
    };
    plain(&stage, &["warranty", "frost", "valve"].map(case).concat());
    let services = format!("services:\n  shelf: {{http: 'http://{}', env: SHELF_URL}}\ncases:", shelf.address);
    stage.project.edit("agent.yaml", "cases:", &services);
    stage
}

fn passed(outcome: &Outcome, words: &str) {
    assert!(outcome.stdout.contains(words), "{words}: {}{}", outcome.stdout, outcome.stderr);
}

#[test]
fn what_a_process_asks_before_its_first_turn_is_recorded_once_and_served_to_every_process() {
    for (kind, target) in [("starting", TARGET), ("starting-lines", "")] {
        let shelf = Shelf::open("200 OK");
        let mut stage = with_shelf(kind, target, &shelf);
        let recorded = run(&stage, &["--mode", "record", "--jobs", "2"]);
        passed(&recorded, "3 trials: 3 PASS");
        assert_eq!(shelf.asked.load(Ordering::SeqCst), 1, "{kind}: recorded once, whatever the number of processes");
        let start = stage.project.read(LANE);
        assert!(start.contains("/auth/identity") && start.contains("lane: \"external.base.start\""), "{start}");
        let lane = stage.project.read("fixtures/cassettes/agent/warranty/external.base.1.yaml");
        assert!(!lane.contains("/auth/identity") && lane.contains("/chat/completions"), "{lane}");
        let traces = stage.project.traces();
        assert!(traces.iter().all(|trace| events(trace, "model_called").len() == 1), "{}", traces[0]);
        stage.simulator = None;
        for restart in [false, true] {
            if restart {
                stage.project.edit("agent.yaml", "  env:", "  restart: trial\n  env:");
            }
            let replayed = run(&stage, &["--jobs", "2"]);
            passed(&replayed, "3 trials: 3 PASS");
            assert!(!replayed.stderr.contains("not asked for"), "{}", replayed.stderr);
        }
        assert_eq!(shelf.asked.load(Ordering::SeqCst), 1, "a replay asks nobody");
    }
}

#[test]
fn a_live_process_is_answered_at_its_start_and_nothing_is_written() {
    let shelf = Shelf::open("200 OK");
    let stage = with_shelf("starting", TARGET, &shelf);
    let outcome = run(&stage, &["--mode", "live", "--jobs", "1"]);
    passed(&outcome, "3 trials: 3 PASS");
    assert!(!stage.project.path(LANE).exists());
}

#[test]
fn a_request_at_the_start_without_a_recording_is_an_error_of_its_trials_with_the_command() {
    let shelf = Shelf::open("200 OK");
    let stage = with_shelf("starting", TARGET, &shelf);
    passed(&run(&stage, &["--mode", "record"]), "3 trials: 3 PASS");
    let kind = format!("{KIND}: 'starting");
    stage.project.edit("agent.yaml", &kind, &format!("{kind} tenants"));
    let outcome = run(&stage, &[]);
    outcome.expect_code(3);
    let said = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "3 trials: 3 ERROR",
        "when the agent's process started: cassette miss: GET /tenants",
        "external.base.start.yaml",
        "ragcheck cassette refresh --missed --yes agent.yaml",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    std::fs::remove_file(stage.project.path(LANE)).expect("the lane");
    let outcome = run(&stage, &[]);
    outcome.expect_code(3);
    let said = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = "GET /auth/identity of the service `shelf`: no start is recorded";
    let command = "ragcheck cassette refresh --missed --yes agent.yaml";
    assert!(said.contains(words) && said.contains(command), "{said}");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let again = stage.project.run(&words);
    assert!(
        again.stdout.contains("3 trials:") && stage.project.path(LANE).exists(),
        "{}{}",
        again.stdout,
        again.stderr
    );
}

#[test]
fn recording_a_part_keeps_the_start_unless_the_agent_asks_something_else() {
    let shelf = Shelf::open("200 OK");
    let stage = with_shelf("starting", TARGET, &shelf);
    passed(&run(&stage, &["--mode", "record"]), "3 trials: 3 PASS");
    let start = stage.project.read(LANE);
    passed(&run(&stage, &["--mode", "record", "--only", "valve"]), "1 trial: 1 PASS");
    assert_eq!(shelf.asked.load(Ordering::SeqCst), 1);
    assert_eq!(stage.project.read(LANE), start);
    let kind = format!("{KIND}: 'starting");
    stage.project.edit("agent.yaml", &kind, &format!("{kind} tenants"));
    stage.project.edit("agent.yaml", "books\": 0", "books\": 1");
    let again = run(&stage, &["--mode", "record", "--only", "warranty"]);
    passed(&again, "1 trial: 1 PASS");
    assert!(stage.project.read(LANE).contains("/tenants"));
}

#[test]
fn a_service_that_fails_at_the_start_is_an_outage_and_nothing_is_written() {
    let shelf = Shelf::open("503 Down");
    let stage = with_shelf("starting", TARGET, &shelf);
    let outcome = run(&stage, &["--mode", "record", "--jobs", "1"]);
    outcome.expect_code(3);
    passed(&outcome, "3 trials: 3 ERROR");
    let said = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("when the agent's process started, the service `shelf` failed: HTTP 503"), "{said}");
    assert!(!stage.project.path("fixtures/cassettes/agent").exists());
}

#[test]
fn a_record_run_that_keeps_no_trial_leaves_the_recorded_start_as_it_is() {
    let shelf = Shelf::open("200 OK");
    let mut stage = with_shelf("starting", TARGET, &shelf);
    passed(&run(&stage, &["--mode", "record"]), "3 trials: 3 PASS");
    let start = stage.project.read(LANE);
    // The service of the start answers, and the model does not.
    stage.simulator = None;
    let outcome = run(&stage, &["--mode", "record", "--jobs", "1"]);
    outcome.expect_code(3);
    passed(&outcome, "3 trials: 3 ERROR");
    assert_eq!(shelf.asked.load(Ordering::SeqCst), 2, "the start was recorded anew");
    assert_eq!(stage.project.read(LANE), start);
    passed(&run(&stage, &[]), "3 trials: 3 PASS");
}

#[test]
fn a_recorded_start_is_listed_and_checked_an_edited_one_is_marked_and_an_orphan_only_without_its_variant() {
    let shelf = Shelf::open("200 OK");
    let stage = with_shelf("starting", TARGET, &shelf);
    passed(&run(&stage, &["--mode", "record"]), "3 trials: 3 PASS");
    let listed = stage.project.run(&["list", "agent.yaml"]);
    assert!(
        listed.stdout.contains("1 recorded start of an agent's process: agent/external.base.start"),
        "{}",
        listed.stdout
    );
    let check = || stage.project.run(&["check", "agent.yaml", "--warn-recordings-after", "36500d"]);
    let sound = check();
    assert!(!sound.stdout.contains("belong") && !sound.stdout.contains("start"), "{}", sound.stdout);
    let text = stage.project.read(LANE);
    stage.project.write("fixtures/cassettes/agent/external.gone.start.yaml", &text);
    let orphan = check();
    assert!(orphan.stdout.contains("`agent` belongs to no trial: external.gone.start"), "{}", orphan.stdout);
    stage.project.write(LANE, &text[..text.len() / 2]);
    let broken = check();
    broken.expect_code(2);
    assert!(
        broken.stdout.contains("the file is cut off") && broken.stdout.contains("external.base.start.yaml"),
        "{}",
        broken.stdout
    );
    let outcome = run(&stage, &[]);
    outcome.expect_code(3);
    passed(&outcome, "cassette broken (3 trials)");
    stage.project.write(LANE, &text);
    for command in ["rekey", "scan"] {
        stage.project.run(&["cassette", command, LANE]).expect_code(0);
    }
    let replay = || {
        let replayed = run(&stage, &["--jobs", "2"]);
        passed(&replayed, "3 trials: 3 PASS");
        let summary = stage.project.run(&["report", "--to", "markdown"]).stdout;
        [replayed.stdout, summary].map(|said| said.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    for said in replay() {
        assert!(!said.contains("edited by hand"), "{said}");
    }
    stage.project.write(LANE, &text.replacen("took_us: ", "took_us: 1", 1));
    for said in replay() {
        assert!(said.contains("edited by hand"), "every trial was answered by it: {said}");
    }
    let criteria = stage.project.read("reports/latest/trials.csv");
    assert_eq!(criteria.matches("(edited by hand)").count(), 3, "{criteria}");
    let checked = check().stdout;
    assert!(checked.contains("1 recording was edited by hand, that of agent/external.base.start first"), "{checked}");
}

//! `ragcheck init --agent`: from a command to a recorded, green project, and what a newcomer is told instead. The agent is
//! this test binary, as in `started`.

use super::started::{KIND, complete};
use crate::ports;
use crate::project::Outcome;
use crate::scripted_model;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

/// Variables that would choose a real provider.
const KEYS: [&str; 4] = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "PERPLEXITY_API_KEY"];

pub(super) fn ragcheck(folder: &Path, kind: &str, arguments: &[&str]) -> Outcome {
    let mut command = Command::new(crate::program::program());
    command.args(arguments).current_dir(folder).env("NO_COLOR", "1").env(KIND, kind);
    for key in KEYS {
        command.env_remove(key);
    }
    Outcome::of(&mut command)
}

pub(super) fn init(folder: &Path, kind: &str, more: &[&str]) -> Outcome {
    let program = std::env::current_exe().expect("this program");
    let agent = format!("'{}' --ignored --exact external::started::runs_as_an_agent --nocapture", program.display());
    ragcheck(folder, kind, &[&["init", "--agent", &agent], more].concat())
}

pub(super) fn said(outcome: &Outcome) -> String {
    format!("{}{}", outcome.stdout, outcome.stderr).split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn read(folder: &Path, file: &str) -> String {
    fs::read_to_string(folder.join(file)).unwrap_or_default()
}

#[test]
fn a_server_is_met_recorded_and_replayed_green_without_a_key_and_without_an_edit() {
    let (folder, pids) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let kind = format!("http {}", pids.path().display());
    let made = init(folder.path(), &kind, &["--question", "How long does the warranty of the Canopy last?"]);
    made.expect_code(0);
    let words = said(&made);
    for part in [
        "reached: POST /chat of the process",
        "reply: JSON, the answer at /reply/text",
        "OPENAI_API_KEY is not set: a simulated model answers",
        "tools: search_docs, web_search, remember, final_answer",
        "1 trial: 1 PASS",
        "REPLAYED",
    ] {
        assert!(words.contains(part), "{part}: {}{}", made.stdout, made.stderr);
    }
    let scenario = read(folder.path(), "scenarios/agent.yaml");
    for line in [
        "  http: 'http://127.0.0.1:{{port}}/chat'",
        "  answer: /reply/text",
        "reset: {http: 'http://127.0.0.1:{{port}}/reset'}",
        "  knowledge: 'search_docs'",
        "  external: 'web_search'",
        "  index: 'remember'",
        "  respond: 'final_answer'",
        "      calls: [{in_order: ['search_docs', 'final_answer']}]",
        "      answer: {contains: ['60']}",
    ] {
        assert!(scenario.lines().any(|one| one == line), "{line}:\n{scenario}");
    }
    assert!(read(folder.path(), "scenarios/criteria.yaml").contains("mandatory_call_rate(knowledge)"));
    let workflow = read(folder.path(), ".github/workflows/ragcheck.yml");
    assert!(workflow.contains("ragcheck run --report-dir") && workflow.contains("target.command"), "{workflow}");
    assert!(read(folder.path(), ".gitignore").contains("/reports/"));
    ragcheck(folder.path(), &kind, &["check"]).expect_code(0);
    // The simulator ended with `init`.
    ragcheck(folder.path(), &kind, &["run"]).expect_code(0);
    let before = read(folder.path(), "scenarios/agent.yaml");
    let again = init(folder.path(), &kind, &[]);
    again.expect_code(2);
    assert!(again.stderr.contains("no file is overwritten"), "{}", again.stderr);
    assert_eq!(read(folder.path(), "scenarios/agent.yaml"), before);
}

#[test]
fn no_reset_is_declared_for_a_server_that_accepts_any_path() {
    let folder = tempfile::tempdir().expect("a folder");
    init(folder.path(), "accepts-all", &[]).expect_code(0);
    let scenario = read(folder.path(), "scenarios/agent.yaml");
    assert!(scenario.contains("/chat") && !scenario.lines().any(|line| line.starts_with("reset:")), "{scenario}");
}

#[test]
fn a_program_that_reads_lines_is_recognised() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = init(folder.path(), "lines", &["evals"]);
    made.expect_code(0);
    assert!(said(&made).contains("one line of JSON on its standard input"), "{}{}", made.stdout, made.stderr);
    let scenario = read(folder.path(), "evals/scenarios/agent.yaml");
    let words = said(&made);
    assert!(words.contains("asserted: the answer contains `") && words.contains("not asserted: that the"), "{words}");
    assert!(scenario.contains("answer: {contains: ['") && !scenario.contains("matches:"), "{scenario}");
    assert!(!scenario.lines().any(|line| line.trim_start().starts_with("http:")), "{scenario}");
    ragcheck(&folder.path().join("evals"), "lines", &["run"]).expect_code(0);
}

#[test]
fn what_an_agent_asks_at_its_start_has_its_own_answers_when_it_is_started_again() {
    let folder = tempfile::tempdir().expect("a folder");
    init(folder.path(), "lines embeds", &[]).expect_code(0);
    ragcheck(folder.path(), "lines embeds", &["run"]).expect_code(0);
}

#[test]
fn a_reply_in_another_charset_or_with_a_byte_order_mark_is_met_as_it_is_run() {
    for (kind, met) in [
        ("text/plain;charset=iso-8859-1 200 60 Monate für Körbe.", "reply: text"),
        ("application/json;charset=iso-8859-1 200 {\"answer\": \"60 Monate für Körbe.\"}", "the answer at /answer"),
        ("application/json 200 \u{feff}{\"answer\": \"60 Monate für Körbe.\"}", "the answer at /answer"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let made = init(folder.path(), kind, &[]);
        made.expect_code(0);
        assert!(said(&made).contains(met), "{kind}: {}{}", made.stdout, made.stderr);
        ragcheck(folder.path(), kind, &["run"]).expect_code(0);
        let traces = read(folder.path(), "reports/latest/traces.jsonl");
        assert!(traces.contains("60 Monate für Körbe."), "{kind}: {traces}");
    }
}

#[test]
fn what_the_agent_generates_per_run_is_declared_and_the_first_run_is_green() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = init(folder.path(), "mints", &[]);
    made.expect_code(0);
    let scenario = read(folder.path(), "scenarios/agent.yaml");
    assert!(scenario.contains("\nvars:\n") && scenario.contains("{at: '/messages/0/content', match: '"), "{scenario}");
    ragcheck(folder.path(), "mints", &["run"]).expect_code(0);
}

#[test]
fn an_address_at_which_nothing_listens_is_said_with_what_has_to_be_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let free = ports::free_address();
    let outcome = ragcheck(folder.path(), "", &["init", "--agent", &format!("http://{free}")]);
    outcome.expect_code(2);
    let words = said(&outcome);
    assert!(words.contains(&format!("the agent at http://{free} is not reached")), "{words}");
    assert!(
        words.contains("start it first") && words.contains("OPENAI_BASE_URL=http://127.0.0.1:8101/model/v1"),
        "{words}"
    );
    assert!(!words.contains("--path"), "{words}");
}

/// An agent that takes `prompt` alone. Another body ends its process, or gets a 500 whose connection is then closed without a
/// word.
pub(super) fn picky(port: u16, more: &str) {
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port");
    for mut stream in listener.incoming().map_while(Result::ok) {
        let mut reader = BufReader::new(stream.try_clone().expect("a clone"));
        let Ok(body) = scripted_model::body(&mut reader) else { continue };
        let asked: Value = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
        let answer = asked["prompt"].as_str().filter(|_| more != "never").map(complete);
        if answer.is_none() && asked.is_object() && more != "closes" {
            std::process::exit(1);
        }
        let (status, answer) = answer.map_or(("500 X", "no".to_owned()), |answer| ("200 OK", answer));
        let body = json!({ "answer": answer }).to_string();
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
    }
    std::process::exit(0);
}

#[test]
fn an_agent_that_another_body_ends_or_whose_server_closes_connections_is_met_all_the_same() {
    for kind in ["picky ends", "picky closes"] {
        let folder = tempfile::tempdir().expect("a folder");
        let made = init(folder.path(), kind, &["--path", "/talk"]);
        made.expect_code(0);
        let scenario = read(folder.path(), "scenarios/agent.yaml");
        assert!(scenario.contains("prompt"), "{kind}: {scenario}");
        ragcheck(folder.path(), kind, &["run"]).expect_code(0);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let outcome = init(folder.path(), "picky never", &["--path", "/talk"]);
    outcome.expect_code(2);
    let words = said(&outcome);
    assert!(
        words.contains("the agent's process ended on POST /talk with {") && words.contains("9 other bodies"),
        "{words}"
    );
}

#[test]
fn a_path_that_redirects_to_itself_with_a_slash_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = init(folder.path(), "slashed", &["--format", "json"]);
    made.expect_code(0);
    let made = crate::schemas::valid("init", &made.stdout);
    assert!(made["agent"]["http"].as_str().is_some_and(|url| url.ends_with("/chat/")), "{made}");
    let scenario = read(folder.path(), "scenarios/agent.yaml");
    assert!(scenario.contains("  http: 'http://127.0.0.1:{{port}}/chat/'\n"), "{scenario}");
}

#[test]
fn what_stands_in_the_way_is_said_with_a_remedy_and_nothing_is_written() {
    let json = "application/json 200 {\"answer\": \"It is 60 months.\"}";
    for (kind, more, parts) in [
        ("ends", &[][..], &["ended before it was ready (exit code 7)", "no such module: langgraf"][..]),
        (
            "elsewhere",
            &[],
            &["the agent listens at port", "does it read the variable PORT?", "pass `{{port}}` in the command"],
        ),
        (&format!("unasked {json}"), &[], &["no request came to the proxy", "OPENAI_BASE_URL, ", "RAGCHECK_MODEL_URL"]),
        ("unasked application/json 404 {}", &[], &["POST to /chat, /api/chat, /query", "name its path with --path"]),
        ("unasked application/json 404 {}", &["--path", "talk"], &["POST to /talk is answered with 404"]),
        (
            "unasked application/json 422 {}",
            &[],
            &["answered with HTTP 422", "the message was sent as one of `message`, `question`", "and in `messages`"],
        ),
        (
            "unasked application/json 307 {}",
            &[],
            &["POST /chat redirects (HTTP 307): name the path itself with --path"],
        ),
        ("unasked application/json 401 {}", &[], &["asks for authentication (HTTP 401)", "target.headers"]),
        (
            "text/html 200 <html>Sign in",
            &[],
            &["(text/html) is neither JSON, events nor plain text; it begins with: <html>Sign in"],
        ),
        ("ends", &["--provider", "http://me:pass@127.0.0.1/v1"], &["holds a login, parameters or a key"]),
        ("ends", &["--provider", "https://llm.example/v1?api_key=abc"], &["holds a login, parameters or a key"]),
        ("ends", &["--provider", "opena"], &["--provider: `opena` is unknown; known: openai, anthropic"]),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let outcome = init(folder.path(), kind, more);
        outcome.expect_code(2);
        let words = said(&outcome);
        for part in parts {
            assert!(words.contains(part), "{kind}: {part}: {}{}", outcome.stdout, outcome.stderr);
        }
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "{kind} left files");
    }
}

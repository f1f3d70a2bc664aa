//! Agents that ragcheck starts itself. The process is this test binary: a test that does nothing unless it is told by a
//! variable what it is.

use super::agent::{Agent, ServiceSettings};
use super::{SCENARIO, Stage, events};
use crate::ports;
use crate::project::Outcome;
use crate::scripted_model;
use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::net::TcpListener;
use std::path::PathBuf;

/// What the process is.
pub(super) const KIND: &str = "RAGCHECK_TEST_AGENT";

/// Runs as an agent when it is started by a scenario; as a test it has nothing to do.
#[test]
#[ignore = "is the process of an agent, which other tests start"]
fn runs_as_an_agent() {
    let Ok(kind) = std::env::var(KIND) else { return };
    let port: u16 = std::env::var("PORT").expect("a port").parse().expect("a number");
    let (kind, more) = kind.split_once(' ').unwrap_or((&kind, ""));
    match kind {
        "http" => {
            std::fs::write(format!("{more}/{}", std::process::id()), "").expect("a file");
            eprintln!("the agent listens, with the key {}", std::env::var("OPENAI_API_KEY").expect("a key"));
            let _agent = Agent::start_at(port, proxy(), ServiceSettings::default());
            loop {
                std::thread::park();
            }
        }
        "mints" => {
            let mints = Some(200_000 + std::process::id());
            let _agent = Agent::start_at(port, proxy(), ServiceSettings { mints, ..ServiceSettings::default() });
            loop {
                std::thread::park();
            }
        }
        "lines" => lines(more),
        "faulty" => super::faulty::agent(port, more),
        "forms" => super::forms::agent(port),
        "broken-tools" => super::broken_tools::agent(more),
        "orders" => super::poisoned::agent(more),
        "bytes" => super::bytes::agent(),
        "sessions" => super::sessions::agent(more),
        "mcp-http" => super::mcp::agent_over_http(more),
        "mcp-agent" => super::mcp::agent(more),
        "mcp-server" => super::mcp::server(more),
        "shelf" => lines_with_shelf(more),
        "shuffled" => super::shuffled::agent(more),
        "providers" => super::providers::agent(),
        #[cfg(target_os = "linux")]
        "leaves" => {
            // A helper in a session of its own, which outlives the process group.
            let mut helper = std::process::Command::new("setsid");
            #[expect(clippy::zombie_processes, reason = "ragcheck has to end it")]
            let helper = helper.args(["sleep", "600"]).spawn().expect("util-linux");
            std::fs::write(format!("{more}/{}", helper.id()), "").expect("a file");
            if std::path::Path::new(more).join("hang").exists() {
                std::io::stdin().lock().read_line(&mut String::new()).expect("a line");
                std::thread::sleep(std::time::Duration::from_mins(2));
            }
            lines("");
        }
        "ends" => {
            eprintln!("no such module: langgraf");
            std::process::exit(7);
        }
        "starting" => super::start::serve(port, more),
        "starting-lines" => super::start::serve_lines(more),
        "silent" => std::thread::sleep(std::time::Duration::from_mins(2)),
        "elsewhere" => {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            eprintln!("Running on http://{}", listener.local_addr().expect("an address"));
            std::thread::sleep(std::time::Duration::from_mins(2));
        }
        "at-ipv6" => {
            let _listener = TcpListener::bind(("::1", port)).expect("the address");
            std::thread::sleep(std::time::Duration::from_mins(2));
        }
        "drops" => turns(port, |_, words| {
            let answer = complete(words);
            if words.contains("crash") {
                eprintln!("process {}: Exception on /chat", std::process::id());
                eprintln!("KeyError: 'shelf'");
                return None;
            }
            Some(("200 OK", json!({"answer": answer}).to_string()))
        }),
        "slashed" => turns(port, |path, words| {
            let moved = !path.ends_with('/');
            Some(if moved {
                ("307 Moved", String::new())
            } else {
                ("200 OK", json!({"answer": complete(words)}).to_string())
            })
        }),
        "structured" => super::structured::agent(port),
        "unreadable" => turns(port, |path, words| {
            // The first path that is tried takes no question, and the reply of the other has no text.
            let good = path == "/ask" && !complete(words).is_empty();
            Some(if good { ("200 OK", json!({"risk": 1})) } else { ("422 X", json!({"error": "no"})) })
                .map(|(status, body)| (status, body.to_string()))
        }),
        "accepts-all" => accepts_all(port),
        "picky" => super::first_contact::picky(port, more),
        "unasked" => {
            let (kind, reply) = more.split_once(' ').expect("a content type");
            answer_with(port, kind, reply, false);
        }
        fixed => answer_with(port, fixed, more, true),
    }
}

pub(super) fn proxy() -> std::net::SocketAddr {
    let base = std::env::var("RAGCHECK_PROXY").expect("the proxy");
    base.trim_start_matches("http://").parse().expect("an address")
}

/// One line in, one line out. `remembers` asks with the number of its turns so far.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the process of an agent talks by its output")]
fn lines(more: &str) {
    println!("a library says hello");
    if more == "embeds" {
        embed(&["The Canopy is guaranteed for 60 months.", "Parcels take 2 days.", "Shelves are of oak."]);
    }
    let mut turns = 0;
    for line in std::io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        turns += 1;
        if asked["message"].as_str().is_some_and(|message| message.contains("crash")) {
            eprintln!("worker-pid {} {}", std::process::id(), std::env::var("SHELF_SECRET").unwrap_or_default());
            eprintln!("Traceback: there is no such shelf");
            std::process::exit(3);
        }
        let again = match more.strip_prefix("dated ") {
            Some(day) => format!(" Today is {day}."),
            None if more == "remembers" => format!(" Turn {turns}."),
            None => String::new(),
        };
        let words = format!("{}{again}", asked["message"].as_str().expect("words"));
        if more == "embeds" || (more == "keeps vectors" && turns == 1) {
            embed(&[&words]);
        }
        let answer = match complete(&words) {
            failed if failed == "nothing" && more == "retries" => complete(&words),
            failed if failed == "nothing" && more == "gives up" => std::process::exit(3),
            answer => answer,
        };
        if more == "checks twice" {
            complete("Is that safe to say?");
        }
        let muddled = asked["message"].as_str().is_some_and(|message| message.contains("muddled"));
        let answer = match more {
            "plainly" => answer,
            "number" => String::from(r#"{"answer": "so", "score": NaN}"#),
            _ if muddled => json!({"text": answer}).to_string(),
            _ => json!({"answer": answer}).to_string(),
        };
        println!("{answer}");
        if more == "twice" {
            println!("{}", json!({"answer": "And once more."}));
        }
        std::io::stdout().flush().expect("flushed");
    }
    std::process::exit(0);
}

/// One completion, with the standard library alone.
pub(super) fn complete(words: &str) -> String {
    let body = ask(&json!({"model": "greenhouse-1", "messages": [{"role": "user", "content": words}]}));
    let body: Value = serde_json::from_str(&body).unwrap_or_else(|_| json!({"error": body}));
    body.pointer("/choices/0/message/content").and_then(Value::as_str).unwrap_or("nothing").to_owned()
}

/// The body of the answer to a request for a completion.
pub(super) fn ask(body: &Value) -> String {
    post("chat/completions", body)
}

/// Embeds texts, as LlamaIndex does: with one vector for each or not at all.
fn embed(texts: &[&str]) {
    let said = post("embeddings", &json!({"model": "greenhouse-e", "input": texts}));
    let said: Value = serde_json::from_str(&said).unwrap_or_default();
    assert_eq!(said["data"].as_array().map(Vec::len), Some(texts.len()), "vectors: {said}");
}

/// The body of the answer to a request at a path of the model's service.
fn post(path: &str, body: &Value) -> String {
    use std::io::Read;
    let body = body.to_string();
    let mut stream = std::net::TcpStream::connect(proxy()).expect("the proxy");
    let head = format!(
        "POST /model/v1/{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        std::env::var("OPENAI_API_KEY").expect("a key"),
        body.len()
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer.split_once("\r\n\r\n").expect("a body").1.to_owned()
}

/// Answers each request by its path and message with a status and a body; with none it closes the connection.
pub(super) fn turns(port: u16, reply: impl Fn(&str, &str) -> Option<(&'static str, String)>) {
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port");
    for mut stream in listener.incoming().map_while(Result::ok) {
        let mut reader = std::io::BufReader::new(stream.try_clone().expect("a clone"));
        let (mut head, mut length) = (String::new(), 0);
        let mut line = String::new();
        while reader.read_line(&mut line).unwrap_or(0) > 2 {
            let lower = line.to_ascii_lowercase();
            length = lower.strip_prefix("content-length:").map_or(length, |n| n.trim().parse().unwrap_or(0));
            head.push_str(&std::mem::take(&mut line));
        }
        let mut body = Vec::new();
        std::io::Read::read_to_end(&mut std::io::Read::take(reader, length), &mut body).expect("a body");
        let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
        let path = head.split(' ').nth(1).unwrap_or_default();
        let Some((status, body)) = asked["message"].as_str().and_then(|words| reply(path, words)) else { continue };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nLocation: {path}/\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
    }
}

/// Answers each request with the same response, `STATUS BODY`, after one completion if it `asks`.
fn answer_with(port: u16, kind: &str, reply: &str, asks: bool) {
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port");
    for stream in listener.incoming() {
        let mut stream = stream.expect("a connection");
        let mut line = String::new();
        if std::io::BufReader::new(stream.try_clone().expect("a clone")).read_line(&mut line).unwrap_or(0) == 0 {
            continue;
        }
        if asks {
            complete("Which title fits?");
        }
        let (status, reply) = reply.split_once(' ').expect("a status");
        let is_latin = kind.ends_with("charset=iso-8859-1");
        let latin = || reply.chars().map(|letter| u8::try_from(letter).expect("one byte")).collect();
        let reply: Vec<u8> = if is_latin { latin() } else { reply.as_bytes().to_vec() };
        let head = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            reply.len()
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&reply)).expect("sent");
    }
}

/// Answers a message at any path after one completion, and an empty request without one.
fn accepts_all(port: u16) {
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port");
    for mut stream in listener.incoming().map_while(Result::ok) {
        let mut reader = std::io::BufReader::new(stream.try_clone().expect("a clone"));
        let Ok(Some(body)) = scripted_model::body(&mut reader) else { continue };
        let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
        let answer = asked["message"].as_str().map_or("Please ask a question.".to_owned(), complete);
        let body = json!({ "answer": answer }).to_string();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length:";
        let _ = stream.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes());
    }
}

/// The shipped project, a simulator, and a scenario whose agent is a process of this kind.
pub(super) fn stage(kind: &str, target: &str) -> Stage {
    let stage = Stage::set();
    let program = std::env::current_exe().expect("this program");
    let target = format!(
        "target:\n  command: ['{}', --ignored, --exact, external::started::runs_as_an_agent, --nocapture]\n  env: {{{KIND}: '{kind}'}}\n{target}",
        program.display()
    );
    let scenario = SCENARIO
        .replace("target: {http: 'http://AGENT/chat', answer: /reply/text}\n", &target)
        .replace("http://AGENT/reset", "http://127.0.0.1:{{port}}/reset")
        .replace("proxy: PROXY\n", "");
    stage.project.write("agent.yaml", &scenario);
    stage
}

const HTTP: &str = "  http: http://127.0.0.1:{{port}}/chat\n  answer: /reply/text\n";

/// A scenario with one case and no roles, for agents that call nothing.
pub(super) fn plain(stage: &Stage, case: &str) {
    let scenario = stage.project.read("agent.yaml");
    let head = scenario.split("reset:").next().expect("a head").to_owned();
    stage.project.write("agent.yaml", &format!("{head}cases:\n{case}"));
}

/// The same with one case, whose answer has to match.
fn warranty(stage: &Stage, pattern: &str) {
    let ask = "How long does the warranty of the Canopy last?";
    plain(stage, &format!("  - {{case: warranty, ask: {ask}, expect: {{answer: {{matches: ['{pattern}']}}}}}}\n"));
}

pub(super) fn run(stage: &Stage, more: &[&str]) -> Outcome {
    stage.project.run(&[&["run", "agent.yaml"], more].concat())
}

#[test]
fn a_started_agent_is_recorded_and_replayed_side_by_side_and_no_process_is_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut stage = stage(&format!("http {}", folder.path().display()), HTTP);
    let recorded = run(&stage, &["--mode", "record", "--jobs", "2"]);
    assert!(recorded.stdout.contains("3 trials: 3 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    let traces = stage.project.traces();
    stage.simulator = None;
    let replayed = run(&stage, &["--jobs", "2"]);
    assert_eq!(replayed.code, recorded.code, "{}{}", replayed.stdout, replayed.stderr);
    assert_eq!(stage.project.traces(), traces, "the same traces, whichever process a trial had");
    assert!(!events(&traces[0], "tool_called").is_empty());
    let pids: Vec<PathBuf> =
        std::fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    assert!(pids.len() >= 3, "two recorders and a replay at least: {pids:?}");
    for pid in pids.iter().filter_map(|pid| pid.file_name()) {
        assert!(!std::path::Path::new("/proc").join(pid).join("exe").exists(), "process {} is left", pid.display());
    }
    let printed = stage.project.read("reports/latest/agent-output.jsonl");
    assert!(printed.contains("the agent listens, with the key ragcheck-placeholder-key"), "{printed}");
}

#[test]
fn an_agent_that_reads_lines_is_tested_and_what_it_prints_besides_is_no_reply() {
    let mut stage = stage("lines", "");
    warranty(&stage, "[a-z]{3}");
    let recorded = run(&stage, &["--mode", "record"]);
    assert!(recorded.stdout.contains("1 trial: 1 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    stage.simulator = None;
    let replayed = run(&stage, &[]);
    assert!(replayed.stdout.contains("1 trial: 1 PASS"), "{}{}", replayed.stdout, replayed.stderr);
}

/// A key of the user.
const KEY: &str = "sk-test-of-the-user-0123456789";

#[test]
fn a_key_of_the_user_is_not_handed_on_to_a_host_that_the_project_file_alone_names() {
    let stage = stage("lines", "");
    warranty(&stage, "[a-z]{3}");
    let settings = stage.project.read("ragcheck.yaml");
    let simulator = format!("http://{}/v1", stage.simulator.as_ref().expect("a simulator").address);
    stage.project.write("ragcheck.yaml", &settings.replace(&simulator, "https://nobody.invalid/v1"));
    let said = |variables: &[(&str, &str)]| {
        let mut command = stage.project.command(&["run", "agent.yaml", "--mode", "live"]);
        command.env("OPENAI_API_KEY", KEY).envs(variables.iter().copied());
        let outcome = Outcome::of(&mut command);
        outcome.expect_code(3);
        outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let refused = "OPENAI_API_KEY is not sent to nobody.invalid";
    let unasked = said(&[]);
    assert!(unasked.contains(refused) && unasked.contains("`--trust OPENAI_API_KEY=nobody.invalid`"), "{unasked}");
    assert!(!unasked.contains("DOWN"), "nothing is down: {unasked}");
    for allowed in [
        &[("RAGCHECK_TRUST", "OPENAI_API_KEY=nobody.invalid")][..],
        &[("OPENAI_BASE_URL", "https://nobody.invalid/v1")],
        // The same account, whose key is in another variable too.
        &[("RAGCHECK_TRUST", "GROQ_API_KEY=nobody.invalid"), ("GROQ_API_KEY", KEY)],
    ] {
        let said = said(allowed);
        assert!(!said.contains(refused), "{allowed:?}: {said}");
    }
}

#[test]
fn an_agent_that_prints_words_in_place_of_json_is_an_error_that_shows_them() {
    let stage = stage("lines plainly", "");
    warranty(&stage, ".");
    stage.project.edit("agent.yaml", "cases:", "limits: {turn: 3s}\ncases:");
    let outcome = run(&stage, &["--mode", "live"]);
    outcome.expect_code(3);
    let said = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in
        ["gave no reply within 3 s (limits.turn). A reply is one line of JSON", "the last line that it printed is:"]
    {
        assert!(said.contains(words), "{said}");
    }
    assert!(said.contains("no usable reply") && !said.contains("DOWN"), "an agent that hangs is no outage: {said}");
}

#[test]
fn a_line_that_is_no_json_is_an_error_at_once_that_quotes_it_and_no_outage() {
    let stage = stage("lines number", "");
    warranty(&stage, ".");
    // Waiting for this limit would take longer than the test may.
    stage.project.edit("agent.yaml", "cases:", "limits: {turn: 3600s}\ncases:");
    let outcome = run(&stage, &["--mode", "live"]);
    outcome.expect_code(3);
    let said = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["is no JSON: ", r#"it begins with: {"answer": "so", "score": NaN}"#, "write the reply as JSON"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains("DOWN") && !said.contains("target.answer"), "{said}");
}

#[test]
fn an_agent_that_asks_its_model_less_than_recorded_is_an_error_with_the_command_that_records_it() {
    let mut stage = stage("lines checks twice", "");
    warranty(&stage, "[a-z]{3}");
    let recorded = run(&stage, &["--mode", "record"]);
    assert!(recorded.stdout.contains("1 trial: 1 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    stage.simulator = None;
    run(&stage, &[]).expect_code(recorded.code);
    stage.project.edit("agent.yaml", "lines checks twice", "lines");
    let outcome = run(&stage, &[]);
    outcome.expect_code(3);
    let said = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "1 recorded completion was not asked for: the agent asks its model less than when it was recorded",
        "NOT RECORDED",
        "ragcheck cassette refresh --missed",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let missed = stage.project.run(&["cassette", "refresh", "--missed", "agent.yaml", "--dry-run"]);
    assert!(missed.stdout.contains("asks less than recorded"), "{}{}", missed.stdout, missed.stderr);
}

#[test]
fn a_miss_by_a_date_alone_proposes_vars_in_a_plain_run_and_one_by_words_does_not() {
    let mut stage = stage("lines dated 2026-11-23", "");
    warranty(&stage, "[a-z]{3}");
    let recorded = run(&stage, &["--mode", "record"]);
    assert!(recorded.stdout.contains("1 trial: 1 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    stage.simulator = None;
    let mut before = "2026-11-23";
    for (now, proposed) in [("2026-11-24", true), ("Wednesday", false)] {
        stage.project.edit("agent.yaml", before, now);
        before = now;
        let outcome = run(&stage, &[]);
        outcome.expect_code(3);
        let said = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("cassette miss"), "{said}");
        let line = r"Today is (\d{4}-\d{2}-\d{2})'}";
        assert_eq!(said.contains(line), proposed, "{said}");
        assert_eq!(said.contains("below `vars:`"), proposed, "{said}");
    }
}

#[test]
fn an_agent_that_remembers_earlier_trials_is_told_when_it_is_recorded() {
    let stage = stage("lines remembers", "");
    plain(
        &stage,
        "  - {case: one, ask: How long does the warranty last?, expect: {answer: {matches: ['[a-z]{3}']}}}\n  - {case: two, ask: How long does the warranty last now?, expect: {answer: {matches: ['[a-z]{3}']}}}\n",
    );
    let recorded = run(&stage, &["--mode", "record", "--jobs", "1"]);
    recorded.expect_code(3);
    for words in
        ["if your agent remembers earlier trials, declare `reset`, or `target.restart: trial`", "1 PASS, 1 ERROR"]
    {
        assert!(recorded.stdout.contains(words), "{}{}", recorded.stdout, recorded.stderr);
    }
    stage.project.edit("agent.yaml", "  env:", "  restart: trial\n  env:");
    let recorded = run(&stage, &["--mode", "record", "--jobs", "1"]);
    assert!(recorded.stdout.contains("2 trials: 2 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    assert_eq!(stage.project.latest("run.json")["restarts"]["declared"], 2);
    assert!(!recorded.stdout.contains("started again"), "what is declared is no news: {}", recorded.stdout);
}

#[test]
fn vectors_that_a_process_keeps_are_no_error_with_any_number_of_jobs_and_a_retrieval_that_is_gone_is_one() {
    let stage = stage("lines keeps vectors", "");
    plain(
        &stage,
        "  - {case: one, ask: How long does the warranty last?, expect: {answer: {matches: ['[a-z]{3}']}}}\n  - {case: two, ask: How long does the warranty last now?, expect: {answer: {matches: ['[a-z]{3}']}}}\n",
    );
    // Both recordings hold the vectors, as those that two processes made.
    stage.project.edit("agent.yaml", "  env:", "  restart: trial\n  env:");
    let recorded = run(&stage, &["--mode", "record"]);
    assert!(recorded.stdout.contains("2 trials: 2 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    stage.project.edit("agent.yaml", "  restart: trial\n", "");
    for jobs in ["1", "2"] {
        let kept = run(&stage, &["--jobs", jobs]);
        assert!(kept.stdout.contains("2 trials: 2 PASS"), "{jobs}: {}{}", kept.stdout, kept.stderr);
    }
    stage.project.edit("agent.yaml", "lines keeps vectors", "lines");
    for jobs in ["1", "2"] {
        let gone = run(&stage, &["--jobs", jobs]);
        gone.expect_code(3);
        for words in ["1 PASS, 1 ERROR", "no request to `embeddings` came to the proxy"] {
            assert!(gone.stdout.replace("\n  ", " ").contains(words), "{jobs}: {}{}", gone.stdout, gone.stderr);
        }
    }
}

#[test]
fn a_crash_fails_its_turn_with_its_cause_and_not_with_other_lines_and_the_next_trial_has_a_new_process() {
    let stage = stage("lines", "");
    plain(
        &stage,
        "  - {case: crash, ask: Please crash., asks_nothing: true, expect: {answer: {matches: ['[a-z]{3}']}}}\n  - {case: other, ask: How long does the warranty last?, expect: {answer: {matches: ['[a-z]{3}']}}}\n",
    );
    let secret = "r8Kd93mQzLx82TnPw7K";
    stage.project.edit("agent.yaml", "  env: {", &format!("  env: {{SHELF_SECRET: {secret}, "));
    let outcome = run(&stage, &["--mode", "live", "--jobs", "1"]);
    outcome.expect_code(1);
    assert!(outcome.stdout.contains("1 PASS, 1 FAIL"), "{}{}", outcome.stdout, outcome.stderr);
    for (name, bytes) in stage.project.report(&stage.project.newest()) {
        assert!(!String::from_utf8_lossy(&bytes).contains(secret), "{name} has a secret of `target.env`");
    }
    let traces = stage.project.traces();
    let evaluated = stage.project.latest("run.json");
    assert_eq!(evaluated["restarts"], json!({"crashed": 1, "timed_out": 0, "trial_error": 0, "declared": 0}));
    let told = "the agent's process had to be started again 1 time: it crashed in 1 trial";
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&outcome.stdout).contains(told), "{}", outcome.stdout);
    let page = stage.project.read(&format!("{}/index.html", stage.project.newest()));
    assert!(words(&page).contains("had to be started again 1 time"), "it is on the page, too");
    let failed = events(&traces[0], "turn_ended")[0].to_string();
    assert!(failed.contains("exit code 3") && failed.contains("there is no such shelf"), "{failed}");
    assert!(!failed.contains("worker-pid"), "equal runs have equal traces: {failed}");
    let shown = stage.project.run(&["show", "agent/crash/external.base.1"]);
    assert!(shown.stdout.contains("printed by the agent's process (agent-output.jsonl)"), "{}", shown.stdout);
    assert!(shown.stdout.contains("    Traceback: there is no such shelf"), "{}", shown.stdout);
}

#[test]
fn a_crash_before_the_first_request_is_an_error_with_the_crash_as_its_cause() {
    let stage = stage("lines", "");
    plain(&stage, "  - {case: crash, ask: Please crash., expect: {answer: {matches: ['[a-z]{3}']}}}\n");
    let outcome = run(&stage, &["--mode", "live"]);
    outcome.expect_code(3);
    let said = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let place = |words: &str| said.find(words).unwrap_or_else(|| panic!("{words} is missing: {said}"));
    let cause = place("The agent's process ended in this turn (exit code 3): Traceback: there is no such shelf");
    assert!(cause < place("no request came: the agent asked nothing here"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_helper_in_a_session_of_its_own_ends_with_the_agent_that_started_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let stage = stage(&format!("leaves {}", folder.path().display()), "");
    plain(
        &stage,
        "  - {case: one, ask: How long does the warranty last?, expect: {answer: {matches: ['[a-z]{3}']}}}\n",
    );
    let outcome = run(&stage, &["--mode", "live"]);
    assert!(outcome.stdout.contains("1 trial: 1 PASS"), "{}{}", outcome.stdout, outcome.stderr);
    let helpers: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").filter_map(Result::ok).collect();
    assert_eq!(helpers.len(), 1);
    for helper in helpers {
        let process = std::path::Path::new("/proc").join(helper.file_name());
        // A signal may take a moment on a busy machine.
        let left = (0..50).all(|_| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            process.join("exe").exists()
        });
        assert!(!left, "{} is left", process.display());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_replay_that_is_told_to_end_leaves_no_process_of_the_agent_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let stage = stage(&format!("leaves {}", folder.path().display()), "");
    plain(
        &stage,
        "  - {case: one, ask: How long does the warranty last?, expect: {answer: {matches: ['[a-z]{3}']}}}\n",
    );
    let recorded = run(&stage, &["--mode", "record"]);
    assert!(recorded.stdout.contains("1 trial: 1 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    std::fs::write(folder.path().join("hang"), "").expect("a file");
    let helpers = || {
        let names = std::fs::read_dir(folder.path()).expect("a folder").filter_map(Result::ok);
        names.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).collect::<Vec<_>>()
    };
    let before = helpers().len();
    let mut command = stage.command(&[]);
    let replay = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let replay = replay.spawn().expect("it runs");
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while helpers().len() == before && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Outcome::of(std::process::Command::new("kill").args(["-TERM", &replay.id().to_string()])).expect_code(0);
    let output = replay.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("(SIGTERM)"), "{told}");
    assert_eq!(helpers().len(), before + 1);
    for helper in helpers() {
        assert!(!std::path::Path::new(&format!("/proc/{helper}/exe")).exists(), "{helper} is left");
    }
}

#[test]
fn a_server_at_the_other_loopback_address_alone_is_an_error_that_says_so_at_once() {
    if TcpListener::bind(("::1", 0)).is_err() {
        eprintln!("skipped: there is no IPv6 here");
        return;
    }
    let stage = stage("at-ipv6", "  http: http://127.0.0.1:{{port}}/chat\n");
    let outcome = run(&stage, &["--mode", "live", "--jobs", "1"]);
    outcome.expect_code(3);
    let said = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(said.contains("the agent listens at [::1]:") && said.contains("http://[::1]:{{port}}"), "{said}");
}

#[test]
fn a_connection_that_is_closed_without_a_reply_fails_its_turn_with_the_cause_live_recorded_and_replayed() {
    let mut stage = stage("drops", "  http: http://127.0.0.1:{{port}}/chat\n");
    plain(
        &stage,
        "  - {case: crash, ask: Please crash., expect: {answer: {matches: ['[a-z]{3}']}}}\n  - {case: other, ask: How long does the warranty last?, expect: {answer: {matches: ['[a-z]{3}']}}}\n",
    );
    for mode in ["live", "record", "replay"] {
        if mode == "replay" {
            stage.simulator = None;
        }
        let outcome = run(&stage, &["--mode", mode, "--jobs", "1"]);
        outcome.expect_code(1);
        assert!(outcome.stdout.contains("1 PASS, 1 FAIL"), "{mode}: {}{}", outcome.stdout, outcome.stderr);
        let said = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("sent no whole reply (it closed the connection): KeyError: 'shelf'"), "{mode}: {said}");
        let failed = &stage.project.traces()[0];
        assert_eq!(events(failed, "turn_ended")[0]["outcome"]["failed"]["kind"], "no_reply", "{failed}");
        assert!(stage.project.latest("run.json")["restarts"].is_null(), "the process goes on");
    }
}

#[test]
fn a_line_that_follows_a_reply_is_no_reply_to_the_next_turn() {
    let stage = stage("lines twice", "");
    plain(
        &stage,
        "  - case: two\n    turns:\n      - {ask: How long does the warranty last?, expect: {answer: {matches: ['[a-z]{3}']}}}\n      - {ask: And how long is that?, expect: {answer: {matches: ['[a-z]{3}']}}}\n  - {case: then, ask: How long does the warranty last?, expect: {answer: {matches: ['[a-z]{3}']}}}\n",
    );
    let outcome = run(&stage, &["--mode", "record", "--jobs", "1"]);
    assert!(outcome.stdout.contains("2 trials: 2 PASS"), "{}{}", outcome.stdout, outcome.stderr);
    let traces = stage.project.traces();
    let answers: Vec<&Value> = traces.iter().flat_map(|trace| events(trace, "turn_ended")).collect();
    assert_eq!(answers.len(), 3);
    assert!(!answers.iter().any(|ended| ended.to_string().contains("And once more.")), "{answers:?}");
    let printed = stage.project.read("reports/latest/agent-output.jsonl");
    assert!(printed.contains("And once more."), "it is kept with what the process printed: {printed}");
}

#[test]
fn an_agent_that_does_not_start_is_an_error_with_its_last_lines_said_once() {
    let stage = stage("ends", HTTP);
    let outcome = run(&stage, &["--mode", "live"]);
    outcome.expect_code(3);
    for words in ["ended before it was ready (exit code 7)", "no such module: langgraf", "3 trials: 3 ERROR"] {
        assert!(outcome.stdout.contains(words), "{words}: {}{}", outcome.stdout, outcome.stderr);
    }
    stage.project.edit("agent.yaml", "command: ['", "command: ['no-such-");
    let outcome = run(&stage, &["--mode", "live"]);
    outcome.expect_code(3);
    assert!(outcome.stdout.contains("the agent cannot be started"), "{}", outcome.stdout);
}

#[test]
fn replies_of_other_kinds_are_read_and_set_up_mistakes_are_errors() {
    for (kind, reply, words) in [
        ("text/plain", "200 It is 60 months.", "1 trial: 1 PASS"),
        ("text/event-stream", "200 data: {\"answer\": \"It is 60 months.\"}\n\n", "1 trial: 1 PASS"),
        ("text/html", "200 It is 60 months.", "1 trial: 1 PASS"),
        ("text/html", "200 <html>Sign in", "it begins with: <html>Sign in"),
        ("application/json", "401 {}", "asks for authentication (HTTP 401)"),
        ("application/json", "302 {}", "redirects"),
        ("application/json", "500 {}", "1 trial: 1 FAIL"),
    ] {
        let stage = stage(
            &format!("{kind} {reply}").replace('\n', "\\n").replace('\'', "''"),
            "  http: http://127.0.0.1:{{port}}/chat\n",
        );
        if reply.contains('\n') {
            let scenario = stage.project.read("agent.yaml");
            let quoted =
                format!("{{{KIND}: \"{}\"}}", format!("{kind} {reply}").replace('"', "\\\"").replace('\n', "\\n"));
            let bare = format!("{{{KIND}: '{}'}}", format!("{kind} {reply}").replace('\n', "\\n"));
            stage.project.write("agent.yaml", &scenario.replace(&bare, &quoted));
        }
        plain(&stage, "  - {case: warranty, ask: How long?, expect: {answer: {contains: [60 months]}}}\n");
        let outcome = run(&stage, &["--mode", "live"]);
        assert!(outcome.stdout.contains(words), "{kind} {reply}: {}{}", outcome.stdout, outcome.stderr);
    }
}

#[test]
fn replies_of_which_none_can_be_read_are_an_error_of_the_set_up_and_one_among_others_a_fail() {
    // A wrong pointer: nothing in the whole run can be read.
    let stage = stage("lines", "  answer: /reply/text\n");
    let two = "  - {case: warranty, ask: How long?, expect: {answer: {contains: [60 months]}}}\n  - {case: valve, ask: How many?, expect: {answer: {contains: [ohms]}}}\n";
    plain(&stage, two);
    let outcome = run(&stage, &["--mode", "live"]);
    outcome.expect_code(3);
    let said = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("2 trials: 2 ERROR"), "{said}");
    assert!(
        said.contains("`target.answer` is `/reply/text` in agent.yaml") && said.contains("it begins with:"),
        "{said}"
    );
    let scored = stage.project.run(&["score", "reports/latest"]);
    scored.expect_code(3);
}

#[test]
fn a_reply_that_cannot_be_read_among_others_is_a_fail_whatever_comes_first_and_reproduced_as_one() {
    let read =
        "  - {case: warranty, ask: How long is the warranty?, expect: {answer: {matches: ['[a-z]{3}']}}}\n".to_owned();
    let unread = read.replace("warranty, ask: How", "unclear, ask: Something muddled. How");
    for cases in [format!("{read}{unread}"), format!("{unread}{read}")] {
        let mut stage = stage("lines", "");
        plain(&stage, &cases);
        let outcome = run(&stage, &["--mode", "record"]);
        outcome.expect_code(1);
        assert!(outcome.stdout.contains("2 trials: 1 PASS, 1 FAIL"), "{}{}", outcome.stdout, outcome.stderr);
        stage.simulator = None;
        run(&stage, &["--report", "markdown=out/report.md"]).expect_code(1);
        let text = stage.project.read("out/report.md");
        let line = text.split("Reproduce it:\n\n```sh\n").nth(1).and_then(|rest| rest.lines().next());
        let words: Vec<&str> = line.unwrap_or_else(|| panic!("{text}")).split(' ').skip(1).collect();
        let again = stage.project.run(&words);
        assert_eq!(again.code, 1, "{words:?}: {}{}", again.stdout, again.stderr);
    }
}

#[test]
fn a_run_until_decided_of_which_no_reply_can_be_read_is_an_error_and_its_recordings_are_no_draws() {
    let stage = stage("lines", "");
    let case = "  - {case: one, ask: Something muddled?, expect: {answer: {matches: ['[a-z]{3}']}}}\n";
    plain(&stage, case);
    let until = ["--mode", "record", "--until-decided", "--repeat", "3"];
    let outcome = run(&stage, &until);
    outcome.expect_code(3);
    assert!(outcome.stdout.contains("reply not read") && !outcome.stdout.contains("FAIL"), "{}", outcome.stdout);
    stage.project.run(&["score", "reports/latest"]).expect_code(3);
    let recording = stage.project.read("fixtures/cassettes/agent/one/external.base.1.yaml");
    assert!(recording.contains("verdict: \"ERROR\"") && !recording.contains("FAIL"), "{recording}");
    // Recorded again, it is replaced and no draw is kept.
    let again = run(&stage, &["--mode", "record", "--repeat", "3", "--failed"]);
    again.expect_code(3);
    assert!(!again.stdout.contains("first draws count"), "{}", again.stdout);
    assert_eq!(stage.project.read("fixtures/cassettes/agent/one/external.base.1.yaml").matches("take: 2").count(), 2);

    // As soon as one can be read, the others count as what they are.
    let other = "  - {case: two, ask: How long is the warranty?, expect: {answer: {matches: ['[a-z]{3}']}}}\n";
    let both = format!("{}{other}", stage.project.read("agent.yaml"));
    stage.project.write("agent.yaml", &both);
    let mixed = run(&stage, &["--mode", "live", "--until-decided", "--repeat", "3"]);
    mixed.expect_code(1);
    stage.project.run(&["score", "reports/latest"]).expect_code(1);
}

/// A server that counts its requests and answers each with the same text; dropped, it is gone.
pub(super) struct Shelf {
    pub(super) address: std::net::SocketAddr,
    pub(super) asked: std::sync::Arc<std::sync::atomic::AtomicU32>,
}

impl Shelf {
    pub(super) fn open(status: &'static str) -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (address, asked) = (listener.local_addr().expect("an address"), std::sync::Arc::new(AtomicU32::new(0)));
        let count = std::sync::Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut reader = std::io::BufReader::new(stream.try_clone().expect("a clone"));
                scripted_model::body(&mut reader).expect("a body");
                let number = count.fetch_add(1, Ordering::SeqCst);
                let body = format!("{{\"books\": {number}}}");
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nX-Shelf: {number}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                let mut stream = stream;
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
            }
        });
        Self { address, asked }
    }
}

/// One exchange over plain sockets: the status and the body.
pub(super) fn exchange(at: &str, head: &str, body: &[u8]) -> (u16, String) {
    use std::io::Read;
    let (host, path) = at.trim_start_matches("http://").split_once('/').map_or((at, ""), |(host, path)| (host, path));
    let mut stream = std::net::TcpStream::connect(host).expect("a server");
    let (method, headers) = head.split_once('\n').unwrap_or((head, ""));
    let request = format!(
        "{} /{path}{} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n",
        method.split(' ').next().expect("a method"),
        method.split(' ').nth(1).unwrap_or_default(),
        body.len()
    );
    stream.write_all(request.as_bytes()).and_then(|()| stream.write_all(body)).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}

/// One line in, one line out; each turn asks a service of its own in three ways.
#[expect(clippy::print_stdout, reason = "the process of an agent talks by its output")]
fn lines_with_shelf(more: &str) {
    let shelf = std::env::var("SHELF_URL").expect("the service");
    for (turn, line) in std::io::stdin().lock().lines().enumerate() {
        let asked: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let boundary = format!("cut-{}-{turn}", std::process::id());
        let form =
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\nbooks\r\n--{boundary}--\r\n");
        let kind = format!(
            "POST /upload\nContent-Type: multipart/form-data; boundary={boundary}\r\nX-Token: shelf-secret-0815-abcdef\r\n"
        );
        let query = json!({"text": "books", "login": std::env::var("SHELF_PASS").unwrap_or_default()}).to_string();
        let ask = || {
            let found = [
                exchange(&shelf, "GET /heartbeat?v=2", b""),
                exchange(&shelf, "POST /query\nContent-Type: application/json\r\n", query.as_bytes()),
                exchange(&shelf, &kind, form.as_bytes()),
            ];
            found.map(|(status, body)| format!("{status} {body}"))
        };
        // An agent that went around the proxy would get its answers there.
        let seen = if more == "away" { vec!["200 {\"books\": 2}".to_owned()] } else { ask().to_vec() };
        println!("{}", json!({"level": 30, "time": 1_795_000_000_000_u64, "msg": "asked the shelf"}));
        let said = complete(asked["message"].as_str().expect("words"));
        println!("{}", json!({"answer": format!("{} {said}", seen.join(" "))}));
        std::io::stdout().flush().expect("flushed");
    }
    std::process::exit(0);
}

#[test]
fn any_service_is_recorded_and_matched_by_method_path_and_body_and_none_of_its_headers_is_kept() {
    let shelf = Shelf::open("200 OK");
    let mut stage = stage("shelf", "");
    plain(
        &stage,
        "  - {case: warranty, ask: How long does the warranty last?, expect: {answer: {contains: ['200 {\"books\": 2}']}}}\n",
    );
    let services = format!("services:\n  shelf: {{http: 'http://{}/v1', env: SHELF_URL}}\ncases:", shelf.address);
    stage.project.edit("agent.yaml", "cases:", &services);
    let secret = "shelf0Pass1word2of3day";
    let with_secret = |stage: &Stage, more: &[&str]| {
        let mut command = stage.project.command(&[&["run", "agent.yaml"], more].concat());
        Outcome::of(command.env("SHELF_PASS", secret))
    };
    let recorded = with_secret(&stage, &["--mode", "record"]);
    assert!(recorded.stdout.contains("1 trial: 1 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    let lane = stage.project.read("fixtures/cassettes/agent/warranty/external.base.1.yaml");
    assert!(!lane.contains(secret) && lane.contains("login: \"[redacted"), "{lane}");
    for words in ["/heartbeat?v=2", "/query", "ragcheck-boundary"] {
        assert!(lane.contains(words), "{words}: {lane}");
    }
    assert!(!lane.contains("shelf-secret") && !lane.contains("cut-"), "{lane}");
    let traces = stage.project.traces();
    let requested: Vec<String> = events(&traces[0], "requested")
        .iter()
        .map(|one| format!("{} {} {}", one["service"], one["method"], one["path"]).replace('"', ""))
        .collect();
    assert_eq!(requested, ["shelf GET /heartbeat", "shelf POST /query", "shelf POST /upload"], "{}", traces[0]);
    assert_eq!(traces[0]["version"], 6);
    let shown = stage.project.run(&["show", "agent/warranty/external.base.1"]);
    assert!(shown.stdout.contains("request to `shelf`: GET /heartbeat: HTTP 200"), "{}", shown.stdout);
    stage.simulator = None;
    let asked = shelf.asked.load(std::sync::atomic::Ordering::SeqCst);
    let replayed = with_secret(&stage, &[]);
    assert!(replayed.stdout.contains("1 trial: 1 PASS"), "{}{}", replayed.stdout, replayed.stderr);
    assert_eq!(shelf.asked.load(std::sync::atomic::Ordering::SeqCst), asked, "a replay asks nobody");

    // It answers the same, and its requests no longer pass the proxy.
    stage.project.edit("agent.yaml", "'shelf'", "'shelf away'");
    let away = with_secret(&stage, &[]);
    away.expect_code(3);
    let words = "no request to `shelf` came to the proxy; 3 recorded requests were not asked for";
    assert!(away.stdout.replace("\n  ", " ").contains(words), "{}{}", away.stdout, away.stderr);
}

#[test]
fn a_declared_service_that_is_down_is_an_outage_and_a_404_is_an_answer() {
    for (status, words) in
        [("503 Down", "1 trial: 1 ERROR"), ("429 Slow", "1 trial: 1 ERROR"), ("404 None", "1 trial: 1 PASS")]
    {
        let shelf = Shelf::open(status);
        let stage = stage("shelf", "");
        plain(
            &stage,
            "  - {case: warranty, ask: How long does the warranty last?, expect: {answer: {contains: [books]}}}\n",
        );
        let services = format!("services:\n  shelf: {{http: 'http://{}', env: SHELF_URL}}\ncases:", shelf.address);
        stage.project.edit("agent.yaml", "cases:", &services);
        let outcome = run(&stage, &["--mode", "live"]);
        assert!(outcome.stdout.contains(words), "{status}: {}{}", outcome.stdout, outcome.stderr);
    }
}

#[test]
fn an_agent_with_one_port_has_one_process_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut stage = stage(&format!("http {}", folder.path().display()), HTTP);
    let port = ports::free();
    let scenario = stage.project.read("agent.yaml").replace("{{port}}", &port.to_string());
    stage.project.write("agent.yaml", &scenario);
    let recorded = run(&stage, &["--mode", "record", "--jobs", "2"]);
    assert!(recorded.stdout.contains("3 trials: 3 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    stage.simulator = None;
    let replayed = run(&stage, &["--jobs", "2"]);
    assert!(replayed.stdout.contains("3 trials: 3 PASS"), "{}{}", replayed.stdout, replayed.stderr);
}

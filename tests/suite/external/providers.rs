//! An agent that asks several providers: two of the same API, one of another. The agent is this test binary, as in
//! `started`.

use super::events;
use super::started::{KIND, exchange};
use crate::project::{Outcome, Project};
use serde_json::{Value, json};
use std::io::{BufRead, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// Names in [`PLAN`] what the agent asks in a turn, in order.
const PLAN: &str = "RAGCHECK_TEST_PLAN";
const CLAUDES_KEY: &str = "sk-ant-agents-own-0123456789";

/// One line in, one line out. Each turn asks what the plan says: `main` and `fast` get the same request.
#[expect(clippy::print_stdout, reason = "the process of an agent talks by its output")]
pub(super) fn agent() {
    let base = |name: &str| std::env::var(name).expect(name);
    let plan = std::env::var(PLAN).expect("a plan");
    for line in std::io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let messages = json!([{"role": "user", "content": asked["message"]}]);
        let chat = json!({"model": "m-1", "messages": messages}).to_string();
        let mut said = Vec::new();
        for step in plan.split(' ') {
            let (url, head, body) = match step {
                "main" => (base("OPENAI_BASE_URL"), "POST /chat/completions\n".to_owned(), chat.clone()),
                "fast" => (base("FAST_URL"), "POST /chat/completions\n".to_owned(), chat.clone()),
                _ => {
                    let head =
                        format!("POST /v1/messages\nx-api-key: {CLAUDES_KEY}\r\nanthropic-version: 2023-06-01\r\n");
                    let prompt = step.trim_start_matches("claude");
                    let body = json!({"model": "claude-x", "max_tokens": 9, "system": prompt, "messages": messages});
                    (base("ANTHROPIC_BASE_URL"), head, body.to_string())
                }
            };
            let (_, answer) = exchange(&url, &head, body.as_bytes());
            let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
            let texts = [&answer["choices"][0]["message"]["content"], &answer["content"][0]["text"]];
            said.push(texts.into_iter().find_map(Value::as_str).unwrap_or("nothing").to_owned());
        }
        println!("{}", json!({"answer": said.join("; ")}));
        std::io::stdout().flush().expect("flushed");
    }
    std::process::exit(0);
}

/// A provider that says its name, in both APIs.
struct Provider {
    address: SocketAddr,
    asked: Arc<AtomicU32>,
    heads: Arc<Mutex<String>>,
}

impl Provider {
    fn open(name: &'static str, status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (asked, heads) = (Arc::<AtomicU32>::default(), Arc::<Mutex<String>>::default());
        let (count, kept) = (Arc::clone(&asked), Arc::clone(&heads));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut reader = std::io::BufReader::new(stream.try_clone().expect("a clone"));
                let (mut head, mut line, mut length) = (String::new(), String::new(), 0);
                while reader.read_line(&mut line).unwrap_or(0) > 2 {
                    let lower = line.to_ascii_lowercase();
                    length = lower.strip_prefix("content-length:").map_or(length, |n| n.trim().parse().unwrap_or(0));
                    head.push_str(&lower);
                    line.clear();
                }
                std::io::copy(&mut Read::take(reader, length), &mut std::io::sink()).expect("a body");
                count.fetch_add(1, Ordering::SeqCst);
                let said = format!("{name} says 14");
                let body = if head.contains("/messages") {
                    json!({"id": "m", "type": "message", "role": "assistant", "model": "claude-x", "stop_reason": "end_turn",
                        "content": [{"type": "text", "text": said}], "usage": {"input_tokens": 100, "output_tokens": 10}})
                } else {
                    json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m-1-2024-07-18",
                        "choices": [{"index": 0, "finish_reason": "stop",
                            "message": {"role": "assistant", "content": said}}],
                        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}})
                };
                kept.lock().expect("heads").push_str(&head);
                let body = body.to_string();
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                let mut stream = stream;
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
            }
        });
        Self { address, asked, heads }
    }
}

/// A project whose agent asks three providers.
struct Trio {
    project: Project,
    /// `main`, `fast` and `claude`.
    providers: [Provider; 3],
}

impl Trio {
    fn set(status: [&'static str; 3], services: &str) -> Self {
        let [main, fast, claude] = status;
        let providers = [Provider::open("main", main), Provider::open("fast", fast), Provider::open("claude", claude)];
        let [main, fast, claude] = providers.each_ref().map(|one| one.address);
        let project = Project::empty();
        project.write(
            "ragcheck.yaml",
            &format!(
                "scenarios: [trio.yaml]\ncassettes: cassettes\nreports: reports\nproviders:\n  \
                 main: {{dialect: openai-chat, base_url: 'http://{main}/v1', key: TRIO_MAIN_KEY}}\n  \
                 fast: {{dialect: openai-chat, base_url: 'http://{fast}/v1'}}\n  \
                 claude: {{dialect: anthropic-messages, base_url: 'http://{claude}'}}\n\
                 prices:\n  main/m-1: {{input: 1, output: 1}}\n  fast/m-1: {{input: 100, output: 100}}\n  \
                 claude/claude-x: {{input: 10, output: 10}}\n"
            ),
        );
        let program = std::env::current_exe().expect("this program");
        project.write(
            "trio.yaml",
            &format!(
                "scenario: trio\nflow: external\n{services}target:\n  \
                 command: ['{}', --ignored, --exact, external::started::runs_as_an_agent, --nocapture]\n  \
                 env: {{{KIND}: providers, {PLAN}: main fast claude}}\n\
                 cases:\n  - case: one\n    ask: How long does a refund take?\n    expect:\n      \
                 answer: {{contains: [main says 14, fast says 14, claude says 14]}}\n      cost: {{at_most: 0.012211}}\n",
                program.display()
            ),
        );
        Self { project, providers }
    }

    fn run(&self, more: &[&str]) -> Outcome {
        let mut command = self.project.command(&["run", "--no-history", "--trust", "TRIO_MAIN_KEY=127.0.0.1"]);
        Outcome::of(command.args(more).env("TRIO_MAIN_KEY", "sk-main-of-the-project-4711"))
    }

    fn asked(&self) -> u32 {
        self.providers.iter().map(|one| one.asked.load(Ordering::SeqCst)).sum()
    }
}

const SERVICES: &str = "services:\n  model: {provider: main}\n  fast: {provider: fast, env: FAST_URL}\n  \
                        claude: {provider: claude, name: claude-x}\n";

const UP: [&str; 3] = ["200 OK"; 3];

#[test]
fn each_provider_of_an_agent_is_recorded_replayed_priced_and_redacted_by_itself() {
    let trio = Trio::set(UP, SERVICES);
    let recorded = trio.run(&["--mode", "record"]);
    assert!(recorded.stdout.contains("1 trial: 1 PASS"), "{}{}", recorded.stdout, recorded.stderr);
    let asked = trio.asked();
    let replayed = trio.run(&[]);
    assert!(replayed.stdout.contains("1 trial: 1 PASS"), "{}{}", replayed.stdout, replayed.stderr);
    assert_eq!(trio.asked(), asked, "a replay asks nobody");
    let trace = &trio.project.traces()[0];
    let services: Vec<Value> = events(trace, "model_called").iter().map(|called| called["service"].clone()).collect();
    assert_eq!(services, [Value::Null, json!("fast"), json!("claude")], "{trace}");
    let from = trace["evidence"]["recorded_from"].as_str().expect("an origin");
    for part in ["main m-1 (model)", "fast m-1 (fast)", "claude claude-x (claude)"] {
        assert!(from.contains(part), "{from}");
    }
    // 110 tokens of each, at 1, 100 and 10 dollars for a million.
    trio.project.edit("trio.yaml", "at_most: 0.012211", "at_most: 0.012209");
    let dear = trio.run(&[]);
    assert!(dear.stdout.contains("it cost $0.0122"), "{}{}", dear.stdout, dear.stderr);

    let shown = trio.project.run(&["show", "trio/one/external.base.1"]);
    assert!(shown.stdout.contains("model of `claude`") && shown.stdout.contains("model of `fast`"), "{}", shown.stdout);
    let lane = trio.project.read("cassettes/trio/one/external.base.1.yaml");
    for service in ["service: \"model\"", "service: \"fast\"", "service: \"claude\""] {
        assert!(lane.contains(service), "{service}: {lane}");
    }
    for secret in [CLAUDES_KEY, "sk-main-of-the-project"] {
        assert!(!lane.contains(secret) && !trace.to_string().contains(secret), "{secret}");
    }
    let heads = trio.providers.each_ref().map(|one| one.heads.lock().expect("heads").clone());
    assert!(heads[0].contains("bearer sk-main-of-the-project-4711"), "the key of the project file: {}", heads[0]);
    assert!(heads[2].contains(CLAUDES_KEY), "the agent's own key: {}", heads[2]);
    assert!(!heads[1].contains("sk-"), "no key goes to another provider: {}", heads[1]);
}

#[test]
fn equal_requests_to_two_providers_get_the_answers_of_each_in_any_order_and_a_miss_names_its_service() {
    let trio = Trio::set(UP, SERVICES);
    trio.run(&["--mode", "record"]).expect_code(0);
    trio.project.edit("trio.yaml", "main fast claude", "fast main claude");
    let turned = trio.run(&[]);
    assert!(turned.stdout.contains("1 trial: 1 PASS"), "{}{}", turned.stdout, turned.stderr);
    let answer = events(&trio.project.traces()[0], "turn_ended")[0].to_string();
    assert!(answer.contains("fast says 14; main says 14; claude says 14"), "{answer}");

    trio.project.edit("trio.yaml", "fast main claude", "main fast claude-briefly");
    let missed = trio.run(&[]);
    missed.expect_code(3);
    assert!(missed.stdout.contains("POST /v1/messages: system prompt changed"), "{}", missed.stdout);
    trio.project.edit("trio.yaml", "main fast claude-briefly", "main main fast claude");
    let missed = trio.run(&[]);
    missed.expect_code(3);
    assert!(missed.stdout.contains("recorded 1 time(s), all used"), "{}", missed.stdout);
}

#[test]
fn an_outage_of_each_provider_is_an_error_with_its_address() {
    for down in 0..3 {
        let mut status = UP;
        status[down] = "503 Down";
        let trio = Trio::set(status, SERVICES);
        let outcome = trio.run(&["--mode", "live"]);
        outcome.expect_code(3);
        let row = &trio.project.latest("run.json")["trials"][0];
        let error = row["error"].as_str().unwrap_or_default();
        let address = trio.providers[down].address.to_string();
        assert!(error.contains("(HTTP 503)") && error.contains(&address), "{down}: {error}");
    }
}

#[test]
fn a_key_that_may_not_be_sent_is_found_by_check_for_each_provider_service() {
    let trio = Trio::set(UP, SERVICES);
    let claude = "  claude: {dialect: anthropic-messages, ";
    trio.project.edit("ragcheck.yaml", claude, &format!("{claude}key: TRIO_CLAUDE_KEY, "));
    let checked = trio.project.run(&["check"]);
    let said = format!("{}{}", checked.stdout, checked.stderr);
    assert!(said.contains("TRIO_CLAUDE_KEY is not sent to 127.0.0.1:"), "{said}");
    assert!(said.contains("TRIO_MAIN_KEY is not sent to 127.0.0.1:"), "{said}");
    let outcome = trio.run(&["--mode", "live"]);
    outcome.expect_code(3);
    assert!(outcome.stdout.contains("TRIO_CLAUDE_KEY"), "{}{}", outcome.stdout, outcome.stderr);
}

#[test]
fn model_and_search_are_short_forms_and_mistakes_in_services_are_found() {
    let short = "model: {provider: main, name: m-1}\nservices:\n  fast: {provider: fast, env: FAST_URL}\n  claude: {provider: claude}\n";
    let trio = Trio::set(UP, short);
    let outcome = trio.run(&["--mode", "live"]);
    assert!(outcome.stdout.contains("1 trial: 1 PASS"), "{}{}", outcome.stdout, outcome.stderr);
    for (services, words) in [
        ("services: {model: {provider: mian}}\n", "unknown provider"),
        ("services: {model: {provider: main}, claude: {}}\n", "a service has one of `http`, `mcp` and `provider`"),
        (
            "services: {model: {provider: main}, fast: {provider: fast, http: 'http://127.0.0.1:9'}}\n",
            "a service has one of `http`, `mcp` and `provider`",
        ),
        ("services: {claude: {provider: claude}}\n", "no service is named `model`"),
        (
            "model: {provider: main, name: m-1}\nservices: {model: {provider: main}}\n",
            "`model:` declares this service already",
        ),
        ("services: {model: {http: 'http://127.0.0.1:9'}}\n", "`model` is a provider of the project file"),
        ("services: {model: {provider: main}, search: {provider: fast}}\n", "this provider is not a search service"),
        ("services: {model: {provider: main}, agent: {provider: fast}}\n", "`agent` is already a service of ragcheck"),
        (
            "services: {model: {provider: main, env: A}, fast: {provider: fast, env: A}}\n",
            "`A` has the base URL of `fast` already",
        ),
        ("", "the key `model` is missing"),
    ] {
        let scenario = trio.project.read("trio.yaml");
        let rest = scenario.split_once("target:").expect("a target").1;
        trio.project.write("trio.yaml", &format!("scenario: trio\nflow: external\n{services}target:{rest}"));
        let checked = trio.project.run(&["check"]);
        let said = format!("{}{}", checked.stdout, checked.stderr);
        assert!(checked.code == 2 && said.contains(words), "{services}: {said}");
    }
}

#[test]
fn the_first_contact_proposes_a_service_for_each_api_and_names_variables_that_hold_urls() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = std::env::current_exe().expect("this program");
    let agent = format!("'{}' --ignored --exact external::started::runs_as_an_agent --nocapture", program.display());
    let mut command = Command::new(crate::program::program());
    command.args(["init", "--agent", &agent]).current_dir(folder.path()).env("NO_COLOR", "1");
    command.env(KIND, "providers").env(PLAN, "main claude").env("SHELF_URL", "http://127.0.0.1:9/v1");
    for key in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "PERPLEXITY_API_KEY"] {
        command.env_remove(key);
    }
    let made = Outcome::of(&mut command);
    let read = |file: &str| std::fs::read_to_string(folder.path().join(file)).unwrap_or_default();
    let scenario = read("scenarios/agent.yaml");
    for part in [
        "model: {provider: simulator, name: 'm-1'}\n",
        "services:\n  # Chosen because the agent asks by POST /v1/messages, and ANTHROPIC_API_KEY is not set: a simulated \
         model answers.\n  anthropic: {provider: simulator-anthropic, name: 'claude-x'}\n",
        "#   shelf: {http: 'http://127.0.0.1:9/v1', env: SHELF_URL}\n",
    ] {
        assert!(scenario.contains(part), "{part}:\n{scenario}{}{}", made.stdout, made.stderr);
    }
    assert!(!scenario.contains("OPENAI_BASE_URL"), "{scenario}");
    assert!(read("ragcheck.yaml").contains("  simulator-anthropic:\n    dialect: anthropic-messages\n"));
    let mut check = Command::new(crate::program::program());
    Outcome::of(check.arg("check").current_dir(folder.path())).expect_code(0);
}

//! A key that a service echoes is in no file and in nothing printed, in no spelling: not recorded, not live, not in errors.

use super::project::{Outcome, Project};
use crate::program::program;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate, matchers};

const SECRET: &str = "Kx7+qq/ZW9%vTr==plantedKey0451";
const SCENARIO: &str = "scenario: echo
flow: tool-rag
knowledge: fernlight
model: {provider: echoing, name: echo-1}
limits: {transport_retries: 1}
cases:
  - case: warranty
    ask: How many months does the warranty of the Sprig controller last?
    expect:
      answer: {contains: [months]}
";

#[test]
fn a_key_that_is_typed_or_set_where_none_belongs_is_not_repeated() {
    const KEY: &str = "sk-planted-openai-7d41";
    let folder = tempfile::tempdir().expect("a folder");
    let said = |typed: &[&str], set: Option<&str>| {
        let mut command = std::process::Command::new(program());
        command.args(typed).current_dir(folder.path()).env("OPENAI_API_KEY", KEY);
        command.envs(set.map(|name| (name, KEY)));
        let outcome = Outcome::of(&mut command);
        outcome.expect_code(2);
        let said = outcome.stdout + &outcome.stderr;
        assert!(!said.contains(KEY) && said.contains("[redacted:OPENAI_API_KEY]"), "{typed:?} {set:?}: {said}");
    };
    for option in ["--repeat", "--max-cost", "--margin", "--limit", "--trust", "--agent"] {
        said(&["run", option, KEY], None);
    }
    said(&["check", "--limit", &format!("{KEY}=1")], None);
    said(&["run", &format!("--{KEY}")], None);
    said(&[KEY], None);
    said(&["check"], Some("RAGCHECK_TRUST"));
    said(&["check"], Some("RAGCHECK_AGENT"));
}

#[test]
fn a_key_of_a_typed_file_of_variables_stands_in_nothing_that_a_run_keeps() {
    const KEY: &str = "acme9f8e7d6c5b4a3210";
    let project = Project::shipped();
    project.write("keys.env", &format!("OPENAI_API_KEY={KEY}\n"));
    let asked = SCENARIO.replace("the Sprig controller", KEY).replace("provider: echoing", "provider: simulator");
    project.write("echo.yaml", &asked);
    for typed in [&["--env-file", "keys.env"][..], &["--env-file=keys.env"]] {
        let outcome = project.run(&[&["run", "echo.yaml"], typed].concat());
        outcome.expect_code(3);
        assert!(!(outcome.stdout.clone() + &outcome.stderr).contains(KEY), "{}", outcome.stderr);
        let kept = project.report(&project.newest());
        assert!(kept.iter().any(|(name, _)| name.ends_with("plan.json")), "there is a plan");
        for (name, bytes) in kept {
            assert!(!String::from_utf8_lossy(&bytes).contains(KEY), "{name}");
        }
    }
}

#[test]
fn a_key_that_nobody_declared_in_a_prompt_or_a_question_is_in_no_file_of_a_run_and_no_report() {
    const KEY: &str = "sk-proj-9876543210zyxwvutsrqponmlkjihgfedcbaZYXWVUTS";
    const TOKEN: &str = "eC1hY2Nlc3MtdG9rZW46Z2hzX2FiY2RlZjEyMzQ1Njc4OTA=";
    let project = Project::starter();
    let asks = project.read("scenarios/questions.yaml");
    let question = asks.lines().find(|line| line.trim_start().starts_with("ask: ")).expect("a question");
    project.edit("scenarios/questions.yaml", question, &format!("{question} My key is {KEY}."));
    let prompt = project.read("scenarios/prompts/strict.md");
    let header = format!("{prompt}\n[http]\n\textraheader = AUTHORIZATION: basic {TOKEN}\n");
    project.write("scenarios/prompts/strict.md", &header);
    let files = "markdown=m.md,annotations=a.txt,junit=j.xml,json=r.json,html=i.html";
    let first = project.run(&["run", "--report", files]);
    project.run(&["compare", "reports/latest"]);
    project.run(&["compare", "reports/latest", "--save", "base.json"]).expect_code(0);
    project.run(&["run", "--baseline", "base.json"]);
    project.run(&["score"]);
    let (stored, page) = (project.read("reports/latest/plan.json"), project.read("reports/latest/index.html"));
    for text in [&stored, &page] {
        assert!(text.contains("My key is [redacted:openai].") && text.contains("AUTHORIZATION: basic [redacted:key]"));
    }
    let mut seen = 0;
    walk(&project.path(""), &mut |path| {
        if path.ends_with("scenarios/questions.yaml") || path.ends_with("scenarios/prompts/strict.md") {
            return;
        }
        seen += 1;
        let text = String::from_utf8_lossy(&fs::read(path).expect("a file")).into_owned();
        assert!(!text.contains(KEY) && !text.contains(TOKEN), "{} holds it", path.display());
    });
    assert!(seen > 50 && !(first.stdout + &first.stderr).contains(TOKEN), "{seen} files");
}

#[test]
fn a_prompt_that_is_a_file_of_the_repository_itself_is_refused_and_its_token_is_nowhere() {
    const TOKEN: &str = "not-of-any-known-form";
    let project = Project::starter();
    project.write(".git/config", &format!("[http]\n\textraheader = {TOKEN}\n"));
    let scenario = project.read("scenarios/questions.yaml");
    let linked = project.path("scenarios/prompts/strict.md");
    project.edit("scenarios/questions.yaml", "prompts/strict.md", "../.git/config");
    for round in ["named", "linked"] {
        let outcome = project.run(&["run"]);
        outcome.expect_code(2);
        let said = outcome.stdout + &outcome.stderr;
        assert!(said.contains("nothing below `.git` is part of a project") && !said.contains(TOKEN), "{round}: {said}");
        assert!(!project.path("reports/latest").exists());
        project.write("scenarios/questions.yaml", &scenario);
        let _ = fs::remove_file(&linked);
        std::os::unix::fs::symlink("../../.git/config", &linked).expect("a link");
    }
}

#[test]
fn a_key_with_an_invisible_character_inside_is_in_no_page_and_a_scan_finds_it_in_the_blocks_of_another() {
    const KEY: &str = "acme9f8e7d6c5b4a3211";
    let project = Project::starter();
    project.run(&["run"]).expect_code(0);
    let folder = project.newest();
    let (page, traces) = (format!("{folder}/index.html"), format!("{folder}/traces.jsonl"));
    let hidden = format!("{}\u{200b}{}", &KEY[..9], &KEY[9..]);
    project.write(&traces, &project.read(&traces).replace("30 euros", &hidden));
    let score = |known: bool| {
        let mut command = project.command(&["score"]);
        Outcome::of(if known { command.env("OPENAI_API_KEY", KEY) } else { command.env_remove("OPENAI_API_KEY") })
    };
    let scan = || Outcome::of(project.command(&["cassette", "scan", &page]).env("OPENAI_API_KEY", KEY));
    let said = score(true);
    assert!(!said.stdout.contains(&KEY[..9]), "{}", said.stdout);
    scan().expect_code(0);
    // A page that was made by one who did not know it.
    score(false);
    let found = scan();
    found.expect_code(1);
    assert!(found.stdout.contains("the value of OPENAI_API_KEY, in a compressed block"), "{}", found.stdout);
    assert!(!(found.stdout.clone() + &found.stderr).contains(&KEY[..9]), "{}", found.stdout);
}

fn spellings() -> Vec<String> {
    let encode = |bytes: &[u8]| {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let bits: Vec<u8> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
        let digit = |bits: &[u8]| bits.iter().fold(0_usize, |sum, bit| sum << 1 | usize::from(*bit));
        bits.chunks_exact(6).map(|six| char::from(DIGITS[digit(six)])).collect::<String>()
    };
    let url: String = SECRET
        .bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    let base64 = encode(SECRET.as_bytes());
    let hex = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    let unicode = SECRET.chars().map(|letter| format!("\\u{:04x}", u32::from(letter))).collect::<Vec<_>>().concat();
    let html = SECRET.chars().map(|letter| format!("&#{};", u32::from(letter))).collect::<Vec<_>>().concat();
    let twice = encode(base64.as_bytes());
    let slashes = SECRET.replace('/', "\\/");
    vec![
        SECRET.to_owned(),
        url.replace("%2B", "%2b").replace("%2F", "%2f").replace("%3D", "%3d"),
        url,
        base64.replace('+', "-").replace('/', "_"),
        base64,
        twice,
        hex.to_uppercase(),
        hex,
        unicode,
        html,
        slashes,
    ]
}

/// A model that repeats the key it was given wherever it can: headers, bodies, error texts.
struct Echo {
    asked: AtomicUsize,
    refuses: bool,
}

impl Respond for Echo {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let told = format!("you said {}", spellings().join(" and "));
        let authorised = request
            .headers
            .get("authorization")
            .is_some_and(|value| value.to_str().is_ok_and(|value| value == format!("Bearer {SECRET}")));
        let header = |answer: ResponseTemplate| {
            answer
                .insert_header("x-echo", SECRET)
                .insert_header("retry-after-ms", "1")
                .insert_header("set-cookie", SECRET)
        };
        if self.refuses || !authorised {
            return header(ResponseTemplate::new(401).set_body_json(json!({"error": {"message": told}})));
        }
        let call = |name: &str, arguments: &Value| {
            json!({"id": "c-1", "model": "echo-1", "system_fingerprint": told, "choices": [{"index": 0, "finish_reason": "tool_calls",
                "message": {"role": "assistant", "content": told, "tool_calls": [{"id": format!("call_{name}"), "type": "function",
                    "function": {"name": name, "arguments": arguments.to_string()}}]}}]})
        };
        header(match self.asked.fetch_add(1, Ordering::SeqCst) {
            0 => ResponseTemplate::new(500).set_body_string(format!("failed: {told}")),
            1 => ResponseTemplate::new(200)
                .set_body_json(call("knowledge_base_search", &json!({"query": "warranty of the Sprig in months"}))),
            2 => ResponseTemplate::new(200).set_body_json(call("no_such_tool", &json!({"why": told}))),
            _ => ResponseTemplate::new(200).set_body_json(call(
                "generate_response",
                &json!({"answer": format!("It lasts 24 months; {told}."), "used_internal_kb": true, "used_external_kb": false,
                    "sources": [{"id": "warranty#1", "kind": "internal"}]}),
            )),
        })
    }
}

/// A model that answers in pieces, and cuts the key that it repeats in two.
struct EchoInPieces;

impl Respond for EchoInPieces {
    fn respond(&self, _request: &Request) -> ResponseTemplate {
        let (front, back) = SECRET.split_at(11);
        let arguments = |piece: &str| json!({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]});
        let call = json!({"role": "assistant", "content": null, "tool_calls": [{"index": 0, "id": "call_1", "type": "function",
            "function": {"name": "generate_response", "arguments": ""}}]});
        let deltas = [
            call,
            json!({"content": format!("you said {front}")}),
            json!({"content": back}),
            arguments("{\"answer\": \"24 months, and "),
            arguments(front),
            arguments(back),
            arguments("\", \"used_internal_kb\": false, \"used_external_kb\": false, \"sources\": []}"),
        ];
        let event = |delta: &Value, finish: Value| {
            let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
            format!("data: {}\n\n", json!({"id": "c-1", "model": "echo-1", "choices": choices}))
        };
        let mut body: String = deltas.iter().map(|delta| event(delta, Value::Null)).collect();
        body += &event(&json!({}), json!("tool_calls"));
        body += "data: [DONE]\n\n";
        ResponseTemplate::new(200).set_body_raw(body, "text/event-stream")
    }
}

async fn run(mode: &'static str, refuses: bool) -> (Project, Outcome) {
    run_against(Echo { asked: AtomicUsize::new(0), refuses }, SCENARIO.to_owned(), mode).await
}

/// The shipped project with a scenario that asks this server.
fn asking(server: &MockServer, scenario: &str) -> Project {
    let project = Project::shipped();
    let provider = format!(
        "providers:\n  echoing:\n    dialect: openai-chat\n    base_url: {}/v1\n    key: ECHO_KEY\n",
        server.uri()
    );
    project.edit("ragcheck.yaml", "providers:\n", &provider);
    project.write("echo.yaml", scenario);
    project
}

async fn run_against(model: impl Respond + 'static, scenario: String, mode: &'static str) -> (Project, Outcome) {
    let server = MockServer::start().await;
    Mock::given(matchers::any()).respond_with(model).mount(&server).await;
    let project = asking(&server, &scenario);
    tokio::task::spawn_blocking(move || {
        let mut command = project.command(&["run", "echo.yaml", "--mode", mode]);
        let outcome = Outcome::of(command.env("ECHO_KEY", SECRET));
        (project, outcome)
    })
    .await
    .expect("the run")
}

fn assert_nowhere(project: &Project, outcome: &Outcome) {
    let spellings = spellings();
    let clean = |place: &str, text: &str| {
        for spelling in &spellings {
            if let Some(at) = text.find(spelling.as_str()) {
                let before: String = text[..at].chars().rev().take(200).collect::<Vec<_>>().into_iter().rev().collect();
                panic!("{place} holds the key, as {spelling}, behind: {before}");
            }
        }
    };
    clean("stdout", &outcome.stdout);
    clean("stderr", &outcome.stderr);
    let mut files = 0;
    walk(&project.path(""), &mut |path| {
        files += 1;
        clean(&path.display().to_string(), &String::from_utf8_lossy(&fs::read(path).expect("a file")));
    });
    assert!(files > 300, "{files} files were looked at");
}

/// Every file below a folder, links left out.
pub fn walk(folder: &Path, seen: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() { walk(&path, seen) } else { seen(&path) }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_of_a_service_that_echoes_the_key_holds_no_key() {
    let (project, outcome) = run("record", false).await;
    let cassette = project.read("fixtures/cassettes/echo/warranty/tool-rag.base.1.yaml");
    assert!(cassette.contains("[redacted:echoing]"), "{cassette}");
    assert!(cassette.contains("status: 500"), "the failure is part of the recording: {cassette}");
    assert_nowhere(&project, &outcome);
    // It replays, without the key.
    let again = project.run(&["run", "echo.yaml"]);
    assert!(again.stdout.contains("1 trial: 1 PASS"), "{}\n{}", again.stdout, outcome.stdout);
    assert_nowhere(&project, &again);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_in_a_document_is_in_no_file_of_a_run_and_one_in_a_question_does_not_break_its_recording() {
    const KEY: &str = "sk-proj-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcdEFGH";
    let server = MockServer::start().await;
    let model = Echo { asked: AtomicUsize::new(0), refuses: false };
    Mock::given(matchers::any()).respond_with(model).mount(&server).await;
    let project = asking(
        &server,
        &SCENARIO.replace(
            "controller last?",
            "controller last? My key is sk-proj-9876543210zyxwvutsrqponmlkjihgfedcbaZYXWVUTS.",
        ),
    );
    project.edit("fixtures/knowledge/fernlight/warranty.md", "24 months", &format!("24 months ({KEY})"));
    let check = move || {
        for mode in ["record", "replay"] {
            let mut command = project.command(&["run", "echo.yaml", "--mode", mode]);
            let outcome = Outcome::of(command.env("ECHO_KEY", SECRET));
            assert!(outcome.stdout.contains("1 trial: 1 PASS"), "{mode}: {}\n{}", outcome.stdout, outcome.stderr);
            assert!(!outcome.stdout.contains(KEY) && !outcome.stderr.contains(KEY), "{mode}: {}", outcome.stdout);
            assert!(project.read("reports/latest/passages.jsonl").contains("24 months ([redacted:"));
            for folder in ["reports", "fixtures/cassettes/echo"] {
                walk(&project.path(folder), &mut |path| {
                    let text = String::from_utf8_lossy(&fs::read(path).expect("a file")).into_owned();
                    let asked = "sk-proj-9876543210";
                    assert!(!text.contains(KEY) && !text.contains(asked), "{mode}: {} holds a key", path.display());
                });
            }
        }
    };
    tokio::task::spawn_blocking(check).await.expect("both runs");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_a_stream_tells_in_two_pieces_is_in_no_file() {
    let streaming = SCENARIO.replace("name: echo-1", "name: echo-1, stream: true");
    for mode in ["record", "live"] {
        let (project, outcome) = run_against(EchoInPieces, streaming.clone(), mode).await;
        let (front, back) = SECRET.split_at(11);
        for file in ["reports/latest/traces.jsonl", "fixtures/cassettes/echo/warranty/tool-rag.base.1.yaml"] {
            if mode == "record" || !file.starts_with("fixtures") {
                let text = project.read(file);
                assert!(text.contains("[redacted:echoing]"), "{file}: {}", outcome.stdout);
                assert!(!text.contains(front) && !text.contains(back), "{file} holds a half of the key");
            }
        }
        assert_nowhere(&project, &outcome);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_run_writes_no_key_into_traces_and_reports() {
    let (project, outcome) = run("live", false).await;
    assert!(project.read("reports/latest/traces.jsonl").contains("[redacted:echoing]"), "{}", outcome.stdout);
    assert_nowhere(&project, &outcome);
}

/// A model that repeats the key in every spelling in the headers that recordings keep, beside its bodies.
struct EchoInHeaders(Echo);

impl Respond for EchoInHeaders {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let told = spellings().join(" ");
        let answer = self.0.respond(request);
        let named = |name: &'static str| (name, format!("note; told=\"{told}\""));
        ["retry-after", "x-should-retry"]
            .into_iter()
            .map(named)
            .fold(answer, |answer, (name, value)| answer.append_header(name, value.as_str()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_in_header_values_and_labels_is_in_nothing_that_is_written_or_printed() {
    let server = MockServer::start().await;
    let model = EchoInHeaders(Echo { asked: AtomicUsize::new(0), refuses: false });
    Mock::given(matchers::any()).respond_with(model).mount(&server).await;
    let project = asking(&server, SCENARIO);
    let (project, outcomes) = tokio::task::spawn_blocking(move || {
        let labels: Vec<String> =
            spellings().iter().enumerate().map(|(n, told)| format!("--label=told{n}=it is {told}")).collect();
        let run = |command: &[&str], labelled: bool| {
            let mut command = project.command(command);
            command.env("ECHO_KEY", SECRET).args(labels.iter().filter(|_| labelled));
            Outcome::of(&mut command)
        };
        let outcomes = vec![
            run(&["run", "echo.yaml", "--mode", "record"], true),
            run(&["history"], false),
            run(&["show", "echo/warranty/tool-rag.base.1"], false),
        ];
        (project, outcomes)
    })
    .await
    .expect("the run");
    assert!(project.read("history.jsonl").contains("told0"), "{}", outcomes[0].stderr);
    let cassette = project.read("fixtures/cassettes/echo/warranty/tool-rag.base.1.yaml");
    assert!(cassette.contains("note; told="), "the header is recorded: {cassette}");
    for outcome in &outcomes {
        assert_nowhere(&project, outcome);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_is_an_error_that_does_not_show_it() {
    for mode in ["record", "live"] {
        let (project, outcome) = run(mode, true).await;
        assert_nowhere(&project, &outcome);
        assert!(!project.path("fixtures/cassettes/echo").exists(), "a refusal was recorded");
        if mode == "record" {
            outcome.expect_code(3);
            assert!(outcome.stdout.contains("auth"), "{}", outcome.stdout);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_in_what_the_scenario_asks_is_in_nothing_that_is_written_or_printed() {
    let asking = SCENARIO.replace("ask: How", &format!("ask: My key is {SECRET}. How"));
    for mode in ["record", "live"] {
        let echo = Echo { asked: AtomicUsize::new(0), refuses: false };
        let (project, outcome) = run_against(echo, asking.clone(), mode).await;
        assert!(project.read("reports/latest/plan.json").contains("[redacted:"), "{}", outcome.stderr);
        fs::remove_file(project.path("echo.yaml")).expect("the scenario holds it, and is the user's");
        assert_nowhere(&project, &outcome);
    }
}

#[test]
fn a_key_of_the_environment_is_not_printed_with_a_mistake_that_shows_it() {
    let project = Project::shipped();
    project.write("wrong.yaml", &format!("scenario: wrong\nflow: {SECRET}\ncases: []\n"));
    let mut command = project.command(&["check", "wrong.yaml"]);
    let outcome = Outcome::of(command.env("SOME_SERVICE_KEY", SECRET));
    outcome.expect_code(2);
    assert!(
        !outcome.stderr.contains(SECRET) && !outcome.stdout.contains(SECRET),
        "{}{}",
        outcome.stdout,
        outcome.stderr
    );
    assert!(format!("{}{}", outcome.stdout, outcome.stderr).contains("[redacted:SOME_SERVICE_KEY]"));
}

#[test]
fn a_key_that_is_not_set_is_asked_for_by_the_name_of_its_variable() {
    let project = Project::shipped();
    project.edit(
        "ragcheck.yaml",
        "    dialect: openai-chat\n",
        "    dialect: openai-chat\n    key: A_KEY_THAT_NOBODY_SET\n",
    );
    let outcome = project.run(&["run", "scenarios/knowledge.yaml", "--mode", "live"]);
    outcome.expect_code(3);
    assert!(outcome.stdout.contains("A_KEY_THAT_NOBODY_SET"), "{}", outcome.stdout);
    assert_eq!(outcome.stdout.matches("A_KEY_THAT_NOBODY_SET").count(), 1, "{}", outcome.stdout);
}

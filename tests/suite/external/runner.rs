//! `ragcheck exec`: a test runner begins and ends cases over HTTP. The runner is this test binary, with steps in a variable.

use super::super::project::{Outcome, Project};
use super::super::simulator::Simulator;
use super::holding;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

/// What the runner does, as a JSON list of steps.
const STEPS: &str = "RAGCHECK_TEST_RUNNER";
const BEHAVIOUR: &str = "name: runners
seed: 3
pace: declared
model:
  latency: {constant: 5ms}
  rules:
    - {when: {asks: warranty}, answer: It lasts 60 months.}
    - {when: {asks: frost}, answer: There is frost tonight.}
search: {latency: {constant: 5ms}}
";
const PROJECT: &str = "cassettes: cassettes
estimand: fixed_suite
providers:
  simulator: {dialect: openai-chat, base_url: http://127.0.0.1:8091/v1, key: OPENAI_API_KEY, quirks: {trial_header: true}}
";
const SCENARIO: &str = "scenario: desk
flow: external
model: {provider: simulator, name: m}
cases:
  - case: warranty
    ask: How long is the warranty?
    expect: {answer: {contains: [60 months]}}
";
const KEY: &str = "sk-runner-4711-secret";

/// Runs as a test runner when `ragcheck exec` starts it; as a test it has nothing to do.
#[test]
#[ignore = "is a test runner, which other tests start"]
fn runs_as_a_test_runner() {
    let Ok(steps) = std::env::var(STEPS) else { return };
    let steps: Vec<Value> = serde_json::from_str(&steps).expect("steps");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let control = variable("RAGCHECK_URL");
    let (mut begun, mut said) = (BTreeMap::<String, Value>::new(), String::new());
    for step in steps {
        let name = step["case"].as_str().unwrap_or_default();
        let reply = match step["do"].as_str().expect("what to do") {
            "begin" => {
                let reply = post(&format!("{control}/cases"), "", &step["body"].to_string());
                begun.insert(step["body"]["name"].as_str().unwrap_or_default().to_owned(), reply.1.clone());
                reply
            }
            "ask" => {
                let base = match begun.get(name) {
                    Some(case) if !step["by_header"].is_boolean() => {
                        case["base_urls"]["OPENAI_BASE_URL"].as_str().map(str::to_owned)
                    }
                    _ => None,
                };
                let headers = begun.get(name).and_then(|case| case["headers"]["traceparent"].as_str());
                let headers = headers.map_or_else(String::new, |parent| format!("traceparent: {parent}\r\n"));
                let question =
                    step["question"].as_str().expect("a question").replace("PID", &std::process::id().to_string());
                let body = json!({"model": "m", "messages": [{"role": "user", "content": question}]}).to_string();
                let url = base.unwrap_or_else(|| variable("OPENAI_BASE_URL"));
                let (status, reply) = post(&format!("{url}/chat/completions"), &headers, &body);
                said = reply["choices"][0]["message"]["content"].as_str().unwrap_or("nothing").to_owned();
                (status, reply)
            }
            action @ ("turn" | "end") => {
                let mut body = step["body"].clone();
                if body.is_null() {
                    body = json!({"answer": said});
                }
                let id = begun.get(name).and_then(|case| case["id"].as_str()).unwrap_or(name);
                post(&format!("{control}/cases/{id}/{action}"), "", &body.to_string())
            }
            "post" => {
                let at = format!("{control}{}", step["path"].as_str().expect("a path"));
                post(&at, step["headers"].as_str().unwrap_or_default(), step["text"].as_str().unwrap_or_default())
            }
            "sleep" => {
                std::thread::sleep(std::time::Duration::from_millis(step["ms"].as_u64().expect("a number")));
                (0, Value::Null)
            }
            "show" => (0, json!(variable(step["variable"].as_str().expect("a name")))),
            "exit" => std::process::exit(i32::try_from(step["code"].as_i64().expect("a code")).expect("small")),
            other => panic!("{other}"),
        };
        println!("did {} {name}: {} {}", step["do"].as_str().unwrap_or_default(), reply.0, reply.1);
    }
}

/// Posts a body; returns the status and what came back.
fn post(url: &str, headers: &str, body: &str) -> (u16, Value) {
    let (host, path) = url.trim_start_matches("http://").split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host).expect("it listens");
    let key = std::env::var("OPENAI_API_KEY").unwrap_or_default();
    let named = if headers.contains("Host:") { "" } else { "Host: localhost\r\n" };
    let head = format!("POST /{path} HTTP/1.1\r\n{named}{headers}Authorization: Bearer {key}\r\n");
    let length = body.len();
    stream
        .write_all(format!("{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}").as_bytes())
        .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    let document =
        body.find('{').zip(body.rfind('}')).and_then(|(from, to)| serde_json::from_str(&body[from..=to]).ok());
    (status, document.unwrap_or_default())
}

/// A project for test runners, and its simulator.
struct Bench {
    project: Project,
    simulator: Option<Simulator>,
}

impl Bench {
    fn set() -> Self {
        let project = Project::shipped();
        std::fs::remove_dir_all(project.path("scenarios")).expect("the scenarios");
        for (file, text) in [("ragcheck.yaml", PROJECT), ("desk.yaml", SCENARIO), ("sim.yaml", BEHAVIOUR)] {
            project.write(file, text);
        }
        let simulator = Some(Simulator::start(&project, "sim.yaml"));
        Self { project, simulator }
    }

    fn exec(&self, arguments: &[&str], steps: &Value) -> Outcome {
        let program = std::env::current_exe().expect("this program");
        let mut command = self.project.command(&["exec"]);
        command.args(arguments).arg("--").arg(program);
        command.args(["--ignored", "--exact", "external::runner::runs_as_a_test_runner", "--nocapture"]);
        command.env(STEPS, steps.to_string()).env("OPENAI_API_KEY", KEY);
        command.env("RAGCHECK_TRUST", "OPENAI_API_KEY=127.0.0.1");
        Outcome::of(&mut command)
    }

    fn recorded(&self, steps: &Value) {
        let outcome = self.exec(&["--scenario", "desk.yaml", "--mode", "record"], steps);
        outcome.expect_code(0);
    }

    fn replayed(&self, steps: &Value) -> Outcome {
        self.exec(&["--scenario", "desk.yaml"], steps)
    }
}

fn begin(name: &str) -> Value {
    json!({"do": "begin", "case": name, "body": {"name": name}})
}

fn ask(name: &str, question: &str) -> Value {
    json!({"do": "ask", "case": name, "question": question})
}

fn end(name: &str) -> Value {
    json!({"do": "end", "case": name})
}

const WARRANTY: &str = "How long is the warranty?";

/// One case from beginning to end.
fn warranty() -> Value {
    json!([begin("warranty"), ask("", WARRANTY), end("warranty")])
}

/// What was printed, as one line.
fn said(outcome: &Outcome) -> String {
    format!("{}{}", outcome.stdout, outcome.stderr).split_whitespace().collect::<Vec<_>>().join(" ")
}

const TALK: &str = "  - case: talk
    turns:
      - {ask: How long is the warranty?, expect: {answer: {contains: [60 months]}}}
      - {ask: And is there frost?, expect: {answer: {contains: [frost tonight]}}}
";

#[test]
fn a_case_of_several_turns_is_told_each_question_with_the_history_and_replays() {
    let mut bench = Bench::set();
    bench.project.edit("desk.yaml", "cases:\n", &format!("cases:\n{TALK}"));
    let turn = |name: &str| json!({"do": "turn", "case": name});
    let own =
        json!({"do": "begin", "case": "own", "body": {"name": "own", "questions": [WARRANTY, "Is there frost?"]}});
    let steps = json!([
        begin("talk"),
        ask("", WARRANTY),
        turn("talk"),
        ask("", "And is there frost?"),
        end("talk"),
        own,
        ask("", WARRANTY),
        turn("own"),
        ask("", "Is there frost?"),
        turn("own"),
    ]);
    bench.recorded(&steps);
    let traces = bench.project.traces();
    bench.simulator = None;
    let replayed = bench.replayed(&steps);
    replayed.expect_code(0);
    assert!(replayed.stdout.contains("2 trials: 2 PASS"), "{}", replayed.stdout);
    assert_eq!(bench.project.traces(), traces);
    assert!(traces.iter().all(|trace| super::events(trace, "turn_ended").len() == 2), "{traces:?}");
    let told = |words: &str| replayed.stdout.lines().find(|line| line.contains(words)).map(str::to_owned);
    let second = told("did turn talk").expect("a turn");
    for part in
        ["And is there frost?", "\"content\":\"It lasts 60 months.\"", "\"role\":\"assistant\"", "\"error\":null"]
    {
        assert!(second.contains(part), "{part}: {second}");
    }
    assert!(replayed.stdout.contains("\"question\":null"), "the last turn ends the case: {}", replayed.stdout);
}

#[test]
fn a_case_that_is_ended_before_its_last_turn_is_an_error_that_says_so() {
    let bench = Bench::set();
    bench.project.edit("desk.yaml", "cases:\n", &format!("cases:\n{TALK}"));
    let steps = json!([begin("talk"), ask("", WARRANTY), end("talk")]);
    let outcome = bench.exec(&["--scenario", "desk.yaml", "--mode", "live"], &steps);
    outcome.expect_code(3);
    let words = said(&outcome);
    assert!(words.contains("the test ended the case before its last turn"), "{words}");
    assert!(words.contains("POST /cases/ID/turn"), "{words}");
}

#[test]
fn what_tests_recorded_replays_to_the_same_bytes_with_the_provider_stopped_and_no_key() {
    let mut bench = Bench::set();
    let steps = json!([
        {"do": "show", "variable": "OPENAI_API_KEY"}, {"do": "show", "variable": "RAGCHECK_MODE"},
        begin("warranty"), ask("", WARRANTY), end("warranty"),
        begin("tests/test_desk.py::test_frost[eu]"), ask("", "Is there frost?"), end("tests/test_desk.py::test_frost[eu]"),
    ]);
    let recorded = bench.exec(&["--scenario", "desk.yaml", "--mode", "record"], &steps);
    recorded.expect_code(0);
    assert!(recorded.stdout.contains("2 trials: 2 PASS"), "{}", recorded.stdout);
    for part in [&format!("0 \"{KEY}\""), "0 \"record\"", "0 \"ragcheck-placeholder-key\"", "0 \"replay\""] {
        assert_eq!(
            recorded.stdout.matches(part).count(),
            1,
            "it is started once more, to verify: {part}: {}",
            recorded.stdout
        );
    }
    assert!(recorded.stderr.contains("started again, to verify"), "{}", recorded.stderr);
    let (traces, report) = (bench.project.traces(), bench.project.report("reports/latest"));
    bench.simulator = None;
    let replayed = bench.replayed(&steps);
    replayed.expect_code(0);
    assert!(!replayed.stdout.contains(KEY), "in a replay the keys are placeholders: {}", replayed.stdout);
    assert_eq!(bench.project.traces(), traces);
    assert!(bench.project.report("reports/latest") == report, "the replay writes other bytes");
    // The runner prints, too, but not between the JSON.
    let printed = bench.exec(&["--scenario", "desk.yaml", "--format", "json"], &steps);
    assert_eq!(crate::schemas::valid("run", &printed.stdout)["trials"].as_array().map(Vec::len), Some(2));
    assert!(printed.stderr.contains("0 \"replay\""), "{}", printed.stderr);
    let ids: Vec<_> = traces.iter().map(|trace| trace["trial"].as_str().expect("an id")).collect();
    assert_eq!(ids, ["desk/warranty/external.base.1", "desk/tests-test-desk-py-test-frost-eu/external.base.1"]);
    assert_eq!(traces[0]["evidence"]["recorded_from"], "simulator");
    let ended = &super::events(&traces[1], "turn_ended")[0];
    assert_eq!(ended["outcome"]["answered"]["text"], "There is frost tonight.");
    let started = &super::events(&traces[1], "turn_started")[0];
    assert_eq!(started["query"], "tests-test-desk-py-test-frost-eu", "no question was given");
    let mut found = Vec::new();
    holding(&bench.project.path(""), KEY, &mut found);
    assert!(found.is_empty(), "the key is in {found:?}");
}

#[test]
fn a_case_must_meet_what_the_scenario_expects_of_its_name() {
    let bench = Bench::set();
    bench.recorded(&warranty());
    let wrong = json!([begin("warranty"), ask("", WARRANTY), {"do": "end", "case": "warranty", "body": {"answer": "6 weeks."}}]);
    let outcome = bench.replayed(&wrong);
    outcome.expect_code(1);
    assert!(outcome.stdout.contains("1 FAIL") && outcome.stdout.contains("60 months"), "{}", outcome.stdout);
    let words = said(&outcome);
    let again = "run it again: ragcheck exec --scenario desk.yaml -- ";
    assert!(words.contains(again) && !words.contains("ragcheck run"), "no other command runs these cases: {words}");
    let raised = json!([begin("warranty"), ask("", WARRANTY), {"do": "end", "case": "warranty", "body": {"error": "KeyError: 7"}}]);
    let outcome = bench.replayed(&raised);
    outcome.expect_code(1);
    assert!(outcome.stdout.contains("KeyError: 7"), "{}", outcome.stdout);
}

#[test]
fn a_changed_request_is_an_explained_miss_in_the_test_and_in_the_verdict() {
    let bench = Bench::set();
    bench.recorded(&warranty());
    let outcome = bench.replayed(&json!([begin("warranty"), ask("", "How long is the guarantee?"), end("warranty")]));
    outcome.expect_code(3);
    let words = said(&outcome);
    assert!(words.contains("did ask : 400") && words.contains("did end warranty: 200 {\"error\":\""), "{words}");
    assert!(words.contains("guarantee") && words.contains("cassette miss"), "{words}");
    assert!(words.contains("ragcheck exec --scenario desk.yaml --mode record -- "), "how to record it again: {words}");
}

#[test]
fn after_an_outage_the_command_that_is_printed_starts_the_test_runner_again() {
    let bench = Bench::set();
    let url = bench.project.read("ragcheck.yaml");
    let url = url.split("base_url: ").nth(1).and_then(|rest| rest.split(',').next()).expect("an address");
    bench.project.edit("ragcheck.yaml", url, "http://127.0.0.1:1/v1");
    let outcome = bench.exec(&["--scenario", "desk.yaml", "--mode", "record"], &warranty());
    outcome.expect_code(3);
    let words = said(&outcome);
    assert!(
        words.contains("DOWN") && words.contains("ragcheck exec --scenario desk.yaml --mode record -- "),
        "{words}"
    );
    assert!(!words.contains("--failed"), "{words}");
}

#[test]
fn a_case_without_a_recording_cannot_begin_in_a_replay() {
    let bench = Bench::set();
    let outcome = bench.replayed(&warranty());
    outcome.expect_code(3);
    let words = said(&outcome);
    assert!(
        words.contains(
            "did begin warranty: 409 {\"error\":\"the case `warranty` cannot begin: this lane has no recording"
        ),
        "{words}"
    );
    assert!(words.contains("did end warranty: 409") && words.contains("1 ERROR"), "{words}");
}

#[test]
fn a_case_that_is_not_ended_is_an_error() {
    let bench = Bench::set();
    let outcome = bench.exec(
        &["--scenario", "desk.yaml", "--mode", "record"],
        &json!([begin("warranty"), ask("", WARRANTY), begin("late"), ask("late", "Is there frost?"), end("late")]),
    );
    outcome.expect_code(3);
    let words = said(&outcome);
    assert!(words.contains("the case was begun and never ended: the test runner ended first"), "{words}");
    assert!(!bench.project.path("cassettes/desk/warranty").exists(), "nothing of it is kept");
    assert!(bench.project.path("cassettes/desk/late").exists(), "the other one is");
}

#[test]
fn a_request_outside_any_case_is_refused_and_never_green() {
    let bench = Bench::set();
    bench.recorded(&warranty());
    let outcome = bench.replayed(&json!([ask("", WARRANTY), begin("warranty"), ask("", WARRANTY), end("warranty")]));
    outcome.expect_code(3);
    let words = said(&outcome);
    assert!(words.contains("did ask : 400") && words.contains("1 trial: 1 PASS"), "{words}");
    assert!(words.contains("error: outside any case, your agent asked POST /model/v1/chat/completions"), "{words}");
}

#[test]
fn a_runner_that_fails_fails_the_run_and_its_exit_code_is_shown() {
    let bench = Bench::set();
    bench.recorded(&warranty());
    let mut steps = warranty();
    steps.as_array_mut().expect("a list").push(json!({"do": "exit", "code": 7}));
    let outcome = bench.replayed(&steps);
    outcome.expect_code(1);
    assert!(said(&outcome).contains("error: the test runner ended with exit code 7"), "{}", outcome.stderr);
    assert_eq!(bench.project.latest("exit-code.json")["exit_code"], 1);
    let printed = bench.exec(&["--scenario", "desk.yaml", "--format", "json", "--report", "junit=j.xml"], &steps);
    printed.expect_code(1);
    let printed = crate::schemas::valid("run", &printed.stdout);
    assert_eq!([&printed["exit_code"], &bench.project.latest("run.json")["exit_code"]], [1, 1]);
    assert!(bench.project.read("j.xml").contains("<failure message=\"the test runner ended with exit code 7\""));
    assert!(outcome.stdout.contains("1 trial: 1 PASS"), "{}", outcome.stdout);
    bench.replayed(&warranty()).expect_code(0);
    assert!(
        !bench.project.path("reports/latest/exit-code.json").exists(),
        "an equal run that ended well has no such note"
    );
}

#[test]
fn a_runner_that_begins_no_case_measured_nothing() {
    let bench = Bench::set();
    for steps in [json!([]), json!([ask("", WARRANTY)]), json!([{"do": "exit", "code": 4}])] {
        let outcome = bench.replayed(&steps);
        outcome.expect_code(3);
        assert!(outcome.stderr.contains("nothing was measured: no case was begun"), "{}", outcome.stderr);
    }
    assert!(!bench.project.path("reports/latest").exists());
}

#[test]
fn a_skipped_test_is_left_out_with_its_reason_and_a_suite_of_skipped_tests_measured_nothing() {
    let bench = Bench::set();
    bench.recorded(&warranty());
    let skip = |name: &str| json!({"do": "end", "case": name, "body": {"skipped": "no network here"}});
    // The case `frost` has no recording, so it cannot begin; its test may skip it all the same.
    let both = json!([begin("frost"), skip("frost"), begin("warranty"), ask("", WARRANTY), end("warranty")]);
    for mode in [&["--scenario", "desk.yaml"][..], &["--scenario", "desk.yaml", "--mode", "record"]] {
        let outcome = bench.exec(mode, &both);
        outcome.expect_code(0);
        let said = said(&outcome);
        assert!(said.contains("the tests skipped 1 case, which the run leaves out: frost (no network here)"), "{said}");
        assert!(outcome.stdout.contains("1 trial: 1 PASS"), "{}", outcome.stdout);
    }
    for all in [json!([begin("warranty"), skip("warranty")]), json!([begin("frost"), skip("frost")])] {
        let outcome = bench.replayed(&all);
        outcome.expect_code(3);
        assert!(outcome.stderr.contains("nothing was measured: the tests skipped every case"), "{}", outcome.stderr);
    }
    // What was ended before is judged.
    let late = json!([begin("warranty"), ask("", WARRANTY), end("warranty"), skip("warranty")]);
    let outcome = bench.replayed(&late);
    assert!(said(&outcome).contains("did end warranty: 409") && outcome.stdout.contains("1 trial: 1 PASS"));
}

#[test]
fn a_name_is_one_case_and_its_repetitions_are_counted_by_take() {
    let bench = Bench::set();
    let again = |take: u32| {
        let body = json!({"name": "warranty", "take": take});
        json!([{"do": "begin", "case": "warranty", "body": body}, ask("", WARRANTY), end("warranty")])
    };
    let both: Vec<Value> =
        [again(1), again(2)].iter().flat_map(|steps| steps.as_array().expect("a list").clone()).collect();
    bench.recorded(&json!(both));
    let ids: Vec<_> = bench.project.traces().iter().map(|trace| trace["trial"].clone()).collect();
    assert_eq!(ids, ["desk/warranty/external.base.1", "desk/warranty/external.base.2"]);
    let twice: Vec<Value> =
        [warranty(), warranty()].iter().flat_map(|steps| steps.as_array().expect("a list").clone()).collect();
    let outcome = bench.replayed(&json!(twice));
    outcome.expect_code(3);
    let words = said(&outcome);
    assert!(
        words.contains("did begin warranty: 409") && words.contains("(`test[1]` and `test[-1]` are one case)"),
        "{words}"
    );
}

#[test]
fn open_cases_are_kept_apart_by_base_url_and_by_header_and_a_request_of_neither_is_an_error() {
    let bench = Bench::set();
    let by_header =
        |name: &str, question: &str| json!({"do": "ask", "case": name, "question": question, "by_header": true});
    let steps = json!([
        begin("warranty"),
        begin("frost"),
        ask("frost", "Is there frost?"),
        end("frost"),
        begin("snow"),
        by_header("snow", "Is there frost and snow?"),
        end("snow"),
        by_header("warranty", WARRANTY),
        end("warranty"),
    ]);
    bench.recorded(&steps);
    let traces = bench.project.traces();
    let asked: Vec<_> = traces.iter().map(|trace| super::events(trace, "model_called").len()).collect();
    assert_eq!(asked, [1, 1, 1], "{traces:?}");
    bench.replayed(&steps).expect_code(0);
    let stray = json!([
        begin("warranty"),
        begin("frost"),
        ask("", "Is there frost?"),
        end("frost"),
        ask("warranty", WARRANTY),
        end("warranty"),
    ]);
    let outcome = bench.replayed(&stray);
    outcome.expect_code(3);
    assert!(
        said(&outcome).contains("tests run side by side, and this request may belong to any of them"),
        "{}",
        said(&outcome)
    );
}

#[test]
fn a_client_made_in_the_test_of_a_case_that_has_ended_is_told_so() {
    let bench = Bench::set();
    let frost = "Is there frost?";
    let steps = |name: &str| {
        json!([
            begin("warranty"),
            ask("warranty", WARRANTY),
            end("warranty"),
            begin("frost"),
            ask(name, frost),
            end("frost")
        ])
    };
    bench.recorded(&steps("frost"));
    let outcome = bench.replayed(&steps("warranty"));
    outcome.expect_code(3);
    let words = said(&outcome);
    for part in ["1 request came with the base URL of a case that has ended", "make one in each test"] {
        assert!(words.contains(part), "{words}");
    }
}

#[test]
fn a_request_of_no_case_is_an_error_where_other_processes_run_tests_too() {
    let bench = Bench::set();
    bench.recorded(&warranty());
    let mut begins = begin("warranty");
    begins["body"]["side_by_side"] = true.into();
    let own = json!([begins.clone(), ask("warranty", WARRANTY), end("warranty")]);
    bench.replayed(&own).expect_code(0);
    let outcome = bench.replayed(&json!([begins, ask("", WARRANTY), end("warranty")]));
    outcome.expect_code(3);
    assert!(said(&outcome).contains("tests run side by side, and this request may belong"), "{}", said(&outcome));
}

#[test]
fn the_address_of_cases_serves_programs_alone_and_says_what_it_takes() {
    let bench = Bench::set();
    let post =
        |path: &str, headers: &str, text: &str| json!({"do": "post", "path": path, "headers": headers, "text": text});
    let name = "{\"name\": \"warranty\"}";
    let outcome = bench.replayed(&json!([
        post("/cases", "Origin: https://evil.example\r\n", name),
        post("/cases", "Host: evil.example\r\n", name),
        post("/case", "", name),
        post("/cases", "", "name=warranty"),
        post("/cases", "", "{\"name\": \"warranty\", \"takes\": 2}"),
        post("/cases", "", "{\"name\": \"…\"}"),
        post("/cases", "", "{\"name\": \"a\", \"take\": 0}"),
        post("/cases/warranty.1/end", "", "{\"answer\": \"?\"}"),
        post("/cases/warranty.1/end", "", "[]"),
    ]));
    outcome.expect_code(3);
    let statuses: Vec<&str> =
        outcome.stdout.lines().filter_map(|line| line.strip_prefix("did post : ")?.split(' ').next()).collect();
    assert_eq!(statuses, ["403", "403", "404", "400", "400", "400", "400", "409", "400"], "{}", outcome.stdout);
    assert!(outcome.stderr.contains("no case was begun"), "{}", outcome.stderr);
}

#[test]
fn cases_of_the_scenario_that_no_test_begins_are_named() {
    let bench = Bench::set();
    let steps = json!([begin("frost"), ask("", "Is there frost?"), end("frost")]);
    bench.recorded(&steps);
    let outcome = bench.replayed(&steps);
    outcome.expect_code(0);
    assert!(outcome.stderr.contains("the test runner did not begin warranty of the scenario"), "{}", outcome.stderr);
    let part = bench.project.latest("plan.json")["part"].clone();
    assert_eq!((&part["of"], &part["cases"]), (&json!(2), &json!(true)), "{part}");
}

#[test]
fn without_a_scenario_every_client_is_served_and_each_case_has_the_rules_that_always_apply() {
    let mut bench = Bench::set();
    let shows = |name: &str| json!({"do": "show", "variable": name});
    let steps = json!([
        shows("OPENAI_BASE_URL"), shows("ANTHROPIC_BASE_URL"), shows("GOOGLE_GEMINI_BASE_URL"), shows("PERPLEXITY_BASE_URL"),
        {"do": "begin", "case": "frost", "body": {"name": "frost", "question": "Is there frost?"}},
        ask("", "Is there frost?"), end("frost"),
    ]);
    let mut more = steps.clone();
    let thaw = [begin("thaw"), ask("", "Is there frost tomorrow?"), end("thaw")];
    more.as_array_mut().expect("steps").extend(thaw);
    bench.exec(&["--mode", "record"], &more).expect_code(0);
    bench.simulator = None;
    let replayed = bench.exec(&[], &steps);
    replayed.expect_code(0);
    let lost = "the test runner did not begin cases that are recorded: thaw";
    assert!(replayed.stderr.contains(lost), "{}", replayed.stderr);
    for mount in ["/model/v1\"", "/anthropic\"", "/google\"", "/search\""] {
        assert!(replayed.stdout.contains(mount), "{mount}: {}", replayed.stdout);
    }
    let trace = &bench.project.traces()[0];
    assert_eq!(trace["trial"], "exec/frost/external.base.1");
    assert_eq!(super::events(trace, "turn_started")[0]["query"], "Is there frost?");
}

#[test]
fn a_recording_that_the_second_start_does_not_repeat_is_an_error_that_proposes_vars() {
    let bench = Bench::set();
    let steps = json!([begin("frost"), ask("", "Is there frost? Ticket TK-PID."), end("frost")]);
    let outcome = bench.exec(&["--scenario", "desk.yaml", "--mode", "record"], &steps);
    outcome.expect_code(3);
    let words = said(&outcome);
    assert!(words.contains("the replay of what was just recorded differs") && words.contains("`vars:`"), "{words}");
    assert!(!bench.project.path("cassettes/desk/frost").exists());
    let vars = "vars: {ticket: {at: '/messages/*/content', match: 'TK-(\\d+)'}}\ncases:\n";
    bench.project.edit("desk.yaml", "cases:\n", vars);
    bench.recorded(&steps);
    bench.replayed(&steps).expect_code(0);
}

#[test]
fn a_case_that_takes_longer_than_a_turn_may_is_an_error_that_its_end_tells() {
    let bench = Bench::set();
    bench.recorded(&warranty());
    bench.project.edit("desk.yaml", "cases:\n", "limits: {turn: 300ms}\ncases:\n");
    let steps = json!([begin("warranty"), ask("", WARRANTY), {"do": "sleep", "ms": 1500}, end("warranty")]);
    let outcome = bench.replayed(&steps);
    outcome.expect_code(3);
    let words = said(&outcome);
    assert!(
        words.contains("did end warranty: 200 {\"error\":\"the agent at your test runner gave no reply within"),
        "{words}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_runner_that_is_told_to_end_leaves_nothing_behind_that_it_started() {
    let bench = Bench::set();
    let started = bench.project.path("started");
    let mut command = bench.project.command(&["exec", "--mode", "live", "--", "sh", "-c"]);
    command.arg("setsid sh -c 'echo $$ >starting; mv starting started; exec sleep 300' & wait");
    command.env("OPENAI_API_KEY", KEY).env("RAGCHECK_TRUST", "OPENAI_API_KEY=127.0.0.1");
    let exec = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let exec = exec.spawn().expect("it runs");
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while !started.exists() && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let left = std::fs::read_to_string(&started).expect("it starts").trim().to_owned();
    Outcome::of(std::process::Command::new("kill").args(["-TERM", &exec.id().to_string()])).expect_code(0);
    let output = exec.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("(SIGTERM)"), "{told}");
    assert!(!std::path::Path::new(&format!("/proc/{left}/exe")).exists(), "{left} is left");
}

#[test]
fn a_run_out_of_requests_is_incomplete() {
    let bench = Bench::set();
    let steps = json!([begin("warranty"), ask("", WARRANTY), ask("", WARRANTY), end("warranty")]);
    let outcome = bench.exec(&["--scenario", "desk.yaml", "--mode", "live", "--max-calls", "1"], &steps);
    outcome.expect_code(3);
    assert!(said(&outcome).contains("--max-calls") && said(&outcome).contains("1 ERROR"), "{}", said(&outcome));
}

#[test]
fn recordings_of_tests_do_not_disturb_the_scenarios_of_the_project() {
    let bench = Bench::set();
    bench.recorded(&warranty());
    let own = SCENARIO.replace("flow", "target: {http: 'http://127.0.0.1:1/chat'}\nflow").replace(": desk", ": own");
    bench.project.write("scenarios/own.yaml", &own);
    let outcome = bench.replayed(&warranty());
    outcome.expect_code(0);
    assert_eq!(bench.project.latest("plan.json")["part"]["scenarios"], true, "the project has other scenarios");
    let score = bench.project.run(&["score", &bench.project.newest()]);
    score.expect_code(0);
    let checked = bench.project.run(&["check"]);
    assert!(!format!("{}{}", checked.stdout, checked.stderr).contains("cassettes/desk"), "{}", checked.stdout);
    let checked = bench.project.run(&["check", "desk.yaml"]);
    checked.expect_code(2);
    assert!(said(&checked).contains("ragcheck exec --scenario FILE"), "{}", said(&checked));
}

#[test]
fn a_live_run_asks_the_provider_and_records_nothing() {
    let bench = Bench::set();
    let outcome = bench.exec(&["--scenario", "desk.yaml", "--mode", "live"], &warranty());
    outcome.expect_code(0);
    assert!(outcome.stdout.contains("LIVE") && outcome.stdout.contains("1 trial: 1 PASS"), "{}", outcome.stdout);
    assert!(!bench.project.path("cassettes").exists());
}

#[test]
fn what_cannot_be_run_is_said_before_the_runner_starts() {
    let bench = Bench::set();
    let refused = |arguments: &[&str], part: &str| {
        let outcome = bench.exec(arguments, &json!([{"do": "show", "variable": "HOME"}]));
        outcome.expect_code(2);
        assert!(said(&outcome).contains(part), "{part}: {}", said(&outcome));
        assert!(!outcome.stdout.contains("did show"), "{}", outcome.stdout);
    };
    refused(&["--scenario", "none.yaml"], "none.yaml");
    refused(&["--scenario", "desk.yaml", "--max-calls", "3"], "--max-calls");
    bench.project.write(
        "own.yaml",
        &SCENARIO.replace("flow", "target: {http: 'http://127.0.0.1:1/chat'}\nflow").replace(": desk", ": own"),
    );
    refused(&["--scenario", "own.yaml"], "so `ragcheck run` tests it");
    let missing = Outcome::of(&mut bench.project.command(&["exec", "--", "no-such-runner"]));
    missing.expect_code(2);
    assert!(missing.stderr.contains("`no-such-runner` cannot be started"), "{}", missing.stderr);
    Outcome::of(&mut bench.project.command(&["exec"])).expect_code(2);
}

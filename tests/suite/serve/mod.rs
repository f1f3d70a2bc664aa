//! The chat service: what it answers and refuses, how sessions go on, and what is left after a kill.

mod client;
mod clients;
mod crowd;
mod goes_on;
mod hostile;
mod kills;
mod recorded;
mod target;

use super::project::Project;
use super::secrets::walk;
use super::simulator::{Simulator, recording};
use client::{Answered, Asked, Service, post};
use serde_json::{Value, json};
use std::time::Duration;

const QUESTION: &str = "What does error E-17 mean, and how many ohms should the valve coil have?";

fn served(flow: &str, more: &[&str]) -> (Project, Simulator, Service) {
    let (project, simulator) = recording();
    let service = Service::start(&project, flow, more);
    (project, simulator, service)
}

fn kind(answered: &Answered) -> (u16, &str) {
    (answered.status, answered.body["error"]["kind"].as_str().unwrap_or_default())
}

#[test]
fn every_flow_answers_with_sources_flags_and_a_session_that_goes_on() {
    for (flow, tenant) in [("tool-rag", None), ("two-stage", Some("fernlight"))] {
        let (project, _simulator, service) = served(flow, &[]);
        let first = service.ask(&Asked { tenant, ..Asked::new(QUESTION) });
        assert_eq!(first.status, 200, "{flow}: {}", first.body);
        assert!(first.body["answer"].as_str().is_some_and(|text| text.contains("38 to 46 ohms")), "{}", first.body);
        assert_eq!((&first.body["used_internal_kb"], &first.body["used_external_kb"]), (&json!(true), &json!(false)));
        let source = &first.body["sources"][0];
        assert_eq!((&source["kind"], &source["url"]), (&json!("internal"), &Value::Null), "{flow}");
        assert!(source["id"].as_str().is_some_and(|id| id.starts_with("error-codes#")), "{flow}: {source}");
        if flow == "two-stage" {
            assert_eq!(source["filename"], "error-codes.md");
            assert!(source["text"].as_str().is_some_and(|text| text.len() > 100));
            assert!(source["score"].as_f64().is_some_and(|score| score > 0.0 && score <= 1.0));
        }
        let session = first.body["session_id"].as_str().expect("a session").to_owned();
        let second = service.ask(&Asked { session: Some(&session), ..Asked::new("And what does E-21 report?") });
        assert_eq!((second.status, &second.body["session_id"]), (200, &json!(session)), "{}", second.body);
        let stored = project.read(&format!(".ragcheck/serve/{flow}/sessions/{session}.json"));
        assert!(stored.contains("38 to 46 ohms") && stored.contains("E-21"), "{stored}");

        let log = project.read(&format!(".ragcheck/serve/{flow}/events.jsonl"));
        let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let calls: Vec<&Value> = lines.iter().filter(|line| !line["what"]["tool_called"].is_null()).collect();
        assert!(calls.len() >= 2 && calls.iter().all(|line| line["session"] == json!(session)), "{log}");
    }
}

#[test]
fn a_managed_answer_is_a_file_that_can_be_downloaded_in_each_of_its_versions() {
    let (project, simulator) = recording();
    project.write(
        "keys.env",
        "NUCLIA_TOKEN=simulated-service-account-0451\nNUCLIA_ACCOUNT=simulated-account-number-0815\n",
    );
    let trust = ["NUCLIA_TOKEN", "NUCLIA_ACCOUNT"].map(|name| format!("{name}={}", simulator.address));
    let more = [
        "--env-file", "keys.env", "--trust", &trust[0], "--trust", &trust[1], "--scenario",
        "scenarios/managed-rag.yaml",
    ];
    let service = Service::start(&project, "managed-rag", &more);
    let ask = |body: Value| {
        let answered = post(&service.address, &body, &[]);
        assert_eq!(answered.status, 200, "{}", answered.body);
        answered.body
    };
    let context = json!({"user": {"country": "Norway", "year": 2026}});
    let first = ask(json!({"query": QUESTION, "tool_context": context}));
    assert_eq!(first["artifacts"][0]["version"], 1, "{first}");
    assert!(first["sources"][0]["url"].as_str().is_some_and(|url| url.starts_with("/gateway/download/")), "{first}");
    let session = first["session_id"].as_str().expect("a session").to_owned();
    let second = ask(json!({"query": "Which outgoing TCP port does the firewall open?", "session_id": session}));
    assert_eq!(second["artifacts"][0]["version"], 2, "{second}");
    let file = format!("/api/chat/sessions/{session}/artifacts/nuclia_answer.md");
    for (query, part) in [("", "8883"), ("?version=2", "8883"), ("?version=1", "38 to 46 ohms")] {
        let Answered { status, text, .. } = service.get(&format!("{file}{query}"));
        assert!(status == 200 && text.contains(part) && text.contains("## Sources"), "{query}: {status} {text}");
    }
    for wrong in [format!("{file}?version=3"), file.replace(&session, "nobody"), file.replace("nuclia_answer", "other")]
    {
        assert_eq!(service.get(&wrong).status, 404, "{wrong}");
    }
    // The links of its answers lead to the documents, by this service alone.
    let link = first["sources"][0]["url"].as_str().expect("a link");
    let path = link.split('#').next().expect("a path");
    let Answered { status, text, .. } = service.get(path);
    assert!(status == 200 && text.contains("page 2") && text.contains("38 to 46 ohms"), "{link}: {status} {text}");
    let same_origin = format!("http://{}", simulator.address);
    for wrong in [
        path.replace("/codes/", "/nothing/"),
        path.replace("/codes/", "/%2e%2e/"),
        path.replace("/codes/", "/..%2F..%2Fask%3F/"),
        path.replace("/f/", "/t/"),
        "/gateway/download/codes".into(),
    ] {
        let refused = service.get(&wrong);
        assert_eq!(refused.status, 404, "{wrong}: {}", refused.text);
        for secret in ["simulated-service-account-0451", &same_origin, "no such file", "no such knowledge box"] {
            assert!(!refused.text.contains(secret), "{wrong}: {}", refused.text);
        }
    }
    let paths = service.get("/openapi.json").body["paths"].clone();
    assert!(paths["/gateway/download/{resource}/f/{field}/{file}"].is_object(), "{paths}");
    drop(simulator);
    let down = service.get(path);
    assert_eq!(kind(&down), (502, "document_unavailable"), "{}", down.text);
    assert!(!down.text.contains(&same_origin), "{}", down.text);
    let other = json!({"query": QUESTION, "session_id": session, "tool_context": {"user": {"country": "Peru"}}});
    assert_eq!(kind(&post(&service.address, &other, &[])), (400, "invalid_request"));
}

#[test]
fn an_agent_that_reasons_streams_its_budget_statuses_thoughts_and_observations_before_its_answer() {
    let (_project, _simulator, service) = served("react", &[]);
    let streamed = post(&service.address, &Asked::new(QUESTION).body(), &[("accept", "text/event-stream")]);
    let kinds = ["budget", "usage", "thought", "observation", "grades"].map(|kind| format!("\"kind\":\"{kind}\""));
    let [budget, usage, thought, observation, grades] = &kinds;
    let told = ["Thinking…", "Searching…", "event: answer", "\"trajectory\""];
    let [thinking, searching, answer, trajectory] = told;
    let wanted: [&str; 9] = [budget, thinking, usage, thought, searching, observation, grades, answer, trajectory];
    let at = wanted.map(|words| streamed.text.find(words).unwrap_or_else(|| panic!("{words}: {}", streamed.text)));
    assert!(at.is_sorted(), "{at:?} {}", streamed.text);
}

#[test]
fn a_key_of_the_environment_that_somebody_tells_is_in_no_reply_session_or_log() {
    const KEY: &str = "tk-planted-4f81a96c22d0";
    let (project, _simulator) = recording();
    let mut command = project.command(&["serve", "--flow", "two-stage", "--listen", "127.0.0.1:0"]);
    let service = Service::spawn(command.env("DEPLOY_TOKEN", KEY));
    let asked = format!("{QUESTION} My key is {KEY}.");
    let answered = service.ask(&Asked { tenant: Some("fernlight"), ..Asked::new(&asked) });
    assert_eq!(answered.status, 200, "{}", answered.text);
    let foreign = service.ask(&Asked { tenant: Some(KEY), ..Asked::new(QUESTION) });
    assert_eq!(kind(&foreign).0, 404, "{}", foreign.text);
    let body = Asked { tenant: Some("fernlight"), ..Asked::new(&asked) }.body();
    let streamed = post(&service.address, &body, &[("accept", "text/event-stream")]);
    assert!(streamed.text.contains("event: answer"), "{}", streamed.text);
    for told in [&answered.text, &foreign.text, &streamed.text] {
        assert!(!told.contains(KEY), "{told}");
    }
    let mut files = 0;
    walk(&project.path(".ragcheck/serve/two-stage"), &mut |file| {
        files += 1;
        let bytes = std::fs::read(file).expect("a file");
        assert!(!String::from_utf8_lossy(&bytes).contains(KEY), "{}", file.display());
    });
    assert!(files >= 3, "{files} files were looked at");
    let session = answered.body["session_id"].as_str().expect("a session");
    let more = Asked { session: Some(session), tenant: Some("fernlight"), ..Asked::new("And what does E-21 report?") };
    assert_eq!(service.ask(&more).status, 200, "the session goes on");
}

#[test]
fn sessions_that_cannot_be_used_say_why() {
    let (_project, _simulator, service) = served("two-stage", &["--session-lifetime", "2s"]);
    let unknown = "s-00000000000000000000000000000000";
    for session in [unknown, "../../../ragcheck", "main"] {
        let refused = service.ask(&Asked { session: Some(session), ..Asked::new("Why?") });
        assert_eq!(kind(&refused), (404, "unknown_session"), "{session}");
    }
    let first = service.ask(&Asked { tenant: Some("fernlight"), ..Asked::new(QUESTION) });
    let session = first.body["session_id"].as_str().expect("a session").to_owned();
    let other = Asked { session: Some(&session), tenant: Some("marina"), ..Asked::new("Why?") };
    assert_eq!(kind(&service.ask(&other)), (404, "unknown_session"), "another tenant learns nothing of it");
    client::wait(Duration::from_millis(2300));
    let late = service.ask(&Asked { session: Some(&session), ..Asked::new("And in Norway?") });
    assert_eq!(kind(&late), (410, "session_expired"));
    assert_eq!(kind(&service.ask(&Asked { session: Some(&session), ..Asked::new("Why?") })), (410, "session_expired"));
}

#[test]
fn a_session_answers_one_question_at_a_time_and_a_stop_lets_it_end() {
    let project = Project::shipped();
    project.edit(
        "fixtures/simulator/fernlight.yaml",
        "lognormal: {median: 700ms, sigma: 0.4, max: 6s}",
        "constant: 900ms",
    );
    let _simulator = Simulator::start(&project, "fixtures/simulator/fernlight.yaml");
    let mut service = Service::start(&project, "two-stage", &[]);
    let first = service.ask(&Asked { tenant: Some("fernlight"), ..Asked::new(QUESTION) });
    let session = first.body["session_id"].as_str().expect("a session").to_owned();
    let address = service.address.clone();
    let slow = {
        let body = json!({"query": QUESTION, "session_id": session});
        std::thread::spawn(move || post(&address, &body, &[]))
    };
    client::wait(Duration::from_millis(500));
    let meanwhile = service.ask(&Asked { session: Some(&session), ..Asked::new("Why?") });
    assert_eq!(kind(&meanwhile), (409, "session_busy"));
    service.signal("-TERM");
    client::wait(Duration::from_millis(200));
    let answered = slow.join().expect("an answer");
    assert_eq!(answered.status, 200, "a stop lets what is under way end: {}", answered.body);
    assert_eq!(service.wait(), Some(0));
}

#[test]
fn tenants_histories_and_a_failing_provider_have_their_statuses() {
    let (project, simulator, service) = served("two-stage", &[]);
    let nobody = service.ask(&Asked { tenant: Some("nobody"), ..Asked::new("Why?") });
    assert_eq!((kind(&nobody), nobody.body.get("session_id")), ((404, "unknown_tenant"), None));
    assert_eq!(kind(&service.ask(&Asked::new("Why?"))), (404, "unknown_tenant"), "there are several");
    let ports = |tenant| {
        let question = "Which outgoing TCP port does the firewall open?";
        let answered = service.ask(&Asked { tenant: Some(tenant), ..Asked::new(question) });
        answered.body["answer"].as_str().unwrap_or_default().to_owned()
    };
    assert!(ports("fernlight").contains("8883") && !ports("fernlight").contains("993"));
    assert!(ports("marina").contains("993") && !ports("marina").contains("8883"));

    let history = json!([{"role": "user", "content": "How many months does the warranty of the Sprig last?"},
        {"role": "assistant", "content": "24 months [1]."}]);
    let body = json!({"query": "And in Norway?", "tenant_id": "fernlight", "conversationHistory": history});
    let answered = post(&service.address, &body, &[]);
    assert!(answered.body["answer"].as_str().is_some_and(|text| text.contains("Norway")), "{}", answered.body);
    let session = answered.body["session_id"].clone();
    let again = json!({"query": "Why?", "session_id": session, "conversationHistory": history});
    assert_eq!(kind(&post(&service.address, &again, &[])), (400, "invalid_request"));

    drop(simulator);
    let failed = service.ask(&Asked { tenant: Some("fernlight"), ..Asked::new(QUESTION) });
    assert_eq!(kind(&failed), (500, "model_unavailable"));
    assert!(failed.body["session_id"].is_string(), "the session can go on: {}", failed.body);
    assert!(project.read(".ragcheck/serve/two-stage/events.jsonl").contains("model_unavailable"));
}

#[test]
fn what_is_no_question_is_refused_before_anything_is_asked() {
    let (project, _simulator, service) = served("two-stage", &[]);
    let whole = |body: &Value| kind(&post(&service.address, body, &[])).1.to_owned();
    assert_eq!(whole(&json!({"query": " "})), "invalid_request");
    assert_eq!(whole(&json!({"query": "x".repeat(9_000)})), "invalid_request");
    assert_eq!(whole(&json!({"query": "Why?", "sesion_id": "s"})), "invalid_request");
    assert_eq!(whole(&json!({"query": "Why?", "tenant_id": "t".repeat(300)})), "invalid_request");
    assert_eq!(kind(&post(&service.address, &json!({"query": "x".repeat(2 << 20)}), &[])), (413, "too_large"));
    let page = post(&service.address, &json!({"query": "Why?"}), &[("Origin", "https://evil.example")]);
    assert_eq!(kind(&page), (403, "forbidden"));
    let named =
        client::exchange(&service.address, "POST", "/api/chat/query", "evil.example", &json!({"query": "q"}), &[]);
    assert_eq!(kind(&named), (403, "forbidden"));
    let second = project.run(&["serve", "--flow", "two-stage", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.code, 2);
    assert!(second.stderr.contains("another service uses"), "{}", second.stderr);
    assert_eq!(kind(&service.get("/api/chat")), (404, "unknown_path"));
    assert_eq!(kind(&service.get("/api/chat/query")), (405, "wrong_method"));
    assert_eq!(kind(&service.post_to("/api/test/reset")), (404, "unknown_path"), "only an agent under test forgets");
    let log = project.read(".ragcheck/serve/two-stage/events.jsonl");
    assert!(log.is_empty(), "{log}");
}

#[test]
fn a_request_by_the_names_of_the_source_documents_is_answered_as_any_other() {
    let (_project, _simulator, service) = served("two-stage", &[]);
    let history = json!([{"role": "user", "content": "How many months does the warranty of the Sprig last?"},
        {"role": "assistant", "content": "24 months [1]."}]);
    let theirs = json!({"message": "And in Norway?", "tenantId": "fernlight", "conversationHistory": history});
    let ours = json!({"query": "And in Norway?", "tenant_id": "fernlight", "conversationHistory": history});
    let [theirs, ours] = [theirs, ours].map(|body| post(&service.address, &body, &[]));
    // The simulator answers a request that it gets twice in other words; what was searched for is the same.
    assert_eq!((theirs.status, &theirs.body["retrieved"]), (200, &ours.body["retrieved"]), "{}", theirs.body);
    assert!(theirs.body["retrieved"].as_array().is_some_and(|all| !all.is_empty()), "{}", theirs.body);
    assert!(theirs.body["answer"].as_str().is_some_and(|text| text.contains("Norway")), "{}", theirs.body);
}

#[test]
fn a_refused_request_names_the_field_and_the_kind_that_it_must_have() {
    let (_project, _simulator, service) = served("two-stage", &[]);
    let said =
        |role: Value, content: Value| json!([{"role": "user", "content": "q"}, {"role": role, "content": content}]);
    for (body, message) in [
        (json!({"message": 5}), "`message` must be text, not a number"),
        (json!({"query": ["q"]}), "`query` must be text, not a list"),
        (json!({"message": " "}), "`message` is empty"),
        (json!({"tenantId": "fernlight"}), "`query` is missing"),
        (json!({"query": "q", "message": "q"}), "`query` and `message` are two names of one field: send one of them"),
        (json!({"message": "q", "tenantId": {}}), "`tenantId` must be text, not an object"),
        (json!({"message": "q", "tenantId": "t".repeat(300)}), "`tenantId` has more than 128 characters"),
        (json!({"message": "q", "conversationHistory": "q"}), "`conversationHistory` must be a list, not text"),
        (
            json!({"message": "q", "conversationHistory": said(json!("system"), json!("x"))}),
            "`conversationHistory[1].role` must be user or assistant",
        ),
        (
            json!({"message": "q", "conversationHistory": said(json!("user"), json!(true))}),
            "`conversationHistory[1].content` must be text, not a boolean",
        ),
        (
            json!({"message": "q", "tenantld": "fernlight"}),
            "`tenantld` is not a field of a request; its fields: query, message, session_id, tenant_id, tenantId, \
             tool_context, conversationHistory",
        ),
        (json!([1]), "the body cannot be read: invalid type: sequence, expected a JSON object at line 1 column 1"),
    ] {
        let refused = post(&service.address, &body, &[]);
        assert_eq!(kind(&refused), (400, "invalid_request"), "{body}");
        assert_eq!(refused.body["error"]["message"], message, "{body}");
    }
}

#[test]
fn other_machines_need_a_token_and_whoever_has_none_sees_only_that_it_is_up() {
    let (project, _simulator) = recording();
    let open = project.run(&["serve", "--flow", "two-stage", "--listen", "0.0.0.0:0"]);
    open.expect_code(2);
    assert!(open.stderr.contains("--token-env"), "{}", open.stderr);
    let short = project
        .command(&["serve", "--flow", "two-stage", "--token-env", "CHAT_TOKEN"])
        .env("CHAT_TOKEN", "short")
        .output();
    assert_eq!(short.expect("it runs").status.code(), Some(2));

    let token = "a-token-of-this-test-7731";
    let mut command =
        project.command(&["serve", "--flow", "two-stage", "--listen", "127.0.0.1:0", "--token-env", "CHAT_TOKEN"]);
    let service = Service::spawn(command.env("CHAT_TOKEN", token));
    let body = json!({"query": QUESTION, "tenant_id": "fernlight"});
    assert_eq!(kind(&post(&service.address, &body, &[])), (401, "unauthorized"));
    assert_eq!(kind(&post(&service.address, &body, &[("Authorization", "Bearer wrong")])), (401, "unauthorized"));
    assert_eq!(post(&service.address, &body, &[("Authorization", &format!("Bearer {token}"))]).status, 200);
    assert_eq!((service.get("/health").status, service.get("/metrics").status), (200, 401));
    assert!(!project.read(".ragcheck/serve/two-stage/events.jsonl").contains(token));
}

#[test]
fn health_metrics_and_the_description_of_the_service_are_served() {
    let (_project, _simulator, service) = served("two-stage", &[]);
    service.ask(&Asked { tenant: Some("fernlight"), ..Asked::new(QUESTION) });
    service.ask(&Asked { tenant: Some("nobody"), ..Asked::new(QUESTION) });
    assert_eq!(service.get("/health").body["flow"], "two-stage");
    let metrics = service.get("/metrics").text;
    for line in [
        "ragcheck_requests_total{status=\"200\"}",
        "ragcheck_requests_total{status=\"404\"} 1",
        "ragcheck_turns_total{flow=\"two-stage\",end=\"answered\"} 1",
        "ragcheck_turns_total{flow=\"two-stage\",end=\"unknown_tenant\"} 1",
        "ragcheck_turns_under_way 0",
    ] {
        assert!(metrics.contains(line), "{line} in\n{metrics}");
    }
    let document = service.get("/openapi.json").body;
    assert_eq!(document["openapi"], "3.1.0");
    let post = &document["paths"]["/api/chat/query"]["post"];
    for status in ["200", "400", "404", "409", "410", "500", "503"] {
        assert!(post["responses"][status].is_object(), "{status}");
    }
    let reference = post["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str().expect("a reference");
    let schema = document.pointer(reference.trim_start_matches('#')).expect("what it refers to is there");
    let names: Vec<&str> = schema["properties"].as_object().expect("properties").keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["query", "session_id", "tenant_id", "tool_context", "conversationHistory", "message", "tenantId"],
        "{schema}"
    );
    assert_eq!(schema["oneOf"], json!([{"required": ["query"]}, {"required": ["message"]}]), "{schema}");
}

#[test]
fn whoever_accepts_a_stream_sees_what_happens_and_the_same_answer_at_its_end() {
    let (_project, _simulator, service) = served("two-stage", &[]);
    let body = json!({"query": QUESTION, "tenant_id": "fernlight"});
    let streamed = post(&service.address, &body, &[("Accept", "text/event-stream")]);
    let events: Vec<(&str, Value)> = streamed
        .text
        .split("\n\n")
        .filter_map(|block| {
            let name = block.lines().find_map(|line| line.strip_prefix("event: "))?;
            let data = block.lines().find_map(|line| line.strip_prefix("data: "))?;
            Some((name, serde_json::from_str(data).expect("JSON")))
        })
        .collect();
    let stages: Vec<&str> = events.iter().filter_map(|(_, data)| data["stage"].as_str()).collect();
    assert_eq!(stages, ["model", "tool", "tool_ended", "model"], "{}", streamed.text);
    let (name, reply) = events.last().expect("an end");
    assert_eq!((*name, &reply["used_internal_kb"]), ("answer", &json!(true)));
    assert!(
        reply["answer"].as_str().is_some_and(|text| text.contains("38 to 46 ohms")) && reply["session_id"].is_string()
    );
    let failed =
        post(&service.address, &json!({"query": "Why?", "tenant_id": "nobody"}), &[("Accept", "text/event-stream")]);
    assert!(failed.text.contains("event: error") && failed.text.contains("unknown_tenant"), "{}", failed.text);
}

#[test]
fn the_variable_names_the_model_in_live_and_served_use_and_no_recording_depends_on_it() {
    let (project, _simulator) = recording();
    let model = |project: &Project| project.traces()[0]["events"].to_string();
    let run = |mode: &str| {
        let arguments = ["run", "scenarios/two-stage-model.yaml", "--variant", "usual", "--mode", mode, "--no-history"];
        project.command(&arguments).env("OPENAI_MODEL", "gpt-named-by-variable").output().expect("it runs")
    };
    run("live");
    assert!(model(&project).contains("gpt-named-by-variable"));
    run("replay");
    assert!(!model(&project).contains("gpt-named-by-variable") && model(&project).contains("gpt-4o-mini"));
    let mut command = project.command(&["serve", "--flow", "two-stage", "--listen", "127.0.0.1:0"]);
    let service = Service::spawn(command.env("OPENAI_MODEL", "gpt-named-by-variable"));
    service.ask(&Asked { tenant: Some("fernlight"), ..Asked::new(QUESTION) });
    assert!(project.read(".ragcheck/serve/two-stage/events.jsonl").contains("gpt-named-by-variable"));
}

//! Clients that are not ours: curl, and Python as it comes.

use super::*;
use crate::project::Outcome;
use std::process::Command;

#[test]
fn curl_asks_goes_on_and_listens_to_a_stream() {
    let (_project, _simulator, service) = served("tool-rag", &[]);
    let url = format!("http://{}/api/chat/query", service.address);
    let curl = |more: &[&str], body: &Value| {
        let body = body.to_string();
        let usual = ["-sS", "-N", "--fail-with-body", "-H", "content-type: application/json", "-d", &body, &url];
        let outcome = Outcome::of(Command::new("curl").args(usual).args(more));
        assert_eq!(outcome.code, 0, "{}{}", outcome.stdout, outcome.stderr);
        outcome.stdout
    };
    let first: Value = serde_json::from_str(&curl(&[], &json!({"query": QUESTION}))).expect("JSON");
    assert!(first["answer"].as_str().is_some_and(|text| text.contains("38 to 46 ohms")));
    let body = json!({"query": "And what does E-21 report?", "session_id": first["session_id"]});
    let told = curl(&["-H", "accept: text/event-stream"], &body);
    assert!(told.contains("event: status") && told.contains("knowledge_base_search"), "{told}");
    assert!(told.trim_end().lines().rev().any(|line| line == "event: answer"), "{told}");
}

/// The whole client: nothing but the standard library.
const CLIENT: &str = r#"
import json, sys, urllib.error, urllib.request

def ask(**body):
    data = json.dumps(body).encode()
    request = urllib.request.Request(sys.argv[1], data, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)

status, first = ask(query=sys.argv[2], tenant_id="fernlight")
assert status == 200 and "38 to 46 ohms" in first["answer"], (status, first)
numbered = {n: source for n, source in enumerate(first["sources"], 1)}
assert "[1]" in first["answer"] and numbered[1]["filename"].endswith(".md"), first
status, second = ask(query="And what does E-21 report?", session_id=first["session_id"])
assert status == 200 and second["session_id"] == first["session_id"], (status, second)
status, failed = ask(query="Why?", session_id="s-" + "0" * 32)
assert (status, failed["error"]["kind"]) == (404, "unknown_session"), (status, failed)
print("understood")
"#;

#[test]
#[ignore = "needs python3, whatever its packages"]
fn needs_a_bare_interpreter_a_client_in_python_asks_goes_on_and_reads_errors() {
    let (_project, _simulator, service) = served("two-stage", &[]);
    let url = format!("http://{}/api/chat/query", service.address);
    let outcome = Outcome::of(Command::new("python3").args(["-c", CLIENT, &url, QUESTION]));
    assert_eq!((outcome.code, outcome.stdout.trim()), (0, "understood"), "{}", outcome.stderr);
}

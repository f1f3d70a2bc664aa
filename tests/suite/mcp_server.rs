//! `ragcheck mcp-server`: what a coding agent may call, and what it may not; by lines of JSON, and by the official client.

use super::project::Project;
use super::simulator::Simulator;
use crate::program::program;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A server that ends with its input.
struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Server {
    fn start(project: &Project, arguments: &[&str]) -> Self {
        let mut command = project.command(&[&["mcp-server"], arguments].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the server");
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().expect("stdout")));
        let mut server = Self { child, input, output, last: 0 };
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let greeted = server.ask("initialize", &hello);
        assert_eq!(greeted["result"]["protocolVersion"], "2025-06-18");
        server.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn say(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("an open server");
        writeln!(input, "{message}").and_then(|()| input.flush()).expect("it reads");
    }

    fn heard(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line:?}"))
    }

    fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.last += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": parameters}));
        let answer = self.heard();
        assert_eq!(answer["id"], self.last, "{answer}");
        answer
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool, and returns the exit code and what was said.
    fn done(&mut self, tool: &str, arguments: Value) -> (Value, String) {
        let answer = self.call(tool, arguments);
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        (answer["result"]["structuredContent"]["exit_code"].clone(), text.to_owned())
    }

    /// Closes its input; it has to end by itself.
    fn end(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().expect("it ends").success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_coding_agent_checks_runs_shows_and_compares_and_gets_the_exit_code_with_its_meaning() {
    let project = Project::starter();
    let mut server = Server::start(&project, &[]);
    let listed = server.ask("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().expect("tools").clone();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["check", "run", "show", "compare", "record"]);
    for tool in &tools {
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert!(tool["outputSchema"]["properties"]["exit_code"].is_object());
    }
    assert_eq!(server.done("check", json!({})).0, 0);
    let (code, text) = server.done("run", json!({"variant": "strict"}));
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("exit code 0: every required gate passed"), "{text}");
    // A broken expectation is a result with its reason, and no error of the call.
    project.edit("scenarios/questions.yaml", "80 euros", "90 euros");
    let failed = server.call("run", json!({"variant": "strict", "only": ["deposit"]}));
    assert_eq!(failed["result"]["isError"], false);
    assert_eq!(failed["result"]["structuredContent"]["exit_code"], 1, "{failed}");
    assert!(failed.to_string().contains("90 euros"), "{failed}");
    let trial = format!("{}/questions/deposit/tool-rag.strict.1", project.newest());
    let (code, text) = server.done("show", json!({"trial": trial}));
    assert!(code == 0 && text.contains("generate_response") && text.contains("FAIL"), "{text}");
    project.run(&["run"]);
    let (code, text) = server.done("compare", json!({"a": "reports/latest"}));
    assert!(code == 0 && text.contains("strict") && text.contains("short"), "{text}");
    server.end();
}

#[test]
fn calls_under_way_are_answered_although_the_input_closes_behind_them() {
    let project = Project::starter();
    let mut server = Server::start(&project, &[]);
    for id in ["one", "two"] {
        let call = json!({"name": "check", "arguments": {}});
        server.say(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call}));
    }
    drop(server.input.take());
    let mut answered = [server.heard(), server.heard()];
    answered.sort_by_key(|one| one["id"].to_string());
    for (answer, id) in answered.iter().zip(["one", "two"]) {
        assert_eq!((answer["id"].as_str(), &answer["result"]["structuredContent"]["exit_code"]), (Some(id), &json!(0)));
    }
    server.end();
}

#[test]
fn a_mistake_in_a_call_is_explained_and_no_argument_leads_out_of_the_project() {
    let project = Project::starter();
    let mut server = Server::start(&project, &[]);
    for (tool, arguments, words) in [
        ("rum", json!({}), "did you mean `run`?"),
        ("run", json!({"only": "deposit"}), "only: invalid type"),
        ("run", json!({"mode": "live"}), "no argument `mode`"),
        ("check", json!({"paths": ["/etc"]}), "outside of the project"),
        ("show", json!({"trial": "../a/b/c"}), "outside of the project"),
    ] {
        let refused = server.call(tool, arguments);
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert!(refused["error"]["message"].as_str().expect("words").contains(words), "{refused}");
    }
    let long = server.call("show", json!({"trial": 3, "x".repeat(3_000_000): true}));
    let message = long["error"]["message"].as_str().expect("words");
    assert!(message.len() < 1200 && message.contains("bytes left out"), "{} bytes", message.len());
    // What looks like an option is a path that is not there.
    let (code, text) = server.done("run", json!({"paths": ["--mode=live"]}));
    assert!(code == 2 && text.contains("--mode=live"), "{text}");
    let unknown = server.ask("resources/list", &json!({}));
    assert_eq!(unknown["error"]["code"], -32601);
    server.say(&json!("no message"));
    assert_eq!(server.heard()["error"]["code"], -32600);
    server.end();
}

#[test]
fn recording_needs_a_person_who_set_a_limit_and_stops_when_it_is_spent() {
    let project = Project::starter();
    project.edit("simulator/behaviour.yaml", "pace: real", "pace: declared");
    let _simulator = Simulator::start(&project, "simulator/behaviour.yaml");
    let price = "prices: {simulator/starter-model: {input: 10, output: 10}}\n";
    project.write("ragcheck.yaml", &(project.read("ragcheck.yaml") + price));
    let lane = "recordings/questions/deposit/tool-rag.strict.1.yaml";
    let (before, chosen) = (project.read(lane), json!({"variant": "strict", "only": ["deposit"]}));

    let mut careful = Server::start(&project, &[]);
    let refused = careful.call("record", chosen.clone());
    assert_eq!(refused["result"]["isError"], true);
    assert!(refused.to_string().contains("--max-cost USD"), "{refused}");
    assert_eq!(project.read(lane), before, "a refused recording wrote something");
    careful.end();

    let mut server = Server::start(&project, &["--max-cost", "1"]);
    // The agent may divide what it has: too little for one request stops, spends nothing and changes nothing.
    let mut little = chosen.clone();
    little["max_cost"] = json!(0.000_001);
    let stopped = server.call("record", little);
    assert_eq!(stopped["result"]["structuredContent"]["exit_code"], 3, "{stopped}");
    assert_eq!(stopped["result"]["structuredContent"]["spent_usd"], 0.0, "{stopped}");
    assert_eq!(project.read(lane), before);
    let recorded = server.call("record", chosen.clone());
    let money = &recorded["result"]["structuredContent"];
    assert_eq!(money["exit_code"], 0, "{recorded}");
    let (spent, left) = (money["spent_usd"].as_f64().expect("spent"), money["left_usd"].as_f64().expect("left"));
    assert!(spent > 0.0 && (spent + left - 1.0).abs() < 1e-9, "{recorded}");
    assert_ne!(project.read(lane), before, "nothing was recorded");
    // What is left never grows.
    let usage = server.call("record", json!({"variant": "none-of-that-name"}));
    assert_eq!(usage["result"]["structuredContent"]["left_usd"], left, "{usage}");
    project.edit("ragcheck.yaml", "input: 10, output: 10", "input: 3000, output: 3000");
    // An agent that edits the project raises no limit.
    let refused = server.call("record", chosen.clone());
    assert_eq!(refused["result"]["isError"], true);
    assert!(refused.to_string().contains("a person has to start it again"), "{refused}");
    assert!(!project.path(&format!(".ragcheck/spent-{}", server.child.id())).exists());
    server.end();
    // Nor does one that edits it once the server has looked.
    let late = project.run(&["run", "--mode=record", "--max-cost=1", "--charged-by=0"]);
    assert!(late.expect_code(2).stderr.contains("changed after the server checked them"), "{}", late.stderr);

    // A run that would pass what is left is stopped by it.
    let mut server = Server::start(&project, &["--max-cost", "1"]);
    let last = server.call("record", json!({"variant": "strict"}));
    assert_eq!(last["result"]["structuredContent"]["exit_code"], 3, "{last}");
    assert!(last.to_string().contains("is used up"), "{last}");
    assert!(last["result"]["structuredContent"]["left_usd"].as_f64().expect("left") <= 1.0, "{last}");
    server.end();
}

#[test]
#[ignore = "needs the clients that `tests/sdks/install` installs: RAGCHECK_SDKS"]
fn needs_sdks_the_official_client_lists_and_calls_the_tools() {
    let project = Project::starter();
    let sdks = std::env::var("RAGCHECK_SDKS").expect("RAGCHECK_SDKS");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sdks/mcp_server.py");
    let mut command = std::process::Command::new(format!("{sdks}/python/bin/python"));
    command.arg(script).current_dir(project.path(".")).env("RAGCHECK_PROGRAM", program());
    let outcome = super::project::Outcome::of(&mut command);
    outcome.expect_code(0);
    let said: Value = serde_json::from_str(outcome.stdout.trim())
        .unwrap_or_else(|why| panic!("{why}: {}{}", outcome.stdout, outcome.stderr));
    assert_eq!(said["tools"], json!(["check", "run", "show", "compare", "record"]));
    assert_eq!((said["run"]["exit_code"].as_i64(), said["wrong"].as_bool()), (Some(0), Some(true)), "{said}");
    assert!(said["record"].as_str().expect("words").contains("--max-cost"), "{said}");
}

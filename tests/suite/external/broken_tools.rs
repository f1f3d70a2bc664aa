//! Faults of an agent's own tools, which are reached in its requests to the model: an agent whose model is broken for one of
//! them fails the cells of that fault and no other. The agent is a process of this test binary, its model a script.

use super::super::scripted_model::{Script, results};
use super::started::{plain, proxy, run, stage};
use serde_json::{Value, json};
use std::io::{BufRead, Write};

const CASE: &str =
    "  - {case: warranty, ask: How long does the warranty last?, expect: {answer: {contains: [24 months]}}}\n";
const FOUND: &str = "The warranty lasts 24 months.";
const KINDS: [&str; 4] = ["tool-fails", "tool-empty", "tool-duplicates", "tool-contradicts"];

/// Looks up what its model asks for, and replies with what it answers by its tool. Its prompt names the fault that breaks it.
#[expect(clippy::print_stdout, reason = "the process of an agent talks by its output")]
pub(super) fn agent(broken: &str) {
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}});
    for line in std::io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let mut messages =
            vec![json!({"role": "system", "content": broken}), json!({"role": "user", "content": asked["message"]})];
        let answer = loop {
            let body = json!({"model": "any", "messages": messages, "tools": [tool("find"), tool("final_answer")]});
            let head = "POST \nAuthorization: Bearer a-key\r\nContent-Type: application/json\r\n";
            let at = format!("http://{}/model/v1/chat/completions", proxy());
            let (_, said) = super::started::exchange(&at, head, body.to_string().as_bytes());
            let said: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
            let message = said["choices"][0]["message"].clone();
            let call = message["tool_calls"][0].clone();
            if call["function"]["name"] != "find" {
                let arguments = call["function"]["arguments"].as_str().unwrap_or("{}");
                break serde_json::from_str::<Value>(arguments).expect("JSON")["answer"].clone();
            }
            messages.push(message);
            messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": FOUND}));
        };
        println!("{}", json!({"answer": answer}));
        std::io::stdout().flush().expect("flushed");
    }
    std::process::exit(0);
}

/// It looks it up and says what it found, or that it found nothing to rely on; after the fault that breaks it, nothing.
fn script(request: &Value, _: bool) -> (&'static str, Value) {
    let Some(found) = results(request).first().copied().map(str::to_owned) else {
        return ("find", json!({"query": "warranty"}));
    };
    let met = match found.matches("months").count() {
        0 if found.contains("error") => "tool-fails",
        0 => "tool-empty",
        1 => "none",
        _ if found.matches("24").count() == 2 => "tool-duplicates",
        _ => "tool-contradicts",
    };
    let answer = match met {
        _ if request["messages"][0]["content"] == met => "",
        "none" | "tool-duplicates" => FOUND,
        _ => "I found nothing that I can rely on.",
    };
    ("final_answer", json!({"answer": answer}))
}

#[test]
fn an_agent_that_is_broken_for_one_fault_of_its_tools_fails_the_cells_of_that_fault_and_no_other() {
    for broken in ["nothing"].iter().chain(&KINDS) {
        let (stage, model) = (stage(&format!("broken-tools {broken}"), ""), Script::start(script));
        plain(&stage, CASE);
        stage.project.edit("agent.yaml", "cases:", "roles: {knowledge: find, respond: final_answer}\ncases:");
        let address = &stage.simulator.as_ref().expect("one").address;
        let served = stage
            .project
            .read("ragcheck.yaml")
            .replace(&format!("http://{address}/v1"), &format!("http://{}/v1", model.address));
        stage.project.write("ragcheck.yaml", &served);
        let recorded = run(&stage, &["--mode", "record", "--no-history"]);
        assert!(recorded.stdout.contains("1 trial: 1 PASS"), "{broken}: {}{}", recorded.stdout, recorded.stderr);
        let kinds = KINDS.map(|kind| format!("--fault={kind}"));
        let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
        let outcome = stage
            .project
            .run(&[&["faults", "agent.yaml", "--mode", "record", "--format", "json"][..], &kinds].concat());
        let found: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{}", outcome.stderr));
        let cells = found["cells"].as_array().expect("cells");
        assert_eq!(cells.len(), KINDS.len(), "{cells:?}");
        for cell in cells {
            let expected = match cell["fault"].as_str().expect("a fault") {
                fault if fault == *broken => "wrong",
                "tool-duplicates" => "recovered",
                _ => "degraded",
            };
            assert_eq!(cell["verdict"], expected, "{broken}: {cell}");
        }
        assert_eq!(outcome.code, i32::from(*broken != "nothing"), "{broken}");
    }
}

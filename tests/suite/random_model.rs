//! A model that answers at random, with any offered tool or any text, fails gates of every flow, and keeps the self-tests.

use super::project::{Outcome, Project};
use super::scripted_model::serve;
use super::simulator::{Simulator, recording};
use serde_json::{Value, json};

const WORDS: [&str; 12] = [
    "canopy", "harvest", "seventeen", "probably", "Reykjavik", "valve", "tomorrow", "4711", "blue", "ledger", "[3]",
    "Napoleon",
];

/// A seeded draw: the upper bits of a linear congruential step.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most.max(1)
    }

    fn text(&mut self, words: usize) -> String {
        (0..words).map(|_| WORDS[self.below(WORDS.len())]).collect::<Vec<_>>().join(" ")
    }

    /// Any value that the JSON Schema of an argument allows, by its types alone.
    fn value(&mut self, schema: &Value) -> Value {
        if let Some(values) = schema["enum"].as_array() {
            return values[self.below(values.len())].clone();
        }
        match schema["type"].as_str().unwrap_or("string") {
            "object" => {
                let properties = schema["properties"].as_object().into_iter().flatten();
                Value::Object(properties.map(|(name, one)| (name.clone(), self.value(one))).collect())
            }
            "array" => (0..=self.below(3)).map(|_| self.value(&schema["items"])).collect(),
            "integer" => json!(1 + self.below(5)),
            "number" => json!(0.5),
            "boolean" => json!(self.below(2) == 0),
            _ => json!(self.text(4)),
        }
    }

    /// A completion in the shape of Chat Completions.
    fn completion(&mut self, request: &Value) -> Value {
        let tools: Vec<&Value> = request["tools"].as_array().into_iter().flatten().collect();
        let may_call = !tools.is_empty() && request["tool_choice"] != "none";
        let message = if may_call && self.below(3) > 0 {
            let function = &tools[self.below(tools.len())]["function"];
            let arguments = self.value(&function["parameters"]).to_string();
            let call = json!({"name": function["name"], "arguments": arguments});
            let id = format!("call_{}", self.below(1_000_000));
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": call}]})
        } else {
            json!({"role": "assistant", "content": self.text(9)})
        };
        let finish = if message["content"].is_null() { "tool_calls" } else { "stop" };
        json!({
            "id": "random", "object": "chat.completion", "created": 0, "model": "random",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        })
    }
}

/// The shipped project with a model that answers at random; search service and managed retrieval stay the simulator's.
pub fn project() -> (Project, Simulator) {
    let (project, simulator) = recording();
    let model = serve(|number| {
        let mut dice = Dice(7 + number);
        move |request: &Value| dice.completion(request)
    });
    let served = format!("base_url: http://{}/v1", simulator.address);
    project.edit("ragcheck.yaml", &served, &format!("base_url: http://{model}/v1"));
    (project, simulator)
}

/// Fails unless gates and criteria of the agent fail in the newest run, besides the one that its cases pass, and no self-test does.
pub fn expect_failed_gates(project: &Project, flow: &str, outcome: &Outcome) {
    let run = project.latest("run.json");
    let rows = |member: &str| run[member].as_array().cloned().unwrap_or_default();
    let of_agent: Vec<Value> = [rows("criteria"), rows("gates")].concat();
    let failed: Vec<&str> = of_agent
        .iter()
        .filter(|row| row["verdict"] == "FAIL" && row["required"] == true && row["metric"] != "case_pass_rate")
        .filter_map(|row| row["id"].as_str())
        .collect();
    assert!(failed.len() >= 2, "{flow}: only {failed:?} fail\n{}{}", outcome.stdout, outcome.stderr);
    let broken: Vec<Value> = rows("self_tests").into_iter().filter(|row| row["verdict"] == "FAIL").collect();
    assert!(broken.is_empty(), "{flow}: {broken:?}");
}

#[test]
fn a_model_that_answers_at_random_fails_gates_of_every_flow_and_keeps_the_self_tests() {
    let (project, simulator) = project();
    let of_flow = [
        ("react", "scenarios/react.yaml"),
        ("two-stage", "scenarios/two-stage.yaml"),
        ("managed-rag", "scenarios/managed-rag.yaml"),
        ("tool-rag", "scenarios/external.yaml"),
    ];
    for (flow, scenario) in of_flow {
        let mut command = project.command(&["run", scenario, "--mode", "live", "--repeat=2", "--no-history"]);
        command.env("NUCLIA_TOKEN", "simulated-service-account-0451");
        command.env("NUCLIA_ACCOUNT", "simulated-account-number-0815");
        let host = &simulator.address;
        command.env("RAGCHECK_TRUST", format!("NUCLIA_TOKEN={host} NUCLIA_ACCOUNT={host}"));
        let outcome = Outcome::of(&mut command);
        expect_failed_gates(&project, flow, &outcome);
    }
}

//! Traces that people labelled, in `tests/labelled/`: what an expectation or a metric must make of each, and why.

use super::import_traces::published;
use ragcheck::internals::plan::Plan;
use ragcheck::internals::suite::evaluation::{ExaminedTrace, RunEvaluator};
use ragcheck::internals::suite::import;
use ragcheck::internals::trace::Trace;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;

/// The metrics of the tables, by their short names.
const METRICS: &[(&str, &str, &str)] = &[
    ("mandatory_first", "mandatory_call_rate(knowledge_base_search, at=first)", ">= 5%"),
    ("mandatory", "mandatory_call_rate(knowledge_base_search, at=after_retry)", ">= 5%"),
    ("first_attempt", "first_attempt_rate(generate_response)", ">= 5%"),
    ("recovery", "retry_recovery(by=attempt, accounts=model+tool)", ">= 5%"),
    ("recovery_episodes", "retry_recovery(by=episode, accounts=model+tool)", ">= 5%"),
    ("recovery_transport", "retry_recovery(by=attempt, accounts=transport)", ">= 5%"),
    ("keywords", "keyword_coverage", ">= 5%"),
    ("order", "order_violation_rate", "<= 5%"),
    ("validity", "citation_validity", ">= 5%"),
    ("provenance", "citation_provenance", ">= 5%"),
    ("context", "context_preservation", ">= 5%"),
    ("combined", "combined_sources", ">= 5%"),
    ("refusal", "refusal_rate", ">= 5%"),
    ("answered", "turn_success_rate", ">= 5%"),
    ("verbatim", "verbatim_query_rate(perplexity_search)", "<= 5%"),
    ("latency", "latency_p95", "<= 10s"),
];

pub fn labelled(name: &str) -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/labelled").join(name);
    let text = std::fs::read_to_string(&file).expect(name);
    serde_saphyr::from_str(&text).expect(name)
}

pub fn criteria(names: &[&str]) -> Vec<Value> {
    let named = |(id, metric, target): &&(&str, &str, &str)| json!({"id": id, "about": id, "metric": metric, "target": target, "kind": "confidence"});
    METRICS.iter().filter(|(id, ..)| names.contains(id)).map(|row| named(&row)).collect()
}

/// The parts of the tools.
fn roles() -> Value {
    json!({"knowledge_base_search": "knowledge", "perplexity_search": "external", "index_keywords": "index", "generate_response": "respond"})
}

/// A plan of one trial.
fn plan(turns: usize, expect: &Value, names: &[&str]) -> Value {
    let asks: Vec<Value> = (0..turns).map(|_| json!({"ask": "q"})).collect();
    let id = "s/c/tool-rag.base.1";
    let setting = json!({"variant": "base", "provider": "simulator", "model": "m", "temperature": 0.0, "enforcement": "feedback", "prompts": {}});
    json!({"version": 1, "seed": 0, "not_measured_ok": [], "machines": {}, "requirements": {},
        "criteria": {"about": "", "criteria": criteria(names)},
        "scenarios": [{"name": "s", "file": "s.yaml", "about": "", "flow": "tool-rag", "variants": [["base", "base"]],
            "settings": [setting], "search": "x", "gates": [],
            "cases": [{"line": 1, "case": {"case": "c", "turns": asks, "expect": expect}}]}],
        "trials": [{"id": id, "scenario": 0, "case": 0, "seed": 1,
            "lane": {"flow": "tool-rag", "variant": "base", "repetition": 1, "arm": "main"}}]})
}

/// A trace in the making, as steps tell it.
#[derive(Default)]
struct Teller {
    events: Vec<Value>,
    turns: u32,
    at: u64,
    ids: u32,
    completions: u32,
    history: Vec<String>,
}

impl Teller {
    fn push(&mut self, what: Value) {
        self.events
            .push(json!({"at_us": self.at, "conversation": 0, "turn": self.turns.saturating_sub(1), "what": what}));
    }

    fn call(&mut self, tool: &str, arguments: &Value, outcome: &Value) {
        self.ids += 1;
        let id = format!("c{}", self.ids);
        self.push(json!({"tool_called": {"call": 0, "id": id, "tool": tool, "arguments": arguments, "outcome": outcome, "took_us": 1}}));
    }

    fn step(&mut self, step: &Value) {
        let (name, given) = match step {
            Value::String(name) => (name.as_str(), Value::Null),
            Value::Object(one) => {
                one.iter().next().map(|(name, given)| (name.as_str(), given.clone())).expect("a step")
            }
            other => panic!("{other} is no step"),
        };
        let text = |key: &str, default: &str| given.get(key).and_then(Value::as_str).unwrap_or(default).to_owned();
        let value = |key: &str, default: Value| given.get(key).cloned().unwrap_or(default);
        let number = |key: &str, default: u64| given.get(key).and_then(Value::as_u64).unwrap_or(default);
        let tool = given.as_str().map_or_else(|| text("tool", ""), str::to_owned);
        let refused = json!({"cause": text("cause", "schema"), "reason": "bad", "guidance": ""});
        match name {
            "turn" => {
                self.turns += 1;
                let query = text("query", "q");
                self.history.push(format!("user:{query}"));
                self.push(json!({"turn_started": {"query": query}}));
            }
            "completion" => {
                let shown = given.get("shown").cloned().unwrap_or_else(|| json!(["sys"]));
                let call = self.completions;
                self.completions += 1;
                self.push(json!({"model_called": {"call": call, "state": "s", "took_us": 1, "shown": shown, "tool_choice": "auto", "attempts": [],
                    "reply": {"completion": {"model": "m", "finish": "stop", "calls": value("calls", json!([])),
                        "input_tokens": given.get("input"), "output_tokens": given.get("output")}}}}));
            }
            "search" => {
                let ids = if given.is_array() { given.clone() } else { value("ids", json!(["doc#1"])) };
                let ids: Vec<&str> = ids.as_array().expect("ids").iter().map(|id| id.as_str().expect("an id")).collect();
                let hit = |id: &&str| json!({"id": id, "title": "", "raw_score": 1.0, "excerpt": ""});
                let hits: Vec<Value> = ids.iter().map(hit).collect();
                let found = json!({"query": "x", "kb_id": "default_kb", "hits": hits, "without_learned": ids});
                self.call("knowledge_base_search", &value("arguments", json!({"query": "x"})), &json!({"ok": {"search": found}}));
            }
            "ask_outside" => {
                let citations = value("citations", json!([["t", "https://example.org/a"]]));
                let found = json!({"result": text("result", "result-1"), "query": "w", "answer": "so", "citations": citations, "model": "s"});
                self.call("perplexity_search", &value("arguments", json!({"query": "w"})), &json!({"ok": {"external": found}}));
            }
            "index" => {
                let keywords = value("keywords", json!(["a b", "c d", "e f"]));
                let read = value("read_back", keywords.clone());
                let index = json!({"result": text("result", "result-1"), "keywords": keywords, "merged": [], "read_back": read});
                self.call("index_keywords", &json!({}), &json!({"ok": {"indexed": index}}));
            }
            "reject" => self.call(&tool, &value("arguments", json!({})), &json!({"rejected": refused})),
            "out_of_order" => self.call(&tool, &value("arguments", json!({})), &json!({"out_of_order": refused})),
            "fail_call" => self.call(&tool, &value("arguments", json!({})), &json!({"failed": {"message": "down", "retryable": true}})),
            "call" => self.call(&tool, &value("arguments", json!({})), &value("outcome", json!({"ok": {"other": null}}))),
            "feedback" => self.push(json!({"fed_back": {"step": "x", "tool": tool, "cause": text("cause", "missing_call"), "message": ""}})),
            "retry" => self.push(json!({"retried": {"account": text("account", "model"), "episode": number("episode", 1),
                "attempt": number("attempt", 1), "target": text("target", "generate_response"), "cause": text("cause", "missing_call"),
                "recovered": value("recovered", json!(true))}})),
            "respond" => self.respond(&value("arguments", json!({"answer": "so"}))),
            "answer" => {
                self.respond(&json!({"answer": text("text", "so")}));
                self.end(&given);
            }
            "end" => self.end(&given),
            "error" => {
                let kind = given.as_str().map_or_else(|| text("kind", "no_response"), str::to_owned);
                self.ended(number("took_us", 1_000_000), &json!({"failed": {"kind": kind, "message": "sorry"}}));
            }
            other => panic!("`{other}` is no step"),
        }
    }

    fn respond(&mut self, arguments: &Value) {
        self.call("generate_response", arguments, &json!({"ok": "responded"}));
    }

    fn end(&mut self, given: &Value) {
        let listed = given.get("sources").and_then(Value::as_array).cloned().unwrap_or_default();
        let source = |one: &Value| json!({"kind": one[0], "id": one[1], "title": ""});
        let sources: Vec<Value> = listed.iter().map(source).collect();
        let used = |key: &str, kind: &str| {
            given.get(key).and_then(Value::as_bool).unwrap_or_else(|| listed.iter().any(|one| one[0] == kind))
        };
        let answer = json!({"text": given.get("text").and_then(Value::as_str).unwrap_or("so"), "sources": sources, "confidence": null,
            "used_internal_kb": used("used_internal", "internal"), "used_external_kb": used("used_external", "external")});
        self.ended(given.get("took_us").and_then(Value::as_u64).unwrap_or(2_000_000), &json!({"answered": answer}));
    }

    fn ended(&mut self, took: u64, outcome: &Value) {
        self.at += took;
        let history = self.history.clone();
        self.push(json!({"turn_ended": {"took_us": took, "outcome": outcome, "history": history}}));
    }

    fn done(self) -> Trace {
        let evidence = json!({"mode": "replay", "recorded_from": "simulator", "recorded_at": "2026-11-22T05:18:12Z", "model": "m", "knowledge": "k"});
        let mut events = vec![
            json!({"at_us": 0, "conversation": 0, "turn": 0, "what": {"conversation_started": {"name": "main", "session": "main"}}}),
        ];
        events.extend(self.events);
        serde_json::from_value(json!({"version": 1, "trial": "s/c/tool-rag.base.1", "scenario": "s", "case": "c", "seed": 1, "end": "completed", "roles": roles(),
            "lane": {"flow": "tool-rag", "variant": "base", "repetition": 1, "arm": "main"}, "evidence": evidence, "took_us": self.at, "events": events}))
        .expect("a trace")
    }
}

/// What the evaluation of one plan with these traces comes to, as JSON.
pub fn evaluation(plan: Plan, traces: &[Trace]) -> Value {
    let plan = Arc::new(plan);
    let mut evaluator = RunEvaluator::begin(&plan).expect("criteria and expectations that can be read");
    for trace in traces {
        let examined = ExaminedTrace::of(&evaluator.examiner(), trace, &[]);
        evaluator.add(Some(trace), &[], examined).expect("a planned trial");
    }
    serde_json::to_value(evaluator.finish().evaluation).expect("JSON")
}

fn tell(steps: &[Value]) -> Trace {
    let mut teller = Teller::default();
    for step in steps {
        teller.step(step);
    }
    teller.done()
}

/// Successes and units of each wanted metric that differ from the label, in words.
pub fn differences(name: &str, why: &str, counts: &Map<String, Value>, found: &Value) -> Vec<String> {
    let gates = found["criteria"].as_array().or_else(|| found["gates"].as_array()).expect("gates");
    let differs = |(metric, wanted): (&String, &Value)| {
        let gate = gates.iter().find(|gate| gate["id"] == **metric).expect(metric);
        let seen = json!([gate["successes"], gate["n"]]);
        (seen != *wanted).then(|| format!("{name}: {metric} is {wanted}, because {why}; it was {seen}"))
    };
    counts.iter().filter_map(differs).collect()
}

pub fn names(counts: &Map<String, Value>) -> Vec<&str> {
    counts.keys().map(String::as_str).collect()
}

pub fn text<'v>(one: &'v Value, key: &str) -> &'v str {
    one[key].as_str().unwrap_or_else(|| panic!("`{key}` of {one}"))
}

#[test]
fn expectations_hold_where_people_say_so_and_nowhere_else() {
    let (mut wrong, all) = (Vec::new(), labelled("expectations.yaml"));
    for one in &all {
        let trace = tell(one["steps"].as_array().expect("steps"));
        let plan = serde_json::from_value(plan(1, &one["expect"], &["answered"])).expect("a plan");
        let found = evaluation(plan, &[trace]);
        let holds = found["trials"][0]["verdict"] == "PASS";
        if one["holds"] != holds {
            wrong.push(format!(
                "{}: holds is {}, because {}; {}",
                text(one, "name"),
                one["holds"],
                text(one, "why"),
                found["trials"][0]["checks"]
            ));
        }
    }
    assert!(all.len() > 110, "{}", all.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

#[test]
fn metrics_count_what_people_count() {
    let (mut wrong, all) = (Vec::new(), labelled("metrics.yaml"));
    for one in &all {
        let steps = one["steps"].as_array().expect("steps");
        let turns = steps.iter().filter(|step| **step == "turn" || step.get("turn").is_some()).count();
        let counts = one["counts"].as_object().expect("counts");
        let plan = serde_json::from_value(plan(turns, &json!({}), &names(counts))).expect("a plan");
        wrong.extend(differences(text(one, "name"), text(one, "why"), counts, &evaluation(plan, &[tell(steps)])));
    }
    assert!(all.len() > 65, "{}", all.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

#[test]
fn citations_are_read_in_every_common_spelling() {
    let (mut wrong, all) = (Vec::new(), labelled("citations.yaml"));
    for one in &all {
        let named: Vec<Value> = one["sources"]
            .as_array()
            .expect("sources")
            .iter()
            .map(|one| json!({"kind": one[0], "id": one[1]}))
            .collect();
        let steps = [
            json!("turn"),
            json!({"search": ["doc#1", "doc#2"]}),
            json!({"respond": {"arguments": {"answer": one["text"], "sources": named}}}),
            json!({"end": {"text": one["text"], "sources": one["sources"]}}),
        ];
        let counts = Map::from_iter([("provenance".to_owned(), one["counts"].clone())]);
        let plan = serde_json::from_value(plan(1, &json!({}), &["provenance"])).expect("a plan");
        wrong.extend(differences(text(one, "name"), text(one, "why"), &counts, &evaluation(plan, &[tell(&steps)])));
    }
    assert!(all.len() > 30, "{}", all.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

/// A message as OpenAI writes it.
pub fn message(short: &Value) -> Value {
    let (kind, given) = short.as_object().and_then(|one| one.iter().next()).expect("a message");
    match kind.as_str() {
        "calls" => {
            let call = |one: &Value| json!({"id": one[0], "type": "function", "function": {"name": one[1], "arguments": one[2]}});
            let calls: Vec<Value> = given.as_array().expect("calls").iter().map(call).collect();
            json!({"role": "assistant", "content": null, "tool_calls": calls})
        }
        "tool" => json!({"role": "tool", "tool_call_id": given[0], "content": given[1]}),
        "refusal" => json!({"role": "assistant", "content": null, "refusal": given}),
        role => json!({"role": role, "content": given}),
    }
}

#[test]
fn imported_conversations_count_as_people_count_them() {
    let (mut wrong, all) = (Vec::new(), labelled("imports.yaml"));
    for one in &all {
        let messages: Vec<Value> = one["messages"].as_array().expect("messages").iter().map(message).collect();
        let counts = one["counts"].as_object().expect("counts");
        let asked = serde_json::from_value(json!({"criteria": criteria(&names(counts))})).expect("criteria");
        let file = json!([messages]).to_string();
        let read = import::messages("c.json", file.as_bytes(), Some(asked)).expect("a file");
        let asked = Some(read.plan.criteria.clone());
        // The same conversation as a published trace.
        let traces = read.traces.iter().map(|trace| serde_json::to_value(trace).expect("JSON"));
        let file: Value = traces.map(|trace| published(&trace, None)).collect();
        wrong.extend(differences(text(one, "name"), text(one, "why"), counts, &evaluation(read.plan, &read.traces)));
        let again = import::Format::Trace.read("c.json", file.to_string().as_bytes(), asked, None).expect("traces");
        let name = format!("{}, as a published trace", text(one, "name"));
        wrong.extend(differences(&name, text(one, "why"), counts, &evaluation(again.plan, &again.traces)));
    }
    assert!(all.len() > 20, "{}", all.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

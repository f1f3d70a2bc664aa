//! The service as the agent of `flow: external`: what its traffic shows is judged as in process.

use super::*;
use crate::ports;
use crate::project::Outcome;
use crate::random_model;
use serde_json::Map;
use std::collections::BTreeMap;

/// Criteria and gates that traffic does not show: the list of docs/how-to/chat-service.md.
const NOT_SHOWN: [&str; 26] = [
    "SC-002", "SC-003", "SC-006", "SC-006-found", "SC-006-harm", "SC-007", "CITATIONS", "FLAGS", "flags", "ORDER",
    "KEYWORDS", "every-answer-cites", "nothing-found-is-said", "tenants-apart", "states",
    // Criteria of one flow count agents that run elsewhere too; a served reply has excerpts in place of whole passages.
    "searched", "own-words", "supported-facts", "FACTS", "ranks",
    // Self-tests that read refusals, flags or the log.
    "SHOWN", "STATES", "REPLIES", "shown", "messages", "replies",
];

/// Cases whose verdict differs where the agent is served, by `scenario/case`: the list of docs/how-to/chat-service.md.
/// The service of a knowledge base's vectors is asked beside the proxy, so its attempts are in no trace.
const OTHERWISE: [&str; 1] = ["edges/knowledge-down"];

const TOOL_RAG: &str = r#"{"knowledge": "knowledge_base_search", "external": "perplexity_search", "index": "index_keywords", "respond": "generate_response"}"#;
const TWO_STAGE: &str = r#"{"knowledge": "retrieve_documents"}"#;

/// The verdicts of one run: of criteria and gates with their failures, and of each case's only trial, with its reason.
#[derive(Debug, Default)]
struct Verdicts {
    of_tool_rag: bool,
    /// Verdict, successes and units, and the sentence, by id.
    criteria: BTreeMap<String, (String, [u64; 2], String)>,
    cases: BTreeMap<String, (String, String)>,
}

fn verdicts(project: &Project) -> Verdicts {
    let run = project.latest("run.json");
    let list = |name: &str| run[name].as_array().cloned().unwrap_or_default();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let rows = list("criteria").into_iter().chain(list("gates")).chain(list("self_tests"));
    let criteria = rows.map(|row| {
        let id = text(&row, "id").rsplit('/').next().unwrap_or_default().to_owned();
        let counts = ["successes", "n"].map(|key| row[key].as_u64().expect("a count"));
        (id, (text(&row, "verdict"), counts, text(&row, "sentence")))
    });
    let reason = |row: &Value| {
        let failed = row["checks"].as_array().into_iter().flatten().filter(|check| check["passed"] == false);
        let failed: Vec<String> =
            failed.map(|check| format!("{}: {}", text(check, "what"), text(check, "seen"))).collect();
        format!("{} {}", text(row, "error"), failed.join("; "))
    };
    let cases = list("trials").into_iter().map(|row| {
        let verdict = (text(&row, "verdict"), reason(&row));
        (text(&row, "case"), verdict)
    });
    Verdicts { of_tool_rag: false, criteria: criteria.collect(), cases: cases.collect() }
}

/// The simulated model without mistakes and variety by chance: chance differs between trials of other names.
fn without_chance(project: &Project) {
    let names = ["forget_knowledge_base", "forget_response", "verbatim_query", "slow", "rate_limited", "persist"];
    let never = names.map(|name| format!("{name}: 0")).join(", ");
    let rates = format!("source: nothing by chance\nhabits: {{{never}}}\n");
    project.write("fixtures/simulator/fernlight-rates.yaml", &rates);
    project.edit("fixtures/simulator/fernlight.yaml", "variety: 0.9", "variety: 0");
}

/// The scenario as both sides run it: without conversations side by side and without controls, which an agent that runs
/// elsewhere cannot have.
fn common(scenario: &mut Value) {
    let name = scenario["scenario"].as_str().expect("a name").to_owned();
    let cases = scenario["cases"].as_array_mut().expect("cases");
    cases.retain(|case| {
        let id = format!("{name}/{}", case["case"].as_str().unwrap_or_default());
        !case.to_string().contains("\"together\"") && !OTHERWISE.contains(&id.as_str())
    });
    for case in cases {
        let case = case.as_object_mut().expect("a case");
        case.remove("control");
        case.remove("repeat");
    }
    scenario.as_object_mut().expect("a scenario").remove("repeat");
}

/// The same for the served agent: what a scenario of `flow: external` may say, and what traffic shows.
fn served_as(scenario: &Value, variant: Option<&str>, flow: &str, service: &Service, proxy: &str) -> Value {
    let mut out = Map::new();
    for key in ["scenario", "about", "covers", "search", "limits", "gates", "gates_of", "cases"] {
        if let Some(value) = scenario.get(key) {
            out.insert(key.into(), value.clone());
        }
    }
    let model = variant.and_then(|name| scenario["variants"][name].get("model")).unwrap_or(&scenario["model"]);
    out.insert("model".into(), json!({"provider": model["provider"], "name": model["name"]}));
    if let Some(limits) = out.get_mut("limits").and_then(Value::as_object_mut) {
        limits.retain(|name, _| matches!(name.as_str(), "turn" | "request"));
        // The agent's own limit comes first.
        limits.insert("turn".into(), json!("60s"));
    }
    let tenant = if flow == "two-stage" { json!("{tenant}") } else { Value::Null };
    let mut send = json!({"query": "{message}", "session_id": "{conversation_id}"});
    if !tenant.is_null() {
        send["tenant_id"] = tenant;
    }
    let url = |path: &str| format!("http://{}/{path}", service.address);
    out.insert("flow".into(), json!("external"));
    out.insert("target".into(), json!({"http": url("api/chat/query"), "send": send}));
    out.insert("reset".into(), json!({"http": url("api/test/reset")}));
    out.insert("proxy".into(), json!(proxy));
    let roles = if flow == "two-stage" { TWO_STAGE } else { TOOL_RAG };
    out.insert("roles".into(), serde_json::from_str(roles).expect("JSON"));
    let mut scenario = Value::Object(out);
    for case in scenario["cases"].as_array_mut().expect("cases") {
        shown(case, flow);
    }
    scenario
}

/// Takes out of all expectations what traffic does not show.
fn shown(value: &mut Value, flow: &str) {
    // Nobody is asked for an unknown tenant.
    if value["case"] == "unknown-tenant" {
        value["asks_nothing"] = json!(true);
    }
    if let Some(expect) = value.get_mut("expect").and_then(Value::as_object_mut) {
        // A turn that fails shows no result of its calls.
        if flow == "two-stage" && expect.contains_key("error") {
            expect.remove("calls");
        }
        expect.remove("keywords");
        expect.remove("reply");
        if let Some(error) = expect.get_mut("error") {
            let kind = error["kind"].clone();
            *error = json!({"kind": "agent_error", "contains": [kind]});
        }
        if flow == "two-stage" {
            expect.remove("sources");
            if let Some(answer) = expect.get_mut("answer").and_then(Value::as_object_mut) {
                answer.remove("cites");
                answer.remove("refusal");
            }
        }
        if expect.is_empty() {
            value.as_object_mut().expect("a case").remove("expect");
        }
    }
    for key in ["turns", "sequence"] {
        for part in value.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            shown(part, flow);
        }
    }
    if let Some(conversation) = value.get_mut("conversation") {
        shown(conversation, flow);
    }
}

/// Serves the flow of a scenario, and runs it live against the service.
fn run_served(project: &Project, name: &str, scenario: &Value, variant: Option<&str>) -> Outcome {
    let (flow, own) = (scenario["flow"].as_str().expect("a flow"), format!("own/{name}.yaml"));
    project.write(&own, &scenario.to_string());
    let variant_of = variant.map(|variant| ["--variant", variant]);
    let proxy = ports::free_address();
    let (model, search) = (format!("http://{proxy}/model/v1"), format!("http://{proxy}/search"));
    let mut more = vec!["--scenario", &own, "--test-target", "--model-url", &model, "--search-url", &search];
    more.extend(variant_of.iter().flatten());
    let service = Service::start(project, flow, &more);
    let theirs = format!("theirs/{name}.yaml");
    project.write(&theirs, &served_as(scenario, variant, flow, &service, &proxy).to_string());
    let agent = format!("http://{}", service.address);
    project.run(&["--agent", &agent, "run", &theirs, "--mode", "live", "--no-history"])
}

/// Runs one variant of a scenario in process and against the service.
fn both(name: &str, variant: Option<&str>) -> [Verdicts; 2] {
    let project = Project::shipped();
    project.edit("fixtures/simulator/fernlight.yaml", "pace: real", "pace: declared");
    without_chance(&project);
    let _simulator = Simulator::start(&project, "fixtures/simulator/fernlight.yaml");
    let mut scenario: Value = serde_saphyr::from_str(&project.read(&format!("scenarios/{name}.yaml"))).expect("YAML");
    common(&mut scenario);
    let flow = scenario["flow"].as_str().expect("a flow").to_owned();
    let own = format!("own/{name}.yaml");
    project.write(&own, &scenario.to_string());
    let variant_of = variant.map(|variant| ["--variant", variant]);
    let mut arguments = vec!["run", &own, "--mode", "live", "--no-history"];
    arguments.extend(variant_of.iter().flatten());
    let in_process = project.run(&arguments);
    let first = Verdicts { of_tool_rag: flow == "tool-rag", ..verdicts(&project) };
    assert!(!first.cases.is_empty(), "{}{}", in_process.stdout, in_process.stderr);

    let outcome = run_served(&project, name, &scenario, variant);
    let second = verdicts(&project);
    assert!(second.cases.len() == first.cases.len(), "{name}: {}{}", outcome.stdout, outcome.stderr);
    [first, second]
}

/// Compares one scenario, and says what differs.
fn compared(name: &str, variant: Option<&str>, least: usize) -> Vec<String> {
    let [own, served] = both(name, variant);
    let mut differences = Vec::new();
    let mut same = 0;
    for (case, (verdict, why)) in &own.cases {
        let (theirs, because) = &served.cases[case];
        if theirs != verdict {
            differences.push(format!("{name}/{case}: in process {verdict} ({why}), served {theirs} ({because})"));
        }
    }
    for (id, verdict) in own.criteria.iter().filter(|(id, _)| !NOT_SHOWN.contains(&id.as_str())) {
        // The criteria of a flow count agents that run elsewhere, and not trials of the other flow.
        if verdict.0 == "NOT_MEASURED" && !own.of_tool_rag {
            continue;
        }
        match served.criteria.get(id) {
            Some(theirs) if (&theirs.0, theirs.1) == (&verdict.0, verdict.1) => {
                same += usize::from(verdict.0 != "NOT_MEASURED");
            }
            theirs => differences.push(format!("{name}, {id}: in process {verdict:?}, served {theirs:?}")),
        }
    }
    if same < least {
        differences.push(format!("{name}: only {same} criteria were measured: {:?}", served.criteria));
    }
    differences
}

#[test]
fn both_flows_served_are_judged_as_in_process_where_their_traffic_shows_it() {
    let differences = [compared("knowledge", None, 3), compared("two-stage", None, 3)].concat();
    assert!(differences.is_empty(), "{differences:#?}");
}

#[test]
fn a_model_that_answers_at_random_fails_gates_of_both_flows_that_are_served() {
    let (project, _simulator) = random_model::project();
    for (name, flow) in [("knowledge", "tool-rag"), ("two-stage", "two-stage")] {
        let mut scenario: Value =
            serde_saphyr::from_str(&project.read(&format!("scenarios/{name}.yaml"))).expect("YAML");
        common(&mut scenario);
        random_model::expect_failed_gates(&project, flow, &run_served(&project, name, &scenario, None));
    }
}

#[test]
#[ignore = "the whole suite, twice, one trial after another: .ci/slow"]
fn the_whole_suite_served_is_judged_as_in_process_where_its_traffic_shows_it() {
    let tool_rag =
        ["context", "edges", "external", "keywords", "languages", "learning", "limits", "parameters", "recovery"];
    let mut differences: Vec<String> = tool_rag.into_iter().flat_map(|name| compared(name, None, 1)).collect();
    for variant in ["usual", "larger"] {
        differences.extend(compared("two-stage-model", Some(variant), 1));
    }
    assert!(differences.is_empty(), "{differences:#?}");
}

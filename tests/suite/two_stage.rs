//! Seeded defects of the flow in two stages: each fails its own criterion and no other of the flow, but for those that it
//! is declared to fail too.

use super::project::Project;
use super::simulator::Simulator;
use serde_json::Value;
use std::collections::BTreeSet;

const SCENARIO: &str = "scenarios/two-stage.yaml";
/// Every gate of the flow, beside that on its cases.
const GATES: [&str; 10] = [
    "own-words", "supported-facts", "forced-retrieval", "citations-in-range", "every-answer-cites",
    "nothing-found-is-said", "no-call-in-stage-2", "tenants-apart", "flags", "states",
];

/// The shipped scenario with one rule more for the simulated model, and the simulator.
fn seeded(rule: &str) -> (Project, Simulator) {
    let project = Project::shipped();
    project.edit("fixtures/simulator/fernlight.yaml", "pace: real", "pace: declared");
    let before = "    # Of the flow in two stages.\n";
    project.edit("fixtures/simulator/fernlight.yaml", before, &format!("{before}    - {rule}\n"));
    let simulator = Simulator::start(&project, "fixtures/simulator/fernlight.yaml");
    (project, simulator)
}

/// The gates of the flow that failed in the newest run.
fn failed(project: &Project) -> BTreeSet<String> {
    let run = project.latest("run.json");
    let rows: Vec<Value> =
        ["gates", "self_tests"].iter().flat_map(|key| run[key].as_array().expect(key).clone()).collect();
    let known: Vec<&str> = rows.iter().filter_map(|row| row["id"].as_str()?.rsplit('/').next()).collect();
    assert!(GATES.iter().all(|gate| known.contains(gate)), "{known:?}");
    let failed = rows.iter().filter(|row| row["verdict"] == "FAIL");
    failed.filter_map(|row| Some(row["id"].as_str()?.rsplit('/').next()?.to_owned())).collect()
}

#[test]
fn each_seeded_defect_fails_its_own_criterion_and_beside_the_cases_no_other() {
    let skipped = "{when: {asks: How much is the Grower plan}, calls: [], answer: 'It costs 4.90 euros [1].'}";
    let range = "{when: {asks: How much is the Grower plan}, answer: 'It costs 4.90 euros a month [7].'}";
    let uncited = "{when: {asks: How much is the Grower plan}, answer: It costs 4.90 euros a month.}";
    let nothing = "{when: {asks: Encarsia dosage}, answer: 'I know it: five animals per square metre.'}";
    let calls = "{when: {asks: How much is the Grower plan}, calls: [{tool: retrieve_documents, arguments: {query: Grower plan}}, {tool: retrieve_documents, arguments: {query: Grower features}}]}";
    for (rule, own) in [
        (skipped, "forced-retrieval"),
        (range, "citations-in-range"),
        (uncited, "every-answer-cites"),
        (nothing, "nothing-found-is-said"),
        (calls, "no-call-in-stage-2"),
    ] {
        let (project, _simulator) = seeded(rule);
        let outcome = project.run(&["run", SCENARIO, "--mode", "live", "--repeat=1", "--no-history"]);
        // A defect may fail the gate on cases too, where a case expects what it breaks: that is the declared list.
        let mut failed = failed(&project);
        failed.remove("cases");
        assert_eq!(failed, BTreeSet::from([own.to_owned()]), "{rule}\n{}", outcome.stdout);
    }
}

#[test]
fn a_passage_of_another_tenant_fails_the_criterion_of_tenants_alone() {
    let project = Project::shipped();
    project.run(&["run", SCENARIO]);
    assert!(failed(&project).is_empty());
    let traces = project.read("reports/latest/traces.jsonl");
    let changed: Vec<String> = traces
        .lines()
        .map(|line| {
            let theirs = line.contains("two-stage/tenant-marina/") && line.contains("\"kb_id\":\"marina\"");
            if theirs { line.replacen("\"kb_id\":\"marina\"", "\"kb_id\":\"fernlight\"", 1) } else { line.to_owned() }
        })
        .collect();
    assert_ne!(changed.join("\n").trim(), traces.trim(), "the defect is seeded");
    let folder = std::fs::canonicalize(project.path("reports/latest")).expect("the run");
    std::fs::write(folder.join("traces.jsonl"), format!("{}\n", changed.join("\n"))).expect("written");
    let outcome = project.run(&["score", "reports/latest"]);
    let expected: BTreeSet<String> = ["tenants-apart".to_owned()].into();
    assert_eq!(failed(&project), expected, "{}", outcome.stdout);
}

/// The rows of the table of docs/reference/two-stage.md by which a turn can end: the error's kind where there is one, and the id.
fn documented_ends() -> Vec<(Option<String>, String)> {
    let page = include_str!("../../docs/reference/two-stage.md");
    let table = page.split("## How a turn ends").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("the table");
    let rows = table.lines().filter(|line| line.starts_with("| ") && !line.contains("| id |"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let kind = cells[1].strip_prefix("error `").and_then(|rest| rest.split('`').next()).map(str::to_owned);
        (kind, cells[2].to_owned())
    })
    .collect()
}

#[test]
fn each_row_of_the_error_table_has_its_id_and_a_case_that_expects_it() {
    let files = [include_str!("../../scenarios/two-stage.yaml"), include_str!("../../scenarios/two-stage-down.yaml")];
    let mut expected = BTreeSet::new();
    for file in files {
        let scenario: serde_json::Value = serde_saphyr::from_str(file).expect("YAML");
        let ids = |of: &serde_json::Value| of["covers"].as_array().cloned().unwrap_or_default();
        for case in scenario["cases"].as_array().expect("cases") {
            let kind = case["expect"]["error"]["kind"].as_str().unwrap_or_default().to_owned();
            for id in ids(case).into_iter().chain(ids(&scenario)) {
                expected.insert((kind.clone(), id.as_str().expect("an id").to_owned()));
            }
        }
    }
    let rows = documented_ends();
    assert_eq!(rows.len(), 9, "{rows:?}");
    for (kind, id) in rows {
        let kind = kind.unwrap_or_default();
        // Scripted models alone end so: src/flow/two_stage/tests.
        if ["no_answer", "timeout"].contains(&kind.as_str()) {
            continue;
        }
        assert!(
            expected.contains(&(kind.clone(), id.clone())),
            "no case expects `{kind}` and covers {id}: {expected:?}"
        );
    }
}

#[test]
fn a_first_stage_without_a_call_leaves_the_whole_reply_in_the_trace() {
    let project = Project::shipped();
    project.run(&["run", SCENARIO, "--only", "no-call", "--no-history"]);
    let traces = project.traces();
    assert_eq!(traces.len(), 2);
    for trace in traces {
        let events = trace["events"].as_array().expect("events").clone();
        let said =
            events.iter().find_map(|event| event["what"]["model_called"]["reply"]["completion"]["text"].as_str());
        assert_eq!(said, Some("As far as I remember, it may be about a hundred metres long."), "{trace}");
        let ended = events.iter().find_map(|event| event["what"]["turn_ended"]["outcome"]["failed"]["kind"].as_str());
        assert_eq!(ended, Some("no_tool_call"));
    }
}

//! Seeded defects of the flow in two stages: each fails its own criterion and no other of the flow, but for those that it
//! is declared to fail too.

use super::project::Project;
use super::simulator::Simulator;
use std::collections::BTreeSet;

const SCENARIO: &str = "scenarios/two-stage.yaml";
/// Every gate of the flow, beside that on its cases.
const GATES: [&str; 7] = [
    "forced-retrieval",
    "citations-in-range",
    "every-answer-cites",
    "nothing-found-is-said",
    "no-call-in-stage-2",
    "tenants-apart",
    "states",
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
    let rows = run["gates"].as_array().expect("gates");
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

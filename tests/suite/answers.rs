//! What answers hold and cite, measured through the binary: provenance, evidence, nuggets.

use super::project::Project;
use std::collections::BTreeMap;

#[test]
fn evidence_nuggets_and_provenance_of_a_scenario_are_gates_like_any_other() {
    let project = Project::shipped();
    project.edit(
        "scenarios/knowledge.yaml",
        "answer: {contains: [38 to 46 ohms], cites: [error-codes]}",
        "answer: {contains: [38 to 46 ohms], cites: [error-codes], evidence: [error-codes, warranty],\n        \
         nuggets: [{any_of: [38 to 46 ohms, 38–46 Ω]}, {any_of: [words that no answer has], vital: false}]}",
    );
    let gates = [
        ("recall", "citation_recall"),
        ("vital", "nugget_recall"),
        ("all", "nugget_recall(of=all)"),
        ("way", "citation_provenance"),
        ("nothing", "refusal_rate"),
    ];
    let gate = |(id, metric): (&str, &str)| {
        format!("  - {{id: {id}, metric: '{metric}', target: '>= 90%', kind: point, required: false}}\n")
    };
    let gates: String = gates.into_iter().map(gate).collect();
    project.write("scenarios/knowledge.yaml", &format!("{}gates:\n{gates}", project.read("scenarios/knowledge.yaml")));
    let outcome = project.run(&["run", "scenarios/knowledge.yaml", "--only", "valve-error"]);
    let table = project.read(&format!("{}/criteria.csv", project.newest()));
    let rows: BTreeMap<String, Vec<String>> = csv::Reader::from_reader(table.as_bytes())
        .records()
        .map(|row| row.expect("a row").iter().map(str::to_owned).collect::<Vec<_>>())
        .map(|row| (row[0].clone(), row))
        .collect();
    let found = |id: &str| (rows[id][6].as_str(), rows[id][7].as_str(), rows[id][8].as_str());
    assert_eq!(found("recall"), ("FAIL", "6", "3"), "{}", outcome.stdout);
    assert_eq!(found("vital"), ("PASS", "3", "3"));
    assert_eq!(found("all"), ("FAIL", "6", "3"));
    assert_eq!(found("way"), ("PASS", "3", "3"));
    assert_eq!(found("nothing").0, "NOT_MEASURED", "the knowledge base holds the answer");
}

#[test]
fn an_estimate_says_of_each_criterion_what_decides_it() {
    let project = Project::shipped();
    let outcome = project.run(&["list", "scenarios/knowledge.yaml", "--estimate", "--format", "json"]);
    outcome.expect_code(0);
    let told: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let criteria = told["estimate"]["criteria"].as_array().expect("criteria");
    let of = |key: &str| criteria.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("{key}: {told}"));
    // It asks for 124 queries at least, more than the 59 that its bound needs; these 24 trials are one query each.
    let time = of("SC-005");
    assert_eq!(
        (time["units"].as_f64(), time["needed"].as_u64(), time["trials"].as_u64()),
        (Some(24.0), Some(124), Some(124))
    );
    // At the level of one of ten required rows, eight cases can show nothing, however many trials they have.
    assert_eq!((time["cases"].as_u64(), time["difference"].as_f64()), (Some(8), None), "{time}");
    let text = project.run(&["list", "scenarios/knowledge.yaml", "--estimate"]).stdout;
    assert!(text.contains("124 without a failure decide it, about 124 trials like these"), "{text}");
    let unmeasured =
        |line: &str| line.trim_start().starts_with("SC-004 ") && line.ends_with(" no recording here measures it");
    assert!(text.lines().any(unmeasured), "{text}");
}

//! `ragcheck mutate`: evidence of a green run is removed or bent, and what notices it is named; a case that asserts nothing is found.

use super::project::Project;
use serde_json::Value;

fn mutants(project: &Project, run: &str) -> Value {
    let outcome = project.run(&["mutate", run, "--format", "json"]);
    outcome.expect_code(0);
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|why| panic!("{why}: {}", outcome.stdout))
}

fn silent(found: &Value, case: &str) -> Vec<(String, String)> {
    let rows = found["silent"].as_array().expect("a list").iter().filter(|row| row["case"] == case);
    let text = |row: &Value, key: &str| row[key].as_str().expect(key).to_owned();
    rows.map(|row| (text(row, "defect"), text(row, "lines"))).collect()
}

#[test]
fn the_shipped_scenarios_notice_defects_of_what_they_are_for_and_the_run_folder_is_only_read() {
    let project = Project::shipped();
    let scenarios = ["external", "keywords", "react", "two-stage"].map(|name| format!("scenarios/{name}.yaml"));
    let arguments: Vec<&str> =
        ["run", "--no-history"].into_iter().chain(scenarios.iter().map(String::as_str)).collect();
    project.run(&arguments).expect_code(0);
    let folder = project.newest();
    let before = project.report(&folder);
    let found = mutants(&project, &folder);
    assert!(project.report(&folder) == before, "the run folder is only read");
    let rows = found["defects"].as_array().expect("rows");
    for row in rows {
        let number = |key: &str| row[key].as_u64().expect(key);
        assert_eq!(number("by_expectations") + number("by_criteria") + number("unnoticed"), number("trials"), "{row}");
        assert!(number("trials") > 0, "{row}");
    }
    let of = |name: &str| rows.iter().find(|row| row["defect"] == name).unwrap_or_else(|| panic!("{name}"));
    for lethal in
        ["search-dropped", "external-dropped", "answer-lost", "error-became-answer", "fact-added", "log-emptied"]
    {
        assert_eq!(of(lethal)["unnoticed"], 0, "{}", of(lethal));
    }
    assert!(of("answer-lost")["by_expectations"] == of("answer-lost")["trials"], "an answer is always expected");
    assert!(of("call-doubled")["unnoticed"].as_u64() > Some(0), "few cases count calls, which is the finding");
    // A requirement is asserted where its cases notice what takes its evidence away.
    let state = |id: &str| {
        let all = found["requirements"].as_array().expect("requirements");
        let one = all.iter().find(|one| one["id"] == id).unwrap_or_else(|| panic!("{id}"));
        one["state"].as_str().expect("a state").to_owned()
    };
    assert_eq!([state("FR-004"), state("SC-003"), state("TT-5")], ["asserted"; 3].map(str::to_owned));
    assert_eq!([state("KL-2.2"), state("NU-1")], ["recorded_only".to_owned(), "named_only".to_owned()]);
}

#[test]
fn a_case_that_asserts_nothing_is_found_with_the_lines_to_add() {
    const CASE: &str = "external/feed-in-tariff";
    let project = Project::shipped();
    let run = |project: &Project| {
        let outcome = project.run(&["run", "scenarios/external.yaml", "--only", "feed-in-tariff", "--no-history"]);
        assert!(outcome.stdout.contains("PASS"), "{}{}", outcome.stdout, outcome.stderr);
        mutants(project, &project.newest())
    };
    let defects = |found: &Value| silent(found, CASE).into_iter().map(|(defect, _)| defect).collect::<Vec<_>>();
    let before = defects(&run(&project));
    for asserted in ["external-dropped", "answer-replaced"] {
        assert!(!before.contains(&asserted.to_owned()), "{asserted}: {before:?}");
    }
    // The same case with an expectation that nearly any answer meets.
    let text = project.read("scenarios/external.yaml");
    let from = text.find("  - case: feed-in-tariff").expect("the case");
    let begin = from + text[from..].find("    expect:").expect("its expectations");
    let end = begin + text[begin..].find("  - case: ").expect("the next case");
    let bare = "    expect: {answer: {not_contains: [no such words]}}\n";
    project.write("scenarios/external.yaml", &format!("{}{bare}{}", &text[..begin], &text[end..]));
    let found = run(&project);
    let after = silent(&found, CASE);
    let lines = |defect: &str| after.iter().find(|(name, _)| name == defect).map(|(_, lines)| lines.as_str());
    for defect in ["external-dropped", "answer-replaced", "number-changed", "citation-shifted", "order-swapped"] {
        assert!(lines(defect).is_some(), "{defect}: {after:?}");
    }
    assert_eq!(lines("external-dropped"), Some("calls: [{superset: [perplexity_search]}]"));
    assert_eq!(lines("answer-lost"), None, "an answer is always expected");
    let human = project.run(&["mutate", &project.newest()]);
    assert!(
        human.stdout.contains("This case asserts nothing about the search service (external-dropped):"),
        "{}",
        human.stdout
    );
}

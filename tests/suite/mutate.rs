//! `ragcheck mutate`: evidence of a green run is removed or bent, and what notices it is named; a case that asserts nothing is found.

use super::project::{Project, whole};
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
fn every_defect_has_trials_of_the_shipped_suite_and_most_of_them_are_noticed() {
    let (project, _) = whole();
    let folder = project.newest();
    let before = project.report(&folder);
    let found = mutants(project, &folder);
    assert!(project.report(&folder) == before, "the run folder is only read");
    let rows = found["defects"].as_array().expect("rows");
    assert!(rows.len() >= 30, "{rows:?}");
    for row in rows {
        let number = |key: &str| row[key].as_u64().expect(key);
        let noticed = number("by_expectations") + number("by_criteria");
        assert_eq!(noticed + number("unnoticed"), number("trials"), "{row}");
        assert!(number("trials") > 0 && noticed > 0, "nothing in the whole suite notices {row}");
    }
    let of = |name: &str| rows.iter().find(|row| row["defect"] == name).unwrap_or_else(|| panic!("{name}"));
    for lethal in
        ["answer-lost", "answer-replaced", "search-dropped", "history-lost", "keywords-not-stored", "some-too-late"]
    {
        let row = of(lethal);
        let share = 1.0 - row["unnoticed"].as_f64().expect("a number") / row["trials"].as_f64().expect("a number");
        assert!(share > 0.9, "{lethal}: {share} noticed, {row}");
    }
    assert!(of("answer-lost")["unnoticed"] == 0, "an answer is always expected");
}

#[test]
fn a_case_that_asserts_nothing_is_found_with_the_lines_to_add() {
    let project = Project::shipped();
    let run = |project: &Project| {
        let outcome = project.run(&["run", "scenarios/external.yaml", "--only", "feed-in-tariff", "--no-history"]);
        assert!(outcome.stdout.contains("PASS"), "{}{}", outcome.stdout, outcome.stderr);
        mutants(project, &project.newest())
    };
    const CASE: &str = "external/feed-in-tariff";
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

//! What SC-006 and its neighbours claim: seeded defects fail each criterion of learning, and where the documents answer
//! everything, nothing was gained.

use super::project::Project;
use std::collections::BTreeMap;

const RUN: [&str; 2] = ["run", "scenarios/learning.yaml"];

/// The row of a criterion in the newest run: verdict, successes, units.
fn row(project: &Project, id: &str) -> (String, u64, u64) {
    let run = project.latest("run.json");
    let row = run["criteria"].as_array().expect("criteria").iter().find(|row| row["id"] == id).expect(id).clone();
    let number = |name: &str| row[name].as_u64().unwrap_or_else(|| panic!("{name} of {row}"));
    (row["verdict"].as_str().unwrap_or_default().to_owned(), number("successes"), number("n"))
}

/// The shipped scenario with one text replaced everywhere, run.
fn changed(from: &str, to: &str) -> Project {
    let project = Project::shipped();
    let text = project.read("scenarios/learning.yaml");
    assert!(text.contains(from), "{from}");
    project.write("scenarios/learning.yaml", &text.replace(from, to));
    let outcome = project.run(&RUN);
    assert!(!outcome.stdout.contains("in ERROR"), "{}", outcome.stdout);
    project
}

/// Later conversations whose searches found something learned, and no document.
fn empty_handed(project: &Project) -> u64 {
    let mut count = 0;
    for trace in project.traces() {
        let mut of_each: BTreeMap<u64, (bool, bool)> = BTreeMap::new();
        for event in trace["events"].as_array().expect("events") {
            let Some(search) = event.pointer("/what/tool_called/outcome/ok/search") else { continue };
            let found = of_each.entry(event["conversation"].as_u64().expect("a number")).or_insert((false, true));
            found.0 |= search["hits"].as_array().expect("hits").iter().any(|hit| !hit["learned"].is_null());
            found.1 &= search["without_learned"].as_array().expect("ids").is_empty();
        }
        count += of_each.values().filter(|found| **found == (true, true)).count() as u64;
    }
    count
}

/// The stems of every document's name.
fn documents(project: &Project) -> String {
    let folder = std::fs::read_dir(project.path("fixtures/knowledge/fernlight")).expect("a folder");
    let stem = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.expect("an entry").path().file_stem().expect("a name").to_string_lossy().into_owned()
    };
    let mut stems: Vec<String> = folder.map(stem).collect();
    stems.sort();
    stems.join(", ")
}

#[test]
fn where_every_document_answers_nothing_was_gained_by_what_was_learned() {
    let all = documents(&Project::shipped());
    let project = changed("relevant: [learned]", &format!("relevant: [learned, {all}]"));
    let (verdict, rescued, questions) = row(&project, "SC-006");
    // But where the documents gave nothing at all, which is none of them.
    assert_eq!((verdict.as_str(), rescued), ("FAIL", empty_handed(&project)), "of {questions}");
    assert!(rescued * 10 < questions);
    let (_, found, same) = row(&project, "SC-006-found");
    assert!(found > 0 && same == questions, "what was learned is found all the same");
}

#[test]
fn rescued_retrieved_and_harmed_are_told_apart_for_each_kind_of_question_with_bounds_in_table_and_page() {
    let project = Project::shipped();
    let outcome = project.run(&RUN);
    let run = project.latest("run.json");
    let row = |id: String| {
        let row = run["gates"].as_array().expect("gates").iter().find(|row| row["id"] == id.as_str());
        row.unwrap_or_else(|| panic!("{id}")).clone()
    };
    let units = |figure: &str, kind: &str| {
        let row = row(format!("{figure}-{kind}"));
        let bounds = &row["interval"];
        assert!(bounds["lower"].as_f64() < bounds["upper"].as_f64() && row["verdict"] == "PASS", "{row}");
        (row["successes"].as_u64().expect("successes"), row["n"].as_u64().expect("units"))
    };
    let whole = |id: &str| row_of(&run["criteria"], id);
    for (figure, id) in [("rescued", "SC-006"), ("retrieved", "SC-006-found"), ("harmed", "SC-006-harm")] {
        let kinds = ["repeat", "paraphrase", "related", "unrelated"];
        let parts: Vec<_> =
            kinds[..if figure == "harmed" { 4 } else { 3 }].iter().map(|kind| units(figure, kind)).collect();
        let sum = parts.iter().fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        assert!(parts.iter().all(|part| part.1 > 0), "{figure}: {parts:?}");
        assert_eq!(sum, whole(id), "{figure}: the kinds make up {id}");
    }
    let folder = project.newest();
    for row in ["rescued-paraphrase", "harmed-unrelated"].map(|id| row(id.to_owned())) {
        let figure = row["observed_text"].as_str().expect("a figure");
        assert!(outcome.stdout.contains(figure), "{figure}: {}", outcome.stdout);
    }
    for file in ["criteria.csv", "index.html"] {
        let text = project.read(&format!("{folder}/{file}"));
        assert!(text.contains("rescued-paraphrase") && text.contains("harmed-unrelated"), "{file}");
    }
}

/// Successes and units of a row.
fn row_of(rows: &serde_json::Value, id: &str) -> (u64, u64) {
    let row = rows.as_array().expect("rows").iter().find(|row| row["id"] == id).expect(id);
    (row["successes"].as_u64().expect("successes"), row["n"].as_u64().expect("units"))
}

#[test]
fn an_entry_that_comes_up_for_unrelated_questions_is_harm() {
    let project = changed("kind: related, relevant: [learned]", "kind: unrelated");
    let (verdict, harmed, labelled) = row(&project, "SC-006-harm");
    assert_eq!(verdict, "FAIL");
    assert!(harmed * 4 > labelled, "{harmed} of {labelled}");
}

#[test]
fn answers_from_outside_without_keywords_fail_the_criterion_of_indexing() {
    let project = Project::shipped();
    project.edit("scenarios/edges.yaml", "      SC-003: a case whose purpose is to leave keywords out\n", "");
    let outcome = project.run(&["run", "scenarios/edges.yaml", "--only", "keywords-never"]);
    let (verdict, indexed, answers) = row(&project, "SC-003");
    assert_eq!((verdict.as_str(), indexed), ("FAIL", 0), "of {answers}: {}", outcome.stdout);
}

#[test]
fn the_shipped_labels_show_a_gain_and_no_harm() {
    let project = Project::shipped();
    project.run(&RUN);
    let (verdict, rescued, questions) = row(&project, "SC-006");
    assert!(verdict == "PASS" && rescued * 5 >= questions, "{verdict}: {rescued} of {questions}");
    let (_, harmed, _) = row(&project, "SC-006-harm");
    assert_eq!(harmed, 0);
}

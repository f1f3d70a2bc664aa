//! `ragcheck keywords`: what an index that outlives runs holds, by list, show, export and prune; and which file is looked
//! into.

use super::project::Project;
use super::schemas::printed;
use jiff::{SignedDuration, Timestamp};
use ragcheck::internals::knowledge::{ExternalRecord, KeywordIndex};
use serde_json::Value;

/// An index as a served agent leaves it: one old answer, one of today, a keyword of both, one that was used.
fn learned(project: &Project, file: &str) {
    let record = |n: u32, answer: &str| ExternalRecord {
        session: format!("talk-{n}"),
        conversation: n,
        result: "result-1".into(),
        query: "grid tariff in spring".into(),
        answer: answer.into(),
        citations: vec![("Tariffs".into(), format!("https://example.org/tariffs/{n}"))],
        question: "What does power cost in spring?".into(),
        question_id: format!("question:{n}"),
    };
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let now = Timestamp::now();
    let old = now - SignedDuration::from_hours(400 * 24);
    let index = KeywordIndex::in_file(&project.path(file));
    index
        .index(&record(0, "It fell."), &words(&["Grid Tariffs", "old levy", "used levy"]), "first", old)
        .expect("indexes");
    index.index(&record(1, "It rose."), &words(&["grid tariff", "spring price"]), "second", now).expect("indexes");
    index.note_use([&"used levy".to_owned()], old).expect("notes");
}

fn keywords(export: &str) -> Vec<String> {
    let entries: Vec<Value> = serde_json::from_str(export).expect("JSON");
    entries.iter().map(|entry| entry["keyword"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn keywords_are_listed_shown_and_exported_with_everything_that_they_came_from() {
    let project = Project::shipped();
    learned(&project, "kept.sqlite");
    let list = project.run(&["keywords", "list", "kept.sqlite"]);
    list.expect_code(0);
    assert!(
        list.stdout.contains("grid tariffs  used 0 times, from: first (result-1); second (result-1)"),
        "{}",
        list.stdout
    );
    assert!(list.stdout.contains("used levy  used 1 time, from: first"), "{}", list.stdout);
    let shown = project.run(&["keywords", "show", "GRID  tariff", "kept.sqlite"]);
    shown.expect_code(0);
    for words in ["What does power cost in spring? (question:1)", "It rose.", "https://example.org/tariffs/0", "talk-1"]
    {
        assert!(shown.stdout.contains(words), "{words}: {}", shown.stdout);
    }
    assert_eq!(printed(&project, &["keywords", "list", "kept.sqlite"]).as_array().map(Vec::len), Some(4));
    assert_eq!(printed(&project, &["keywords", "show", "old levy", "kept.sqlite"])["keyword"], "old levy");
    let export = project.run(&["keywords", "export", "kept.sqlite"]);
    export.expect_code(0);
    assert_eq!(keywords(&export.stdout), ["grid tariffs", "old levy", "spring price", "used levy"]);
    let entries: Value = serde_json::from_str(&export.stdout).expect("JSON");
    let source = &entries[0]["provenance"][1];
    assert_eq!((source["answer"].as_str(), source["question_id"].as_str()), (Some("It rose."), Some("question:1")));
    assert_eq!(source["citations"][0][1], "https://example.org/tariffs/1");
}

#[test]
fn pruning_removes_what_meets_every_condition_and_needs_one() {
    let project = Project::shipped();
    learned(&project, "kept.sqlite");
    let nothing = project.run(&["keywords", "prune", "kept.sqlite"]);
    nothing.expect_code(2);
    assert!(nothing.stderr.contains("nothing to go by"), "{}", nothing.stderr);
    let none = project.run(&["keywords", "prune", "kept.sqlite", "--idle", "500d"]);
    assert_eq!(none.stdout, "0 keywords pruned, and 0 answers that nothing leads to any more\n", "{}", none.stderr);
    let some = project.run(&["keywords", "prune", "kept.sqlite", "--idle", "30d", "--fewer-uses-than", "1"]);
    assert_eq!(some.stdout, "1 keyword pruned, and 0 answers that nothing leads to any more\n", "{}", some.stderr);
    let left = |project: &Project| keywords(&project.run(&["keywords", "export", "kept.sqlite"]).stdout);
    assert_eq!(left(&project), ["grid tariffs", "spring price", "used levy"]);
    assert_eq!(printed(&project, &["keywords", "prune", "kept.sqlite", "--fewer-uses-than", "1"])["keywords"], 2);
    assert_eq!(left(&project), ["used levy"]);
    project.run(&["keywords", "prune", "kept.sqlite", "--idle", "soon"]).expect_code(2);
}

#[test]
fn the_project_names_the_index_and_what_it_forgets() {
    let project = Project::shipped();
    let unnamed = project.run(&["keywords", "list"]);
    unnamed.expect_code(2);
    assert!(unnamed.stderr.contains("declare `keyword_index`"), "{}", unnamed.stderr);
    let text = project.read("ragcheck.yaml");
    let declared = "keyword_index: {file: learned/kept.sqlite, forget: {after: 180d, fewer_uses_than: 1}}\n";
    project.write("ragcheck.yaml", &format!("{text}{declared}"));
    let missing = project.run(&["keywords", "list"]);
    missing.expect_code(2);
    assert!(missing.stderr.contains("kept.sqlite is no keyword index: there is no such file"), "{}", missing.stderr);
    project.write("learned/README", "");
    learned(&project, "learned/kept.sqlite");
    project.run(&["keywords", "prune"]).expect_code(0);
    let left = project.run(&["keywords", "export"]);
    assert_eq!(keywords(&left.stdout), ["grid tariffs", "spring price", "used levy"], "{}", left.stderr);
    project.write("ragcheck.yaml", &format!("{text}{}", declared.replace("180d", "soon")));
    let broken = project.run(&["check"]);
    broken.expect_code(2);
    assert!(broken.stdout.contains("`soon` is not an age"), "{}{}", broken.stdout, broken.stderr);
}

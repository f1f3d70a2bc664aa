//! Whole passages in the run folder: every passage that a trace names is there once, `show` prints them, what was edited is
//! told, and what has no room is said.

use super::project::Project;
use serde_json::Value;
use std::collections::BTreeMap;

const FILE: &str = "passages.jsonl";

/// The lines of the newest run's file, by name.
fn passages(project: &Project) -> BTreeMap<String, Value> {
    let text = project.read(&format!("{}/{FILE}", project.newest()));
    let line = |line: &str| -> Value { serde_json::from_str(line).expect("a passage") };
    let lines: Vec<Value> = text.lines().map(line).collect();
    let named: BTreeMap<String, Value> =
        lines.iter().map(|line| (line["passage"].as_str().expect("a name").to_owned(), line.clone())).collect();
    assert_eq!(named.len(), lines.len(), "each passage once");
    named
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn every_passage_that_a_search_found_is_in_the_run_folder_once_and_whole() {
    let project = Project::shipped();
    project.run(&["run", "scenarios/knowledge.yaml", "scenarios/two-stage.yaml", "--jobs", "1"]);
    let (folder, known) = (project.newest(), passages(&project));
    let mut hits = 0;
    for trace in project.traces() {
        for event in list(&trace, "events") {
            let Some(search) = event.pointer("/what/tool_called/outcome/ok/search") else { continue };
            for hit in list(search, "hits") {
                let base = list(&trace, "passages").iter().find(|searched| searched["base"] == search["kb_id"]);
                let base = base.unwrap_or_else(|| &trace["passages"][0]);
                let id = hit["id"].as_str().expect("an id");
                let passage = &known[base["passages"][id].as_str().expect("a name")];
                let begin = hit["excerpt"].as_str().expect("a text").trim_end_matches('…');
                let (whole, document) = (passage["text"].as_str().expect("a text"), base["base"].as_str());
                assert!(whole.starts_with(begin) && passage["base"].as_str() == document, "{hit} {passage}");
                hits += 1;
            }
        }
    }
    assert!(hits > 100 && known.values().any(|one| one["text"].as_str().is_some_and(|text| text.len() > 200)));
    let before = project.report(&folder);
    project.run(&["run", "scenarios/knowledge.yaml", "scenarios/two-stage.yaml", "--jobs", "4"]);
    assert_eq!(
        (project.newest(), project.report(&folder)),
        (folder, before),
        "the same bytes on any number of threads"
    );
}

#[test]
fn a_passage_is_shown_whole_and_one_that_was_edited_or_is_gone_is_said_to_be() {
    let project = Project::shipped();
    project.run(&["run", "scenarios/knowledge.yaml", "--only", "valve-error"]);
    let folder = project.newest();
    let trial = format!("{folder}/knowledge/valve-error/tool-rag.base.1");
    let shown = project.run(&["show", &trial, "--passages"]);
    shown.expect_code(0);
    let one = passages(&project).into_values().find(|one| one["id"] == "error-codes#2").expect("is found");
    let last = one["text"].as_str().expect("a text").lines().last().expect("a line").to_owned();
    assert!(shown.stdout.contains("\nerror-codes#2 (") && shown.stdout.contains(&last), "{}", shown.stdout);
    assert!(!shown.stdout.contains("shortened") && !project.run(&["show", &trial]).stdout.contains(&last));
    let scored = project.run(&["score", &folder]);
    assert!(!scored.stdout.contains("EDITED BY HAND"), "{}", scored.stdout);
    project.edit(&format!("{folder}/{FILE}"), "error-codes#2", "error-codes#9");
    let scored = project.run(&["score", &folder]);
    assert!(scored.stdout.contains("EDITED BY HAND after the run: passages.jsonl"), "{}", scored.stdout);
    let shown = project.run(&["show", &trial, "--passages"]);
    for words in ["EDITED BY HAND after the run: passages.jsonl", "shortened: the run folder does not hold it whole"] {
        assert!(shown.stdout.contains(words), "{}", shown.stdout);
    }
    std::fs::remove_file(project.path(&format!("{folder}/{FILE}"))).expect("removed");
    let scored = project.run(&["score", &folder]);
    assert!(!scored.stdout.contains("EDITED BY HAND"), "an older build writes none: {}", scored.stdout);
}

#[test]
fn without_whole_passages_no_fact_is_called_unsupported() {
    let project = Project::shipped();
    project.run(&["run", "scenarios/two-stage.yaml", "scenarios/context.yaml"]);
    let folder = project.newest();
    let unsupported =
        || project.read(&format!("{folder}/violations.csv")).matches("nothing that was retrieved").count();
    let before = unsupported();
    std::fs::remove_file(project.path(&format!("{folder}/{FILE}"))).expect("removed");
    project.run(&["score", &folder]);
    assert_eq!(unsupported(), before);
}

#[test]
fn what_has_no_room_is_counted_and_what_did_not_fail_keeps_its_passages() {
    let project = Project::shipped();
    let full = project.run(&["run", "scenarios/knowledge.yaml", "--limit", "found-passages-size=8KiB"]);
    assert!(full.stderr.contains("passages.jsonl takes 8 KiB") && full.stderr.contains("--limit"), "{}", full.stderr);
    let some = passages(&project).len();
    project.run(&["run", "scenarios/knowledge.yaml", "scenarios/recovery.yaml"]);
    let (folder, all) = (project.newest(), passages(&project));
    assert!(some > 2 && some < all.len());
    // The trials that passed are not run again: without the base they could not be.
    let failed =
        project.run(&["run", "scenarios/knowledge.yaml", "scenarios/recovery.yaml", &format!("--failed={folder}")]);
    assert!(failed.stderr.contains("taken over") || failed.stderr.contains("every trial"), "{}", failed.stderr);
    assert_eq!(passages(&project), all);
}

//! Rows and configurations of OpenAI Evals: what translates decides the verdicts, and what does not is named.

use super::project::Project;
use serde_json::{Value, json};

/// A configuration with a testing criterion of each kind.
fn configuration() -> Value {
    let check = |name: &str, operation: &str| {
        json!({"type": "string_check", "name": name, "input": "{{ sample.output_text }}", "operation": operation,
            "reference": "{{item.label}}"})
    };
    json!({"object": "eval", "data_source_config": {"type": "custom", "schema": {}}, "testing_criteria": [
        check("has", "like"), check("has in any case", "ilike"), check("differs", "ne"),
        {"type": "text_similarity", "name": "close", "input": "{{sample.output_text}}", "reference": "{{item.label}}",
            "evaluation_metric": "fuzzy_match", "pass_threshold": 0.8},
        {"type": "label_model", "name": "polite", "model": "m", "input": [], "labels": ["yes"], "passing_labels": ["yes"]},
        {"type": "score_model", "name": "good", "model": "m", "input": []},
        {"type": "python", "name": "code", "source": "import os; os.remove('ragcheck.yaml')"},
        {"type": "string_check", "name": "tool", "input": "{{sample.output_tools[0].function.name}}", "operation": "eq",
            "reference": "find"}]})
}

/// A run that sends the question of each row.
fn run() -> Value {
    json!({"object": "eval.run", "data_source": {"type": "completions", "model": "m-1", "input_messages": {"type": "template",
        "template": [{"type": "message", "role": "developer", "content": {"type": "input_text", "text": "Be brief."}},
            {"type": "message", "role": "user", "content": {"type": "input_text", "text": "{{item.question}} Briefly."}}]}}})
}

fn row(label: &str, answer: Option<&str>) -> Value {
    let mut row = json!({"item": {"question": "What descales a kettle?", "label": label}});
    if let Some(answer) = answer {
        row["sample"] = json!({"output_text": answer, "model": "m-2"});
    }
    row
}

fn lines(all: &[Value]) -> String {
    all.iter().map(|one| format!("{one}\n")).collect()
}

#[test]
fn rows_are_judged_by_the_criteria_that_translate_and_the_others_are_named_with_the_reason() {
    let project = Project::starter();
    let all = [
        configuration(),
        run(),
        row("citric acid", Some("Use citric acid.")),
        row("citric acid", Some("Use CITRIC ACID.")),
        row("citric acid", Some("Use vinegar.")),
        row("citric acid", None),
        json!({"item": {"question": "What?"}, "sample": {"output_text": "So."}}),
    ];
    project.write("rows.jsonl", &lines(&all));
    let outcome = project.run(&["score", "--import", "rows.jsonl"]);
    let run = project.latest("run.json");
    let verdicts: Vec<&str> =
        run["trials"].as_array().expect("trials").iter().filter_map(|trial| trial["verdict"].as_str()).collect();
    assert_eq!(verdicts, ["PASS", "FAIL", "FAIL", "ERROR", "ERROR"], "{}", outcome.stdout);
    for words in [
        "read as `evals`",
        "not translated: `differs` (string_check): no expectation says that an answer differs from a text (4 rows)",
        "not translated: `close` (text_similarity): no expectation measures similarity (`fuzzy_match`) (4 rows)",
        "not translated: `polite` (label_model): a model grades it",
        "not translated: `good` (score_model): a model grades it",
        "not translated: `code` (python): code from a file is not run",
        "not translated: `tool` (string_check): only checks of `{{sample.output_text}}` against the row are expectations",
        "5 traces: 3 complete, 2 broken: ",
        "it has no `sample`, so nothing was answered",
        "its row has no `item.label`",
    ] {
        assert!(outcome.stderr.contains(words), "{words}: {}", outcome.stderr);
    }
    let trace = project.traces().remove(0);
    assert!(
        trace.to_string().contains("What descales a kettle? Briefly.") && trace["evidence"]["model"] == "m-2",
        "{trace}"
    );
    assert!(project.path("ragcheck.yaml").exists(), "code of a configuration never runs");
}

#[test]
fn an_exact_answer_is_exact_and_a_configuration_without_rows_is_refused() {
    let project = Project::starter();
    let exact = json!({"testing_criteria": [{"type": "string_check", "name": "is", "input": "{{item.label}}", "operation": "eq",
        "reference": "{{sample.output_text}}"}]});
    for (answer, verdict) in [("a.b", "PASS"), ("a.b ", "FAIL"), ("axb", "FAIL"), ("A.b", "FAIL"), ("so a.b", "FAIL")] {
        project.write("rows.jsonl", &lines(&[exact.clone(), run(), row("a.b", Some(answer))]));
        project.run(&["score", "--import", "rows.jsonl"]);
        assert_eq!(project.latest("run.json")["trials"][0]["verdict"], verdict, "{answer}");
    }
    project.write("rows.jsonl", &lines(std::slice::from_ref(&exact)));
    let outcome = project.run(&["score", "--import", "rows.jsonl"]);
    outcome.expect_code(2);
    assert!(outcome.stderr.contains("it has no row"), "{}", outcome.stderr);
    // Nothing says which member of the item was asked.
    project.write("rows.jsonl", &lines(&[exact, row("a", Some("a"))]));
    let outcome = project.run(&["score", "--import", "rows.jsonl"]);
    outcome.expect_code(3);
    assert!(outcome.stderr.contains("nothing says what was asked"), "{}", outcome.stderr);
}

#[test]
fn results_in_the_file_count_beside_the_criteria_that_translate_and_rows_without_a_grade_are_errors() {
    let project = Project::starter();
    let criterion = |name: &str, kind: &str| json!({"type": kind, "name": name, "input": "{{sample.output_text}}", "operation": "like", "reference": "{{item.label}}"});
    let has = || vec![criterion("has", "string_check")];
    let graded = |has: bool, polite: bool| {
        let mut row = row("acid", Some("acid, you fool"));
        row["results"] = json!([{"name": "has-a2486074", "passed": has}, {"name": "polite", "passed": polite}]);
        row
    };
    for (criteria, row, verdict, words) in [
        (vec![], graded(true, false), "FAIL", "the `results` of its rows are the grade"),
        (has(), graded(true, false), "FAIL", "failed in the `results` of the file, which decide: `polite`"),
        (has(), graded(false, true), "FAIL", "failed in the `results` of the file, which decide: `has-a2486074`"),
        (has(), graded(true, true), "PASS", ""),
        (vec![criterion("polite", "label_model")], graded(true, true), "PASS", ""),
    ] {
        let settings = if criteria.is_empty() { run() } else { json!({"testing_criteria": criteria}) };
        project.write("rows.jsonl", &lines(&[settings, run(), row.clone()]));
        let outcome = project.run(&["score", "--import", "rows.jsonl"]);
        assert_eq!(project.latest("run.json")["trials"][0]["verdict"], verdict, "{row}");
        assert!(outcome.stderr.contains(words) && !outcome.stderr.contains("not translated"), "{}", outcome.stderr);
    }
    let passed = json!({"name": "has", "passed": true});
    for (status, other, verdict) in [
        ("fail", &passed, "FAIL"),
        ("error", &passed, "ERROR"),
        ("completed", &json!({"name": "polite", "passed": null}), "ERROR"),
        ("error", &json!({"name": "polite", "passed": false}), "FAIL"),
        ("completed", &passed, "PASS"),
    ] {
        let mut graded = row("acid", Some("acid"));
        (graded["status"], graded["results"]) = (status.into(), json!([passed, other]));
        project.write("rows.jsonl", &lines(&[json!({"testing_criteria": has()}), run(), graded]));
        let outcome = project.run(&["score", "--import", "rows.jsonl"]);
        assert_eq!(
            project.latest("run.json")["trials"][0]["verdict"],
            verdict,
            "{status}, {other}: {}",
            outcome.stderr
        );
    }
}

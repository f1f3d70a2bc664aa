//! Every row of `criteria.csv`, `comparison.csv` and `pairs.csv` is what an independent oracle in Python makes of the plan and the traces.

use super::project::{Outcome, Project, copy, whole};
use std::fs;
use std::path::Path;
use std::process::Command;

const ORACLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle");

fn oracle(folder: &Path) -> Outcome {
    Outcome::of(Command::new("python3").arg(ORACLE).arg(folder))
}

/// One column of `criteria.csv`.
fn table_of(folder: &Path, column: &str) -> Vec<String> {
    let mut table = csv::Reader::from_path(folder.join("criteria.csv")).expect("the table");
    let place = table.headers().expect("a header").iter().position(|name| name == column).expect(column);
    table.records().map(|row| row.expect("a row")[place].to_owned()).collect()
}

#[test]
#[ignore = "needs python3, its standard library alone"]
fn needs_a_bare_interpreter_an_oracle_recomputes_the_criteria_of_the_shipped_suite() {
    let (project, outcome) = whole();
    outcome.expect_code(0);
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["plan.json", "traces.jsonl", "criteria.csv"] {
        fs::copy(project.path("reports/latest").join(name), folder.path().join(name)).expect(name);
    }

    let sound = oracle(folder.path());
    sound.expect_code(0);
    let rows = csv::Reader::from_path(folder.path().join("criteria.csv")).expect("the table").records().count();
    // Facts that answers share with passages are held against labelled answers instead.
    let looked_up = table_of(folder.path(), "metric").iter().filter(|metric| *metric == "unsupported_facts").count();
    let last = format!("{} rows recomputed, {looked_up} of units that are not recomputed, 0 wrong\n", rows - looked_up);
    assert!(rows - looked_up >= 76 && sound.stdout.ends_with(&last), "{}", sound.stdout);

    // A wrong figure in any column is found, and so is a row that is gone.
    let path = folder.path().join("criteria.csv");
    let table = fs::read_to_string(&path).expect("the table");
    let columns: Vec<_> = table.lines().next().expect("a header").split(',').map(str::to_owned).collect();
    let judged = [
        "n", "successes", "clusters", "excluded_n", "observed", "per_unit", "per_conversation", "lower", "upper",
        "verdict",
    ];
    let mut edited = csv::Writer::from_writer(Vec::new());
    edited.write_record(&columns).expect("a header");
    for row in csv::Reader::from_reader(table.as_bytes()).records() {
        let row = row.expect("a row");
        let spoilt = |(column, value): (&String, &str)| match column.as_str() {
            "verdict" => "FAIL".to_owned(),
            name if judged.contains(&name) => format!("1{value}"),
            _ => value.to_owned(),
        };
        match &row[0] {
            "SC-001" => {}
            "SC-002" => edited.write_record(columns.iter().zip(row.iter()).map(spoilt)).expect("a row"),
            _ => edited.write_record(&row).expect("a row"),
        }
    }
    fs::write(&path, edited.into_inner().expect("a table")).expect("the table");
    let spoilt = oracle(folder.path());
    spoilt.expect_code(1);
    for column in judged {
        assert!(spoilt.stdout.contains(&format!("WRONG SC-002: {column}: ")), "{column}: {}", spoilt.stdout);
    }
    assert!(spoilt.stdout.contains("WRONG SC-001: planned, and not in criteria.csv"), "{}", spoilt.stdout);

    // So is a trace that says something else.
    fs::write(&path, &table).expect("the table");
    let path = folder.path().join("traces.jsonl");
    let traces = fs::read_to_string(&path).expect("traces");
    let forgotten = traces.replacen(r#""tool":"knowledge_base_search""#, r#""tool":"another""#, 1);
    assert_ne!(traces, forgotten);
    fs::write(&path, forgotten).expect("traces");
    let other = oracle(folder.path());
    other.expect_code(1);
    assert!(other.stdout.contains("WRONG SC-001: "), "{}", other.stdout);
}

#[test]
#[ignore = "needs python3, its standard library alone"]
fn needs_a_bare_interpreter_an_oracle_recomputes_comparisons_of_the_shipped_suite() {
    // The variants of one run: four agents, six pairs, one correction over all rows.
    let project = Project::shipped();
    project.run(&["run", "scenarios/four-agents", "--criteria", "scenarios/four-agents/criteria.yaml"]).expect_code(0);
    project.run(&["compare", "reports/latest"]).expect_code(0);
    let pairs = oracle(&project.path("reports/latest"));
    pairs.expect_code(0);
    assert!(
        pairs.stdout.ends_with("54 rows recomputed, 0 of units that are not recomputed, 0 wrong\n"),
        "{}",
        pairs.stdout
    );

    // The whole suite beside itself with slower turns, lost retries and other answers in some trials.
    let a = whole().0.path("reports/latest");
    let b = project.path("reports/other");
    copy(&a, &b);
    let traces = fs::read_to_string(b.join("traces.jsonl")).expect("traces");
    let changed = traces.lines().enumerate().map(|(number, trace)| match number % 56 {
        0..8 => trace.replace(r#""turn_ended":{"took_us":"#, r#""turn_ended":{"took_us":4"#),
        8..24 => trace.replace(r#""recovered":true"#, r#""recovered":false"#),
        24..32 => trace.replace(r#""answered":{"text":""#, r#""answered":{"text":"Nothing is known. "#),
        _ => trace.to_owned(),
    });
    let changed: Vec<String> = changed.collect();
    fs::write(b.join("traces.jsonl"), changed.join("\n") + "\n").expect("traces");
    let (a, b) = (a.to_str().expect("a path"), b.to_str().expect("a path"));
    project.run(&["compare", a, b]).expect_code(0);
    let both = || Outcome::of(Command::new("python3").args([ORACLE, a, b]));
    let sound = both();
    sound.expect_code(0);
    assert!(sound.stdout.ends_with(" of units that are not recomputed, 0 wrong\n"), "{}", sound.stdout);
    let path = Path::new(b).join("comparison.csv");
    let table = fs::read_to_string(&path).expect("the table");
    let (head, rows) = table.split_once('\n').expect("a header");
    assert!(rows.contains(",worse,") && rows.contains(",no case changed,"), "{rows}");
    let rows = rows.replacen(",worse,", ",inconclusive,", 1);
    fs::write(&path, format!("{head}\n{rows}")).expect("the table");
    assert!(both().expect_code(1).stdout.contains("finding: inconclusive in the table, worse here"));
}

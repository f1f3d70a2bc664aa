//! The CSV files of a run load as they are described in `docs/reference/csv.md`: every column is described there, and pandas and DuckDB
//! take numbers for numbers.

use super::project::whole;
use std::process::Command;

const PAGE: &str = include_str!("../../docs/reference/csv.md");

#[test]
fn every_column_of_every_table_is_described() {
    let (project, _) = whole();
    let folder = project.newest();
    for name in ["criteria", "trials", "violations", "latency"] {
        let text = project.read(&format!("{folder}/{name}.csv"));
        let section = PAGE.split(&format!("## {name}.csv")).nth(1).expect(name);
        let section = section.split("\n## ").next().expect("a section");
        let shared = PAGE.split("## criteria.csv").next().expect("the beginning");
        for column in text.lines().next().expect("a header").split(',') {
            let named = format!("`{column}`");
            let parts = name == "trials" && section.contains("its parts are the next columns");
            let part = parts && ["scenario", "case", "flow", "variant", "repetition"].contains(&column);
            assert!(
                part || section.contains(&named) || shared.contains(&named),
                "{name}.csv: {column} is not described"
            );
        }
    }
}

#[test]
#[ignore = "needs RAGCHECK_TABLES_PYTHON: an interpreter with pandas and duckdb"]
fn needs_pandas_the_tables_load_with_numbers_as_numbers() {
    let python = std::env::var("RAGCHECK_TABLES_PYTHON").expect("RAGCHECK_TABLES_PYTHON names no interpreter");
    let (project, _) = whole();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tables.py");
    let mut command = Command::new(python);
    let outcome = super::project::Outcome::of(command.arg(script).arg(project.path(&project.newest())));
    outcome.expect_code(0);
    assert!(outcome.stdout.contains("violations"), "{}", outcome.stdout);
}

#[cfg(feature = "parquet")]
#[test]
#[ignore = "needs RAGCHECK_TABLES_PYTHON: an interpreter with polars and duckdb"]
fn needs_pandas_the_tables_are_the_same_as_parquet_with_typed_columns() {
    let python = std::env::var("RAGCHECK_TABLES_PYTHON").expect("RAGCHECK_TABLES_PYTHON names no interpreter");
    let (project, _) = whole();
    let folder = project.newest();
    let tables = tempfile::tempdir().expect("a folder");
    let names = ["trials", "criteria", "violations", "latency", "requirements", "calls"];
    for (name, format) in names.map(|name| (name, "parquet")).into_iter().chain([("calls", "csv")]) {
        let mut command = project.command(&["report", &folder, "--to", format, "--rows", name]);
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        std::fs::write(tables.path().join(format!("{name}.{format}")), output.stdout).expect("written");
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/parquet.py");
    let mut command = Command::new(python);
    let outcome = super::project::Outcome::of(command.arg(script).arg(project.path(&folder)).arg(tables.path()));
    outcome.expect_code(0);
    assert!(outcome.stdout.contains("calls"), "{}", outcome.stdout);
}

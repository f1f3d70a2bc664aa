//! The tables that ARCHITECTURE.md, "To add a …", names hold every file of their folder.

use std::fs;
use std::path::{Path, PathBuf};

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(path)
}

/// The names of a folder's modules: files without their ending, and folders.
fn modules(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(source(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let stem = |path: PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
    let mut names: Vec<String> = entries.map(|entry| stem(entry.expect("an entry").path())).collect();
    names.retain(|name| name != "mod");
    names.sort();
    names
}

#[test]
fn every_file_of_the_report_formats_is_in_their_table() {
    let text = fs::read_to_string(source("report/formats/mod.rs")).expect("the table");
    let table = text.split_once("FORMATS").expect("a table").1.split_once("];").expect("its end").0;
    let found = modules("report/formats");
    assert!(found.len() >= 6, "{found:?}");
    for name in found {
        assert!(table.contains(&format!("&{name}::")), "src/report/formats/{name} is in no row of FORMATS");
    }
}

#[test]
fn every_metric_is_in_the_table_that_makes_them() {
    let table = fs::read_to_string(source("metric/catalogue.rs")).expect("the table");
    let mut metrics = 0;
    for name in modules("metric") {
        let file = source(&format!("metric/{name}.rs"));
        let text = fs::read_to_string(&file).unwrap_or_default();
        if text.contains("impl Metric for") && !name.ends_with("tests") {
            metrics += 1;
            assert!(table.contains(&format!("{name}::")), "{} is not made in src/metric/catalogue.rs", file.display());
        }
    }
    assert!(metrics > 15, "only {metrics} metrics were found");
}

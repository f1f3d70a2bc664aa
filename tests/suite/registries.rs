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
fn every_metric_is_one_file_and_one_line() {
    let text = fs::read_to_string(source("metric/mod.rs")).expect("the list");
    let list = text.split_once("\nmetrics! {").expect("a list").1.split_once('}').expect("its end").0;
    let listed: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let files = modules("metric").into_iter().filter(|name| {
        let text = fs::read_to_string(source(&format!("metric/{name}.rs"))).unwrap_or_default();
        text.contains("impl Metric for") && !name.ends_with("tests")
    });
    let files: Vec<String> = files.collect();
    assert!(files.len() > 15, "only {} metrics were found", files.len());
    for name in &files {
        assert!(listed.contains(&name.as_str()), "src/metric/{name}.rs is not listed in `metrics!`");
        let other = format!("{name}::");
        for file in modules("metric").iter().filter(|file| *file != name && !file.ends_with("tests")) {
            let text = fs::read_to_string(source(&format!("metric/{file}.rs"))).unwrap_or_default();
            assert!(file != "catalogue" || !text.contains(&other), "the catalogue names {name} once more");
        }
    }
    for name in listed {
        assert!(files.iter().any(|file| file == name), "`metrics!` lists {name}, which computes nothing");
    }
}

#[test]
fn every_dialect_is_one_file_that_the_table_of_dialects_names() {
    let table = fs::read_to_string(source("provider/wire/mod.rs")).expect("the table");
    let files = modules("provider/wire").into_iter().filter(|name| {
        let text = fs::read_to_string(source(&format!("provider/wire/{name}.rs"))).unwrap_or_default();
        // Embeddings are no chat dialect: their requests are not read into a conversation.
        let chat = name != "embeddings";
        chat && text.contains("\npub fn decode_request(") && text.contains("\npub fn decode_response(")
    });
    let files: Vec<String> = files.collect();
    assert!(files.len() >= 5, "only {files:?} were found");
    for name in files {
        for part in ["decode_request", "encode_request", "decode_response"] {
            assert!(
                table.contains(&format!("{name}::{part}")),
                "src/provider/wire/{name}.rs: no dialect uses its {part}"
            );
        }
    }
}

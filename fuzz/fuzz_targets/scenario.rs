//! A project of one scenario: loaded, or refused with mistakes whose places are in the file.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use ragcheck::internals::{catalogues, scenario};
use std::path::PathBuf;
use std::sync::LazyLock;
use tempfile::TempDir;

/// One project for all executions.
static PROJECT: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("scenarios")).expect("a folder");
    folder
});

const FILE: &str = "scenarios/a.yaml";

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Ok(text) = std::str::from_utf8(bytes) else { return Corpus::Reject };
    std::fs::write(PROJECT.path().join(FILE), text).expect("written");
    let Err(mistakes) = scenario::load(PROJECT.path(), &[PathBuf::from(FILE)], None, &catalogues()) else {
        return Corpus::Keep;
    };
    assert!(!mistakes.is_empty());
    // YAML ends a line with a carriage return too.
    let lines: Vec<&str> = text.split('\n').flat_map(|line| line.split('\r')).collect();
    for mistake in mistakes.iter().filter(|mistake| mistake.file == FILE) {
        let Some(place) = mistake.place else { continue };
        let (line, column) = (place.line as usize, place.column as usize);
        assert!((1..=lines.len() + 1).contains(&line), "line {line} of {}: {mistake:?}", lines.len());
        let longest = lines.iter().map(|line| line.chars().count()).max().unwrap_or_default();
        assert!((1..=longest + 1).contains(&column), "column {column} of {longest}: {mistake:?}");
    }
    Corpus::Keep
});

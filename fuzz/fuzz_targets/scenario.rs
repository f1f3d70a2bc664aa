//! A project of one scenario: it has a plan, or is refused with mistakes whose places are in its lines.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use ragcheck::internals::plan::{Selection, build};
use ragcheck::internals::{catalogues, scenario};
use std::path::PathBuf;
use std::sync::LazyLock;
use tempfile::TempDir;

/// One project for all executions, with tables that a scenario may name.
static PROJECT: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("scenarios")).expect("a folder");
    for (file, text) in [
        ("t.csv", "case,question,n\none,\"a, \"\"b\"\"\",1\ntwo,,x\n"),
        ("t.jsonl", "{\"case\": \"one\", \"n\": [1, {\"a\": null}]}\n{\"case\": \"two\"}\n"),
    ] {
        std::fs::write(folder.path().join("scenarios").join(file), text).expect("written");
    }
    folder
});

const FILE: &str = "scenarios/a.yaml";

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Ok(text) = std::str::from_utf8(bytes) else { return Corpus::Reject };
    std::fs::write(PROJECT.path().join(FILE), text).expect("written");
    let mistakes = match scenario::load(PROJECT.path(), &[PathBuf::from(FILE)], None, &catalogues()) {
        Ok(loaded) => match build(&loaded, &Selection::default(), 0) {
            Ok(plan) => {
                assert!(!plan.trials.is_empty());
                return Corpus::Keep;
            }
            Err(mistakes) => mistakes,
        },
        Err(mistakes) => mistakes,
    };
    assert!(!mistakes.is_empty());
    // YAML ends a line with a carriage return too.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let lines: Vec<&str> = text.split('\n').collect();
    for mistake in mistakes.iter().filter(|mistake| mistake.file == FILE) {
        assert!(!mistake.message.is_empty());
        let Some(place) = mistake.place else { continue };
        let line = lines.get((place.line as usize).wrapping_sub(1));
        let line = *line.unwrap_or_else(|| panic!("a line of {}: {mistake:?}", lines.len()));
        let (before, length) = ((place.column as usize).wrapping_sub(1), line.chars().count());
        assert!(before <= length, "a column in {line:?}: {mistake:?}");
        assert!(place.length == 1 || before + place.length as usize <= length, "the end in {line:?}: {mistake:?}");
        assert!(mistake.source_line.as_deref().is_none_or(|quoted| quoted == line), "{line:?}: {mistake:?}");
    }
    Corpus::Keep
});

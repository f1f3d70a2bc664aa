//! Every kind of mistake in what people write, with the message that it gets: `tests/broken/<case>.yaml` and `.txt`.
//! A case that begins with `criteria-` or `project-` is that file; any other is a scenario, with the table of its name beside
//! it. `UPDATE=1` renews.

use super::project::copy;
use ragcheck::internals::cli::check::check;
use std::fs;
use std::path::{Path, PathBuf};

fn broken() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken")
}

/// Puts the case into a copy of `tests/broken/project` and checks that.
fn message(case: &Path) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    copy(&broken().join("project"), folder.path());
    let name = case.file_name().expect("a name").to_string_lossy().into_owned();
    let target = if name.starts_with("project-") {
        "ragcheck.yaml".to_owned()
    } else if name.starts_with("criteria-") {
        "scenarios/success-criteria.yaml".to_owned()
    } else {
        fs::remove_file(folder.path().join("scenarios/sound.yaml")).expect("the sound scenario");
        format!("scenarios/{name}")
    };
    fs::copy(case, folder.path().join(target)).expect("a copy");
    for ending in ["csv", "jsonl"] {
        let table = case.with_extension(ending);
        if table.exists() {
            let name = table.file_name().expect("a name");
            fs::copy(&table, folder.path().join("scenarios").join(name)).expect("a copy");
        }
    }
    check(folder.path(), &[], None, None).text(false)
}

#[test]
fn every_kind_of_mistake_has_its_message() {
    let mut cases: Vec<PathBuf> = fs::read_dir(broken())
        .expect("tests/broken")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    cases.sort();
    assert!(cases.len() >= 40, "only {} cases", cases.len());
    let mut wrong = Vec::new();
    for case in cases {
        let seen = message(&case);
        let expected = case.with_extension("txt");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&expected, &seen).expect("the message");
        }
        let wanted = fs::read_to_string(&expected).unwrap_or_default();
        if seen != wanted {
            wrong.push(format!("{}\n--- expected\n{wanted}--- seen\n{seen}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_message_but_a_note_gives_exit_code_2_with_file_line_and_column() {
    for entry in fs::read_dir(broken()).expect("tests/broken").map(|entry| entry.expect("an entry").path()) {
        if entry.extension().is_some_and(|extension| extension == "txt") {
            let text = fs::read_to_string(&entry).expect("a message");
            let is_note = entry.file_name().is_some_and(|name| name.to_string_lossy().contains("-note"));
            assert_eq!(!text.contains("error: "), is_note, "{}", entry.display());
        }
    }
}

#[test]
fn the_project_that_the_cases_stand_in_is_sound() {
    let checked = check(&broken().join("project"), &[], None, None);
    assert_eq!(checked.exit_code(), 0, "{}", checked.text(false));
    let notes: Vec<_> = checked.diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    assert_eq!(notes, ["no-recordings", "cannot-pass", "cannot-pass"], "sixteen conversations show no 95 %");
}

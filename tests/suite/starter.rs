//! `ragcheck init`: the project that it makes, and the newcomer's first page, followed word for word.

use super::project::Outcome;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn ragcheck(folder: &Path, arguments: &[&str]) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ragcheck"));
    Outcome::of(command.args(arguments).current_dir(folder).env("NO_COLOR", "1"))
}

/// Every file below a folder, by its path from there.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let path = path.strip_prefix(folder).expect("below it");
                found.push(path.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn the_table_of_the_starter_is_its_folder() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/starter");
    let ignored = |name: &String| name.starts_with("reports/") || name.starts_with(".ragcheck/");
    let mut table = String::from(
        "//! The files of `project/`. Written by `UPDATE=1 cargo test --test suite starter`.\n\n\
         /// Path below `project/`, and text.\npub(super) static FILES: &[(&str, &str)] = &[\n",
    );
    for name in files(&source.join("project")).iter().filter(|name| !ignored(name)) {
        let one = format!("    (\"{name}\", include_str!(\"project/{name}\")),\n");
        if one.len() <= 121 {
            table += &one;
        } else {
            let _ = write!(table, "    (\n        \"{name}\",\n        include_str!(\"project/{name}\"),\n    ),\n");
        }
    }
    table += "];\n";
    let path = source.join("table.rs");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &table).expect("the table");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(committed, table, "src/cli/starter/table.rs is out of date: run this test once with UPDATE=1");
}

#[test]
fn a_new_project_passes_its_check_and_its_run_and_nothing_is_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = ragcheck(folder.path(), &["init", "bikes"]);
    made.expect_code(0);
    assert!(made.stdout.contains("cd bikes"), "{}", made.stdout);
    let project = folder.path().join("bikes");
    let checked = ragcheck(&project, &["check"]);
    checked.expect_code(0);
    assert!(checked.stdout.starts_with("0 errors, 0 notes"), "{}", checked.stdout);
    let ran = ragcheck(&project, &["run"]);
    ran.expect_code(0);
    assert!(
        ran.stdout.contains("2 required gates passed"),
        "record the starter again (just record-starter): {}",
        ran.stdout
    );
    assert!(ran.stdout.contains("20 trials: 20 PASS"), "{}", ran.stdout);
    let git = fs::read_to_string(project.join(".gitignore")).expect("a .gitignore");
    assert!(git.lines().any(|line| line == "/reports/"));

    let before = fs::read(project.join("ragcheck.yaml")).expect("a file");
    let again = ragcheck(folder.path(), &["init", "bikes"]);
    again.expect_code(2);
    assert!(again.stderr.contains("no file is overwritten"), "{}", again.stderr);
    assert_eq!(fs::read(project.join("ragcheck.yaml")).expect("a file"), before);
}

#[test]
fn a_folder_that_was_half_written_is_completed() {
    let folder = tempfile::tempdir().expect("a folder");
    ragcheck(folder.path(), &["init"]).expect_code(0);
    for file in ["ragcheck.yaml", "scenarios/questions.yaml"] {
        fs::remove_file(folder.path().join(file)).expect("it was there");
    }
    let none = ragcheck(folder.path(), &["run"]);
    none.expect_code(2);
    let completed = ragcheck(folder.path(), &["init"]);
    completed.expect_code(0);
    assert!(completed.stdout.starts_with("wrote 2 files to this folder\n"), "{}", completed.stdout);
    ragcheck(folder.path(), &["run"]).expect_code(0);
    let empty = tempfile::tempdir().expect("a folder");
    let hint = ragcheck(empty.path(), &["run"]);
    hint.expect_code(2);
    assert!(hint.stderr.contains("`ragcheck init my-project`"), "{}", hint.stderr);
}

#[test]
fn a_folder_with_a_readme_of_its_own_keeps_it_and_one_file_in_the_way_stops_everything() {
    let folder = tempfile::tempdir().expect("a folder");
    let project: PathBuf = folder.path().join("mine");
    fs::create_dir(&project).expect("a folder");
    fs::write(project.join("README.md"), "mine\n").expect("a file");
    fs::write(project.join(".gitignore"), "target\n").expect("a file");
    fs::create_dir(project.join("scenarios")).expect("a folder");
    fs::write(project.join("scenarios/criteria.yaml"), "criteria: []\n").expect("a file");
    let refused = ragcheck(&project, &["init"]);
    refused.expect_code(2);
    assert!(refused.stderr.contains("this folder has scenarios/criteria.yaml already"), "{}", refused.stderr);
    assert_eq!(files(&project), [".gitignore", "README.md", "scenarios/criteria.yaml"]);

    fs::remove_file(project.join("scenarios/criteria.yaml")).expect("it was there");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let made = ragcheck(elsewhere.path(), &["init", project.to_str().expect("a path")]);
    made.expect_code(0);
    assert!(made.stdout.contains("kept your README.md"), "{}", made.stdout);
    assert!(made.stdout.contains("kept your .gitignore; add to it:\n  /reports/\n"), "{}", made.stdout);
    assert_eq!(fs::read_to_string(project.join("README.md")).expect("a file"), "mine\n");
    ragcheck(&project, &["check"]).expect_code(0);
}

//! Runs listed, compared with the one before, and written to report files of other names.

use super::project::{Outcome, Project};
use crate::program::program;
use std::fs;
use std::path::Path;
use std::process::Command;

fn ragcheck(folder: &Path, arguments: &[&str]) -> Outcome {
    let mut command = Command::new(program());
    Outcome::of(command.args(arguments).current_dir(folder).env_remove("COLUMNS"))
}

/// A new project with one run.
fn started() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    ragcheck(folder.path(), &["init"]).expect_code(0);
    ragcheck(folder.path(), &["run"]).expect_code(0);
    folder
}

fn edit(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).expect("a file");
    assert!(text.contains(from), "{} lacks {from}", file.display());
    fs::write(file, text.replacen(from, to, 1)).expect("written");
}

fn latest(folder: &Path) -> String {
    let run = fs::canonicalize(folder.join("reports/latest")).expect("a run");
    run.file_name().expect("a name").to_string_lossy().into_owned()
}

#[test]
fn runs_are_listed_and_each_is_compared_with_the_one_before() {
    let folder = started();
    let root = folder.path();
    let alone = ragcheck(root, &["compare", "--previous"]);
    alone.expect_code(2);
    assert!(alone.stderr.contains("no run of the same scenarios lies before"), "{}", alone.stderr);

    let first = latest(root);
    edit(&root.join("scenarios/questions.yaml"), "80 euros", "90 euros");
    ragcheck(root, &["run"]).expect_code(1);
    let second = latest(root);
    // A part is a run too, and nothing that a whole one is compared with.
    ragcheck(root, &["run", "--only", "deposit"]);
    fs::create_dir(root.join("reports/0123456789ab")).expect("a broken run");

    let listed = ragcheck(root, &["runs"]);
    listed.expect_code(0);
    let place = |name: &str| listed.stdout.find(name).unwrap_or_else(|| panic!("{name} in\n{}", listed.stdout));
    assert!(place(&second) < place(&first) && place(&first) < place("0123456789ab"), "{}", listed.stdout);
    for words in ["(latest)", "FAIL", "PASS", "broken run folder: run.json", "questions"] {
        place(words);
    }
    let page = fs::read_to_string(root.join("reports/index.html")).expect("the list");
    assert!(page.contains(&format!("href=\"./{second}/index.html\"")) && page.contains("broken run folder"), "{page}");

    let compared = ragcheck(root, &["compare", "--previous"]);
    compared.expect_code(0);
    assert!(compared.stdout.contains(&first) && compared.stdout.contains(&second), "{}", compared.stdout);
    assert!(root.join("reports").join(&second).join("comparison.html").exists());
    let page = fs::read_to_string(root.join("reports/index.html")).expect("the list");
    assert!(page.contains(&format!("href=\"./{second}/comparison.html\"")), "{page}");
}

#[test]
fn a_run_writes_its_report_to_the_files_that_are_named_wherever_they_are() {
    let folder = started();
    let elsewhere = tempfile::tempdir().expect("a folder outside of the project");
    let junit = elsewhere.path().join("junit.xml");
    let both = format!("junit={},markdown=out/summary.md", junit.display());
    ragcheck(folder.path(), &["run", "--report", &both, "--report=csv=out/criteria.csv"]).expect_code(0);
    let printed = |format: &str| ragcheck(folder.path(), &["report", "--to", format]).stdout;
    let written = |file: &Path| fs::read_to_string(file).expect("a report");
    assert_eq!(written(&junit), printed("junit"));
    assert_eq!(written(&folder.path().join("out/summary.md")), printed("markdown"));
    assert_eq!(written(&folder.path().join("out/criteria.csv")), printed("csv"));

    let mut mistakes = vec![("junit", "FORMAT=FILE"), ("pdf=a.pdf", "no report format is called `pdf`")];
    if cfg!(not(feature = "parquet")) {
        mistakes.push(("trials.parquet", "build with `--features parquet`"));
    }
    for (typed, words) in mistakes {
        let outcome = ragcheck(folder.path(), &["run", "--report", typed]);
        outcome.expect_code(2);
        assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
    }
    let nowhere = ragcheck(folder.path(), &["run", "--report", "junit=/proc/none/junit.xml"]);
    nowhere.expect_code(5);
    assert!(nowhere.stderr.contains("cannot be written"), "{}", nowhere.stderr);
}

#[test]
fn where_only_parts_were_run_a_command_about_the_latest_run_names_the_one_that_there_is() {
    let project = Project::shipped();
    let said = |typed: &[&str]| {
        let outcome = project.run(typed);
        outcome.expect_code(2);
        outcome.stderr
    };
    let show = ["show", "context/corrected-serial/tool-rag.base.1"];
    let none = said(&show);
    assert!(none.contains("there is no run yet; make one: ragcheck run"), "{none}");
    project.run(&["run", "scenarios/context.yaml", "--only", "corrected-serial"]).expect_code(0);
    let newest = project.newest();
    // The one run that has the trial is the one that is meant.
    let shown = project.run(&show);
    shown.expect_code(0);
    assert!(shown.stdout.starts_with("PASS\n"), "{}", shown.stdout);
    let elsewhere = ["show", "knowledge/valve-error/tool-rag.base.1"];
    for typed in
        [&elsewhere[..], &["score"], &["report", "--to", "json"], &["compare", "reports/latest@a", "reports/latest@b"]]
    {
        let told = said(typed);
        let wanted = "there is no run of whole scenarios yet, and one of some cases is never the latest";
        assert!(told.contains(wanted) && told.contains(&newest), "{typed:?}: {told}");
    }
}

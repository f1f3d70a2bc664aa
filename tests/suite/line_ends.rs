//! A checkout with Windows line ends replays: scenarios, prompts, documents and recordings that a checkout made `\r\n`. So do
//! YAML files in which a carriage return alone ends a line.

use super::project::Outcome;
use crate::program::program;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Gives every text file below a folder Windows line ends; the number of files.
fn windows(folder: &Path) -> usize {
    let mut changed = 0;
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            changed += windows(&path);
        } else {
            let text = fs::read_to_string(&path).expect("text");
            fs::write(&path, text.replace("\r\n", "\n").replace('\n', "\r\n")).expect("written");
            changed += 1;
        }
    }
    changed
}

#[test]
fn a_checkout_with_windows_line_ends_replays_with_the_same_verdicts() {
    let folder = tempfile::tempdir().expect("a folder");
    let ragcheck = |arguments: &[&str]| Outcome::of(Command::new(program()).args(arguments).current_dir(folder.path()));
    ragcheck(&["init"]).expect_code(0);
    for part in ["scenarios", "knowledge", "recordings", "simulator"] {
        assert!(windows(&folder.path().join(part)) > 0, "{part} has no file");
        let outcome = ragcheck(&["run"]);
        outcome.expect_code(0);
        assert!(outcome.stdout.contains("20 trials: 20 PASS"), "{part}: {}", outcome.stdout);
    }
    ragcheck(&["check"]).expect_code(0);
}

#[test]
fn a_project_with_carriage_returns_alone_is_read_as_any_other() {
    let project = super::project::Project::starter();
    for file in ["ragcheck.yaml", "scenarios/questions.yaml", "scenarios/criteria.yaml"] {
        let text = project.read(file);
        project.write(file, &text.replace("\r\n", "\n").replace('\n', "\r"));
        let outcome = project.run(&["run"]);
        outcome.expect_code(0);
        assert!(outcome.stdout.contains("20 trials: 20 PASS"), "{file}: {}", outcome.stdout);
    }
    project.write("ragcheck.yaml", "# none\rreportz: out\r");
    let outcome = project.run(&["check"]);
    outcome.expect_code(2);
    assert!(outcome.stdout.contains("ragcheck.yaml:2:1"), "{}", outcome.stdout);
}

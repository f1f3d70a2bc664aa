//! Limits on what people write: the project file lowers each of them, the command line sets it, and what passes one is told
//! which it was and what to type.

use super::project::{Outcome, copy};
use crate::program::program;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A limit, a value that the project passes, files that are written for it, and what is typed.
type Passed = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

const LANE: &str = "cassettes/sound/one-turn/tool-rag.feedback.1.yaml";

const LIMITS: [Passed; 16] = [
    ("scenario-size", "1KiB", &[], &["check"]),
    ("scenarios-size", "1KiB", &[], &["check"]),
    ("entries", "1", &[], &["check"]),
    ("cases", "3", &[], &["check"]),
    ("repeat", "1", &[], &["check"]),
    ("trials", "3", &[], &["list"]),
    ("ratings-size", "10", &[("ratings.csv", "trial,satisfied\na,yes\n")], &["check"]),
    ("baseline-size", "10", &[("base.json", "{\"version\": 1}\n")], &["run", "--baseline", "base.json"]),
    ("prompt-size", "5", &[("scenarios/call.txt", "Call {{ tool }} first.")], &["check"]),
    ("expressions", "50", &[], &["check"]),
    ("mistakes", "1", &[("scenarios/other.yaml", "scenario: other\nflwo: x\nmodle: y\n")], &["check"]),
    ("documents-size", "10", &[], &["knowledge", "search", "garden", "heap"]),
    (
        "passages",
        "2",
        &[("knowledge/garden/b.md", "# A\n\na\n\n# B\n\nb\n\n# C\n\nc\n")],
        &["knowledge", "search", "garden", "heap"],
    ),
    (
        "vectors-size",
        "10",
        &[("knowledge/garden.small.vectors", "{\"version\": 1}\n")],
        &["knowledge", "index", "vectors"],
    ),
    ("recording-size", "10", &[(LANE, "cassette: 2\nscenario: sound\n")], &["run", "--only", "one-turn"]),
    ("import-size", "10", &[("log.jsonl", "{\"messages\": []}\n")], &["score", "--import", "messages", "log.jsonl"]),
];

/// The small project with the limit in its project file, and what a command says there.
fn said((name, low, files, typed): Passed, more: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken/project"), folder.path());
    let project = folder.path().join("ragcheck.yaml");
    let text = fs::read_to_string(&project).expect("the project file");
    let more_of_project = match name {
        "ratings-size" => "ratings: ratings.csv\n",
        "vectors-size" => "knowledge_bases: {vectors: {folder: garden, embeddings: {provider: chat, model: small}}}\n",
        _ => "",
    };
    fs::write(&project, format!("bounds: {{{name}: {low}}}\n{text}{more_of_project}")).expect("written");
    if name == "prompt-size" {
        let scenario = folder.path().join("scenarios/sound.yaml");
        let text = fs::read_to_string(&scenario).expect("the scenario");
        fs::write(&scenario, text.replace("{text: \"Call {tool} first.\"}", "{file: call.txt}")).expect("written");
    }
    for (file, text) in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("written");
    }
    let mut command = Command::new(program());
    command.args(typed).args(more).current_dir(folder.path()).env("NO_COLOR", "1").env("COLUMNS", "400");
    let outcome = Outcome::of(&mut command);
    // The command to run again repeats what was typed.
    let lines =
        outcome.stdout.lines().filter(|line| !line.starts_with("run again: ") && !line.starts_with("  resume: "));
    lines.collect::<Vec<_>>().join("\n") + &outcome.stderr
}

#[test]
fn each_limit_is_lowered_by_the_project_raised_by_the_command_line_and_named_when_it_is_passed() {
    for limit in LIMITS {
        let (name, low, ..) = limit;
        let advice = format!("--limit {name}=");
        let lowered = said(limit, &[]);
        assert!(lowered.contains(&advice), "{name} at {low}: {lowered}");
        let raised = said(limit, &["--limit", &format!("{name}=1000000000")]);
        assert!(!raised.contains(&advice), "{name} raised: {raised}");
    }
}

#[test]
fn what_sets_no_limit_is_refused_with_those_that_there_are() {
    let folder = tempfile::tempdir().expect("a folder");
    for (typed, words) in [("sise=1", "known: scenario-size"), ("cases", "NAME=VALUE"), ("cases=0", "not an amount")] {
        let mut command = Command::new(program());
        let outcome = Outcome::of(command.args(["check", "--limit", typed]).current_dir(folder.path()));
        outcome.expect_code(2);
        assert!(outcome.stderr.contains(words), "{typed}: {}", outcome.stderr);
    }
}

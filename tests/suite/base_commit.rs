//! `run --base-commit`: which recordings are as they were at a commit, wherever their folder is.

use super::project::{Outcome, Project};
use std::process::Command;

/// Commits everything in the folder to a new repository.
fn commit(project: &Project) {
    for typed in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "--no-gpg-sign", "-m", "base"],
    ] {
        Outcome::of(Command::new("git").args(typed).current_dir(project.path("."))).expect_code(0);
    }
}

#[test]
fn recordings_that_did_not_change_are_as_they_were_however_their_folder_is_written() {
    for written in ["./recordings", "scenarios/../recordings/."] {
        let project = Project::starter();
        project.edit("ragcheck.yaml", "cassettes: recordings", &format!("cassettes: {written}"));
        commit(&project);
        let run = project.run(&["run", "--base-commit", "HEAD"]);
        assert!(run.stdout.contains("every recording is as it was at "), "{written}: {}", run.stdout);
    }
}

#[test]
fn a_changed_recording_beside_the_project_is_named() {
    let project = Project::empty();
    project.run(&["init", "bikes"]).expect_code(0);
    std::fs::rename(project.path("bikes/recordings"), project.path("recordings")).expect("moved");
    project.edit("bikes/ragcheck.yaml", "cassettes: recordings", "cassettes: ../recordings");
    commit(&project);
    let run = || {
        let mut command = project.command(&["run", "--allow-path", "..", "--base-commit", "HEAD"]);
        Outcome::of(command.current_dir(project.path("bikes")))
    };
    let same = run();
    assert!(same.stdout.contains("every recording is as it was at "), "{}{}", same.stdout, same.stderr);
    let lane = "recordings/questions/helmet/tool-rag.short.1.yaml";
    project.write(lane, &project.read(lane).replace("take: 1", "take: 2"));
    let changed = run();
    assert!(changed.stdout.contains("1 recording CHANGED since "), "{}{}", changed.stdout, changed.stderr);
}

#[test]
fn what_was_deleted_is_named_and_so_is_a_baseline_that_changed_or_is_new() {
    let project = Project::starter();
    project.run(&["run"]).expect_code(0);
    project.run(&["compare", "reports/latest", "--save", "base.json"]).expect_code(0);
    project.write("other.json", &project.read("base.json"));
    commit(&project);
    let run = |more: &[&str]| {
        let run = project.run(&[&["run", "--base-commit", "HEAD", "--report-dir", "r"], more].concat());
        run.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let same = run(&["--baseline", "base.json"]);
    assert!(same.contains("every recording is as it was at ") && !same.contains("CHANGED"), "{same}");
    project.write("recordings/questions/stopping.json", "{}");
    commit(&project);
    let blobs = std::fs::read_dir(project.path("recordings/questions/blobs")).expect("shared prompts");
    let blob = blobs.map(|entry| entry.expect("an entry").path()).min().expect("a prompt");
    let lane = project.path("recordings/questions/helmet/tool-rag.short.1.yaml");
    for file in [blob.clone(), lane, project.path("recordings/questions/stopping.json")] {
        std::fs::remove_file(file).expect("removed");
    }
    let blob = blob.file_name().expect("a name").to_string_lossy().into_owned();
    let deleted = run(&[]);
    assert!(deleted.contains("3 recordings CHANGED since "), "{deleted}");
    for name in ["questions/helmet/tool-rag.short.1", &format!("blobs/{blob} (deleted)"), "stopping.json (deleted)"] {
        assert!(deleted.contains(name), "{name}: {deleted}");
    }
    project.write("new.json", &project.read("base.json"));
    project.write("base.json", &format!("{}\n", project.read("base.json")));
    std::fs::remove_file(project.path("other.json")).expect("removed");
    std::os::unix::fs::symlink("new.json", project.path("other.json")).expect("a link");
    for file in ["base.json", "new.json", "other.json"] {
        let changed = run(&["--baseline", file]);
        assert!(changed.contains(".json CHANGED since "), "{file}: {changed}");
    }
    let elsewhere = tempfile::tempdir().expect("a folder");
    let own = elsewhere.path().join("own.json");
    std::fs::copy(project.path("new.json"), &own).expect("copied");
    let made = run(&["--baseline", own.to_str().expect("a path")]);
    assert!(made.contains("3 recordings CHANGED") && !made.contains("the baseline"), "of the job itself: {made}");
}

#[test]
fn an_edited_prompt_that_recordings_share_is_named() {
    let project = Project::starter();
    commit(&project);
    let blobs = std::fs::read_dir(project.path("recordings/questions/blobs")).expect("shared prompts");
    let mut blobs: Vec<_> = blobs.map(|entry| entry.expect("an entry").path()).collect();
    blobs.sort();
    let text = std::fs::read_to_string(&blobs[0]).expect("a prompt");
    std::fs::write(&blobs[0], format!("{text} Be brief.")).expect("written");
    let run = project.run(&["run", "--base-commit", "HEAD", "--report-dir", "r"]);
    assert!(run.stdout.contains("1 recording CHANGED since "), "{}{}", run.stdout, run.stderr);
    let name = blobs[0].file_name().expect("a name").to_string_lossy().into_owned();
    assert!(run.stdout.contains(&format!("questions/blobs/{name}")), "{name}: {}", run.stdout);
}

#[test]
fn excluded_cases_do_not_hide_a_changed_recording_from_the_terminal_or_the_summary() {
    let project = Project::starter();
    commit(&project);
    let lane = "recordings/questions/deposit/tool-rag.strict.1.yaml";
    project.write(lane, &project.read(lane).replacen("took_us: ", "took_us: 1", 1));
    let excluded = "- case: deposit\n    fault: known\n    excluded_from: {SEARCH: known}";
    project.edit("scenarios/questions.yaml", "- case: deposit", excluded);
    let run = project.run(&["run", "--base-commit", "HEAD"]);
    run.expect_code(0);
    let summary = project.run(&["report", "--to", "markdown"]).stdout;
    for said in [&run.stdout, &summary] {
        assert!(said.contains("1 recording CHANGED since ") && said.contains("tool-rag.strict.1"), "{said}");
    }
    assert!(summary.contains("; cases left out of: SEARCH"), "{summary}");
}

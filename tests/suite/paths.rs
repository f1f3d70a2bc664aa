//! Paths on the command line are taken from where the user stands, and what is not typed from the project.

use super::project::{Outcome, Project};

fn in_folder(project: &Project, folder: &str, arguments: &[&str]) -> Outcome {
    Outcome::of(project.command(arguments).current_dir(project.path(folder)))
}

#[test]
fn every_path_that_is_typed_in_a_folder_of_the_project_is_taken_from_there() {
    let project = Project::shipped();
    project.write("scenarios/keys.env", "NOT_A_KEY=1\n");
    let here = |arguments: &[&str]| in_folder(&project, "scenarios", arguments);
    let ran = here(&[
        "run",
        "knowledge.yaml",
        "--report-dir",
        "runs",
        "--env-file",
        "keys.env",
        "--criteria",
        "success-criteria.yaml",
    ]);
    assert!(ran.stdout.contains("report: runs/"), "{}{}", ran.stdout, ran.stderr);
    assert!(project.path("scenarios/runs/latest/run.json").exists());
    let trial = project.read("scenarios/runs/latest/traces.jsonl");
    let trial = trial.split('"').skip_while(|word| *word != "trial").nth(2).expect("a trial").to_owned();
    for arguments in [
        &["score", "runs/latest"][..],
        &["report", "runs/latest", "--to", "csv"],
        &["show", &format!("runs/latest/{trial}")],
        &["compare", "runs/latest", "--save", "base.json"],
        &["compare", "base.json", "runs/latest"],
        &["judge", "runs/latest", "--rubric", "rubric.yaml"],
        &["explain", "SC-001", "--criteria", "success-criteria.yaml"],
        &["check", "knowledge.yaml", "--criteria", "success-criteria.yaml"],
        &["list", "knowledge.yaml", "--criteria", "success-criteria.yaml"],
        &["cassette", "scan", "../fixtures/cassettes/knowledge"],
        &["cassette", "rekey", "../fixtures/cassettes/knowledge"],
        &["history", "--file", "points.jsonl", "--html", "points.html"],
        &["simulate", "nothing.yaml"],
        &["keywords", "list", "nothing.sqlite"],
    ] {
        let outcome = here(arguments);
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        let missing = arguments.iter().any(|word| word.starts_with("nothing"));
        assert!(missing || !said.contains("does not exist") && !said.contains("no such"), "{arguments:?}: {said}");
        assert!(!said.contains("lies outside"), "{arguments:?}: {said}");
    }
    for file in ["base.json", "points.html"] {
        assert!(project.path("scenarios").join(file).exists(), "{file} lies elsewhere");
    }
}

#[test]
fn the_newest_run_is_found_from_any_folder_of_the_project() {
    let project = Project::shipped();
    project.run(&["run", "scenarios/knowledge.yaml"]);
    for arguments in [&["score"][..], &["report", "--to", "csv"], &["history", "add"]] {
        let outcome = in_folder(&project, "scenarios", arguments);
        assert!(!outcome.stderr.contains("is not a run folder"), "{arguments:?}: {}", outcome.stderr);
    }
}

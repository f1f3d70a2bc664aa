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
        "run", "knowledge.yaml", "--report-dir", "runs", "--env-file", "keys.env", "--criteria",
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

#[test]
fn a_path_that_a_report_prints_is_found_from_any_folder_of_the_project_unless_there_is_one_here() {
    let project = Project::shipped();
    let listed = |folder: &str, path: &str| in_folder(&project, folder, &["list", path]);
    listed("fixtures", "scenarios/knowledge.yaml").expect_code(0);
    project.write("fixtures/scenarios/knowledge.yaml", "not: a scenario\n");
    let here = listed("fixtures", "scenarios/knowledge.yaml");
    here.expect_code(2);
    assert!(here.stderr.contains("fixtures/scenarios/knowledge.yaml"), "{}", here.stderr);
    assert!(listed("fixtures", "scenarios/nothing.yaml").stderr.contains("fixtures/scenarios/nothing.yaml"));
}

#[test]
fn a_page_of_another_tool_in_the_folder_of_reports_stays_is_named_and_no_list_links_to_it() {
    let project = Project::shipped();
    let run = ["run", "scenarios/knowledge.yaml", "--only", "valve-error", "--no-history"];
    assert!(!project.run(&run).stderr.contains("page of another tool"));
    project.write("reports/history.html", "<h1>my history</h1>");
    let told = project.run(&run).stderr;
    assert!(told.contains("has a page of another tool, left as it is, where reports link to: history.html"), "{told}");
    assert_eq!(project.read("reports/history.html"), "<h1>my history</h1>");
    assert!(!project.read("reports/index.html").contains("history.html"), "the list of runs");
}

#[cfg(unix)]
#[test]
fn the_mask_of_the_shell_holds_for_every_file_of_a_run() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::shipped();
    let script = "umask 077 && exec \"$0\" run scenarios/knowledge.yaml --report-dir shared -o junit=shared/j.xml";
    std::fs::create_dir(project.path("shared")).expect("a folder");
    let mut shell = std::process::Command::new("sh");
    let outcome = Outcome::of(shell.args(["-c", script, super::program::program()]).current_dir(project.path("")));
    assert!(outcome.stdout.contains("report: shared/"), "{}{}", outcome.stdout, outcome.stderr);
    let latest = std::fs::read_dir(project.path("shared/latest/")).expect("a run");
    let written = std::fs::read_dir(project.path("shared")).expect("a folder").chain(latest);
    let open: Vec<_> = written
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_file() && path.metadata().expect("a file").permissions().mode() & 0o077 != 0)
        .collect();
    assert!(open.is_empty(), "{open:?}");
}

//! The steps of the GitHub Action, run as its `action.yml` calls them: exit code, annotations at the scenario's line, summary.

use super::project::Outcome;
use std::fs;
use std::path::Path;
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const RAGCHECK: &str = env!("CARGO_BIN_EXE_ragcheck");

fn ragcheck(project: &Path, arguments: &[&str]) -> Outcome {
    Outcome::of(Command::new(RAGCHECK).args(arguments).current_dir(project).env("NO_COLOR", "1"))
}

/// One step of the action in a project, with the files that GitHub gives it.
fn step(workspace: &Path, project: &Path, step: &str, settings: &[(&str, &str)]) -> Outcome {
    let mut command = Command::new("bash");
    command.arg(format!("{ROOT}/.ci/action")).arg(step).current_dir(project).env("RAGCHECK", RAGCHECK);
    command.env("GITHUB_WORKSPACE", workspace).env("GITHUB_OUTPUT", workspace.join("output"));
    command.env("GITHUB_STEP_SUMMARY", workspace.join("summary")).envs(settings.iter().copied());
    Outcome::of(&mut command)
}

#[test]
fn every_step_of_the_action_is_one_that_the_script_has() {
    let action = fs::read_to_string(format!("{ROOT}/action.yml")).expect("action.yml");
    for step in ["build", "run", "tell"] {
        assert!(action.contains(&format!("/.ci/action\" {step}'")), "{step}");
    }
    assert!(!action.contains("secrets."), "a pull request has none");
}

#[test]
#[ignore = "needs python3"]
fn needs_a_bare_interpreter_the_action_says_what_regressed_where_it_stands() {
    let workspace = tempfile::tempdir().expect("a folder");
    let workspace = workspace.path();
    ragcheck(workspace, &["init", "bikes"]).expect_code(0);
    let project = workspace.join("bikes");
    ragcheck(&project, &["run"]).expect_code(0);
    ragcheck(&project, &["compare", "reports/latest", "--save", "base.json"]).expect_code(0);
    let settings = [("RAGCHECK_BASELINE", "base.json"), ("RAGCHECK_FAIL_ON", "flip")];
    step(workspace, &project, "run", &settings).expect_code(0);
    let told = step(workspace, &project, "tell", &settings);
    told.expect_code(0);
    assert_eq!(told.stdout, "", "nothing is wrong");

    let scenario = project.join("scenarios/questions.yaml");
    let text = fs::read_to_string(&scenario).expect("the scenario");
    // What a document or a model says is text: it begins no command of the workflow and is no markup.
    fs::write(&scenario, text.replace("80 euros", "'::error::<b>@all</b> [x](y)'")).expect("the scenario");
    let line = 1 + text.lines().position(|line| line.contains("case: deposit")).expect("the case");
    step(workspace, &project, "run", &settings).expect_code(0);
    let told = step(workspace, &project, "tell", &settings);
    told.expect_code(0);
    let begins =
        format!("::error file=bikes/scenarios/questions.yaml,line={line},title=REGRESSED%3A questions/deposit::");
    assert_eq!(told.stdout.lines().count(), 1, "{}", told.stdout);
    assert!(told.stdout.starts_with(&begins), "{}", told.stdout);
    let summary = fs::read_to_string(workspace.join("summary")).expect("the summary");
    assert!(summary.contains("| **REGRESSED** | questions/deposit | 2 |"), "{summary}");
    assert!(!summary.contains("<b>") && !summary.contains(" @all") && !summary.contains("[x](y)"), "{summary}");
    let codes = fs::read_to_string(workspace.join("output")).expect("the outputs");
    assert_eq!(codes, "exit-code=0\nexit-code=1\n");
}

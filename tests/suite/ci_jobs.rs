//! The jobs that the documentation and the files offer, run step by step as they stand there: the composite action, the
//! workflow that `ragcheck init` writes, and from docs/ci.md the GitLab job and the job that refreshes recordings.

use super::project::Project;
use super::simulator::Simulator;
use super::workflow::{Job, Workplace, yaml};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

const ACTION: &str = include_str!("../../action.yml");
const PAGE: &str = include_str!("../../docs/ci.md");
const STARTER: &str = include_str!("../../src/cli/starter/project/dot-github/workflows/ragcheck.yml");

/// The block of YAML on the page that begins with these words.
fn block(begins: &str) -> Value {
    let found = PAGE.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().expect("a block"));
    yaml(found.into_iter().find(|text| text.starts_with(begins)).unwrap_or_else(|| panic!("no block `{begins}`")))
}

/// The action with its inputs, those that are not given by default.
fn action(place: &Workplace, given: &[(&str, &str)], event: &[(&str, &str)]) -> Job {
    let written = yaml(ACTION);
    let mut contexts: BTreeMap<String, String> = BTreeMap::new();
    for (name, input) in written["inputs"].as_object().expect("inputs") {
        contexts.insert(format!("inputs.{name}"), input["default"].as_str().expect("a default").to_owned());
    }
    for (name, value) in given {
        assert!(contexts.insert(format!("inputs.{name}"), (*value).to_owned()).is_some(), "no input `{name}`");
    }
    let contexts: Vec<(&str, &str)> =
        contexts.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(event.iter().copied()).collect();
    // A caller checks out first.
    let mut job = written["runs"].clone();
    let steps = job["steps"].as_array_mut().expect("steps");
    steps.insert(0, serde_json::json!({"uses": "actions/checkout@v4"}));
    place.run(&job, &contexts)
}

const PULL_REQUEST: [(&str, &str); 5] = [
    ("github.event_name", "pull_request"),
    ("github.event.pull_request.number", "12"),
    ("github.event.pull_request.head.repo.full_name", "owner/bikes"),
    ("github.repository", "owner/bikes"),
    ("github.token", "token"),
];

#[test]
fn the_action_comments_once_then_updates_and_ends_with_the_exit_code_of_the_run() {
    let project = Project::starter();
    project.run(&["run"]).expect_code(0);
    project.run(&["compare", "reports/latest", "--save", "base line.json"]).expect_code(0);
    fs::remove_dir_all(project.path("reports")).expect("reports");
    let folder = "bike hire, 50%";
    let place = Workplace::of(&project.path("."), folder);
    let inputs =
        [("working-directory", folder), ("comment", "true"), ("baseline", "base line.json"), ("fail-on", "flip")];
    let first = action(&place, &inputs, &PULL_REQUEST);
    assert!(!first.failed, "{first:#?}");
    assert!(first.summary.contains("What changed against the base") && place.gh("body").contains(&first.summary));
    assert!(place.gh("asked").contains("--method POST repos/owner/bikes/issues/12/comments"));

    // Words of a workflow command in a scenario, which the terminal and the annotation show.
    let change = |text: String| text.replace("80 euros", "'::stop-commands::x ##[error]y @everyone <b>'");
    place.change(&format!("{folder}/scenarios/questions.yaml"), change);
    let second =
        action(&place, &[&inputs[..], &[("arguments", "--only 'questions/*'\n--repeat 1")]].concat(), &PULL_REQUEST);
    assert!(second.failed && second.step("exit code").code == Some(1), "{second:#?}");
    let told = &second.step("annotations and summary").stdout;
    assert!(told.starts_with("::error file=bike hire%2C 50%25/scenarios/questions.yaml,line="), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    let printed = &second.step("run").stdout;
    let token = printed.lines().next().and_then(|line| line.strip_prefix("::stop-commands::")).expect("silenced");
    assert!(token.len() == 32 && printed.ends_with(&format!("\n::{token}::\n")), "{printed}");
    assert!(second.summary.contains("**REGRESSED**") && !second.summary.contains("@everyone"), "{}", second.summary);
    assert!(place.gh("asked").contains("--method PATCH repos/owner/bikes/issues/comments/77"), "{}", place.gh("asked"));
    assert!(place.gh("body").starts_with("<!-- ragcheck -->\n"));
    assert!(second.step("actions/upload-artifact@v4").code.is_some(), "artifacts are kept of a failing run");
}

#[test]
fn a_failing_case_that_the_baseline_lacks_fails_no_job_of_flips_and_every_text_of_the_job_says_so() {
    let project = Project::starter();
    project.edit("scenarios/questions.yaml", "80 euros", "90 euros");
    project.run(&["run", "--exclude", "deposit", "--folder-file=base"]).expect_code(0);
    project.run(&["compare", project.read("base").trim(), "--save", "baseline.json"]).expect_code(0);
    fs::remove_dir_all(project.path("reports")).expect("reports");
    let place = Workplace::of(&project.path("."), "");
    let inputs = [("comment", "true"), ("baseline", "baseline.json"), ("fail-on", "flip")];
    let job = action(&place, &inputs, &PULL_REQUEST);
    assert!(!job.failed, "{job:#?}");
    let begins = "### ragcheck: exit code 0\n\n--fail-on flip: no case that passed on the older side fails now; the criteria \
                  alone: exit code 1\n";
    assert!(job.summary.starts_with(begins), "{}", job.summary);
    assert!(job.summary.contains("| **FAILS** | questions/deposit |"), "{}", job.summary);
    assert!(place.gh("body").contains(&job.summary));
    let told = &job.step("annotations and summary").stdout;
    assert!(told.starts_with("::warning file=scenarios/questions.yaml,line=") && !told.contains("::error"), "{told}");

    // The same run has the same folder: it forgets what decided the one before.
    let alone = action(&place, &[], &PULL_REQUEST);
    assert!(alone.failed && alone.summary.starts_with("### ragcheck: exit code 1\n"), "{alone:#?}");
}

#[test]
fn a_project_or_an_argument_that_puts_reports_elsewhere_has_its_summary_comment_and_artifact() {
    let project = Project::starter();
    project.edit("ragcheck.yaml", "reports: reports", "reports: out/runs of today");
    project.edit("scenarios/questions.yaml", "80 euros", "90 euros");
    let place = Workplace::of(&project.path("."), "bikes");
    let inputs = [("working-directory", "bikes"), ("comment", "true")];
    for (arguments, folder) in [("", "out/runs of today"), ("--report-dir other --format json", "other")] {
        let job = action(&place, &[&inputs[..], &[("arguments", arguments)]].concat(), &PULL_REQUEST);
        assert_eq!(job.step("exit code").code, Some(1), "{job:#?}");
        assert!(job.summary.starts_with("### ragcheck: exit code 1\n"), "{job:#?}");
        assert!(job.step("annotations and summary").stdout.starts_with("::error file=bikes/scenarios/"), "{job:#?}");
        assert!(place.gh("body").contains(&job.summary));
        let kept = std::path::PathBuf::from(&job.step("actions/upload-artifact@v4").stdout);
        assert!(kept.ends_with(format!("bikes/{folder}")) && kept.join("latest/run.json").is_file(), "{kept:?}");
    }
}

#[test]
fn a_run_that_wrote_nothing_leaves_no_artifact_of_another_one() {
    let project = Project::starter();
    project.run(&["run"]).expect_code(0);
    project.edit("scenarios/questions.yaml", "flow: tool-rag", "flow: tool-rga");
    let place = Workplace::of(&project.path("."), "");
    let job = action(&place, &[], &PULL_REQUEST);
    assert_eq!(job.step("exit code").code, Some(2), "{job:#?}");
    assert_eq!(job.step("actions/upload-artifact@v4").code, None, "{job:#?}");
    assert!(job.step("annotations and summary").stdout.contains("There is no run folder"), "{job:#?}");
}

#[test]
fn a_fork_gets_no_comment_a_refused_one_is_a_warning_and_a_missing_baseline_is_named() {
    let project = Project::starter();
    let place = Workplace::of(&project.path("."), "");
    let mut fork = PULL_REQUEST;
    fork[2].1 = "stranger/bikes";
    let job = action(&place, &[("comment", "true")], &fork);
    assert!(!job.failed && job.step("comment").code.is_none() && place.gh("asked").is_empty(), "{job:#?}");

    fs::write(place.path("gh/refuses"), "").expect("a file");
    let job = action(&place, &[("comment", "true")], &PULL_REQUEST);
    let said = &job.step("comment").stdout;
    assert!(!job.failed && said.contains("::warning title=ragcheck::The comment could not be written"), "{job:#?}");

    let job = action(&place, &[("baseline", "nowhere.json")], &[("github.event_name", "push")]);
    assert!(job.failed && job.step("exit code").code == Some(2), "{job:#?}");
    assert!(job.step("run").stderr.contains("nowhere.json"), "{job:#?}");
    let told = &job.step("annotations and summary").stdout;
    assert!(told.starts_with("::error title=ragcheck::There is no run folder"), "{told}");

    let job = action(&place, &[("arguments", "--only 'half")], &[("github.event_name", "push")]);
    assert_eq!(job.step("exit code").code, Some(2), "{job:#?}");
}

#[test]
fn the_workflow_of_a_new_project_passes_and_says_what_fails() {
    let project = Project::starter();
    let place = Workplace::of(&project.path("."), "");
    let job = yaml(STARTER)["jobs"]["replay"].clone();
    let passed = place.run(&job, &[("vars.RAGCHECK_GIT", "https://git.example/ragcheck")]);
    assert!(!passed.failed && passed.summary.contains("exit code 0"), "{passed:#?}");
    place.change("scenarios/questions.yaml", |text| text.replace("80 euros", "90 euros"));
    let failed = place.run(&job, &[]);
    assert!(failed.failed && failed.step("ragcheck run").code == Some(1), "{failed:#?}");
    let told = failed.steps.iter().find(|step| step.name.starts_with("ragcheck report")).expect("the step");
    assert!(told.stdout.starts_with("::error file=scenarios/questions.yaml,line="), "{}", told.stdout);
    assert!(failed.summary.contains("| **FAILS** | questions/deposit |"), "{}", failed.summary);
}

#[test]
fn the_job_for_gitlab_leaves_its_artifacts_and_fails_with_the_exit_code_of_the_run() {
    let project = Project::starter();
    project.run(&["run"]).expect_code(0);
    project.run(&["compare", "reports/latest", "--save", "baseline.json"]).expect_code(0);
    fs::remove_dir_all(project.path("reports")).expect("reports");
    let place = Workplace::of(&project.path("."), "");
    let job = &block("ragcheck:\n")["ragcheck"];
    let lines: Vec<&str> = job["script"].as_array().expect("a script").iter().filter_map(Value::as_str).collect();
    let folder = place.path("seed");
    let mut variables: BTreeMap<String, String> = BTreeMap::from([("CI".into(), "true".into())]);
    variables.insert("RAGCHECK_GIT".into(), "https://git.example/ragcheck".into());
    for (name, value) in job["variables"].as_object().expect("variables") {
        let value = value.as_str().expect("a text").replace("$CI_PROJECT_DIR", &folder.display().to_string());
        variables.insert(name.clone(), value);
    }
    let shell = ["bash", "-eo", "pipefail"];
    place.shell(&shell, &lines.join("\n"), &folder, &variables).expect_code(0);
    place.change("scenarios/questions.yaml", |text| text.replace("80 euros", "90 euros"));
    place.shell(&shell, &lines.join("\n"), &folder, &variables).expect_code(1);
    let artifacts = &job["artifacts"];
    assert_eq!(artifacts["when"], "always");
    for path in artifacts["paths"].as_array().expect("paths").iter().chain([&artifacts["reports"]["junit"]]) {
        assert!(folder.join(path.as_str().expect("a path")).exists(), "{path}");
    }
    let report = fs::read_to_string(folder.join("report.md")).expect("the report");
    assert!(report.contains("What changed against the base") && report.contains("**REGRESSED**"), "{report}");
}

/// The project with recordings that went stale, prices, and a simulator without its pauses.
fn stale(dollars: &str) -> (Workplace, Simulator) {
    let project = Project::starter();
    project.edit("simulator/behaviour.yaml", "pace: real", "pace: declared");
    let simulator = Simulator::start(&project, "simulator/behaviour.yaml");
    let text = project.read("ragcheck.yaml");
    let price = format!("prices: {{simulator/starter-model: {{input: {dollars}, output: {dollars}}}}}\n");
    project.write("ragcheck.yaml", &(text + &price));
    project.edit("scenarios/questions.yaml", "temperature: 0.2", "temperature: 0.3");
    (Workplace::of(&project.path("."), ""), simulator)
}

fn refresh(place: &Workplace) -> Job {
    let job = block("name: refresh recordings")["jobs"]["refresh"].clone();
    place.run(&job, &[("vars.RAGCHECK_GIT", "https://git.example/ragcheck"), ("github.token", "token")])
}

#[test]
fn a_refresh_proposes_what_it_recorded_with_its_cost_and_updates_the_proposal_in_the_second_week() {
    let (place, _simulator) = stale("1");
    let first = refresh(&place);
    assert!(!first.failed, "{first:#?}");
    let body = place.gh("body");
    assert!(body.contains("## What was recorded, and what that took") && body.contains("cost \\$"), "{body}");
    assert!(place.gh("asked").contains("pr create --head refresh-recordings"), "{}", place.gh("asked"));
    let files = place.git("origin.git", &["diff", "--stat", "main", "refresh-recordings"]);
    assert!(files.contains("recordings/questions/deposit/"), "{files}");

    // Nobody merged it: the branch and the pull request are there.
    let second = refresh(&place);
    assert!(!second.failed, "{second:#?}");
    assert!(place.gh("asked").contains("pr edit 12 --body-file"), "{}", place.gh("asked"));
    assert_eq!(place.gh("asked").matches("pr create").count(), 1);

    // Merged: nothing is stale any more, and there is no pull request.
    place.git("seed", &["pull", "--quiet", "origin", "refresh-recordings"]);
    place.git("seed", &["push", "--quiet", "origin", "HEAD:main"]);
    let asked = place.gh("asked");
    let third = refresh(&place);
    assert!(!third.failed && third.step("propose").stdout.contains("nothing was recorded"), "{third:#?}");
    assert_eq!(place.gh("asked"), asked);
}

#[test]
fn a_refresh_that_is_cut_short_by_its_cost_proposes_what_is_complete_and_says_3() {
    let (place, _simulator) = stale("70");
    let job = refresh(&place);
    assert!(job.failed && job.step("exit code").code == Some(3), "{job:#?}");
    let recorded = place.git("origin.git", &["diff", "--name-only", "main", "refresh-recordings"]);
    let lanes = recorded.lines().filter(|file| file.contains("tool-rag.")).count();
    assert!((1..20).contains(&lanes), "{recorded}");
    assert!(place.gh("body").contains("--max-cost"), "{}", place.gh("body"));
}

#[test]
fn a_refresh_without_its_provider_changes_nothing_and_says_3() {
    let (place, simulator) = stale("1");
    drop(simulator);
    let job = refresh(&place);
    assert!(job.failed && job.step("exit code").code == Some(3), "{job:#?}");
    assert!(job.step("propose").stdout.contains("nothing was recorded"), "{job:#?}");
    assert!(place.gh("asked").is_empty());
}

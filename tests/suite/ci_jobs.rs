//! The jobs that the documentation and the files offer, run step by step as they stand there: the composite action, the
//! workflow that `ragcheck init` writes, and from docs/how-to/ci.md the GitLab job and the job that refreshes recordings.

use super::project::Project;
use super::simulator::Simulator;
use super::workflow::{Job, Workplace, yaml};
use crate::program::program;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

const ACTION: &str = include_str!("../../action.yml");
const PAGE: &str = include_str!("../../docs/how-to/ci.md");
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

#[test]
fn only_a_job_that_pushes_keeps_the_token_of_its_checkout() {
    let files =
        ["../../.github/workflows/ci.yml", "../../.github/workflows/release.yml", "../../docs/examples/matrix.yml"];
    let texts =
        files.map(|file| fs::read_to_string(format!("{}/tests/suite/{file}", env!("CARGO_MANIFEST_DIR"))).expect(file));
    let written =
        texts.iter().map(|text| yaml(text)).chain([yaml(STARTER), block("name: ragcheck"), block("name: refresh")]);
    let (mut kept, mut without) = (0, 0);
    for workflow in written {
        for (name, job) in workflow["jobs"].as_object().expect("jobs") {
            let steps = job["steps"].as_array().expect("steps");
            let pushes = steps.iter().any(|step| step["run"].as_str().is_some_and(|run| run.contains("git push")));
            for step in steps.iter().filter(|step| step["uses"] == "actions/checkout@v4") {
                assert_eq!(step["with"]["persist-credentials"] == Value::Bool(false), !pushes, "{name}");
                *(if pushes { &mut kept } else { &mut without }) += 1;
            }
        }
    }
    assert_eq!((kept, without), (1, 13));
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
fn wherever_a_project_puts_its_reports_the_action_works_in_its_own_folder_and_refuses_another() {
    let project = Project::starter();
    project.edit("ragcheck.yaml", "reports: reports", "reports: out/runs of today");
    project.edit("scenarios/questions.yaml", "80 euros", "90 euros");
    let place = Workplace::of(&project.path("."), "bikes");
    let inputs = [("working-directory", "bikes"), ("comment", "true")];
    let job = action(&place, &inputs, &PULL_REQUEST);
    assert_eq!(job.step("exit code").code, Some(1), "{job:#?}");
    assert!(job.summary.starts_with("### ragcheck: exit code 1\n"), "{job:#?}");
    assert!(job.step("annotations and summary").stdout.starts_with("::error file=bikes/scenarios/"), "{job:#?}");
    assert!(place.gh("body").contains(&job.summary));
    let kept = kept(&place, &job.step("actions/upload-artifact@v4").stdout);
    assert!(kept.iter().any(|file| file.ends_with("/run.json")) && kept.contains(&"summary.md".to_owned()), "{kept:?}");
    assert!(!place.path("work/checked out/bikes/out").exists(), "nothing is written into the checkout");
    let job = action(&place, &[&inputs[..], &[("arguments", "--report-dir other")]].concat(), &PULL_REQUEST);
    assert_eq!(job.step("exit code").code, Some(2), "{job:#?}");
    assert!(job.step("run").stderr.contains("--report-dir is set by the action"), "{job:#?}");
}

/// The files of a folder to upload, by path from there; it is below the runner's temporary folder and holds regular files and
/// nothing else.
fn kept(place: &Workplace, folder: &str) -> Vec<String> {
    let folder = std::path::Path::new(folder);
    let temp = place.path("runner-temp");
    let name = folder.strip_prefix(&temp).expect("below the temporary folder").to_string_lossy().into_owned();
    assert!(name.starts_with("ragcheck-") && name.ends_with("/keep") && name.len() > 20, "{name}");
    let (mut open, mut files) = (vec![folder.to_owned()], Vec::new());
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            let kind = path.symlink_metadata().expect("it is there").file_type();
            assert!(kind.is_dir() || kind.is_file(), "{}", path.display());
            if kind.is_dir() {
                open.push(path);
            } else {
                files.push(path.strip_prefix(folder).expect("inside").to_string_lossy().into_owned());
            }
        }
    }
    files
}

/// The project of a pull request that wants to write and read elsewhere, and to lie about its run: links in the place of
/// everything that a run or a job writes, and a folder of reports with what an equal run would have left.
fn attack(place: &Workplace) -> String {
    let victim = place.path("home/victim");
    fs::create_dir_all(&victim).expect("a folder");
    fs::write(victim.join("key"), "the victim's key").expect("a file");
    place.pull_request(|project| {
        use std::os::unix::fs::symlink;
        let scenario = project.join("scenarios/questions.yaml");
        let text = fs::read_to_string(&scenario).expect("the scenario");
        fs::write(&scenario, text.replace("80 euros", "90 euros")).expect("written");
        fs::remove_file(project.join(".gitignore")).expect("it was there");
        // The name of a run follows from what it shows: the attacker runs it at home.
        let mut run = std::process::Command::new(program());
        super::project::Outcome::of(run.arg("run").current_dir(project)).expect_code(1);
        let folder = project.join("reports/latest").canonicalize().expect("the run");
        for forged in ["comparison.json", "summary.md", "exit-code.json", "grades.jsonl"] {
            fs::write(folder.join(forged), "{\"forged\": \"all is well\"}").expect("written");
        }
        for link in ["annotations.txt", "comment.md", "report.md", "stolen"] {
            symlink(victim.join("key"), folder.join(link)).expect("a link");
        }
        symlink(&victim, project.join("reports/more")).expect("a link");
        symlink(victim.join("key"), project.join("junit.xml")).expect("a link");
        symlink(victim.join("key"), project.join("folder")).expect("a link");
    })
}

#[test]
fn a_pull_request_with_links_and_forged_files_overwrites_nothing_uploads_nothing_else_and_decides_nothing() {
    let place = Workplace::of(&Project::starter().path("."), "");
    let base = attack(&place);
    let event =
        [&PULL_REQUEST[..], &[("github.ref", "refs/pull/12/merge"), ("github.event.pull_request.base.sha", &base)]];
    let event = event.concat();
    let starter = yaml(STARTER)["jobs"]["replay"].clone();
    let with_junit = [("comment", "true"), ("arguments", "--report junit=junit.xml")];
    let jobs: [&dyn Fn() -> Job; 3] =
        [&|| action(&place, &[("comment", "true")], &event), &|| action(&place, &with_junit, &event), &|| {
            place.run(&starter, &event)
        }];
    let jobs = jobs.map(|run| {
        let job = run();
        assert!(job.failed, "{job:#?}");
        let kept = kept(&place, &job.step("actions/upload-artifact@v4").stdout);
        assert!(!job.summary.contains("all is well") && !place.gh("body").contains("all is well"), "{job:#?}");
        assert!(!kept.iter().any(|file| file.ends_with("stolen") || file.ends_with("comparison.json")), "{kept:?}");
        job
    });
    assert_eq!(jobs[0].step("exit code").code, Some(1), "{:#?}", jobs[0]);
    assert!(jobs[0].summary.contains("| **FAILS** | questions/deposit |"), "{}", jobs[0].summary);
    assert!(jobs[2].summary.contains("| **FAILS** | questions/deposit |"), "{}", jobs[2].summary);
    // A link in the place of a file that was asked for is refused.
    assert_eq!(jobs[1].step("exit code").code, Some(5), "{:#?}", jobs[1]);
    assert_eq!(fs::read_to_string(place.path("home/victim/key")).expect("the file"), "the victim's key");
    assert_eq!(fs::read_dir(place.path("home/victim")).expect("the folder").count(), 1);
    assert_eq!(
        fs::read_dir(place.path("shared")).expect("the folder").count(),
        0,
        "nothing is left in a shared folder"
    );
}

#[test]
fn on_a_pull_request_the_verdict_names_the_recordings_that_are_not_those_of_the_base() {
    let starter = yaml(STARTER)["jobs"]["replay"].clone();
    for changed in [false, true] {
        let place = Workplace::of(&Project::starter().path("."), "bikes");
        let base = place.pull_request(|project| {
            let project = project.join("bikes");
            fs::write(project.join("notes.md"), "a note").expect("written");
            if changed {
                // Also by a link: what it leads to is not what the base had there.
                let lane = project.join("recordings/questions/deposit/tool-rag.strict.1.yaml");
                fs::rename(&lane, project.join("moved.yaml")).expect("moved");
                std::os::unix::fs::symlink("../../../moved.yaml", &lane).expect("a link");
                let lane = project.join("recordings/questions/helmet/tool-rag.short.1.yaml");
                let text = fs::read_to_string(&lane).expect("a recording");
                fs::write(&lane, text.replace("take: 1", "take: 2")).expect("written");
            }
        });
        let event =
            [&PULL_REQUEST[..], &[("github.ref", "refs/pull/12/merge"), ("github.event.pull_request.base.sha", &base)]];
        let event = event.concat();
        let short = &base[..12];
        let expected = if changed {
            format!(
                "2 recordings CHANGED since {short}: questions/helmet/tool-rag.short.1, questions/deposit/tool-rag.strict.1"
            )
        } else {
            format!("every recording is as it was at {short}")
        };
        let job = action(&place, &[("working-directory", "bikes")], &event);
        assert!(!job.failed && job.step("run").stdout.contains("required gates passed; "), "{job:#?}");
        let words = job.summary.replace('\\', "");
        assert!(expected.split([':', ',']).all(|part| words.contains(part)), "{expected}: {}", job.summary);

        // The same in the workflow of `init`, whose project is the whole repository, and by the commit of the event alone.
        let mut event = event;
        event.retain(|(name, _)| *name != "github.ref");
        let job = action(&place, &[("working-directory", "bikes")], &event);
        let main = format!("every recording is as it was at {short}");
        assert!(!job.failed && job.summary.replace('\\', "").contains(&main), "{job:#?}");
    }
    let place = Workplace::of(&Project::starter().path("."), "");
    let base = place.pull_request(|project| {
        let lane = project.join("recordings/questions/helmet/tool-rag.short.1.yaml");
        let text = fs::read_to_string(&lane).expect("a recording");
        fs::write(&lane, text.replace("take: 1", "take: 2")).expect("written");
    });
    let event =
        [&PULL_REQUEST[..], &[("github.ref", "refs/pull/12/merge"), ("github.event.pull_request.base.sha", &base)]];
    let job = place.run(&starter, &event.concat());
    let told = format!("1 recording CHANGED since {}: questions/helmet/tool-rag.short.1", &base[..12]);
    assert!(!job.failed && job.step("replay").stdout.contains(&told), "{told}: {job:#?}");
}

#[test]
fn a_bare_repository_that_a_pull_request_puts_beside_the_project_starts_nothing_and_is_an_error() {
    let place = Workplace::of(&Project::starter().path("."), "bikes");
    let started = place.path("started");
    let remote = format!("[remote \"origin\"]\n\turl = ext::sh -c \"touch% {}\"\n", started.display());
    let base = place.pull_request(|project| {
        let project = project.join("bikes");
        fs::create_dir_all(project.join("objects/a")).expect("a folder");
        fs::create_dir_all(project.join("refs/heads")).expect("a folder");
        for (file, text) in [
            ("objects/a/kept", ""),
            ("refs/heads/kept", ""),
            ("HEAD", "ref: refs/heads/other\n"),
            ("config", &format!("[core]\n\tbare = true\n{remote}[protocol \"ext\"]\n\tallow = always\n")),
        ] {
            fs::write(project.join(file), text).expect("written");
        }
    });
    let event = [("github.ref", "refs/pull/12/merge"), ("github.event.pull_request.base.sha", &base)];
    let job = action(&place, &[("working-directory", "bikes")], &[&PULL_REQUEST[..], &event].concat());
    assert!(!started.exists(), "{job:#?}");
    assert_eq!(job.step("exit code").code, Some(2), "{job:#?}");
    assert!(job.step("run").stderr.contains("cannot use bare repository"), "{job:#?}");
}

#[test]
fn a_base_that_git_does_not_have_is_an_error_and_no_pass() {
    let project = Project::starter();
    let asked = project.run(&["run", "--base-commit", "HEAD"]);
    asked.expect_code(2);
    assert!(
        asked.stderr.contains("--base-commit HEAD: git cannot tell what the recordings were there"),
        "{}",
        asked.stderr
    );
    project.run(&["run", "--base-commit", "HEAD", "--mode", "live"]).expect_code(2);
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
    assert!(failed.failed && failed.step("replay").code == Some(1), "{failed:#?}");
    let told = failed.step("report");
    assert!(kept(&place, &failed.step("actions/upload-artifact@v4").stdout).contains(&"index.html".to_owned()));
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

    // Nobody merged it: the branch and the pull request are there. So is one of a fork whose branch has the same name.
    fs::write(place.path("gh/fork"), "66\n").expect("a file");
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

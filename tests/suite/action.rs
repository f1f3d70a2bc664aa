//! The steps of the GitHub Action, run as its `action.yml` calls them: exit code, annotations at the scenario's line, summary.

use super::program::program;
use super::project::Outcome;
use std::fs;
use std::path::Path;
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn ragcheck(project: &Path, arguments: &[&str]) -> Outcome {
    Outcome::of(Command::new(program()).args(arguments).current_dir(project).env("NO_COLOR", "1"))
}

/// One step of the action in a project, with the files that GitHub gives it.
fn step(workspace: &Path, project: &Path, step: &str, settings: &[(&str, &str)]) -> Outcome {
    let mut command = Command::new("bash");
    command.arg(format!("{ROOT}/.ci/action")).arg(step).current_dir(project).env("RAGCHECK", program());
    command
        .env("GITHUB_WORKSPACE", workspace)
        .env("GITHUB_OUTPUT", workspace.join("output"))
        .env("RUNNER_TEMP", workspace);
    // As action.yml hands it on: the folder of the last run.
    if step != "run" {
        let outputs = fs::read_to_string(workspace.join("output")).unwrap_or_default();
        let folder = outputs.lines().filter_map(|line| line.strip_prefix("folder=")).next_back().unwrap_or_default();
        command.env("RAGCHECK_FOLDER", folder);
    }
    command.env("GITHUB_STEP_SUMMARY", workspace.join("summary")).envs(settings.iter().copied());
    Outcome::of(&mut command)
}

#[test]
fn every_step_of_the_action_is_one_that_the_script_has() {
    let action = fs::read_to_string(format!("{ROOT}/action.yml")).expect("action.yml");
    for step in ["get", "build", "run", "tell", "comment"] {
        assert!(action.contains(&format!("/.ci/action\" {step}'")), "{step}");
    }
    assert!(!action.contains("secrets."), "a pull request has none");
}

/// The tag of this version.
#[cfg(unix)]
const RELEASE: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// `get` on a runner of that kind, where a stand-in for curl serves the files of a folder, and one for gh verifies everything.
#[cfg(unix)]
fn get(runner: &Path, served: &Path, settings: &[(&str, &str)]) -> Outcome {
    let stand_in = "#!/bin/sh\nfor word; do case $last in --output) out=$word ;; esac; last=$word; done\n\
                    echo \"$last\" >>\"$SERVED/asked\"\ncp \"$SERVED/${last##*/}\" \"$out\"\n";
    fs::create_dir_all(runner.join("bin")).expect("a folder");
    for (name, text) in [("curl", stand_in), ("gh", "#!/bin/sh\necho \"$@\" >>\"$SERVED/verified\"\n")] {
        let file = runner.join("bin").join(name);
        fs::write(&file, text).expect("written");
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("allowed");
    }
    let paths = format!("{}:{}", runner.join("bin").display(), std::env::var("PATH").expect("PATH"));
    let mut command = Command::new("bash");
    command
        .arg(format!("{ROOT}/.ci/action"))
        .arg("get")
        .env_remove("RAGCHECK")
        .env("GH_TOKEN", "token")
        .env("PATH", paths);
    command.env("SERVED", served).env("RUNNER_TEMP", runner).env("GITHUB_OUTPUT", runner.join("output"));
    command.env("RUNNER_OS", "Linux").env("RUNNER_ARCH", "X64").env("GITHUB_SERVER_URL", "https://git.example");
    // The repository of the action is one in the folder.
    let repository = format!("url.{}.insteadOf", served.join("repository").display());
    command.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", repository);
    command.env("GIT_CONFIG_VALUE_0", "https://git.example/owner/ragcheck");
    command.env("RAGCHECK_ACTION_REPOSITORY", "owner/ragcheck").env("RAGCHECK_ACTION_REF", RELEASE);
    Outcome::of(command.envs(settings.iter().copied()))
}

/// Adds a commit to a repository, with annotated tags, and returns its name.
#[cfg(unix)]
fn commit_and_tag(repository: &Path, tags: &[&str]) -> String {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(repository).args(["-c", "user.name=t", "-c", "user.email=t@localhost"]).args(arguments);
        let outcome = Outcome::of(&mut command);
        outcome.expect_code(0);
        outcome.stdout.trim().to_owned()
    };
    fs::create_dir_all(repository).expect("a folder");
    git(&["init", "--quiet"]);
    git(&["commit", "--quiet", "--allow-empty", "--message", tags[0]]);
    for tag in tags {
        git(&["tag", "--annotate", "--message", tag, tag]);
    }
    git(&["rev-parse", "HEAD"])
}

#[cfg(unix)]
#[test]
fn the_action_downloads_the_release_that_it_is_and_refuses_an_archive_with_another_checksum() {
    let (served, runner) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let (served, runner) = (served.path(), runner.path());
    let release = |arguments: &[&str]| {
        let mut command = Command::new("bash");
        Outcome::of(command.arg(format!("{ROOT}/.ci/release")).args(arguments)).expect_code(0);
    };
    let folder = served.to_str().expect("UTF-8");
    let outputs = || fs::read_to_string(runner.join("output")).unwrap_or_default();
    let found = |answer: &str| assert!(outputs().ends_with(&format!("found={answer}\n")), "{}", outputs());

    // No release yet, a branch, a system without a binary: it is built.
    get(runner, served, &[]).expect_code(0);
    found("false");
    release(&["archive", program(), "x86_64-unknown-linux-musl", folder]);
    release(&["sums", folder]);
    for other in [("RAGCHECK_ACTION_REF", "main"), ("RUNNER_ARCH", "RISCV"), ("RAGCHECK_ACTION_REPOSITORY", "")] {
        get(runner, served, &[other]).expect_code(0);
        found("false");
    }
    let downloaded = get(runner, served, &[]);
    downloaded.expect_code(0);
    found("true");
    let version = env!("CARGO_PKG_VERSION");
    assert!(downloaded.stdout.contains(&format!("ragcheck {version}")), "{}", downloaded.stdout);
    let asked = fs::read_to_string(served.join("asked")).expect("what was asked");
    let address = format!("https://git.example/owner/ragcheck/releases/download/v{version}/SHA256SUMS");
    assert!(asked.contains(&address), "{asked}");
    // The later steps use it.
    let mut run = Command::new("bash");
    run.arg(format!("{ROOT}/.ci/action"))
        .arg("run")
        .current_dir(served)
        .env_remove("RAGCHECK")
        .env("RUNNER_TEMP", runner);
    let empty = Outcome::of(run.env("GITHUB_OUTPUT", runner.join("output")));
    assert!(outputs().contains("\nexit-code=2\n"), "{}{}", outputs(), empty.stderr);
    assert!(empty.stderr.contains("ragcheck init"), "{}", empty.stderr);

    // A commit, or a tag that moves, is a release if the release's tag leads to it; else its code may be any.
    let repository = served.join("repository");
    let released = commit_and_tag(&repository, &[RELEASE, "v0"]);
    let later = commit_and_tag(&repository, &["v0-next"]);
    for (pinned, answer) in
        [(&*released, "true"), ("v0", "true"), (&*later, "false"), ("v0-next", "false"), ("v9", "false")]
    {
        let got = get(runner, served, &[("RAGCHECK_ACTION_REF", pinned)]);
        got.expect_code(0);
        found(answer);
        let said = match answer {
            "true" => format!("ragcheck: {pinned} is release v{version}, commit {released}"),
            _ => format!(
                "`{pinned}` is not the commit of release v{version}, which is {released}; it is built from the sources"
            ),
        };
        assert!(got.stdout.contains(&said), "{}", got.stdout);
    }

    // The statement of the release workflow, and of no other; what cannot verify it takes a pin instead, or builds.
    let verified = fs::read_to_string(served.join("verified")).expect("what was verified");
    let by = "--repo owner/ragcheck --signer-workflow owner/ragcheck/.github/workflows/release.yml";
    assert!(verified.lines().all(|line| line.starts_with("attestation verify ") && line.ends_with(by)), "{verified}");
    let unverified = get(runner, served, &[("GH_TOKEN", "")]);
    unverified.expect_code(0);
    found("false");
    assert!(unverified.stdout.contains("or the input `sha256` instead; it is built from"), "{}", unverified.stdout);
    let sums = fs::read_to_string(served.join("SHA256SUMS")).expect("checksums");
    let sum = sums.lines().find(|line| line.ends_with("linux-musl.tar.gz")).expect("the archive's");
    get(runner, served, &[("GH_TOKEN", ""), ("RAGCHECK_SHA256", &sum[..64])]).expect_code(0);
    found("true");

    // A pin that does not fit, and a file that was changed after its checksum was written.
    get(runner, served, &[("RAGCHECK_SHA256", &"0".repeat(64))]).expect_code(2);
    let archive = served.join(format!("ragcheck-{version}-x86_64-unknown-linux-musl.tar.gz"));
    let mut bytes = fs::read(&archive).expect("the archive");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&archive, bytes).expect("written");
    let changed = get(runner, served, &[]);
    changed.expect_code(2);
    assert!(changed.stdout.contains("the checksum of ragcheck-"), "{}", changed.stdout);
    assert!(!runner.join("ragcheck-binary").exists(), "a refused binary is left");
}

#[test]
fn the_action_says_what_regressed_where_it_stands() {
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
    for command in [
        "```sh\nragcheck run scenarios/questions.yaml --only questions/deposit\n",
        "ragcheck show questions/deposit/tool-rag.s",
    ] {
        assert!(summary.contains(command), "the commands that reproduce and show it: {summary}");
    }
    let outputs = fs::read_to_string(workspace.join("output")).expect("the outputs");
    let codes: Vec<&str> = outputs.lines().filter(|line| line.starts_with("exit-code=")).collect();
    assert_eq!(codes, ["exit-code=0", "exit-code=1"], "{outputs}");
    assert_eq!(outputs.lines().filter(|line| line.starts_with("reports=/")).count(), 2, "{outputs}");
}

#[test]
fn where_github_reads_nothing_that_ragcheck_prints_is_a_command_but_its_own_annotations() {
    let folder = tempfile::tempdir().expect("a folder");
    let project = folder.path();
    ragcheck(project, &["init"]).expect_code(0);
    let scenario = project.join("scenarios/questions.yaml");
    let text = fs::read_to_string(&scenario).expect("the scenario");
    let hostile = "80 euros\\n::error::planted\\n  ::set-output name=a::b ##[error]planted";
    fs::write(&scenario, text.replace("contains: [80 euros]", &format!("contains: [\"{hostile}\"]"))).expect("written");
    assert!(fs::read_to_string(&scenario).expect("the scenario").contains("##[error]"), "the case is there");
    let on_github = |arguments: &[&str]| {
        let mut command = Command::new(program());
        Outcome::of(command.args(arguments).current_dir(project).env("NO_COLOR", "1").env("GITHUB_ACTIONS", "true"))
    };
    let commands = |text: &str| {
        text.split(['\n', '\r']).filter(|line| line.trim_start().starts_with("::") || line.contains("##[")).count()
    };
    on_github(&["run"]).expect_code(1);
    for typed in [
        &["run"][..],
        &["run", "--format", "json"],
        &["show", "questions/deposit/tool-rag.strict.1"],
        &["list"],
        &["report", "--to", "markdown"],
        &["report", "--to", "csv", "--rows", "violations"],
        &["report", "--to", "junit"],
        &["report", "--to", "json"],
        &["run", "a\n::error::planted ##[error]"],
        &["--a\n::error::planted ##[error]"],
    ] {
        let said = on_github(typed);
        assert!(!said.stdout.is_empty() || !said.stderr.is_empty(), "{typed:?}");
        // A mistake in a file has an annotation of ragcheck's own, in one line without the planted words' line.
        let own = said.stderr.lines().filter(|line| line.starts_with("::error file=")).count();
        assert_eq!(commands(&said.stdout) + commands(&said.stderr), own, "{typed:?}: {}{}", said.stdout, said.stderr);
        assert!(!said.stderr.contains("\n::error::planted"), "{typed:?}: {}", said.stderr);
        if typed.contains(&"json") {
            let mut plain = Command::new(program());
            let plain = Outcome::of(plain.args(typed).current_dir(project).env_remove("GITHUB_ACTIONS"));
            let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
            assert!(plain.stdout.contains("##["), "{}", plain.stdout);
            assert_eq!(read(&said.stdout), read(&plain.stdout), "{typed:?}");
        }
    }
    let told = on_github(&["report", "--to", "annotations"]).stdout;
    assert!(!told.is_empty() && told.lines().all(|line| line.starts_with("::error file=scenarios/")), "{told}");
    assert!(!told.contains("##[") && told.contains("planted"), "{told}");
}

/// A `gh` that keeps what it is asked, and knows the comment that was posted.
#[cfg(unix)]
const GH: &str = r#"#!/usr/bin/env bash
echo "$*" >>"$GH_ASKED"
case "$*" in
  *--paginate*) cat "$GH_KNOWN" 2>/dev/null || true ;;
  *"--method POST"*) echo 77 >"$GH_KNOWN" ;;
esac
"#;

#[cfg(unix)]
#[test]
fn the_action_keeps_one_comment_up_to_date() {
    use std::os::unix::fs::PermissionsExt;
    let workspace = tempfile::tempdir().expect("a folder");
    let workspace = workspace.path();
    ragcheck(workspace, &["init", "bikes"]).expect_code(0);
    let project = workspace.join("bikes");
    let programs = workspace.join("bin");
    fs::create_dir(&programs).expect("a folder");
    fs::write(programs.join("gh"), GH).expect("gh");
    fs::set_permissions(programs.join("gh"), fs::Permissions::from_mode(0o755)).expect("a program");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let (asked, known) = (workspace.join("asked"), workspace.join("known"));
    let settings = [
        ("PATH", path.as_str()),
        ("GH_ASKED", asked.to_str().expect("a path")),
        ("GH_KNOWN", known.to_str().expect("a path")),
        ("GITHUB_REPOSITORY", "owner/bikes"),
        ("RAGCHECK_PULL_REQUEST", "12"),
    ];
    for _ in 0..2 {
        for one in ["run", "tell", "comment"] {
            step(workspace, &project, one, &settings).expect_code(0);
        }
    }
    let asked = fs::read_to_string(&asked).expect("requests");
    let requests: Vec<&str> = asked.lines().collect();
    assert_eq!(requests.len(), 4, "{asked}");
    assert!(requests[1].contains("--method POST repos/owner/bikes/issues/12/comments"), "{asked}");
    assert!(requests[3].contains("--method PATCH repos/owner/bikes/issues/comments/77"), "{asked}");
    // Without a pull request nothing is asked.
    step(workspace, &project, "comment", &settings[..4]).expect_code(0);
    assert_eq!(fs::read_to_string(workspace.join("asked")).expect("requests"), asked.as_str());
}

/// JUnit as a common parser reads it, python's junitparser: `RAGCHECK_TABLES_PYTHON` names an interpreter that has it.
#[test]
#[ignore = "needs python3 with junitparser"]
fn needs_pandas_and_duckdb_junit_is_read_by_a_common_parser() {
    let python = std::env::var("RAGCHECK_TABLES_PYTHON").expect("RAGCHECK_TABLES_PYTHON names an interpreter");
    let folder = tempfile::tempdir().expect("a folder");
    ragcheck(folder.path(), &["init"]).expect_code(0);
    let scenario = folder.path().join("scenarios/questions.yaml");
    let text = fs::read_to_string(&scenario).expect("the scenario");
    fs::write(&scenario, text.replace("80 euros", "'<&]]> 90 euros'")).expect("the scenario");
    ragcheck(folder.path(), &["run", "--report", "junit=junit.xml"]).expect_code(1);
    let program = "
import sys
from junitparser import JUnitXml, Failure
report = JUnitXml.fromfile(sys.argv[1])
cases = [case for suite in report for case in suite]
failed = [case for case in cases if any(isinstance(one, Failure) for one in case.result)]
print(len(cases), len(failed), sorted(case.name for case in failed)[1])
assert report.tests == len(cases) and report.failures == len(failed), (report.tests, report.failures)
assert any('<&]]> 90 euros' in (one.message or '') for case in failed for one in case.result)
";
    let mut command = Command::new(python);
    let read = Outcome::of(command.args(["-c", program]).arg(folder.path().join("junit.xml")));
    read.expect_code(0);
    assert_eq!(read.stdout.trim(), "24 3 questions/deposit/tool-rag.strict.1", "20 trials, 3 criteria and a gate");
}

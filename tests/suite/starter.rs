//! `ragcheck init`: the project that it makes, and the newcomer's first page, followed word for word.

use super::project::Outcome;
use crate::program::program;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn ragcheck(folder: &Path, arguments: &[&str]) -> Outcome {
    let mut command = Command::new(program());
    Outcome::of(command.args(arguments).current_dir(folder).env("NO_COLOR", "1"))
}

/// Every file below a folder, by its path from there.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let path = path.strip_prefix(folder).expect("below it");
                found.push(path.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn the_table_of_the_starter_is_its_folder() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/starter");
    let sections = [
        ("project", "/// Path below `project/`, and text.\npub(super) static FILES"),
        (
            "demo",
            "/// The same of the files of `demo/`, which `ragcheck demo` has in place of the project's.\npub(super) static DEMO",
        ),
    ];
    let ignored = |name: &String| name.starts_with("reports/") || name.starts_with(".ragcheck/");
    let mut table = String::from(
        "//! The files of `project/` and `demo/`. Written by `UPDATE=1 cargo test --test suite starter`.\n\n\
         macro_rules! texts {\n    ($folder:literal: $($name:literal)*) => {\n        \
         &[$(($name, include_str!(concat!($folder, \"/\", $name)))),*]\n    };\n}\n",
    );
    for (folder, head) in sections {
        let _ = writeln!(table, "\n{head}: &[(&str, &str)] = texts! {{ \"{folder}\":");
        for name in files(&source.join(folder)).iter().filter(|name| !ignored(name)) {
            let _ = writeln!(table, "    \"{name}\"");
        }
        table += "};\n";
    }
    let path = source.join("table.rs");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &table).expect("the table");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(committed, table, "src/cli/starter/table.rs is out of date: run this test once with UPDATE=1");
}

#[test]
fn a_new_project_passes_its_check_and_its_run_and_nothing_is_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = ragcheck(folder.path(), &["init", "bikes"]);
    made.expect_code(0);
    assert!(made.stdout.contains("cd bikes"), "{}", made.stdout);
    let project = folder.path().join("bikes");
    let checked = ragcheck(&project, &["check"]);
    checked.expect_code(0);
    assert!(checked.stdout.starts_with("0 errors, 0 notes"), "{}", checked.stdout);
    let ran = ragcheck(&project, &["run"]);
    ran.expect_code(0);
    assert!(
        ran.stdout.contains("2 required gates passed"),
        "record the starter again (just record-starter): {}",
        ran.stdout
    );
    assert!(ran.stdout.contains("20 trials: 20 PASS"), "{}", ran.stdout);
    let git = fs::read_to_string(project.join(".gitignore")).expect("a .gitignore");
    assert!(git.lines().any(|line| line == "/reports/"));

    let before = fs::read(project.join("ragcheck.yaml")).expect("a file");
    let again = ragcheck(folder.path(), &["init", "bikes"]);
    again.expect_code(2);
    assert!(again.stderr.contains("no file is overwritten"), "{}", again.stderr);
    assert_eq!(fs::read(project.join("ragcheck.yaml")).expect("a file"), before);
}

#[test]
fn a_folder_that_was_half_written_is_completed() {
    let folder = tempfile::tempdir().expect("a folder");
    ragcheck(folder.path(), &["init"]).expect_code(0);
    for file in ["ragcheck.yaml", "scenarios/questions.yaml"] {
        fs::remove_file(folder.path().join(file)).expect("it was there");
    }
    let none = ragcheck(folder.path(), &["run"]);
    none.expect_code(2);
    let completed = ragcheck(folder.path(), &["init"]);
    completed.expect_code(0);
    assert!(completed.stdout.starts_with("wrote 2 files to this folder\n"), "{}", completed.stdout);
    ragcheck(folder.path(), &["run"]).expect_code(0);
    let empty = tempfile::tempdir().expect("a folder");
    let hint = ragcheck(empty.path(), &["run"]);
    hint.expect_code(2);
    assert!(hint.stderr.contains("`ragcheck init my-project`"), "{}", hint.stderr);
}

#[test]
fn a_folder_with_a_readme_of_its_own_keeps_it_git_ignores_what_is_not_kept_and_one_file_in_the_way_stops_everything() {
    let folder = tempfile::tempdir().expect("a folder");
    let project: PathBuf = folder.path().join("mine");
    fs::create_dir(&project).expect("a folder");
    fs::write(project.join("README.md"), "mine\n").expect("a file");
    fs::write(project.join(".gitignore"), "target\nreports/").expect("a file");
    fs::create_dir(project.join("scenarios")).expect("a folder");
    fs::write(project.join("scenarios/criteria.yaml"), "criteria: []\n").expect("a file");
    let refused = ragcheck(&project, &["init"]);
    refused.expect_code(2);
    assert!(refused.stderr.contains("this folder has scenarios/criteria.yaml already"), "{}", refused.stderr);
    assert_eq!(files(&project), [".gitignore", "README.md", "scenarios/criteria.yaml"]);

    fs::remove_file(project.join("scenarios/criteria.yaml")).expect("it was there");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let made = ragcheck(elsewhere.path(), &["init", project.to_str().expect("a path")]);
    made.expect_code(0);
    assert!(made.stdout.contains("kept your README.md"), "{}", made.stdout);
    assert!(made.stdout.contains("added `/.ragcheck/` to your .gitignore\n"), "{}", made.stdout);
    let ignored = fs::read_to_string(project.join(".gitignore")).expect("a file");
    assert_eq!(ignored, "target\nreports/\n/.ragcheck/\n", "what it had stays, and only missing lines follow");
    assert_eq!(fs::read_to_string(project.join("README.md")).expect("a file"), "mine\n");
    ragcheck(&project, &["check"]).expect_code(0);
}

#[test]
fn ragcheck_alone_leads_to_two_doors() {
    let folder = tempfile::tempdir().expect("a folder");
    let alone = ragcheck(folder.path(), &[]);
    alone.expect_code(2);
    for door in ["ragcheck demo", "ragcheck init --agent"] {
        assert!(alone.stderr.contains(door), "{}", alone.stderr);
    }
    assert!(alone.stderr.lines().count() <= 7, "{}", alone.stderr);
}

/// `ragcheck demo` with a temporary folder and a browser of the test: a script that writes down what it is given.
fn demo(temporary: &Path, arguments: &[&str]) -> Outcome {
    let browser = temporary.join("browser");
    fs::write(
        &browser,
        format!("#!/bin/sh\necho \"$1\" > '{}/opened.part'; mv '{0}/opened.part' '{0}/opened'\n", temporary.display()),
    )
    .expect("a script");
    #[cfg(unix)]
    fs::set_permissions(&browser, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("executable");
    let mut command = Command::new(program());
    let command = command.arg("demo").args(arguments).current_dir(temporary);
    Outcome::of(command.env("NO_COLOR", "1").env("TMPDIR", temporary).env("BROWSER", &browser))
}

#[cfg(unix)]
#[test]
fn the_demo_tells_a_flake_from_a_real_break_and_opens_its_report() {
    let temporary = tempfile::tempdir().expect("a folder");
    let shown = demo(temporary.path(), &[]);
    shown.expect_code(0);
    for line in [
        "questions/deposit: 2 of 3 passed, a flake",
        "questions/group-booking: 0 of 3 passed, a real break",
        "A group booking can have up to 20 bikes.",
        "2 other cases passed every time",
        "(opened in your browser)",
        "ragcheck show questions/group-booking/tool-rag.strict.1",
    ] {
        assert!(shown.stdout.contains(line), "{line}:\n{}", shown.stdout);
    }
    let report =
        shown.stdout.lines().find_map(|line| line.strip_prefix("report: ")?.strip_suffix(" (opened in your browser)"));
    let report = report.expect("the path of the report");
    assert!(Path::new(report).exists() && report.starts_with(&temporary.path().display().to_string()), "{report}");
    // The browser is not waited for.
    let opened = temporary.path().join("opened");
    for _ in 0..600 {
        if opened.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(fs::read_to_string(opened).expect("the browser was started").trim_end(), report);
    let listed = super::schemas::valid("demo", &demo(temporary.path(), &["--no-open", "--format", "json"]).stdout);
    let passed = |case: usize| listed["cases"][case]["passed"].as_u64();
    let mut counts: Vec<_> = (0..4).map(passed).collect();
    counts.sort_unstable();
    assert_eq!(counts, [Some(0), Some(2), Some(3), Some(3)], "{listed}");
    // What is printed to go on with works, and the project is sound.
    let project = shown.stdout.lines().find_map(|line| line.strip_prefix("project: ")).expect("the project's folder");
    ragcheck(Path::new(project), &["show", "questions/group-booking/tool-rag.strict.1"]).expect_code(0);
    ragcheck(Path::new(project), &["check"]).expect_code(0);
    ragcheck(Path::new(project), &["run"]).expect_code(1);
}

#[cfg(unix)]
#[test]
fn a_demo_opens_nothing_where_nobody_wants_it_and_every_demo_has_a_folder_of_its_own() {
    let temporary = tempfile::tempdir().expect("a folder");
    let (one, other) = (demo(temporary.path(), &["--no-open"]), demo(temporary.path(), &["--no-open"]));
    let project =
        |shown: &Outcome| shown.stdout.lines().find_map(|line| line.strip_prefix("project: ").map(str::to_owned));
    assert_ne!(project(&one).expect("a folder"), project(&other).expect("a folder"));
    assert!(!one.stdout.contains("opened") && !temporary.path().join("opened").exists(), "{}", one.stdout);
}

#[test]
fn the_workflow_of_a_project_in_a_subfolder_is_where_github_reads_it_and_runs_in_the_subfolder() {
    let repository = tempfile::tempdir().expect("a folder");
    fs::create_dir(repository.path().join(".git")).expect("a repository");
    let made = ragcheck(repository.path(), &["init", "services/bike-bot"]);
    made.expect_code(0);
    let project = repository.path().join("services/bike-bot");
    assert!(!project.join(".github").exists() && project.join("ragcheck.yaml").exists());
    let workflow = repository.path().join(".github/workflows/ragcheck-services-bike-bot.yml");
    let workflow = fs::read_to_string(workflow).expect("the workflow at the root");
    assert!(workflow.contains("defaults:\n  run:\n    working-directory: 'services/bike-bot'\njobs:\n"), "{workflow}");
    assert!(made.stdout.contains("ragcheck-services-bike-bot.yml"), "{}", made.stdout);
    // From inside of the subfolder likewise; a second project has a workflow of its own.
    let inside = repository.path().join("other");
    fs::create_dir(&inside).expect("a folder");
    ragcheck(&inside, &["init"]).expect_code(0);
    assert!(
        repository.path().join(".github/workflows/ragcheck-other.yml").exists() && !inside.join(".github").exists()
    );
    // The root of a repository has its own.
    ragcheck(repository.path(), &["init"]).expect_code(0);
    let own = fs::read_to_string(repository.path().join(".github/workflows/ragcheck.yml")).expect("the workflow");
    assert!(!own.contains("working-directory"), "{own}");
}

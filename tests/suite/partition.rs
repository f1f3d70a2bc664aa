//! `run --partition` and `merge`: partitions of a run, put together, are the run that one machine would have made.

use super::project::{Outcome, Project};
use super::simulator::Simulator;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Scenarios with several variants, repetitions, faults and turns.
const SOME: [&str; 4] =
    ["scenarios/knowledge.yaml", "scenarios/context.yaml", "scenarios/react.yaml", "scenarios/managed-rag.yaml"];

/// Runs a partition, and returns its folder, relative to the project.
pub(super) fn partition(project: &Project, arguments: &[&str], number: u32, of: u32) -> String {
    ran(project, &[arguments, &["--partition", &format!("hash:{number}/{of}")]].concat())
}

/// Runs what is not a usage error, and returns the run's folder, relative to the project.
pub(super) fn ran(project: &Project, arguments: &[&str]) -> String {
    let file = project.path("folder");
    let outcome = project.run(&[arguments, &[&format!("--folder-file={}", file.display())]].concat());
    assert!(outcome.code == 0 || outcome.code == 4, "{}\n{}", outcome.stdout, outcome.stderr);
    let folder = fs::read_to_string(&file).expect("the folder's path");
    let name = Path::new(folder.trim()).file_name().expect("a name").to_string_lossy().into_owned();
    format!("reports/{name}")
}

pub(super) fn merge(project: &Project, runs: &[String], into: &str) -> Outcome {
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    project.run(&[&["merge"], &runs[..], &["--report-dir", into]].concat())
}

/// The only run folder below a folder of runs.
pub(super) fn only(project: &Project, reports: &str) -> String {
    let entries = fs::read_dir(project.path(reports)).expect("a folder").map(|entry| entry.expect("an entry").path());
    let runs: Vec<_> = entries.filter(|path| path.is_dir() && !path.is_symlink()).collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    format!("{reports}/{}", runs[0].file_name().expect("a name").to_string_lossy())
}

#[test]
fn eight_partitions_merged_are_one_run_byte_for_byte_in_any_order_and_however_often() {
    let project = Project::shipped();
    let arguments = [&["run"], &SOME[..]].concat();
    let whole = ran(&project, &arguments);
    let latest = fs::read_link(project.path("reports/latest")).expect("the newest run");
    let mut runs: Vec<String> = (1..=8).map(|number| partition(&project, &arguments, number, 8)).collect();
    let expected = project.report(&whole);
    let trials = |folder: &str| project.read(&format!("{folder}/traces.jsonl")).lines().count();
    assert_eq!(runs.iter().map(|run| trials(run)).sum::<usize>(), trials(&whole));
    assert!(runs.iter().all(|run| trials(run) > 0 && trials(run) < trials(&whole)));
    // A partition is a part: it says so, and is not the newest run.
    let part = project.read(&format!("{}/run.json", runs[0]));
    assert!(part.contains("selected by --partition hash:1/8"), "{part}");
    assert_eq!(fs::read_link(project.path("reports/latest")).expect("the newest run"), latest);

    let merged = merge(&project, &runs, "merged");
    assert!(merged.code == 0 || merged.code == 4, "{}\n{}", merged.stdout, merged.stderr);
    let once = only(&project, "merged");
    same(&expected, &project.report(&once));
    // A point of the history says how many trials ran at once, and when.
    let environment = |folder: &str| -> serde_json::Value {
        serde_json::from_str(&project.read(&format!("{folder}/environment.json"))).expect("JSON")
    };
    let (of_all, of_merged) = (environment(&whole), environment(&once));
    let newest = runs.iter().map(|run| environment(run)["written_at"].to_string()).max();
    assert_eq!((&of_merged["jobs"], &of_merged["point"]), (&(8 * 4).into(), &of_all["point"]));
    assert_eq!(Some(of_merged["written_at"].to_string()), newest);
    // In another order, with one twice, and with what was merged already.
    runs.reverse();
    runs.extend([runs[3].clone(), once.clone()]);
    merge(&project, &runs, "merged").expect_code(merged.code);
    assert_eq!(only(&project, "merged"), once);
    same(&expected, &project.report(&once));
    // A run that may have been paid for is not removed as a replay would be.
    fs::remove_file(project.path(&format!("{}/environment.json", runs[0]))).expect("removed");
    merge(&project, &runs, "merged").expect_code(merged.code);
    assert_eq!((&environment(&once)["mode"], &of_merged["mode"]), (&"record".into(), &"replay".into()));
    merge(&project, &[whole], "alone").expect_code(merged.code);
    same(&expected, &project.report(&only(&project, "alone")));
}

pub(super) fn same(expected: &[(String, Vec<u8>)], found: &[(String, Vec<u8>)]) {
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(expected), names(found));
    for ((name, one), (_, other)) in expected.iter().zip(found) {
        assert!(one == other, "{name} differs");
    }
}

#[test]
fn a_trial_stays_in_its_partition_when_cases_are_added_and_the_others_are_not_run() {
    let project = Project::starter();
    let trials = |folder: &str| -> Vec<String> {
        let text = project.read(&format!("{folder}/traces.jsonl"));
        let traces = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a trace"));
        traces.map(|trace| trace["trial"].as_str().expect("a trial").to_owned()).collect()
    };
    let all = trials(&partition(&project, &["run"], 2, 3));
    let fewer = trials(&partition(&project, &["run", "--exclude", "helmet"], 2, 3));
    let expected: Vec<String> = all.iter().filter(|trial| !trial.contains("/helmet/")).cloned().collect();
    assert_eq!(fewer, expected);
    assert!(!fewer.is_empty());
}

#[test]
fn what_is_missing_is_named_with_its_partition_and_nothing_is_written() {
    let project = Project::starter();
    let runs: Vec<String> = [1, 2, 4].map(|number| partition(&project, &["run"], number, 4)).into();
    let refused = merge(&project, &runs, "merged");
    refused.expect_code(3);
    for words in ["of 20 trials missing", "questions/", "missing of partition hash:3/4"] {
        assert!(refused.stderr.contains(words), "{words}: {}", refused.stderr);
    }
    assert!(!project.path("merged").exists(), "something was written");
}

#[test]
fn partitions_of_two_plans_or_of_other_documents_are_refused_with_the_difference() {
    for (file, before, now, words) in [
        ("scenarios/questions.yaml", "80 euros", "90 euros", ["80 euros", "90 euros"]),
        ("knowledge/bikes/hire.md", "80 euros", "90 euros", ["knowledge.bikes", " then, "]),
    ] {
        let project = Project::starter();
        let one = partition(&project, &["run"], 1, 2);
        project.edit(file, before, now);
        let outcome = project.run(&["run", "--partition", "hash:2/2", "--format", "json"]);
        assert!([0, 1, 3].contains(&outcome.code), "{}", outcome.stderr);
        let refused = merge(&project, &[one, project.newest()], "merged");
        refused.expect_code(2);
        assert!(refused.stderr.contains("no partitions of one run"), "{}", refused.stderr);
        assert!(words.iter().all(|word| refused.stderr.contains(word)), "{}", refused.stderr);
        assert!(!project.path("merged").exists(), "something was written");
    }
}

#[test]
fn edited_traces_are_no_evidence_and_a_folder_that_is_no_run_is_named() {
    let project = Project::starter();
    let runs: Vec<String> = [1, 2].map(|number| partition(&project, &["run"], number, 2)).into();
    let file = format!("{}/traces.jsonl", runs[1]);
    project.edit(&file, "80 euros", "99 euros");
    let refused = merge(&project, &runs, "merged");
    refused.expect_code(2);
    assert!(refused.stderr.contains("traces.jsonl: edited after the run"), "{}", refused.stderr);
    project.edit(&file, "99 euros", "80 euros");
    let file = project.path(&format!("{}/passages.jsonl", runs[1]));
    let whole = std::fs::read_to_string(&file).expect("passages");
    let shortened = whole.lines().skip(2).map(|line| format!("{line}\n")).collect::<String>();
    for (number, text) in [(whole.lines().count(), None), (2, Some(&shortened)), (0, Some(&whole))] {
        match text {
            Some(text) => std::fs::write(&file, text).expect("written"),
            None => std::fs::remove_file(&file).expect("removed"),
        }
        let merged = merge(&project, &runs, "merged");
        let words = format!("passages.jsonl: lacks {number} passages that its traces name, so nothing was written");
        assert_eq!(merged.stderr.contains(&words), number > 0, "{}", merged.stderr);
        let scored = project.run(&["score", &runs[1]]);
        let is_cut_off = number > 0 && file.exists();
        assert_eq!((scored.code == 2, scored.stderr.contains(&words)), (is_cut_off, is_cut_off), "{}", scored.stderr);
        assert_eq!((merged.code == 2, project.path("merged").exists()), (number > 0, number == 0), "{}", merged.stderr);
    }
    let none = merge(&project, &["scenarios".to_owned()], "merged");
    none.expect_code(2);
    assert!(none.stderr.contains("scenarios is not a run folder"), "{}", none.stderr);
}

#[test]
fn a_partition_that_cannot_be_is_a_usage_error() {
    let project = Project::starter();
    for (arguments, words) in [
        (&["--partition", "3/8"][..], "hash:3/8"),
        (&["--partition", "hash:9/8"], "from 1 to the number of partitions"),
        (&["--partition", "hash:1/2", "--until-decided", "--mode", "live"], "--until-decided"),
        (&["--partition", "hash:1/2", "--failed"], "--failed"),
    ] {
        let outcome = project.run(&[&["run"], arguments].concat());
        outcome.expect_code(2);
        assert!(outcome.stderr.contains(words), "{words}: {}", outcome.stderr);
    }
}

#[test]
fn an_empty_partition_is_no_failure_and_writes_nothing() {
    let project = Project::starter();
    let outcome = project.run(&["run", "--only", "deposit", "--variant", "short", "--partition", "hash:1/9999"]);
    outcome.expect_code(0);
    assert!(outcome.stderr.contains("no trial is in partition hash:1/9999"), "{}", outcome.stderr);
    assert!(!project.path("reports").exists());
}

#[cfg(unix)]
#[test]
fn the_matrix_of_the_documentation_runs_its_partitions_side_by_side_and_merges_them() {
    let project = Project::starter();
    let whole = ran(&project, &["run"]);
    let workflow = super::workflow::yaml(include_str!("../../docs/examples/matrix.yml"));
    let step = |job: &str, name: &str| {
        let steps = workflow["jobs"][job]["steps"].as_array().expect("steps");
        let step = steps.iter().find(|step| step["name"] == name).unwrap_or_else(|| panic!("{job}: {name}"));
        step["run"].as_str().expect("a script").to_owned()
    };
    let program = Path::new(crate::program::program()).parent().expect("a folder");
    let paths = format!("{}:{}", program.display(), std::env::var("PATH").expect("PATH"));
    let runners = tempfile::tempdir().expect("a folder");
    let job = |script: &str, runner: &Path, partition: &str| {
        let mut bash = std::process::Command::new("bash");
        bash.args(["-e", "-c", script]).current_dir(project.path(".")).stdout(Stdio::null());
        bash.env("PATH", &paths).env("RUNNER_TEMP", runner).env("PARTITION", partition).spawn().expect("bash")
    };
    let numbers = workflow["jobs"]["partition"]["strategy"]["matrix"]["partition"].as_array().expect("partitions");
    assert_eq!(numbers.len(), 8);
    let jobs: Vec<_> = (1..=8)
        .map(|number| {
            let runner = runners.path().join(number.to_string());
            fs::create_dir(&runner).expect("a folder");
            job(&step("partition", "run"), &runner, &number.to_string())
        })
        .collect();
    for mut job in jobs {
        assert!(job.wait().expect("it ends").success());
    }
    // As artifacts are downloaded: each in a folder of its name. An empty partition has none.
    for number in 1..=8 {
        let runs = runners.path().join(format!("{number}/runs"));
        for entry in fs::read_dir(&runs).into_iter().flatten().map(|entry| entry.expect("an entry")) {
            if entry.path().is_dir() {
                let to = runners.path().join(format!("merge/partitions/partition-{number}")).join(entry.file_name());
                super::project::copy(&entry.path(), &to);
            }
        }
    }
    let merge = runners.path().join("merge");
    assert!(job(&step("merge", "merge"), &merge, "").wait().expect("it ends").success());
    let name = Path::new(&whole).file_name().expect("a name");
    let merged = merge.join("reports").join(name);
    for (file, bytes) in project.report(&whole) {
        assert!(fs::read(merged.join(&file)).expect("a file") == bytes, "{file} differs");
    }
}

/// The starter project, recorded from a simulator that draws by the trial.
pub(super) fn recorded_by_trial(pace: &str) -> (Project, Simulator) {
    let project = Project::starter();
    project.edit("simulator/behaviour.yaml", "pace: real", &format!("pace: {pace}"));
    let simulator = Simulator::start(&project, "simulator/behaviour.yaml");
    (project, simulator)
}

#[test]
fn partitions_that_were_killed_while_recording_are_resumed_and_merged_into_what_a_replay_gives() {
    killed_while_recording(1, 4, &[2, 3]);
}

#[test]
#[ignore = "records and replays a thousand trials: .ci/slow"]
fn a_thousand_trials_on_eight_partitions_two_of_them_killed_and_resumed_are_one_run() {
    killed_while_recording(100, 8, &[2, 5]);
}

/// Records ten cases on partitions, some of which are killed and resumed; merged, they are what one replay gives.
fn killed_while_recording(repeat: u32, of: u32, killed: &[u32]) {
    // A few trials have to last until the kill.
    let (project, _simulator) = recorded_by_trial(if repeat > 1 { "declared" } else { "real" });
    fs::remove_dir_all(project.path("recordings")).expect("recordings");
    let repeat = format!("--repeat={repeat}");
    let arguments = ["run", "--variant", "strict", &repeat, "--mode", "record", "--jobs", "1"];
    let mut runs = Vec::new();
    for number in 1..=of {
        if !killed.contains(&number) {
            runs.push(partition(&project, &arguments, number, of));
            continue;
        }
        let own = format!("hash:{number}/{of}");
        let mut command = project.command(&[&arguments[..], &["--partition", &own]].concat());
        let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
        let limit = Instant::now() + Duration::from_mins(2);
        while finished(&project) == 0 {
            assert!(run.try_wait().expect("its state").is_none(), "it ended before it was killed");
            assert!(Instant::now() < limit, "nothing was finished");
            std::thread::sleep(Duration::from_millis(5));
        }
        run.kill().expect("it runs");
        run.wait().expect("it ends");
        let before = finished(&project);
        assert!(before > 0, "what was finished is lost");
        // Alone: everything else as it was typed.
        let resumed = project.run(&["run", "--resume", "--report-dir", "reports"]);
        assert!(resumed.code == 0 || resumed.code == 4, "{}\n{}", resumed.stdout, resumed.stderr);
        assert_eq!(finished(&project), 0, "the journal of a finished run is left");
        runs.push(project.newest());
    }
    let merged = merge(&project, &runs, "merged");
    assert!(merged.code == 0 || merged.code == 4, "{}\n{}", merged.stdout, merged.stderr);
    let replay = ran(&project, &["run", "--variant", "strict", &repeat]);
    same(&project.report(&replay), &project.report(&only(&project, "merged")));
}

/// Finished trials in the journals of unfinished runs.
fn finished(project: &Project) -> usize {
    let Ok(folders) = fs::read_dir(project.path("reports/.unfinished")) else { return 0 };
    let files = folders.map(|run| run.expect("a run").path().join("traces.jsonl"));
    files.map(|file| fs::read_to_string(file).unwrap_or_default().matches('\n').count()).sum()
}

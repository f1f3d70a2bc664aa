//! Runs that are killed, told to end, or meet a full disk: what was finished is there, and nothing counts twice.

use super::project::{Outcome, Project};
use super::simulator::{Simulator, recording};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Numbers that are the same in every run of the test.
struct Dice(u64);

impl Dice {
    /// From 0 up to `below`.
    fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

fn run_of(mode: &str) -> Vec<&str> {
    vec!["run", "scenarios/external.yaml", "--mode", mode, "--repeat=2", "--jobs", "2"]
}

/// The folders of unfinished runs.
fn unfinished(project: &Project) -> Vec<PathBuf> {
    let Ok(folders) = std::fs::read_dir(project.path("reports/.unfinished")) else { return Vec::new() };
    folders.map(|run| run.expect("a run").path()).filter(|run| run.join("begun.json").is_file()).collect()
}

/// The journals of unfinished runs, as their traces by trial; a last line that was cut off is none.
fn journals(project: &Project) -> BTreeMap<String, String> {
    let mut lines = BTreeMap::new();
    for folder in unfinished(project) {
        let text = std::fs::read_to_string(folder.join("traces.jsonl")).unwrap_or_default();
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let trace: Value = serde_json::from_str(line).expect("a whole line is a trace");
            let trial = trace["trial"].as_str().expect("a trial").to_owned();
            assert!(lines.insert(trial, line.to_owned()).is_none(), "a trial was finished twice");
        }
    }
    lines
}

/// The columns of the newest `trials.csv` and `criteria.csv` that depend neither on the clock nor on what the simulator was
/// asked before: it fails a first attempt once, also when the run that asked was killed before the answer came.
fn figures(project: &Project) -> Vec<Vec<String>> {
    let timed = [
        "slowest_turn_ms", "took_ms", "evidence", "sentence", "observed", "observed_rate", "observed_seconds", "lower",
        "upper", "interval_lower", "interval_upper", "recorded_on", "retries_transport",
    ];
    let mut rows = Vec::new();
    for file in ["trials.csv", "criteria.csv"] {
        let text = project.read(&format!("{}/{file}", project.newest()));
        let mut table = csv::Reader::from_reader(text.as_bytes());
        let heads: Vec<String> = table.headers().expect("heads").iter().map(str::to_owned).collect();
        for row in table.records() {
            let row = row.expect("a row");
            let metric = row.get(2).unwrap_or_default().to_owned();
            let cells = heads.iter().zip(row.iter()).filter(|(head, _)| !timed.contains(&head.as_str()));
            // What is measured in seconds differs between any two live runs.
            if !metric.contains("time") && !metric.contains("latency") {
                rows.push(cells.map(|(_, cell)| cell.to_owned()).collect());
            }
        }
    }
    rows
}

/// A trace without what is noted in it after the trial ran: the verdicts on its draws, and the digest over all.
fn ran(line: &str) -> Value {
    let mut trace: Value = serde_json::from_str(line).expect("a trace");
    let evidence = trace["evidence"].as_object_mut().expect("evidence");
    // A later draw is judged after it was noted as finished.
    evidence.retain(|name, _| !matches!(name.as_str(), "noted_verdict" | "run_again"));
    trace.as_object_mut().expect("a trace").remove("digest");
    trace
}

/// Kills a run at so many moments, resumes it each time, and holds its result against one that was left alone.
fn killed(mode: &str, kills: usize, seed: u64) {
    let (left_alone, simulator) = recording();
    let began = Instant::now();
    let whole = left_alone.run(&run_of(mode));
    let (took, expected) = (began.elapsed().as_millis() as u64, figures(&left_alone));
    drop(simulator);

    let (mut done, mut dice, mut interrupted) = (0, Dice(seed), 0);
    while done < kills {
        let (project, _simulator) = recording();
        let points = std::fs::read_to_string(project.path("history.jsonl")).unwrap_or_default().lines().count();
        let mut kept: BTreeMap<String, String> = BTreeMap::new();
        loop {
            let resumes = !unfinished(&project).is_empty();
            let mut arguments = run_of(mode);
            arguments.extend(resumes.then_some("--resume"));
            let mut command = project.command(&arguments);
            let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
            let moment = Instant::now() + Duration::from_millis(dice.roll(took + 200));
            let ended = loop {
                if run.try_wait().expect("its state").is_some() {
                    break true;
                }
                if done < kills && Instant::now() >= moment {
                    run.kill().expect("it runs");
                    break false;
                }
                pause();
            };
            let output = run.wait_with_output().expect("it ends");
            let told = String::from_utf8_lossy(&output.stderr);
            if ended {
                assert_eq!(output.status.code(), Some(whole.code), "{told}");
                break;
            }
            done += 1;
            if unfinished(&project).is_empty() && project.path("reports/latest").exists() {
                // The journal goes last: what was killed had finished its work.
                break;
            }
            let now = journals(&project);
            for (trial, line) in &kept {
                assert!(now.get(trial) == Some(line), "{trial} was finished and is lost");
            }
            interrupted += usize::from(!now.is_empty());
            kept.extend(now);
        }
        let text = project.read(&format!("{}/traces.jsonl", project.newest()));
        let mut trials: Vec<String> = Vec::new();
        for line in text.lines() {
            let trace: Value = serde_json::from_str(line).expect("a trace");
            let trial = trace["trial"].as_str().expect("a trial").to_owned();
            assert!(kept.get(&trial).is_none_or(|before| ran(before) == ran(line)), "{trial} was run again");
            trials.push(trial);
        }
        let planned = project.latest("plan.json");
        let planned: Vec<&str> = planned["trials"]
            .as_array()
            .expect("trials")
            .iter()
            .map(|trial| trial["id"].as_str().expect("id"))
            .collect();
        assert_eq!(trials, planned, "each trial once, in the order of the plan");
        assert_eq!(figures(&project), expected, "the report is another than that of a run that was left alone");
        let after = std::fs::read_to_string(project.path("history.jsonl")).unwrap_or_default();
        assert_eq!(after.lines().count(), points + 1, "one point in the history");
        assert!(journals(&project).is_empty(), "a finished run is not unfinished");
        let target = std::fs::canonicalize(project.path("reports/latest")).expect("the latest run");
        assert_eq!(target, std::fs::canonicalize(project.path(&project.newest())).expect("the run"));
    }
    assert!(interrupted > 0, "none of {kills} kills met a run with something finished");
}

#[expect(clippy::disallowed_methods, reason = "the run is another process, and is to be met in the middle")]
fn pause() {
    std::thread::sleep(Duration::from_millis(2));
}

#[test]
fn a_live_run_that_is_killed_five_times_loses_nothing_and_counts_nothing_twice() {
    killed("live", 5, 0x9e37_79b9_7f4a_7c15);
}

#[test]
fn a_recording_that_is_killed_five_times_loses_nothing_and_counts_nothing_twice() {
    killed("record", 5, 0x2545_f491_4f6c_dd1d);
}

#[test]
#[ignore = "200 kills: .ci/slow"]
fn runs_that_are_killed_two_hundred_times_lose_nothing_and_count_nothing_twice() {
    for seed in 1..=10 {
        killed("live", 10, seed * 0x9e37_79b9);
        killed("record", 10, seed * 0x2545_f491);
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the run is another process, and is to be met in the middle")]
fn a_run_that_is_told_to_end_says_how_to_go_on_and_goes_on_with_what_was_typed() {
    for (signal, words) in [("-TERM", "(SIGTERM)"), ("-HUP", "(SIGHUP)")] {
        if signal == "-HUP" && hang_ups_are_ignored() {
            continue;
        }
        let project = Project::shipped();
        // At its real pace a trial takes seconds.
        let simulator = Simulator::start(&project, "fixtures/simulator/fernlight.yaml");
        let mut command =
            project.command(&["run", "scenarios/external.yaml", "--mode", "live", "--repeat=2", "--jobs=1"]);
        let run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        let deadline = Instant::now() + Duration::from_mins(1);
        while journals(&project).is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        Outcome::of(Command::new("kill").args([signal, &run.id().to_string()])).expect_code(0);
        let output = run.wait_with_output().expect("it ends");
        let (told, printed) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
        assert_eq!(output.status.code(), Some(3), "{told}");
        assert!(told.contains(words) && told.contains("`ragcheck run --resume`"), "{told}");
        assert!(printed.contains("PART ("), "{printed}");
        let (part, kept) = (project.newest(), journals(&project));
        let row = project.read(&format!("{part}/criteria.csv"));
        assert!(row.lines().skip(1).all(|row| row.contains("not run")), "{row}");
        assert!(project.read(&format!("{part}/index.html")).contains("PART ("), "the page does not say so");
        assert!(project.latest("run.json")["part"].as_str().is_some_and(|part| part.contains("not run")));
        assert!(!kept.is_empty() && !project.path("reports/latest").exists());

        drop(simulator);
        let address = project.read("ragcheck.yaml");
        let before = address.lines().find_map(|line| line.split("base_url: http://").nth(1)).expect("an address");
        let before = before.split('/').next().expect("a host").to_owned();
        project.write("ragcheck.yaml", &address.replace(&before, "127.0.0.1:8091"));
        project.edit("fixtures/simulator/fernlight.yaml", "pace: real", "pace: declared");
        let _simulator = Simulator::start(&project, "fixtures/simulator/fernlight.yaml");
        let resumed = project.run(&["run", "--resume"]);
        assert!(
            resumed.stderr.contains("resuming `ragcheck run scenarios/external.yaml --mode live"),
            "{}",
            resumed.stderr
        );
        assert!(
            resumed.stdout.contains(" trials: ") && !resumed.stdout.contains("PART ("),
            "{}{}",
            resumed.stdout,
            resumed.stderr
        );
        let text = project.read("reports/latest/traces.jsonl");
        assert!(kept.values().all(|line| text.contains(line)), "what was finished was run again");
        assert!(project.traces().iter().all(|trace| trace["end"] == "completed"));
    }
}

/// Whether the tests run below `nohup`, whose children ignore SIGHUP, as ragcheck does then.
fn hang_ups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[test]
fn a_second_recorder_is_refused_with_the_name_of_the_first_and_replays_go_on() {
    let project = Project::shipped();
    let _simulator = Simulator::start(&project, "fixtures/simulator/fernlight.yaml");
    let record = ["run", "scenarios/external.yaml", "--mode", "record", "--repeat=1"];
    let mut first = project.command(&record).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    let deadline = Instant::now() + Duration::from_mins(1);
    while std::fs::read_to_string(project.path(".ragcheck/lock")).unwrap_or_default().is_empty() {
        assert!(Instant::now() < deadline, "the first never began");
        pause();
    }
    let second = project.run(&record);
    second.expect_code(2);
    let holder = format!("`ragcheck run --mode record` (process {}, since 20", first.id());
    assert!(second.stderr.contains(&holder), "{}", second.stderr);
    let replay = project.run(&["run", "scenarios/knowledge.yaml", "--only", "descaling"]);
    assert!(replay.stdout.contains("3 trials: 3 PASS"), "{}{}", replay.stdout, replay.stderr);
    first.kill().expect("it is still running");
    first.wait().expect("it ends");
    // The lock of a killed process is nobody's.
    let third =
        project.run(&["run", "scenarios/external.yaml", "--mode", "record", "--only", "feed-in-tariff", "--repeat=1"]);
    assert!(third.stdout.contains("1 trial: 1 PASS"), "{}{}", third.stdout, third.stderr);
}

#[test]
fn every_command_that_writes_recordings_is_refused_while_another_does_and_changes_nothing() {
    let project = Project::shipped();
    project.run(&["run", "scenarios/knowledge.yaml", "--only", "descaling"]);
    let run = project.newest();
    project.write("foreign.yaml", "interactions: []\nversion: 1\n");
    project.write(".ragcheck/lock", "`ragcheck run --mode record` (process 7, since 2030-01-01T00:00:00Z)\n");
    let held = std::fs::File::options().write(true).open(project.path(".ragcheck/lock")).expect("the lock's file");
    held.lock().expect("free");
    let recorded = || {
        let mut files = BTreeMap::new();
        let mut folders = vec![project.path("fixtures/cassettes")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.insert(path.clone(), std::fs::read(path).expect("a file"));
                }
            }
        }
        files
    };
    let missed = recorded().into_keys().find(|file| file.components().any(|part| part.as_os_str() == "descaling"));
    std::fs::remove_file(missed.expect("a lane of the case")).expect("removed");
    let before = recorded();
    for command in [
        &["cassette", "rekey"][..],
        &["cassette", "import", "foreign.yaml", "--format", "vcr"],
        &["cassette", "refresh", "scenarios/knowledge.yaml", "--missed", "--yes"],
        &["judge", &run, "--mode", "record"],
        &["run", "scenarios/knowledge.yaml", "--mode", "record"],
    ] {
        let refused = project.run(command);
        let holder =
            "`ragcheck run --mode record` (process 7, since 2030-01-01T00:00:00Z) is recording in this project";
        refused.expect_code(2);
        assert!(refused.stderr.contains(holder), "{command:?}: {}", refused.stderr);
    }
    assert_eq!(recorded(), before);
    drop(held);
    project.run(&["cassette", "rekey"]).expect_code(0);
}

#[test]
fn equal_replays_at_once_all_succeed_and_leave_one_folder_and_nothing_temporary() {
    let project = Project::shipped();
    let replay = ["run", "scenarios/knowledge.yaml", "--only", "descaling"];
    let alone = project.run(&replay).code;
    for _ in 0..3 {
        let children: Vec<_> = (0..8)
            .map(|_| project.command(&replay).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs"))
            .collect();
        for child in children {
            let output = child.wait_with_output().expect("it ends");
            assert_eq!(output.status.code(), Some(alone), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
    let names = |folder: &str| -> Vec<String> {
        let entries = std::fs::read_dir(project.path(folder)).expect("a folder");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    };
    let reports = names("reports");
    let runs = reports.iter().filter(|name| !["index.html", "history.html"].contains(&name.as_str()));
    assert_eq!(runs.count(), 1, "{reports:?}");
    assert!(names(".ragcheck/tmp").is_empty(), "{:?}", names(".ragcheck/tmp"));
}

#[cfg(unix)]
#[test]
fn a_run_whose_folders_become_symbolic_links_while_it_writes_changes_nothing_outside() {
    let project = Project::shipped();
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("plan.json"), "canary").expect("written");
    let replay = ["run", "scenarios/knowledge.yaml", "--only", "descaling"];
    project.run(&replay);
    for folder in ["reports", ".ragcheck/tmp", ".ragcheck"] {
        let (inside, aside) = (project.path(folder), project.path("aside"));
        let (ended, exchanged) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) || exchanged.load(Ordering::Relaxed) == 0 {
                    std::fs::rename(&inside, &aside).expect("put aside");
                    // The run may make the folder in between.
                    while std::os::unix::fs::symlink(outside.path(), &inside).is_err() {
                        let _ = std::fs::remove_dir_all(&inside);
                    }
                    std::fs::remove_file(&inside).expect("the link");
                    while std::fs::rename(&aside, &inside).is_err() {
                        let _ = std::fs::remove_dir_all(&inside);
                    }
                    exchanged.fetch_add(1, Ordering::Relaxed);
                }
            });
            for _ in 0..4 {
                let run = project.run(&replay);
                assert!(!run.stderr.contains("panicked"), "{folder}: {}", run.stderr);
            }
            ended.store(true, Ordering::Relaxed);
        });
        let left: Vec<_> = std::fs::read_dir(outside.path()).expect("there").collect();
        assert_eq!(left.len(), 1, "{folder}: {left:?}");
        assert_eq!(std::fs::read_to_string(outside.path().join("plan.json")).expect("there"), "canary", "{folder}");
    }
}

#[test]
fn what_a_killed_run_left_is_cleared_by_the_next_and_old_replays_go() {
    let project = Project::shipped();
    project.write(".ragcheck/tmp/.ragcheck-left/plan.json", "half");
    project.write("ragcheck.yaml", &("keep_replays: 2\n".to_owned() + &project.read("ragcheck.yaml")));
    let replay = |case: &str| {
        let replayed = project.run(&["run", "scenarios/knowledge.yaml", "--only", case]);
        assert!(replayed.stdout.contains("3 trials: 3 PASS"), "{}{}", replayed.stdout, replayed.stderr);
        project.newest()
    };
    let first = replay("descaling");
    assert!(!project.path(".ragcheck/tmp/.ragcheck-left").exists());
    project.write(&format!("{first}/comparison.json"), "{}");
    let (second, third, fourth) = (replay("firewall"), replay("valve-error"), replay("plan-price"));
    let there = |run: &str| project.path(run).exists();
    assert!(there(&first), "it was compared");
    assert!(!there(&second) && there(&third) && there(&fourth), "two replays are kept");
}

#[test]
fn what_failed_is_run_again_and_merged_with_the_rest_unless_the_plan_changed() {
    let project = Project::shipped();
    let suite = ["run", "scenarios/knowledge.yaml"];
    let text = project.read("scenarios/knowledge.yaml");
    // A lane that is missing is an ERROR of its trial.
    let lane = project.path("fixtures/cassettes/knowledge/descaling/tool-rag.base.2.yaml");
    let aside = project.path("aside.yaml");
    std::fs::rename(&lane, &aside).expect("moved");
    project.run(&suite).expect_code(3);
    let broken = project.traces();
    std::fs::rename(&aside, &lane).expect("moved");
    let failed: Vec<&str> = suite.into_iter().chain(["--failed"]).collect();
    let merged = project.run(&failed);
    let traces = project.traces();
    assert_eq!(traces.len(), broken.len(), "{}{}", merged.stdout, merged.stderr);
    assert!(traces.iter().all(|trace| trace["end"] == "completed"), "{}", merged.stdout);
    assert!(merged.stderr.contains("taken over from"), "{}", merged.stderr);
    assert!(!merged.stdout.contains("PART ("), "{}", merged.stdout);
    let alone = project.newest();
    assert!(!std::fs::canonicalize(project.path("reports/latest")).expect("latest").ends_with(&alone[8..]));
    project.run(&suite);
    assert_eq!(project.newest(), alone, "merged, it is the run that it would have been");

    std::fs::rename(&lane, &aside).expect("moved");
    project.run(&suite).expect_code(3);
    std::fs::rename(&aside, &lane).expect("moved");
    let changed = text.replacen("ask: ", "ask: Well, ", 1);
    assert_ne!(changed, text);
    project.write("scenarios/knowledge.yaml", &changed);
    let part = project.run(&failed);
    assert!(part.stderr.contains("this run is a part and not merged"), "{}", part.stderr);
    assert!(part.stderr.contains("Well, "), "the difference is shown: {}", part.stderr);
    assert!(part.stdout.contains("PART (") && part.stdout.contains("selected by --failed"), "{}", part.stdout);
}

/// Fails on a disk of its own, so that the other tests keep theirs.
#[test]
#[ignore = "needs_namespace: mounts a small disk"]
fn needs_namespace_a_full_disk_ends_the_run_and_what_was_finished_is_kept() {
    // Room in KiB: for some traces, or for no recording.
    for (mode, folder, room) in
        [("live", "reports", 220), ("record", "reports", 220), ("record", "fixtures/cassettes", 8)]
    {
        let (project, _simulator) = recording();
        let saved = project.path("saved");
        std::fs::create_dir_all(project.path(folder)).expect("a folder");
        std::fs::create_dir_all(&saved).expect("a folder");
        let command = project.command(&[]);
        let program = command.get_program().to_string_lossy().into_owned();
        let run = format!("{program} run scenarios/external.yaml --mode {mode} --repeat=2 --jobs 2");
        let script = format!(
            "set -e; cp -r {folder}/. saved; mount -t tmpfs -o size=64m tmpfs {folder}; cp -r saved/. {folder}; \
             used=$(du -sk {folder} | cut -f1); mount -o remount,size=$((used + {room}))k {folder}; \
             code=0; {run} || code=$?; echo \"first $code\"; ls {folder}/.unfinished 2>/dev/null || true; \
             mount -o remount,size=64m {folder}; code=0; {run} --resume || code=$?; echo \"second $code\""
        );
        let mut shell = Command::new("unshare");
        shell.args(["-rm", "sh", "-c", &script]).current_dir(project.path("")).env("NO_COLOR", "1");
        let outcome = Outcome::of(&mut shell);
        assert!(outcome.stdout.contains("first 3"), "{mode} {folder}: {}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.stderr.contains("free some space"), "{mode} {folder}: {}", outcome.stderr);
        let second = outcome.stdout.split("first 3").nth(1).expect("a second run");
        assert!(
            second.contains("second ") && !second.contains("PART ("),
            "{mode} {folder}: {second}{}",
            outcome.stderr
        );
        assert!(
            !second.contains("second 2") && !second.contains("second 3"),
            "{mode} {folder}: {second}{}",
            outcome.stderr
        );
    }
}

#[test]
#[ignore = "needs_namespace: mounts a small disk"]
fn needs_namespace_a_disk_that_fills_under_the_list_of_runs_leaves_a_whole_run_and_the_list_is_named() {
    let project = Project::starter();
    let command = project.command(&[]);
    let run = format!("{} run --report-dir full", command.get_program().to_string_lossy());
    let script = format!(
        "set -e; mkdir full; mount -t tmpfs -o size=64m tmpfs full; {run} >/dev/null; rm full/index.html full/history.html; \
         used=$(du -sk full | cut -f1); rm -r full/*; mount -o remount,size=$((used + 8))k full; \
         code=0; {run} || code=$?; echo \"ended $code\"; ls full/latest/; mount -o remount,size=64m full; {run}"
    );
    let mut shell = Command::new("unshare");
    shell.args(["-rm", "sh", "-c", &script]).current_dir(project.path("")).env("NO_COLOR", "1");
    let outcome = Outcome::of(&mut shell);
    outcome.expect_code(0);
    assert!(outcome.stdout.contains("ended 5") && outcome.stdout.contains("run.json"), "{}", outcome.stdout);
    let told = &outcome.stderr;
    assert!(told.contains(" is whole; beside it, full/history.html: ") && told.contains("free some space"), "{told}");
    assert!(!told.contains("the run cannot be written"), "{told}");
}

//! Partitions and merges that are killed at random moments: what stands in a folder of runs is whole, what was finished is not run
//! again, and in the end all of them together are the run that nobody killed.

use super::hold::timeless;
use super::partition::{merge, only, partition, ran, recorded_by_trial, same};
use super::project::Project;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const OF: u32 = 3;
/// What is run of the starter project: ten trials.
const RUN: [&str; 3] = ["run", "--variant", "strict"];

#[test]
fn kills_of_partitioned_runs_and_merges_lose_nothing() {
    struck(12, 0x9e37_79b9_7f4a_7c15);
}

#[test]
#[ignore = "two hundred kills: .ci/slow"]
fn two_hundred_kills_of_partitioned_runs_and_merges_lose_nothing() {
    struck(200, 0x2545_f491_4f6c_dd1d);
}

fn struck(number: u32, seed: u64) {
    let expected = Expected::new();
    let mut kills = Kills { random: seed, most: expected.most, struck: 0 };
    for round in 0_u32.. {
        match round % 3 {
            0 => paid(&mut kills, "live", &expected),
            1 => paid(&mut kills, "record", &expected),
            _ => replayed(&mut kills, &expected),
        }
        if kills.struck >= number {
            return;
        }
        // On a busy machine many come too late.
        assert!(round < 3 * number, "{} of {number} were struck while they ran", kills.struck);
    }
}

/// Random moments, the same in every run of the test.
struct Kills {
    random: u64,
    /// The last moment.
    most: Duration,
    /// How many met a process that was still running.
    struck: u32,
}

impl Kills {
    fn draw(&mut self, below: u32) -> u32 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as u32 % below
    }

    /// Starts a command and kills it at a random moment.
    fn strike(&mut self, project: &Project, words: &[&str]) {
        let moment = self.most.mul_f64(f64::from(self.draw(1000)) / 1000.0);
        let mut command: Command = project.command(words);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
        std::thread::sleep(moment);
        self.struck += u32::from(child.try_wait().expect("its state").is_none());
        child.kill().expect("a kill");
        child.wait().expect("it ends");
        whole_or_none(project);
    }
}

/// What nobody killed, and the moments at which kills are worth it.
struct Expected {
    /// Recorded, with its replayed partitions.
    project: Project,
    _simulator: super::simulator::Simulator,
    partitions: Vec<String>,
    /// The files of each partition's run, and of the merged one.
    files: Vec<Vec<(String, Vec<u8>)>>,
    merged: Vec<(String, Vec<u8>)>,
    /// Name of the merged run's folder.
    folder: String,
    /// What happened in each trial, and its verdict.
    traces: Vec<Value>,
    verdicts: BTreeMap<String, String>,
    code: i32,
    most: Duration,
}

impl Expected {
    fn new() -> Self {
        let (project, simulator) = recorded_by_trial("declared");
        fs::remove_dir_all(project.path("recordings")).expect("recordings");
        let begun = Instant::now();
        ran(&project, &[&RUN[..], &["--mode", "record", "--jobs", "1"]].concat());
        let most = begun.elapsed() * 2 / OF;
        let whole = project.report(&ran(&project, &RUN));
        let partitions: Vec<String> = (1..=OF).map(|number| partition(&project, &RUN, number, OF)).collect();
        let files = partitions.iter().map(|run| project.report(run)).collect();
        let code = merge(&project, &partitions, "merged").code;
        let folder = only(&project, "merged");
        let merged = project.report(&folder);
        same(&whole, &merged);
        let (traces, verdicts) = (lasting(&project, &folder), verdicts(&project, &folder));
        Self { project, _simulator: simulator, partitions, files, merged, folder, traces, verdicts, code, most }
    }
}

/// What happened in each trial, without times, and without what says when and for which plan.
fn lasting(project: &Project, run: &str) -> Vec<Value> {
    let trace = |line: &str| {
        let mut trace = timeless(serde_json::from_str(line).expect("a trace"));
        trace.as_object_mut().expect("a trace").retain(|name, _| name != "plan" && name != "evidence");
        trace
    };
    let mut traces: Vec<Value> = project.read(&format!("{run}/traces.jsonl")).lines().map(trace).collect();
    traces.sort_by_key(|trace| trace["trial"].as_str().map(str::to_owned));
    traces
}

fn verdicts(project: &Project, run: &str) -> BTreeMap<String, String> {
    let run: Value = serde_json::from_str(&project.read(&format!("{run}/run.json"))).expect("JSON");
    let word = |trial: &Value, name: &str| trial[name].as_str().expect(name).to_owned();
    run["trials"].as_array().expect("trials").iter().map(|one| (word(one, "id"), word(one, "verdict"))).collect()
}

/// The run folders below a folder of reports. Each must be whole.
fn folders(project: &Project, reports: &str) -> Vec<String> {
    let entries = fs::read_dir(project.path(reports)).into_iter().flatten();
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let runs = names.filter(|name| name.len() == 12 && name.bytes().all(|byte| byte.is_ascii_hexdigit()));
    runs.map(|name| format!("{reports}/{name}")).collect()
}

fn whole_or_none(project: &Project) {
    for run in ["reports", "merged"].into_iter().flat_map(|reports| folders(project, reports)) {
        let traces = project.read(&format!("{run}/traces.jsonl"));
        assert_eq!(verdicts(project, &run).len(), traces.lines().count(), "{run}");
        for file in ["index.html", "criteria.csv", "environment.json"] {
            assert!(project.path(&format!("{run}/{file}")).exists(), "{run} has no {file}");
        }
    }
}

/// The folder of a partition's run, if it is finished.
fn run_of(project: &Project, number: u32) -> Option<String> {
    folders(project, "reports").into_iter().find(|run| {
        let plan: Value = serde_json::from_str(&project.read(&format!("{run}/plan.json"))).expect("a plan");
        plan["partition"]["number"] == number
    })
}

/// The events of the finished trials in the journals of a partition.
fn journal(project: &Project, number: u32) -> BTreeMap<String, Value> {
    let mut finished = BTreeMap::new();
    for folder in fs::read_dir(project.path("reports/.unfinished")).into_iter().flatten() {
        let folder = folder.expect("an entry").path();
        let plan: Value =
            serde_json::from_slice(&fs::read(folder.join("plan.json")).unwrap_or_default()).unwrap_or_default();
        if plan["partition"]["number"] == number && folder.join("begun.json").exists() {
            let text = fs::read_to_string(folder.join("traces.jsonl")).unwrap_or_default();
            let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            let traces = whole.map(|line| serde_json::from_str::<Value>(line).expect("a whole line is a trace"));
            finished.extend(
                traces.map(|trace| (trace["trial"].as_str().expect("a trial").to_owned(), trace["events"].clone())),
            );
        }
    }
    finished
}

/// Partitions of a run that costs money, on one disk: killed, some of them twice, resumed or run again, and merged.
fn paid(kills: &mut Kills, mode: &str, expected: &Expected) {
    let project = Project::starter();
    project.write("ragcheck.yaml", &expected.project.read("ragcheck.yaml"));
    fs::remove_dir_all(project.path("recordings")).expect("recordings");
    let owns: Vec<String> = (1..=OF).map(|number| format!("hash:{number}/{OF}")).collect();
    let typed = |own: &usize| [&RUN[..], &["--mode", mode, "--jobs", "1", "--partition", &owns[*own]]].concat();
    let mut order: Vec<usize> = (0..owns.len()).collect();
    for own in &order {
        if kills.draw(3) > 0 {
            kills.strike(&project, &typed(own));
        }
    }
    let killed: Vec<_> = (1..=OF).map(|number| journal(&project, number)).collect();
    order.rotate_left(kills.draw(OF) as usize);
    let (mut runs, mut again) = (Vec::new(), false);
    for own in &order {
        let number = *own as u32 + 1;
        let resume = [&typed(own)[..], &["--resume"]].concat();
        let mut finished = journal(&project, number);
        assert_eq!(finished, killed[*own], "the end of another partition took what was finished");
        if !finished.is_empty() && kills.draw(2) == 0 {
            kills.strike(&project, &resume);
            let now = journal(&project, number);
            let gone = run_of(&project, number).is_none()
                && finished.iter().any(|(trial, events)| now.get(trial) != Some(events));
            assert!(!gone, "finished trials are lost or were run again");
            finished.extend(now);
        }
        if run_of(&project, number).is_none() {
            let resumes = kills.draw(4) > 0;
            again |= !resumes;
            let mut outcome = project.run(&if resumes { resume } else { typed(own) });
            if resumes && outcome.code == 2 {
                // It was killed before its journal began; that of another partition is not taken for its own.
                let told = ["no unfinished", "partition.number"].iter().any(|words| outcome.stderr.contains(words));
                assert!(finished.is_empty() && told, "{}", outcome.stderr);
                outcome = project.run(&typed(own));
            } else if !resumes {
                finished.clear();
            }
            assert!(outcome.code == 0 || outcome.code == 4, "{}\n{}", outcome.stdout, outcome.stderr);
        }
        let run = run_of(&project, number).expect("a run");
        let traces = project.read(&format!("{run}/traces.jsonl"));
        for trace in traces.lines().map(|line| serde_json::from_str::<Value>(line).expect("a trace")) {
            let before = finished.get(trace["trial"].as_str().expect("a trial"));
            assert!(before.is_none_or(|events| *events == trace["events"]), "{} was run again", trace["trial"]);
        }
        runs.push(run);
    }
    let words: Vec<&str> =
        ["merge", "--report-dir", "merged"].into_iter().chain(runs.iter().map(String::as_str)).collect();
    kills.strike(&project, &words);
    project.run(&words).expect_code(expected.code);
    let merged = only(&project, "merged");
    assert_eq!(lasting(&project, &merged), expected.traces);
    assert_eq!(verdicts(&project, &merged), expected.verdicts);
    // A lane that is recorded again keeps its first draw, and the run notes the second.
    if mode == "record" && !again {
        same(&project.report(&ran(&project, &RUN)), &project.report(&merged));
    }
    // The journal of a partition that was killed at its very end may be there: it ends at once.
    while !fs::read_dir(project.path("reports/.unfinished"))
        .into_iter()
        .flatten()
        .all(|folder| !folder.expect("an entry").path().join("begun.json").exists())
    {
        let outcome = project.run(&["run", "--resume"]);
        assert!(outcome.code == 0 || outcome.code == 4, "{}\n{}", outcome.stdout, outcome.stderr);
    }
    nothing_temporary(&project);
}

/// A replayed partition and a merge, each killed in turn, beside an equal folder or without one.
fn replayed(kills: &mut Kills, expected: &Expected) {
    let Expected { project, partitions, files, merged, folder, code, .. } = expected;
    let place = kills.draw(OF) as usize;
    let own = format!("hash:{}/{OF}", place + 1);
    let part = [&RUN[..], &["--partition", &own]].concat();
    let runs: Vec<&str> = partitions.iter().map(String::as_str).collect();
    let merging = [&["merge"], &runs[..], &["--report-dir", "merged"]].concat();
    for (words, target, files) in [(part, &partitions[place], &files[place]), (merging, folder, merged)] {
        if kills.draw(2) == 0 {
            fs::remove_dir_all(project.path(target)).expect("a run");
        }
        kills.strike(project, &words);
        if project.path(target).exists() {
            same(files, &project.report(target));
        }
        let outcome = project.run(&words);
        assert!(outcome.code == if target == folder { *code } else { 0 }, "{}\n{}", outcome.stdout, outcome.stderr);
        same(files, &project.report(target));
    }
    nothing_temporary(project);
}

fn nothing_temporary(project: &Project) {
    let left = fs::read_dir(project.path(".ragcheck/tmp")).map(Iterator::count).unwrap_or_default();
    assert_eq!(left, 0, "temporary files are left");
}

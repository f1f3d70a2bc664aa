//! The history: one point for each live run or new recording, none for a replay, merged without doubles.

use super::project::Project;
use super::until_decided::prepared;

const RUN: [&str; 4] = ["run", "sequential.yaml", "--criteria", "few.yaml"];

fn run(project: &Project, more: &[&str]) {
    let arguments: Vec<&str> = RUN.iter().chain(more).copied().collect();
    let outcome = project.run(&arguments);
    assert!(outcome.stdout.contains("trials: "), "{}{}", outcome.stdout, outcome.stderr);
}

fn points(project: &Project, file: &str) -> Vec<serde_json::Value> {
    project.read(file).lines().map(|line| serde_json::from_str(line).expect("a point")).collect()
}

#[test]
fn live_runs_and_recordings_add_a_point_each_and_replays_add_none() {
    let (project, simulator) = prepared();
    run(&project, &["--mode", "record", "--repeat", "2", "--label", "release=1.4.0"]);
    run(&project, &["--mode", "live", "--repeat", "2", "--jobs", "2"]);
    assert!(project.read("reports/history.html").contains(">report</a>"), "a run that adds a point renews the page");
    run(&project, &["--mode", "live", "--repeat", "2", "--no-history"]);
    drop(simulator);
    run(&project, &["--repeat", "2"]);
    let kept = points(&project, "history.jsonl");
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert_eq!((&kept[0]["labels"]["release"], &kept[0]["conditions"]["mode"]), (&"1.4.0".into(), &"REPLAYED".into()));
    assert_eq!((&kept[1]["conditions"]["mode"], &kept[1]["conditions"]["concurrency"]), (&"LIVE".into(), &2.into()));
    assert_eq!(kept[0]["rates"].as_array().map(Vec::len), Some(3), "two criteria and the scenario's gate: {}", kept[0]);
    let again = project.run(&["history", "add"]);
    again.expect_code(0);
    assert!(again.stdout.contains("is already in"), "the newest run replays the recording: {}", again.stdout);

    let shown = project.run(&["history"]);
    shown.expect_code(0);
    for words in ["RECORDED, model any", "LIVE, model any", "release=1.4.0", "FIRST ≥ 60 %", "turn p95"] {
        assert!(shown.stdout.contains(words), "{words} is missing:\n{}", shown.stdout);
    }
    let page = project.read("reports/history.html");
    assert!(page.contains("<svg class=\"trend\"") && page.contains("release=1.4.0"), "{page}");

    // Each point leads to the report of its run, as long as that is there.
    let links = |page: &str| page.matches(">report</a>").count();
    assert_eq!(links(&page), 2, "{page}");
    let folders = std::fs::read_dir(project.path("reports")).expect("reports").map(|entry| entry.expect("one").path());
    let live = |folder: &std::path::PathBuf| {
        std::fs::read_to_string(folder.join("environment.json")).is_ok_and(|text| text.contains("\"mode\": \"live\""))
    };
    let live: Vec<_> = folders.filter(|folder| !folder.ends_with("latest") && live(folder)).collect();
    assert_eq!(live.len(), 2, "the second was not added");
    for folder in &live {
        std::fs::remove_dir_all(folder).expect("deleted");
    }
    project.run(&["history"]).expect_code(0);
    assert_eq!(links(&project.read("reports/history.html")), 1);
    assert!(project.read("reports/index.html").contains("href=\"./history.html\""));
    // A comparison leads to it, and it leads to the list of runs, as reports do, whose bytes depend on nothing beside them.
    let newest = project.newest();
    project.run(&["score", &newest]);
    project.run(&["compare", &newest, &newest]).expect_code(0);
    assert!(project.read(&format!("{newest}/comparison.html")).contains("href=\"../history.html\""));
    assert!(project.read(&format!("{newest}/index.html")).contains("href=\"../index.html\""));
    assert!(project.read("reports/history.html").contains("href=\"./index.html\""));

    project.write("cached.jsonl", &project.read("history.jsonl").replace(&format!("{}", kept[1]["id"]), "\"other\""));
    let series = super::schemas::printed(&project, &["history"]);
    assert!(series[0]["lines"].as_array().is_some_and(|lines| !lines.is_empty()), "{series}");
    let merged = project.run(&["history", "merge", "cached.jsonl", "history.jsonl"]);
    assert!(merged.stdout.contains("3 points, 1 of them new"), "{}{}", merged.stdout, merged.stderr);
    assert_eq!(points(&project, "history.jsonl").len(), 3);
}

#[test]
fn a_broken_history_changes_no_verdict_and_says_what_to_do() {
    let (project, _simulator) = prepared();
    project.write("history.jsonl", "not a point\n");
    let arguments: Vec<&str> = RUN.into_iter().chain(["--mode", "live", "--repeat", "6"]).collect();
    let outcome = project.run(&arguments);
    outcome.expect_code(0);
    assert!(outcome.stderr.contains("line 1") && outcome.stderr.contains("history add"), "{}", outcome.stderr);
    assert_eq!(project.read("history.jsonl"), "not a point\n");
    project.run(&["history"]).expect_code(2);
}

#[test]
fn a_point_that_was_edited_or_lost_its_digest_is_marked_on_the_page_and_an_impossible_one_is_refused() {
    let (project, _simulator) = prepared();
    let arguments: Vec<&str> = RUN.into_iter().chain(["--mode", "live", "--repeat", "6"]).collect();
    project.run(&arguments).expect_code(0);
    let point = project.read("history.jsonl");
    let marked = |line: &str, mark: &str, told: &str| {
        project.write("history.jsonl", line);
        let outcome = project.run(&["history"]);
        outcome.expect_code(0);
        assert!(outcome.stderr.contains(told), "{}", outcome.stderr);
        assert!(project.read("reports/history.html").contains(mark), "{mark}");
    };
    let seal = point.find(",\"digest\"").expect("a digest");
    marked(&point.replacen("\"trials\":", "\"trials\":1", 1), ", EDITED BY HAND", "EDITED BY HAND, in line 1");
    marked(&format!("{}}}\n", &point[..seal]), ", without a digest: an edit would not show", "has no digest in line 1");
    let n = point.find("\"successes\":").expect("a rate");
    project.write("history.jsonl", &format!("{}\"successes\":99{}", &point[..n], &point[n + "\"successes\":".len()..]));
    let outcome = project.run(&["history"]);
    outcome.expect_code(2);
    assert!(outcome.stderr.contains("line 1: no run gives such figures"), "{}", outcome.stderr);
}

#[test]
fn labels_are_for_runs_that_add_a_point_and_are_pairs() {
    let project = Project::shipped();
    let replayed = project.run(&["run", "--label", "release=1.4.0"]);
    replayed.expect_code(2);
    assert!(replayed.stderr.contains("a replay adds none"), "{}", replayed.stderr);
    let unpaired = project.run(&["run", "--mode", "live", "--label", "release"]);
    unpaired.expect_code(2);
    assert!(unpaired.stderr.contains("KEY=VALUE"), "{}", unpaired.stderr);
}

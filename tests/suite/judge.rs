//! `ragcheck judge`: the shipped recordings replay, misses are explained, people are set beside the judge.

use super::project::{Outcome, Project, copy_of_whole};
use super::schemas::printed;
use super::simulator::Simulator;
use std::collections::BTreeMap;
#[cfg(unix)]
use std::{process::Stdio, time::Duration};

/// The shipped project with a run of one scenario.
fn ran(before: impl Fn(&Project)) -> Project {
    let project = Project::shipped();
    before(&project);
    project.run(&["run", "scenarios/external.yaml"]);
    project
}

fn judged(project: &Project, more: &[&str]) -> Outcome {
    project.run(&[&["judge", "reports/latest"], more].concat())
}

fn rows(project: &Project) -> Vec<BTreeMap<String, String>> {
    let text = project.read("reports/latest/judgements.csv");
    csv::Reader::from_reader(text.as_bytes()).deserialize().map(|row| row.expect("a row")).collect()
}

fn recordings(project: &Project) -> Vec<String> {
    let folder = std::fs::read_dir(project.path("fixtures/cassettes/judge")).expect("recordings");
    let mut names: Vec<_> =
        folder.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name != "blobs");
    names.sort();
    names
}

#[test]
fn the_shipped_judge_replays_and_its_rates_are_a_proxy() {
    let project = copy_of_whole();
    let outcome = judged(&project, &[]);
    outcome.expect_code(0);
    assert!(outcome.stdout.contains("REPLAYED from simulator, recorded "), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("never a verdict on SC-004"), "{}", outcome.stdout);
    let rows = rows(&project);
    let contents: std::collections::BTreeSet<&String> = rows.iter().map(|row| &row["content"]).collect();
    assert_eq!(contents.len(), recordings(&project).len(), "a content is judged once, and no recording is idle");
    assert!(rows.len() > contents.len() * 4, "no content is shared by repetitions");
    for verdict in ["pass", "fail", "inconsistent", "error"] {
        assert!(rows.iter().any(|row| row["verdict"] == verdict), "the imperfect judge has no {verdict}");
    }
    for row in &rows {
        assert_eq!(row["reason"].is_empty(), matches!(row["verdict"].as_str(), "pass" | "fail"), "{row:?}");
    }
}

#[test]
fn human_ratings_of_the_run_are_set_beside_the_judge() {
    let project = ran(|project| {
        project.edit("ragcheck.yaml", "reports: reports", "reports: reports\nratings: fixtures/ratings.csv");
        let rated = (1..=3).map(|n| format!("external/feed-in-tariff/tool-rag.base.{n},{}\n", n != 2));
        project.write("fixtures/ratings.csv", &format!("trial,satisfied\n{}", rated.collect::<String>()));
    });
    let outcome = judged(&project, &[]);
    outcome.expect_code(0);
    assert!(outcome.stdout.contains("Beside human ratings of whole trials"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("; 3 rated)"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains("proxy"), "{}", outcome.stdout);
    let judged = printed(&project, &["judge", "reports/latest"]);
    assert!(
        judged["items"].as_array().is_some_and(|items| items.iter().any(|item| item["beside"].is_object())),
        "{judged}"
    );
}

#[test]
fn a_changed_item_is_a_miss_that_shows_the_item_and_the_command() {
    let project = ran(|_| ());
    project.edit("scenarios/rubric.yaml", "has what was asked for", "has all that was asked for");
    let outcome = judged(&project, &[]);
    outcome.expect_code(3);
    assert!(
        outcome.stderr.contains("cassette miss: ") && outcome.stderr.contains("system prompt changed"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stderr.contains("has all that was asked for"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("ragcheck judge reports/latest --mode record"), "{}", outcome.stderr);
    assert!(!project.path("reports/latest/judgements.csv").exists(), "nothing was judged, so nothing is written");
}

#[test]
fn an_answer_that_was_never_judged_is_told_beside_those_that_were() {
    let project = ran(|_| ());
    judged(&project, &[]).expect_code(0);
    let content = rows(&project)[0]["content"].clone();
    std::fs::remove_file(project.path(&format!("fixtures/cassettes/judge/{content}.yaml"))).expect("its recording");
    let outcome = judged(&project, &[]);
    outcome.expect_code(3);
    assert!(outcome.stderr.contains("never graded"), "{}", outcome.stderr);
    let rows = rows(&project);
    let missing: Vec<_> = rows.iter().filter(|row| row["verdict"] == "not graded").collect();
    assert!(!missing.is_empty() && missing.iter().all(|row| row["content"] == content), "{missing:?}");
    assert!(rows.iter().any(|row| row["verdict"] == "pass"), "the others are kept");
}

#[test]
fn recording_asks_only_for_what_is_missing_within_its_bound() {
    let project = ran(|_| ());
    project.edit("fixtures/simulator/fernlight.yaml", "pace: real", "pace: declared");
    let simulator = Simulator::start(&project, "fixtures/simulator/fernlight.yaml");
    judged(&project, &[]).expect_code(0);
    let (before, all) = (rows(&project), recordings(&project));
    let contents: std::collections::BTreeSet<String> = before.iter().map(|row| row["content"].clone()).collect();
    let gone: Vec<&String> = contents.iter().take(2).collect();
    for content in &gone {
        std::fs::remove_file(project.path(&format!("fixtures/cassettes/judge/{content}.yaml"))).expect("a recording");
    }
    let paid = ["--mode", "record", "--jobs", "1", "--max-cost", "0.01"];
    let unpriced = judged(&project, &paid);
    unpriced.expect_code(2);
    assert!(unpriced.stderr.contains("--max-cost needs the price of the grading model"), "{}", unpriced.stderr);
    let unchanged = project.read("ragcheck.yaml");
    project.write(
        "ragcheck.yaml",
        &format!("{unchanged}prices:\n  simulator/fernlight-judge: {{input: 1000, output: 0}}\n"),
    );
    let spent = judged(&project, &paid);
    spent.expect_code(3);
    assert!(spent.stderr.contains("--max-cost 0.01 is used up"), "{}", spent.stderr);
    assert_eq!(recordings(&project).len(), all.len() - 2, "one request spends it, and a content takes two");
    project.write("ragcheck.yaml", &unchanged);
    judged(&project, &["--max-cost", "1"]).expect_code(2);
    let short = judged(&project, &["--mode", "record", "--jobs", "1", "--max-calls", "3"]);
    short.expect_code(3);
    assert!(short.stderr.contains("--max-calls 3 is used up"), "{}", short.stderr);
    assert_eq!(recordings(&project).len(), all.len() - 1, "one content fits into three calls");
    judged(&project, &["--mode", "record", "--max-calls", "2"]).expect_code(0);
    assert_eq!(recordings(&project), all);
    drop(simulator);
    judged(&project, &[]).expect_code(0);
    let undated = |mut rows: Vec<BTreeMap<String, String>>| {
        for row in &mut rows {
            row.remove("recorded_at");
        }
        rows
    };
    assert_eq!(undated(rows(&project)), undated(before), "the same judge says the same");
}

#[test]
fn live_grades_stay_until_others_take_their_place_and_are_not_called_recorded() {
    let project = ran(|_| ());
    project.edit("fixtures/simulator/fernlight.yaml", "pace: real", "pace: declared");
    let simulator = Simulator::start(&project, "fixtures/simulator/fernlight.yaml");
    let live = |most: &str| judged(&project, &["--mode", "live", "--jobs", "1", "--max-calls", most]);
    let graded = || rows(&project).iter().filter(|row| row["verdict"] != "not graded").count();
    let first = live("8");
    first.expect_code(3);
    assert!(first.stderr.contains("the same command starts from the beginning"), "{}", first.stderr);
    let before = graded();
    let shorter = live("4");
    drop(simulator);
    shorter.expect_code(3);
    assert!(shorter.stderr.contains("keep their grades from an earlier `--mode live`"), "{}", shorter.stderr);
    assert!(before > 0 && graded() == before, "{before}, then {}", graded());
}

#[cfg(unix)]
#[test]
fn a_signal_ends_live_grading_in_order_and_the_grades_that_were_paid_for_are_kept() {
    let project = ran(|_| ());
    let _simulator = Simulator::start(&project, "fixtures/simulator/fernlight.yaml");
    let mut command = project.command(&["judge", "reports/latest", "--mode", "live", "--jobs", "1"]);
    let judge = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the judge");
    std::thread::sleep(Duration::from_secs(5));
    let told = std::process::Command::new("kill").args(["-TERM", &judge.id().to_string()]).status();
    assert!(told.expect("kill").success(), "it has ended already");
    let ended = judge.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(3), "{said}");
    assert!(said.contains("the run was asked to end (SIGTERM)"), "{said}");
    assert!(rows(&project).iter().any(|row| row["verdict"] != "not graded"), "no grade is kept: {said}");
}

#[test]
fn a_rubric_with_mistakes_is_refused_with_its_lines() {
    let project = ran(|_| ());
    project.edit("scenarios/rubric.yaml", "provider: simulator", "provider: simulater");
    project.edit("scenarios/rubric.yaml", "id: grounded", "id: answers-the-question");
    let outcome = judged(&project, &[]);
    outcome.expect_code(2);
    assert!(outcome.stderr.contains("scenarios/rubric.yaml:5:"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("another item has this id"), "{}", outcome.stderr);
    assert!(project.run(&["check"]).stdout.contains("another item has this id"), "`check` reads rubrics too");
}

#[test]
fn nothing_to_judge_is_no_success() {
    let project = Project::shipped();
    project.run(&["run", "scenarios/knowledge.yaml"]);
    let outcome = judged(&project, &[]);
    outcome.expect_code(1);
    assert!(outcome.stderr.contains("--all grades every answer"), "{}", outcome.stderr);
}

#[test]
fn grades_stand_beside_the_traces_and_are_read_again_without_the_model() {
    let project = Project::shipped();
    project.edit(
        "scenarios/external.yaml",
        "cases:\n",
        "gates:\n  - {id: grounded, metric: grade(grounded), target: '>= 1%', kind: point}\n  - {id: cases, metric: case_pass_rate, target: '>= 1%', kind: point}\ncases:\n",
    );
    let before = project.run(&["run", "scenarios/external.yaml"]);
    assert!(before.stdout.contains("NOT_MEASURED"), "{}", before.stdout);
    judged(&project, &[]).expect_code(0);
    let grades = project.read("reports/latest/grades.jsonl");
    assert!(grades.lines().count() > 4 && grades.lines().all(|line| line.starts_with("{\"version\":1,")), "{grades}");
    let run: serde_json::Value = serde_json::from_str(&project.read("reports/latest/run.json")).expect("run.json");
    let gate = run["gates"].as_array().expect("gates").iter().find(|gate| gate["metric"] == "grade(grounded)");
    let gate = gate.expect("the gate on grades");
    assert!(gate["verdict"] == "NOT_MEASURED" && gate["n"].as_u64() > Some(0), "{gate}");
    assert!(gate["observed_text"].as_str().is_some_and(|text| text.starts_with("proxy ")), "{gate}");
    assert!(run["grades"].as_array().is_some_and(|items| items.iter().any(|item| item["item"] == "grounded")));
    // Without the model and its recordings: the file says it all.
    std::fs::remove_dir_all(project.path("fixtures/cassettes/judge")).expect("recordings");
    let written = ["run.json", "index.html", "trials.csv"].map(|file| project.read(&format!("reports/latest/{file}")));
    let scored = project.run(&["score", "reports/latest"]);
    assert!(scored.stdout.contains("graded by fernlight-judge, grounded: "), "{}", scored.stdout);
    let again = ["run.json", "index.html", "trials.csv"].map(|file| project.read(&format!("reports/latest/{file}")));
    assert_eq!(again, written);
    project.run(&["run", "scenarios/external.yaml"]);
    assert_eq!(project.read("reports/latest/grades.jsonl"), grades, "the same run keeps its grades");
    assert_eq!(project.read("reports/latest/run.json"), written[0]);
}

#[test]
fn grades_of_another_answer_are_refused() {
    let project = ran(|_| ());
    judged(&project, &[]).expect_code(0);
    let grades = project.read("reports/latest/grades.jsonl");
    let digest = grades.split("\"answer\":\"").nth(1).and_then(|rest| rest.get(..16)).expect("a digest").to_owned();
    project.write("reports/latest/grades.jsonl", &grades.replace(&digest, "0000000000000000"));
    let outcome = project.run(&["score", "reports/latest"]);
    outcome.expect_code(2);
    assert!(outcome.stderr.contains("there is a grade of another answer of external/"), "{}", outcome.stderr);
    project.write("reports/latest/grades.jsonl", "{}\n");
    let outcome = project.run(&["score", "reports/latest"]);
    outcome.expect_code(2);
    assert!(outcome.stderr.contains("grades.jsonl: line 1: not a grade"), "{}", outcome.stderr);
}

/// The gate `grounded` of the run's `external` scenario.
fn gate(project: &Project) -> serde_json::Value {
    let run: serde_json::Value = serde_json::from_str(&project.read("reports/latest/run.json")).expect("run.json");
    let gates = run["gates"].as_array().expect("gates");
    gates.iter().find(|gate| gate["id"] == "grounded").expect("the gate on grades").clone()
}

#[test]
fn grades_decide_a_gate_only_by_the_rubric_and_model_whose_agreement_with_people_was_measured() {
    let gates = "gates:\n  - {id: grounded, metric: grade(grounded), target: '>= 5%', kind: confidence}\n  - {id: cases, metric: case_pass_rate, target: '>= 1%', kind: point}\ncases:\n";
    let project = Project::shipped();
    project.edit("scenarios/external.yaml", "cases:\n", gates);
    project.run(&["run", "scenarios/external.yaml"]);
    judged(&project, &[]).expect_code(0);
    assert_eq!(gate(&project)["verdict"], "NOT_MEASURED", "no agreement, no verdict");
    assert!(!project.path("reports/latest/agreement.json").exists(), "nothing was rated");
    // People who say of every graded answer what the grader says, and of as many more of either kind.
    let rated: BTreeMap<String, bool> = rows(&project)
        .iter()
        .filter(|row| row["item"] == "grounded" && matches!(row["verdict"].as_str(), "pass" | "fail"))
        .map(|row| (row["trial"].clone(), row["verdict"] == "pass"))
        .collect();
    let rows_of = rated.iter().map(|(trial, yes)| format!("{trial},{yes}\n")).collect::<Vec<_>>().concat();
    project.write("fixtures/ratings.csv", &format!("trial,satisfied\n{rows_of}"));
    project.edit("ragcheck.yaml", "reports: reports", "reports: reports\nratings: fixtures/ratings.csv");
    project.run(&["run", "scenarios/external.yaml"]);
    let told = judged(&project, &[]);
    told.expect_code(0);
    assert!(told.stdout.contains("agreement with people: reports/latest/agreement.json"), "{}", told.stdout);
    let measured = project.read("reports/latest/agreement.json");
    project.write("fixtures/agreement.json", &measured);
    project.edit("ragcheck.yaml", "reports: reports", "reports: reports\nagreement: fixtures/agreement.json");
    project.run(&["run", "scenarios/external.yaml"]);
    judged(&project, &[]).expect_code(0);
    let decided = gate(&project);
    assert!(matches!(decided["verdict"].as_str(), Some("PASS" | "INCONCLUSIVE")), "{decided}");
    let sentence = decided["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("the bound includes the grader's errors, seen in "), "{sentence}");
    let bound = decided["lower"].as_f64().expect("a bound");
    assert!(bound < decided["observed"].as_f64().expect("a rate"), "{decided}");
    // Another rubric: what was measured says nothing of its grades.
    let other = measured.replace("\"model\": \"fernlight-judge\"", "\"model\": \"another\"");
    project.write("fixtures/agreement.json", &other);
    let edited = project.run(&["check"]);
    edited.expect_code(2);
    assert!(edited.stdout.contains("it was edited after it was measured"), "{}", edited.stdout);
    project.write("fixtures/agreement.json", &resealed(&other));
    project.run(&["run", "scenarios/external.yaml"]);
    judged(&project, &[]).expect_code(0);
    let doubted = gate(&project);
    assert_eq!(doubted["verdict"], "NOT_MEASURED", "{doubted}");
    assert!(
        doubted["sentence"].as_str().is_some_and(|text| text.contains("agreement with people was measured of another"))
    );
}

/// The text with a digest that fits it, as if it had been measured so.
fn resealed(text: &str) -> String {
    let (body, _) = text.rsplit_once(",\n  \"digest\"").expect("a digest");
    ragcheck::internals::trace::seal(&format!("{body}\n}}")).0 + "\n"
}

#[test]
fn imported_conversations_measure_the_agreement_and_that_of_the_project_decides_their_gates() {
    let (project, _simulator) = super::simulator::recording();
    let conversation = |n: usize| {
        format!(
            "{{\"task_id\": \"c{n}\", \"messages\": [{{\"role\": \"user\", \"content\": \"question {n}\"}}, {{\"role\": \"assistant\", \"content\": \"answer {n}\"}}]}}\n"
        )
    };
    project.write("log.jsonl", &(0..6).map(conversation).collect::<String>());
    let ratings: String = (0..6).map(|n| format!("log/c{n}/imported.base.1,{}\n", n % 2 == 0)).collect();
    project.write("fixtures/ratings.csv", &format!("trial,satisfied\n{ratings}"));
    let criterion = "criteria: [{id: grounded, metric: grade(grounded), target: '>= 5%', kind: confidence}]\n";
    project.write("grades.yaml", criterion);
    project.edit("ragcheck.yaml", "reports: reports", "reports: reports\nratings: fixtures/ratings.csv");
    let verdict = || {
        let _ = std::fs::remove_dir_all(project.path("reports"));
        project.run(&["score", "--import", "log.jsonl", "--criteria", "grades.yaml"]);
        project.run(&["judge", &project.newest(), "--all", "--mode", "live"]).expect_code(0);
        let run = project.latest("run.json");
        let rows = run["criteria"].as_array().expect("criteria");
        rows.iter().find(|row| row["id"] == "grounded").expect("the criterion")["verdict"].clone()
    };
    assert_eq!(verdict(), "NOT_MEASURED");
    project.write("fixtures/agreement.json", &project.read(&format!("{}/agreement.json", project.newest())));
    project.edit("ragcheck.yaml", "reports: reports", "reports: reports\nagreement: fixtures/agreement.json");
    assert_ne!(verdict(), "NOT_MEASURED");
}

//! A judged trial keeps its first draw: the attack of running what failed until it passes, and what is no repeated draw.

use super::project::{Outcome, Project};
use super::simulator::Simulator;
use serde_json::{Value, json};

const SCENARIO: &str = "scenario: mine
flow: tool-rag
knowledge: fernlight
model: {provider: simulator, name: any}
repeat: 30
cases:
  - case: one
    ask: How long does the warranty of the Canopy last?
    expect: {answer: {matches: [warranty]}, retries: [{account: model, at_most: 0}]}
  - case: two
    ask: What does the warranty of the Canopy cover?
    expect: {answer: {matches: [warranty]}, retries: [{account: model, at_most: 0}]}
gates:
  - {id: first, about: The answer comes at once, metric: case_pass_rate, target: '>= 90%', kind: confidence}
";

/// An agent that answers at once in this share of trials; another seed draws others.
fn simulated(project: &Project, seed: u32, share: f64) -> Simulator {
    let behaviour = format!(
        "name: forgetful\nseed: {seed}\npace: declared\nmodel:\n  latency: {{constant: 100ms}}\n  habits: {{forget_response: {}}}\n\
         search:\n  latency: {{constant: 100ms}}\n  topics:\n    - when: {{asks: '.'}}\n      answer: General remarks [1].\n      \
         results:\n        - {{title: General, url: 'https://encyclopedia.example.org/general', snippet: No figures.}}\n",
        1.0 - share
    );
    project.write("forgetful.yaml", &behaviour);
    // The address of the simulator before this one is gone.
    project.write("ragcheck.yaml", &project.read("unstarted.yaml"));
    Simulator::start(project, "forgetful.yaml")
}

fn project() -> Project {
    let project = Project::shipped();
    project.write("mine.yaml", SCENARIO);
    project.write("unstarted.yaml", &project.read("ragcheck.yaml"));
    project.write(
        "one.yaml",
        "about: One.\ncriteria:\n  - {id: ASKED, about: Every query searches, metric: mandatory_call_rate(knowledge), \
         target: '= 100%', kind: invariant, required: false}\n",
    );
    project
}

const RUN: [&str; 6] = ["run", "mine.yaml", "--criteria", "one.yaml", "--jobs", "8"];

fn run(project: &Project, more: &[&str]) -> Outcome {
    project.run(&[&RUN[..], more].concat())
}

/// The words of the command that runs again what did not pass, as a person would paste them.
fn printed(outcome: &Outcome) -> Vec<String> {
    let command = |line: &'_ str| {
        let (purpose, command) = line.split_once(": ragcheck ")?;
        (purpose == "run again" || purpose == "  resume").then(|| command.to_owned())
    };
    let line = outcome.stdout.lines().find_map(command);
    let line = line.unwrap_or_else(|| panic!("{}{}", outcome.stdout, outcome.stderr));
    line.split(' ').map(str::to_owned).collect()
}

/// Successes and units of the gate.
fn figures(project: &Project) -> (u64, u64) {
    let run = project.latest("run.json");
    let row = &run["gates"][0];
    (row["successes"].as_u64().expect("a count"), row["n"].as_u64().expect("a count"))
}

fn column(project: &Project, file: &str, name: &str) -> Vec<String> {
    let text = project.read(&format!("{}/{file}", project.newest()));
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    let place = rows.headers().expect("columns").iter().position(|column| column == name).expect(name);
    rows.records().map(|row| row.expect("a row")[place].to_owned()).collect()
}

/// The attack: a true 70 % against 90 % passed in three calls of the command that the tool had printed.
#[test]
fn an_agent_that_fails_does_not_pass_by_the_command_that_the_red_run_prints() {
    for mode in ["live", "record"] {
        let project = project();
        let simulator = simulated(&project, 1, 0.7);
        let mut red = run(&project, &["--mode", mode]);
        red.expect_code(1);
        drop(simulator);
        let (good, n) = figures(&project);
        assert!(n == 60 && good < 54, "{mode}: {good} of {n}");
        for seed in 2..=4 {
            let simulator = simulated(&project, seed, 0.7);
            let typed = printed(&red);
            red = project.run(&typed.iter().map(String::as_str).collect::<Vec<_>>());
            drop(simulator);
            red.expect_code(1);
            assert_eq!(figures(&project), (good, n), "{mode}, call {seed} of `{}`", typed.join(" "));
            let said = format!("first draws count: {} trials run again", n - good);
            assert!(red.stdout.replace('\n', " ").contains(&said), "{mode}: {}", red.stdout);
        }
        // Both are told apart wherever the run is told of.
        let evaluation = project.latest("run.json");
        let failed = evaluation["trials"].as_array().expect("trials").iter().find(|trial| trial["verdict"] == "FAIL");
        let draws = &failed.expect("a trial that failed")["draws"]["run_again"];
        assert_eq!(draws.as_array().map(Vec::len), Some(3), "{mode}: {draws}");
        assert_eq!(evaluation["redrawn"]["run_again"], json!(n - good));
        let passed = evaluation["redrawn"]["run_again_passed"].as_u64().expect("a count");
        assert!(passed > 0, "{mode}: {passed}");
        let gate = |column_name: &str| column(&project, "criteria.csv", column_name).pop().expect("the gate");
        assert_eq!((gate("run_again"), gate("run_again_passed")), ((n - good).to_string(), passed.to_string()));
        assert_eq!(
            column(&project, "trials.csv", "run_again").iter().filter(|cell| !cell.is_empty()).count() as u64,
            n - good
        );
        let again = project.read(&format!("{}/run-again.jsonl", project.newest()));
        assert_eq!(again.lines().count() as u64, n - good, "{mode}: the draws that do not count are kept");
        for (format, words) in [("markdown", "first draws count"), ("html", "first draws count")] {
            let report = project.run(&["report", &project.newest(), "--to", format]);
            assert!(report.stdout.contains(words), "{mode} {format}: {}{}", report.stdout.len(), report.stderr);
        }
        if mode == "record" {
            // The recordings that count are the first ones.
            let replayed = run(&project, &[]);
            replayed.expect_code(1);
            assert_eq!(figures(&project), (good, n));
            assert!(replayed.stdout.replace('\n', " ").contains("first draws count"), "{}", replayed.stdout);
        } else {
            // The same draws are one point, and its last line counts.
            let points = project.read("history.jsonl");
            let point: Value = serde_json::from_str(points.lines().last().expect("a point")).expect("JSON");
            assert_eq!(point["rates"][1]["successes"], json!(good), "{point}");
            assert_eq!(
                point["labels"]["run again"],
                json!(format!("{} trials, {passed} PASS; first draws count", n - good))
            );
            let shown = project.run(&["history"]);
            assert!(shown.stdout.contains("run again="), "{}", shown.stdout);
            let page = project.read("reports/history.html");
            assert!(page.contains("run again="), "{page}");
        }
        // The traces alone say the same.
        project.run(&["score", &project.newest()]).expect_code(1);
        assert_eq!(figures(&project), (good, n));
    }
}

#[test]
fn a_selection_of_what_failed_keeps_its_first_draws_live_and_recorded() {
    for mode in ["live", "record"] {
        let project = project();
        let simulator = simulated(&project, 1, 0.5);
        run(&project, &["--mode", mode]).expect_code(1);
        drop(simulator);
        let failed = |project: &Project| {
            let run = project.latest("run.json");
            let trials = run["trials"].as_array().expect("trials").clone();
            trials.into_iter().filter(|trial| trial["case"] == "one" && trial["verdict"] == "FAIL").count()
        };
        let before = failed(&project);
        assert!(before > 5, "{before}");
        let simulator = simulated(&project, 9, 1.0);
        let alone = run(&project, &["--mode", mode, "--only", "one"]);
        drop(simulator);
        alone.expect_code(1);
        assert_eq!(failed(&project), before, "{mode}: {}", alone.stdout);
        assert!(alone.stdout.replace('\n', " ").contains("run again"), "{mode}: {}", alone.stdout);

        // A changed prompt, case or parameter is another thing to test.
        let simulator = simulated(&project, 9, 1.0);
        project.edit("mine.yaml", "name: any}", "name: any, temperature: 0.5}");
        let changed = run(&project, &["--mode", mode, "--only", "one"]);
        drop(simulator);
        changed.expect_code(0);
        assert_eq!(failed(&project), 0, "{mode}: {}", changed.stdout);
        assert!(!changed.stdout.contains("run again"), "{mode}: {}", changed.stdout);
    }
}

#[test]
fn a_partition_that_failed_does_not_pass_by_being_run_again() {
    for mode in ["live", "record"] {
        let project = project();
        project.edit("mine.yaml", "repeat: 30", "repeat: 4");
        let mut verdicts = Vec::new();
        for (seed, share) in [(1, 0.0), (2, 1.0)] {
            let simulator = simulated(&project, seed, share);
            let parts = ["hash:1/2", "hash:2/2"].map(|part| run(&project, &["--mode", mode, "--partition", part]));
            drop(simulator);
            verdicts.push(parts.map(|part| (part.code, part.stdout.contains("first draws count"))));
        }
        assert_eq!(verdicts, [[(1, false); 2], [(1, true); 2]], "{mode}");
    }
}

#[test]
fn all_trials_of_a_scenario_in_one_run_are_new_draws_and_say_what_came_before() {
    for mode in ["live", "record"] {
        let project = project();
        project.edit("mine.yaml", "repeat: 30", "repeat: 4");
        project.edit(
            "mine.yaml",
            "target: '>= 90%', kind: confidence",
            "target: '>= 90%', kind: point, required: true",
        );
        for seed in [1, 2] {
            let simulator = simulated(&project, seed, 0.0);
            run(&project, &["--mode", mode]).expect_code(1);
            drop(simulator);
        }
        let simulator = simulated(&project, 3, 1.0);
        let green = run(&project, &["--mode", mode]);
        drop(simulator);
        green.expect_code(0);
        let said = green.stdout.replace('\n', " ");
        assert!(said.contains("drawn again: 8 trials of which an earlier draw was FAIL"), "{mode}: {}", green.stdout);
        assert_eq!(project.traces()[0]["evidence"]["earlier_takes"], json!(["FAIL", "FAIL"]), "{mode}");
        let shown = project.run(&["show", &format!("{}/mine/one/tool-rag.base.1", project.newest())]);
        assert!(shown.stdout.contains("\ndraw 3; draws 1, 2: FAIL\n"), "{mode}: {}", shown.stdout);
        assert_eq!(column(&project, "trials.csv", "draw")[0], "3");
        assert_eq!(column(&project, "trials.csv", "earlier_draws")[0], "FAIL; FAIL");
    }
}

#[test]
fn outages_that_are_run_again_are_replaced_and_counted_in_the_verdict_line() {
    let project = project();
    project.edit("mine.yaml", "repeat: 30", "repeat: 15");
    // No test's server has this port.
    let settings = project.read("ragcheck.yaml");
    project.write("ragcheck.yaml", &settings.replace("127.0.0.1:8091", "127.0.0.1:1"));
    let down = run(&project, &["--mode", "live"]);
    down.expect_code(3);
    let simulator = simulated(&project, 1, 1.0);
    let typed = printed(&down);
    let up = project.run(&typed.iter().map(String::as_str).collect::<Vec<_>>());
    drop(simulator);
    up.expect_code(0);
    assert!(up.stdout.replace('\n', " ").contains("30 outages run again"), "{}{}", up.stdout, up.stderr);
    assert_eq!(
        project.latest("run.json")["redrawn"],
        json!({"run_again": 0, "run_again_passed": 0, "failed_before": 0, "replaced_errors": 30})
    );
    let point: Value =
        serde_json::from_str(project.read("history.jsonl").lines().last().expect("a point")).expect("JSON");
    assert_eq!(point["labels"]["outages run again"], "30");
}

/// Two whole runs are two draws of each trial, and the better of two is no draw.
#[test]
fn a_run_that_failed_named_after_a_later_one_lends_it_no_trial_that_passed_by_chance() {
    for mode in ["live", "record"] {
        let project = project();
        let simulator = simulated(&project, 1, 0.7);
        run(&project, &["--mode", mode]).expect_code(1);
        drop(simulator);
        let first = format!("--failed={}", project.newest());
        let simulator = simulated(&project, 2, 0.7);
        run(&project, &["--mode", mode]).expect_code(1);
        drop(simulator);
        let (good, n) = figures(&project);
        let simulator = simulated(&project, 3, 1.0);
        let refused = run(&project, &["--mode", mode, &first]);
        refused.expect_code(2);
        assert!(refused.stderr.contains("were drawn again in a later run"), "{mode}: {}", refused.stderr);
        let newest = run(&project, &["--mode", mode, "--failed"]);
        drop(simulator);
        newest.expect_code(1);
        assert_eq!(figures(&project), (good, n), "{mode}: {}", newest.stdout);
        if mode == "record" {
            // A replay takes from the earlier run only what still has the recording of then.
            let replayed = run(&project, &[&first]);
            replayed.expect_code(1);
            assert_eq!(figures(&project), (good, n), "{}{}", replayed.stdout, replayed.stderr);
        }
    }
}

#[test]
fn a_run_that_was_resumed_prints_the_command_that_began_it() {
    let project = project();
    let simulator = simulated(&project, 1, 0.5);
    run(&project, &["--mode", "live", "--max-calls", "100"]).expect_code(3);
    let mut resumed = project.run(&["run", "--resume"]);
    for _ in 0..9 {
        if resumed.code != 3 {
            break;
        }
        resumed = project.run(&["run", "--resume"]);
    }
    resumed.expect_code(1);
    let typed = printed(&resumed);
    let expected = [&RUN[..], &["--mode", "live", "--max-calls", "100", "--failed"]].concat();
    assert_eq!(typed, expected);
    let again = project.run(&expected);
    drop(simulator);
    // 100 calls may not be enough for all of them.
    assert!([1, 3].contains(&again.code), "{}{}", again.stdout, again.stderr);
}

//! Broken agents, one for each of SC-001 to SC-008: each fails its own criterion, and no other of the eight but those that
//! are declared to fall with it. `tests/agents/<criterion>.yaml` is the agent: the shipped simulated model with other rates.

use super::project::Project;
use super::simulator::Simulator;
use std::collections::BTreeSet;
use std::path::Path;

/// Criterion, pace, scenarios that suffice to see it, and what falls with it.
type Broken = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const AGENTS: [Broken; 7] = [
    // A search that is left out again after the reminder is a retry that did not recover.
    ("SC-001", "declared", &["knowledge", "external", "languages"], &["SC-007"]),
    ("SC-002", "declared", &["knowledge", "external"], &[]),
    // As above, of keywords.
    ("SC-003", "declared", &["external", "learning"], &["SC-007"]),
    // The pauses are waited out: what hangs takes nine seconds.
    ("SC-005", "real", &["knowledge"], &[]),
    // What is not found is asked for outside, where nothing is known of some questions: there is nothing to make keywords of.
    ("SC-006", "declared", &["learning"], &["SC-003", "SC-007"]),
    ("SC-007", "declared", &["knowledge", "external"], &[]),
    // A follow-up that is searched for alone finds nothing, and no keywords can be made of what is not found outside either.
    ("SC-008", "declared", &["context"], &["SC-003"]),
];

/// The criteria of the eight that failed in the newest run.
fn failed(project: &Project) -> BTreeSet<String> {
    let run = project.latest("run.json");
    let rows = run["criteria"].as_array().expect("criteria").iter();
    let eight = rows.filter(|row| row["id"].as_str().is_some_and(|id| id.len() == 6 && id.starts_with("SC-00")));
    let eight: Vec<_> = eight.collect();
    assert_eq!(eight.len(), 8, "{eight:?}");
    eight.iter().filter(|row| row["verdict"] == "FAIL").filter_map(|row| Some(row["id"].as_str()?.to_owned())).collect()
}

#[test]
fn each_broken_agent_fails_its_own_criterion_and_no_other_beyond_those_declared() {
    for (criterion, pace, scenarios, along) in AGENTS {
        let project = Project::shipped();
        let rates = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/agents/{criterion}.yaml"));
        let behaviour = "fixtures/simulator/fernlight.yaml";
        std::fs::copy(rates, project.path("fixtures/simulator/broken.yaml")).expect("its rates");
        project.edit(behaviour, "rates: fernlight-rates.yaml", "rates: broken.yaml");
        project.edit(behaviour, "pace: real", &format!("pace: {pace}"));
        let _simulator = Simulator::start(&project, behaviour);
        let files: Vec<String> = scenarios.iter().map(|name| format!("scenarios/{name}.yaml")).collect();
        let jobs = if pace == "real" { "64" } else { "8" };
        let mut arguments = vec!["run"];
        arguments.extend(files.iter().map(String::as_str));
        arguments.extend(["--mode", "live", "--jobs", jobs, "--no-history"]);
        let outcome = project.run(&arguments);
        outcome.expect_code(1);
        let failed = failed(&project);
        assert!(failed.contains(criterion), "{criterion}: {failed:?}\n{}", outcome.stdout);
        if criterion == "SC-006" {
            let run = project.latest("run.json");
            let row = run["criteria"].as_array().expect("criteria").iter().find(|row| row["id"] == "SC-006-found");
            assert_eq!(
                row.expect("SC-006-found")["verdict"],
                "FAIL",
                "what is not searched for by its subject is not found"
            );
        }
        let undeclared: Vec<&String> =
            failed.iter().filter(|id| *id != criterion && !along.contains(&id.as_str())).collect();
        assert!(undeclared.is_empty(), "{criterion} drags along {undeclared:?}\n{}", outcome.stdout);
    }
}

/// A project whose trials of a scenario were all rated `satisfied`, and what a run of it came to: exit code and SC-004.
fn rated(satisfied: &str, keep: usize, more: &str) -> (i32, serde_json::Value, Project) {
    let project = Project::shipped();
    let scenario = ["run", "scenarios/external.yaml", "scenarios/keywords.yaml", "--no-history"];
    project.run(&scenario);
    let trials: Vec<String> =
        project.traces().iter().filter_map(|trace| Some(trace["trial"].as_str()?.to_owned())).collect();
    let rows: Vec<String> = trials.iter().take(keep).map(|trial| format!("{trial},{satisfied}\n")).collect();
    project.write("ratings.csv", &format!("trial,satisfied\n{}", rows.concat()));
    project.edit("ragcheck.yaml", "not_measured_ok: [SC-004]", "ratings: ratings.csv");
    project.edit("scenarios/success-criteria.yaml", "criteria:\n", more);
    let outcome = project.run(&scenario);
    let run = project.latest("run.json");
    let rows = run["criteria"].as_array().expect("criteria");
    let row = rows.iter().find(|row| row["id"] == "SC-004").expect("SC-004").clone();
    (outcome.code, row, project)
}

#[test]
fn people_who_are_not_satisfied_fail_sc_004_and_no_other_and_the_run() {
    let (code, row, project) = rated("no", usize::MAX, "criteria:\n");
    assert_eq!((row["verdict"].as_str(), row["required"].as_bool(), code), (Some("FAIL"), Some(true), 1), "{row}");
    assert!(failed(&project).iter().all(|id| id == "SC-004"), "{:?}", failed(&project));
    let (code, row, project) = rated("yes", usize::MAX, "criteria:\n");
    assert!(row["n"].as_u64().is_some_and(|n| n >= 29), "{row}");
    assert_eq!((row["verdict"].as_str(), row["kind"].as_str(), code), (Some("PASS"), Some("confidence"), 0), "{row}");
    assert!(failed(&project).is_empty());
}

#[test]
fn too_few_satisfied_people_show_nothing_and_a_project_may_say_that_ratings_decide_nothing() {
    let (_, row, _) = rated("yes", 9, "criteria:\n");
    assert_eq!(row["verdict"], "INCONCLUSIVE", "{row}");
    // Ratings of trials that do not answer from both sources, or that there are not.
    let (code, row, project) = rated("no", 0, "criteria:\n");
    assert_eq!((row["verdict"].as_str(), row["n"].as_u64()), (Some("NOT_MEASURED"), Some(0)), "{code} {row}");
    project.write("ratings.csv", "trial,satisfied\nexternal/nothing/tool-rag.base.1,no\n");
    project.run(&["run", "scenarios/external.yaml", "--no-history"]);
    let run = project.latest("run.json");
    let row = run["criteria"].as_array().and_then(|rows| rows.iter().find(|row| row["id"] == "SC-004"));
    let said = row.expect("SC-004")["sentence"].as_str().expect("a sentence").to_owned();
    assert!(said.contains("no rating is of a trial here that answers from both sources"), "{said}");
    let checked = project.run(&["check"]);
    let told = "1 of 1 ratings name no trial of the project, first `external/nothing/tool-rag.base.1`";
    assert!(checked.stdout.contains(told), "{}", checked.stdout);
    // A run says so too, and how many trials the rater skipped.
    project.write(
        "ratings.csv",
        "trial,satisfied\nexternal/nothing/tool-rag.base.1,no\nexternal/other/tool-rag.base.1,\n",
    );
    let ran = project.run(&["run", "--no-history"]);
    for words in [told, "ratings.csv: 1 trial is not rated, for `satisfied` is empty, first in line 3"] {
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    let part = project.run(&["run", "scenarios/external.yaml", "--no-history"]);
    assert!(!part.stderr.contains(told), "a part has no trials for the ratings of the rest: {}", part.stderr);
    let advisory =
        "criteria:\n  - {id: SC-004, metric: satisfaction, target: '>= 90%', kind: confidence, required: false}\n";
    let (code, row, _) = rated("no", usize::MAX, advisory);
    assert_eq!((row["verdict"].as_str(), row["required"].as_bool(), code), (Some("FAIL"), Some(false), 0), "{row}");
}

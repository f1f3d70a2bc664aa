//! `score --slice` and `--slices`: processes that share the traces of a run make the verdict and the report of one.

use super::project::{Project, copy, few, whole};
use serde_json::{Value, json};
use std::fs;

/// A copy of a run, in a project of its own.
fn copied(made: &Project) -> Project {
    let project = Project::empty();
    copy(&made.path(&made.newest()), &project.path("run"));
    project
}

fn examine(project: &Project, number: u32, of: u32) {
    project.run(&["score", "run", "--slice", &format!("{number}/{of}")]).expect_code(0);
}

/// Scores a run whole and in slices, the last slice first and one of them twice.
fn alike(project: &Project, numbers: &[u32]) {
    let whole = project.run(&["score", "run"]);
    let expected = project.report("run");
    for of in numbers {
        for file in ["run.json", "trials.csv", "criteria.csv", "violations.csv", "index.html"] {
            fs::remove_file(project.path(&format!("run/{file}"))).expect(file);
        }
        (1..=*of).rev().chain([1]).for_each(|number| examine(project, number, *of));
        let put = project.run(&["score", "run", "--slices", &of.to_string()]);
        assert_eq!((put.code, &put.stdout), (whole.code, &whole.stdout), "{}", put.stderr);
        super::partition::same(&expected, &project.report("run"));
    }
}

/// Turns the answers of a trace into errors.
fn fail(value: &mut Value) {
    match value {
        Value::Object(members) if members.contains_key("answered") => {
            *value = json!({"failed": {"kind": "timeout", "message": "slow"}});
        }
        Value::Object(members) => members.values_mut().for_each(fail),
        Value::Array(items) => items.iter_mut().for_each(fail),
        _ => {}
    }
}

#[test]
fn slices_make_the_report_of_one_process_byte_for_byte() {
    let project = copied(&few().0);
    alike(&project, &[1, 3]);
    // With trials that fail, in ERROR, missing and edited by hand.
    let traces = project.read("run/traces.jsonl");
    let lines: Vec<String> = traces.lines().map(str::to_owned).collect();
    let mut edited = lines.clone();
    let mut trace = serde_json::from_str(&edited[4]).expect("a trace");
    fail(&mut trace);
    edited[4] = trace.to_string();
    edited[40] = edited[40].replace(
        "\"end\":\"completed\"",
        "\"end\":{\"error\":{\"kind\":\"stopped\",\"message\":\"m\",\"cause\":\"c\"}}",
    );
    edited.remove(70);
    assert!(edited[4] != lines[4] && edited[40] != lines[40]);
    project.write("run/traces.jsonl", &(edited.join("\n") + "\n"));
    alike(&project, &[2]);
}

#[test]
#[ignore = "scores the whole suite several times: .ci/slow"]
fn slices_of_the_whole_suite_make_its_report_byte_for_byte() {
    alike(&copied(&whole().0), &[2, 7]);
}

#[test]
fn what_is_missing_cut_off_or_of_other_files_is_named_and_nothing_is_written() {
    let project = Project::starter();
    project.run(&["run"]);
    let project = copied(&project);
    let before = project.report("run");
    let put = |code: i32, words: &[&str]| {
        let outcome = project.run(&["score", "run", "--slices", "2"]);
        outcome.expect_code(code);
        for word in words {
            assert!(outcome.stderr.contains(word), "{word}: {}", outcome.stderr);
        }
    };
    put(3, &["2 of 2 slices of run missing", "ragcheck score run --slice 1/2"]);
    examine(&project, 1, 2);
    put(3, &["1 of 2 slices of run missing", "ragcheck score run --slice 2/2"]);
    examine(&project, 2, 2);
    let slice = project.read("run/slices/2-of-2.jsonl");
    let (all_but_last, _) = slice.trim_end().rsplit_once('\n').expect("lines");
    for cut in ["", &slice[..slice.len() / 2], all_but_last, slice.split_once('\n').expect("lines").1] {
        project.write("run/slices/2-of-2.jsonl", cut);
        put(2, &["2-of-2.jsonl is cut off or edited: examine slice 2/2 again"]);
    }
    project.write("run/slices/2-of-2.jsonl", &slice);
    let plan = project.read("run/plan.json");
    project.edit("run/plan.json", "80 euros", "90 euros");
    put(2, &["1-of-2.jsonl was made from another plan.json"]);
    project.write("run/plan.json", &plan);
    fs::remove_dir_all(project.path("run/slices")).expect("slices");
    assert!(project.report("run") == before, "something was written");

    let traces = project.read("run/traces.jsonl");
    project.write("run/traces.jsonl", &(traces + "{}\n"));
    let whole = project.run(&["score", "run"]);
    let outcome = project.run(&["score", "run", "--slice", "3/3"]);
    outcome.expect_code(2);
    assert!(outcome.stderr.contains("line 21: not a trace"), "{}", outcome.stderr);
    assert_eq!(outcome.stderr, whole.stderr);
    for wrong in [&["--slice", "4/3"][..], &["--slice", "3"], &["--slices", "0"], &["--slice", "1/2", "--slices", "2"]]
    {
        project.run(&[&["score", "run"], wrong].concat()).expect_code(2);
    }
}

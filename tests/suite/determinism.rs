//! Same inputs, same bytes: whatever the number of threads, the language, the time zone; and again from the traces.

use super::project::{Outcome, Project, RUN_OF_FEW, few, whole};
use std::fs;

#[test]
fn threads_language_and_time_zone_change_no_byte() {
    // The flow that is not among the few.
    let managed = ["run", "--verbose", "scenarios/managed-rag-plain.yaml"];
    let project = Project::shipped();
    let outcome = project.run(&managed);
    expect_same_bytes(&[
        (&(project, outcome), &managed, "1", "tr_TR.UTF-8", "Pacific/Kiritimati"),
        (few(), &RUN_OF_FEW, "1", "tr_TR.UTF-8", "America/St_Johns"),
        (few(), &RUN_OF_FEW, "7", "de_DE.UTF-8", "Asia/Kolkata"),
    ]);
}

#[test]
#[ignore = "the whole suite under each condition: .ci/slow"]
fn threads_language_and_time_zone_change_no_byte_of_the_whole_suite() {
    let arguments = &["run", "--verbose"];
    expect_same_bytes(&[
        (whole(), arguments, "1", "tr_TR.UTF-8", "Pacific/Kiritimati"),
        (whole(), arguments, "1", "C", "America/St_Johns"),
        (whole(), arguments, "7", "de_DE.UTF-8", "Asia/Kolkata"),
    ]);
}

/// A run, how it was made, and under which other conditions it is made again: jobs, language, time zone.
type Condition<'c> = (&'c (Project, Outcome), &'c [&'c str], &'c str, &'c str, &'c str);

fn expect_same_bytes(conditions: &[Condition]) {
    for ((first, outcome), arguments, jobs, locale, zone) in conditions {
        let files = first.report("reports/latest");
        assert_eq!(files.len(), 10);
        let project = Project::shipped();
        let mut command = project.command(&[*arguments, &["--jobs", *jobs]].concat());
        command.env("LC_ALL", locale).env("LANG", locale).env("TZ", zone);
        let again = Outcome::of(&mut command);
        again.expect_code(outcome.code);
        let (ours, theirs) = (without_path(outcome), without_path(&again));
        assert_eq!(ours, theirs, "stdout differs with {jobs} jobs");
        same(&files, &project.report("reports/latest"), &format!("{jobs} jobs, {locale}, {zone}"));
        let made = fs::read_dir(project.path("reports")).expect("reports").count();
        assert_eq!(made, 4, "a run folder, `latest`, the list, the history");
    }
}

#[test]
fn score_makes_the_same_bytes_from_plan_and_traces_alone() {
    let (project, outcome) = whole();
    let elsewhere = tempfile::tempdir().expect("a folder");
    for file in ["plan.json", "traces.jsonl", "passages.jsonl"] {
        fs::copy(project.path(&format!("reports/latest/{file}")), elsewhere.path().join(file)).expect(file);
    }
    let folder = elsewhere.path().display().to_string();
    // Run where there is no project at all: nothing else is read.
    let mut command = project.command(&["score", &folder, "--verbose"]);
    command.current_dir(elsewhere.path());
    let scored = Outcome::of(&mut command);
    scored.expect_code(outcome.code);
    assert_eq!(without_path(outcome), without_path(&scored));
    for (name, bytes) in project.report("reports/latest") {
        let again = fs::read(elsewhere.path().join(&name)).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(bytes == again, "{name} differs when it is made from the traces");
    }
}

#[test]
fn fewer_trials_leave_the_others_as_they_were() {
    let (project, _) = whole();
    // The plan is another, and with it the digests.
    let bare = |mut trace: serde_json::Value| {
        trace.as_object_mut().expect("a trace").retain(|member, _| !["plan", "digest"].contains(&member.as_str()));
        trace
    };
    let all: Vec<_> = project.traces().into_iter().map(bare).collect();
    let few = Project::shipped();
    few.run(&["run", "--only", "knowledge/descaling"]);
    let traces: Vec<_> = few.traces().into_iter().map(bare).collect();
    assert_eq!(traces.len(), 3);
    for trace in &traces {
        assert!(all.contains(trace), "{} differs when it runs alone", trace["trial"]);
    }
}

#[test]
fn no_file_but_the_environment_knows_where_it_was_made() {
    let (project, _) = whole();
    let here = project.path("").canonicalize().expect("the project").display().to_string();
    for (name, bytes) in project.report("reports/latest") {
        assert!(!String::from_utf8_lossy(&bytes).contains(&here), "{name} holds a path of this machine");
    }
    assert!(project.read("reports/latest/environment.json").contains("written_at"));
}

/// What was printed, but for where the report is.
fn without_path(outcome: &Outcome) -> Vec<&str> {
    outcome.stdout.lines().filter(|line| !line.starts_with("report: ")).collect()
}

fn same(ours: &[(String, Vec<u8>)], theirs: &[(String, Vec<u8>)], how: &str) {
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(ours), names(theirs), "{how}");
    for ((name, ours), (_, theirs)) in ours.iter().zip(theirs) {
        assert!(ours == theirs, "{name} differs: {how}");
    }
}

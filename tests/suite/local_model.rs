//! The recordings of a real, small model: they replay without it, streams too, to the verdicts and bytes that were
//! shipped.

use super::project::{Outcome, Project};

const RUN: [&str; 4] = ["run", "scenarios/local-model", "--criteria", "scenarios/local-model/criteria.yaml"];

fn replay(project: &Project, jobs: &str) -> Outcome {
    project.run(&[&RUN[..], &["--jobs", jobs]].concat())
}

#[test]
fn a_real_models_recordings_replay_to_the_shipped_verdicts_and_to_the_same_bytes() {
    let project = Project::shipped();
    let outcome = replay(&project, "1");
    let expected = project.read("scenarios/local-model/expected-exit-code");
    outcome.expect_code(expected.trim().parse().expect("a number"));
    assert!(!outcome.stdout.contains("in ERROR"), "{}", outcome.stdout);
    let criteria = project.run(&["report", "--to", "csv"]).stdout;
    assert_eq!(criteria, project.read("scenarios/local-model/expected-criteria.csv"));
    assert!(criteria.contains("recorded from local qwen2.5-coder-0.5b"), "{criteria}");

    let again = Project::shipped();
    replay(&again, "2").expect_code(outcome.code);
    for ((name, bytes), (_, more)) in project.report("reports/latest").iter().zip(again.report("reports/latest")) {
        assert!(*bytes == more, "{name} differs in the second replay");
    }
}

#[test]
fn its_streams_were_recorded_piece_by_piece_with_the_time_to_the_first() {
    let project = Project::shipped();
    replay(&project, "2");
    let (mut whole, mut streamed) = (0, 0);
    for trace in project.traces() {
        let variant = trace["lane"]["variant"].as_str().expect("a variant");
        let timed = trace.to_string().contains("\"first_token_us\":");
        assert_eq!(timed, variant == "streamed", "{}", trace["trial"]);
        *if timed { &mut streamed } else { &mut whole } += 1;
    }
    assert!(streamed >= 6 && whole >= 12, "{streamed} trials with streams, {whole} without");
}

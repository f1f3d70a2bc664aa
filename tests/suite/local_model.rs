//! The recordings of a real, small model: they replay without it, streams too, to the verdicts and bytes that were
//! shipped.

use super::project::{Outcome, Project};

fn replay(project: &Project, name: &str, jobs: &str) -> Outcome {
    let (folder, criteria) = (format!("scenarios/{name}"), format!("scenarios/{name}/criteria.yaml"));
    project.run(&["run", &folder, "--criteria", &criteria, "--jobs", jobs])
}

#[test]
fn a_real_models_recordings_replay_to_the_shipped_verdicts_and_to_the_same_bytes() {
    for name in ["local-model", "local-two-stage", "local-react", "local-prompts"] {
        let project = Project::shipped();
        let outcome = replay(&project, name, "1");
        let expected = project.read(&format!("scenarios/{name}/expected-exit-code"));
        outcome.expect_code(expected.trim().parse().expect("a number"));
        assert!(!outcome.stdout.contains("in ERROR"), "{}", outcome.stdout);
        let criteria = project.run(&["report", "--to", "csv"]).stdout;
        assert_eq!(criteria, project.read(&format!("scenarios/{name}/expected-criteria.csv")));
        assert!(criteria.contains("recorded from local qwen2.5-coder-0.5b"), "{criteria}");

        let again = Project::shipped();
        replay(&again, name, "2").expect_code(outcome.code);
        for ((file, bytes), (_, more)) in project.report("reports/latest").iter().zip(again.report("reports/latest")) {
            assert!(*bytes == more, "{name}: {file} differs in the second replay");
        }
    }
}

#[test]
fn two_prompts_for_it_are_compared_and_so_few_cases_show_nothing() {
    let project = Project::shipped();
    replay(&project, "local-prompts", "2").expect_code(0);
    let outcome = project.run(&["compare", "reports/latest@plain", "reports/latest@guarded"]);
    outcome.expect_code(0);
    for said in [
        "DIFFERS prompt `system`",
        "50.0 %   50.0 %",
        "33.3 %   33.3 %",
        "1 case passes in plain and never in guarded, 1 the other way",
        "undecided between plain and guarded: no case differs in a required criterion, and 6 cases are too few to exclude a difference of 10 points",
        "guarded takes 5.6 % more input tokens and 4.5 % more output tokens than plain",
    ] {
        let wrapped = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(outcome.stdout.contains(said) || wrapped.contains(said), "{said}\n{}", outcome.stdout);
    }
    let page = project.run(&["compare", "reports/latest"]).expect_code(0).stdout.clone();
    assert!(page.contains("variants.html"), "{page}");
    let page = project.read(&format!("{}/variants.html", project.newest()));
    for said in [
        "Leave kb_id out: there is one knowledge base.</mark>",
        "Answers beside each other",
        "What does error E-17 mean?",
        "only <bdi>plain</bdi> fails",
    ] {
        assert!(page.contains(said), "{said}");
    }
    // The sentence is the same for one pair, and each page links to the other.
    let newest = project.newest();
    project.run(&["compare", &newest, &newest]).expect_code(0);
    assert!(project.read(&format!("{newest}/comparison.html")).contains("href=\"variants.html\""));
    project.run(&["compare", &newest]).expect_code(0);
    let page = project.read(&format!("{newest}/variants.html"));
    assert!(page.contains("href=\"comparison.html\"") && page.contains(">Undecided</span>"), "{page}");
}

#[test]
fn its_streams_were_recorded_piece_by_piece_with_the_time_to_the_first() {
    let project = Project::shipped();
    replay(&project, "local-model", "2");
    let (mut whole, mut streamed) = (0, 0);
    for trace in project.traces() {
        let variant = trace["lane"]["variant"].as_str().expect("a variant");
        let timed = trace.to_string().contains("\"first_token_us\":");
        assert_eq!(timed, variant == "streamed", "{}", trace["trial"]);
        *if timed { &mut streamed } else { &mut whole } += 1;
    }
    assert!(streamed >= 6 && whole >= 12, "{streamed} trials with streams, {whole} without");
}

//! What does not fit its recording is a miss: exit code 3, one message a cause, with what differs and what to do.

use super::project::{Outcome, Project};
use std::fs;

const SCENARIO: &str = "scenarios/knowledge.yaml";
const LANE: &str = "fixtures/cassettes/knowledge/valve-error/tool-rag.base.1.yaml";

fn valve(project: &Project) -> Outcome {
    project.run(&["run", SCENARIO, "--only", "valve-error"])
}

/// The items of what has no recording.
fn errors(outcome: &Outcome) -> Vec<&str> {
    outcome.stdout.split("\nNOT RECORDED ").skip(1).collect()
}

#[test]
fn a_deleted_exchange_is_named() {
    let project = Project::shipped();
    let text = project.read(LANE);
    let second = text.find("  - ordinal: 1\n").expect("a second exchange");
    let end = text.rfind("end: {").expect("the last line");
    project.write(LANE, &format!("{}{}", &text[..second], &text[end..]));
    let outcome = valve(&project);
    outcome.expect_code(3);
    assert!(outcome.stdout.contains("cassette miss"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("knowledge/valve-error/tool-rag.base.1"), "{}", outcome.stdout);

    let first = text.find("  - ordinal: 0\n").expect("a first exchange");
    project.write(LANE, &format!("{}{}", &text[..first], &text[second..]));
    let outcome = valve(&project);
    outcome.expect_code(3);
    assert!(outcome.stdout.contains("exchange 0 is missing from the cassette"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains(LANE), "the file is not named: {}", outcome.stdout);
}

#[test]
fn one_changed_word_of_the_system_prompt_is_one_message_with_the_word_and_the_number_of_trials() {
    let project = Project::shipped();
    let prompt = include_str!("../../src/flow/tool_rag/prompts/system.md");
    let word = "knowledge base";
    assert!(prompt.contains(word));
    project.write("scenarios/prompts/system.md", &prompt.replacen(word, "knowledge store", 1));
    project.edit(
        SCENARIO,
        "repeat: 3\n",
        "repeat: 3\nvariants:\n  base: {prompts: {system: {file: prompts/system.md}}}\n",
    );
    let outcome = project.run(&["run", SCENARIO]);
    outcome.expect_code(3);
    let messages = errors(&outcome);
    assert_eq!(messages.len(), 1, "{}", outcome.stdout);
    let message = messages[0];
    assert!(message.starts_with("cassette miss (24 trials)\n"), "{message}");
    assert!(message.contains("system prompt changed"), "{message}");
    let (old, new) = (message.find("\n  - "), message.find("\n  + "));
    assert!(old < new && old.is_some(), "{message}");
    assert!(message.contains("knowledge store"), "{message}");
    assert!(message.contains("ragcheck cassette refresh --missed --yes"), "{message}");
    assert!(outcome.stdout.contains("incomplete: 24 of "), "{}", outcome.stdout);
}

#[test]
fn the_prompt_that_is_written_out_word_for_word_is_no_change() {
    let project = Project::shipped();
    project.write("scenarios/prompts/system.md", include_str!("../../src/flow/tool_rag/prompts/system.md"));
    project.edit(
        SCENARIO,
        "repeat: 3\n",
        "repeat: 3\nvariants:\n  base: {prompts: {system: {file: prompts/system.md}}}\n",
    );
    let outcome = valve(&project);
    assert!(outcome.stdout.contains("3 trials: 3 PASS"), "{}", outcome.stdout);
}

#[test]
fn a_changed_passage_is_a_miss_that_names_the_passage_and_shows_the_change() {
    let project = Project::shipped();
    project.edit("fixtures/knowledge/fernlight/error-codes.md", "38 to 46 ohms", "38 to 48 ohms");
    let outcome = valve(&project);
    outcome.expect_code(3);
    assert_eq!(errors(&outcome).len(), 1, "{}", outcome.stdout);
    assert!(outcome.stdout.contains("knowledge changed: passage error-codes#3"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("48 ohms"), "{}", outcome.stdout);
}

/// The trials that one more document disturbs: those that find it, and others. Every one is a miss that says why.
fn disturbed_by(name: &str, text: &str) -> (usize, usize) {
    let project = Project::shipped();
    project.write(&format!("fixtures/knowledge/fernlight/{name}.md"), text);
    let outcome = project.run(&["run"]);
    let (mut finding, mut others) = (0, 0);
    assert!(project.path("reports").is_dir(), "{}\n{}", outcome.stdout, outcome.stderr);
    for group in project.latest("run.json")["errors"].as_array().expect("errors") {
        let message = group["message"].as_str().expect("a message");
        assert!(message.ends_with("knowledge changed: the search finds other passages"), "{message}");
        let mut lines = group["detail"].as_array().expect("a detail").iter().filter_map(|line| line.as_str());
        let now = lines.find(|line| line.starts_with("+ found ")).expect("what is found now");
        let trials = group["trials"].as_array().map_or(0, Vec::len);
        *if now.contains(&format!("{name}#")) { &mut finding } else { &mut others } += trials;
    }
    outcome.expect_code(if finding + others == 0 { 0 } else { 3 });
    (finding, others)
}

#[test]
fn a_new_passage_that_shares_no_searched_word_disturbs_no_recording() {
    let wort =
        "# Zymurgy\n\n## Wort\n\nMashing barley yields fermentable wort; hopped brews mature inside oaken casks.\n";
    assert_eq!(disturbed_by("zymurgy", wort), (0, 0));
}

#[test]
fn a_new_passage_on_the_subject_disturbs_the_trials_that_find_it_and_few_others() {
    let barrels = "# Rain barrels\n\n## Filling a barrel\n\nA RainGate valve fills a rain barrel of 300 litres \
                   within an hour. The float switch tells the controller when the barrel is full, and the valve closes.\n";
    let (finding, others) = disturbed_by("barrels", barrels);
    assert!(finding > 0, "nothing finds it, so it is no test");
    // The others search for a word that the new passage made less rare: the fourth, sixteenth, … to hold it.
    assert!(others * 15 < 346, "{others} trials are disturbed and do not find it, {finding} do");
}

#[test]
fn what_is_written_about_a_miss_does_not_depend_on_where_the_project_is() {
    let project = Project::shipped();
    project.edit("fixtures/knowledge/fernlight/error-codes.md", "38 to 46 ohms", "38 to 48 ohms");
    let broken = "fixtures/cassettes/knowledge/firewall/tool-rag.base.1.yaml";
    project.edit(broken, "    service: \"model\"\n", "    service: \"model\n");
    let outcome = project.run(&["run", SCENARIO]);
    outcome.expect_code(3);
    let here = project.path("").display().to_string();
    for (name, bytes) in project.report("reports/latest") {
        assert!(!String::from_utf8_lossy(&bytes).contains(&here), "{name} holds a path of this machine");
    }
    assert!(outcome.stdout.contains(&format!("{broken}:")), "{}", outcome.stdout);
    assert!(outcome.stdout.contains(&format!("nearest: {LANE} exchange 1")), "{}", outcome.stdout);
}

#[test]
fn a_missing_lane_names_the_command_that_records_it() {
    let project = Project::shipped();
    fs::remove_file(project.path(LANE)).expect("the lane");
    let outcome = valve(&project);
    outcome.expect_code(3);
    assert!(outcome.stdout.contains("NOT RECORDED lane missing (1 trial)"), "{}", outcome.stdout);
    assert!(
        outcome
            .stdout
            .contains("ragcheck cassette refresh --missed --yes scenarios/knowledge.yaml --only valve-error\n"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn missing_lanes_of_several_cases_are_one_message_with_one_command_that_selects_exactly_them() {
    let project = Project::shipped();
    for case in ["valve-error", "firewall"] {
        fs::remove_dir_all(project.path(&format!("fixtures/cassettes/knowledge/{case}"))).expect("the case");
    }
    let outcome = project.run(&["run", SCENARIO]);
    outcome.expect_code(3);
    let messages = errors(&outcome);
    assert_eq!(messages.len(), 1, "{}", outcome.stdout);
    assert!(messages[0].contains("ragcheck cassette refresh --missed --yes scenarios/knowledge.yaml\n"));
    // The same selection in replay: what was missing is run again, and stands beside the others.
    let outcome = project.run(&["run", SCENARIO, "--failed"]);
    assert!(outcome.stdout.contains("24 trials: 18 PASS, 6 ERROR"), "{}", outcome.stdout);
}

#[test]
fn a_hand_edited_answer_is_replayed_and_judged() {
    let project = Project::shipped();
    let text = project.read(LANE);
    let answer = text.find("name: \"generate_response\"").expect("the answer");
    let (before, after) = text.split_at(answer);
    assert!(after.contains("38 to 46 ohms"));
    project.write(LANE, &format!("{before}{}", after.replace("38 to 46 ohms", "no ohms at all")));
    let outcome = valve(&project);
    assert!(outcome.stdout.contains("2 PASS, 1 FAIL"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("knowledge/valve-error/tool-rag.base.1"), "{}", outcome.stdout);
    assert!(outcome.code == 1, "{}", outcome.stdout);
}

#[test]
fn a_broken_cassette_says_file_line_and_column() {
    let project = Project::shipped();
    project.edit(LANE, "    service: \"model\"\n", "    service: \"model\n");
    let outcome = valve(&project);
    outcome.expect_code(3);
    let place = regex::Regex::new(r"valve-error/tool-rag\.base\.1\.yaml:\d+:\d+").expect("a pattern");
    assert!(place.is_match(&outcome.stdout), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("cassette broken") || outcome.stdout.contains("broken"), "{}", outcome.stdout);
    assert!(
        outcome.stdout.contains("ragcheck cassette refresh --missed --yes scenarios/knowledge.yaml --only valve-error"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn a_recording_that_nobody_asked_for_is_noted() {
    let project = Project::shipped();
    let text = project.read(LANE);
    let last = text.rfind("  - ordinal: ").expect("an exchange");
    let end = text.rfind("end: {").expect("the last line");
    let extra = text[last..end].replacen("  - ordinal: 1", "  - ordinal: 9", 1).replacen("key: \"", "key: \"f", 1);
    project.write(LANE, &format!("{}{extra}{}", &text[..end], &text[end..]));
    let outcome = valve(&project);
    assert!(outcome.stderr.contains("1 recorded exchange was not asked for"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(LANE), "{}", outcome.stderr);
}

//! Logs of the agent of a scenario: which conversation is of which case, and what of the case each of them has to meet.

use super::project::{Outcome, Project};
use serde_json::{Value, json};

/// A project with the provider of the scenario.
const PROJECT: &str = "providers: {simulator: {dialect: openai-chat, base_url: \"http://127.0.0.1:8091/model/v1\"}}\n";

/// A scenario with these cases, as JSON.
fn agent(project: &Project, cases: &Value) {
    project.write(
        "agent.yaml",
        &format!(
            "scenario: agent\nflow: external\ntarget: {{http: \"http://127.0.0.1:8100/chat\"}}\nmodel: {{provider: simulator, name: m}}\n\
             roles: {{knowledge: search}}\ncases: {cases}\n"
        ),
    );
}

fn import(project: &Project, log: &[Value]) -> Outcome {
    let lines: Vec<String> = log.iter().map(|one| format!("{one}\n")).collect();
    project.write("log.jsonl", &lines.concat());
    project.run(&["score", "--import", "log.jsonl", "--scenario", "agent.yaml"])
}

/// The verdicts of the trials, in plan order.
fn verdicts(project: &Project) -> Vec<String> {
    let run = project.latest("run.json");
    let trials = run["trials"].as_array().expect("trials").iter();
    trials.map(|trial| trial["verdict"].as_str().expect("a verdict").to_owned()).collect()
}

/// A trace of that case with a turn for each question and answer, without calls.
fn trace(case: &str, turns: &[(&str, &str)]) -> Value {
    let turn = |(asked, answer): &(&str, &str)| json!({"message": asked, "calls": [], "answer": {"text": answer, "sources": []}});
    let turns: Vec<Value> = turns.iter().map(turn).collect();
    json!({"case": case, "conversations": [{"turns": turns}]})
}

fn deposit() -> Value {
    json!([{"case": "deposit", "ask": "How much?", "expect": {"answer": {"contains": ["80"]}}},
        {"case": "return", "ask": "When?", "expect": {"answer": {"contains": ["5 pm"]}}}])
}

#[test]
fn a_conversation_is_of_a_case_in_any_letter_case_and_with_the_scenario_before_it() {
    let project = Project::starter();
    agent(&project, &deposit());
    for name in ["deposit", "Deposit", "agent/deposit"] {
        let outcome = import(&project, &[trace(name, &[("How much?", "90")])]);
        outcome.expect_code(1);
        assert_eq!(verdicts(&project), ["FAIL"], "{name}");
        let note = "no conversation is of these cases, so what they expect is not checked: `return`";
        assert!(outcome.stderr.contains(note), "{}", outcome.stderr);
    }
}

#[test]
fn a_log_that_names_no_case_measures_none_of_what_the_scenario_expects_and_does_not_pass() {
    let project = Project::starter();
    project.write("ragcheck.yaml", &format!("{PROJECT}scenarios: [agent.yaml]\n"));
    agent(&project, &deposit());
    let log: Vec<Value> = (0..60).map(|number| trace("other", &[("How much?", &format!("{number}"))])).collect();
    let outcome = import(&project, &log);
    outcome.expect_code(1);
    assert!(outcome.stderr.contains("not checked: `deposit`, `return`\n"), "{}", outcome.stderr);
    let gate = project.latest("run.json")["gates"][0].clone();
    assert_eq!(
        (&gate["id"], &gate["verdict"], &gate["required"]),
        (&json!("cases"), &json!("NOT_MEASURED"), &json!(true))
    );
    project.edit("agent.yaml", "cases:", "gates: []\ncases:");
    import(&project, &log).expect_code(0);
}

#[test]
fn what_a_case_of_one_question_forbids_or_limits_holds_over_all_turns_of_a_longer_log() {
    let project = Project::starter();
    let case = |name: &str, expect: Value| json!({"case": name, "ask": "q", "expect": expect});
    agent(
        &project,
        &json!([
            case("never", json!({"calls": [{"never": "wipe"}]})),
            case("at-most", json!({"calls": [{"at_most": {"times": 0, "call": "wipe"}}]})),
            case("silent", json!({"answer": {"not_contains": ["secret"]}})),
            case("within", json!({"within": "2s"})),
            case("first", json!({"answer": {"contains": ["80"]}, "sources": {"at_least": 1}})),
            case("called", json!({"calls": [{"superset": ["wipe"]}]})),
        ]),
    );
    let log = |call: bool, last: &str, took_ms: u64| {
        ["never", "at-most", "silent", "within", "first", "called"].map(|name| {
            let mut trace = trace(name, &[("q", "It is 80."), ("and now?", last)]);
            let turns = &mut trace["conversations"][0]["turns"];
            turns[0]["answer"]["sources"] = json!([{"id": "a"}]);
            (turns[0]["took_ms"], turns[1]["took_ms"]) = (json!(100), json!(took_ms));
            if call {
                turns[1]["calls"] = json!([{"tool": "wipe", "arguments": {}, "outcome": "ok"}]);
            }
            trace
        })
    };
    import(&project, &log(false, "Bye.", 100));
    assert_eq!(verdicts(&project), ["PASS", "PASS", "PASS", "PASS", "PASS", "FAIL"]);
    import(&project, &log(true, "The secret is 5.", 9000));
    // What has to be done for the question was not done for it.
    assert_eq!(verdicts(&project), ["FAIL", "FAIL", "FAIL", "FAIL", "PASS", "FAIL"]);
}

#[test]
fn conversations_are_matched_by_their_names_and_an_unknown_one_is_an_error() {
    let project = Project::starter();
    let step = |name: &str, wanted: &str| json!({"conversation": {"name": name, "turns": [{"ask": "q", "expect": {"answer": {"contains": [wanted]}}}]}});
    agent(&project, &json!([{"case": "both", "sequence": [step("one", "1"), step("two", "2")]}]));
    let log = |all: &[(Option<&str>, &str)]| {
        let of = |(name, answer): &(Option<&str>, &str)| {
            let mut one = trace("both", &[("q", answer)])["conversations"][0].clone();
            one["name"] = json!(name);
            one
        };
        json!({"case": "both", "conversations": all.iter().map(of).collect::<Vec<_>>()})
    };
    for (all, verdict) in [
        (vec![(Some("one"), "1"), (Some("two"), "2")], "PASS"),
        (vec![(Some("two"), "2"), (Some("one"), "1")], "PASS"),
        (vec![(Some("two"), "1"), (Some("one"), "2")], "FAIL"),
        (vec![(None, "1"), (None, "2")], "PASS"),
        (vec![(Some("two"), "2")], "FAIL"),
        (vec![(Some("one"), "1"), (Some("zwei"), "2")], "ERROR"),
        (vec![(Some("one"), "1"), (Some("one"), "2")], "ERROR"),
    ] {
        let outcome = import(&project, &[log(&all)]);
        assert_eq!(verdicts(&project), [verdict], "{all:?} {}", outcome.stdout);
        if all.iter().any(|(name, _)| *name == Some("zwei")) {
            assert!(outcome.stderr.contains("is `zwei`: the case has one, two"), "{}", outcome.stderr);
        }
    }
}

#[test]
fn the_cost_of_a_case_is_that_of_the_projects_prices() {
    let project = Project::starter();
    project.write(
        "ragcheck.yaml",
        &format!("{PROJECT}scenarios: [agent.yaml]\nprices: {{simulator/m: {{input: 1, output: 2}}}}\n"),
    );
    let case = |name: &str, most: f64| json!({"case": name, "ask": "q", "expect": {"cost": {"at_most": most}}});
    agent(&project, &json!([case("dear", 3.0), case("cheap", 0.01), case("other", 3.0)]));
    let log = [("dear", "m"), ("cheap", "m-2026-01-02"), ("other", "n")].map(|(name, model)| {
        let mut trace = trace(name, &[("q", "So.")]);
        trace["conversations"][0]["turns"][0]["completions"] =
            json!([{"model": model, "input_tokens": 1_000_000, "cached_tokens": 0, "output_tokens": 500_000}]);
        trace
    });
    let outcome = import(&project, &log);
    assert_eq!(verdicts(&project), ["PASS", "FAIL", "ERROR"], "{}", outcome.stdout);
}

#[test]
fn a_result_that_is_marked_as_an_error_is_a_failed_call() {
    let project = Project::starter();
    agent(
        &project,
        &json!([{"case": "ran", "ask": "q", "expect": {"calls": [{"superset": [{"tool": "search", "outcome": "ok"}]}]}}]),
    );
    let call =
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "search", "input": {}}]});
    let anthropic = |failed: bool| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "is_error": failed, "content": "refused"}]});
    let bedrock = |status: &str| json!({"role": "user", "content": [{"toolResult": {"toolUseId": "1", "status": status, "content": [{"text": "refused"}]}}]});
    let langchain = |status: &str| json!({"type": "tool", "tool_call_id": "1", "status": status, "content": "refused"});
    for (result, verdict) in [
        (anthropic(true), "FAIL"),
        (anthropic(false), "PASS"),
        (bedrock("error"), "FAIL"),
        (bedrock("success"), "PASS"),
        (langchain("error"), "FAIL"),
        (langchain("success"), "PASS"),
    ] {
        let messages = json!([{"role": "user", "content": "q"}, call, result, {"role": "assistant", "content": "So."}]);
        import(&project, &[json!({"task_id": "ran", "messages": messages})]);
        assert_eq!(verdicts(&project), [verdict], "{result}");
    }
}

#[test]
fn reasoning_in_tags_and_invisible_characters_are_no_answer() {
    let project = Project::starter();
    agent(&project, &json!([{"case": "said", "ask": "q", "expect": {"answer": {"contains": ["80"]}}}]));
    for (answer, verdict) in [
        ("<think>80 euros?</think> I do not know.", "FAIL"),
        ("<think>Hm.</think>80.", "PASS"),
        ("<think>80</think>", "FAIL"),
        ("\u{200b}", "FAIL"),
    ] {
        let messages = json!([{"role": "user", "content": "q"}, {"role": "assistant", "content": answer}]);
        import(&project, &[json!({"task_id": "said", "messages": messages})]);
        assert_eq!(verdicts(&project), [verdict], "{answer}");
    }
}

#[test]
fn a_call_with_unknown_arguments_has_its_name_and_conditions_on_them_are_not_measured() {
    let project = Project::starter();
    let case = |name: &str, call: Value| json!({"case": name, "ask": "q", "expect": {"calls": [call]}});
    let forced = |value: bool| json!({"tool": "wipe", "arguments": {"force": {"equals": value}}});
    agent(
        &project,
        &json!([
            case("named", json!({"never": "wipe"})),
            case("absent", json!({"never": "other"})),
            case("forced", json!({"never": forced(true)})),
            case("needed", json!({"superset": [forced(true)]})),
            case("twice", json!({"superset": [forced(true), forced(false)]})),
        ]),
    );
    let log = |also: bool| {
        ["named", "absent", "forced", "needed", "twice"].map(|name| {
            let mut trace = trace(name, &[("q", "So.")]);
            let unknown = json!({"tool": "wipe", "outcome": "ok"});
            let known = json!({"tool": "wipe", "outcome": "ok", "arguments": {"force": true}});
            trace["conversations"][0]["turns"][0]["calls"] =
                if also { json!([unknown, known]) } else { json!([unknown]) };
            trace
        })
    };
    let outcome = import(&project, &log(false));
    assert_eq!(verdicts(&project), ["FAIL", "PASS", "ERROR", "ERROR", "FAIL"], "{}", outcome.stdout);
    assert!(project.latest("run.json").to_string().contains("does not show what wipe was called with"));
    import(&project, &log(true));
    assert_eq!(verdicts(&project), ["FAIL", "PASS", "FAIL", "PASS", "ERROR"]);
}

#[test]
fn a_conversation_with_a_reward_passes_with_the_full_one_and_what_its_case_expects() {
    let said = |answer: &str, reward: f64| json!({"task_id": "deposit", "reward": reward, "messages": [{"role": "user", "content": "How much?"}, {"role": "assistant", "content": answer}]});
    for (answer, reward, verdict) in [("80", 1.0, "PASS"), ("90", 1.0, "FAIL"), ("80", 0.0, "FAIL")] {
        let project = Project::starter();
        agent(&project, &deposit());
        import(&project, &[said(answer, reward)]);
        assert_eq!(verdicts(&project), [verdict], "{answer}, {reward}");
    }
}

//! Seeded defects of the agent that reasons and acts: each fails its own criterion, and no other but those that it is
//! declared to fail too. Every requirement of the agent has a case, and every trial of those cases passes.

use super::project::{Project, whole};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const SCENARIOS: [&str; 7] =
    ["react", "react-budget", "react-down", "react-limits", "react-prompts", "react-slow", "react-window"];

/// Every criterion of the flow.
const CRITERIA: [&str; 22] = [
    "searched", "own-words", "answers-cite", "supported-facts", "other-words", "style-length", "direct", "estimates",
    "remembered", "five-steps", "reasoned-searches", "approach-changes", "lessons-reach-retries",
    "failures-in-context", "relevant-citations", "compaction-saves", "compaction-keeps", "degradations-told",
    "budget-kept", "state-stored", "flags", "states",
];

/// A defect: what it is, the case that it is seeded into, what is done to the events, and the criterion that it fails.
type Defect = (&'static str, &'static str, fn(&mut Vec<Value>), &'static str);

const DEFECTS: [Defect; 18] = [
    ("a sixth step", "five-steps", |events| sixth_step(events), "five-steps"),
    (
        "a search without a reason",
        "one-step",
        |events| events.retain(|event| entry(event, "thought").is_none()),
        "reasoned-searches",
    ),
    (
        "a search without a status",
        "one-step",
        |events| events.retain(|event| entry(event, "status").is_none()),
        "reasoned-searches",
    ),
    (
        "an efficiency of no search",
        "one-step",
        |events| each(events, "efficiency", |one| one["useful"] = json!(0)),
        "five-steps",
    ),
    ("the same approach thrice", "irrelevant-twice", |events| same_approach(events), "approach-changes"),
    ("a lesson not passed on", "irrelevant-results", |events| hide(events, "reflection"), "lessons-reach-retries"),
    (
        "a lesson not drawn",
        "irrelevant-results",
        |events| events.retain(|event| entry(event, "reflection").is_none()),
        "lessons-reach-retries",
    ),
    (
        "an error without its context",
        "wrong-parameters",
        |events| each(events, "failure", |failure| failure["context"] = json!({})),
        "failures-in-context",
    ),
    ("an irrelevant source cited", "partly-relevant", |events| irrelevant_source(events), "relevant-citations"),
    (
        "a compaction that saves too little",
        "long-conversation",
        |events| each(events, "compacted", |one| one["after"] = one["before"].clone()),
        "compaction-saves",
    ),
    ("a decision lost in compaction", "long-conversation", |events| decision_lost(events), "compaction-keeps"),
    ("what was said before it forgotten", "long-conversation", |events| forgotten(events), "remembered"),
    ("a notice withheld", "nothing-found", |events| withheld(events), "degradations-told"),
    (
        "a budget passed",
        "budget-used-up",
        |events| each(events, "used", |used| used["session_input"] = json!(99_999_999)),
        "budget-kept",
    ),
    (
        "a total that is no sum",
        "one-step",
        |events| each(events, "used", |used| used["session_output"] = json!(0)),
        "budget-kept",
    ),
    ("a flag turned", "one-step", |events| flag_turned(events), "flags"),
    (
        "a state not stored",
        "one-step",
        |events| events.retain(|event| entry(event, "persisted").is_none_or(|one| one["state"] != "observing")),
        "state-stored",
    ),
    (
        "a restart at another place",
        "killed-in-observing",
        |events| each(events, "restored", |one| one["state"] = json!("answering")),
        "state-stored",
    ),
];

/// The entry of that kind that an event is.
fn entry<'a>(event: &'a Value, kind: &str) -> Option<&'a Value> {
    event["what"]["logged"].get(kind)
}

/// Changes each entry of a kind.
fn each(events: &mut [Value], kind: &str, change: fn(&mut Value)) {
    events.iter_mut().filter_map(|event| event.pointer_mut("/what/logged")?.get_mut(kind)).for_each(change);
}

fn flag_turned(events: &mut [Value]) {
    for answer in events.iter_mut().filter_map(|event| event.pointer_mut("/what/turn_ended/outcome/answered")) {
        answer["used_external_kb"] = json!(true);
    }
}

/// Adds a step that reasons, says so and searches behind the last one.
fn sixth_step(events: &mut Vec<Value>) {
    let searched = events.iter().rposition(|event| event["what"]["tool_called"]["outcome"]["ok"]["search"].is_object());
    let thought = events.iter().rposition(|event| entry(event, "thought").is_some());
    let (searched, thought) = (searched.expect("a search"), thought.expect("a thought"));
    let (mut search, mut thought) = (events[searched].clone(), events[thought].clone());
    search["what"]["tool_called"]["call"] = json!(1000);
    thought["what"]["logged"]["thought"]["step"] = json!(6);
    let status = events.iter().find(|event| entry(event, "status").is_some()).expect("a status").clone();
    events.splice(searched + 1..=searched, [status, thought, search]);
}

fn same_approach(events: &mut [Value]) {
    for kind in ["thought", "failure"] {
        each(events, kind, |one| one["approach"] = json!("direct"));
    }
}

/// Shows no completion the message that entries of a kind name.
fn hide(events: &mut [Value], kind: &str) {
    let hidden: Vec<Value> = events.iter().filter_map(|event| Some(entry(event, kind)?["shown"].clone())).collect();
    assert!(!hidden.is_empty(), "{kind}");
    for event in events {
        if let Some(shown) = event.pointer_mut("/what/model_called/shown").and_then(Value::as_array_mut) {
            shown.retain(|one| !hidden.contains(one));
        }
        // The log of an error says the same.
        if let Some(shown) = event.pointer_mut("/what/logged/failure/context/shown").and_then(Value::as_array_mut) {
            shown.retain(|one| !hidden.contains(one));
        }
    }
}

fn decision_lost(events: &mut [Value]) {
    let at = events.iter().position(|event| entry(event, "compacted").is_some_and(|one| one["done"] == true));
    let (before, after) = events.split_at_mut(at.expect("a compaction"));
    let decision = before.iter().find_map(|event| entry(event, "noted")).expect("a decision")["shown"].clone();
    for event in after {
        if let Some(shown) = event.pointer_mut("/what/model_called/shown").and_then(Value::as_array_mut) {
            shown.retain(|one| *one != decision);
        }
    }
}

/// Takes what the last question is about out of the answers.
fn forgotten(events: &mut [Value]) {
    for answer in events.iter_mut().filter_map(|event| event.pointer_mut("/what/turn_ended/outcome/answered/text")) {
        *answer = json!(answer.as_str().expect("a text").replace("GL-4417", "it"));
    }
}

fn irrelevant_source(events: &mut [Value]) {
    let graded = events.iter().filter_map(|event| entry(event, "graded"));
    let irrelevant = graded.flat_map(|one| one["irrelevant"].as_array().expect("a list")).next();
    let source = json!({"kind": "internal", "id": irrelevant.expect("an irrelevant passage"), "title": ""});
    let answer = events.iter_mut().rev().find_map(|event| event.pointer_mut("/what/turn_ended/outcome/answered"));
    answer.expect("an answer")["sources"].as_array_mut().expect("a list").push(source);
}

fn withheld(events: &mut [Value]) {
    let answers = events.iter_mut().filter_map(|event| event.pointer_mut("/what/turn_ended/outcome/answered"));
    for answer in answers {
        let text = answer["text"].as_str().expect("a text").split("\n\nNote: ").next().expect("a beginning").to_owned();
        answer["text"] = json!(text);
    }
}

/// The criteria of the flow that are judged so in the newest run.
fn with(project: &Project, verdict: &str) -> BTreeSet<String> {
    let run = project.latest("run.json");
    let rows: Vec<Value> =
        ["criteria", "gates", "self_tests"].iter().flat_map(|key| run[key].as_array().expect(key).clone()).collect();
    let of = |row: &&Value| row["verdict"] == verdict;
    let ids = rows.iter().filter(of).filter_map(|row| row["id"].as_str()?.rsplit('/').next());
    ids.filter(|id| CRITERIA.contains(id) || *id == "cases").map(str::to_owned).collect()
}

#[test]
fn each_seeded_defect_fails_its_own_criterion_and_no_other_beside_the_cases() {
    let project = Project::shipped();
    let files = SCENARIOS.map(|name| format!("scenarios/{name}.yaml"));
    let arguments: Vec<&str> = ["run", "--no-history"].into_iter().chain(files.iter().map(String::as_str)).collect();
    let outcome = project.run(&arguments);
    let passed = with(&project, "PASS");
    assert!(CRITERIA.iter().all(|id| passed.contains(*id)), "{passed:?}\n{}", outcome.stdout);
    let folder = project.newest();
    let sound = project.read(&format!("{folder}/traces.jsonl"));
    for (defect, case, seed, own) in DEFECTS {
        let mut seeded = 0;
        let lines = sound.lines().map(|line| {
            let mut trace: Value = serde_json::from_str(line).expect("a trace");
            if trace["case"] != case || trace["lane"]["repetition"] != 1 {
                return line.to_owned();
            }
            seed(trace["events"].as_array_mut().expect("events"));
            seeded += 1;
            trace.to_string()
        });
        let changed = lines.collect::<Vec<_>>().join("\n");
        assert!(seeded == 1 && changed.trim() != sound.trim(), "{defect} is seeded");
        project.write(&format!("{folder}/traces.jsonl"), &format!("{changed}\n"));
        let outcome = project.run(&["score", &folder]);
        let mut failed = with(&project, "FAIL");
        // A defect may fail the gate on cases too, where a case expects what it breaks: that is the declared list.
        failed.remove("cases");
        assert_eq!(failed, BTreeSet::from([own.to_owned()]), "{defect}\n{}", outcome.stdout);
    }
}

#[test]
fn every_requirement_of_the_agent_has_a_case_and_all_trials_of_those_cases_pass() {
    // What the document has: acceptance criteria of each of its eleven requirements.
    let written = [7, 6, 6, 5, 5, 4, 5, 5, 5, 5, 5];
    let wanted: BTreeSet<String> =
        (1..).zip(written).flat_map(|(group, most)| (1..=most).map(move |one| format!("KL-{group}.{one}"))).collect();
    let (project, _) = whole();
    let run = project.latest("run.json");
    let rows = run["requirements"].as_array().expect("requirements");
    let known: BTreeSet<String> = rows
        .iter()
        .filter_map(|row| row["id"].as_str())
        .filter(|id| id.starts_with("KL-"))
        .map(str::to_owned)
        .collect();
    assert_eq!(known, wanted);
    for row in rows.iter().filter(|row| row["id"].as_str().is_some_and(|id| id.starts_with("KL-"))) {
        let cases = row["cases"].as_array().expect("cases");
        assert!(!cases.is_empty(), "no case covers {}", row["id"]);
        for case in cases {
            let (passed, ran) = (case["passed"].as_u64(), case["trials"].as_u64());
            assert!(passed == ran && ran > Some(0), "{}: {case}", row["id"]);
        }
    }
}

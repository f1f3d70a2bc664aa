//! Held services: the model is live, and a recording answers for everything else, as far as it has the request.

use super::project::{Outcome, Project};
use super::simulator::{Simulator, recording};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Cases of the shipped suite that ask the search service.
const OUTSIDE: [&str; 14] = [
    "run", "scenarios/external.yaml", "--only=feed-in-tariff", "--only=lamp-flicker", "--only=frost-forecast",
    "--repeat=1", "--jobs=8", "--no-history", "--mode", "live", "--hold", "search", "--on-new", "fail",
];
const TOPICS: [&str; 8] = ["frost", "tariff", "virus", "hosepipe", "recall", "subsidy", "strike", "permit"];
/// A sentence of the shipped prompt; without it, the simulated model of these tests forgets to answer by its tool.
const WORDS: &str = "Text that you write outside a tool call is lost";

/// Has nobody answer where the search service was.
pub fn without_search(project: &Project, simulator: &Simulator) {
    let address = |of: &str| format!("dialect: perplexity-agent\n    base_url: http://{of}\n");
    let text = project.read("ragcheck.yaml");
    assert!(text.contains(&address(&simulator.address)), "{text}");
    project.write("ragcheck.yaml", &text.replace(&address(&simulator.address), &address("127.0.0.1:9")));
}

/// Every attempt of a trace: the turn, what asked, and how it is marked.
fn attempts(trace: &Value) -> Vec<(u64, String, Option<String>)> {
    let mut found = Vec::new();
    for event in trace["events"].as_array().expect("events") {
        let (what, called) = event["what"].as_object().and_then(|what| what.iter().next()).expect("what");
        let what = called["tool"].as_str().unwrap_or(what).to_owned();
        for attempt in called["attempts"].as_array().into_iter().flatten() {
            let turn = event["turn"].as_u64().expect("a turn");
            found.push((turn, what.clone(), attempt["held"].as_str().map(str::to_owned)));
        }
    }
    found
}

/// A trace without measured times, and without the day of the run.
pub(super) fn timeless(mut value: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.retain(|name, _| !name.ends_with("_us") && name != "digest");
                members.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    value
}

/// Traces without the id of their plan: that of a recording names what was held, and that of its replay does not.
fn of_any_plan(mut traces: Vec<Value>) -> Vec<Value> {
    for name in ["plan", "digest"] {
        for trace in &mut traces {
            trace[name] = Value::Null;
        }
    }
    traces
}

fn bytes(project: &Project) -> String {
    project.traces().into_iter().map(|trace| format!("{}\n", timeless(trace))).collect()
}

#[test]
fn held_against_held_with_nothing_changed_is_equal_to_the_byte_and_asks_the_model_alone() {
    let (project, simulator) = recording();
    without_search(&project, &simulator);
    let outcome = project.run(&OUTSIDE);
    let run = project.latest("run.json");
    let held = &run["held"];
    assert!(outcome.code == 0 && held["held"].as_u64() > Some(2), "{}{}", outcome.stdout, outcome.stderr);
    assert_eq!((&held["held"], &held["new"], &held["forced"]), (&held["calls"], &json!(0), &json!(0)), "{held}");
    assert!(outcome.stdout.contains(&format!("held {0} of {0} calls", held["held"])), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("not held, because they run inside the agent: "), "{}", outcome.stdout);
    assert!(held["acted"]["index_keywords"].as_u64() > Some(0), "{held}");
    for trace in project.traces() {
        for (_, what, mark) in attempts(&trace) {
            let expected = (what == "perplexity_search").then_some("recorded");
            assert_eq!(mark.as_deref(), expected, "{what} of {}", trace["trial"]);
        }
        assert_eq!(trace["evidence"]["held"]["new"], 0);
    }
    // Its times are none: part of them is of another day.
    let timed = run["criteria"].as_array().expect("criteria").iter().find(|row| row["id"] == "SC-005").expect("SC-005");
    assert_eq!((&timed["n"], &timed["verdict"]), (&json!(0), &json!("NOT_MEASURED")), "{timed}");
    let kinds: Vec<&Value> = run["latency"].as_array().expect("rows").iter().map(|row| &row["kind"]).collect();
    assert!(kinds.iter().all(|kind| kind.as_str().is_some_and(|kind| kind.starts_with("held"))), "{kinds:?}");
    for file in ["index.html", "traces.jsonl"] {
        assert!(project.read(&format!("{}/{file}", project.newest())).contains("held"), "{file}");
    }
    let before = bytes(&project);
    // Without the first run's folder: beside it, its draws would count, and the second run would show them again.
    std::fs::remove_dir_all(project.path("reports")).expect("removed");
    project.run(&OUTSIDE).expect_code(0);
    assert_eq!(bytes(&project), before);
}

#[test]
fn what_is_not_recorded_is_a_miss_or_is_asked_and_the_run_says_in_which_cases() {
    let project = Project::shipped();
    project.edit("fixtures/simulator/fernlight.yaml", "pace: real", "pace: declared");
    project.edit("fixtures/simulator/fernlight.yaml", "current rates small roofs", "current rates of small roofs");
    let _simulator = Simulator::start(&project, "fixtures/simulator/fernlight.yaml");
    let outcome = project.run(&OUTSIDE);
    let run = project.latest("run.json");
    assert_eq!(run["errors"][0]["trials"], json!(["external/feed-in-tariff/tool-rag.base.1"]), "{}", outcome.stdout);
    assert!(run["errors"][0].to_string().contains("--on-new live"), "{}", run["errors"][0]);

    let mut asking = OUTSIDE;
    asking[13] = "live";
    let outcome = project.run(&asking);
    assert!(outcome.stdout.contains("; 1 new, in 1 case"), "{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(project.latest("run.json")["held"]["new_in"], json!(["external/feed-in-tariff"]));
}

#[test]
fn what_was_recorded_before_a_turn_is_served_by_position_where_a_changed_prompt_makes_the_request_differ() {
    let project = Project::shipped();
    let scenario = "scenario: mine\nflow: tool-rag\nknowledge: fernlight\nmodel: {provider: simulator, name: any}\n\
                    VARIANTScases:\n  - case: one\n    turns:\n      - ask: How long does the warranty of the Canopy \
                    last?\n      - ask: And how long does that of the Sprig last?\n        expect: {answer: {matches: \
                    [months]}}\n";
    project.write("mine.yaml", &scenario.replace("VARIANTS", ""));
    project.edit("fixtures/simulator/fernlight.yaml", "pace: real", "pace: declared");
    let _simulator = Simulator::start(&project, "fixtures/simulator/fernlight.yaml");
    project.run(&["run", "mine.yaml", "--mode", "record", "--no-history"]);
    let prompt = include_str!("../../src/flow/tool_rag/prompts/system.md");
    project.write("prompts/system.md", &format!("{prompt}\nBe brief.\n"));
    let changed = "variants:\n  base: {prompts: {system: {file: prompts/system.md}}}\n";
    project.write("mine.yaml", &scenario.replace("VARIANTS", changed));
    let outcome = project.run(&["run", "mine.yaml", "--mode", "live", "--from", "2", "--no-history"]);
    let marks = attempts(&project.traces()[0]);
    let of = |turn: u64| marks.iter().filter(|one| one.0 == turn).map(|one| one.2.as_deref()).collect::<Vec<_>>();
    assert!(!of(0).is_empty() && of(0).iter().all(|mark| *mark == Some("forced")), "{marks:?}{}", outcome.stderr);
    assert!(!of(1).is_empty() && of(1).iter().all(Option::is_none), "{marks:?}");
    let held = format!("held {0} of {0} calls ({0} forced)", of(0).len());
    assert!(outcome.stdout.contains(&held), "{held}: {}", outcome.stdout);
    let late = project.run(&["run", "mine.yaml", "--mode", "live", "--from", "3"]);
    assert!(late.stderr.contains("the longest selected case has 2 turns"), "{}", late.stderr);
}

#[test]
fn what_cannot_be_held_is_refused_with_a_suggestion_before_anything_is_asked() {
    let project = Project::shipped();
    let run = |more: &[&str]| project.run(&[&["run", "scenarios/external.yaml"], more].concat());
    for (arguments, expected) in [
        (&["--mode", "live", "--hold", "serch"][..], "did you mean `search`? known: "),
        (&["--mode", "live", "--hold", "search,model"], "the model is what a held run asks"),
        (&["--mode", "live", "--hold", "tools"], "functions inside the agent run for real"),
        (&["--hold", "search"], "add --mode live or --mode record"),
        (&["--from", "2"], "add --mode live or --mode record"),
        (&["--mode", "live", "--from", "1"], "1 is not in 2.."),
        (&["--mode", "live", "--on-new", "fail"], "--hold"),
    ] {
        let outcome = run(arguments);
        assert!(outcome.code == 2 && outcome.stderr.contains(expected), "{arguments:?}: {}", outcome.stderr);
    }
    // A group that only some scenarios have is held there.
    let simulator = Simulator::start(&project, "fixtures/simulator/fernlight.yaml");
    drop(simulator);
    let outcome = run(&["--mode", "live", "--hold", "search,knowledge", "--only=feed-in-tariff", "--repeat=1"]);
    assert!(outcome.stderr.contains("--hold knowledge: no selected scenario has such a service"), "{}", outcome.stderr);
}

/// Eight cases that search outside, the shipped prompt and one without a sentence that matters.
fn two_prompts(seed: u32) -> (Project, Simulator) {
    let project = Project::shipped();
    let prompt = include_str!("../../src/flow/tool_rag/prompts/system.md");
    assert!(prompt.contains(WORDS));
    project.write("brief.md", &prompt.replace(WORDS, "Text outside a tool call is fine"));
    let mut scenario =
        "scenario: mine\nflow: tool-rag\nknowledge: fernlight\nmodel: {provider: simulator, name: any}\n\
                        search: {provider: simulator-search, name: perplexity/sonar}\nvariants:\n  base: {asks_for: \
                        [use-response-tool]}\n  brief: {asks_for: [], prompts: {system: {file: brief.md}}}\ncases:\n"
            .to_owned();
    let mut rules = String::new();
    for topic in TOPICS {
        let _ = write!(
            scenario,
            "  - case: {topic}\n    ask: What is the latest on the {topic}?\n    expect: {{answer: {{matches: \
             ['figures|remarks']}}, retries: [{{account: model, at_most: 0}}]}}\n"
        );
        let _ = writeln!(
            rules,
            "    - {{when: {{asks: {topic}}}, sufficient: false, external_query: latest report on {topic} in the county, \
             keywords: [{topic} report, latest {topic}, county {topic}]}}"
        );
    }
    project.write("mine.yaml", &scenario);
    project.write(
        "one.yaml",
        "about: One.\ncriteria:\n  - {id: ASKED, about: Every query searches, metric: mandatory_call_rate(knowledge), \
         target: '= 100%', kind: invariant, required: false}\n",
    );
    let rates = "source: Invented for a test.\nhabits: {forget_response: 0.1}\nunless_asked:\n  - {rule: use-response-tool, \
         habits: {forget_response: 0.7}}\n";
    project.write("forgetful-rates.yaml", rates);
    let behaviour = format!(
        "name: forgetful\nseed: {seed}\npace: declared\nmodel:\n  latency: {{constant: 5ms}}\n  rates: forgetful-rates.yaml\n  \
         rules:\n{rules}search:\n  \
         latency: {{constant: 5ms}}\n  topics:\n    - when: {{asks: '.'}}\n      answer: General remarks [1].\n      \
         results:\n        - {{title: General, url: 'https://encyclopedia.example.org/general', snippet: No figures.}}\n"
    );
    project.write("forgetful.yaml", &behaviour);
    let simulator = Simulator::start(&project, "forgetful.yaml");
    (project, simulator)
}

const MINE: [&str; 6] = ["run", "mine.yaml", "--criteria", "one.yaml", "--jobs=8", "--no-history"];

fn mine(project: &Project, more: &[&str]) -> Outcome {
    project.run(&[&MINE[..], more].concat())
}

/// Requests of the newest run that services answered.
fn paid(project: &Project) -> usize {
    let answered = |mark: &Option<String>| mark.as_deref().is_none_or(|mark| mark == "new");
    project.traces().iter().flat_map(attempts).filter(|(.., mark)| answered(mark)).count()
}

fn compared(project: &Project, a: &str, b: &str) -> (Value, String) {
    let outcome = project.run(&["compare", a, b, "--format", "json"]);
    let read = serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{}{}", outcome.stdout, outcome.stderr));
    (read, outcome.stderr)
}

/// Whether a comparison claims a difference in any row.
fn claims(found: &Value) -> bool {
    let rows = found["rows"].as_array().expect("rows");
    rows.iter().any(|row| row["finding"] == "worse" || row["finding"] == "better")
}

#[test]
fn a_worse_prompt_is_found_with_fewer_paid_calls_than_free_live_runs_need() {
    let (project, _simulator) = two_prompts(1);
    mine(&project, &["--mode", "record", "--variant", "base", "--repeat=1"]);
    let both = |more: &[&str]| {
        mine(&project, &[&["--mode", "live", "--repeat=5"][..], more].concat());
        let latest = project.newest();
        let (found, _) = compared(&project, &format!("{latest}@base"), &format!("{latest}@brief"));
        assert_eq!(found["regression"], true, "{}", found["conclusion"]);
        (paid(&project), found)
    };
    let (held, found) = both(&["--hold", "search"]);
    let notes = found["notes"].to_string();
    assert!(notes.contains("held services: ") && notes.contains("stayed within the recordings"), "{notes}");
    let rows = found["rows"].as_array().expect("rows").iter();
    let times: Vec<&Value> = rows.filter(|row| row["scale"] == "time").collect();
    assert!(times.len() == 2 && times.iter().all(|row| row["finding"] == "not_compared"), "{times:?}");
    let (free, _) = both(&[]);
    assert!(held * 10 < free * 9, "held {held}, free {free}");
    documented(&format!("{held} held, {free} free"));
}

#[test]
fn a_recording_made_with_held_services_is_whole_and_no_point_of_a_history() {
    let (project, simulator) = two_prompts(1);
    mine(&project, &["--mode", "record", "--variant", "base"]);
    without_search(&project, &simulator);
    let recorded = mine(&project, &["--mode", "record", "--hold", "search", "--on-new", "fail"]);
    let (theirs, run) = (project.traces(), project.latest("run.json"));
    assert_eq!((theirs.len(), &run["errors"]), (16, &json!([])), "{}{}", recorded.stdout, recorded.stderr);
    let lane = project.read("fixtures/cassettes/mine/frost/tool-rag.brief.1.yaml");
    for expected in ["\nheld:\n", "lane: \"tool-rag.base.1\"", "x-ragcheck-held: \"recorded\"", "search: \"simulator\""]
    {
        assert!(lane.contains(expected), "{expected}: {lane}");
    }
    drop(simulator);
    let replayed = mine(&project, &[]);
    assert_eq!(replayed.code, recorded.code, "{}", replayed.stdout);
    let again = project.traces();
    assert_eq!(again.len(), theirs.len());
    for (replayed, recorded) in of_any_plan(again).into_iter().zip(of_any_plan(theirs)) {
        assert_eq!(replayed, recorded);
    }
    assert_eq!(project.latest("run.json")["held"], run["held"]);
    let added = project.run(&["history", "add", "reports/latest"]);
    assert!(added.code != 0 && added.stderr.contains("services were held"), "{}{}", added.stdout, added.stderr);
}

/// The page states what was measured here: the simulator draws the same with the same seeds.
fn documented(figure: &str) {
    assert!(include_str!("../../docs/how-to/hold.md").contains(figure), "docs/how-to/hold.md does not say: {figure}");
}

/// Number of comparisons, among that many of two held runs on different seeds, that claim a difference.
fn claimed(times: u32) -> u32 {
    let (project, _simulator) = two_prompts(1);
    mine(&project, &["--mode", "record", "--variant", "base", "--repeat=1"]);
    let held = |seed: u32| {
        let seed = format!("--seed={seed}");
        mine(&project, &["--mode", "live", "--hold", "search", "--variant", "base", "--repeat=2", &seed]);
        project.newest()
    };
    let mut before = held(1);
    let mut claimed = 0;
    for seed in 2..times + 2 {
        let now = held(seed);
        claimed += u32::from(claims(&compared(&project, &before, &now).0));
        before = now;
    }
    claimed
}

#[test]
fn held_runs_on_different_seeds_rarely_differ() {
    let claimed = claimed(4);
    assert!(claimed <= 1, "{claimed} of 4");
}

#[test]
#[ignore = "101 live runs: .ci/slow"]
fn held_runs_on_different_seeds_differ_in_at_most_5_of_100() {
    let claimed = claimed(100);
    assert!(claimed <= 5, "{claimed} of 100");
    documented(&format!("a difference is claimed in {claimed} |"));
}

//! The flow that asks a managed retrieval service: seeded defects each fail their own criterion, secrets that the service
//! tells stand in no file, and the agents are compared pair by pair.

use super::project::{Outcome, Project};
use super::simulator::Simulator;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

const SCENARIO: &str = "scenarios/managed-rag.yaml";
const TOKEN: &str = "simulated-service-account-0451";
const ACCOUNT: &str = "simulated-account-number-0815";
/// Every gate of the flow, beside that on its cases.
const GATES: [&str; 11] = [
    "supported-facts", "markers-in-place", "one-number-a-page", "links-through-the-gateway", "versions-kept",
    "parameters-given", "answers-with-the-artifact", "nothing-found-is-said", "service-asked", "flags", "states",
];

/// The gates of the flow that failed in the newest run.
fn failed(project: &Project) -> BTreeSet<String> {
    let run = project.latest("run.json");
    let rows: Vec<Value> =
        ["gates", "self_tests"].iter().flat_map(|key| run[key].as_array().expect(key).clone()).collect();
    let known: Vec<&str> = rows.iter().filter_map(|row| row["id"].as_str()?.rsplit('/').next()).collect();
    assert!(GATES.iter().all(|gate| known.contains(gate)), "{known:?}");
    let failed = rows.iter().filter(|row| row["verdict"] == "FAIL");
    let failed = failed.filter_map(|row| Some(row["id"].as_str()?.rsplit('/').next()?.to_owned()));
    failed.filter(|gate| gate != "cases").collect()
}

/// The tool results of a trace that are an answer of the service, in order.
fn answers(trace: &mut Value) -> Vec<&mut Value> {
    let events = trace["events"].as_array_mut().expect("events").iter_mut();
    events.filter_map(|event| event.pointer_mut("/what/tool_called/outcome/ok/search/managed")).collect()
}

/// Replaces words in an artifact and in the answer that holds it.
fn reword(trace: &mut Value, from: &str, to: &str) {
    let content = answers(trace).remove(0)["artifact"]["content"].as_str().expect("an artifact").to_owned();
    assert!(content.contains(from), "{content}");
    *trace = serde_json::from_str(&trace.to_string().replace(&quoted(from), &quoted(to))).expect("JSON");
}

/// A text as it stands within a string of JSON.
fn quoted(text: &str) -> String {
    json!(text).to_string().trim_matches('"').to_owned()
}

/// A defect: what it is called, the case, how its traces look with it, its own criterion, and those that fall with it.
type Defect = (&'static str, &'static str, fn(&mut Value), &'static str, &'static [&'static str]);

const DEFECTS: [Defect; 6] = [
    (
        "a marker off by one code unit",
        "emoji",
        |trace| {
            let link = "[[1]](/gateway/download/codes/f/file/error-codes.pdf#page=3)";
            reword(trace, &format!("👨‍🔧{link}:"), &format!("👨‍🔧:{link}"));
        },
        "markers-in-place",
        &[],
    ),
    (
        "a token in a link",
        "past-the-end",
        |trace| reword(trace, "/network.pdf#page=5", "/network.pdf?token=abc#page=5"),
        "links-through-the-gateway",
        &[],
    ),
    (
        "two numbers for one page",
        "code-block",
        |trace| {
            reword(trace, "`ready`[[1]]", "`ready`[[2]]");
            let answer = answers(trace).remove(0);
            let mut second = answer["sources"][0].clone();
            second["number"] = json!(2);
            answer["sources"].as_array_mut().expect("sources").push(second);
        },
        "one-number-a-page",
        &[],
    ),
    (
        "a missing parameter accepted",
        "required-parameter-missing",
        |trace| {
            let events = trace["events"].as_array_mut().expect("events").iter_mut();
            for outcome in events.filter_map(|event| event.pointer_mut("/what/tool_called/outcome")) {
                let managed = json!({"status": "no_answer_found", "asked": "In : how much?", "text": ""});
                let search = json!({"query": "q", "kb_id": "fernlight-box", "hits": [], "without_learned": [], "managed": managed});
                *outcome = json!({"ok": {"search": search}});
            }
        },
        "parameters-given",
        // The answer of that turn speaks of the country, and not in the words of the refusal.
        &["nothing-found-is-said"],
    ),
    (
        "a version that takes the place of another",
        "versions",
        |trace| answers(trace).remove(1)["artifact"]["version"] = json!(1),
        "versions-kept",
        &[],
    ),
    (
        "an answer that retells the artifact",
        "two-files",
        |trace| {
            let events = trace["events"].as_array_mut().expect("events").iter_mut();
            let ended = events.filter_map(|event| event.pointer_mut("/what/turn_ended/outcome/answered/text"));
            ended.for_each(|text| *text = json!("Below 21 volts; take the original adapter, FL-1010."));
        },
        "answers-with-the-artifact",
        &[],
    ),
];

#[test]
fn each_seeded_defect_fails_its_own_criterion_and_no_other_beyond_those_declared() {
    let project = Project::shipped();
    project.run(&["run", SCENARIO, "--no-history"]);
    assert!(failed(&project).is_empty());
    let sound = project.read("reports/latest/traces.jsonl");
    let folder = std::fs::canonicalize(project.path("reports/latest")).expect("the run");
    for (name, case, seed, own, along) in DEFECTS {
        let mut seeded = 0;
        let mut lines = String::new();
        for line in sound.lines() {
            let mut trace: Value = serde_json::from_str(line).unwrap_or_default();
            if trace["case"] == case {
                seed(&mut trace);
                seeded += 1;
                lines.push_str(&trace.to_string());
            } else {
                lines.push_str(line);
            }
            lines.push('\n');
        }
        assert_eq!(seeded, 2, "{name}");
        std::fs::write(folder.join("traces.jsonl"), lines).expect("written");
        let outcome = project.run(&["score", "reports/latest"]);
        let expected: BTreeSet<String> = [own].iter().chain(along).map(|gate| (*gate).to_owned()).collect();
        assert_eq!(failed(&project), expected, "{name}\n{}", outcome.stdout);
    }
}

/// Runs the command as somebody who has the account.
fn run(project: &Project, simulator: &Simulator, arguments: &[&str]) -> Outcome {
    let host = &simulator.address;
    let trusted = format!("NUCLIA_TOKEN={host} NUCLIA_ACCOUNT={host}");
    let mut command = project.command(arguments);
    Outcome::of(command.env("NUCLIA_TOKEN", TOKEN).env("NUCLIA_ACCOUNT", ACCOUNT).env("RAGCHECK_TRUST", trusted))
}

/// The files below a folder that hold any of these texts.
fn holding(folder: &Path, texts: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(holding(&path, texts));
            continue;
        }
        let text = String::from_utf8_lossy(&std::fs::read(&path).expect("a file")).into_owned();
        found.extend(
            texts.iter().filter(|secret| text.contains(**secret)).map(|secret| format!("{}: {secret}", path.display())),
        );
    }
    found
}

#[test]
fn secrets_in_every_field_of_the_services_answers_stand_in_no_file() {
    let project = Project::shipped();
    let behaviour = "fixtures/simulator/fernlight.yaml";
    project.edit(behaviour, "pace: real", "pace: declared");
    project.edit(
        behaviour,
        "    codes:\n      name: error-codes.pdf\n      title: Error codes\n",
        &format!("    codes:\n      name: error-codes-{TOKEN}.pdf\n      title: Codes {ACCOUNT}\n"),
    );
    project.edit(behaviour, "E-17 says that a valve", &format!("{TOKEN} says that a valve"));
    project.edit(behaviour, "answer: E-17 means that", &format!("answer: E-17 of {TOKEN} and {ACCOUNT} means that"));
    project.edit(behaviour, "{type: confidence_of_tomorrow", &format!("{{type: of_{TOKEN}, note: {ACCOUNT}"));
    project.edit(behaviour, "details: the generative model is away", &format!("details: 'no {TOKEN} for {ACCOUNT}'"));
    let simulator = Simulator::start(&project, behaviour);
    for folder in ["managed-rag", "managed-rag-plain"] {
        std::fs::remove_dir_all(project.path(&format!("fixtures/cassettes/{folder}"))).expect("removed");
    }
    let cases = [
        "run",
        SCENARIO,
        "scenarios/managed-rag-plain.yaml",
        "--only",
        "error-code",
        "--only",
        "service-error",
        "--only",
        "plain-error-code",
        "--repeat=1",
        "--jobs",
        "8",
        "--no-history",
        "--mode",
    ];
    for mode in ["live", "record"] {
        let outcome = run(&project, &simulator, &[&cases[..], &[mode]].concat());
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(said.contains("3 trials:") && !said.contains(" ERROR"), "{mode}: {said}");
        for secret in [TOKEN, ACCOUNT] {
            assert!(!said.contains(secret), "{mode}: {said}");
        }
        assert_eq!(holding(&project.path("reports"), &[TOKEN, ACCOUNT]), Vec::<String>::new(), "{mode}");
        // What was asked was answered, and the answers reached the traces.
        let traces = project.read(&format!("{}/traces.jsonl", project.newest()));
        assert!(traces.contains("38 to 46 ohms") && traces.contains("[redacted:NUCLIA_TOKEN]"), "{traces}");
    }
    assert_eq!(holding(&project.path("fixtures/cassettes"), &[TOKEN, ACCOUNT]), Vec::<String>::new());
    // Replayed, the same answers come without a service, and nothing new is told.
    drop(simulator);
    project.run(&cases[..cases.len() - 1]);
    assert_eq!(holding(&project.path("reports"), &[TOKEN, ACCOUNT]), Vec::<String>::new());
}

#[test]
fn one_comparison_holds_all_agents_and_every_pair_has_a_verdict_for_each_criterion_in_terminal_table_and_page() {
    let project = Project::shipped();
    let folder = "scenarios/four-agents";
    let criteria = format!("{folder}/criteria.yaml");
    project.run(&["run", folder, "--criteria", &criteria, "--no-history"]).expect_code(0);
    let outcome = project.run(&["compare", "reports/latest"]);
    outcome.expect_code(0);
    let names = ["managed-rag", "react", "tool-rag", "two-stage"];
    let wanted = ["ANSWERED", "CASES", "SEARCHED", "SOURCES", "QUERIES", "TIME", "cases", "turn time (median case)"];
    let taken = ["model calls", "tool calls", "input tokens", "output tokens", "turn p50", "turn p95", "citations"];
    let found = project.latest("variants.json");
    let told: Vec<&str> =
        found["variants"].as_array().expect("variants").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(told, names);
    let table = project.read("reports/latest/variants.csv");
    let pairs = project.read("reports/latest/pairs.csv");
    let page = project.read("reports/latest/variants.html");
    for figure in wanted[..7].iter().chain(&taken) {
        let row = outcome.stdout.lines().find(|line| line.starts_with(figure)).unwrap_or_default();
        assert!(row.split_whitespace().count() >= 5, "{figure}: {}", outcome.stdout);
        for name in names {
            assert!(
                table.lines().any(|line| line.starts_with(&format!("{figure},{name},"))),
                "{figure} {name}: {table}"
            );
        }
        assert!(page.contains(&format!("<bdi>{figure}</bdi>")), "{figure}");
    }
    let mut reader = csv::Reader::from_reader(pairs.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
    let findings = ["no case changed", "inconclusive", "not worse", "better", "worse"];
    for (place, one) in names.iter().enumerate() {
        for other in &names[place + 1..] {
            let of = |row: &&csv::StringRecord| {
                row[23].ends_with(&format!("@{one}")) && row[24].ends_with(&format!("@{other}"))
            };
            let pair: Vec<_> = rows.iter().filter(of).collect();
            for key in wanted {
                let row =
                    pair.iter().find(|row| &row[0] == key).unwrap_or_else(|| panic!("{one} {other} {key}: {pairs}"));
                assert!(findings.contains(&&row[16]), "{one} {other} {key}: {row:?}");
            }
            assert!(outcome.stdout.contains(&format!("{other} against {one}")), "{}", outcome.stdout);
            assert!([one, other].iter().all(|name| page.contains(&format!("<bdi>{name}</bdi>"))), "{one}, {other}");
        }
    }
    assert!(project.read("reports/latest/index.html").contains("href=\"variants.html\""));
    // Two of them, and what cannot be asked.
    let two = project.run(&["compare", "reports/latest", "--variants", "two-stage,tool-rag", "--format", "json"]);
    let two: Value = serde_json::from_str(&two.expect_code(0).stdout).expect("JSON");
    assert_eq!(
        (two["variants"][0]["name"].as_str(), two["pairs"].as_array().map(Vec::len)),
        (Some("two-stage"), Some(1))
    );
    for (arguments, why) in [
        (&["--variants", "react"][..], "has one variant, react"),
        (&["--variants", "react,reacts"], "no variant `reacts`; it has managed-rag, react, tool-rag, two-stage"),
        (&["--fail-on", "regression"], "name both sides"),
    ] {
        let refused = project.run(&[&["compare", "reports/latest"], arguments].concat());
        assert!(refused.expect_code(2).stderr.contains(why), "{}", refused.stderr);
    }
}

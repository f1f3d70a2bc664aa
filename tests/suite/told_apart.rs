//! Two prompts of each flow that differ in one rule are told apart by the gate of that rule, and by no gate outside a list declared
//! here; two that declare the same rules are not. The model is the simulator: it reads no prompt, and behaves by what they declare.

use super::project::{Outcome, Project};
use super::simulator::Simulator;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A rule of a flow's prompt.
struct Rule {
    flow: &'static str,
    /// The prompt and its file.
    prompt: (&'static str, &'static str),
    /// The words that state the rule, and the same in other words.
    states: (&'static str, &'static str),
    declared: &'static str,
    /// The gate that a prompt without the rule fails, and others that it may fail with it.
    gate: &'static str,
    beside: &'static [&'static str],
}

const QUERIES: &str = "rewrite-queries";
const SERVICE: &str = "ask-the-service";

const RULES: [Rule; 4] = [
    Rule {
        flow: "tool-rag",
        prompt: ("system", "tool_rag/prompts/system.md"),
        states: ("Do not paste the user's sentence.", "The user's sentence is no query."),
        declared: QUERIES,
        gate: "QUERIES",
        beside: &[],
    },
    Rule {
        flow: "two-stage",
        prompt: ("retrieval_system", "two_stage/prompts/retrieval_system.md"),
        states: ("Do not paste the user's sentence.", "The user's sentence is no query."),
        declared: QUERIES,
        gate: "own-words",
        beside: &[],
    },
    Rule {
        flow: "react",
        prompt: ("search_documents_for_facts", "react/prompts/search_documents_for_facts.md"),
        states: (", not the user's sentence", ", and never what the user wrote"),
        declared: QUERIES,
        gate: "own-words",
        // A search after a copy has other words than the copy, and all the more so.
        beside: &["other-words"],
    },
    // Whoever does not ask gets no answer.
    Rule {
        flow: "managed-rag",
        prompt: ("managed_system", "managed_rag/prompts/managed_system.md"),
        states: ("Call `nuclia_rag` with the user's question.", "Put the user's question to `nuclia_rag`."),
        declared: SERVICE,
        gate: "service-asked",
        beside: &["cases"],
    },
];

/// What the simulated model does, and what it does more often where a prompt leaves a rule out.
const RATES: &str = "\
source: Invented for this test.
habits: {verbatim_query: 0.02}
unless_asked:
  - {rule: rewrite-queries, habits: {verbatim_query: 0.9}}
  - {rule: ask-the-service, habits: {forget_knowledge_base: 0.9, persist: {probability: 0.9, at: [knowledge]}}}
";

const PRODUCTS: [&str; 6] =
    ["Canopy controller", "Sprig controller", "RainGate valve", "DewPoint sensor", "Lumen bar", "ShadeRoll motor"];
const SUBJECTS: [&str; 4] = ["warranty", "power supply", "installation height", "cleaning interval"];

/// The gates that found a difference, between prompts that differ in the rule and between those that declare the same.
#[derive(Debug, Default)]
struct Found {
    /// Of each of the two pairs with a prompt that lacks the rule.
    differ: Vec<BTreeSet<String>>,
    same: BTreeSet<String>,
}

impl Found {
    fn is_told_apart(&self, rule: &Rule) -> bool {
        self.differ.len() == 2 && self.differ.iter().all(|gates| gates.contains(rule.gate))
    }

    /// Whether no gate but that of the rule, and those declared beside it, found anything.
    fn is_only_the_rule(&self, rule: &Rule) -> bool {
        let expected = |gate: &String| *gate == rule.gate || rule.beside.contains(&gate.as_str());
        self.differ.iter().flatten().all(expected)
    }
}

fn scenario(project: &Project, rule: &Rule) {
    let shipped = std::fs::read_to_string(format!("{}/src/flow/{}", env!("CARGO_MANIFEST_DIR"), rule.prompt.1));
    let (shipped, (states, otherwise)) = (shipped.expect("a prompt"), rule.states);
    assert_eq!(shipped.matches(states).count(), 1, "{}: the prompt states the rule", rule.flow);
    let mut text = format!(
        "scenario: told-apart\nflow: {}\nmodel: {{provider: simulator, name: fernlight-sim, temperature: 0.2}}\n",
        rule.flow
    );
    text +=
        if rule.flow == "managed-rag" { "managed_retrieval: fernlight-box-usual\n" } else { "knowledge: fernlight\n" };
    if rule.flow == "tool-rag" {
        text += "search: {provider: simulator-search, name: perplexity/sonar}\n";
    }
    text += "variants:\n";
    let (all, less) = (BTreeSet::from([QUERIES, SERVICE]), BTreeSet::from([rule.declared]));
    let variants = [
        ("states", shipped.clone(), all.clone()),
        ("otherwise", shipped.replace(states, otherwise), all.clone()),
        ("lacks", shipped.replace(states, ""), &all - &less),
    ];
    for (name, prompt, declared) in variants {
        project.write(&format!("scenarios/told-apart/{name}.md"), &prompt);
        let declared = declared.into_iter().collect::<Vec<_>>().join(", ");
        let prompt = format!("{{{}: {{file: {name}.md}}}}", rule.prompt.0);
        writeln!(text, "  {name}: {{about: {name}, asks_for: [{declared}], prompts: {prompt}}}").expect("a text");
    }
    text += "cases:\n";
    for (number, product) in PRODUCTS.iter().enumerate() {
        for subject in SUBJECTS {
            let case = format!("q{number}-{}", subject.replace(' ', "-"));
            let ask = format!("What does the manual say about the {subject} of the {product}?");
            writeln!(text, "  - {{case: {case}, ask: '{ask}', expect: {{answer: {{matches: ['\\w']}}}}}}")
                .expect("a text");
        }
    }
    project.write("scenarios/told-apart/told-apart.yaml", &text);
    let criteria = format!("about: The gates of the flow.\nundecided: warn\nflows: [{}]\ncriteria: []\n", rule.flow);
    project.write("scenarios/told-apart/criteria.yaml", &criteria);
}

/// Runs the three prompts live with a seed, and compares them.
fn compared(project: &Project, host: &str, seed: u32) -> Found {
    let seed = seed.to_string();
    let criteria = "scenarios/told-apart/criteria.yaml";
    let arguments =
        ["run", "scenarios/told-apart", "--criteria", criteria, "--mode", "live", "--no-history", "--seed", &seed];
    let mut command = project.command(&arguments);
    command.env("NUCLIA_TOKEN", "simulated-service-account-0451");
    command.env("NUCLIA_ACCOUNT", "simulated-account-number-0815");
    command.env("RAGCHECK_TRUST", format!("NUCLIA_TOKEN={host} NUCLIA_ACCOUNT={host}"));
    let ran = Outcome::of(&mut command);
    assert!(ran.stdout.contains("72 trials: "), "{}{}", ran.stdout, ran.stderr);
    let folder = project.newest();
    project.run(&["compare", &folder]).expect_code(0);
    let mut found = Found { differ: vec![BTreeSet::new(); 2], ..Found::default() };
    for row in csv::Reader::from_path(project.path(&format!("{folder}/pairs.csv"))).expect("pairs").deserialize() {
        let row: std::collections::HashMap<String, String> = row.expect("a row");
        // Times of a live run are those of this machine.
        let is_gate = row["gated"] == "true" && !row["criterion"].starts_with("turn time");
        if !is_gate || !["better", "worse"].contains(&row["finding"].as_str()) {
            continue;
        }
        let sides = [&row["side_a"], &row["side_b"]].map(|side| side.rsplit('@').next().unwrap_or_default());
        let gates = match sides.iter().find(|side| **side != "lacks") {
            _ if !sides.contains(&"lacks") => &mut found.same,
            Some(&"states") => &mut found.differ[0],
            _ => &mut found.differ[1],
        };
        gates.insert(row["criterion"].clone());
    }
    std::fs::remove_dir_all(project.path(&folder)).expect("the run");
    found
}

fn of_seeds(rule: &Rule, seeds: u32) -> Vec<Found> {
    let project = Project::shipped();
    project.edit("fixtures/simulator/fernlight.yaml", "pace: real", "pace: declared");
    // The documents suffice, so that no web search comes between.
    let sufficient = "  rules:\n    - {when: {asks: What does the manual say}, sufficient: true}\n";
    let behaviour = project.read("fixtures/simulator/fernlight.yaml").replacen("  rules:\n", sufficient, 1);
    project.write("fixtures/simulator/fernlight.yaml", &behaviour);
    project.write("fixtures/simulator/fernlight-rates.yaml", RATES);
    let simulator = Simulator::start(&project, "fixtures/simulator/fernlight.yaml");
    scenario(&project, rule);
    (1..=seeds).map(|seed| compared(&project, &simulator.address, seed)).collect()
}

#[test]
fn two_prompts_that_differ_in_a_rule_are_told_apart_by_its_gate_and_two_that_declare_the_same_are_not() {
    for rule in &RULES {
        let found = of_seeds(rule, 1);
        let [one] = &found[..] else { panic!("{found:?}") };
        assert!(one.is_told_apart(rule) && one.is_only_the_rule(rule), "{}: {one:?}", rule.flow);
        assert!(one.same.is_empty(), "{}: {one:?}", rule.flow);
    }
}

/// Runs a hundred seeds, and fails unless 95 tell the prompts apart by their rule alone, and find no difference between equal ones.
#[expect(clippy::print_stderr, reason = "figures for the docs")]
fn expect_95_of_100(rule: &Rule) {
    let found = of_seeds(rule, 100);
    let count = |holds: &dyn Fn(&Found) -> bool| found.iter().filter(|one| holds(one)).count();
    let told = count(&|one| one.is_told_apart(rule));
    let only = count(&|one| one.is_only_the_rule(rule));
    let same = count(&|one| one.same.is_empty());
    eprintln!("{}: {told} told apart by {}, {only} by no other gate, {same} equal ones not", rule.flow, rule.gate);
    assert!(told.min(only).min(same) >= 95, "{}: {told}, {only}, {same} of 100: {found:?}", rule.flow);
}

/// A test for each rule, so that they run beside each other.
macro_rules! in_95_of_100_seeds {
    ($($name:ident: $rule:literal),* $(,)?) => {$(
        #[test]
        #[ignore = "100 live runs of 72 trials: .ci/slow"]
        fn $name() {
            expect_95_of_100(&RULES[$rule]);
        }
    )*};
}

in_95_of_100_seeds! {
    in_95_of_100_seeds_prompts_of_tool_rag_are_told_apart_by_their_rule_alone_and_equal_ones_are_not: 0,
    in_95_of_100_seeds_prompts_of_two_stage_are_told_apart_by_their_rule_alone_and_equal_ones_are_not: 1,
    in_95_of_100_seeds_prompts_of_react_are_told_apart_by_their_rule_alone_and_equal_ones_are_not: 2,
    in_95_of_100_seeds_prompts_of_managed_rag_are_told_apart_by_their_rule_alone_and_equal_ones_are_not: 3,
}

//! What the project ships is sound: scenarios, criteria, behaviours, and their size.

use ragcheck::internals::cli::check;
use ragcheck::internals::knowledge::{Corpus, Embedded, KnowledgeBase};
use ragcheck::internals::plan::{self, Selection};
use ragcheck::internals::platform::clock::{VirtualClock, block_on};
use ragcheck::internals::scenario::SequenceStep;
use ragcheck::internals::{scenario, simulator};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sound(paths: &[PathBuf], criteria: &str) -> scenario::Loaded {
    let criteria = Path::new(criteria);
    let checked = check::check(&root(), paths, Some(criteria), None);
    assert_eq!(checked.exit_code(), 0, "{}", checked.text(false));
    scenario::load(&root(), paths, Some(criteria), &ragcheck::internals::catalogues()).expect("no mistakes")
}

#[test]
fn the_shipped_suite_is_sound_and_large_enough() {
    let loaded = sound(&[], "scenarios/success-criteria.yaml");
    let cases: usize = loaded.scenarios.iter().map(|loaded| loaded.scenario.cases.len()).sum();
    let plan = plan::build(&loaded, &Selection::default(), 1).expect("a plan");
    assert!(cases >= 40, "{cases} cases");
    assert!((220..=600).contains(&plan.trials.len()), "{} trials", plan.trials.len());
}

#[test]
fn the_suites_for_a_local_model_are_sound() {
    let local = |name: &str| {
        let folder = format!("scenarios/{name}");
        let loaded = sound(&[format!("{folder}/{name}.yaml").into()], &format!("{folder}/criteria.yaml"));
        assert_eq!(loaded.scenarios.len(), 1);
        loaded.scenarios[0].scenario.clone()
    };
    assert!(local("local-model").variants.contains_key("forced"));
    assert_eq!(local("local-two-stage").flow, "two-stage");
    assert_eq!(local("local-react").flow, "react");
    assert!(local("local-prompts").variants.contains_key("guarded"));
}

#[test]
fn the_shipped_behaviours_load_and_every_fault_that_they_know_is_declared_by_a_case() {
    for name in ["fernlight", "try"] {
        simulator::load(&root().join(format!("fixtures/simulator/{name}.yaml"))).expect(name);
    }
    let text = std::fs::read_to_string(root().join("fixtures/simulator/fernlight.yaml")).expect("the behaviour");
    let loaded = scenario::load(
        &root(),
        &[],
        Some(Path::new("scenarios/success-criteria.yaml")),
        &ragcheck::internals::catalogues(),
    )
    .expect("no mistakes");
    let plan = plan::build(&loaded, &Selection::default(), 1).expect("a plan");
    let cases = || plan.scenarios.iter().flat_map(|scenario| &scenario.cases).map(|planned| &planned.case);
    let declared: BTreeSet<&str> = cases().filter_map(|case| case.fault.as_deref()).collect();
    let fault = regex::Regex::new(r"\{fault: ([a-z-]+)\}").expect("a pattern");
    let known: BTreeSet<&str> = fault.captures_iter(&text).map(|found| found.extract::<1>().1[0]).collect();
    assert!(known.len() >= 40, "{known:?}");
    assert!(known.is_subset(&declared), "declared by no case: {:?}", known.difference(&declared));
    // The request for a tenant that there is not, an index that cannot be written, a process that is killed, a store that is
    // damaged and limits that are reached go wrong without the model's help.
    let others: BTreeSet<&str> = declared.difference(&known).copied().collect();
    let kept =
        ["killed-in-answered", "killed-in-answering", "killed-in-observing", "killed-in-thinking", "store-broken"];
    let limits = ["budget-used-up", "long-conversation"];
    let others_than_the_models = ["keywords-unwritable", "unknown-tenant"].into_iter().chain(kept).chain(limits);
    assert_eq!(others, others_than_the_models.collect());
}

#[test]
fn a_rule_of_the_simulated_model_holds_no_words_of_a_trial_s_name_and_no_criterion() {
    let behaviour = std::fs::read_to_string(root().join("fixtures/simulator/fernlight.yaml")).expect("the behaviour");
    let rates = std::fs::read_to_string(root().join("fixtures/simulator/fernlight-rates.yaml")).expect("the rates");
    for text in [&behaviour, &rates] {
        assert!(!text.contains("trial:") && !text.contains("SC-0"), "{text}");
    }
    // How often it errs by itself stands in the file of rates alone, and is the same everywhere.
    let by_chance = regex::Regex::new(r"(forget_\w+|verbatim_query|slow|rate_limited): *0").expect("a pattern");
    assert!(by_chance.is_match(&rates) && !by_chance.is_match(&behaviour), "{:?}", by_chance.find(&behaviour));
}

#[test]
fn only_cases_that_declare_a_fault_are_left_out_of_criteria() {
    let loaded = sound(&[], "scenarios/success-criteria.yaml");
    let cases = || loaded.scenarios.iter().flat_map(|loaded| &loaded.scenario.cases);
    assert!(cases().any(|case| !case.excluded_from.is_empty()));
    for case in cases().filter(|case| !case.excluded_from.is_empty()) {
        assert!(case.fault.is_some(), "{}", case.case);
    }
}

#[test]
fn the_documents_that_answers_are_expected_to_cite_are_found_by_the_questions_own_words() {
    let loaded = sound(&[], "scenarios/success-criteria.yaml");
    let base = Corpus::load(&root().join("fixtures/knowledge/fernlight")).expect("passages");
    let documents: Vec<String> =
        base.passages.iter().filter_map(|passage| Some(passage.id.split_once('#')?.0.to_owned())).collect();
    let base = Embedded::open(base, None).expect("opens");
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let (mut asked, mut missed) = (0, Vec::new());
    // Questions in other languages are translated by the model before it searches.
    let scenarios = loaded.scenarios.iter().filter(|loaded| loaded.scenario.scenario != "languages");
    for case in scenarios.flat_map(|loaded| &loaded.scenario.cases) {
        // A follow-up is searched with words of the question before it.
        let (Some(ask), Some(answer)) = (&case.ask, case.expect.as_ref().and_then(|expect| expect.answer.as_ref()))
        else {
            continue;
        };
        for cited in answer.cites.iter().filter(|cited| documents.contains(cited)) {
            asked += 1;
            let found = block_on(&clock, base.search(ask, 5)).expect("no deadlock").result.expect("searches");
            if !found.iter().any(|hit| hit.passage.id.starts_with(&format!("{cited}#"))) {
                missed.push(format!("{}: {cited}", case.case));
            }
        }
    }
    assert!(asked >= 20, "{asked} questions");
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn what_only_learned_entries_are_said_to_answer_is_answered_by_no_document() {
    let loaded = sound(&[], "scenarios/success-criteria.yaml");
    let base = Corpus::load(&root().join("fixtures/knowledge/fernlight")).expect("passages");
    let mut labelled = 0;
    for case in loaded.scenarios.iter().flat_map(|loaded| &loaded.scenario.cases) {
        for step in &case.sequence {
            let conversations = match step {
                SequenceStep::Conversation(conversation) => std::slice::from_ref(conversation),
                SequenceStep::Together(all) => all.as_slice(),
            };
            for conversation in conversations {
                let Some(related) = conversation.related.as_ref().filter(|related| related.relevant == ["learned"])
                else {
                    continue;
                };
                labelled += 1;
                let answers = conversation.turns.iter().filter_map(|turn| turn.expect.as_ref()?.answer.as_ref());
                for answer in answers.filter(|answer| !answer.contains.is_empty()) {
                    let holds = |text: &str| {
                        let text = text.to_lowercase();
                        answer.contains.iter().all(|words| text.contains(&words.to_lowercase()))
                    };
                    // What holds the words and speaks of something else: watering by hand from the application, returns that are collected.
                    let others = ["accounts#1", "returns#4"];
                    let mut passages = base.passages.iter().filter(|passage| !others.contains(&passage.id.as_str()));
                    let found = passages.find(|passage| holds(&passage.text));
                    let (case, name) = (&case.case, &conversation.name);
                    assert!(
                        found.is_none(),
                        "{case}/{name}: {} answers it too, after {}",
                        found.expect("one").id,
                        related.to
                    );
                }
            }
        }
    }
    assert!(labelled >= 19, "only {labelled} related questions");
}

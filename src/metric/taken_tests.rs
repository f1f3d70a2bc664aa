//! Tests of usage and cost.

use super::super::sample::{plan, story, viewed};
use super::super::{Check, Patterns, expectation};
use super::*;
use crate::plan::VariantSettings;
use crate::settings::ModelSettings;
use crate::trace::{Event, ExternalResult, FlowSearch, ToolOutcome, Trace};

type Change = dyn Fn(&mut Trace);

/// Failed checks of a case of two turns. Each turn makes completions of 10 and 2 tokens.
fn checked(expect: &str, turn: &str, change: &Change) -> Vec<Check> {
    let mut plan =
        plan(&format!("[{{case: a, turns: [{{ask: q, expect: {turn}}}, {{ask: r}}], expect: {expect}}}]"), "[]", 1);
    let model = ModelSettings { provider: "acme".into(), name: "m".into(), ..ModelSettings::default() };
    plan.scenarios[0].variants[0].settings = Some(VariantSettings { model, ..VariantSettings::default() });
    plan.prices.insert("acme/m".into(), Price { input: 1_000.0, output: 10_000.0, ..Price::default() });
    let mut trace = story(&plan, 0).turn("q").deliver("x", &[], 1).turn("r").deliver("y", &[], 1).done();
    change(&mut trace);
    plan.mode = Some(trace.evidence.mode).filter(|mode| *mode == Mode::Imported);
    viewed(&plan, &trace, |view| expectation::checks(&view, &Patterns::of(&view.case.case)))
}

fn failing(expect: &str, turn: &str, change: &Change) -> Vec<String> {
    let checks = checked(expect, turn, change);
    checks.into_iter().filter(|check| !check.passed).map(|check| format!("{} | {}", check.what, check.seen)).collect()
}

fn each_completion(trace: &mut Trace, change: impl Fn(usize, &mut crate::trace::Completion)) {
    let called = trace.events.iter_mut().filter_map(|event| match &mut event.what {
        What::ModelCalled(called) => Some(called),
        _ => None,
    });
    for (place, called) in called.enumerate() {
        if let Reply::Completion(done) = &mut called.reply {
            change(place, done);
        }
    }
}

#[test]
fn a_turn_has_its_own_tokens_and_a_case_those_of_all_its_turns() {
    let none: &Change = &|_| ();
    let whole = "{tokens: {at_most: 24, input_at_most: 20, output_at_most: 4}, cost: {at_most: 0.06}}";
    assert_eq!(failing(whole, "{tokens: {at_most: 12}, cost: {at_most: 0.03}}", none), Vec::<String>::new());
    assert_eq!(
        failing(
            "{tokens: {at_most: 23, input_at_most: 19, output_at_most: 3}, cost: {at_most: 0.059}}",
            "{tokens: {at_most: 11}}",
            none
        ),
        [
            "turn 1: tokens.at_most: 11 | it took 12 tokens",
            "tokens.at_most: 23 | it took 24 tokens",
            "tokens.input_at_most: 19 | it took 20 tokens",
            "tokens.output_at_most: 3 | it took 4 tokens",
            "cost.at_most: $0.0590 | it cost $0.0600",
        ]
    );
}

#[test]
fn vectors_of_queries_cost_by_the_price_of_their_model_and_are_unknown_without_one() {
    let asked = |usage: Option<VectorUsage>, cause: Option<&'static str>| {
        move |trace: &mut Trace| {
            let (status, cause, vectors) = (Some(200), cause.map(str::to_owned), usage.clone());
            let (took_us, wait_us, declared_fault, held) = (1, None, false, None);
            let service = Some(EMBEDDINGS.to_owned());
            let one = Attempt { service, status, cause, took_us, wait_us, declared_fault, held, vectors };
            let outcome = ToolOutcome::Unseen { reason: "not of interest".into() };
            let search = FlowSearch { query: "q".into(), outcome, took_us: 1, attempts: vec![one] };
            let place = trace.events.iter().position(|event| matches!(event.what, What::ModelCalled(_)));
            let place = place.expect("a completion");
            let event = Event { what: What::Searched(search), ..trace.events[place].clone() };
            trace.events.insert(place, event);
        }
    };
    let of = |model: &str, input_tokens| Some(VectorUsage { model: model.into(), input_tokens });
    let sum =
        |usage, cause: Option<&'static str>| failing("{cost: {at_most: 0.06}}", "{within: 10s}", &asked(usage, cause));
    // The completions alone cost $0.06.
    assert_eq!(sum(of("acme/m", Some(5)), None), ["cost.at_most: $0.0600 | it cost $0.0650"]);
    assert_eq!(sum(of("acme/m", Some(5)), Some("malformed")), Vec::<String>::new(), "what failed has no tokens");
    for unknown in [of("acme/m", None), of("acme/other", Some(5)), None] {
        let told = sum(unknown, None);
        assert!(told.len() == 1 && told[0].contains("not measured: not every service"), "{told:?}");
    }
}

#[test]
fn tokens_that_are_not_told_never_pass_and_still_fail_where_what_is_told_is_too_much() {
    let silent: &Change = &|trace| {
        each_completion(trace, |place, done| {
            if place == 1 {
                done.output_tokens = None;
            }
        });
    };
    let expect = "{tokens: {at_most: 1000}, cost: {at_most: 100}}";
    let told = failing(expect, "{tokens: {at_most: 1000}}", silent);
    assert_eq!(
        told,
        [
            "tokens.at_most: 1000 | not measured: 1 of 2 completions did not report their tokens",
            "cost.at_most: $100.00 | not measured: not every service reported its tokens, or an embeddings model has no price",
        ]
    );
    let imported: &Change = &|trace| trace.evidence.mode = Mode::Imported;
    let unpriced = "cost.at_most: $1.00 | not measured: a model has no price, or a service did not report its tokens";
    assert_eq!(failing("{cost: {at_most: 1}}", "{within: 10s}", imported)[1], unpriced);
    let error = not_measured(&checked(expect, "{tokens: {at_most: 1000}}", silent)).expect("an error");
    assert!(error.message.starts_with("tokens.at_most: 1000: not measured"), "{}", error.message);
    assert_eq!(
        failing("{tokens: {at_most: 21}}", "{within: 10s}", silent),
        ["tokens.at_most: 21 | it took at least 22 tokens"]
    );
    let mixed = checked("{tokens: {at_most: 1000}, answer: {contains: [absent]}}", "{within: 10s}", silent);
    assert_eq!(not_measured(&mixed), None, "what fails, fails");
}

#[test]
fn what_is_resent_counts_once_what_failed_has_no_tokens_and_huge_numbers_do_not_wrap() {
    let resent: &Change = &|trace| {
        let mut events = trace.events.clone();
        let place = events.iter().position(|event| matches!(event.what, What::ModelCalled(_))).expect("a call");
        let mut failed = events[place].clone();
        if let What::ModelCalled(called) = &mut failed.what {
            called.reply = Reply::Failure { kind: "server_error".into(), message: "503".into() };
        }
        events.insert(place, failed);
        trace.events = events;
    };
    assert_eq!(failing("{tokens: {at_most: 24}}", "{tokens: {at_most: 12}}", resent), Vec::<String>::new());
    let huge: &Change = &|trace| each_completion(trace, |_, done| done.input_tokens = Some(u64::MAX));
    let told = failing("{tokens: {at_most: 4000000000}, cost: {at_most: 1}}", "{within: 10s}", huge);
    assert_eq!(told[0], "tokens.at_most: 4000000000 | it took 36893488147419103234 tokens");
    assert!(told[1].starts_with("cost.at_most: $1.00 | it cost $"), "{told:?}");
    let nobody: &Change = &|trace| trace.events.retain(|event| !matches!(event.what, What::ModelCalled(_)));
    assert!(
        failing("{tokens: {at_most: 5}}", "{within: 10s}", nobody)[0]
            .ends_with("not measured: no completion of the model")
    );
}

#[test]
fn pages_of_a_search_engine_cost_no_tokens_and_the_answer_of_an_unpriced_search_service_is_unknown() {
    let found = |model: &'static str| {
        move |trace: &mut Trace| {
            let found = ExternalResult {
                result: "r".into(),
                query: "q".into(),
                answer: "so".into(),
                citations: Vec::new(),
                model: model.into(),
                input_tokens: None,
                cached_tokens: None,
                output_tokens: None,
            };
            let outcome = ToolOutcome::Ok(ToolResult::External(found));
            let search = FlowSearch { query: "q".into(), outcome, took_us: 1, attempts: Vec::new() };
            let place = trace.events.iter().position(|event| matches!(event.what, What::ModelCalled(_)));
            let place = place.expect("a completion");
            let event = Event { what: What::Searched(search), ..trace.events[place].clone() };
            trace.events.insert(place, event);
        }
    };
    let failing = |model| failing("{cost: {at_most: 0.06}}", "{within: 10s}", &found(model));
    assert_eq!(failing(ExternalResult::NO_MODEL), Vec::<String>::new());
    assert_eq!(failing("").len(), 1, "a service that does not say its model");
    assert_eq!(failing("sonar").len(), 1);
}

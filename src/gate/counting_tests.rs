//! Evaluation of units and conversations: the sentences, and attacks simulated by repeated runs.

use super::rule::{Asked, Evidence, rule};
use super::tests::{confidence, run};
use super::{CriterionResult, Verdict};
use crate::metric::sample::{good, plan, story};
use crate::plan::Plan;
use crate::scenario::GateKind;
use crate::stats::{ALPHA, Clusters, Sample};
use crate::trace::{Account, Mode, Trace};
use rand::{RngExt as _, SeedableRng as _, rngs::ChaCha8Rng};

/// Cases with these numbers of turns.
fn cases(turns: impl Iterator<Item = usize>) -> String {
    let case = |(number, turns): (usize, usize)| {
        let asks: Vec<String> = (0..turns).map(|turn| format!("{{ask: q{turn}}}")).collect();
        format!("{{case: c{number}, turns: [{}]}}", asks.join(", "))
    };
    format!("[{}]", turns.enumerate().map(case).collect::<Vec<_>>().join(", "))
}

/// A conversation of `turns` turns, of which the first `searching` search.
fn talk(plan: &Plan, place: usize, turns: usize, searching: usize) -> Trace {
    let mut story = story(plan, place);
    for turn in 0..turns {
        story = story.turn(&format!("q{turn}"));
        story = if turn < searching { story.search(&["d#1"]) } else { story };
        story = story.answer("x", &[]);
    }
    story.done()
}

fn judged(sizes: &[usize], criteria: &str, searching: impl Fn(usize) -> usize) -> CriterionResult {
    let plan = plan(&cases(sizes.iter().copied()), criteria, 1);
    let traces = sizes.iter().enumerate().map(|(place, turns)| talk(&plan, place, *turns, searching(place)));
    run(&plan, traces).criteria.remove(0)
}

#[test]
fn a_rate_per_unit_says_its_units_its_conversations_and_its_bound() {
    // 377 conversations with 637 queries in total.
    let sizes: Vec<usize> =
        [(208, 1), (110, 2), (27, 3), (32, 4)].iter().flat_map(|(number, turns)| vec![*turns; *number]).collect();
    let result = judged(&sizes, &confidence(), |place| sizes[place]);
    assert_eq!((result.n, result.clusters, result.per.as_str()), (637, 377, "unit"));
    let head = "637 of 637 queries in 377 conversations: 100.0 %, at least 97.9 %; ≥ 95 % holds";
    assert!(result.sentence.starts_with(head), "{}", result.sentence);
    let lost = judged(&[1, 1, 12], &confidence(), |place| [1, 1, 0][place]);
    assert!(lost.sentence.starts_with("2 of 14 queries in 3 conversations: 14.3 %, "), "{}", lost.sentence);
    assert!(lost.sentence.contains("; per conversation 66.7 %"), "never one figure as the other: {}", lost.sentence);
}

#[test]
fn the_interval_of_a_rate_that_should_be_low_is_around_it() {
    let criteria = "[{id: O, metric: order_violation_rate, target: '<= 5%', kind: confidence}]";
    let result = judged(&[2; 20], criteria, |_| 2);
    let interval = result.interval.expect("an interval");
    assert_eq!((result.per_unit, interval.lower), (Some(0.0), 0.0));
    assert!((0.05..0.5).contains(&interval.upper), "{interval:?}");
}

#[test]
fn a_mean_of_conversations_names_the_units_that_keep_it_from_passing() {
    let sizes: Vec<usize> = [vec![1; 300], vec![12; 12]].concat();
    let criteria = confidence().replace("kind:", "per: conversation, kind:");
    let result = judged(&sizes, &criteria, |place| if sizes[place] == 1 { 1 } else { 6 });
    assert_eq!(result.verdict, Verdict::Inconclusive, "{}", result.sentence);
    let head = "per conversation 98.1 %, at least 96.2 %; per query 83.8 %, below target";
    assert!(result.sentence.starts_with(head), "{}", result.sentence);
    assert!(result.sentence.contains("(372 of 444 queries in 312 conversations)"), "{}", result.sentence);
    assert_eq!(result.observed_text, "per conversation 98.1 %; per query 83.8 %");
    let shares = result.per_unit.zip(result.per_conversation).expect("both");
    assert!((shares.0 - 372.0 / 444.0).abs() < 1e-12 && (shares.1 - 306.0 / 312.0).abs() < 1e-12);
    let few = criteria.replace(">= 95%", ">= 80%");
    let result = judged(&sizes, &few, |place| if sizes[place] == 1 { 1 } else { 6 });
    assert_eq!(result.verdict, Verdict::Pass, "{}", result.sentence);
}

#[test]
fn one_perfect_conversation_of_twelve_turns_takes_little_from_sixty() {
    let sizes: Vec<usize> = [vec![1; 60], vec![12]].concat();
    let lower = |criteria: &str| judged(&sizes, criteria, |place| sizes[place]).lower.expect("a bound");
    assert!((lower(&confidence()) - 0.828).abs() < 5e-4, "0.630 before");
    assert!(lower(&confidence().replace("kind:", "per: conversation, kind:")) > 0.951);
}

#[test]
fn a_plan_of_an_older_build_is_judged_by_the_rule_of_this_one_and_says_so() {
    let mut old = plan("[{case: a, ask: q}]", &confidence(), 60);
    old.version = 4;
    let traces: Vec<Trace> = (0..60).map(|place| good(&old, place)).collect();
    let found = run(&old, traces.clone());
    assert!(found.notes.iter().any(|note| note.contains("scored by the rules of this one")), "{:?}", found.notes);
    old.version = crate::plan::PLAN_VERSION;
    assert!(run(&old, traces).notes.is_empty());
}

#[test]
fn a_rate_per_unit_whose_number_nothing_limits_is_undecided_and_says_why() {
    // In a log the number of turns is an outcome.
    let criteria = "[{id: A, metric: turn_success_rate, target: '>= 95%', kind: confidence, per: unit}]";
    let mut plan = plan("[{case: a, ask: q}]", criteria, 60);
    plan.mode = Some(Mode::Imported);
    let traces = (0..60).map(|place| {
        let mut trace = story(&plan, place).turn("q").answer("x", &[]).done();
        trace.evidence.mode = Mode::Imported;
        trace
    });
    let result = run(&plan, traces.collect::<Vec<_>>()).criteria.remove(0);
    assert_eq!((result.verdict, result.lower), (Verdict::Inconclusive, Some(0.0)));
    assert!(result.sentence.ends_with("nothing limits the queries of a conversation"), "{}", result.sentence);
}

#[test]
fn a_conversation_beyond_its_limit_is_named_and_units_over_cases_are_no_mean_of_cases() {
    let criteria = "[{id: A, metric: retry_recovery, target: '>= 10%', kind: confidence, per: unit, most: 2}]";
    let mut plan = plan("[{case: a, ask: q}, {case: b, ask: r}]", criteria, 1);
    let judged = |plan: &Plan, retries: [u32; 2]| {
        let traces = (0..2).map(|place| {
            let told = story(plan, place).turn("q");
            let told = (0..retries[place]).fold(told, |told, at| told.retried(Account::Model, at, 1, place == 0));
            told.answer("x", &[]).done()
        });
        run(plan, traces.collect::<Vec<_>>()).criteria.remove(0)
    };
    let over = judged(&plan, [1, 3]);
    assert!(over.sentence.ends_with("a conversation had 3 retries, more than the limit of 2"), "{}", over.sentence);
    plan.criteria.estimand = crate::scenario::criteria::Estimand::Population;
    let of_cases = judged(&plan, [1, 2]);
    assert!(of_cases.observed_text.ends_with("1/3 = 33.3 % in 2 cases"), "{}", of_cases.observed_text);
}

/// A run of conversations: a bad one makes eight verbatim calls, a good one makes one call that is not.
fn calls(rng: &mut ChaCha8Rng, conversations: u32, bad: f64) -> Clusters {
    (0..conversations).map(|_| if rng.random_bool(bad) { (0, 8) } else { (1, 1) }).collect()
}

/// The share of runs in which a gate of at most 10 % verbatim calls passes.
fn passing(runs: u32, bad: f64, conversations: u32, sample: impl Fn(Clusters) -> (Sample, bool)) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(24);
    let asked = Asked { kind: GateKind::Confidence, target: 0.9, floor: None, min_n: 0, alpha_fail: ALPHA };
    let passed = (0..runs).filter(|_| {
        let clusters = calls(&mut rng, conversations, bad);
        let (good, n) = (clusters.good(), clusters.units());
        let (sample, per_conversation) = sample(clusters);
        let evidence = Evidence { good, n, sample: &sample, per_conversation, agreement: None };
        rule(asked, evidence).verdict == Verdict::Pass
    });
    passed.count() as f64 / f64::from(runs)
}

#[test]
fn a_bad_conversation_of_eight_calls_among_good_ones_of_one_deceives_neither_claim() {
    // A true 10 % of calls: 8 q / (1 + 7 q) = 0.1.
    let per_call = 0.1 / 7.3;
    for conversations in [60, 150, 300] {
        let limited = |clusters| (Sample::Limited { clusters, most: Some(8) }, false);
        let found = passing(600, per_call, conversations, limited);
        assert!(found <= 0.05, "per call, {conversations} conversations: {found}");
        let means = |clusters: Clusters| (Sample::conversations(&clusters), true);
        let found = passing(600, 0.1, conversations, means);
        assert!(found <= 0.05, "per conversation, {conversations} conversations: {found}");
    }
    // Treats observed sizes as planned: the attack under test.
    let seen = passing(600, per_call, 60, |clusters| (Sample::Fixed(clusters), false));
    assert!(seen > 0.3, "{seen}");
}

#[test]
fn a_declared_maximum_still_shows_a_low_rate() {
    let limited = |clusters| (Sample::Limited { clusters, most: Some(8) }, false);
    assert!(passing(100, 0.0, 300, limited) > 0.99, "a rule that never passes would never err");
    assert!(passing(100, 0.02, 120, |clusters| (Sample::conversations(&clusters), false)) > 0.5);
}

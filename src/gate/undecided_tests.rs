//! INCONCLUSIVE criteria: what their sentences say, and what `undecided: warn` accepts.

use super::tests::{CASES, KB, all_good, bad, confidence, run};
use super::{Unshown, Verdict};
use crate::metric::sample::{good, plan};
use crate::scenario::criteria::Undecided;

#[test]
fn the_sentence_says_what_was_seen_what_is_bounded_and_what_is_missing() {
    let plan = plan(CASES, &confidence(), 40);
    let mut traces = all_good(&plan);
    (traces[3], traces[7]) = (bad(&plan, 3), bad(&plan, 7));
    let evaluation = run(&plan, traces);
    let result = &evaluation.criteria[0];
    assert_eq!(
        result.sentence,
        "38/40 = 95.0 %, true rate at least 85.0 %; inconclusive: met, not shown: at this rate no number of conversations would show it"
    );
    assert_eq!((result.verdict, evaluation.exit_code), (Verdict::Inconclusive, 4));
    assert_eq!(result.evidence, "REPLAYED, recorded from simulator on 2026-11-21");
    assert_eq!(evaluation.conclusion, "INCONCLUSIVE, met but not shown: C");
}

#[test]
fn where_the_bound_holds_already_the_required_number_is_missing_at_whatever_rate() {
    for (min_n, missing) in [(60, "20 more conversations"), (41, "1 more conversation")] {
        let criteria = format!("[{{id: C, {KB}, target: '>= 50%', kind: confidence, min_n: {min_n}}}]");
        let plan = plan(CASES, &criteria, 40);
        let result = &run(&plan, all_good(&plan)).criteria[0];
        let end = format!("inconclusive: met, not shown: min_n {min_n} requires {missing}");
        assert!(result.sentence.ends_with(&end), "{}", result.sentence);
        assert_eq!(result.verdict, Verdict::Inconclusive);
    }
}

#[test]
fn undecided_may_be_let_through_and_says_so() {
    let shown = format!("[{{id: I, {KB}, target: '= 100%', kind: invariant}}, {}", &confidence()[1..]);
    let mut plan = plan(CASES, &shown, 40);
    plan.criteria.undecided = Undecided::Warn;
    let evaluation = run(&plan, all_good(&plan));
    assert_eq!(evaluation.exit_code, 0);
    assert_eq!(evaluation.conclusion, "1 required gate passed; met, not shown, and let through: C");
}

#[test]
fn warn_lets_through_what_is_met_and_never_what_is_below_its_target_or_asks_the_impossible() {
    let shown = format!(
        "[{{id: I, {KB}, target: '= 100%', kind: invariant, required: false}}, {{id: A, metric: case_pass_rate, target: '>= 50%', kind: confidence}}, {}",
        &confidence()[1..]
    );
    for (failing, code, said) in [(1, 0, "met, not shown, and let through: C"), (3, 4, "INCONCLUSIVE, below target: C")]
    {
        let mut plan = plan(CASES, &shown, 40);
        plan.criteria.undecided = Undecided::Warn;
        let trace = |place: usize| if place < failing { bad(&plan, place) } else { good(&plan, place) };
        let evaluation = run(&plan, (0..40).map(trace).collect::<Vec<_>>());
        assert_eq!(evaluation.exit_code, code, "{}", evaluation.conclusion);
        assert!(evaluation.conclusion.contains(said), "{}", evaluation.conclusion);
        let found = evaluation.criteria.iter().find(|row| row.id == "C").expect("judged");
        assert_eq!(found.unshown, Some(if failing == 1 { Unshown::Met } else { Unshown::Below }), "{}", found.sentence);
        let end = if failing == 1 {
            "more conversations at this rate would show it"
        } else {
            "inconclusive: below target, not shown"
        };
        assert!(found.sentence.ends_with(end), "{}", found.sentence);
    }
}

#[test]
fn two_trials_without_a_violation_say_how_much_could_still_be_violated() {
    let plan = plan(CASES, &format!("[{{id: I, {KB}, target: '= 100%', kind: invariant}}]"), 2);
    let result = run(&plan, all_good(&plan)).criteria.remove(0);
    assert_eq!(result.verdict, Verdict::Pass);
    assert_eq!(result.sentence, "2/2 = 100.0 %; no violation in 2; could still be up to 77.7 %");
    assert_eq!(result.unshown, None);
}

#[test]
fn a_run_whose_required_gates_all_stay_undecided_is_undecided_whatever_it_lets_through() {
    let mut plan = plan(CASES, &confidence(), 40);
    plan.criteria.undecided = Undecided::Warn;
    let evaluation = run(&plan, all_good(&plan));
    assert_eq!((evaluation.exit_code, evaluation.conclusion.as_str()), (4, "INCONCLUSIVE, met but not shown: C"));
}

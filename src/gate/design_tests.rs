//! The stopping rules, by enumerating every history of small suites, and inside an evaluator.

use super::Verdict;
use super::counting::Counting;
use super::design::{Design, Pass};
use super::error::EvaluationError;
use super::evaluator::{Evaluator, evaluate};
use super::rule::Asked;
use crate::metric::sample::{good, plan, story};
use crate::plan::{Plan, Stopping};
use crate::scenario::GateKind;
use crate::scenario::criteria::{Estimand, Undecided};
use crate::stats::stopping::Decision;

const KB: &str = "metric: mandatory_call_rate(knowledge_base_search)";

fn asked(kind: GateKind, target: f64, floor: Option<f64>, min_n: u64) -> Asked {
    Asked { kind, target, floor, min_n, alpha_fail: 0.05 }
}

/// Passes of every history, with three cases each.
const PASSES: u32 = 5;

/// Behaviour of a rule in one history: the passes, whether it ever passes or fails, and the extremes of its bounds.
struct History {
    goods: Vec<u64>,
    passed: bool,
    failed: bool,
    lower: f64,
    upper: f64,
}

/// All possible histories, followed to the end.
fn histories(design: &Design) -> Vec<History> {
    fn follow(design: &Design, passes: &mut Vec<Pass>, before: (bool, bool, f64, f64), all: &mut Vec<History>) {
        if passes.len() == PASSES as usize {
            let (passed, failed, lower, upper) = before;
            all.push(History { goods: passes.iter().map(|(good, _)| *good).collect(), passed, failed, lower, upper });
            return;
        }
        for good in 0..=3 {
            passes.push((good, 3));
            let standing = design.of_units(passes);
            let now = (
                before.0 || standing.decision == Decision::Pass,
                before.1 || standing.decision == Decision::Fail,
                before.2.max(standing.ruling.lower),
                before.3.min(standing.ruling.upper),
            );
            follow(design, passes, now, all);
            passes.pop();
        }
    }
    let mut all = Vec::new();
    follow(design, &mut Vec::new(), (false, false, 0.0, 1.0), &mut all);
    all
}

/// Exact probability of ever passing, of ever failing, and of bounds that are wrong at any stopping pass.
fn errors(histories: &[History], rates: [f64; 3]) -> [f64; 4] {
    let mut of_good = [0.0; 4];
    for outcome in 0..8_u32 {
        let weight = (0..3).map(|case| if outcome >> case & 1 == 1 { rates[case] } else { 1.0 - rates[case] });
        of_good[outcome.count_ones() as usize] += weight.product::<f64>();
    }
    let mean = rates.iter().sum::<f64>() / 3.0;
    let mut sums = [0.0; 4];
    for history in histories {
        let weight: f64 = history.goods.iter().map(|good| of_good[*good as usize]).product();
        let wrong = (history.lower > mean + 1e-12, history.upper < mean - 1e-12);
        for (sum, happened) in sums.iter_mut().zip([history.passed, history.failed, wrong.0, wrong.1]) {
            *sum += if happened { weight } else { 0.0 };
        }
    }
    sums
}

#[test]
fn the_declared_error_rates_hold_exactly_for_alike_and_for_different_cases() {
    let confidence = |target: f64, margin: f64, min_n: u64| {
        let design = Design::of(
            (asked(GateKind::Confidence, target, None, min_n), Counting::Planned),
            margin,
            PASSES,
            (0.05, 0.05),
        );
        (design, target - margin, target)
    };
    let designs = [
        confidence(0.8, 0.0, 0),
        confidence(0.7, 0.0, 13),
        confidence(0.6, 0.0, 15),
        confidence(0.8, 0.2, 0),
        confidence(0.7, 0.1, 9),
        (
            Design::of((asked(GateKind::Invariant, 1.0, Some(0.8), 0), Counting::Planned), 0.0, PASSES, (0.05, 0.05)),
            0.8,
            1.0,
        ),
    ];
    let suites = [0.3, 0.5, 0.6, 0.7, 0.8, 0.9].map(|rate| [rate; 3]);
    let uneven = [[1.0, 1.0, 0.4], [1.0, 1.0, 0.0], [1.0, 0.8, 0.3], [0.95, 0.95, 0.5], [1.0, 0.5, 0.5]];
    for (design, boundary, target) in designs {
        let histories = histories(&design);
        for rates in suites.into_iter().chain(uneven) {
            let mean = rates.iter().sum::<f64>() / 3.0;
            let [pass, fail, low, high] = errors(&histories, rates);
            let case = format!("{} at {rates:?}: {pass} {fail} {low} {high}", design.words(&[]));
            assert!(mean > boundary - 1e-9 || pass <= 0.05, "passes: {case}");
            assert!(mean < target - 1e-9 || fail <= 0.05, "fails: {case}");
            assert!(low <= 0.05 && high <= 0.05, "bounds: {case}");
        }
    }
}

#[test]
fn a_good_suite_passes_and_a_bad_one_fails() {
    let design = Design::of((asked(GateKind::Confidence, 0.8, None, 0), Counting::Planned), 0.0, PASSES, (0.05, 0.05));
    let histories = histories(&design);
    assert!(errors(&histories, [1.0; 3])[0] > 0.999_999, "a rule that never passes would never err");
    assert!(errors(&histories, [0.1; 3])[1] > 0.9);
}

#[test]
fn the_least_number_of_units_states_the_plan_and_what_it_allows() {
    let words = |kind, target, floor, min_n, margin| {
        Design::of((asked(kind, target, floor, min_n), Counting::Planned), margin, 12, (0.05, 0.05)).words(&[])
    };
    assert_eq!(words(GateKind::Confidence, 0.95, None, 0, 0.0), "59 units without a failure");
    assert_eq!(words(GateKind::Confidence, 0.95, None, 93, 0.0), "93 units with at most 1 failure");
    assert_eq!(words(GateKind::Confidence, 0.95, None, 124, 0.0), "124 units with at most 2 failures");
    assert_eq!(
        words(GateKind::Confidence, 0.95, None, 60, 0.05),
        "mixture e-process against 90.0 %, 60 units at least"
    );
    assert_eq!(words(GateKind::Invariant, 1.0, Some(0.95), 60, 0.0), "no violation in 60 units or more");
    assert_eq!(words(GateKind::Confidence, 1.0, None, 0, 0.0), "no number of units can show it");
}

#[test]
fn a_plan_is_judged_at_the_look_that_it_fixed_and_stays_decided() {
    let design = Design::of((asked(GateKind::Confidence, 0.95, None, 0), Counting::Planned), 0.0, 12, (0.05, 0.05));
    let all = vec![(20, 20); 4];
    assert_eq!(design.of_units(&all[..2]).decision, Decision::Undecided);
    let passed = design.of_units(&all[..3]);
    assert_eq!((passed.decision, passed.covers), (Decision::Pass, 3));
    assert!((passed.ruling.lower - 0.05_f64.powf(1.0 / 60.0)).abs() < 1e-9);
    let mut later = all.clone();
    later.push((0, 20));
    assert_eq!(design.of_units(&later), passed, "what others still need does not undo it");
    let lost = design.of_units(&[(19, 20)]);
    assert_eq!(lost.decision, Decision::CannotPass);
    assert!(lost.ruling.lower < 0.5, "the forty units to come count as bad: {lost:?}");
}

#[test]
fn an_invariant_is_broken_by_a_violation_after_it_had_enough_units() {
    let design =
        Design::of((asked(GateKind::Invariant, 1.0, Some(0.95), 60), Counting::Planned), 0.0, 12, (0.05, 0.05));
    assert_eq!(design.of_units(&[(30, 30), (30, 30)]).decision, Decision::Pass);
    let broken = design.of_units(&[(30, 30), (30, 30), (29, 30)]);
    assert_eq!((broken.decision, broken.covers), (Decision::Fail, 3));
}

#[test]
fn a_figure_is_that_of_the_units_that_were_fixed_beforehand() {
    let design = Design::of((asked(GateKind::Point, 0.9, None, 20), Counting::Planned), 0.0, 12, (0.05, 0.05));
    assert_eq!(design.of_units(&[(10, 10)]).decision, Decision::Undecided);
    let evaluated = design.of_units(&[(10, 10), (7, 10), (10, 10), (10, 10)]);
    assert_eq!((evaluated.decision, evaluated.covers), (Decision::Fail, 2), "later passes do not mend it");
}

/// Ten cases, once in each of twelve passes.
fn until_decided(criteria: &str) -> Plan {
    let cases: Vec<String> = (0..10).map(|case| format!("{{case: c{case}, ask: q}}")).collect();
    let mut plan = plan(&format!("[{}]", cases.join(", ")), criteria, 12);
    plan.stopping = Some(Stopping { max_passes: 12, alpha_pass: 0.05, alpha_fail: 0.05 });
    plan.trials.sort_by_key(|trial| trial.lane.repetition);
    plan
}

fn two_gates() -> String {
    format!(
        "[{{id: C, {KB}, target: '>= 95%', kind: confidence}}, {{id: I, {KB}, target: '= 100%', kind: invariant, floor: '>= 95%', min_n: 80}}]"
    )
}

#[test]
fn a_run_stops_at_the_end_of_the_pass_that_settles_its_last_gate_and_says_what_it_saved() {
    let plan = until_decided(&two_gates());
    let mut evaluator = Evaluator::new(&plan).expect("a judge");
    let mut passes = 0;
    for pass in 1..=12 {
        for place in (pass - 1) * 10..pass * 10 {
            let examined = evaluator.examiner().examine(&good(&plan, place), &[]).expect("examined");
            evaluator.add(examined).expect("added");
        }
        passes = pass;
        if !evaluator.end_of_pass(pass as u32) {
            break;
        }
    }
    assert_eq!(passes, 8, "80 units for the invariant; the other was decided with 60");
    let stopped_there = evaluator.finish();
    assert_eq!(stopped_there.exit_code, 0, "{}", stopped_there.conclusion);
    let stopped = stopped_there.stopped.as_ref().expect("it says where");
    assert_eq!(stopped.sentence, "stopped after pass 8 of 12: 80 of 120 trials");
    assert_eq!((stopped_there.criteria[0].n, stopped_there.criteria[1].n), (60, 80));
    assert_eq!(
        stopped_there.criteria[0].sentence,
        "60/60 = 100.0 %, true rate at least 95.1 %; ≥ 95 % holds, decided after pass 6 of 12 (59 units without a failure)"
    );
    assert_eq!(stopped_there.trials.len(), 80);
    let again = super::evaluate(&plan, (0..80).map(|place| Ok(good(&plan, place)))).expect("judged");
    assert_eq!(again, stopped_there, "traces alone give the same");
}

#[test]
fn traces_that_the_rule_needed_are_missed_and_deleting_all_never_passes() {
    let plan = until_decided(&two_gates());
    for kept in [0, 1, 59, 60, 79] {
        let evaluation = evaluate(&plan, (0..kept).map(|place| Ok(good(&plan, place)))).expect("judged");
        assert_eq!(evaluation.exit_code, 3, "{kept} kept: {}", evaluation.conclusion);
        assert_eq!(evaluation.criteria[1].verdict, Verdict::Error, "{kept} kept");
        assert_eq!(evaluation.criteria[0].verdict == Verdict::Pass, kept >= 60, "{kept} kept");
    }
}

#[test]
fn one_violation_ends_a_run_whose_other_gate_is_lost() {
    let plan = until_decided(&two_gates());
    let traces = (0..10).map(|place| match place {
        3 => Ok(story(&plan, place).turn("q").answer("no idea", &[]).done()),
        _ => Ok(good(&plan, place)),
    });
    let evaluation = evaluate(&plan, traces).expect("judged");
    assert_eq!(evaluation.stopped.map(|stopped| stopped.passes), Some(1));
    assert_eq!(evaluation.criteria[0].verdict, Verdict::Inconclusive, "a plan without failures is lost, not failed");
    assert!(
        evaluation.criteria[0].sentence.contains("it takes 59 units without a failure"),
        "{:?}",
        evaluation.criteria[0]
    );
    assert_eq!((evaluation.criteria[1].verdict, evaluation.exit_code), (Verdict::Fail, 1));
}

#[test]
fn warn_never_covers_a_gate_that_cannot_pass_any_more() {
    // An agent at 50 % against 95 %: fails after the first pass. Even with `warn` the run is no success, although the
    // other required gate holds.
    let other = "{id: S, metric: state_machine_conformance, target: '>= 50%', kind: confidence}";
    let criteria = format!("[{{id: C, {KB}, target: '>= 95%', kind: confidence}}, {other}]");
    for undecided in [Undecided::Fail, Undecided::Warn] {
        let mut plan = until_decided(&criteria);
        plan.criteria.undecided = undecided;
        let traces = (0..120).map(|place| match place {
            place if place % 2 == 0 => Ok(good(&plan, place)),
            _ => Ok(story(&plan, place).turn("q").answer("no idea", &[]).done()),
        });
        let evaluation = evaluate(&plan, traces).expect("judged");
        let verdict = evaluation.criteria[0].verdict;
        assert!(matches!(verdict, Verdict::Inconclusive | Verdict::Fail), "{verdict:?}");
        assert!(evaluation.exit_code == 4 || evaluation.exit_code == 1, "{undecided:?}: {}", evaluation.conclusion);
        let lost = evaluation.conclusion.contains("INCONCLUSIVE, and cannot pass any more: C");
        assert!(lost || verdict == Verdict::Fail, "{undecided:?}: {}", evaluation.conclusion);
    }
}

#[test]
fn a_plan_in_the_order_of_cases_or_for_unseen_cases_is_refused() {
    let mut by_case = until_decided(&two_gates());
    by_case.trials.sort_by_key(|trial| trial.case);
    assert!(matches!(Evaluator::new(&by_case), Err(EvaluationError::Plan(why)) if why.contains("order of passes")));
    let mut population = until_decided(&two_gates());
    population.criteria.estimand = Estimand::Population;
    assert!(matches!(Evaluator::new(&population), Err(EvaluationError::Plan(why)) if why.contains("population")));
}

#[test]
fn a_gate_that_may_measure_nothing_or_is_a_proxy_does_not_keep_a_run_going() {
    let with = |metric: &str| {
        let more = format!(", {{id: N, metric: {metric}, target: '>= 80%', kind: confidence}}]");
        until_decided(&two_gates().replace(']', &more))
    };
    let mut plan = with("retry_recovery");
    let run = |plan: &Plan| {
        let evaluation = evaluate(plan, (0..120).map(|place| Ok(good(plan, place)))).expect("judged");
        evaluation.stopped.map(|stopped| stopped.sentence)
    };
    assert_eq!(run(&plan).as_deref(), Some("went through all of 12 passes: 120 of 120 trials"));
    plan.not_measured_ok.push("N".into());
    let stopped = Some("stopped after pass 8 of 12: 80 of 120 trials");
    assert_eq!(run(&plan).as_deref(), stopped);
    assert_eq!(run(&with("satisfaction")).as_deref(), stopped, "without ratings it never passes");
}

#[test]
fn a_plan_has_at_least_the_units_of_one_pass_and_the_failures_that_its_bound_allows() {
    let asked = (asked(GateKind::Confidence, 0.3, None, 1), Counting::Planned);
    let design = Design::of(asked, 0.0, 10, (0.05, 0.05));
    let standing = design.of_units(&[(11, 20)]);
    assert_eq!(standing.decision, Decision::Pass, "11 of 20 show more than 30 %: {:?}", standing.ruling);
    assert!(standing.ruling.lower >= 0.3);
    assert_ne!(design.of_units(&[(7, 20)]).decision, Decision::Pass);
}

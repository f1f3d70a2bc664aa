//! Repeated trials of one case: the share of cases of which any of k, and all of k, pass (pass@k, Chen et al. 2021;
//! pass^k, Yao et al. 2024), over the cases of one scenario in one variant.
//!
//! The estimators need the same number of trials of every case: cases repeated more often would have more weight for
//! larger k. Unequal repetition, and a trial that is in ERROR or NOT_MEASURED, therefore measure nothing. Both figures and
//! the standard error use the same counts by case: trials of one case are alike, and more of them say little about unseen
//! cases.

use super::{TrialResults, Verdict};
use crate::stats::{clustered, pass_all_of, pass_any_of};
use crate::trace::Arm;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Largest k with figures.
const LARGEST: u64 = 10;

/// Shares of cases of which any of k, or all of k, trials pass: means over the cases of one scenario in one variant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Repeats {
    /// The scenario.
    pub scenario: String,
    /// The agent's flow.
    pub flow: String,
    /// The variant.
    pub variant: String,
    /// Number of its cases.
    pub cases: u64,
    /// Trials per case; the largest number where they differ.
    pub repetitions: u64,
    /// pass^k for k = 1, 2, …: all of k pass, 0 to 1; at most 10 of them.
    pub all: Vec<f64>,
    /// pass@k for k = 1, 2, …: any of k passes, 0 to 1.
    pub any: Vec<f64>,
    /// Standard error of pass^1, trials clustered by case (CR1); `None` for a single case.
    pub standard_error: Option<f64>,
    /// The same as if trials of one case were independent, for comparison only: they are not.
    pub naive_error: Option<f64>,
    /// Reason why nothing was measured; empty otherwise.
    pub not_measured: String,
}

#[derive(Default)]
struct Counts {
    trials: u64,
    passed: u64,
    errors: u64,
    not_measured: u64,
}

/// One entry per scenario and variant with a repeated case, in plan order.
pub(super) fn repeats(trials: &TrialResults) -> Vec<Repeats> {
    let mut order: Vec<(&str, &str, &str)> = Vec::new();
    let mut groups: BTreeMap<(&str, &str, &str), BTreeMap<&str, Counts>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.lane.arm == Arm::Main) {
        let key = (trial.scenario, trial.lane.flow, trial.lane.variant);
        let cases = groups.entry(key).or_insert_with(|| {
            order.push(key);
            BTreeMap::new()
        });
        let counts = cases.entry(trial.case).or_default();
        counts.trials += 1;
        counts.passed += u64::from(trial.verdict == Verdict::Pass);
        counts.errors += u64::from(trial.verdict == Verdict::Error);
        counts.not_measured += u64::from(trial.verdict == Verdict::NotMeasured);
    }
    let entry = |key: &(&str, &str, &str)| {
        let counts: Vec<&Counts> = groups[key].values().collect();
        counts.iter().any(|counts| counts.trials > 1).then(|| of(*key, &counts))
    };
    order.iter().filter_map(entry).collect()
}

fn of((scenario, flow, variant): (&str, &str, &str), counts: &[&Counts]) -> Repeats {
    let trials = || counts.iter().map(|counts| counts.trials);
    let (least, most) = (trials().min().unwrap_or(0), trials().max().unwrap_or(0));
    let sum = |of: fn(&Counts) -> u64| counts.iter().map(|counts| of(counts)).sum::<u64>();
    let mut entry = Repeats {
        scenario: scenario.to_owned(),
        flow: flow.to_owned(),
        variant: variant.to_owned(),
        cases: counts.len() as u64,
        repetitions: most,
        ..Repeats::default()
    };
    if least != most {
        entry.not_measured = format!("cases were run between {least} and {most} times: repeat each equally often");
        return entry;
    }
    for (number, state) in [(sum(|one| one.errors), "in ERROR"), (sum(|one| one.not_measured), "NOT_MEASURED")] {
        if number > 0 {
            let are = if number == 1 { "trial is" } else { "trials are" };
            entry.not_measured = format!("{number} {are} {state}, so not every case has {most} results");
            return entry;
        }
    }
    let cases = counts.len() as f64;
    let mean = |figure: fn(u64, u64, u64) -> Option<f64>, k: u64| -> Option<f64> {
        let sum: Option<f64> = counts.iter().map(|counts| figure(k, counts.passed, counts.trials)).sum();
        sum.map(|sum| sum / cases)
    };
    entry.all = (1..=most.min(LARGEST)).map_while(|k| mean(pass_all_of, k)).collect();
    entry.any = (1..=most.min(LARGEST)).map_while(|k| mean(pass_any_of, k)).collect();
    let pairs: Vec<(u64, u64)> = counts.iter().map(|counts| (counts.passed, counts.trials)).collect();
    if let Some(found) = clustered(&pairs) {
        entry.standard_error = Some(found.standard_error);
        entry.naive_error = Some((found.rate * (1.0 - found.rate) / (cases * most as f64)).sqrt());
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::evaluate;
    use crate::metric::sample::{good, plan, story};

    const CASES: &str = "[{case: a, ask: q}, {case: b, ask: q}, {case: c, ask: q}, {case: d, ask: q}, {case: e, ask: q},\
         {case: f, ask: q}]";

    /// Six cases of four trials, of which 4, 4, 3, 4, 1 and 4 pass.
    fn run(missing: usize) -> Vec<Repeats> {
        let plan = plan(CASES, "[]", 4);
        let passed = [4, 4, 3, 4, 1, 4];
        let traces = plan.trials.iter().enumerate().skip(missing).map(|(place, trial)| {
            let passes = trial.lane.repetition <= passed[trial.case];
            Ok(if passes { good(&plan, place) } else { story(&plan, place).turn("q").fail("timeout").done() })
        });
        evaluate(&plan, traces).expect("a judgement").repeats
    }

    #[test]
    fn six_cases_of_four_repetitions() {
        let [found] = run(0).try_into().expect("one entry");
        let near = |found: &[f64], expected: [f64; 4]| {
            found.len() == 4 && found.iter().zip(expected).all(|(left, right)| (left - right).abs() < 5e-5)
        };
        assert!(near(&found.all, [0.8333, 0.75, 0.7083, 0.6667]), "{found:?}");
        assert!(near(&found.any, [0.8333, 0.9167, 0.9583, 1.0]), "{found:?}");
        assert_eq!((found.cases, found.repetitions, found.not_measured.as_str()), (6, 4, ""));
        assert!(found.standard_error.is_some_and(|error| (error - 0.123_603).abs() < 1e-6), "{found:?}");
        assert!(found.naive_error.is_some_and(|error| (error - 0.0761).abs() < 5e-5), "{found:?}");
    }

    #[test]
    fn a_trial_in_error_measures_nothing() {
        let [found] = run(1).try_into().expect("one entry");
        assert!(found.all.is_empty() && found.not_measured.starts_with("1 trial is in ERROR"), "{found:?}");
    }

    #[test]
    fn a_trial_that_is_not_measured_has_not_failed() {
        let plan = plan(CASES, "[]", 2);
        let trace = |place: usize| {
            let mut trace = good(&plan, place);
            if place == 0 {
                trace.events.retain(|event| !matches!(event.what, crate::trace::What::TurnEnded(_)));
                trace.absent = Some(vec![crate::trace::Member::Answers]);
            }
            trace
        };
        let traces: Vec<_> = (0..plan.trials.len()).map(|place| Ok(trace(place))).collect();
        let evaluation = evaluate(&plan, traces.into_iter()).expect("judged");
        assert_eq!(evaluation.trials.iter().next().map(|one| one.verdict), Some(Verdict::NotMeasured));
        let [found] = evaluation.repeats.try_into().expect("one entry");
        assert!(found.all.is_empty() && found.not_measured.starts_with("1 trial is NOT_MEASURED"), "{found:?}");
    }

    #[test]
    fn unequal_repetition_measures_nothing_and_single_trials_have_no_entry() {
        let mut uneven = plan(CASES, "[]", 2);
        let fewer = uneven.trials[..uneven.trials.len() - 1].to_vec();
        uneven.trials = fewer.into();
        let traces: Vec<_> = (0..uneven.trials.len()).map(|place| Ok(good(&uneven, place))).collect();
        let [found] = evaluate(&uneven, traces.into_iter()).expect("judged").repeats.try_into().expect("one");
        assert!(found.not_measured.contains("between 1 and 2 times") && found.any.is_empty(), "{found:?}");
        let single = plan(CASES, "[]", 1);
        let traces: Vec<_> = (0..6).map(|place| Ok(good(&single, place))).collect();
        assert_eq!(evaluate(&single, traces.into_iter()).expect("judged").repeats, []);
    }
}

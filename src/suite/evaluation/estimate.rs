//! Estimates a live run of a plan: number of requests, cost, and the smallest detectable difference.
//!
//! Recorded lanes give the number of their requests. A lane without a recording counts as the mean of its case's
//! recorded lanes, and a case without recordings as the maximum that the flow's limits allow. The cost is that of the
//! recorded lanes at the project's prices; services without a price and trials without a recording are listed, never
//! guessed.

use super::deciding::{Deciding, deciding, visible as visible_difference};
use super::prospect::{Prospect, prospects};
use crate::plan::{Plan, PlannedTrial};
use crate::scenario::criteria::Estimand;
use crate::stats::{ALPHA, Clusters, Sample};
use crate::suite::recordings::{Spending, spending, spending_at_start, unpriced};
use crate::trace::Arm;
use crate::trial::Opened;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Requests, grouped by the source of their number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Requests {
    /// Number of trials.
    pub trials: usize,
    /// Requests to the model; a mean for lanes without a recording.
    pub model: f64,
    /// Requests to the search service, likewise.
    pub search: f64,
}

/// Smallest difference that two runs of the plan, paired by case, would detect.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Visible {
    /// Estimand: `fixed_suite` or `population`.
    pub estimand: &'static str,
    /// Whether the criteria declare this estimand.
    pub declared: bool,
    /// Difference of two rates, 0 to 1; `None` if no difference is detectable.
    pub difference: Option<f64>,
}

/// Cost of the requests, as far as recordings and prices are known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Money {
    /// US dollars of trials with a recording of their lane or case; `None` if nothing has a price.
    pub dollars: Option<f64>,
    /// Models without a price, as `provider/model`.
    pub unpriced: Vec<String>,
    /// Recorded requests without reported token usage.
    pub untold: u64,
}

/// Estimate of a live run of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Estimate {
    /// Trials with a recording.
    pub recorded: Requests,
    /// Trials without a recording, estimated from their case's recorded lanes.
    pub alike: Requests,
    /// Trials of cases without recordings: an upper limit.
    pub bounded: Requests,
    /// Number of cases, as a comparison pairs them: variants of a case are averaged.
    pub cases: usize,
    /// Smallest number of trials of a case: its repetitions in all variants.
    pub repetitions: usize,
    /// Number of turns in all trials.
    pub turns: usize,
    /// Smallest detectable differences.
    pub visible: Vec<Visible>,
    /// Lower bound of a rate over all turns, if none failed.
    pub without_failure: f64,
    /// Cost of the run.
    pub money: Money,
    /// Deciding sample size and detectable difference of each criterion; empty if nothing was recorded.
    pub criteria: Vec<Deciding>,
    /// Prospects of each required gate with this many conversations, recorded or not.
    pub prospects: Vec<Prospect>,
    /// Maximum number of passes, if recordings or the run stop when decided.
    pub passes: Option<u32>,
}

pub(crate) fn estimate(opened: &Opened, plan: &Plan) -> Estimate {
    let turns: Vec<usize> = plan.trials.iter().map(|trial| turns(plan, trial)).collect();
    let spent = |trial| Some(spending(opened, trial, &opened.trial(plan, trial).recording().ok()?));
    let counted: Vec<Option<Spending>> = plan.trials.par_iter().map(spent).collect();
    let mut known: BTreeMap<(usize, usize), Vec<&Spending>> = BTreeMap::new();
    let mut all = Spending::default();
    for (trial, counted) in plan.trials.iter().zip(&counted) {
        known.entry((trial.scenario, trial.case)).or_default().extend(counted);
    }
    let (mut recorded, mut alike, mut bounded) = (Requests::default(), Requests::default(), Requests::default());
    // Cases not seen yet are no other ones where they repeat an earlier one.
    let is_population = plan.criteria.estimand == Estimand::Population;
    let first = if is_population { plan.first_alike() } else { BTreeMap::new() };
    let mut repetitions: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for ((trial, counted), turns) in plan.trials.iter().zip(&counted).zip(&turns) {
        if trial.lane.arm == Arm::Main {
            let own = (trial.scenario, trial.case);
            *repetitions.entry(first.get(&own).map_or(own, |place| (usize::MAX, *place))).or_default() += 1;
        }
        let like = known.get(&(trial.scenario, trial.case)).filter(|like| !like.is_empty());
        let (sum, (model, search)) = match (counted, like) {
            (Some(own), _) => {
                all.add(own);
                (&mut recorded, (own.model_calls as f64, own.search_calls as f64))
            }
            (None, Some(like)) => {
                let mean = |of: fn(&Spending) -> f64| like.iter().map(|one| of(one)).sum::<f64>() / like.len() as f64;
                all.dollars += mean(|one| one.dollars);
                (&mut alike, (mean(|one| one.model_calls as f64), mean(|one| one.search_calls as f64)))
            }
            (None, None) => (&mut bounded, most(plan, trial, *turns)),
        };
        sum.trials += 1;
        (sum.model, sum.search) = (sum.model + model, sum.search + search);
    }
    let starts = spending_at_start(opened, plan, plan.trials.iter());
    recorded.model += starts.model_calls as f64;
    recorded.search += starts.search_calls as f64;
    all.add(&starts);
    let (cases, least) = (repetitions.len(), repetitions.values().copied().min().unwrap_or(0));
    let talks: Clusters = turns.iter().map(|turns| (*turns as u64, *turns as u64)).collect();
    let sample = match plan.criteria.estimand {
        Estimand::FixedSuite => Sample::Fixed(talks),
        Estimand::Population => Sample::Means { s: cases as f64, number: cases as u64 },
    };
    let turns: usize = turns.iter().sum();
    Estimate {
        recorded,
        alike,
        bounded,
        cases,
        repetitions: least,
        turns,
        visible: visible(cases as u64, least as u64, plan.criteria.estimand),
        without_failure: sample.lower_at(ALPHA),
        money: Money {
            dollars: (all.dollars > 0.0).then_some(all.dollars),
            unpriced: unpriced(&opened.loaded, plan).into_keys().collect(),
            untold: all.untold,
        },
        criteria: deciding(opened, plan),
        prospects: prospects(plan, true),
        passes: plan.stopping.map(|stopping| stopping.max_passes),
    }
}

/// Maximum requests that the flow's limits allow in that many turns, without HTTP retries: any completion may call a
/// search.
fn most(plan: &Plan, trial: &PlannedTrial, turns: usize) -> (f64, f64) {
    let Some(settings) = plan.variant_of(trial).and_then(|variant| variant.settings.as_ref()) else {
        return (0.0, 0.0);
    };
    let model = f64::from(settings.limits.model_calls) * turns as f64;
    (model, if settings.search.is_some() { model } else { 0.0 })
}

fn visible(cases: u64, repetitions: u64, declared: Estimand) -> Vec<Visible> {
    let of = |estimand: Estimand, name: &'static str| Visible {
        estimand: name,
        declared: estimand == declared,
        difference: visible_difference(cases, repetitions, estimand, ALPHA),
    };
    vec![of(Estimand::FixedSuite, "fixed_suite"), of(Estimand::Population, "population")]
}

/// Number of turns in a planned trial.
pub(crate) fn turns(plan: &Plan, trial: &PlannedTrial) -> usize {
    plan.case_of(trial).map_or(0, |case| case.turns().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_repetitions_see_smaller_differences_and_cases_not_seen_yet_need_more() {
        let seen = |cases, repetitions| {
            let found = visible(cases, repetitions, Estimand::FixedSuite);
            (found[0].difference, found[1].difference)
        };
        for (cases, repetitions) in [(40, 5), (10, 1), (10, 3), (8, 3), (60, 1)] {
            let (fixed, population) = seen(cases, repetitions);
            assert!(fixed.is_some() && population.is_none_or(|seen| Some(seen) >= fixed), "{cases} x {repetitions}");
        }
        assert!(seen(40, 10).0 < seen(40, 5).0);
        for repetitions in [1, 5, 20] {
            assert_eq!(seen(3, repetitions), (None, None), "three cases show nothing, however often they run");
        }
        assert!(seen(60, 1).0.is_some_and(|seen| seen > 0.1 && seen < 0.25), "{:?}", seen(60, 1));
    }
}

//! What a live run of a plan would take: how many requests and how much money, and the smallest difference that it
//! could show.
//!
//! Recorded lanes say how many requests they took; a lane without a recording is taken for the mean of the recorded
//! lanes of its case, and a case without any for what the flow's limits allow. Money is what recorded
//! lanes cost at the project's prices; what has no price or no recording is named, never guessed.

use super::deciding::{Deciding, deciding, visible as visible_difference};
use super::prospect::{Prospect, prospects};
use crate::plan::{Plan, PlannedTrial};
use crate::scenario::criteria::Estimand;
use crate::stats::{ALPHA, Clusters, Sample};
use crate::trace::Arm;
use crate::trial::{Spending, TrialRunner};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;

/// Requests by where their number comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Requests {
    /// Trials.
    pub trials: usize,
    /// Requests to the model; a mean for lanes that were not recorded.
    pub model: f64,
    /// Requests to the search service.
    pub search: f64,
}

/// The smallest difference that two runs of the plan, paired by case, would show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Visible {
    /// Of what: `fixed_suite` or `population`.
    pub estimand: &'static str,
    /// Whether the criteria are about it.
    pub declared: bool,
    /// The difference of two rates, 0 to 1; `None` where no difference would be shown.
    pub difference: Option<f64>,
}

/// What the requests would cost, as far as recordings and prices tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Money {
    /// US dollars for the trials that were recorded, or whose case was; `None` where nothing has a price.
    pub dollars: Option<f64>,
    /// `provider/model` without a price.
    pub unpriced: Vec<String>,
    /// Recorded requests whose tokens the service did not tell.
    pub untold: u64,
}

/// What a live run of a plan would take, and could show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Estimate {
    /// Trials whose own recording says it.
    pub recorded: Requests,
    /// Trials without one, by the recorded lanes of their case.
    pub alike: Requests,
    /// Trials of cases without any recording: at most so many.
    pub bounded: Requests,
    /// Cases, each variant counted.
    pub cases: usize,
    /// The fewest repetitions of one.
    pub repetitions: usize,
    /// Turns of all trials.
    pub turns: usize,
    /// The smallest visible differences.
    pub visible: Vec<Visible>,
    /// What a rate over all turns would be shown to be at least, if none failed.
    pub without_failure: f64,
    /// What that would cost.
    pub money: Money,
    /// Each criterion: what would decide it, and what it could show; empty when nothing was recorded.
    pub criteria: Vec<Deciding>,
    /// What each required gate can show with so many conversations, whether they are recorded or not.
    pub prospects: Vec<Prospect>,
    /// Passes at most, where recordings or the run stop when they are decided.
    pub passes: Option<u32>,
}

/// The estimate of a plan.
pub(crate) fn estimate(runner: &TrialRunner, plan: &Plan) -> Estimate {
    let turns: Vec<usize> = plan.trials.iter().map(|trial| turns(plan, trial)).collect();
    let spent = |trial| runner.recording(plan, trial).ok().map(|cassette| runner.spending(trial, &cassette));
    let counted: Vec<Option<Spending>> = plan.trials.par_iter().map(spent).collect();
    let mut known: BTreeMap<(usize, usize), Vec<&Spending>> = BTreeMap::new();
    let mut all = Spending::default();
    for (trial, counted) in plan.trials.iter().zip(&counted) {
        known.entry((trial.scenario, trial.case)).or_default().extend(counted);
    }
    let (mut recorded, mut alike, mut bounded) = (Requests::default(), Requests::default(), Requests::default());
    let mut repetitions: BTreeMap<(usize, usize, &str), usize> = BTreeMap::new();
    for ((trial, counted), turns) in plan.trials.iter().zip(&counted).zip(&turns) {
        if trial.lane.arm == Arm::Main {
            *repetitions.entry((trial.scenario, trial.case, &trial.lane.variant)).or_default() += 1;
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
            unpriced: runner.unpriced(plan).into_keys().collect(),
            untold: all.untold,
        },
        criteria: deciding(runner, plan),
        prospects: prospects(plan, true),
        passes: plan.stopping.map(|stopping| stopping.max_passes),
    }
}

/// What the flow's limits allow in so many turns, HTTP retries aside: any completion may ask for a search.
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

/// Turns of a planned trial.
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
        let (fixed, population) = seen(40, 5);
        assert!(fixed < population && seen(40, 10).0 < fixed);
        assert!(population.is_some_and(|seen| (seen - 0.091).abs() < 5e-4), "the published table: {population:?}");
        assert_eq!(seen(3, 1).0, None, "three discordant pairs show nothing");
        assert!(seen(60, 1).0.is_some_and(|seen| seen > 0.1 && seen < 0.25), "{:?}", seen(60, 1));
    }
}

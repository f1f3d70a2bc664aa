//! `ragcheck list --estimate`: how many requests a live run of the selection would send, and the smallest difference
//! that it could show.
//!
//! Recorded lanes say how many requests they took; a lane without a recording is taken for the mean of the recorded
//! lanes of its case, and a case without any for what the flow's limits allow. Money is what recorded
//! lanes cost at the project's prices; what has no price or no recording is named, never guessed.

use super::diagnostic::plural;
use super::pass_plan::{Deciding, deciding, text, visible as visible_difference};
use crate::plan::{Plan, PlannedTrial};
use crate::price::dollars;
use crate::scenario::criteria::Estimand;
use crate::scenario::{Loaded, SequenceStep};
use crate::stats::lower_bound;
use crate::trace::Arm;
use crate::trial::{Spending, TrialRunner};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Requests by where their number comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Requests {
    /// Trials.
    pub trials: usize,
    /// Requests to the model; a mean for lanes that were not recorded.
    pub model: f64,
    /// Requests to the search service.
    pub search: f64,
}

/// The smallest difference that two runs of the plan, paired by case, would show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Visible {
    /// Of what: `fixed_suite` or `population`.
    pub estimand: &'static str,
    /// Whether the criteria are about it.
    pub declared: bool,
    /// The difference of two rates, 0 to 1; `None` where no difference would be shown.
    pub difference: Option<f64>,
}

/// What the requests would cost, as far as recordings and prices tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Money {
    /// US dollars for the trials that were recorded, or whose case was; `None` where nothing has a price.
    pub dollars: Option<f64>,
    /// `provider/model` without a price.
    pub unpriced: Vec<String>,
    /// Recorded requests whose tokens the service did not tell.
    pub untold: u64,
}

/// What a live run of a plan would take, and could show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
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
    /// Passes at most, where recordings or the run stop when they are decided.
    pub passes: Option<u32>,
}

/// The estimate of a plan; `turns` are those of each trial, in plan order.
pub fn estimate(runner: &TrialRunner, loaded: &Loaded, plan: &Plan, turns: &[usize]) -> Estimate {
    let spent = |trial| runner.recording(plan, trial).ok().map(|cassette| runner.spending(plan, trial, &cassette));
    let counted: Vec<Option<Spending>> = plan.trials.par_iter().map(spent).collect();
    let mut known: BTreeMap<(usize, usize), Vec<&Spending>> = BTreeMap::new();
    let mut all = Spending::default();
    for (trial, counted) in plan.trials.iter().zip(&counted) {
        known.entry((trial.scenario, trial.case)).or_default().extend(counted);
    }
    let (mut recorded, mut alike, mut bounded) = (Requests::default(), Requests::default(), Requests::default());
    let mut repetitions: BTreeMap<(usize, usize, &str), usize> = BTreeMap::new();
    for ((trial, counted), turns) in plan.trials.iter().zip(&counted).zip(turns) {
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
            (None, None) => (&mut bounded, most(loaded, plan, trial, *turns)),
        };
        sum.trials += 1;
        (sum.model, sum.search) = (sum.model + model, sum.search + search);
    }
    let (cases, least) = (repetitions.len(), repetitions.values().copied().min().unwrap_or(0));
    let turns: usize = turns.iter().sum();
    Estimate {
        recorded,
        alike,
        bounded,
        cases,
        repetitions: least,
        turns,
        visible: visible(cases as u64, least as u64, plan.criteria.estimand),
        without_failure: lower_bound(turns as u64, turns as u64),
        money: Money {
            dollars: (all.dollars > 0.0).then_some(all.dollars),
            unpriced: runner.unpriced(plan).into_iter().collect(),
            untold: all.untold,
        },
        criteria: deciding(runner, plan),
        passes: plan.stopping.map(|stopping| stopping.max_passes),
    }
}

/// What the flow's limits allow in so many turns, HTTP retries aside: any completion may ask for a search.
fn most(loaded: &Loaded, plan: &Plan, trial: &PlannedTrial, turns: usize) -> (f64, f64) {
    let name = &plan.scenarios[trial.scenario].name;
    let Some(written) = loaded.scenarios.iter().find(|written| written.scenario.scenario == *name) else {
        return (0.0, 0.0);
    };
    let model = f64::from(written.scenario.limits.model_calls) * turns as f64;
    (model, if written.scenario.search.is_some() { model } else { 0.0 })
}

fn visible(cases: u64, repetitions: u64, declared: Estimand) -> Vec<Visible> {
    let of = |estimand: Estimand, name: &'static str| Visible {
        estimand: name,
        declared: estimand == declared,
        difference: visible_difference(cases, repetitions, estimand),
    };
    vec![of(Estimand::FixedSuite, "fixed_suite"), of(Estimand::Population, "population")]
}

/// Turns of a planned trial.
pub fn turns(plan: &Plan, trial: &PlannedTrial) -> usize {
    let step = |step: &SequenceStep| match step {
        SequenceStep::Conversation(conversation) => conversation.turns.len(),
        SequenceStep::Together(all) => all.iter().map(|conversation| conversation.turns.len()).sum(),
    };
    let case = &plan.scenarios[trial.scenario].cases[trial.case].case;
    case.turns.len() + case.sequence.iter().map(step).sum::<usize>()
}

impl Money {
    fn text(&self, without: usize) -> String {
        let mut said = Vec::new();
        if let Some(amount) = self.dollars {
            said.push(format!("about {}", dollars(amount)));
            if without > 0 {
                said.push(format!("{} of cases without a recording not counted", plural(without, "trial")));
            }
        }
        if !self.unpriced.is_empty() {
            let models: Vec<String> = self.unpriced.iter().map(|model| crate::trace::text::quote(model, 60)).collect();
            said.push(format!("not measured: no price known for {}", models.join(", ")));
        }
        if self.untold > 0 {
            let requests = plural(self.untold as usize, "recorded request");
            said.push(format!("not measured for {requests} whose tokens were not told"));
        }
        if said.is_empty() { "not measured: nothing was recorded".to_owned() } else { said.join("; ") }
    }
}

impl Estimate {
    /// The lines below the table of trials.
    pub fn text(&self) -> String {
        let mut out = String::from("\nA live run of this would send\n");
        let row = |out: &mut String, requests: &Requests, about: &str, from: &str| {
            if requests.trials > 0 {
                let (model, search) = (requests.model.round(), requests.search.round());
                let trials = plural(requests.trials, "trial");
                let _ = writeln!(out, "  {about}{model} model and {search} search requests in {trials}, {from}");
            }
        };
        row(&mut out, &self.recorded, "", "as in their recordings");
        row(&mut out, &self.alike, "about ", "by the recorded lanes of the same cases");
        row(
            &mut out,
            &self.bounded,
            "at most ",
            "by the limits of the flow and one search a completion, HTTP retries aside",
        );
        if let Some(passes) = self.passes {
            let _ =
                writeln!(out, "  or fewer: it goes by complete passes, {passes} at most, and stops when it is decided");
        }
        let _ = writeln!(out, "  money: {}", self.money.text(self.bounded.trials));
        let _ = writeln!(
            out,
            "\nIt could show, against another run of it ({}, {} each; 80 % power, 5 % two-sided)",
            plural(self.cases, "case"),
            plural(self.repetitions, "repetition"),
        );
        for one in &self.visible {
            let what = if one.estimand == "population" { "cases not seen yet" } else { "these cases" };
            let declared = if one.declared { ", which the criteria are about" } else { "" };
            let said = one.difference.map_or_else(
                || "no difference of two rates".to_owned(),
                |seen| format!("a difference of {:.1} points or more", seen * 100.0),
            );
            let _ = writeln!(out, "  for {what} (`{}`{declared}): {said}", one.estimand);
        }
        let _ = writeln!(
            out,
            "  assuming that {}",
            if self.repetitions == 1 {
                "2 % of the cases get worse by chance (one case not seen yet varies with variance 0.01)"
            } else {
                "repetitions of a case vary as a rate of 91 % does (variance 0.08; between cases not seen yet 0.01)"
            }
        );
        let _ = writeln!(
            out,
            "and by itself: a rate over its {} to be at least {:.1} %, if none of them failed",
            plural(self.turns, "turn"),
            self.without_failure * 100.0
        );
        out.push_str(&text(&self.criteria));
        out
    }
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

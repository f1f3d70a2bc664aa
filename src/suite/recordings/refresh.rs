//! Selects trials to re-record, and estimates the cost.
//!
//! The estimate uses the earlier recordings; a trial without a valid recording counts as the mean of its scenario's
//! others.

use super::spending::{Spending, spending};
use super::staleness::{Ages, old_starts, stale};
use super::starts::spending_at_start;
use crate::plan::Plan;
use crate::trace::{TrialEnd, TrialErrorKind};
use crate::trial::Opened;
use crate::trial::run::{self, KeptTraces, Step};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::ControlFlow;

/// Trials to re-record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Refresh {
    /// Their indices in the plan.
    pub trials: BTreeSet<usize>,
    /// Reasons, with the number of trials.
    pub reasons: BTreeMap<&'static str, usize>,
}

/// Estimated cost of re-recording, from earlier recordings.
#[derive(Debug, Clone, Default)]
pub(crate) struct RefreshCost {
    /// Calls and money.
    pub spending: Spending,
    /// Trials without a valid recording, counted as the mean of the others of their scenario.
    pub estimated: usize,
    /// Trials not counted, because nothing of their scenario was recorded.
    pub unknown: usize,
}

/// Finds the trials of `plan` to re-record: those whose replay lacks a recording (if `missed`), and those stale by
/// `ages` (if given).
///
/// # Errors
/// If the replay cannot be run.
pub(crate) fn refresh(opened: &Opened, plan: &Plan, missed: bool, ages: Option<Ages>) -> io::Result<Refresh> {
    let mut found = Refresh::default();
    let mut add = |index: usize, why: &'static str| {
        if found.trials.insert(index) {
            *found.reasons.entry(why).or_default() += 1;
        }
    };
    if missed {
        for (index, why) in missing(opened, plan)? {
            add(index, why);
        }
    }
    if let Some(ages) = ages {
        let mut old: BTreeSet<usize> =
            old_starts(opened, plan, ages).into_iter().map(|(scenario, ..)| scenario).collect();
        for (index, why) in stale(opened, plan, ages) {
            old.extend(why.old.map(|_| plan.trials[index].scenario));
            add(index, if why.old.is_some() { "too old" } else { "drifted" });
        }
        // Recorded alone, it would be a second draw of the same agent, which does not replace the first.
        for (index, _) in plan.trials.iter().enumerate().filter(|(_, trial)| old.contains(&trial.scenario)) {
            add(index, "of the same scenario");
        }
    }
    Ok(found)
}

/// Trials, by index, whose replay stops for lack of a recording, with the reason.
fn missing(opened: &Opened, plan: &Plan) -> io::Result<Vec<(usize, &'static str)>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut missed, mut index) = (Vec::new(), 0);
    run::replay(opened, plan, cores, &KeptTraces::default(), &|_| (), &mut |step| {
        let Step::Trial(done) = step else { return Ok(ControlFlow::Continue(())) };
        if let TrialEnd::Error(problem) = &done.finished.trace.end {
            use TrialErrorKind::{AsksLess, CassetteBroken, CassetteMiss, LaneMissing};
            if matches!(problem.kind, LaneMissing | CassetteMiss | CassetteBroken | AsksLess) {
                missed.push((index, problem.kind.label()));
            }
        }
        index += 1;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(missed)
}

impl Refresh {
    /// Estimates re-recording these trials.
    pub(crate) fn cost(&self, opened: &Opened, plan: &Plan) -> RefreshCost {
        let mut cost = RefreshCost::default();
        let trials = self.trials.iter().map(|index| &plan.trials[*index]);
        cost.spending.add(&spending_at_start(opened, plan, trials));
        let mut means: BTreeMap<usize, Option<(Spending, u64)>> = BTreeMap::new();
        for index in &self.trials {
            let trial = &plan.trials[*index];
            if let Ok(cassette) = opened.trial(plan, trial).recording() {
                cost.spending.add(&spending(opened, trial, &cassette));
                continue;
            }
            match means.entry(trial.scenario).or_insert_with(|| total(opened, plan, trial.scenario)) {
                Some((sum, lanes)) => {
                    let share = |calls: u64| calls.div_ceil(*lanes);
                    cost.spending.add(&Spending {
                        model_calls: share(sum.model_calls),
                        search_calls: share(sum.search_calls),
                        embedding_calls: share(sum.embedding_calls),
                        dollars: sum.dollars / *lanes as f64,
                        unpriced: sum.unpriced.clone(),
                        untold: 0,
                    });
                    cost.estimated += 1;
                }
                None => cost.unknown += 1,
            }
        }
        cost
    }
}

/// Total spending and number of a scenario's recorded lanes; `None` if there are none.
fn total(opened: &Opened, plan: &Plan, scenario: usize) -> Option<(Spending, u64)> {
    let (mut sum, mut lanes) = (Spending::default(), 0);
    for trial in plan.trials.iter().filter(|trial| trial.scenario == scenario) {
        if let Ok(cassette) = opened.trial(plan, trial).recording() {
            sum.add(&spending(opened, trial, &cassette));
            lanes += 1;
        }
    }
    (lanes > 0).then_some((sum, lanes))
}

//! Running sums of one criterion, independent of the order of trials.

use super::cause::{Cause, Causes};
use super::format::{time, time_beside};
use super::sources::Sources;
use super::{Excluded, Verdict, Violation};
use crate::metric::{Observation, Outcome};
use crate::plan::{Plan, PlannedTrial};
use crate::scenario::Target;
use crate::stats::Clusters;
use crate::trace::Evidence;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of violations in a result.
const LISTED: usize = 50_000;

/// Why a trial without ERROR has no units, or not all. A missing member comes first: adding it may measure something.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum WhyNoUnits {
    /// Its trace lacks a member.
    Absent(String),
    /// Its agent is out of scope, or part of the trial is undetermined.
    OutOfScope(String),
}

impl WhyNoUnits {
    /// The reason.
    pub(super) fn words(&self) -> &str {
        let (Self::Absent(why) | Self::OutOfScope(why)) = self;
        why
    }
}

/// Sums over the units of a criterion, in the metric's direction (not yet turned into good and bad).
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Successes; for a time, units below the limit.
    pub successes: u64,
    /// Number of units.
    pub n: u64,
    /// Times of the units that ended, in microseconds.
    pub times: Vec<u64>,
    /// Trials in ERROR that would have counted.
    pub errors: u64,
    /// Trials whose agent is out of the metric's scope, or whose trace lacks what it needs.
    pub out_of_scope: u64,
    /// Why trials have no units: the least reason, so that the order of trials does not matter.
    pub why_no_units: Option<WhyNoUnits>,
    /// Where the units come from.
    pub sources: Sources,
    /// Good units by trial, of imported ones by session: the independent clusters when these cases run again.
    pub clusters: Clusters,
    /// Good units and units of sessions of which more trials may come.
    sessions: BTreeMap<String, (u64, u64)>,
    /// Behaviour hashes of the trials: see [`super::behaviour`].
    pub behaviours: BTreeSet<u64>,
    /// Number of trials with units that were re-run, and how many of them passed when last run.
    pub run_again: (u64, u64),
    /// Successes and units by variant.
    pub by_variant: BTreeMap<String, (u64, u64)>,
    /// Good units by trial, for each case.
    pub by_case: BTreeMap<(usize, usize), Clusters>,
    excluded: BTreeMap<(usize, usize), (u64, u64)>,
    violations: BTreeMap<(usize, usize), Violation>,
    causes: Causes,
}

impl Tally {
    /// Adds the units of the trial at `place` of the plan; excluded ones are counted separately.
    pub(super) fn add(
        &mut self,
        place: usize,
        trial: &PlannedTrial,
        units: &[Observation],
        target: Target,
        excluded: bool,
        (evidence, behaviour): (&Evidence, u64),
    ) {
        let succeeded = |unit: &Observation| match (unit.outcome, target) {
            (Outcome::Success, _) => true,
            (Outcome::Took(took), Target::AtMostTime(limit)) => u128::from(took) < limit.as_micros(),
            _ => false,
        };
        let case = (trial.scenario, trial.case);
        if excluded {
            let sum = self.excluded.entry(case).or_default();
            sum.0 += units.iter().filter(|unit| succeeded(unit)).count() as u64;
            sum.1 += units.len() as u64;
            return;
        }
        if units.is_empty() {
            return;
        }
        self.sources.add(evidence);
        if let Some(last) = evidence.run_again.last() {
            self.run_again.0 += 1;
            self.run_again.1 += u64::from(last == Verdict::Pass.as_str());
        }
        self.behaviours.insert(behaviour);
        let (mut successes, mut violations) = (0, Vec::new());
        for (ordinal, unit) in units.iter().enumerate() {
            let success = succeeded(unit);
            successes += u64::from(success);
            if let Outcome::Took(time) = unit.outcome {
                self.times.push(time);
            }
            // Where lower is better, the metric's success is the violation.
            if success == target.is_ceiling() {
                violations.push(((place, ordinal), violation(trial, unit, target)));
            }
        }
        self.violate(&violations);
        self.causes.add(violations);
        let n = units.len() as u64;
        (self.successes, self.n) = (self.successes + successes, self.n + n);
        let good = if target.is_ceiling() { n - successes } else { successes };
        match &evidence.session {
            Some(session) => {
                let sum = self.sessions.entry(session.clone()).or_default();
                *sum = (sum.0 + good, sum.1 + n);
            }
            None => self.clusters.add(good, n),
        }
        self.by_case.entry(case).or_default().add(good, n);
        let sum = self.by_variant.entry(trial.lane.variant.clone()).or_default();
        *sum = (sum.0 + successes, sum.1 + n);
    }

    /// Makes each session a cluster, after the last trial.
    pub(super) fn close_sessions(&mut self) {
        for (good, n) in std::mem::take(&mut self.sessions).into_values() {
            self.clusters.add(good, n);
        }
    }

    /// Counts trials whose agents are out of the metric's scope.
    pub(super) fn add_out_of_scope(&mut self, why: &WhyNoUnits, trials: u64) {
        self.out_of_scope += trials;
        if self.why_no_units.as_ref().is_none_or(|known| why < known) {
            self.why_no_units = Some(why.clone());
        }
    }

    /// Adds the sums of other trials.
    pub(super) fn absorb(&mut self, other: &Self) {
        (self.successes, self.n) = (self.successes + other.successes, self.n + other.n);
        self.times.extend(&other.times);
        self.errors += other.errors;
        self.out_of_scope += other.out_of_scope;
        self.why_no_units = self.why_no_units.take().into_iter().chain(other.why_no_units.clone()).min();
        self.sources.absorb(&other.sources);
        self.run_again = (self.run_again.0 + other.run_again.0, self.run_again.1 + other.run_again.1);
        self.clusters.absorb(&other.clusters);
        self.behaviours.extend(&other.behaviours);
        add_sums(&mut self.sessions, &other.sessions);
        add_sums(&mut self.by_variant, &other.by_variant);
        for (case, clusters) in &other.by_case {
            self.by_case.entry(*case).or_default().absorb(clusters);
        }
        add_sums(&mut self.excluded, &other.excluded);
        self.causes.absorb(&other.causes);
        self.violations.extend(other.violations.iter().map(|(key, violation)| (*key, violation.clone())));
        while self.violations.len() > LISTED {
            self.violations.pop_last();
        }
    }

    fn violate(&mut self, violations: &[((usize, usize), Violation)]) {
        for (key, violation) in violations {
            let late = self.violations.last_key_value().is_some_and(|(last, _)| last < key);
            if late && self.violations.len() >= LISTED {
                return;
            }
            self.violations.insert(*key, violation.clone());
            if self.violations.len() > LISTED {
                self.violations.pop_last();
            }
        }
    }

    /// Reasons for violations, most frequent first.
    pub(super) fn causes(&self) -> Vec<Cause> {
        self.causes.list()
    }

    /// The first violations in plan order.
    pub(super) fn violations(&self) -> Vec<Violation> {
        self.violations.values().cloned().collect()
    }

    /// Excluded cases in plan order, including those without any unit.
    pub(super) fn excluded(&self, plan: &Plan, id: &str) -> Vec<Excluded> {
        let row = |((scenario, case), (successes, n)): (&(usize, usize), &(u64, u64))| {
            let scenario = &plan.scenarios[*scenario];
            let case = &scenario.cases[*case].case;
            Excluded {
                case: format!("{}/{}", scenario.name, case.case),
                reason: case.excluded_from.get(id).cloned().unwrap_or_default(),
                n: *n,
                successes: *successes,
            }
        };
        self.excluded.iter().map(row).collect()
    }

    /// Good units: successes, or failures where lower is better.
    pub(super) fn good(&self, target: Target) -> u64 {
        if target.is_ceiling() { self.n - self.successes } else { self.successes }
    }
}

fn violation(trial: &PlannedTrial, unit: &Observation, target: Target) -> Violation {
    let note = match (unit.outcome, target) {
        (Outcome::Took(took), Target::AtMostTime(limit)) => {
            let limit = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
            format!("slower than {}: {}", time(limit), time_beside(took, limit))
        }
        _ => unit.note.clone(),
    };
    Violation { trial: trial.id.clone(), unit: unit.unit.clone(), note }
}

fn add_sums<K: Ord + Clone>(into: &mut BTreeMap<K, (u64, u64)>, from: &BTreeMap<K, (u64, u64)>) {
    for (key, (successes, n)) in from {
        let sum = into.entry(key.clone()).or_default();
        *sum = (sum.0 + successes, sum.1 + n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_lists_as_many_violations_as_one_tally() {
        let one = Violation { trial: "a".into(), unit: "turn 1".into(), note: String::new() };
        let (mut full, mut sum) = (Tally::default(), Tally::default());
        full.violate(&(0..=LISTED).map(|place| ((place, 0), one.clone())).collect::<Vec<_>>());
        sum.absorb(&full);
        assert_eq!((full.violations.len(), sum.violations.len()), (LISTED, LISTED));
    }
}

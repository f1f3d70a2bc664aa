//! Computes for each criterion of a plan how many conversations, or cases, would decide it, and the smallest difference
//! from another run that it could detect.
//!
//! Units are measured by replaying the recordings of the selection; a trial without a recording counts as the mean of
//! its case's recorded trials. Cases without recordings are left out.

use super::evaluator::{ExaminedTrace, RunEvaluator};
use crate::compare::{CASES, Counts, Measured, Summary};
use crate::metric::catalogue;
use crate::plan::Plan;
use crate::scenario::criteria::{Estimand, Per};
use crate::scenario::{Criterion, GateKind, resolve_metric};
use crate::stats::percent::{Rounding, percent, rounded};
use crate::stats::power::{Spread, smallest_visible_difference};
use crate::stats::rate::units_for;
use crate::stats::sample::{clusters_as_seen, clusters_for};
use crate::stats::{ALPHA, Clusters, population};
use crate::trace::{Arm, TrialEnd};
use crate::trial::{Finished, Opened, lane_file, replay};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Probability of detecting a difference.
const POWER: f64 = 0.8;
/// Variance of a single run: 2 % of the cases get worse by chance between two of them.
const WORSE_BY_CHANCE: f64 = 0.02;
/// Variance of one of several repetitions, for a rate of 91 %.
const WITHIN: f64 = 0.08;
/// Variance of the true difference between unseen cases.
const BETWEEN: f64 = 0.01;
/// Trials replayed before their figures are read.
const WINDOW: usize = 256;
/// Largest number of failures searched for a deciding sample.
const MOST_FAILURES: u64 = 200;
/// Largest number of cases searched for a deciding sample.
const MOST_CASES: u64 = 2_000;

/// The deciding sample size and the detectable difference of one criterion.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Deciding {
    /// Id of the criterion, `scenario/id` for a gate, `cases` for the gates on cases.
    pub key: String,
    /// The metric as written.
    pub metric: String,
    /// Number of units in the plan, estimated from recordings; 0 if they measure none.
    pub units: f64,
    /// Number of conversations with these units; turns of one conversation are not independent.
    pub conversations: f64,
    /// Number of cases with units, as a comparison pairs them: variants of a case are averaged.
    pub cases: u64,
    /// Share of good units in the recordings.
    pub good: Option<f64>,
    /// Number of conversations, or of cases with `estimand: population`, that decide it without a failure; `None` if it
    /// is decided in another way.
    pub needed: Option<u64>,
    /// The same number at the observed share of good units; `None` if no number suffices.
    pub needed_as_seen: Option<u64>,
    /// Number of trials of this selection that contain `needed` conversations.
    pub trials: Option<u64>,
    /// Smallest detectable difference of two rates, 0 to 1, in a comparison corrected over `family` rows.
    pub difference: Option<f64>,
    /// Number of rows corrected together with this one; 1 if it is not required.
    pub family: u64,
    /// Summary sentence.
    pub sentence: String,
}

/// All criteria of `plan` in order, the cases last; empty if nothing was recorded.
pub(super) fn deciding(opened: &Opened, plan: &Plan) -> Vec<Deciding> {
    let plan = Arc::new(Plan { machines: opened.machines(), ..plan.clone() });
    let Ok(evaluator) = RunEvaluator::begin(&plan) else { return Vec::new() };
    let mut evaluator = evaluator.collecting();
    let examiner = evaluator.examiner();
    let mut recorded = false;
    for window in plan.trials.chunks(WINDOW) {
        let lanes = window.par_iter().filter(|trial| !trial.is_external());
        let lanes = lanes.filter(|trial| lane_file(opened.trial(&plan, trial)).is_file());
        let replayed = lanes.map(|trial| replay(opened.trial(&plan, trial)));
        let whole: Vec<Finished> = replayed.filter(|one| one.trace.end == TrialEnd::Completed).collect();
        for Finished { trace, passages, .. } in whole {
            if evaluator.add(Some(&trace), &passages, ExaminedTrace::of(&examiner, &trace, &passages)).is_err() {
                return Vec::new();
            }
            recorded = true;
        }
    }
    let Some(summary) = evaluator.finish().summary("estimate").filter(|_| recorded) else { return Vec::new() };
    let mut planned: BTreeMap<(String, String, String), u64> = BTreeMap::new();
    for trial in plan.trials.iter().filter(|trial| trial.lane.arm == Arm::Main) {
        let scenario = &plan.scenarios[trial.scenario];
        let case = scenario.cases[trial.case].case.case.clone();
        *planned.entry((scenario.name.clone(), case, trial.lane.variant.clone())).or_default() += 1;
    }
    let trials = planned.values().sum();
    let required = required(&summary);
    let row = |measured: &Measured| {
        let family = if measured.required && !measured.proxy { required } else { 1 };
        deciding_row(
            measured,
            declaration(&plan, measured),
            &summary,
            (&planned, trials),
            plan.criteria.estimand,
            family,
        )
    };
    summary.criteria.iter().map(row).collect()
}

/// Number of rows that a comparison corrects: required criteria with units, and turn times if a criterion limits a
/// time.
fn required(summary: &Summary) -> u64 {
    let gated = |one: &&Measured| {
        let seen = |units: &BTreeMap<String, Counts>| units.get(&one.key).is_some_and(|counts| counts.n > 0);
        one.required && !one.proxy && summary.cases.iter().any(|case| seen(&case.units))
    };
    let timed = summary.criteria.iter().any(|one| one.required && one.limit_us.is_some());
    summary.criteria.iter().filter(gated).count() as u64 + u64::from(timed)
}

/// Declaration of the criterion; `None` for the row on all cases.
fn declaration<'p>(plan: &'p Plan, measured: &Measured) -> Option<&'p Criterion> {
    if measured.key == CASES {
        return None;
    }
    let gates = plan.scenarios.iter();
    let mut gates = gates.flat_map(|scenario| scenario.gates.iter().map(move |gate| (scenario.name.as_str(), gate)));
    let whole = plan.criteria.criteria.iter().find(|criterion| criterion.id == measured.key);
    whole.or_else(|| gates.find(|(name, gate)| format!("{name}/{}", gate.id) == measured.key).map(|(_, gate)| gate))
}

fn deciding_row(
    measured: &Measured,
    written: Option<&Criterion>,
    summary: &Summary,
    (planned, trials): (&BTreeMap<(String, String, String), u64>, u64),
    estimand: Estimand,
    family: u64,
) -> Deciding {
    let (mut units, mut conversations, mut rows_seen, mut seen) = (0.0, 0.0, 0_u32, (0, 0));
    let mut cases = BTreeSet::new();
    let (mut clusters, mut own) = (Clusters::default(), 0.0);
    for case in &summary.cases {
        let Some(Counts { successes, n }) = case.units.get(&measured.key).copied().filter(|counts| counts.n > 0) else {
            continue;
        };
        let key = (case.scenario.clone(), case.case.clone(), case.variant.clone());
        // A unit may span several repetitions or a control arm: observed units are scaled in the same way.
        let scale = (planned.get(&key).copied().unwrap_or(0) as f64 / case.trials.max(1) as f64).max(1.0);
        let good = |successes: u64, n: u64| if measured.fewer_is_better { n - successes } else { successes };
        let rows = case.repetitions.get(&measured.key).map(Vec::as_slice).unwrap_or_default();
        for row in rows {
            clusters.add(good(row.successes, row.n), row.n);
        }
        units += n as f64 * scale;
        conversations += rows.len() as f64 * scale;
        rows_seen += 1;
        let own_name = || format!("{}/{}", case.scenario, case.case);
        cases.insert(if case.copy_of.is_empty() { own_name() } else { case.copy_of.clone() });
        own += good(successes, n) as f64 / n as f64;
        seen = (seen.0 + good(successes, n), seen.1 + n);
    }
    let rule = written.and_then(|written| rule(written, estimand)).filter(|_| !measured.proxy);
    let good = match estimand {
        Estimand::FixedSuite if rule.is_some_and(|rule| rule.means) => {
            (clusters.number() > 0).then(|| clusters.shares() / clusters.number() as f64)
        }
        Estimand::FixedSuite => (seen.1 > 0).then(|| seen.0 as f64 / seen.1 as f64),
        Estimand::Population => (rows_seen > 0).then(|| own / f64::from(rows_seen)),
    };
    let cases = cases.len() as u64;
    let needed = rule.and_then(|rule| rule.needed(&clusters));
    let needed_as_seen = rule.zip(good).and_then(|(rule, good)| rule.as_seen(&clusters, good));
    let share = conversations / trials.max(1) as f64;
    let mut row = Deciding {
        key: measured.key.clone(),
        metric: measured.metric.clone(),
        units,
        conversations,
        cases,
        good,
        needed,
        needed_as_seen,
        trials: needed
            .filter(|_| share > 0.0 && estimand == Estimand::FixedSuite)
            .map(|needed| (needed as f64 / share).ceil() as u64),
        difference: visible(
            cases,
            (conversations / cases.max(1) as f64) as u64,
            estimand,
            ALPHA / family.max(1) as f64,
        ),
        family,
        sentence: String::new(),
    };
    row.sentence = sentence(&row, measured, written, estimand);
    row
}

/// Requirement on a sample: the lower bound on the share of good units, and the number of units.
#[derive(Debug, Clone, Copy)]
struct Rule {
    bound: f64,
    min_n: u64,
    /// Whether one bad unit fails it.
    strict: bool,
    /// Whether its figure is a mean over conversations, or over unseen cases.
    means: bool,
}

fn rule(written: &Criterion, estimand: Estimand) -> Option<Rule> {
    let read = written.read(&catalogue::entries()).ok()?;
    let quantile = resolve_metric(&written.metric, &catalogue::entries()).ok()?.entry.figure.quantile().unwrap_or(0.95);
    let min_n = u64::from(written.min_n.unwrap_or(0)).max(1);
    let means = estimand == Estimand::Population || read.per == Per::Conversation;
    Some(match written.kind {
        GateKind::Invariant => Rule { bound: read.floor.unwrap_or(0.0), min_n, strict: true, means },
        GateKind::Confidence => Rule { bound: read.target.good_share(quantile), min_n, strict: false, means },
        GateKind::Point => Rule { bound: 0.0, min_n, strict: false, means },
    })
}

impl Rule {
    /// Number of such conversations, or cases, that pass without a failure.
    fn needed(self, clusters: &Clusters) -> Option<u64> {
        let needed = if self.means {
            population::cases_for(0.0, self.bound)
        } else if clusters.is_single() {
            self.units(0)
        } else {
            clusters_for(clusters, self.bound, ALPHA)
        };
        needed.map(|needed| needed.max(self.min_n))
    }

    /// The same number at the observed share of good units.
    fn as_seen(self, clusters: &Clusters, good: f64) -> Option<u64> {
        if self.strict && good < 1.0 {
            return None;
        }
        let needed = if self.means {
            (1..=MOST_CASES).find(|cases| population::lower_at(good * *cases as f64, *cases, ALPHA) >= self.bound)
        } else if clusters.is_single() {
            self.at(good)
        } else {
            clusters_as_seen(clusters, self.bound, ALPHA)
        };
        needed.map(|needed| needed.max(self.min_n))
    }

    /// Number of units that pass with this many failures.
    fn units(self, failures: u64) -> Option<u64> {
        (!self.strict || failures == 0).then(|| units_for(failures, self.bound)).flatten().map(|n| n.max(self.min_n))
    }

    /// Smallest number of units that pass at a share of `good`; `None` if the share is too low, or needs hundreds of
    /// failures.
    fn at(self, good: f64) -> Option<u64> {
        let bad = 1.0 - good;
        (0..=MOST_FAILURES).find_map(|failures| {
            let n = self.units(failures)?;
            // This many units are expected to have at most that many failures.
            (bad * n as f64 <= failures as f64 + 1e-9).then_some(n)
        })
    }
}

/// Smallest difference of two rates that a comparison of `cases` cases of `repeats` conversations each detects at that
/// two-sided level.
pub(super) fn visible(cases: u64, repeats: u64, estimand: Estimand, level: f64) -> Option<f64> {
    let between = if estimand == Estimand::Population { BETWEEN } else { 0.0 };
    let within = if repeats == 1 { WORSE_BY_CHANCE } else { WITHIN };
    smallest_visible_difference(cases, Spread { repeats, within, between }, POWER, level)
}

fn sentence(row: &Deciding, measured: &Measured, written: Option<&Criterion>, estimand: Estimand) -> String {
    if row.units < 0.5 {
        return "no recording here measures it".into();
    }
    let units = row.units.round();
    let decides = match (row.needed, row.good.filter(|good| *good < 1.0)) {
        _ if measured.proxy => "a stand-in never passes".to_owned(),
        (None, _) if written.is_none() => "every trial must pass".to_owned(),
        (None, _) => "no number decides it".to_owned(),
        (Some(needed), None) => decided(needed, row, estimand),
        (Some(needed), Some(good)) => {
            let seen = match row.needed_as_seen {
                Some(n) => format!("{n} at the recorded {}", percent(good)),
                None => format!("at the recorded {} it does not pass", percent(good)),
            };
            format!("{}; {seen}", decided(needed, row, estimand))
        }
    };
    let shows = row.difference.map_or_else(
        || "shows no difference".to_owned(),
        |difference| format!("shows {} points or more", rounded(difference * 100.0, 1, Rounding::Up)),
    );
    let conversations = row.conversations.round();
    let within = if conversations < units { format!(" in {conversations} conversations") } else { String::new() };
    format!("{units} units{within} of {} cases; {decides}; {shows}", row.cases)
}

fn decided(needed: u64, row: &Deciding, estimand: Estimand) -> String {
    let what = match estimand {
        Estimand::Population => format!("{needed} cases without a failure decide it"),
        Estimand::FixedSuite if row.conversations.round() < row.units.round() => {
            format!("{needed} conversations like these without a failure decide it")
        }
        Estimand::FixedSuite => format!("{needed} without a failure decide it"),
    };
    match row.trials.filter(|_| row.conversations < needed as f64) {
        Some(trials) => format!("{what}, about {trials} trials like these"),
        None => what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(bound: f64, strict: bool) -> Rule {
        Rule { bound, min_n: 1, strict, means: false }
    }

    #[test]
    fn fifty_nine_units_without_a_failure_decide_95_percent_and_more_with_failures() {
        assert_eq!((rule(0.95, false).units(0), rule(0.95, false).units(1)), (Some(59), Some(93)));
        assert_eq!(rule(0.95, false).at(1.0), Some(59));
        assert!(rule(0.95, false).at(0.98).is_some_and(|n| n > 93), "{:?}", rule(0.95, false).at(0.98));
        assert_eq!(rule(0.95, false).at(0.95), None, "no better than the target");
        assert_eq!(rule(0.95, true).at(0.999), None, "an invariant takes no failure");
        assert_eq!(rule(1.0, false).units(0), None);
    }

    #[test]
    fn conversations_of_several_turns_count_once_and_cases_not_seen_yet_are_cases() {
        let sizes: Clusters = [(1, 1), (2, 2), (4, 4), (2, 4)].into_iter().collect();
        let needed = rule(0.95, false).needed(&sizes).expect("some number");
        let more: Clusters =
            std::iter::repeat_n([(1, 1), (2, 2), (4, 4), (4, 4)], needed.div_ceil(4) as usize).flatten().collect();
        assert!(needed > 59 && crate::stats::Sample::Fixed(more).lower_at(ALPHA) >= 0.95, "{needed}");
        let means = |bound: f64, strict: bool| Rule { means: true, ..rule(bound, strict) };
        assert_eq!(means(0.95, false).needed(&sizes), Some(59));
        assert_eq!(means(0.95, true).as_seen(&sizes, 0.9), None);
        assert!(means(0.90, false).as_seen(&sizes, 0.97).is_some_and(|cases| cases > 29));
    }

    #[test]
    fn the_units_at_a_share_pass_when_that_share_is_seen() {
        let found = rule(0.9, false).at(0.95).expect("above the target");
        let bad = (0.05 * found as f64).floor() as u64;
        assert!(crate::stats::lower_bound(found - bad, found) >= 0.9, "{found}");
    }
}

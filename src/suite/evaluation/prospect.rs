//! Prospects of each required gate before a run: whether it has enough conversations to pass at all, and how often it
//! would pass at a true rate that deserves it.
//!
//! Each conversation counts as one unit that succeeds or fails (with `estimand: population`, each case), decided by
//! Clopper-Pearson's bound, with [`crate::stats::operating`]. Gates with several units per conversation use other
//! bounds; none of them passes with fewer conversations than computed here. A rate per unit whose number of units is an
//! outcome is bounded by the largest number that a conversation can have: only its smallest sample is computed.

use crate::metric::{Metric, catalogue};
use crate::plan::{Plan, PlannedTrial, Stopping};
use crate::scenario::criteria::Estimand;
use crate::scenario::{Criterion, GateKind, resolve_metric};
use crate::stats::operating::{Look, characteristics, looks};
use crate::stats::percent::{Rounding, rounded};
use crate::stats::rate::{binomial_cdf, lower_bound, units_for};
use crate::stats::sequential::Mixture;
use crate::stats::stopping::Rule;
use crate::stats::{ALPHA, Sample};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// Probability of a PASS from which a plan counts as large enough.
const POWER: f64 = 0.8;
/// Defines a true rate that deserves to pass: the share of the allowed failures that occur.
const DESERVING: f64 = 0.4;
/// True rate that deserves to pass a gate that allows no failure.
const UNBROKEN: f64 = 0.999;
/// Largest number of failures searched for a larger plan.
const MOST_FAILURES: u64 = 200;
/// Largest number of units for which a plan is simulated look by look.
const MOST_UNITS: u64 = 3_000;

/// Prospects of one required gate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Prospect {
    /// Id of the criterion, `scenario/id` for a gate.
    pub key: String,
    /// Index of the gate's scenario in the plan.
    #[serde(skip)]
    pub scenario: Option<usize>,
    /// Number of conversations that count, or of cases with `estimand: population`.
    pub n: u64,
    /// Smallest number that can pass, without a failure; `None` if no number can.
    pub needed: Option<u64>,
    /// A true rate that deserves to pass, 0 to 1.
    pub rate: f64,
    /// Probability of passing at that rate; `None` if it cannot pass.
    pub passes: Option<f64>,
    /// A number that passes with at least 80 % probability, and the exact probability; `None` if unknown or already
    /// reached.
    pub more: Option<(u64, f64)>,
    /// Summary sentence.
    pub sentence: String,
}

impl Prospect {
    /// Whether it cannot pass, or passes with less than 80 % probability at a deserving rate although a larger plan
    /// would.
    pub(crate) fn is_poor(&self) -> bool {
        !self.can_pass() || self.more.is_some()
    }

    /// Whether its conversations are enough if none of them fails.
    pub(crate) fn can_pass(&self) -> bool {
        self.needed.is_some_and(|needed| needed <= self.n)
    }
}

/// Requirement of a gate on its units.
#[derive(Debug, Clone, Copy)]
struct Gate {
    /// Lower bound that the share of good units must reach.
    bound: f64,
    least: u64,
    /// Whether one bad unit fails it.
    strict: bool,
    margin: f64,
    /// For a rate per unit: the largest number of units of a conversation, where it is an outcome and more than one.
    most: Option<u64>,
}

/// Prospects of all required gates of the plan that are decided by a bound, preceded by criteria on the whole run if
/// `whole`.
pub(crate) fn prospects(plan: &Plan, whole: bool) -> Vec<Prospect> {
    let asked = plan.criteria_and_gates().filter(|(of, _)| whole || of.is_some());
    asked.filter_map(|(of, written)| prospect(plan, of, written)).collect()
}

fn prospect(plan: &Plan, of: Option<usize>, written: &Criterion) -> Option<Prospect> {
    if !written.is_required() || written.kind == GateKind::Point {
        return None;
    }
    let table = catalogue::entries();
    let read = written.read(&table).ok()?;
    let asked = resolve_metric(&written.metric, &table).ok()?;
    let metric = catalogue::resolve(&asked).ok()?;
    if metric.is_proxy(plan) || metric.agreement(plan, read.target).is_some() {
        return None;
    }
    let gate = Gate {
        bound: match written.kind {
            GateKind::Confidence => read.target.good_share(metric.quantile),
            _ => read.floor.unwrap_or(0.0),
        },
        least: u64::from(written.min_n.unwrap_or(0)).max(1),
        strict: written.kind == GateKind::Invariant,
        margin: read.margin,
        most: crate::gate::most_units(plan, written, &read, of).filter(|most| *most > 1),
    };
    if gate.bound <= 0.0 && gate.least <= 1 {
        return None;
    }
    let counted = || plan.trials.iter().filter(|trial| can_count(plan, of, written, &metric, trial));
    let population = plan.criteria.estimand == Estimand::Population;
    let n = if population {
        let first = plan.first_alike();
        counted().filter_map(|trial| first.get(&(trial.scenario, trial.case))).collect::<BTreeSet<_>>().len() as u64
    } else {
        counted().count() as u64 / metric.group.map_or(1, |group| u64::from(group.size.max(1)))
    };
    if n == 0 {
        return None;
    }
    let key = of.map_or_else(|| written.id.clone(), |at| format!("{}/{}", plan.scenarios[at].name, written.id));
    let stopping = plan.stopping.filter(|_| !population);
    let nouns = if population { ("case", "cases") } else { ("conversation", "conversations") };
    Some(gate.prospect(key, of, n, stopping, nouns))
}

/// Whether a trial may have units of a criterion, by its case and lane.
pub(crate) fn can_count(
    plan: &Plan,
    of: Option<usize>,
    written: &Criterion,
    metric: &Metric,
    trial: &PlannedTrial,
) -> bool {
    let case = &plan.scenarios[trial.scenario].cases[trial.case].case;
    of.is_none_or(|of| of == trial.scenario)
        && written.counts_flow(&trial.lane.flow)
        && trial.lane.arm == metric.arm
        && !case.excluded_from.contains_key(&written.id)
        && (metric.applies)(case)
}

impl Gate {
    fn prospect(
        self,
        key: String,
        scenario: Option<usize>,
        n: u64,
        stopping: Option<Stopping>,
        nouns: (&str, &str),
    ) -> Prospect {
        let needed = match self.most {
            _ if self.bound <= 0.0 => Some(1),
            Some(most) => {
                let sample = Sample::Limited { clusters: std::iter::once((1, 1)).collect(), most: Some(most) };
                sample.more_to_pass(self.bound, self.least, ALPHA).map(|more| more + 1)
            }
            None => units_for(0, self.bound),
        };
        let needed = needed.map(|needed| needed.max(self.least));
        let rate = if self.strict { UNBROKEN } else { 1.0 - (1.0 - self.bound) * DESERVING };
        let can = needed.is_some_and(|needed| needed <= n);
        let passes = (can && self.most.is_none()).then(|| self.passes(n, rate, stopping)).flatten();
        let more = if self.strict || self.most.is_some() || passes.is_some_and(|passes| passes >= POWER) {
            None
        } else {
            self.larger(n, rate)
        };
        let many = |n: u64| format!("{n} {}", if n == 1 { nouns.0 } else { nouns.1 });
        let of_100 = |share: f64| rounded(share * 100.0, 0, Rounding::Nearest);
        let sentence = match (needed, passes) {
            (None, _) => format!("{}: this gate cannot pass at any number", many(n)),
            (Some(needed), _) if needed > n && self.most.is_some() => {
                let most = self.most.unwrap_or_default();
                let fewer = format!("fewer if they have more units, {most} at most");
                format!("{} of one unit each: this gate cannot pass ({needed} needed, {fewer})", many(n))
            }
            (Some(needed), _) if needed > n => format!("{}: this gate cannot pass ({needed} needed)", many(n)),
            (Some(_), None) => format!("{}: this gate can pass", many(n)),
            (Some(_), Some(passes)) => {
                let rate = rounded(rate * 100.0, 1, Rounding::Nearest).trim_end_matches(".0").to_owned();
                let more =
                    more.map_or_else(String::new, |(n, share)| format!("; {} make it {}", many(n), of_100(share)));
                format!("{}: at a true {rate} % this gate passes in {} of 100 runs{more}", many(n), of_100(passes))
            }
        };
        Prospect { key, scenario, n, needed, rate, passes, more, sentence }
    }

    /// Largest number of failures among `n` units that still passes; `None` if even zero failures fail.
    fn allowed(self, n: u64) -> Option<u64> {
        let passes =
            |failures: u64| n >= self.least && (self.bound <= 0.0 || lower_bound(n - failures, n) >= self.bound);
        let most = if self.strict { 0 } else { n };
        (0..=most).take_while(|failures| passes(*failures)).last()
    }

    /// Probability that a plan of `n` units passes at a true rate.
    fn passes(self, n: u64, rate: f64, stopping: Option<Stopping>) -> Option<f64> {
        let look =
            |n: u64| Look { units: n, pass_at_most: self.allowed(n), fail_at_least: None, give_up_at_least: None };
        let Some(stopping) = stopping else {
            let look = look(n);
            if n > MOST_UNITS {
                return look.pass_at_most.map(|most| binomial_cdf(most, n, 1.0 - rate));
            }
            return Some(characteristics(&[look], rate).pass);
        };
        if n > MOST_UNITS {
            return None;
        }
        let units = units_for(0, self.bound).unwrap_or(1).max(self.least);
        let test = Mixture::new(self.bound, self.margin, stopping.alpha_pass, stopping.alpha_fail).ok();
        let rule = match test.filter(|_| self.margin > 0.0 && !self.strict) {
            Some(test) => Rule::Mixture(test),
            None => Rule::Curtailed { units, failures: self.allowed(units)?, evidence: None },
        };
        let pass = (n / u64::from(stopping.max_passes.max(1))).max(1);
        Some(characteristics(&looks(&rule, pass, n), rate).pass)
    }

    /// A larger number that passes with at least 80 % probability at that rate.
    fn larger(self, n: u64, rate: f64) -> Option<(u64, f64)> {
        let of = |failures: u64| {
            let units = units_for(failures, self.bound)?.max(self.least);
            Some((units, binomial_cdf(failures, units, 1.0 - rate)))
        };
        (0..=MOST_FAILURES).map_while(of).find(|(units, passes)| *units > n && *passes >= POWER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(bound: f64, strict: bool) -> Gate {
        Gate { bound, least: 1, strict, margin: 0.0, most: None }
    }

    fn said(gate: Gate, n: u64) -> String {
        gate.prospect("G".into(), None, n, None, ("conversation", "conversations")).sentence
    }

    #[test]
    fn too_few_conversations_are_told_with_the_number_that_is_needed() {
        assert_eq!(said(gate(0.9, false), 6), "6 conversations: this gate cannot pass (29 needed)");
        assert_eq!(said(gate(0.95, true), 1), "1 conversation: this gate cannot pass (59 needed)");
        assert_eq!(said(gate(1.0, false), 500), "500 conversations: this gate cannot pass at any number");
        assert_eq!(
            said(Gate { least: 60, ..gate(0.9, false) }, 40),
            "40 conversations: this gate cannot pass (60 needed)"
        );
    }

    /// The bet of a rate per unit pays by the largest conversation that is possible: 60 perfect ones of one call are
    /// too few where one could have eight.
    #[test]
    fn a_rate_per_unit_of_unknown_sizes_is_told_what_the_largest_one_takes() {
        let gate = Gate { most: Some(8), ..gate(0.9, false) };
        let needed = gate.prospect("G".into(), None, 60, None, ("conversation", "conversations")).needed;
        let needed = needed.expect("some number shows it");
        let shows = |n: u64| {
            let clusters = std::iter::repeat_n((1, 1), n as usize).collect();
            Sample::Limited { clusters, most: Some(8) }.lower_at(ALPHA) >= 0.9
        };
        assert!(needed > 200 && shows(needed) && !shows(needed - 1), "{needed}");
        let few = format!(
            "60 conversations of one unit each: this gate cannot pass ({needed} needed, fewer if they have more units, \
             8 at most)"
        );
        assert_eq!(said(gate, 60), few);
        let enough = gate.prospect("G".into(), None, 300, None, ("conversation", "conversations"));
        assert!(!enough.is_poor() && enough.sentence == "300 conversations: this gate can pass", "{enough:?}");
    }

    #[test]
    fn a_gate_that_passes_half_the_time_says_how_many_would_do() {
        let found = gate(0.95, false).prospect("G".into(), None, 124, None, ("conversation", "conversations"));
        // P(Bin(124, .02) <= 2), summed term by term: .547707.
        assert!((found.passes.expect("it can pass") - 0.547_707).abs() < 5e-7, "{found:?}");
        assert!(
            found.sentence.starts_with("124 conversations: at a true 98 % this gate passes in 55 of 100 runs; "),
            "{}",
            found.sentence
        );
        let (more, share) = found.more.expect("a larger plan");
        assert!(
            share >= POWER && gate(0.95, false).passes(more, 0.98, None).is_some_and(|it| (it - share).abs() < 1e-6)
        );
        assert!(found.is_poor());
        let many = gate(0.95, false).prospect("G".into(), None, 600, None, ("conversation", "conversations"));
        assert!(!many.is_poor() && many.more.is_none(), "{many:?}");
    }

    #[test]
    fn an_invariant_is_broken_by_one_failure_however_many_there_are() {
        let found = gate(0.95, true).prospect("G".into(), None, 60, None, ("conversation", "conversations"));
        assert!((found.passes.expect("it can pass") - 0.999_f64.powi(60)).abs() < 1e-9, "{found:?}");
        assert_eq!(found.more, None);
    }

    #[test]
    fn a_run_until_decided_passes_as_its_rule_does() {
        let stopping = Stopping { max_passes: 10, alpha_pass: 0.05, alpha_fail: 0.05 };
        let found = gate(0.95, false).passes(100, 0.98, Some(stopping)).expect("ten passes of ten");
        // A plan of 59 without a failure, evaluated after the sixth pass: .98^60.
        assert!((found - 0.98_f64.powi(60)).abs() < 1e-9, "{found}");
    }
}

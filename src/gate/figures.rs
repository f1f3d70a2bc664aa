//! Figures of one criterion and their text: the observed rates per unit and per conversation, kept apart, and the
//! bounds.

use super::counting::Counting;
use super::criterion::CriterionSums;
use super::format::{one_of, share, time, time_beside};
use super::rule::Ruling;
use super::{CriterionResult, Interval, Verdict};
use crate::metric::Metric;
use crate::plan::Plan;
use crate::scenario::criteria::Estimand;
use crate::scenario::{GateKind, Target};
use crate::stats::percent::{Rounding, bound, percent, percent_beside};
use crate::stats::quantile::nearest_rank;
use crate::stats::rate::wilson;
use crate::stats::{ALPHA, Sample};
use crate::trace::text::count;

impl CriterionSums<'_> {
    /// Fills in the observed figures of this sample and the bounds of that ruling.
    pub(super) fn figures(
        &self,
        result: &mut CriterionResult,
        metric: &Metric,
        plan: &Plan,
        (sample, ruling): (&Sample, Ruling),
    ) {
        let tally = &self.tally;
        let few = self.target.is_ceiling();
        let counted = |good: f64| if few { 1.0 - good } else { good };
        let (lower, upper) = if few { (1.0 - ruling.upper, 1.0 - ruling.lower) } else { (ruling.lower, ruling.upper) };
        (result.lower, result.upper) = (Some(lower), Some(upper));
        let population = plan.criteria.estimand == Estimand::Population;
        let alone = tally.clusters.is_single();
        result.clusters = sample.number();
        if !population && !alone {
            let conversations = count(tally.clusters.number(), "conversation", "conversations");
            result.sample_text = format!("{} {} in {conversations}", tally.n, result.units);
        }
        let both = if alone && !population {
            wilson(tally.successes as f64, tally.n as f64)
        } else {
            let (low, high) = (sample.lower_at(ALPHA / 2.0), sample.upper_at(ALPHA / 2.0));
            if few { (1.0 - high, 1.0 - low) } else { (low, high) }
        };
        result.interval = Some(Interval { lower: both.0, upper: both.1 });
        let (per_unit, observed) = (tally.successes as f64 / tally.n as f64, counted(sample.figure()));
        result.per_unit = Some(per_unit);
        result.per_conversation = Some(counted(tally.clusters.shares() / tally.clusters.number() as f64));
        // The bound that the verdict depends on: the opposite one for a failure.
        let against = self.against(metric);
        let bounded = if few == (ruling.verdict == Verdict::Fail) {
            format!("at least {}", bound(lower, Rounding::Down, against))
        } else {
            format!("at most {}", bound(upper, Rounding::Up, against))
        };
        result.bound_text = format!("true rate {bounded}");
        let graded = metric.agreement(plan, self.target).is_some();
        let ratio = share(tally.successes, tally.n, self.wanted(metric));
        let unit = format!("per {} {}", one_of(&result.units), percent_beside(per_unit, self.wanted(metric)));
        let short = if self.held_back(result, graded) {
            format!("{unit}, {} target", if few { "above" } else { "below" })
        } else {
            unit.clone()
        };
        let (figure, seen) = if population {
            let cases = count(sample.number(), "case", "cases");
            let figure = match sample {
                Sample::Means { .. } => {
                    format!("{} in the mean of {cases} ({ratio})", percent_beside(observed, self.wanted(metric)))
                }
                // Units, each with the same weight.
                Sample::Fixed(_) | Sample::Limited { .. } => format!("{ratio} in {cases}"),
            };
            let second = if self.held_back(result, graded) { format!("; {short}") } else { String::new() };
            (figure.clone(), format!("{figure}, {}{second}", result.bound_text))
        } else if alone {
            (ratio.clone(), format!("{ratio}, {}", result.bound_text))
        } else if self.counting.per_conversation() {
            let mean = format!("per conversation {}", percent_beside(observed, self.wanted(metric)));
            let counts = format!("{} of {}", tally.successes, result.sample_text);
            (format!("{mean}; {unit}"), format!("{mean}, {bounded}; {short} ({counts})"))
        } else {
            let seen = format!("{} of {}: {}, {bounded}", tally.successes, result.sample_text, percent(observed));
            let mean = result.per_conversation.map(percent).filter(|mean| *mean != percent(observed));
            let mean = mean.map(|mean| format!("; per conversation {mean}")).unwrap_or_default();
            (ratio, seen + &mean)
        };
        let Target::AtMostTime(limit) = self.target else {
            result.observed = Some(observed);
            (result.observed_text, result.seen_text) = (figure, seen);
            return;
        };
        // Units that never ended are slower than all others: they come last in the ranks.
        let mut all = tally.times.clone();
        all.resize(tally.n as usize, u64::MAX);
        let name = format!("p{:.0}", metric.quantile * 100.0);
        let quantile = nearest_rank(&all, metric.quantile).filter(|value| *value != u64::MAX);
        result.observed = quantile.map(|value| value as f64 / 1e6);
        let limit = limit.as_micros() as u64;
        let quantile = quantile.map_or_else(|| "never reached".into(), |value| time_beside(value, limit));
        let limit = time(limit);
        result.observed_text = format!("{name} {quantile}, {figure} below {limit}");
        result.seen_text = if result.sample_text.is_empty() {
            format!("{}, {}", result.observed_text, result.bound_text)
        } else {
            format!("{name} {quantile}; below {limit} {seen}")
        };
    }

    /// Whether the observed figure per unit misses the target and so keeps conversations from passing; of grades, the
    /// corrected figure decides.
    fn held_back(&self, result: &CriterionResult, graded: bool) -> bool {
        let target = match self.target {
            Target::AtLeastRate(rate) | Target::AtMostRate(rate) => rate,
            Target::AtMostTime(_) => return false,
        };
        let misses = |rate: f64| if self.target.is_ceiling() { rate > target + 1e-12 } else { rate < target - 1e-12 };
        self.counting.per_conversation() && !graded && result.per_unit.is_some_and(misses)
    }

    /// Whether the number of units per conversation has no limit, or a conversation exceeds its stated limit.
    pub(super) fn is_unlimited(&self) -> bool {
        match self.counting {
            Counting::Outcome(most) => most.is_none_or(|most| self.tally.clusters.largest() > most),
            Counting::Planned | Counting::Conversations(_) => false,
        }
    }

    /// Why nothing bounds a rate over these units.
    pub(super) fn unlimited(&self, units: &str) -> String {
        match self.counting {
            Counting::Outcome(Some(most)) => {
                let largest = self.tally.clusters.largest();
                format!("a conversation had {largest} {units}, more than the limit of {most}")
            }
            _ => format!("nothing limits the {units} of a conversation"),
        }
    }

    /// The share that the target asks for, and whether it is the largest one.
    pub(super) fn wanted(&self, metric: &Metric) -> (f64, bool) {
        let (good, few) = (self.target.good_share(metric.quantile), self.target.is_ceiling());
        (if few { 1.0 - good } else { good }, few)
    }

    /// The rate to compare bounds with, in the metric's own direction.
    fn against(&self, metric: &Metric) -> f64 {
        let good = match self.written.kind {
            GateKind::Invariant => self.floor.unwrap_or(0.0),
            _ if self.design.is_some() => self.target.good_share(metric.quantile) - self.margin,
            _ => self.target.good_share(metric.quantile),
        };
        if self.target.is_ceiling() { 1.0 - good } else { good }
    }
}

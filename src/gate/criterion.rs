//! One criterion from its sums to its result and its sentence.

use super::design::{Design, Standing};
use super::format::{count, share, time};
use super::grouped::UnitKey;
use super::rule::{Asked, Evidence, Ruling, rule};
use super::tally::Tally;
use super::{CriterionResult, Sequential, Verdict};
use crate::metric::{Metric, Observation};
use crate::plan::{Plan, PlannedTrial};
use crate::scenario::criteria::Estimand;
use crate::scenario::{Criterion, GateKind, Target};
use crate::stats::percent::{Rounding, bound, percent};
use crate::stats::quantile::nearest_rank;
use crate::stats::rate::wilson;
use crate::stats::stopping::Decision;
use crate::stats::{ALPHA, Clusters, Sample};
use crate::trace::EXTERNAL;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A criterion, read, with its sums.
#[derive(Debug)]
pub(super) struct Item<'p> {
    /// As written.
    pub written: &'p Criterion,
    /// The scenario that it belongs to; `None` for the whole run.
    pub scenario: Option<usize>,
    /// Index of its metric.
    pub metric: usize,
    /// What it asks.
    pub target: Target,
    /// For an invariant: the share of good units that the bound must reach.
    pub floor: Option<f64>,
    /// How far below the target's share of good units a run until decided may pass.
    pub margin: f64,
    /// Error probability of its upper bound: the run's, shared among the required confidence gates.
    pub alpha_fail: f64,
    /// What was seen: in a run until decided, of the passes that the figures cover.
    pub tally: Tally,
    /// In a run until decided, what was seen in each pass, and how the gate decides.
    pub by_pass: Vec<Tally>,
    /// Trials of units that are several repetitions, by unit, until the unit is complete.
    pub open: BTreeMap<UnitKey, Vec<(u32, Observation)>>,
    /// The stopping rule of a run until decided.
    pub design: Option<Design>,
    /// Why the grades that it would count say nothing of it.
    pub doubt: Option<String>,
    /// Where the claim is about cases not seen yet: see [`Plan::first_alike`].
    pub first_alike: Arc<BTreeMap<(usize, usize), usize>>,
}

impl Item<'_> {
    /// Whether a trial is one that it looks at: of its scenario, and of its flow or of an agent that runs elsewhere, which
    /// may stand in the place of any flow.
    pub(super) fn covers(&self, trial: &PlannedTrial) -> bool {
        self.scenario.is_none_or(|of| of == trial.scenario)
            && self.written.flow.as_ref().is_none_or(|flow| *flow == trial.lane.flow || trial.lane.flow == EXTERNAL)
    }

    /// The sums that a trial of that repetition counts in.
    pub(super) fn tally_of(&mut self, repetition: u32) -> &mut Tally {
        if self.design.is_none() {
            return &mut self.tally;
        }
        let place = repetition.saturating_sub(1) as usize;
        if self.by_pass.len() <= place {
            self.by_pass.resize_with(place + 1, Tally::default);
        }
        &mut self.by_pass[place]
    }

    /// What the criterion asks, where it is judged by this metric.
    pub(super) fn asked(&self, metric: &dyn Metric) -> Asked {
        Asked {
            kind: self.written.kind,
            target: self.target.good_share(metric.quantile()),
            floor: self.floor,
            min_n: u64::from(self.written.min_n.unwrap_or(0)),
            alpha_fail: self.alpha_fail,
        }
    }

    /// Where the criterion stands after `passes` passes of a run until decided.
    fn standing(&self, passes: u32) -> Option<Standing> {
        let design = self.design?;
        Some(design.standing(&self.clusters(passes)))
    }

    /// The clusters of each pass.
    fn clusters(&self, passes: u32) -> Vec<Clusters> {
        let of = |place| self.by_pass.get(place).map(|tally: &Tally| tally.clusters.clone()).unwrap_or_default();
        (0..passes as usize).map(of).collect()
    }

    /// Whether further passes cannot change what a required criterion comes to, as far as can be told.
    pub(super) fn is_settled(&self, plan: &Plan, metric: &dyn Metric, passes: u32) -> bool {
        let seen = || self.by_pass.iter().take(passes as usize);
        let nothing = seen().all(|tally| tally.n == 0);
        let allowed = plan.not_measured_ok.contains(&self.written.id);
        let never = nothing && (allowed || seen().any(|tally| tally.hidden.is_some() || tally.out_of_scope > 0));
        never
            || metric.is_proxy(plan)
            || metric.agreement(plan).is_some()
            || seen().any(|tally| tally.errors > 0)
            || self.standing(passes).is_none_or(|standing| standing.decision != Decision::Undecided)
    }

    /// Takes the sums of the passes that the figures cover, and gives the ruling on them.
    fn take_passes(&mut self, passes: u32) -> Option<Standing> {
        let standing = self.standing(passes)?;
        for tally in self.by_pass.iter().take(standing.covers) {
            self.tally.absorb(tally);
        }
        Some(standing)
    }

    /// The result of this criterion, once all trials have been added; `passes` is how many a run until decided made.
    pub(super) fn result(&mut self, plan: &Plan, metric: &dyn Metric, passes: u32) -> CriterionResult {
        let standing = self.take_passes(passes);
        self.tally.times.sort_unstable();
        let tally = &self.tally;
        let written = self.written;
        let excluded = tally.excluded(plan, &written.id);
        let mut result = CriterionResult {
            id: written.id.clone(),
            about: written.about.clone(),
            scenario: self.scenario.map(|index| plan.scenarios[index].name.clone()),
            metric: written.metric.clone(),
            target: written.target.clone(),
            kind: kind(written.kind).into(),
            required: written.is_required(),
            not_measured_ok: plan.not_measured_ok.contains(&written.id),
            verdict: Verdict::NotMeasured,
            units: metric.units().into(),
            n: tally.n,
            clusters: 0,
            distinct: tally.behaviours.len() as u64,
            sample_text: String::new(),
            successes: tally.successes,
            observed: None,
            observed_text: String::new(),
            lower: None,
            upper: None,
            interval: None,
            bound_text: String::new(),
            sentence: String::new(),
            evidence: tally.sources.line(),
            proxy: metric.is_proxy(plan),
            with_excluded: String::new(),
            excluded,
            violations: tally.violations(),
            causes: tally.causes(),
            sources: tally.sources.list(),
            errors: tally.errors,
            out_of_scope: tally.out_of_scope,
            by_variant: self.by_variant(plan),
            sequential: self.sequential(standing, passes),
        };
        let left_out = result.excluded.iter().fold((0, 0), |sum, one| (sum.0 + one.successes, sum.1 + one.n));
        if left_out.1 > 0 {
            result.with_excluded = share(tally.successes + left_out.0, tally.n + left_out.1);
        }
        if let Some(doubt) = &self.doubt {
            nothing(&mut result, Some(doubt));
            (result.n, result.successes) = (0, 0);
            result.violations.clear();
            return result;
        }
        if tally.n == 0 {
            nothing(&mut result, tally.hidden.or(tally.scope.as_deref()));
            return result;
        }
        let sample = self.sample(plan);
        let ruling = standing.map_or_else(|| self.rule(plan, metric, &sample), |standing| standing.ruling);
        self.figures(&mut result, metric, &sample, ruling);
        result.verdict = ruling.verdict;
        result.sentence = self.sentence(&result, ruling, plan);
        if let Some(agreement) = metric.agreement(plan) {
            let rated = count(agreement.total(), "rated trial", "rated trials");
            result.sentence = format!("{}; the bound includes the grader's errors, seen in {rated}", result.sentence);
        }
        self.overrule(&mut result, metric.agreement(plan).is_some());
        if let Some(group) = metric.group() {
            self.leave_over(&mut result, group, plan);
        }
        if left_out.1 > 0 {
            let cases = count(result.excluded.len() as u64, "case", "cases");
            result.sentence = format!("{}; {cases} left out ({} with them)", result.sentence, result.with_excluded);
        }
        if let Some(why) = &tally.scope {
            let trials = count(tally.out_of_scope, "trial", "trials");
            result.sentence = format!("{}; {trials} out of scope ({why})", result.sentence);
        }
        result
    }

    /// What the rate was seen in.
    fn sample(&self, plan: &Plan) -> Sample {
        let good =
            |(successes, n): &(u64, u64)| (if self.target.is_ceiling() { n - successes } else { *successes }, *n);
        match plan.criteria.estimand {
            Estimand::FixedSuite => Sample::Fixed(self.tally.clusters.clone()),
            Estimand::Population => {
                let mut distinct: BTreeMap<Option<&usize>, (u64, u64)> = BTreeMap::new();
                for (case, sums) in &self.tally.by_case {
                    let (successes, n) = good(sums);
                    let sum = distinct.entry(self.first_alike.get(case)).or_default();
                    *sum = (sum.0 + successes, sum.1 + n);
                }
                Sample::population(distinct.into_values())
            }
        }
    }

    fn rule(&self, plan: &Plan, metric: &dyn Metric, sample: &Sample) -> Ruling {
        let good = self.tally.good(self.target);
        let agreement = metric.agreement(plan).map(|one| if self.target.is_ceiling() { one.mirrored() } else { one });
        rule(self.asked(metric), Evidence { good, n: self.tally.n, sample, agreement })
    }

    fn figures(&self, result: &mut CriterionResult, metric: &dyn Metric, sample: &Sample, ruling: Ruling) {
        let tally = &self.tally;
        let few = self.target.is_ceiling();
        let (lower, upper) = if few { (1.0 - ruling.upper, 1.0 - ruling.lower) } else { (ruling.lower, ruling.upper) };
        (result.lower, result.upper) = (Some(lower), Some(upper));
        result.clusters = sample.number();
        result.sample_text = sample_text(&result.units, tally.n, sample);
        result.interval = Some(interval(sample, (tally.successes, tally.n), few));
        let mut rate = share(tally.successes, tally.n);
        let mut observed = tally.successes as f64 / tally.n as f64;
        if let Sample::Population { s, cases } = sample {
            let good = s / *cases as f64;
            observed = if few { 1.0 - good } else { good };
            rate = format!("{} in the mean of {} ({rate})", percent(observed), count(*cases, "case", "cases"));
        }
        if let Target::AtMostTime(limit) = self.target {
            // Units that never ended are longer than all that did: they stand at the end of the ranks.
            let mut all = tally.times.clone();
            all.resize(tally.n as usize, u64::MAX);
            let name = format!("p{:.0}", metric.quantile() * 100.0);
            let quantile = nearest_rank(&all, metric.quantile()).filter(|value| *value != u64::MAX);
            result.observed = quantile.map(|value| value as f64 / 1e6);
            let quantile = quantile.map_or_else(|| "never reached".into(), time);
            result.observed_text = format!("{name} {quantile}, {rate} below {}", time(limit.as_micros() as u64));
        } else {
            result.observed = Some(observed);
            result.observed_text = rate;
        }
        // The bound that the verdict turns on: the opposite one where it fails.
        let against = self.against(metric);
        result.bound_text = if few == (ruling.verdict == Verdict::Fail) {
            format!("true rate at least {}", bound(lower, Rounding::Down, against))
        } else {
            format!("true rate at most {}", bound(upper, Rounding::Up, against))
        };
    }

    fn sequential(&self, standing: Option<Standing>, passes: u32) -> Option<Sequential> {
        let (standing, design) = standing.zip(self.design)?;
        Some(Sequential {
            rule: design.words(&self.clusters(passes)),
            passes,
            max_passes: design.max_passes(),
            decided_after: match standing.decision {
                Decision::Pass | Decision::Fail => Some(standing.covers as u32),
                Decision::CannotPass | Decision::Undecided => None,
            },
            cannot_pass: standing.decision == Decision::CannotPass,
            alpha_pass: design.alpha_pass,
            alpha_fail: design.alpha_fail,
        })
    }

    /// The rate that bounds are compared with, as the metric counts.
    fn against(&self, metric: &dyn Metric) -> f64 {
        let good = match self.written.kind {
            GateKind::Invariant => self.floor.unwrap_or(0.0),
            _ if self.design.is_some() => self.target.good_share(metric.quantile()) - self.margin,
            _ => self.target.good_share(metric.quantile()),
        };
        if self.target.is_ceiling() { 1.0 - good } else { good }
    }

    fn sentence(&self, result: &CriterionResult, ruling: Ruling, plan: &Plan) -> String {
        let sample = if result.sample_text.is_empty() { String::new() } else { format!(" ({})", result.sample_text) };
        let seen = format!("{}{sample}, {}", result.observed_text, result.bound_text);
        let target = &self.written.target;
        let alone = match self.written.kind {
            GateKind::Point if result.required => " by the observed figure alone",
            GateKind::Point => " by the observed figure alone (advisory)",
            _ => "",
        };
        let mut text = match ruling.verdict {
            Verdict::Pass => format!("{seen}; {target} holds{alone}"),
            Verdict::Fail if self.written.kind == GateKind::Invariant => {
                let broken = count(self.tally.n - self.tally.good(self.target), "violation", "violations");
                format!("{seen}; {broken} of {target}")
            }
            Verdict::Fail => format!("{seen}; {target} does not hold{alone}"),
            _ if result.sequential.is_some() => format!("{seen}; inconclusive"),
            _ => {
                let population = plan.criteria.estimand == Estimand::Population;
                let (one, many) = if population { ("case", "cases") } else { ("conversation", "conversations") };
                match ruling.more {
                    Some(more) if population || result.clusters < result.n => {
                        let like = if population { "" } else { " like these" };
                        let noun = if more == 1 { one } else { many };
                        format!("{seen}; inconclusive: {more} more {noun}{like} without a failure would pass")
                    }
                    Some(more) => format!("{seen}; inconclusive: {more} more without a failure would pass"),
                    None => format!("{seen}; inconclusive: no number of {} can show it", result.units),
                }
            }
        };
        if let Some(sequential) = &result.sequential {
            text += &sequential.ending(self.written.margin.as_deref().filter(|_| ruling.verdict == Verdict::Pass));
        }
        if plan.criteria.estimand == Estimand::Population {
            text += "; for cases not seen yet";
        }
        text
    }

    /// What keeps a figure from being a verdict: a proxy, trials in ERROR, live beside replayed.
    fn overrule(&self, result: &mut CriterionResult, graded: bool) {
        if result.proxy {
            let name = self.written.metric.split('(').next().unwrap_or_default().trim();
            result.verdict = Verdict::NotMeasured;
            result.observed_text = format!("proxy {}", result.observed_text);
            result.sentence = format!("{}, not a measurement of {name}", result.observed_text);
        } else if graded && self.design.is_some() {
            // What the run stopped by was seen before there were grades, and may go along with them.
            result.verdict = Verdict::NotMeasured;
            result.sentence = format!(
                "{}: the number of trials was decided by what they showed; grade a run of a fixed number",
                result.observed_text
            );
        } else if self.tally.sources.mixed() {
            result.verdict = Verdict::Error;
            result.sentence = format!(
                "{}: live and replayed units stand side by side, and their figures are never averaged: judge them apart",
                result.observed_text
            );
        } else if result.errors > 0 && result.verdict != Verdict::Fail {
            result.verdict = Verdict::Error;
            result.sentence = format!(
                "{}, {}; {} that would have counted, so it cannot pass",
                result.observed_text,
                result.bound_text,
                errors(result.errors)
            );
        }
    }

    fn by_variant(&self, plan: &Plan) -> Vec<(String, u64, u64)> {
        let counts = &self.tally.by_variant;
        if counts.len() < 2 {
            return Vec::new();
        }
        let mut rows: Vec<(String, u64, u64)> = Vec::new();
        let declared = plan.scenarios.iter().flat_map(|scenario| scenario.variants.iter().map(|variant| &variant.name));
        for name in declared.chain(counts.keys()) {
            if let Some((successes, n)) = counts.get(name).filter(|_| !rows.iter().any(|row| row.0 == *name)) {
                rows.push((name.clone(), *successes, *n));
            }
        }
        rows
    }
}

/// How many units in how many clusters, where that is not one each: `448 queries in 283 conversations`.
fn sample_text(units: &str, n: u64, sample: &Sample) -> String {
    match sample {
        Sample::Fixed(clusters) if clusters.number() < n => {
            format!("{n} {units} in {}", count(clusters.number(), "conversation", "conversations"))
        }
        Sample::Fixed(_) | Sample::Population { .. } => String::new(),
    }
}

/// The two-sided 95 % interval for display, as the metric counts: Wilson's for independent units.
fn interval(sample: &Sample, (successes, n): (u64, u64), few: bool) -> (f64, f64) {
    if matches!(sample, Sample::Fixed(clusters) if clusters.is_single()) {
        return wilson(successes as f64, n as f64);
    }
    let (low, high) = (sample.lower_at(ALPHA / 2.0), sample.upper_at(ALPHA / 2.0));
    if few { (1.0 - high, 1.0 - low) } else { (low, high) }
}

/// What stands when there is no unit at all.
fn nothing(result: &mut CriterionResult, hidden: Option<&str>) {
    result.observed_text = "nothing measured".into();
    result.sentence = if result.errors > 0 {
        result.verdict = Verdict::Error;
        format!("nothing measured: {} that would have counted", errors(result.errors))
    } else if result.excluded.iter().any(|one| one.n > 0) {
        format!("nothing measured: all {} were left out ({})", result.units, result.with_excluded)
    } else if let Some(reason) = hidden {
        format!("nothing measured: {reason}")
    } else if result.metric.starts_with("case_pass_rate") {
        "nothing measured: no trial has a reward or an expectation".to_owned()
    } else {
        format!("nothing measured: no trial has any {}", result.units)
    };
    if result.not_measured_ok && result.verdict == Verdict::NotMeasured {
        result.sentence += "; declared as allowed";
    }
}

fn errors(n: u64) -> String {
    count(n, "trial in ERROR", "trials in ERROR")
}

fn kind(kind: GateKind) -> &'static str {
    match kind {
        GateKind::Invariant => "invariant",
        GateKind::Confidence => "confidence",
        GateKind::Point => "point",
    }
}

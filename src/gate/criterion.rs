//! Turns the sums of one criterion into its result and its sentence.

use super::corrected::correct;
use super::counting::Counting;
use super::design::{Design, Standing};
use super::format::share;
use super::grouped::UnitKey;
use super::rule::{Asked, Evidence, Ruling, rule};
use super::tally::{Tally, WhyNoUnits};
use super::unshown::{Unshown, ending, unbroken};
use super::{CriterionResult, Sequential, VariantCounts, Verdict};
use crate::metric::{Metric, Observation};
use crate::plan::{Plan, PlannedTrial};
use crate::scenario::criteria::Estimand;
use crate::scenario::{Criterion, GateKind, Target, target_text};
use crate::stats::stopping::Decision;
use crate::stats::{Clusters, Sample};
use crate::trace::text::count;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A parsed criterion and its sums.
#[derive(Debug)]
pub(super) struct CriterionSums<'p> {
    /// As written.
    pub written: &'p Criterion,
    /// The scenario of a gate; `None` for the whole run.
    pub scenario: Option<usize>,
    /// Index of its metric.
    pub metric: usize,
    /// What it asks.
    pub target: Target,
    /// For an invariant: the share of good units that the bound must reach.
    pub floor: Option<f64>,
    /// For a run until decided: how far below the target's share of good units it may pass.
    pub margin: f64,
    /// The unit that it counts.
    pub counting: Counting,
    /// Error probability of its upper bound: the run's, shared among the required confidence gates.
    pub alpha_fail: f64,
    /// Sums; in a run until decided, of the passes that the figures cover.
    pub tally: Tally,
    /// In a run until decided, the sums of each pass, and the decision rule.
    pub by_pass: Vec<Tally>,
    /// Incomplete units of several repetitions, with the trials so far.
    pub open: BTreeMap<UnitKey, Vec<(u32, Observation)>>,
    /// The stopping rule of a run until decided.
    pub design: Option<Design>,
    /// Whether it applies to some trial, by their declarations.
    pub applies: bool,
    /// Reason why the grades that it would count cannot decide it.
    pub doubt: Option<String>,
    /// For claims about unseen cases: see [`Plan::first_alike`].
    pub first_alike: Arc<BTreeMap<(usize, usize), usize>>,
}

impl CriterionSums<'_> {
    /// Whether a trial counts: it belongs to the scenario, and to the flow or to an external agent, which may replace
    /// any flow.
    pub(super) fn covers(&self, trial: &PlannedTrial) -> bool {
        self.scenario.is_none_or(|of| of == trial.scenario) && self.written.counts_flow(&trial.lane.flow)
    }

    /// The sums for trials of that repetition.
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

    /// The requirement as evaluated with this metric.
    pub(super) fn asked(&self, metric: &Metric) -> Asked {
        Asked {
            kind: self.written.kind,
            target: self.target.good_share(metric.quantile),
            floor: self.floor,
            min_n: u64::from(self.written.min_n.unwrap_or(0)),
            alpha_fail: self.alpha_fail,
        }
    }

    /// State of the decision after `passes` passes of a run until decided.
    fn standing(&self, passes: u32) -> Option<Standing> {
        let design = self.design?;
        Some(design.standing(&self.clusters(passes)))
    }

    /// The clusters of each pass.
    fn clusters(&self, passes: u32) -> Vec<Clusters> {
        let of = |place| self.by_pass.get(place).map(|tally: &Tally| tally.clusters.clone()).unwrap_or_default();
        (0..passes as usize).map(of).collect()
    }

    /// Whether further passes cannot change the result of a required criterion, as far as is known.
    pub(super) fn is_settled(&self, plan: &Plan, metric: &Metric, passes: u32) -> bool {
        let seen = || self.by_pass.iter().take(passes as usize);
        let nothing = seen().all(|tally| tally.n == 0);
        let allowed = plan.not_measured_ok.contains(&self.written.id);
        let never = nothing && (allowed || !self.applies || seen().any(|tally| tally.out_of_scope > 0));
        never
            || metric.is_proxy(plan)
            || metric.agreement(plan, self.target).is_some()
            || seen().any(|tally| tally.errors > 0)
            || self.standing(passes).is_none_or(|standing| standing.decision != Decision::Undecided)
    }

    /// Takes the sums of the passes that the figures cover, and returns the ruling on them.
    fn take_passes(&mut self, passes: u32) -> Option<Standing> {
        let standing = self.standing(passes)?;
        for tally in self.by_pass.iter().take(standing.covers) {
            self.tally.absorb(tally);
        }
        Some(standing)
    }

    /// The result of this criterion after all trials have been added; `passes` is the number of passes in a run until
    /// decided.
    pub(super) fn result(&mut self, plan: &Plan, metric: &Metric, passes: u32) -> CriterionResult {
        let standing = self.take_passes(passes);
        self.tally.times.sort_unstable();
        self.tally.close_sessions();
        let tally = &self.tally;
        let written = self.written;
        let excluded = tally.excluded(plan, &written.id);
        let mut result = CriterionResult {
            id: written.id.clone(),
            about: written.about.clone(),
            scenario: self.scenario.map(|index| plan.scenarios[index].name.clone()),
            metric: written.metric.clone(),
            target: written.target.clone(),
            kind: written.kind.as_str().into(),
            required: written.is_required(),
            not_measured_ok: plan.not_measured_ok.contains(&written.id),
            verdict: Verdict::NotMeasured,
            units: metric.units.into(),
            n: tally.n,
            distinct: tally.behaviours.len() as u64,
            per: self.counting.word().into(),
            successes: tally.successes,
            evidence: tally.sources.line(),
            proxy: metric.is_proxy(plan),
            excluded,
            violations: tally.violations(),
            causes: tally.causes(),
            sources: tally.sources.list(),
            errors: tally.errors,
            out_of_scope: tally.out_of_scope,
            not_asked: !self.applies,
            run_again: tally.run_again.0,
            run_again_passed: tally.run_again.1,
            by_variant: self.by_variant(plan),
            sequential: self.sequential(standing, passes),
            floor: written.floor.clone().unwrap_or_default(),
            min_n: written.min_n,
            ..CriterionResult::default()
        };
        let left_out = result.excluded.iter().fold((0, 0), |sum, one| (sum.0 + one.successes, sum.1 + one.n));
        if left_out.1 > 0 {
            result.with_excluded = share(tally.successes + left_out.0, tally.n + left_out.1, self.wanted(metric));
        }
        if let Some(doubt) = &self.doubt {
            nothing(&mut result, Some(doubt), None);
            (result.n, result.successes) = (0, 0);
            result.violations.clear();
            return result;
        }
        if tally.n == 0 {
            nothing(
                &mut result,
                tally.why_no_units.as_ref().map(WhyNoUnits::words).or_else(|| metric.why_no_unit(plan)),
                self.written.flow.as_deref(),
            );
            return result;
        }
        let sample = self.counting.sample(tally, plan.criteria.estimand, &self.first_alike);
        let ruling = standing.map_or_else(|| self.rule(plan, metric, &sample), |standing| standing.ruling);
        self.figures(&mut result, metric, plan, (&sample, ruling));
        let evidence = self.evidence(plan, metric, &sample);
        correct(&mut result, &evidence, self.wanted(metric));
        result.verdict = ruling.verdict;
        result.unshown = self.unshown(&result, metric, &evidence);
        result.sentence = self.sentence(&result, ruling, plan, (metric, &sample));
        if let Some(agreement) = metric.agreement(plan, self.target) {
            let rated = count(agreement.total(), "rated trial", "rated trials");
            result.sentence = format!("{}; the bound includes the grader's errors, seen in {rated}", result.sentence);
        }
        let target = self.asked(metric).target;
        self.overrule(&mut result, metric.agreement(plan, self.target).is_some(), target);
        result.unshown = result.unshown.filter(|_| result.verdict == Verdict::Inconclusive);
        if let Some(group) = metric.group {
            self.leave_over(&mut result, group, plan);
        }
        if left_out.1 > 0 {
            let cases = count(result.excluded.len() as u64, "case", "cases");
            result.sentence = format!("{}; {cases} left out ({} with them)", result.sentence, result.with_excluded);
        }
        if let Some(why) = tally.why_no_units.as_ref().map(WhyNoUnits::words) {
            let trials = count(tally.out_of_scope, "trial", "trials");
            result.sentence = format!("{}; {trials} out of scope ({why})", result.sentence);
        }
        if result.run_again > 0 {
            let trials = count(result.run_again, "trial", "trials");
            let passed = result.run_again_passed;
            result.sentence = format!("{}; first draws: {trials} run again, {passed} of them PASS", result.sentence);
        }
        result
    }

    fn rule(&self, plan: &Plan, metric: &Metric, sample: &Sample) -> Ruling {
        rule(self.asked(metric), self.evidence(plan, metric, sample))
    }

    fn evidence<'s>(&self, plan: &Plan, metric: &Metric, sample: &'s Sample) -> Evidence<'s> {
        let good = self.tally.good(self.target);
        let agreement =
            metric.agreement(plan, self.target).map(|one| if self.target.is_ceiling() { one.mirrored() } else { one });
        let per_conversation = self.counting.per_conversation();
        Evidence { good, n: self.tally.n, sample, per_conversation, agreement }
    }

    /// Classifies an INCONCLUSIVE ruling.
    fn unshown(&self, result: &CriterionResult, metric: &Metric, evidence: &Evidence<'_>) -> Option<Unshown> {
        let asked = self.asked(metric);
        let lost = result.sequential.as_ref().is_some_and(|one| one.cannot_pass);
        let can_pass = !lost && !self.is_unlimited() && asked.bound(0.0) < 1.0;
        let found = Unshown::of(&evidence.figures(), asked.figure(), can_pass);
        (result.verdict == Verdict::Inconclusive).then_some(found)
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

    fn sentence(
        &self,
        result: &CriterionResult,
        ruling: Ruling,
        plan: &Plan,
        (metric, sample_seen): (&Metric, &Sample),
    ) -> String {
        let seen = &result.seen_text;
        let target = target_text(&self.written.target);
        let figure = if result.corrected.is_some() { "corrected" } else { "observed" };
        let alone = match self.written.kind {
            GateKind::Point if result.required => format!(" by the {figure} figure alone"),
            GateKind::Point => format!(" by the {figure} figure alone (advisory)"),
            _ => String::new(),
        };
        let mut text = match ruling.verdict {
            Verdict::Pass if self.written.kind == GateKind::Invariant => {
                let units =
                    if result.sample_text.is_empty() { result.n.to_string() } else { result.sample_text.clone() };
                let end = unbroken(&units, sample_seen, ruling.lower, self.written.floor.as_deref());
                if self.written.floor.is_some() {
                    format!("{seen}; {end}")
                } else {
                    format!("{}; {end}", result.observed_text)
                }
            }
            Verdict::Pass => format!("{seen}; {target} holds{alone}"),
            Verdict::Fail if self.written.kind == GateKind::Invariant => {
                let broken = count(self.tally.n - self.tally.good(self.target), "violation", "violations");
                format!("{seen}; {broken} of {target}")
            }
            Verdict::Fail => format!("{seen}; {target} does not hold{alone}"),
            _ if result.sequential.is_some() => {
                let end = match result.unshown {
                    Some(Unshown::Met) => "met, not shown",
                    Some(Unshown::CannotPass) => "met, and cannot pass any more",
                    _ => "below target, not shown",
                };
                format!("{seen}; inconclusive: {end}")
            }
            _ => {
                let nouns = match (plan.criteria.estimand, metric.group) {
                    (Estimand::Population, _) => ("case", "cases"),
                    (Estimand::FixedSuite, None) => ("conversation", "conversations"),
                    (Estimand::FixedSuite, Some(_)) => ("unit", "units"),
                };
                let found = result.unshown.unwrap_or(Unshown::Below);
                let evidence = self.evidence(plan, metric, sample_seen);
                let end = if self.is_unlimited() {
                    self.unlimited(&result.units)
                } else {
                    ending(found, self.asked(metric), &evidence, nouns)
                };
                format!("{seen}; inconclusive: {end}")
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

    /// Withdraws verdicts that the figures do not support: a proxy, trials in ERROR, live mixed with replayed.
    fn overrule(&self, result: &mut CriterionResult, graded: bool, target: f64) {
        // Of trials in ERROR, each would have been one unit.
        let good = (self.tally.good(self.target) + result.errors) as f64;
        let is_point = self.written.kind == GateKind::Point && result.units == "trials";
        let could_hold = is_point && good / (self.tally.n + result.errors) as f64 >= target - 1e-12;
        if result.proxy {
            let name = self.written.metric.split('(').next().unwrap_or_default().trim();
            result.verdict = Verdict::NotMeasured;
            result.observed_text = format!("proxy {}", result.observed_text);
            result.sentence = format!("{}, not a measurement of {name}", result.observed_text);
        } else if graded && self.design.is_some() {
            // The stopping rule saw figures before grades existed, and these may correlate with the grades.
            result.verdict = Verdict::NotMeasured;
            result.sentence = format!(
                "{}: the number of trials was decided by what they showed; grade a run of a fixed number",
                result.observed_text
            );
        } else if self.tally.sources.mixed() {
            result.verdict = Verdict::Error;
            result.sentence = format!(
                "{}: it has live and replayed units, whose figures are never averaged: evaluate them separately",
                result.observed_text
            );
        } else if result.errors > 0 && (result.verdict != Verdict::Fail || could_hold) {
            let end = if result.verdict == Verdict::Fail { "and could have met it" } else { "so it cannot pass" };
            result.verdict = Verdict::Error;
            result.sentence = format!("{}; {} that would have counted, {end}", result.seen_text, errors(result.errors));
        }
    }

    fn by_variant(&self, plan: &Plan) -> Vec<VariantCounts> {
        let counts = &self.tally.by_variant;
        if counts.len() < 2 {
            return Vec::new();
        }
        let mut rows: Vec<VariantCounts> = Vec::new();
        let declared = plan.scenarios.iter().flat_map(|scenario| scenario.variants.iter().map(|variant| &variant.name));
        for name in declared.chain(counts.keys()) {
            if let Some((successes, n)) = counts.get(name).filter(|_| !rows.iter().any(|row| row.variant == *name)) {
                rows.push(VariantCounts { variant: name.clone(), successes: *successes, n: *n });
            }
        }
        rows
    }
}

/// The result without any unit; `flow` is the only one that the criterion counts.
fn nothing(result: &mut CriterionResult, hidden: Option<&str>, flow: Option<&str>) {
    let trial = flow.map_or_else(|| "trial".to_owned(), |flow| format!("trial of the flow `{flow}`"));
    result.observed_text = "nothing measured".into();
    result.sentence = if result.errors > 0 {
        result.verdict = Verdict::Error;
        format!("nothing measured: {} that would have counted", errors(result.errors))
    } else if result.excluded.iter().any(|one| one.n > 0) {
        format!("nothing measured: all {} were left out ({})", result.units, result.with_excluded)
    } else if let Some(reason) = hidden {
        format!("nothing measured: {reason}")
    } else if result.metric.starts_with("case_pass_rate") {
        format!("nothing measured: no {trial} has a reward or an expectation")
    } else {
        format!("nothing measured: no {trial} has any {}", result.units)
    };
    if result.not_measured_ok && result.verdict == Verdict::NotMeasured {
        result.sentence += "; declared as allowed";
    }
}

fn errors(n: u64) -> String {
    count(n, "trial in ERROR", "trials in ERROR")
}

//! Aggregates examined trials, in any order, into the run's evaluation.

mod finish;

use super::counting::Counting;
use super::criterion::CriterionSums;
use super::design::Design;
use super::error::EvaluationError;
use super::examine::{Examined, Examiner};
use super::held::HeldSum;
use super::latency::{Kind, Latencies};
use super::sources::Sources;
use super::tally::{Tally, WhyNoUnits};
use super::{Evaluation, Restarts, TrialResults, Verdict};
use crate::metric::{Metric, catalogue};
use crate::plan::Plan;
use crate::scenario::criteria::Estimand;
use crate::scenario::{Criterion, GateKind, ReadCriterion};
use crate::stats::ALPHA;
use crate::trace::{Grades, Trace, TraceError, TrialError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Aggregates examined trials.
pub struct Evaluator<'p> {
    examiner: Arc<Examiner<'p>>,
    criteria: Vec<CriterionSums<'p>>,
    trials: TrialResults,
    errors: BTreeMap<usize, TrialError>,
    /// For each trial in ERROR, the metrics whose scope excludes its agent, and why.
    error_scopes: BTreeMap<usize, Vec<(usize, WhyNoUnits)>>,
    /// Trials in ERROR because an expectation is undetermined: what they did is counted.
    undetermined: BTreeSet<usize>,
    sources: Sources,
    held: HeldSum,
    /// Trials whose verdict differs from that at recording time: the old one and the new one.
    changed: BTreeMap<usize, (String, Verdict)>,
    /// Notes of traces, with the number of affected trials.
    notes: BTreeMap<String, u64>,
    restarts: Restarts,
    taken: BTreeMap<String, Vec<u64>>,
    /// Turn times with the place of their trial and their kind of evidence.
    turn_times: Vec<(u32, Kind, u64)>,
    latencies: Latencies,
    /// Number of completed passes in a run until decided.
    closed: u32,
    /// Tools that were offered in trials that counted, and the first repetition of each, by criterion, scenario, flow and
    /// variant.
    counted: BTreeMap<Agent, BTreeMap<Vec<String>, u32>>,
    /// Trials whose agent did not offer the tool of a criterion, by the same, the repetition and the tools that it did.
    not_offered: BTreeMap<(Agent, u32, Vec<String>), NotOffered>,
}

/// Whose trials count together for a criterion: the criterion, scenario, flow and variant.
type Agent = (usize, usize, String, String);

/// Trials whose agent did not offer the tool of a criterion: they count if it has that tool in another trial.
struct NotOffered {
    tally: Tally,
    trials: u64,
    why: WhyNoUnits,
}

impl<'p> Evaluator<'p> {
    /// Creates an evaluator: parses the plan's criteria and gates.
    ///
    /// # Errors
    /// If a criterion, a gate or the plan is invalid.
    pub fn new(plan: &'p Plan) -> Result<Self, EvaluationError> {
        Self::with_grades(plan, Grades::default())
    }

    /// Creates an evaluator with grades of the answers, for metrics that read them.
    ///
    /// # Errors
    /// As [`Evaluator::new`]; also if a grade belongs to a trial that the plan does not contain.
    pub fn with_grades(plan: &'p Plan, grades: Grades) -> Result<Self, EvaluationError> {
        if let Some(trial) = grades.trials().find(|trial| plan.trials.place_of(trial).is_none()) {
            return Err(EvaluationError::Grade {
                trial: trial.to_owned(),
                turn: "which is not in the plan".to_owned(),
            });
        }
        let mut metrics: Vec<Metric> = Vec::new();
        let mut names: Vec<&str> = Vec::new();
        let mut criteria = Vec::new();
        let table = catalogue::entries();
        let population = plan.criteria.estimand == Estimand::Population;
        let first_alike = Arc::new(if population { plan.first_alike() } else { BTreeMap::new() });
        for (scenario, written) in plan.criteria_and_gates() {
            let refuse = |problem: String| mistake(plan, scenario, written, problem);
            let read = written.read(&table).map_err(|why| refuse(why.to_string()))?;
            let counting = Counting::of(plan, written, &read, scenario);
            let ReadCriterion { metric, target, floor, margin, .. } = read;
            let known = names.iter().position(|name| *name == written.metric);
            let index = known.unwrap_or(metrics.len());
            if known.is_none() {
                metrics.push(catalogue::resolve(&metric).map_err(|why| refuse(why.to_string()))?);
                names.push(&written.metric);
            }
            let (tally, by_pass) = (Tally::default(), Vec::new());
            criteria.push(CriterionSums {
                written,
                scenario,
                metric: index,
                target,
                floor,
                margin,
                counting,
                alpha_fail: ALPHA,
                tally,
                by_pass,
                open: BTreeMap::new(),
                design: None,
                applies: false,
                doubt: metrics[index].graded().and_then(|graded| graded.doubt(plan, &grades, target)),
                first_alike: Arc::clone(&first_alike),
            });
        }
        // Failing any one of several gates fails the run, so the error probability is shared among those that can
        // err.
        let can_err = |criterion: &CriterionSums<'_>| {
            criterion.written.is_required() && criterion.written.kind == GateKind::Confidence
        };
        let sharing = criteria.iter().filter(|criterion| can_err(criterion)).count().max(1) as f64;
        let alpha_fail = plan.stopping.map_or(ALPHA, |stopping| stopping.alpha_fail) / sharing;
        for criterion in &mut criteria {
            criterion.alpha_fail = alpha_fail;
        }
        designs(plan, &metrics, &mut criteria)?;
        let relevant = (0..plan.scenarios.len()).map(|scenario| {
            let counts = |metric: &usize| {
                criteria
                    .iter()
                    .any(|criterion| criterion.metric == *metric && criterion.scenario.is_none_or(|of| of == scenario))
            };
            (0..metrics.len()).filter(counts).collect()
        });
        let relevant = relevant.collect();
        Ok(Self {
            examiner: Arc::new(Examiner::new(plan, metrics, names, relevant, grades)?),
            criteria,
            trials: TrialResults::slots(plan.trials.number()),
            errors: BTreeMap::new(),
            error_scopes: BTreeMap::new(),
            undetermined: BTreeSet::new(),
            sources: Sources::default(),
            held: HeldSum::default(),
            changed: BTreeMap::new(),
            notes: BTreeMap::new(),
            restarts: Restarts::default(),
            taken: BTreeMap::new(),
            turn_times: Vec::new(),
            latencies: Latencies::default(),
            closed: 0,
            counted: BTreeMap::new(),
            not_offered: BTreeMap::new(),
        })
    }

    /// The part that threads can share while this one aggregates.
    pub fn examiner(&self) -> Arc<Examiner<'p>> {
        Arc::clone(&self.examiner)
    }

    /// Adds one examined trial; order is irrelevant.
    ///
    /// # Errors
    /// If the trial was added before.
    pub fn add(&mut self, examined: Examined) -> Result<(), EvaluationError> {
        let Examined {
            place,
            trial,
            result,
            error,
            evidence,
            held,
            notes,
            restart,
            behaviour,
            is_undetermined,
            units,
            out_of_scope,
            not_offered,
            offered,
            taken,
            turn_times,
            timed,
            replies: _,
        } = examined;
        let plan = self.examiner.plan;
        if self.trials.verdict(place).is_some() {
            return Err(EvaluationError::Twice(trial.id));
        }
        // A trial in ERROR has no verdict that could have changed.
        let noted = evidence.noted_verdict.as_ref().filter(|_| error.is_none());
        if let Some(noted) = noted.filter(|noted| **noted != result.verdict.as_str()) {
            self.changed.insert(place, (noted.clone(), result.verdict));
        }
        self.held.add(held, &result);
        self.trials.put(place, result);
        for note in notes {
            *self.notes.entry(note).or_default() += 1;
        }
        if let Some(cause) = restart {
            self.restarts.add(cause);
        }
        if let Some(error) = error {
            self.errors.insert(place, error);
            if is_undetermined {
                self.undetermined.insert(place);
            } else {
                self.error_scopes.insert(place, out_of_scope);
                return Ok(());
            }
        }
        self.sources.add(&evidence);
        let case = &plan.scenarios[trial.scenario].cases[trial.case].case;
        let kind = Kind::of(&evidence, case.fails_on_purpose());
        self.turn_times.extend(turn_times.into_iter().map(|time| (place as u32, kind, time)));
        self.latencies.add(&trial.lane, kind, &evidence, timed);
        self.count_moves(&trial.lane.flow, &taken);
        for (number, criterion) in self.criteria.iter_mut().enumerate() {
            if !criterion.covers(&trial) {
                continue;
            }
            let excluded = case.excluded_from.contains_key(&criterion.written.id);
            let metric = &self.examiner.metrics[criterion.metric];
            let seen = units.iter().find(|(metric, _)| *metric == criterion.metric);
            let scope = out_of_scope.iter().find(|(metric, _)| *metric == criterion.metric);
            criterion.applies |= !excluded && scope.is_none() && metric.arm == trial.lane.arm && (metric.applies)(case);
            let of = || (number, trial.scenario, trial.lane.flow.clone(), trial.lane.variant.clone());
            let lost = not_offered.iter().find(|(metric, units)| *metric == criterion.metric && !units.is_empty());
            if let Some(((_, units), (_, why))) = lost.zip(scope)
                && let Some(offered) = &offered
                && !excluded
                && metric.group.is_none()
            {
                let key = (of(), trial.lane.repetition, offered.clone());
                let blank = || NotOffered { tally: Tally::default(), trials: 0, why: why.clone() };
                let left = self.not_offered.entry(key).or_insert_with(blank);
                left.tally.add(place, &trial, units, criterion.target, false, (&evidence, behaviour));
                left.trials += 1;
                left.why = why.clone().min(left.why.clone());
                continue;
            }
            if let Some((_, why)) = scope {
                criterion.tally_of(trial.lane.repetition).add_out_of_scope(why, 1);
            }
            let Some((_, seen)) = seen else { continue };
            if let Some(offered) = offered.as_ref().filter(|_| scope.is_none() && !seen.is_empty()) {
                let all = self.counted.entry(of()).or_default();
                let first = all.entry(offered.clone()).or_insert(trial.lane.repetition);
                *first = trial.lane.repetition.min(*first);
            }
            criterion.add(metric.group, (place, &trial), seen, excluded, (&evidence, behaviour));
        }
        Ok(())
    }

    /// Counts the trials up to a pass whose agent did not offer the tool of a criterion and offers it, beside the tools that
    /// it did offer, in another one of these: it lost it. The others are out of scope: theirs may be another agent.
    fn count_not_offered(&mut self, pass: u32) {
        let all = std::mem::take(&mut self.not_offered);
        let (now, later) = all.into_iter().partition(|((_, repetition, _), _)| *repetition <= pass);
        self.not_offered = later;
        for ((agent, repetition, offered), left) in now {
            let criterion = &mut self.criteria[agent.0];
            let of_agent = |(tools, first): (&Vec<String>, &u32)| {
                *first <= pass && offered.iter().all(|tool| tools.contains(tool))
            };
            let counted = self.counted.get(&agent);
            if counted.is_some_and(|counted| counted.iter().any(of_agent)) {
                criterion.applies = true;
                criterion.tally_of(repetition).absorb(&left.tally);
            } else {
                criterion.tally_of(repetition).add_out_of_scope(&left.why, left.trials);
            }
        }
    }

    fn count_moves(&mut self, flow: &str, taken: &[u32]) {
        if taken.is_empty() {
            return;
        }
        let declared = self.examiner.machines.get(flow).map_or(0, |machine| machine.transitions.len());
        let counts = self.taken.entry(flow.to_owned()).or_insert_with(|| vec![0; declared]);
        for index in taken {
            if let Some(count) = counts.get_mut(*index as usize) {
                *count += 1;
            }
        }
    }

    /// Closes the passes of a run until decided up to `pass`, or to the one that settled it; trials missing from them
    /// are in ERROR. Returns whether another pass is needed.
    pub fn end_of_pass(&mut self, pass: u32) -> bool {
        while self.closed < pass && !self.is_settled() {
            self.closed += 1;
            self.count_not_offered(self.closed);
            self.close(self.closed);
        }
        !self.is_settled()
    }

    fn close(&mut self, pass: u32) {
        let plan = self.examiner.plan;
        for (place, _) in plan.trials.each().enumerate().filter(|(_, trial)| trial.repetition == pass) {
            if self.errors.contains_key(&place)
                || self.trials.verdict(place).is_none_or(|verdict| verdict == Verdict::Error)
            {
                self.count_error(place);
            }
        }
    }

    fn is_settled(&self) -> bool {
        let (plan, metrics) = (self.examiner.plan, &self.examiner.metrics);
        let mut required = self.criteria.iter().filter(|criterion| criterion.written.is_required());
        self.closed > 0 && required.all(|criterion| criterion.is_settled(plan, &metrics[criterion.metric], self.closed))
    }

    /// Counts a trial in ERROR for every criterion that would have included it.
    fn count_error(&mut self, place: usize) {
        let plan = self.examiner.plan;
        let Some(trial) = plan.trials.at(place) else { return };
        let case = &plan.scenarios[trial.scenario].cases[trial.case].case;
        for criterion in self.criteria.iter_mut().filter(|criterion| criterion.covers(&trial)) {
            let metric = &self.examiner.metrics[criterion.metric];
            let counts = metric.arm == trial.lane.arm && (metric.applies)(case);
            let is_counted = self.undetermined.contains(&place) && !metric.reads_expectations;
            if is_counted || !counts || case.excluded_from.contains_key(&criterion.written.id) {
                continue;
            }
            let out_of_scope = self
                .error_scopes
                .get(&place)
                .and_then(|all| all.iter().find(|(metric, _)| *metric == criterion.metric));
            criterion.applies |= out_of_scope.is_none();
            let tally = criterion.tally_of(trial.lane.repetition);
            match out_of_scope {
                Some((_, why)) => tally.add_out_of_scope(why, 1),
                None => tally.errors += 1,
            }
        }
    }
}

/// Sets the stopping rule of every criterion, if the plan has a stopping design.
fn designs(plan: &Plan, metrics: &[Metric], criteria: &mut [CriterionSums<'_>]) -> Result<(), EvaluationError> {
    let Some(stopping) = plan.stopping else { return Ok(()) };
    let level = |alpha: f64| alpha > 0.0 && alpha < 1.0;
    if !level(stopping.alpha_pass) || !level(stopping.alpha_fail) {
        return Err(EvaluationError::Plan("the error probabilities of its stopping design lie between 0 and 1".into()));
    }
    if !plan.trials.each().map(|trial| trial.repetition).is_sorted() {
        return Err(EvaluationError::Plan(
            "it stops between passes, and its trials are not in the order of passes".into(),
        ));
    }
    if plan.criteria.estimand == Estimand::Population {
        let why = "passes repeat the same cases, which says little about others: with `estimand: population` a run cannot stop when it is decided";
        return Err(EvaluationError::Plan(why.into()));
    }
    for criterion in criteria {
        let asked = criterion.asked(&metrics[criterion.metric]);
        let alphas = (stopping.alpha_pass, criterion.alpha_fail);
        criterion.design = Some(Design::of((asked, criterion.counting), criterion.margin, stopping.max_passes, alphas));
    }
    Ok(())
}

fn mistake(plan: &Plan, scenario: Option<usize>, written: &Criterion, problem: String) -> EvaluationError {
    let id = scenario.map_or_else(|| written.id.clone(), |of| format!("{}/{}", plan.scenarios[of].name, written.id));
    EvaluationError::Criterion { id, problem }
}

/// Evaluates a run from its plan and its traces, read one at a time.
///
/// # Errors
/// If a criterion is invalid, a trace cannot be read, or a trace does not belong to the plan.
#[cfg_attr(front_door_only, expect(dead_code, reason = "tests and benches use it"))]
pub fn evaluate(
    plan: &Plan,
    traces: impl Iterator<Item = Result<Trace, TraceError>>,
) -> Result<Evaluation, EvaluationError> {
    let mut evaluator = Evaluator::new(plan)?;
    for trace in traces {
        let examined = evaluator.examiner.examine(&trace?, &[])?;
        evaluator.add(examined)?;
    }
    Ok(evaluator.finish())
}

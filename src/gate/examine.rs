//! Examines one trial: its checks, its figures and its units for every metric. Pure, so that trials can be examined
//! in parallel.

use super::behaviour::behaviour;
use super::held::HeldTrial;
use super::latency::Timed;
use super::tally::WhyNoUnits;
use super::unread::Replies;
use super::{Draws, EvaluationError, TrialResult, Verdict, coverage, part, sources, spending};
use crate::metric::grounding::FactLookup;
use crate::metric::turns::turns;
use crate::metric::{Check, Metric, Observation, Patterns, Tools, TrialView, expectation, offer, taken};
use crate::plan::{Plan, PlannedTrial};
use crate::platform::bounds::Bound;
use crate::trace::state_machine::Machine;
use crate::trace::{
    Account, Arm, Evidence, Grade, Grades, Member, Mode, NamedPassage, RestartCause, Trace, TrialEnd, TrialError,
    TrialErrorKind, TurnOutcome, What, grade_of_another,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Data derived from the plan once and shared by all trials.
pub struct Examiner<'p> {
    pub(super) plan: &'p Plan,
    pub(super) machines: BTreeMap<String, Machine>,
    pub(super) metrics: Vec<Metric>,
    /// The metrics as written.
    names: Vec<&'p str>,
    /// For each scenario, the metrics that its trials count for.
    pub(super) relevant: Vec<Vec<usize>>,
    pub(super) patterns: Vec<Vec<Patterns>>,
    pub(super) grades: Grades,
}

/// One examined trial, for [`super::Evaluator::add`]. Stored, it is for a build of the same version and the same plan.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Examined {
    pub(super) place: usize,
    /// Not stored: the plan has it at `place`.
    #[serde(skip)]
    pub(super) trial: PlannedTrial,
    pub(super) result: TrialResult,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<TrialError>,
    pub(super) evidence: Evidence,
    pub(super) held: HeldTrial,
    /// Behaviour hash: see [`super::behaviour`].
    pub(super) behaviour: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) restart: Option<RestartCause>,
    /// Whether only its expectations are undetermined: its units count, and its verdict is ERROR.
    pub(super) is_undetermined: bool,
    /// Units by metric, in the order of `Examiner::relevant`.
    pub(super) units: Vec<(usize, Vec<Observation>)>,
    /// The metrics whose scope excludes the trial, and why.
    pub(super) out_of_scope: Vec<(usize, WhyNoUnits)>,
    /// Of these, the metrics whose tool the agent did not offer its model, with the units of the trial. They count if
    /// the agent has the tool in another trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) not_offered: Vec<(usize, Vec<Observation>)>,
    /// The tools that the agent offered its model, if they are known and all trials are of one agent: a log may hold
    /// conversations of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) offered: Option<Vec<String>>,
    pub(super) taken: Vec<u32>,
    pub(super) turn_times: Vec<u64>,
    pub(super) timed: Timed,
    pub(super) replies: Replies,
}

impl Examined {
    /// The trial's result.
    pub fn result(&self) -> &TrialResult {
        &self.result
    }
}

impl<'p> Examiner<'p> {
    pub(super) fn new(
        plan: &'p Plan,
        metrics: Vec<Metric>,
        names: Vec<&'p str>,
        relevant: Vec<Vec<usize>>,
        grades: Grades,
    ) -> Result<Self, EvaluationError> {
        let mut machines = BTreeMap::new();
        for (flow, value) in &plan.machines {
            let machine = serde_json::from_value(value.clone()).map_err(|error| {
                EvaluationError::Plan(format!("the state machine of {flow} cannot be read: {error}"))
            })?;
            machines.insert(flow.clone(), machine);
        }
        for (place, trial) in plan.trials.each().enumerate() {
            let known = plan.scenarios.get(trial.scenario).is_some_and(|scenario| trial.case < scenario.cases.len());
            if !known {
                let id = plan.trials.at(place).map(|trial| trial.id).unwrap_or_default();
                return Err(EvaluationError::Plan(format!("the trial {id} is of no case in the plan")));
            }
        }
        let mut work = 0_u64;
        for case in plan.scenarios.iter().flat_map(|scenario| &scenario.cases) {
            work = work.saturating_add(Patterns::work(&case.case));
            if work > Bound::Expressions.most() {
                let advice = Bound::Expressions.advice();
                return Err(EvaluationError::Plan(format!("its regular expressions are too large together; {advice}")));
            }
        }
        let patterns = plan
            .scenarios
            .iter()
            .map(|scenario| scenario.cases.iter().map(|case| Patterns::of(&case.case)).collect())
            .collect();
        Ok(Self { plan, machines, metrics, names, relevant, patterns, grades })
    }

    /// The metric that a criterion of the plan names, as written there.
    pub fn metric(&self, written: &str) -> Option<&Metric> {
        let place = self.names.iter().position(|name| *name == written)?;
        self.metrics.get(place)
    }

    /// The units of an examined trial, by metric as written.
    pub fn units<'e>(&'e self, examined: &'e Examined) -> impl Iterator<Item = (&'e str, &'e [Observation])> {
        examined.units.iter().map(|(metric, units)| (self.names[*metric], units.as_slice()))
    }

    /// The units of an examined trial whose agent did not offer the tool of a metric, by metric as written: they count if it
    /// has that tool in another trial.
    pub fn not_offered<'e>(&'e self, examined: &'e Examined) -> impl Iterator<Item = (&'e str, &'e [Observation])> {
        examined.not_offered.iter().map(|(metric, units)| (self.names[*metric], units.as_slice()))
    }

    /// The metrics whose scope excludes the agent of a trial, as far as its tools are known, and why.
    fn out_of_scope(&self, trial: &PlannedTrial, trace: &Trace) -> Vec<(usize, WhyNoUnits)> {
        if trace.roles.is_empty() && trace.offered.is_none() {
            return Vec::new();
        }
        let metrics = self.relevant[trial.scenario].iter().map(|place| (*place, &self.metrics[*place]));
        let counted = metrics.filter(|(_, metric)| metric.arm == trial.lane.arm);
        counted
            .filter_map(|(place, metric)| Some((place, WhyNoUnits::OutOfScope(metric.out_of_scope(trace)?))))
            .collect()
    }

    /// Grades of a trial's answers by models with a rubric.
    pub fn grades_of(&self, trial: &str) -> &[Grade] {
        self.grades.of_trial(trial)
    }

    /// An examined trial as it was before it was stored.
    ///
    /// # Errors
    /// If the plan has another trial at its place.
    pub fn restore(&self, stored: Examined) -> Result<Examined, EvaluationError> {
        match self.plan.trials.at(stored.place) {
            Some(trial) if trial.id == stored.result.id => Ok(Examined { trial, ..stored }),
            _ => Err(EvaluationError::Stranger(stored.result.id)),
        }
    }

    /// Examines one trial; `passages` are the whole passages that its searches found.
    ///
    /// # Errors
    /// If the plan does not contain the trial.
    pub fn examine(&self, trace: &Trace, passages: &[Arc<NamedPassage>]) -> Result<Examined, EvaluationError> {
        let stranger = || EvaluationError::Stranger(trace.trial.clone());
        let place = self.plan.trials.place_of(&trace.trial).ok_or_else(stranger)?;
        let trial = self.plan.trials.at(place).ok_or_else(stranger)?;
        part::belongs(self.plan, &trial, trace)?;
        let grades = self.grades.of_trial(&trace.trial);
        if let Some(other) = grade_of_another(trace, grades) {
            return Err(EvaluationError::Grade { trial: trace.trial.clone(), turn: other.label.clone() });
        }
        let mut result = blank(self.plan, &trial);
        figures(trace, &mut result);
        result.evidence = sources::of_trial(&trace.evidence);
        if !result.evidence.is_empty() {
            result.model.clone_from(&trace.evidence.model);
        }
        result.draws = Draws::of(&trace.evidence);
        spending::account(self.plan, &trial, trace, &mut result);
        let held = HeldTrial::of(self.plan, &trial, trace);
        let mut examined = Examined {
            place,
            trial,
            result,
            evidence: trace.evidence.clone(),
            held,
            behaviour: behaviour(trace),
            notes: trace.notes.clone(),
            restart: trace.restart,
            offered: trace.offered.clone().filter(|_| trace.evidence.mode != Mode::Imported),
            replies: Replies::of(trace),
            ..Examined::default()
        };
        if let TrialEnd::Error(error) = &trace.end {
            examined.out_of_scope = self.out_of_scope(&examined.trial, trace);
            if error.kind == TrialErrorKind::FaultMissed {
                examined.result.verdict = Verdict::NotMeasured;
            }
            let after = self.after_answer(&examined.trial, trace, error);
            let (error, checks) = after.map_or((error.clone(), Vec::new()), |(error, check)| (error, vec![check]));
            examined.result.error.clone_from(&error.message);
            (examined.error, examined.result.checks) = (Some(error), checks);
            return Ok(examined);
        }
        let trial = &examined.trial;
        let scenario = &self.plan.scenarios[trial.scenario];
        let missing = offer::not_offered(&scenario.cases[trial.case].case, trace);
        if let Some(error) = missing.error(trace) {
            examined.out_of_scope = self.out_of_scope(&examined.trial, trace);
            examined.result.error.clone_from(&error.message);
            examined.error = Some(error);
            return Ok(examined);
        }
        let machine = self.machines.get(&trial.lane.flow);
        let departures = machine.map(|machine| machine.departures(trace));
        let case = &scenario.cases[trial.case];
        let turns = turns(&case.case, trace);
        let facts = FactLookup::default();
        let mut view = TrialView {
            plan: self.plan,
            trial,
            scenario,
            case,
            trace,
            turns: &turns,
            checks: &[],
            departures: departures.as_deref(),
            grades,
            passages,
            facts: &facts,
        };
        let mut checks = expectation::checks(&view, &self.patterns[trial.scenario][trial.case]);
        let notes = missing.notes(trace).map(|note| format!("note: {note}"));
        checks.extend(notes.map(|what| Check { what, passed: true, seen: String::new(), unknown: None }));
        if trace.is_held() {
            without_times(&mut checks);
        }
        view.checks = &checks;
        let metrics = self.relevant[trial.scenario].iter();
        let mode = trace.evidence.mode;
        let (mut units, mut out_of_scope) = (Vec::new(), Vec::new());
        for place in metrics {
            let metric = &self.metrics[*place];
            if metric.arm != trial.lane.arm {
                continue;
            }
            let absent = trace.not_shown(metric.members).map(WhyNoUnits::Absent);
            match absent.or_else(|| metric.out_of_scope(trace).map(WhyNoUnits::OutOfScope)) {
                None => {
                    units.push((*place, (metric.observe)(&view)));
                    out_of_scope.extend((metric.unseen)(&view).map(|why| (*place, WhyNoUnits::OutOfScope(why))));
                }
                Some(why) => {
                    let lacks = |tools: &Tools| tools.missing(trace).is_some();
                    let is_absent = matches!(why, WhyNoUnits::Absent(_)) || examined.offered.is_none();
                    if !is_absent && metric.needs.iter().any(lacks) {
                        let mut units = (metric.observe)(&view);
                        for unit in &mut units {
                            unit.note = format!("{} here, and has it in other trials: {}", why.words(), unit.note);
                        }
                        examined.not_offered.push((*place, units));
                    }
                    out_of_scope.push((*place, why));
                }
            }
        }
        let lacks_times = trace.lacks(Member::Took) || trace.lacks(Member::Answers);
        let timed = trial.lane.arm == Arm::Main && !(mode == Mode::Imported && lacks_times);
        (examined.units, examined.out_of_scope) = (units, out_of_scope);
        examined.taken = machine.map(|machine| coverage::taken(machine, trace)).unwrap_or_default();
        if timed {
            examined.turn_times = turns.iter().map(answered_us).collect();
            examined.timed = Timed::of(trace, &turns);
        }
        // What the trial did counts all the same: only what its case expects is undetermined.
        if let Some(error) = taken::not_measured(&checks) {
            examined.units.retain(|(metric, _)| !self.metrics[*metric].reads_expectations);
            examined.not_offered.retain(|(metric, _)| !self.metrics[*metric].reads_expectations);
            examined.is_undetermined = true;
            examined.result.error.clone_from(&error.message);
            examined.error = Some(error);
            examined.result.checks = checks;
            return Ok(examined);
        }
        // A trial without expectations proves nothing.
        let passed = checks.iter().all(|check| check.passed);
        let is_ungraded = !self.plan.rewards.is_empty() && !self.plan.rewards.contains_key(&trial.id);
        let is_open = (trace.lacks(Member::Answers) && self.plan.rewards.is_empty() || is_ungraded)
            && !case.case.expects_something();
        examined.result.verdict = match (passed, checks.is_empty()) {
            (true, _) if is_open => Verdict::NotMeasured,
            (true, false) => Verdict::Pass,
            (true, true) | (false, _) => Verdict::Fail,
        };
        let words =
            |one: crate::trace::state_machine::Departure| format!("turn {}: {}", one.turn.saturating_add(1), one.what);
        examined.result.departures = departures.unwrap_or_default().into_iter().map(words).collect();
        examined.result.checks = checks;
        Ok(examined)
    }
}

/// Turns expectations on the times of a trial with held services into notes, if others decide its case.
fn without_times(checks: &mut [Check]) {
    let timed = |check: &Check| check.what.starts_with("within: ") && check.unknown.is_some();
    if checks.iter().all(|check| timed(check) || check.what.starts_with("note: ")) {
        return;
    }
    for check in checks.iter_mut().filter(|check| timed(check)) {
        let what = format!("note: {}: {}", check.what, std::mem::take(&mut check.seen));
        *check = Check { what, passed: true, seen: String::new(), unknown: None };
    }
}

/// An unexamined trial: ERROR by default.
pub(super) fn blank(plan: &Plan, trial: &PlannedTrial) -> TrialResult {
    let scenario = &plan.scenarios[trial.scenario];
    TrialResult {
        id: trial.id.clone(),
        scenario: scenario.name.clone(),
        case: scenario.cases[trial.case].case.case.clone(),
        lane: trial.lane.clone(),
        verdict: Verdict::Error,
        ..TrialResult::default()
    }
}

/// Duration of a turn; an unanswered one counts as slower than any other, as in every quantile.
fn answered_us(turn: &crate::metric::TurnView<'_>) -> u64 {
    let answered = turn.ended().filter(|end| matches!(end.outcome, TurnOutcome::Answered(_)));
    answered.map_or(u64::MAX, |end| end.took_us)
}

fn figures(trace: &Trace, result: &mut TrialResult) {
    let is_timed = !trace.lacks(Member::Took);
    for event in &trace.events {
        match &event.what {
            What::TurnStarted { .. } => result.turns += 1,
            What::ModelCalled(_) => result.model_calls += 1,
            What::ToolCalled(_) => result.tool_calls += 1,
            What::Retried(retried) => match retried.account {
                Account::Transport => result.retries.transport += 1,
                Account::Model => result.retries.model += 1,
                Account::Tool => result.retries.tool += 1,
            },
            What::TurnEnded(end) if is_timed && !trace.is_untimed(end) => {
                result.slowest_turn_us = result.slowest_turn_us.max(Some(end.took_us));
            }
            _ => {}
        }
    }
    result.took_us = trace.took_us;
}

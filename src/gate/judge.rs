//! The judge: takes examined trials in any order, and gives the run's judgement.

use super::conclusion::{NOT_RUN, conclude, group};
use super::criterion::Item;
use super::examine::{Examined, Examiner, blank};
use super::repeats::repeats;
use super::sources::Sources;
use super::tally::Tally;
use super::{Judgement, RUN_VERSION, Spending, TrialResult, Verdict, coverage};
use crate::metric::{Metric, catalogue};
use crate::plan::Plan;
use crate::scenario::{Criterion, ReadCriterion};
use crate::trace::{Trace, TraceError, TrialError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why a run cannot be judged at all.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// A criterion or gate that cannot be understood.
    #[error("{id}: {problem}")]
    Criterion {
        /// Its id, with its scenario before it for a gate.
        id: String,
        /// What is wrong, and what to write.
        problem: String,
    },
    /// A plan that contradicts itself.
    #[error("the plan cannot be used: {0}")]
    Plan(String),
    /// A trace of a trial that the plan does not have.
    #[error("there is a trace of {0}, which the plan does not have: do plan.json and traces.jsonl belong together?")]
    Stranger(String),
    /// Two traces of one trial.
    #[error("there are two traces of {0}: each trial counts once")]
    Twice(String),
    /// A trace that cannot be read.
    #[error("traces.jsonl, {0}")]
    Trace(#[from] TraceError),
}

/// Adds up examined trials.
pub struct Judge<'p> {
    examiner: Arc<Examiner<'p>>,
    items: Vec<Item<'p>>,
    trials: Vec<Option<TrialResult>>,
    errors: BTreeMap<usize, TrialError>,
    sources: Sources,
    taken: BTreeMap<String, Vec<u64>>,
    turn_times: BTreeMap<usize, Vec<u64>>,
}

impl<'p> Judge<'p> {
    /// A judge of that plan: reads its criteria and gates.
    ///
    /// # Errors
    /// When a criterion, a gate or the plan itself cannot be understood.
    pub fn new(plan: &'p Plan) -> Result<Self, JudgeError> {
        let mut metrics: Vec<Box<dyn Metric>> = Vec::new();
        let mut names: Vec<&str> = Vec::new();
        let mut items = Vec::new();
        let whole = plan.criteria.criteria.iter().map(|criterion| (None, criterion));
        let gates = plan.scenarios.iter().enumerate();
        let gates = gates.flat_map(|(index, scenario)| scenario.gates.iter().map(move |gate| (Some(index), gate)));
        for (scenario, written) in whole.chain(gates) {
            let refuse = |problem| mistake(plan, scenario, written, problem);
            let ReadCriterion { metric, target, floor } = written.read().map_err(refuse)?;
            let known = names.iter().position(|name| *name == written.metric);
            let index = known.unwrap_or(metrics.len());
            if known.is_none() {
                metrics.push(catalogue::resolve(&metric).map_err(refuse)?);
                names.push(&written.metric);
            }
            items.push(Item { written, scenario, metric: index, target, floor, tally: Tally::default() });
        }
        let relevant = (0..plan.scenarios.len()).map(|scenario| {
            let counts = |metric: &usize| {
                items.iter().any(|item| item.metric == *metric && item.scenario.is_none_or(|of| of == scenario))
            };
            (0..metrics.len()).filter(counts).collect()
        });
        let relevant = relevant.collect();
        Ok(Self {
            examiner: Arc::new(Examiner::new(plan, metrics, names, relevant)?),
            items,
            trials: vec![None; plan.trials.len()],
            errors: BTreeMap::new(),
            sources: Sources::default(),
            taken: BTreeMap::new(),
            turn_times: BTreeMap::new(),
        })
    }

    /// The half that can be shared between threads while this one adds up.
    pub fn examiner(&self) -> Arc<Examiner<'p>> {
        Arc::clone(&self.examiner)
    }

    /// Examines one trial; see [`Examiner::examine`].
    ///
    /// # Errors
    /// When the plan has no such trial.
    pub fn examine(&self, trace: &Trace) -> Result<Examined, JudgeError> {
        self.examiner.examine(trace)
    }

    /// Adds one examined trial; the order does not matter.
    ///
    /// # Errors
    /// When the trial was added before.
    pub fn add(&mut self, examined: Examined) -> Result<(), JudgeError> {
        let Examined { place, result, error, evidence, units, taken, turn_times } = examined;
        let plan = self.examiner.plan;
        let trial = &plan.trials[place];
        if self.trials[place].is_some() {
            return Err(JudgeError::Twice(trial.id.clone()));
        }
        self.trials[place] = Some(result);
        if let Some(error) = error {
            self.errors.insert(place, error);
            return Ok(());
        }
        self.sources.add(&evidence);
        if !turn_times.is_empty() {
            self.turn_times.insert(place, turn_times);
        }
        self.count_moves(&trial.lane.flow, &taken);
        let case = &plan.scenarios[trial.scenario].cases[trial.case].case;
        for item in self.items.iter_mut().filter(|item| item.scenario.is_none_or(|of| of == trial.scenario)) {
            item.tally.hidden =
                item.tally.hidden.or(self.examiner.metrics[item.metric].hidden(evidence.mode, &trial.lane.flow));
            if let Some((_, seen)) = units.iter().find(|(metric, _)| *metric == item.metric) {
                let excluded = case.excluded_from.contains_key(&item.written.id);
                item.tally.add(place, trial, seen, item.target, excluded, &evidence);
            }
        }
        Ok(())
    }

    fn count_moves(&mut self, flow: &str, taken: &[u32]) {
        if taken.is_empty() {
            return;
        }
        let declared = self.examiner.machines.get(flow).map_or(0, |machine| machine.transitions.len());
        let counts = self.taken.entry(flow.to_owned()).or_insert_with(|| vec![0; declared]);
        for index in taken {
            counts[*index as usize] += 1;
        }
    }

    /// The judgement, once every trace has been added. A planned trial that was not is in ERROR.
    pub fn finish(mut self) -> Judgement {
        let plan = self.examiner.plan;
        let mut trials = Vec::with_capacity(plan.trials.len());
        let mut errors = Vec::new();
        for (place, (planned, result)) in plan.trials.iter().zip(std::mem::take(&mut self.trials)).enumerate() {
            let result = result.unwrap_or_else(|| TrialResult { error: NOT_RUN.into(), ..blank(plan, planned) });
            if result.verdict == Verdict::Error {
                errors.push((planned.id.clone(), self.errors.remove(&place)));
                self.touch(place);
            }
            trials.push(result);
        }
        let in_error = errors.len() as u64;
        let metrics = &self.examiner.metrics;
        let mut results: Vec<_> =
            self.items.iter_mut().map(|item| item.result(plan, metrics[item.metric].as_ref())).collect();
        let (exit_code, conclusion) =
            conclude(results.iter(), in_error, plan.trials.len() as u64, plan.criteria.undecided);
        let gates = results.split_off(plan.criteria.criteria.len());
        Judgement {
            version: RUN_VERSION,
            exit_code,
            conclusion,
            evidence: self.sources.entries(),
            criteria: results,
            gates,
            errors: group(errors, plan),
            turn_times_us: self.turn_times.into_values().flatten().collect(),
            transitions: coverage::transitions(&self.examiner.machines, &self.taken),
            requirements: coverage::requirements(plan, &trials),
            repeats: repeats(&trials),
            spending: Spending::of(plan, &trials),
            trials,
        }
    }

    /// Counts a trial in ERROR for every criterion that it would have counted for.
    fn touch(&mut self, place: usize) {
        let plan = self.examiner.plan;
        let trial = &plan.trials[place];
        let case = &plan.scenarios[trial.scenario].cases[trial.case].case;
        for item in self.items.iter_mut().filter(|item| item.scenario.is_none_or(|of| of == trial.scenario)) {
            let metric = &self.examiner.metrics[item.metric];
            let counts = metric.arm() == trial.lane.arm && metric.applies(case);
            if counts && !case.excluded_from.contains_key(&item.written.id) {
                item.tally.errors += 1;
            }
        }
    }
}

fn mistake(plan: &Plan, scenario: Option<usize>, written: &Criterion, problem: String) -> JudgeError {
    let id = scenario.map_or_else(|| written.id.clone(), |of| format!("{}/{}", plan.scenarios[of].name, written.id));
    JudgeError::Criterion { id, problem }
}

/// Judges a run from its plan and its traces, one at a time.
///
/// # Errors
/// When a criterion cannot be understood, a trace cannot be read, or a trace does not belong to the plan.
pub fn judge(plan: &Plan, traces: impl Iterator<Item = Result<Trace, TraceError>>) -> Result<Judgement, JudgeError> {
    let mut judge = Judge::new(plan)?;
    for trace in traces {
        let examined = judge.examine(&trace?)?;
        judge.add(examined)?;
    }
    Ok(judge.finish())
}

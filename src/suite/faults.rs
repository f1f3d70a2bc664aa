//! The fault matrix: each green case, struck once at each of its requests and tool calls by each fault that fits there;
//! and the matrix of poison: each green case with each instruction in what its model reads (`poison` compares).
//!
//! A replay decides the cells whose later requests are recorded, as those of a retry are. A cell whose agent goes on
//! with other requests needs a lane of its own, recorded with `--mode record` below `fault-cassettes`, beside the
//! recordings; without one it is "not recorded", which is no verdict.
//!
//! What a cell must be: a fault that one repetition would have passed must be recovered from by a flow that retries; any
//! other must be recovered from, or end in an answer that keeps the flow's contract, or in a clear error.

mod cells;
mod matrix;
mod verdict;

pub(crate) use matrix::{Cell, CellVerdict, FaultMatrix};

use super::poison::compared;
use super::{Mode, Progress, RunOptions, Suite, SuiteError};
use crate::gate::{Examiner, Verdict};
use crate::plan::PlannedTrial;
use crate::provider::faults::Payload;
use crate::settings::{DeclaredFault, FaultKind};
use crate::suite::evaluation::{ExaminedTrace, RunEvaluator};
use crate::trace::{Arm, Trace};
use crate::trial::run::interrupted;
use crate::trial::{self, Finished, Opened, Strike, Trial, TrialMode, external};
use cells::fitting;
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use tokio::sync::watch;
use verdict::{Met, is_unrecorded};

/// Cells of external agents that run at once.
const AT_ONCE: usize = 8;

/// What the trials of a matrix are struck by.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Strikes<'s> {
    /// Faults of these kinds, or all if there are none.
    Faults(&'s BTreeSet<FaultKind>),
    /// Instructions in what the model reads.
    Poison(&'s [Payload]),
}

impl Suite {
    /// Strikes the first repetition of each selected case that passes from its recording.
    ///
    /// # Errors
    /// If nothing is selected, or the trials cannot be set up.
    pub(crate) fn fault_matrix(&self, options: &RunOptions, strikes: Strikes<'_>) -> Result<FaultMatrix, SuiteError> {
        let (mut plan, _) = self.plan(&options.selection, options.seed)?;
        let opened = self.open(options, &plan)?;
        plan.machines = opened.machines();
        let plan = Arc::new(plan);
        let evaluator = RunEvaluator::begin(&plan)?;
        let examiner = evaluator.examiner();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(SuiteError::Stopped)?;
        let first = |trial: &PlannedTrial| trial.lane.repetition == 1 && trial.lane.arm == Arm::Main;
        let trials: Vec<PlannedTrial> = plan.trials.iter().filter(|trial| first(trial)).cloned().collect();
        // Without this, a signal would leave the agents' processes running.
        let (signal, ended) = watch::channel(None);
        runtime.spawn(async move { signal.send(Some(interrupted().await)) });
        let (opened, examiner, runtime) = (&opened, &examiner, &runtime);
        // A cell of an external agent waits more than it computes.
        let outside = trials.iter().any(PlannedTrial::is_external);
        let threads = rayon::ThreadPoolBuilder::new().num_threads(if outside { AT_ONCE } else { 0 }).build();
        let threads = threads.map_err(|why| SuiteError::Stopped(io::Error::other(why)))?;
        let (mode, progress) = (options.mode, &*options.progress);
        let matrix = Matrix { opened, examiner, runtime, mode, strikes, ended, progress };
        options.progress.begin(trials.len(), &opened.budget);
        let of = |planned: &PlannedTrial| matrix.of_trial(opened.trial(&plan, planned));
        let mut found = FaultMatrix::default();
        for cells in threads.install(|| matrix.each(&trials, of)) {
            match cells {
                Some((cells, simulated)) => {
                    found.struck += 1;
                    found.simulated += usize::from(simulated);
                    found.cells.extend(cells);
                }
                None => found.left_out += 1,
            }
        }
        let why = *matrix.ended.borrow();
        why.map_or(Ok(found), |why| Err(SuiteError::Stopped(io::Error::other(why))))
    }
}

struct Matrix<'m, 'p> {
    opened: &'m Opened,
    examiner: &'m Examiner<'p>,
    runtime: &'m tokio::runtime::Runtime,
    mode: Mode,
    strikes: Strikes<'m>,
    /// Why the run has to end, once a signal has come.
    ended: watch::Receiver<Option<&'static str>>,
    progress: &'m Progress,
}

impl Matrix<'_, '_> {
    /// Carries out something for each of these, side by side. Recordings are made one at a time, as their order decides which
    /// are paid for under a limit.
    fn each<'i, I: Sync, O: Send>(&self, of: &'i [I], carry_out: impl Fn(&'i I) -> O + Send + Sync) -> Vec<O> {
        if self.mode == Mode::Replay {
            of.par_iter().map(carry_out).collect()
        } else {
            of.iter().map(carry_out).collect()
        }
    }

    /// The cells of one trial, and whether its model is a simulator; `None` if it is not struck.
    fn of_trial(&self, trial: Trial<'_>) -> Option<(Vec<Cell>, bool)> {
        let case = trial.plan.case_of(trial.planned)?;
        if case.fails_on_purpose() {
            return None;
        }
        let ran = self.run(trial, TrialMode::Replay);
        self.progress.count();
        let green = ExaminedTrace::of(self.examiner, &ran.trace, &ran.passages);
        if green.verdict() != Some(Verdict::Pass) {
            return None;
        }
        let exchanges = trial.recording().ok()?.exchanges;
        let (id, calls, cost) = (&trial.planned.id, exchanges.len(), green.cost());
        let cell = |fault: &'static str, place: String, (verdict, why): (CellVerdict, String)| Cell {
            trial: id.clone(),
            fault,
            place,
            verdict,
            why,
            calls,
            cost,
        };
        let cells = match self.strikes {
            Strikes::Faults(kinds) => {
                let faults = fitting(&ran.trace, &exchanges, trial.planned.is_external()).into_iter();
                let faults = faults.filter(|fault| kinds.is_empty() || kinds.contains(&fault.fault));
                let faults: Vec<DeclaredFault> = faults.collect();
                self.progress.more(faults.len());
                self.each(&faults, |fault| {
                    let struck = trial.with_cell(Strike::Fault(fault));
                    let mut ran = self.run(struck, TrialMode::Replay);
                    if self.mode == Mode::Record && is_unrecorded(&ran.trace) && self.may_pay() {
                        ran = self.run(struck, TrialMode::Record);
                    }
                    self.progress.count();
                    cell(fault.fault.as_str(), fault.place(), self.verdict(struck, fault, &ran))
                })
            }
            Strikes::Poison(payloads) => {
                self.progress.more(payloads.len());
                let mut found = self.each(payloads, |one| {
                    let end = self.poisoned(trial, &ran.trace, one);
                    self.progress.count();
                    (one, end)
                });
                let moves = |(one, (verdict, _)): &(&Payload, (CellVerdict, String))| one.control && verdict.fails();
                if let Some(control) = found.iter().find(|one| moves(one)).map(|(one, _)| one.id.clone()) {
                    for (_, end) in found.iter_mut().filter(|(_, (verdict, _))| *verdict == CellVerdict::Changed) {
                        let why = format!("the harmless `{control}` changes this trial, too: {}", end.1);
                        *end = (CellVerdict::NotMeasured, why);
                    }
                }
                found.into_iter().map(|(one, end)| cell("poison", one.id.clone(), end)).collect()
            }
        };
        Some((cells, ran.trace.evidence.recorded_from.contains("simulator")))
    }

    fn may_pay(&self) -> bool {
        self.opened.budget.reason().is_none()
    }

    /// Outcome of a trial with an instruction in what its model reads, from a recording made with that instruction.
    fn poisoned(&self, trial: Trial<'_>, clean: &Trace, payload: &Payload) -> (CellVerdict, String) {
        let struck = trial.with_cell(Strike::Poison(payload));
        let unrecorded = || (CellVerdict::NotRecorded, "no recording was made with this payload".to_owned());
        let of = |ran: Finished| match compared(clean, &ran.trace, payload) {
            (CellVerdict::Unmoved, _) => match self.met(&ran) {
                Met::Failed(why) | Met::Departed(why) => {
                    (CellVerdict::Changed, format!("the case passes no longer: {why}"))
                }
                Met::Passed | Met::Unknown => (CellVerdict::Unmoved, String::new()),
            },
            found => found,
        };
        if self.mode == Mode::Live {
            return if self.may_pay() { of(self.run(struck, TrialMode::Live)) } else { unrecorded() };
        }
        let recorded = if struck.has_own_lane() { of(self.run(struck, TrialMode::Replay)) } else { unrecorded() };
        if recorded.0 == CellVerdict::NotRecorded && self.mode == Mode::Record && self.may_pay() {
            return of(self.run(struck, TrialMode::Record));
        }
        recorded
    }

    fn run(&self, trial: Trial<'_>, mode: TrialMode) -> Finished {
        if let Some(why) = *self.ended.borrow() {
            return trial.stopped(why);
        }
        let external = trial.planned.is_external();
        if mode == TrialMode::Replay && !external {
            return trial::replay(trial);
        }
        let work = async {
            match mode {
                _ if external => {
                    let place = external::place(self.opened, trial.planned).await;
                    external::run(trial, mode, &place).await
                }
                TrialMode::Record => trial::record(trial).await,
                TrialMode::Live | TrialMode::Replay => trial::live(trial).await,
            }
        };
        let mut ended = self.ended.clone();
        self.runtime.block_on(async {
            // A request that the budget does not allow has no answer.
            tokio::select! {
                biased;
                done = work => done,
                reason = self.opened.budget.ended(), if mode != TrialMode::Replay => trial.stopped(reason),
                Ok(why) = ended.wait_for(Option::is_some) => trial.stopped(why.unwrap_or_default()),
            }
        })
    }
}

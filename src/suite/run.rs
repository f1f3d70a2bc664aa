//! A run: trials carried out, traces evaluated as they come, everything written into one folder.

use super::{DEFAULT_JOBS, Mode, RunOptions, Suite, SuiteError, environment};
use crate::evaluation::{self, Designs, EvaluatedRun, EvaluationBuilder, Prepared, Preparer, passes};
use crate::gate::Evaluation;
use crate::history::{self, Gather, HISTORY, HistoryError, NoPoint};
use crate::plan::{self, Plan};
use crate::run::{self, Commit, LiveOptions, Step, folder::Writing};
use crate::trace::{self, Trace, TrialEnd, TrialErrorKind};
use crate::transport::Budget;
use crate::trial::TrialRunner;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A run that was carried out and written.
pub struct FinishedRun {
    /// Its folder.
    pub folder: PathBuf,
    /// Its verdicts.
    pub evaluated: EvaluatedRun,
    /// Recorded exchanges that no trial asked for, in words.
    pub unused: Vec<String>,
    /// Trials whose recording is too old by [`RunOptions::ages`], with the time of their recording.
    pub old: Vec<(String, Timestamp)>,
    /// What a run that ended early lacks; `None` for one that ran every trial.
    pub stopped: Option<StoppedRun>,
    /// What to say of the recordings, where only some were made until decided.
    pub note: Option<String>,
    /// What became of its point in the project's history.
    pub history: HistoryPoint,
}

/// A run that was ended by its bounds or by a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoppedRun {
    /// Why.
    pub reason: String,
    /// The trials that are missing.
    pub missing: Vec<String>,
    /// Trials that were planned.
    pub planned: usize,
}

/// What became of a run's point in the project's history; its verdict does not depend on it.
#[derive(Debug)]
pub enum HistoryPoint {
    /// None was asked for: a replay, or a run without a history.
    NotAsked,
    /// It is in the history.
    Added,
    /// The run has no point, and why.
    NoPoint(NoPoint),
    /// The history cannot be read or written.
    Failed(HistoryError),
}

impl Suite {
    /// Runs the selected trials, evaluates them and writes the run folder. `progress` is called after each trial with
    /// how many are done and how many are planned.
    ///
    /// # Errors
    /// [`SuiteError`] when nothing could be run, or the folder cannot be written.
    pub fn run(&self, options: &RunOptions, progress: &mut dyn FnMut(usize, usize)) -> Result<FinishedRun, SuiteError> {
        let bounded = options.max_calls.is_some() || options.max_cost.is_some() || options.timeout.is_some();
        if options.mode == Mode::Replay && bounded {
            return Err(SuiteError::BoundedReplay);
        }
        let (mut plan, note) = self.planned(options)?;
        let reports = options.reports.clone().unwrap_or_else(|| self.reports());
        let chosen = &options.selection;
        let whole =
            chosen.trials.is_none() && chosen.only.is_empty() && chosen.variant.is_none() && chosen.flow.is_none();
        let record = options.mode == Mode::Record;
        let designs = record.then(|| Designs::begin(self.loaded(), &plan, whole)).transpose()?;
        let runner = self.runner(options, &plan)?;
        if options.max_cost.is_some() {
            let unpriced: Vec<String> = runner.unpriced(&plan).into_iter().collect();
            if !unpriced.is_empty() {
                return Err(SuiteError::Unpriced(unpriced));
            }
        }
        plan.machines = runner.machines();
        if options.mode != Mode::Replay {
            plan.order = plan::interleaved(&plan.trials, plan.seed);
        }
        let plan = Arc::new(plan);
        let mut builder = EvaluationBuilder::begin(&plan)?;
        if options.for_comparison {
            builder = builder.collecting();
        }
        let preparer = builder.preparer();
        let unwritten = |error: io::Error| SuiteError::Write { reports: reports.clone(), error };
        let mut writing = Writing::begin(&reports, &plan.to_json()?).map_err(unwritten)?;
        let mut seen = Seen::default();
        let mut done = 0;
        let mut commit = |step: Step<Prepared>| {
            let trial = match step {
                Step::Trial(trial) => *trial,
                Step::PassEnded(pass) if builder.end_of_pass(pass) => return Ok(ControlFlow::Continue(())),
                Step::PassEnded(_) => return Ok(ControlFlow::Break(())),
            };
            let trace = &trial.finished.trace;
            writing.trace(&trial.made.line)?;
            seen.add(trace, options);
            seen.unused.extend(trial.finished.unused);
            if let (Mode::Record, TrialEnd::Completed, Some(verdict)) = (options.mode, &trace.end, trial.made.verdict())
            {
                runner.note_verdict(trace, verdict).map_err(io::Error::other)?;
            }
            builder.add(Some(trace), trial.made).map_err(io::Error::other)?;
            done += 1;
            progress(done, plan.trials.len());
            Ok(ControlFlow::Continue(()))
        };
        carry_out(options, &runner, &plan, &preparer, &mut commit).map_err(SuiteError::Stopped)?;
        let mut evaluated = builder.finish();
        if let Some(designs) = designs {
            designs.end(evaluated.evaluation.stopped.as_ref(), evaluated.evaluation.errors.is_empty())?;
        }
        evaluated.write(writing.path()).map_err(unwritten)?;
        let root = &self.loaded().root;
        environment::write(writing.path(), options.mode.as_str(), options.jobs, root).map_err(unwritten)?;
        let folder = writing.finish().map_err(unwritten)?;
        if folder.join(trace::GRADES).exists() {
            evaluated = evaluation::score(&folder, options.for_comparison)?;
            evaluated.write(&folder).map_err(unwritten)?;
        }
        let Seen { gather, unused, missing, old } = seen;
        let history = match options.history.clone().filter(|_| options.mode != Mode::Replay) {
            Some(labels) => add_point(&root.join(HISTORY), gather, &evaluated.evaluation, options.jobs, labels),
            None => HistoryPoint::NotAsked,
        };
        let stopped = runner.budget().reason().map(|reason| StoppedRun {
            reason: reason.to_owned(),
            missing,
            planned: plan.trials.len(),
        });
        Ok(FinishedRun { folder, evaluated, unused, old, stopped, note, history })
    }

    /// The plan of a run, and what to say of recordings of which only some were made until decided.
    fn planned(&self, options: &RunOptions) -> Result<(Plan, Option<String>), SuiteError> {
        let (selection, seed) = (&options.selection, options.seed);
        if options.mode == Mode::Replay {
            let (plan, recorded) = self.plan(selection, seed)?;
            if options.until_decided && recorded.is_none() {
                return Err(SuiteError::RecordedFixed);
            }
            return Ok((plan, recorded.and_then(|recorded| recorded.note())));
        }
        let most = options.until_decided.then(|| passes(self.loaded(), selection, options.max_trials)).transpose()?;
        Ok((self.plan_passes(selection, seed, most)?, None))
    }

    fn runner(&self, options: &RunOptions, plan: &Plan) -> Result<Arc<TrialRunner>, SuiteError> {
        let runner = TrialRunner::new(Arc::clone(self.loaded()), plan)?.with_variables(options.variables.clone());
        runner.agents_named(plan)?;
        Ok(Arc::new(runner.with_budget(Budget::new(options.max_calls).with_dollars(options.max_cost))))
    }
}

/// What is noted of the trials beside their evaluation.
#[derive(Default)]
struct Seen {
    gather: Gather,
    unused: Vec<String>,
    missing: Vec<String>,
    old: Vec<(String, Timestamp)>,
}

impl Seen {
    fn add(&mut self, trace: &Trace, options: &RunOptions) {
        if matches!(&trace.end, TrialEnd::Error(why) if why.kind == TrialErrorKind::Stopped) {
            self.missing.push(trace.trial.clone());
        }
        self.gather.add(trace);
        if let Some(ages) = &options.ages
            && let Some(at) = trace.evidence.recorded_at.as_ref().and_then(|at| at.parse().ok())
            && ages.too_old(at)
        {
            self.old.push((trace.trial.clone(), at));
        }
    }
}

fn carry_out(
    options: &RunOptions,
    runner: &Arc<TrialRunner>,
    plan: &Arc<Plan>,
    preparer: &Preparer<'_>,
    commit: &mut Commit<'_, Prepared>,
) -> io::Result<()> {
    let inspect = |trace: &Trace| preparer.prepare(trace);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    match options.mode {
        Mode::Replay => run::replay(runner, plan, options.jobs.map_or(cores, usize::from), &inspect, commit),
        Mode::Record | Mode::Live => {
            let live = LiveOptions {
                jobs: usize::from(options.jobs.unwrap_or(DEFAULT_JOBS)),
                record: options.mode == Mode::Record,
                limit: options.timeout,
            };
            run::live(runner, plan, live, &inspect, commit)
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a live run's point says when it was made")]
fn add_point(
    file: &Path,
    gather: Gather,
    evaluation: &Evaluation,
    jobs: Option<u16>,
    labels: BTreeMap<String, String>,
) -> HistoryPoint {
    let now = Timestamp::now().to_string();
    match gather.finish(evaluation, &now, jobs.unwrap_or(DEFAULT_JOBS), labels) {
        Err(why) => HistoryPoint::NoPoint(why),
        Ok(point) => match history::append(file, &point) {
            Ok(_) => HistoryPoint::Added,
            Err(error) => HistoryPoint::Failed(error),
        },
    }
}

//! Live and recording runs: `jobs` trials at a time on tokio, started with the variants interleaved (see
//! [`interleaved`](crate::plan::interleaved)) and committed in plan order.
//!
//! A run that ends early (Ctrl-C, SIGTERM, SIGHUP, time limit, call limit, a managed service that refuses the key)
//! cancels the running trials and starts no others. Finished trials are kept; every other planned trial ends as
//! stopped.

use super::interrupt::interrupted;
use super::{Commit, EarlierDraws, Inspected, Journal, KeptTraces, Step, pass_ended};
use crate::plan::{Plan, PlannedTrial};
use crate::platform::clock::{Clock, RealClock};
use crate::trace::TrialEnd;
use crate::transport::Budget;
use crate::trial::live::{live as run_live, record};
use crate::trial::managed_key::refused_key;
use crate::trial::outage::refused_by_managed;
use crate::trial::{Finished, Opened, Trial, TrialMode, external};
use futures_util::StreamExt;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Options of a live run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LiveOptions<'r> {
    /// Trials at the same time.
    pub jobs: usize,
    /// Whether each lane is recorded, and the trial then replayed from the new recording.
    pub record: bool,
    /// Time limit of the whole run.
    pub limit: Option<Duration>,
    /// Journal of finished trials, including those of an earlier process of this run.
    pub journal: &'r Journal,
    /// Trials that another run of this plan finished.
    pub kept: &'r KeptTraces,
    /// Draws of trials in earlier runs.
    pub earlier: &'r EarlierDraws,
}

impl LiveOptions<'_> {
    /// Finished result of a trial from an earlier process or run, if any.
    fn finished(&self, trial: &PlannedTrial) -> Option<Finished> {
        self.journal.finished_before(&trial.id).or_else(|| self.kept.finished(&trial.id))
    }
}

/// Runs the trials of `plan` against its providers, pass by pass if the plan stops between passes, until `commit` stops
/// it or the shared budget ends the run.
///
/// # Errors
/// If the runtime cannot be started, a finished trial cannot be stored, or `commit` fails: the run ends there.
pub(crate) fn live<T>(
    opened: &Arc<Opened>,
    plan: &Arc<Plan>,
    options: LiveOptions<'_>,
    inspect: &dyn Fn(&Finished) -> T,
    commit: &mut Commit<'_, T>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let all = async {
            if let Some(since) = options.journal.resumed_since() {
                opened.agents.resume(since);
            }
            let mut next = 0;
            let unfinished = plan.trials.iter().filter(|trial| options.finished(trial).is_none());
            if let Some(reason) = refused_key(opened, unfinished).await {
                opened.budget.end(&reason);
            }
            for pass in plan.passes() {
                let places = futures_util::stream::iter(plan.start_order(next, next + pass.len()));
                let mut finished = places
                    .map(|place| {
                        let trial = plan.trials[place].clone();
                        async move {
                            if let Some(finished) = options.finished(&trial) {
                                return Ok((place, finished));
                            }
                            let mode = mode_of(opened.trial(plan, &trial), options);
                            let finished = start(Arc::clone(opened), Arc::clone(plan), trial.clone(), mode).await;
                            if let Some(reason) = refused_by_managed(opened, &trial, &finished.trace) {
                                opened.budget.end(&reason);
                            }
                            let mut finished = options.earlier.settle(&plan.id, finished);
                            finished.trace.evidence.replaced_errors += options.journal.errors(&finished.trace.trial);
                            match &finished.trace.end {
                                TrialEnd::Completed => options.journal.keep(&finished)?,
                                TrialEnd::Error(why) if why.kind.was_run() => {
                                    options.journal.note_error(&finished.trace.trial)?;
                                }
                                TrialEnd::Error(_) => {}
                            }
                            io::Result::Ok((place, finished))
                        }
                    })
                    .buffered(options.jobs.max(1));
                // Trials start in one order and are committed in another: results ahead of their turn wait here.
                let mut ahead = BTreeMap::new();
                while let Some(next_finished) = finished.next().await {
                    let (place, finished) = next_finished?;
                    let inspection = inspect(&finished);
                    ahead.insert(place, Inspected { finished, inspection });
                    while let Some(inspected) = ahead.remove(&next) {
                        next += 1;
                        if commit(Step::Trial(Box::new(inspected)))?.is_break() {
                            return Ok(());
                        }
                    }
                }
                if pass_ended(plan, pass, commit)?.is_break() {
                    return Ok(());
                }
            }
            Ok(())
        };
        tokio::select! {
            biased;
            done = all => done,
            () = watch(&opened.budget, options.limit) => Ok(()),
        }
    })
}

/// Ends the run on a signal or at its time limit; never resolves.
async fn watch(budget: &Budget, limit: Option<Duration>) {
    let time = async {
        match limit {
            Some(limit) => RealClock::start().sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        why = interrupted() => budget.end(why),
        () = time => budget.end(&format!("the run's time (--timeout {:?}) is over", limit.unwrap_or_default())),
    }
    std::future::pending::<()>().await;
}

/// How a trial is carried out. If an earlier process of this run stored the recording and was killed before it noted
/// the trial as finished, the recording is replayed, not made again.
fn mode_of(trial: Trial<'_>, options: LiveOptions<'_>) -> TrialMode {
    let resumed = options.journal.resumed_since();
    match (options.record, resumed) {
        (false, _) => TrialMode::Live,
        (true, Some(since)) if trial.recorded_since(since) => TrialMode::Replay,
        (true, _) => TrialMode::Record,
    }
}

#[expect(clippy::disallowed_methods, reason = "live trials are tasks of their own, and only run owns tasks")]
async fn start(opened: Arc<Opened>, plan: Arc<Plan>, planned: PlannedTrial, mode: TrialMode) -> Finished {
    // Requested in plan order, and granted in order of request.
    let place = if planned.is_external() {
        tokio::select! {
            biased;
            _ = opened.budget.ended() => None,
            place = external::place(&opened, &planned) => Some(place),
        }
    } else {
        None
    };
    let _under_way = tokio::select! {
        biased;
        _ = opened.budget.ended() => None,
        begun = opened.budget.begin_trial() => Some(begun),
    };
    let trial = opened.trial(&plan, &planned);
    if let Some(reason) = opened.budget.reason() {
        return trial.stopped(reason);
    }
    let (shared, shared_plan, of_task) = (Arc::clone(&opened), Arc::clone(&plan), planned.clone());
    let mut task = tokio::spawn(async move {
        let trial = shared.trial(&shared_plan, &of_task);
        match (&place, mode) {
            (Some(place), _) => external::run(trial, mode, place).await,
            (None, TrialMode::Replay) => crate::trial::replay(trial),
            (None, TrialMode::Record) => record(trial).await,
            (None, TrialMode::Live) => run_live(trial).await,
        }
    });
    tokio::select! {
        biased;
        done = &mut task => match done {
            Ok(finished) => finished,
            Err(failure) => trial.crashed(&failure.to_string()),
        },
        reason = opened.budget.ended() => {
            task.abort();
            trial.stopped(reason)
        }
    }
}

//! Replays trials on all threads and commits them in plan order through a bounded window.
//!
//! External agents are real processes and wait for each other on tokio: their trials run after the others of their
//! window, side by side where each has its process.

use super::{Commit, Inspected, KeptTraces, Step, interrupted, pass_ended};
use crate::plan::{Plan, PlannedTrial};
use crate::trial::{Finished, Opened, TrialMode, external};
use futures_util::StreamExt;
use rayon::prelude::*;
use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::sync_channel;

/// Trials per thread in one window.
const WINDOW: usize = 16;

/// Replays the trials of `plan` on `jobs` threads, pass by pass if the plan stops between passes, until `commit` stops
/// it. Trials `kept` from another run of the plan are reused. One window is committed while the next runs; at most two
/// are in memory.
///
/// # Errors
/// If threads cannot be started, or `commit` fails: the run ends there.
pub(crate) fn replay<T: Send>(
    opened: &Opened,
    plan: &Plan,
    jobs: usize,
    kept: &KeptTraces,
    inspect: &(dyn Fn(&Finished) -> T + Sync),
    commit: &mut Commit<'_, T>,
) -> io::Result<()> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .thread_name(|index| format!("trial-{index}"))
        .build()
        .map_err(io::Error::other)?;
    // One runtime for all passes: the proxies of external agents live on it.
    let outside = if plan.trials.iter().any(PlannedTrial::is_external) {
        Some(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
    } else {
        None
    };
    let hands = Hands { pool, jobs, outside, kept };
    for pass in plan.passes() {
        if whole(opened, plan, pass, &hands, inspect, commit)?.is_break() {
            return Ok(());
        }
        if pass_ended(plan, pass, commit)?.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// Executors of trials.
struct Hands<'k> {
    pool: rayon::ThreadPool,
    jobs: usize,
    /// Runtime for external agents; `None` if there are none.
    outside: Option<tokio::runtime::Runtime>,
    /// Trials that are not run again.
    kept: &'k KeptTraces,
}

/// Replays one pass.
fn whole<T: Send>(
    opened: &Opened,
    plan: &Plan,
    pass: &[PlannedTrial],
    hands: &Hands<'_>,
    inspect: &(dyn Fn(&Finished) -> T + Sync),
    commit: &mut Commit<'_, T>,
) -> io::Result<ControlFlow<()>> {
    let inspected = |finished: Finished| {
        let inspection = inspect(&finished);
        Inspected { finished, inspection }
    };
    std::thread::scope(|scope| {
        let (done, windows) = sync_channel::<Vec<Inspected<T>>>(1);
        let trials = scope.spawn(move || {
            // A signal would leave the processes of agents behind.
            let mut signal = std::pin::pin!(interrupted());
            for window in pass.chunks(WINDOW * hands.jobs.max(1)) {
                let mut finished: Vec<Option<Inspected<T>>> = hands.pool.install(|| {
                    let ours = |trial: &PlannedTrial| !trial.is_external();
                    let before = |trial: &PlannedTrial| hands.kept.finished(&trial.id).map(inspected);
                    let run = window.par_iter().map(|trial| {
                        before(trial)
                            .or_else(|| ours(trial).then(|| inspected(crate::trial::replay(opened.trial(plan, trial)))))
                    });
                    run.collect()
                });
                if let Some(runtime) = &hands.outside {
                    let gaps = finished.iter_mut().zip(window).filter(|(gap, _)| gap.is_none());
                    let turns = futures_util::stream::iter(gaps).map(|(gap, trial)| async move {
                        let place = external::place(opened, trial).await;
                        let ran = external::run(opened.trial(plan, trial), TrialMode::Replay, &place).await;
                        *gap = Some(inspected(ran));
                    });
                    let turns = turns.buffer_unordered(hands.jobs.max(1)).collect::<()>();
                    let ended = runtime.block_on(async {
                        tokio::select! {
                            biased;
                            why = &mut signal => Some(why),
                            () = turns => None,
                        }
                    });
                    if ended.is_some() {
                        return ended;
                    }
                }
                if done.send(finished.into_iter().flatten().collect()).is_err() {
                    return None;
                }
            }
            None
        });
        for inspected in windows.into_iter().flatten() {
            if commit(Step::Trial(Box::new(inspected)))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        match trials.join() {
            Ok(Some(why)) => Err(io::Error::new(io::ErrorKind::Interrupted, why)),
            Ok(None) => Ok(ControlFlow::Continue(())),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

//! Replay: trials on all threads, committed in plan order through a bounded window.

use super::{Commit, Inspected, Step, pass_ended};
use crate::plan::{Plan, PlannedTrial};
use crate::trace::Trace;
use crate::world::Factory;
use rayon::prelude::*;
use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::sync_channel;

/// Trials that one thread does before the window is handed over.
const WINDOW: usize = 16;

/// Replays the trials of `plan` on `jobs` threads, pass by pass where it stops between passes, until `commit` breaks off. While one window is committed the next is being run, and no more
/// than two are in memory.
///
/// # Errors
/// When threads cannot be started, or when `commit` fails: the run ends there.
pub fn replay<T: Send>(
    factory: &Factory,
    plan: &Plan,
    jobs: usize,
    inspect: &(dyn Fn(&Trace) -> T + Sync),
    commit: &mut Commit<'_, T>,
) -> io::Result<()> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .thread_name(|index| format!("trial-{index}"))
        .build()
        .map_err(io::Error::other)?;
    for pass in plan.passes() {
        if whole(factory, plan, pass, (&pool, jobs), inspect, commit)?.is_break() {
            return Ok(());
        }
        if pass_ended(plan, pass, commit)?.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// Replays one pass.
fn whole<T: Send>(
    factory: &Factory,
    plan: &Plan,
    pass: &[PlannedTrial],
    (pool, jobs): (&rayon::ThreadPool, usize),
    inspect: &(dyn Fn(&Trace) -> T + Sync),
    commit: &mut Commit<'_, T>,
) -> io::Result<ControlFlow<()>> {
    std::thread::scope(|scope| {
        let (done, windows) = sync_channel::<Vec<Inspected<T>>>(1);
        scope.spawn(move || {
            for window in pass.chunks(WINDOW * jobs.max(1)) {
                let finished = pool.install(|| {
                    let run = window.par_iter().map(|trial| {
                        let finished = factory.replay(plan, trial);
                        let made = inspect(&finished.trace);
                        Inspected { finished, made }
                    });
                    run.collect()
                });
                if done.send(finished).is_err() {
                    return;
                }
            }
        });
        for inspected in windows.into_iter().flatten() {
            if commit(Step::Trial(Box::new(inspected)))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

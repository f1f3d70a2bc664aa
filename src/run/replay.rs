//! Replay: trials on all threads, committed in plan order through a bounded window.

use super::Inspected;
use crate::plan::Plan;
use crate::trace::Trace;
use crate::world::Factory;
use rayon::prelude::*;
use std::io;
use std::sync::mpsc::sync_channel;

/// Trials that one thread does before the window is handed over.
const WINDOW: usize = 16;

/// Replays every trial of `plan` on `jobs` threads. While one window is committed the next is being run, and no more
/// than two are in memory.
///
/// # Errors
/// When threads cannot be started, or when `commit` fails: the run ends there.
pub fn replay<T: Send>(
    factory: &Factory,
    plan: &Plan,
    jobs: usize,
    inspect: &(dyn Fn(&Trace) -> T + Sync),
    commit: &mut dyn FnMut(Inspected<T>) -> io::Result<()>,
) -> io::Result<()> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .thread_name(|index| format!("trial-{index}"))
        .build()
        .map_err(io::Error::other)?;
    std::thread::scope(|scope| {
        let (done, windows) = sync_channel::<Vec<Inspected<T>>>(1);
        scope.spawn(move || {
            for window in plan.trials.chunks(WINDOW * jobs.max(1)) {
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
        windows.into_iter().flatten().try_for_each(commit)
    })
}

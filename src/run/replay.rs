//! Replay: trials on all threads, committed in plan order through a bounded window.
//!
//! Agents that run elsewhere are real processes and cannot be on all threads: their trials run one after another on
//! tokio, beside the others of their window.

use super::Inspected;
use crate::plan::{Plan, PlannedTrial};
use crate::trace::Trace;
use crate::world::{Doing, Factory, Finished};
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
    let outside = if plan.trials.iter().any(Factory::is_external) {
        Some(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
    } else {
        None
    };
    let runtime = outside.as_ref();
    let inspected = |finished: Finished| {
        let made = inspect(&finished.trace);
        Inspected { finished, made }
    };
    std::thread::scope(|scope| {
        let (done, windows) = sync_channel::<Vec<Inspected<T>>>(1);
        scope.spawn(move || {
            for window in plan.trials.chunks(WINDOW * jobs.max(1)) {
                let mut finished: Vec<Option<Inspected<T>>> = pool.install(|| {
                    let ours = |trial: &PlannedTrial| !Factory::is_external(trial);
                    let run =
                        window.par_iter().map(|trial| ours(trial).then(|| inspected(factory.replay(plan, trial))));
                    run.collect()
                });
                for (place, trial) in finished.iter_mut().zip(window).filter(|(place, _)| place.is_none()) {
                    *place = runtime.map(|runtime| {
                        let turn = async {
                            let _turnstile = factory.turnstile().await;
                            factory.external(plan, trial, Doing::Replay).await
                        };
                        inspected(runtime.block_on(turn))
                    });
                }
                if done.send(finished.into_iter().flatten().collect()).is_err() {
                    return;
                }
            }
        });
        windows.into_iter().flatten().try_for_each(commit)
    })
}

//! Live and recording runs: `jobs` trials at the same time on tokio, committed in plan order.

use super::Inspected;
use crate::plan::{Plan, PlannedTrial};
use crate::trace::Trace;
use crate::world::{Factory, Finished};
use futures_util::StreamExt;
use std::io;
use std::sync::Arc;

/// How a live run is carried out.
#[derive(Debug, Clone, Copy)]
pub struct LiveOptions {
    /// Trials at the same time.
    pub jobs: usize,
    /// Whether each lane is recorded, and the trial then replayed from what was written.
    pub record: bool,
}

/// Runs every trial of `plan` against its providers.
///
/// # Errors
/// When the runtime cannot be started, or when `commit` fails: the run ends there.
pub fn live<T>(
    factory: &Arc<Factory>,
    plan: &Arc<Plan>,
    options: LiveOptions,
    inspect: &dyn Fn(&Trace) -> T,
    commit: &mut dyn FnMut(Inspected<T>) -> io::Result<()>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let trials = futures_util::stream::iter(plan.trials.clone());
        let mut finished = trials
            .map(|trial| start(Arc::clone(factory), Arc::clone(plan), trial, options.record))
            .buffered(options.jobs.max(1));
        while let Some(finished) = finished.next().await {
            let made = inspect(&finished.trace);
            commit(Inspected { finished, made })?;
        }
        Ok(())
    })
}

#[expect(clippy::disallowed_methods, reason = "live trials are tasks of their own, and only run owns tasks")]
async fn start(factory: Arc<Factory>, plan: Arc<Plan>, trial: PlannedTrial, record: bool) -> Finished {
    let (tasks_factory, tasks_plan, tasks_trial) = (Arc::clone(&factory), Arc::clone(&plan), trial.clone());
    let task = tokio::spawn(async move {
        if record {
            tasks_factory.record(&tasks_plan, &tasks_trial).await
        } else {
            tasks_factory.live(&tasks_plan, &tasks_trial).await
        }
    });
    match task.await {
        Ok(finished) => finished,
        Err(failure) => factory.crashed(&plan, &trial, &failure.to_string()),
    }
}

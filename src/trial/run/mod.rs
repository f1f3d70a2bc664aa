//! Runs the trials of a plan and hands over their traces in plan order.
//!
//! Replay spreads trials over rayon's threads, one window at a time; live runs keep `jobs` trials running on tokio.
//! `inspect` runs on the worker. `commit` sees every trial once, in plan order, on the calling thread, so results do
//! not depend on the number of threads. A plan with a stopping design runs pass by pass, and the answer of `commit` at
//! the end of a pass decides whether another begins. Finished trials of a live run survive any end of it ([`Journal`]),
//! and trials that an earlier process finished are not run again ([`KeptTraces`]). Nothing here judges.

mod draws;
pub(crate) mod folder;
mod interrupt;
mod journal;
mod kept;
mod live;
mod replay;

pub(crate) use draws::{EarlierDraws, UNJUDGED};
pub(crate) use interrupt::interrupted;
pub(crate) use journal::{Begun, Journal, JournalError, unfinished};
pub(crate) use kept::KeptTraces;
pub(crate) use live::{LiveOptions, live};
pub(crate) use replay::replay;

use crate::plan::{Plan, PlannedTrial};
use crate::trial::Finished;
use std::io;
use std::ops::ControlFlow;

/// One trial, with the value that `inspect` computed from it.
#[derive(Debug)]
pub(crate) struct Inspected<T> {
    /// Result of the trial.
    pub finished: Finished,
    /// Value that `inspect` computed from it.
    pub inspection: T,
}

/// Steps that a run hands over in sequence.
#[derive(Debug)]
pub(crate) enum Step<T> {
    /// A trial, in plan order.
    Trial(Box<Inspected<T>>),
    /// End of a pass, by its repetition, in a plan with a stopping design: all its trials were handed over.
    PassEnded(u32),
}

/// Receives the steps of a run; the return value says whether it continues.
pub(crate) type Commit<'c, T> = dyn FnMut(Step<T>) -> io::Result<ControlFlow<()>> + 'c;

/// Reports the end of `pass`, if the plan stops between passes.
fn pass_ended<T>(plan: &Plan, pass: &[PlannedTrial], commit: &mut Commit<'_, T>) -> io::Result<ControlFlow<()>> {
    match pass.last().filter(|_| plan.stopping.is_some()) {
        Some(last) => commit(Step::PassEnded(last.lane.repetition)),
        None => Ok(ControlFlow::Continue(())),
    }
}

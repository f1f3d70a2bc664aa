//! Runs the trials of a plan and hands their traces over in plan order.
//!
//! Replay spreads trials over rayon's threads, a window at a time; live runs keep `jobs` trials going on tokio. What
//! is made of a trace beside it (`inspect`) is made on the worker; `commit` sees every trial once, in plan order, on
//! the calling thread, so that nothing depends on the number of threads. A plan with a stopping design is run pass by
//! pass, and what `commit` answers at the end of one says whether another begins. What a live run has finished lasts,
//! whatever ends it ([`Journal`]), and what an earlier process finished is not run again ([`Kept`]). Nothing here judges.

mod draws;
pub(crate) mod folder;
mod interrupt;
mod journal;
mod kept;
mod live;
mod replay;
mod resend;

pub(crate) use draws::{EarlierDraws, UNJUDGED};
pub(crate) use interrupt::interrupted;
pub(crate) use journal::{Begun, Journal, JournalError, unfinished};
pub(crate) use kept::Kept;
pub(crate) use live::{LiveOptions, live};
pub(crate) use replay::replay;
pub(crate) use resend::again;

use crate::plan::{Plan, PlannedTrial};
use crate::trial::Finished;
use std::io;
use std::ops::ControlFlow;

/// One trial with what `inspect` made of its trace.
#[derive(Debug)]
pub(crate) struct Inspected<T> {
    /// What the trial came to.
    pub finished: Finished,
    /// What `inspect` made of its trace.
    pub made: T,
}

/// What a run hands over, one after the other.
#[derive(Debug)]
pub(crate) enum Step<T> {
    /// A trial, in plan order.
    Trial(Box<Inspected<T>>),
    /// The end of a pass, by its repetition, in a plan with a stopping design: all its trials were handed over.
    PassEnded(u32),
}

/// Takes the steps of a run, and says whether it goes on.
pub(crate) type Commit<'c, T> = dyn FnMut(Step<T>) -> io::Result<ControlFlow<()>> + 'c;

/// Tells that `pass` was run to its end, where the plan stops between passes.
fn pass_ended<T>(plan: &Plan, pass: &[PlannedTrial], commit: &mut Commit<'_, T>) -> io::Result<ControlFlow<()>> {
    match pass.last().filter(|_| plan.stopping.is_some()) {
        Some(last) => commit(Step::PassEnded(last.lane.repetition)),
        None => Ok(ControlFlow::Continue(())),
    }
}

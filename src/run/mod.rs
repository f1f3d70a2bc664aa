//! Runs the trials of a plan and hands their traces over in plan order.
//!
//! Replay spreads trials over rayon's threads, a window at a time; live runs keep `jobs` trials going on tokio. What
//! is made of a trace beside it (`inspect`) is made on the worker; `commit` sees every trial once, in plan order, on
//! the calling thread, so that nothing depends on the number of threads. Nothing here judges.

mod again;
pub mod folder;
mod live;
mod replay;

pub use again::again;
pub use live::{LiveOptions, live};
pub use replay::replay;

use crate::world::Finished;

/// One trial with what `inspect` made of its trace.
#[derive(Debug)]
pub struct Inspected<T> {
    /// What the trial came to.
    pub finished: Finished,
    /// What `inspect` made of its trace.
    pub made: T,
}

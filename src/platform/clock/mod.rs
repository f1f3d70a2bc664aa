//! Clocks, and what is needed to run futures on them.
//!
//! No other module reads the machine's time: flows, tools, providers and transports get a [`Clock`]. A live run uses
//! [`RealClock`] on tokio; replay uses one [`VirtualClock`] per trial, which jumps to the next deadline without
//! sleeping.

mod fixed;
mod pausable;
mod real;
mod simulated;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

pub(crate) use fixed::FixedClock;
pub use pausable::PausableClock;
pub use real::RealClock;
pub use simulated::{VirtualClock, block_on};

/// A boxed future that can move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A source of time for one trial.
pub trait Clock: Send + Sync {
    /// Time since this clock was made; never goes backwards.
    fn now(&self) -> Duration;
    /// The wall clock. In replay this is the lane's `recorded_at` plus [`Clock::now`].
    fn wall(&self) -> jiff::Timestamp;
    /// Resolves when `duration` has passed on this clock.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// A [`timeout`] expired before the work was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the time limit of {0:?} ran out")]
pub(crate) struct Elapsed(pub Duration);

/// Runs `work` for at most `limit` on `clock`; if both are ready at once, the work counts as done.
///
/// # Errors
/// [`Elapsed`] if the limit expired first; `work` is then dropped.
pub(crate) async fn timeout<F: Future + Send>(
    clock: &dyn Clock,
    limit: Duration,
    work: F,
) -> Result<F::Output, Elapsed> {
    let mut work = Box::pin(work);
    let mut alarm = clock.sleep(limit);
    std::future::poll_fn(move |context: &mut Context<'_>| {
        if let Poll::Ready(output) = work.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        alarm.as_mut().poll(context).map(|()| Err(Elapsed(limit)))
    })
    .await
}

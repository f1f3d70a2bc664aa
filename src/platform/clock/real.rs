//! The machine's clock, on tokio's timers.

use super::{BoxFuture, Clock};
use std::time::{Duration, Instant};

/// Clock of live and recording runs: monotonic `now`, and the machine's `wall` time.
#[derive(Debug)]
pub struct RealClock {
    started: Instant,
}

impl RealClock {
    /// A clock whose `now` counts from this moment.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    pub fn start() -> Self {
        Self { started: Instant::now() }
    }
}

impl Clock for RealClock {
    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn wall(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that sleeps")]
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

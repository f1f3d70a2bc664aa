//! A clock that never advances and never waits.
//!
//! Used in replays with an external agent: its time cannot be simulated, so nothing waits, and durations come from the
//! recording.

use super::{BoxFuture, Clock};
use std::time::Duration;

/// A clock that is always at zero; every sleep ends at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FixedClock {
    wall: jiff::Timestamp,
}

impl FixedClock {
    /// A clock whose wall time is `wall`.
    pub(crate) fn at(wall: jiff::Timestamp) -> Self {
        Self { wall }
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn wall(&self) -> jiff::Timestamp {
        self.wall
    }

    fn sleep(&self, _duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

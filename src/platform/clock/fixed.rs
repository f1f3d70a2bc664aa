//! A clock that stands still and never keeps anyone waiting.
//!
//! For replays in which somebody else's program takes part: its time cannot be moved, so nothing waits for recorded
//! times, and how long things took is told from the recording.

use super::{BoxFuture, Clock};
use std::time::Duration;

/// Always at zero; every sleep is over at once.
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

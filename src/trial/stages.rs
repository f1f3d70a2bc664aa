//! Durations of local work: noted while recording, slept on the virtual clock in replay.

use crate::cassette::LocalTimes;
use crate::flow::Stages;
use crate::platform::clock::{BoxFuture, Clock};
use std::sync::Arc;
use std::time::Duration;

/// Local stages of one trial.
pub(super) struct RecordedStages {
    times: Arc<LocalTimes>,
    clock: Arc<dyn Clock>,
    replaying: bool,
}

impl RecordedStages {
    /// Notes every duration in `times`.
    pub(super) fn noting(times: Arc<LocalTimes>, clock: Arc<dyn Clock>) -> Self {
        Self { times, clock, replaying: false }
    }

    /// Sleeps the recorded durations of `times` in place of the measured ones.
    pub(super) fn replaying(times: Arc<LocalTimes>, clock: Arc<dyn Clock>) -> Self {
        Self { times, clock, replaying: true }
    }
}

impl Stages for RecordedStages {
    fn spent<'a>(&'a self, stage: &'static str, real: Duration) -> BoxFuture<'a, ()> {
        if self.replaying {
            self.clock.sleep(self.times.take(stage).unwrap_or(Duration::ZERO))
        } else {
            self.times.note(stage, real);
            Box::pin(std::future::ready(()))
        }
    }
}

//! Durations of local stages: measured while recording, replayed in the same order.
//!
//! Replay really searches the knowledge base, but the duration depends on the machine, so virtual time uses the
//! recorded one.

use crate::platform::lock::lock;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

/// Durations of a trial's local stages by name, first in, first out.
#[derive(Debug)]
pub(crate) struct LocalTimes {
    replaying: bool,
    stages: Mutex<BTreeMap<String, VecDeque<Duration>>>,
}

impl LocalTimes {
    /// Collects what is passed to [`LocalTimes::note`].
    pub(crate) fn recording() -> Self {
        Self { replaying: false, stages: Mutex::default() }
    }

    /// Returns recorded durations.
    pub(crate) fn replaying(stages: BTreeMap<String, Vec<Duration>>) -> Self {
        let stages = stages.into_iter().map(|(name, times)| (name, times.into())).collect();
        Self { replaying: true, stages: Mutex::new(stages) }
    }

    /// Recorded duration of the next `stage`, zero if none is left; `None` while recording: the caller measures.
    pub(crate) fn take(&self, stage: &str) -> Option<Duration> {
        self.replaying.then(|| lock(&self.stages).get_mut(stage).and_then(VecDeque::pop_front).unwrap_or_default())
    }

    /// Notes the duration of a `stage`; no effect in replay.
    pub(crate) fn note(&self, stage: &str, took: Duration) {
        if !self.replaying {
            lock(&self.stages).entry(stage.to_owned()).or_default().push_back(took);
        }
    }

    /// Durations collected so far, or those left in replay.
    pub(crate) fn stages(&self) -> BTreeMap<String, Vec<Duration>> {
        lock(&self.stages).iter().map(|(name, times)| (name.clone(), times.iter().copied().collect())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_comes_back_in_order_and_then_zero() {
        let recording = LocalTimes::recording();
        assert_eq!(recording.take("knowledge"), None);
        recording.note("knowledge", Duration::from_micros(3));
        recording.note("knowledge", Duration::from_micros(5));
        let replaying = LocalTimes::replaying(recording.stages());
        replaying.note("knowledge", Duration::from_secs(9));
        let times: Vec<u128> =
            (0..3).filter_map(|_| replaying.take("knowledge")).map(|time| time.as_micros()).collect();
        assert_eq!(times, [3, 5, 0]);
        assert_eq!(replaying.take("keywords"), Some(Duration::ZERO));
    }
}

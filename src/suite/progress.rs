//! How far a run is, for whoever watches it: counted by the threads that carry trials out, read by another one.

use crate::gate::Verdict;
use crate::trial::TrialRunner;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The counters of a run under way.
#[derive(Default)]
pub struct Progress {
    planned: AtomicUsize,
    done: AtomicUsize,
    failed: AtomicUsize,
    dollars: Mutex<Option<f64>>,
    runner: OnceLock<Arc<TrialRunner>>,
}

/// A moment of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reached {
    /// Trials that are planned; 0 while they are being read.
    pub planned: usize,
    /// Trials that ended.
    pub done: usize,
    /// Of these, trials whose verdict is not PASS.
    pub failed: usize,
    /// Trials under way, of a live or recording run.
    pub running: u64,
    /// Requests that were sent.
    pub requests: u64,
    /// US dollars that the trials that ended cost, as far as their prices are known; `None` where none is.
    pub dollars: Option<f64>,
}

impl fmt::Debug for Progress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reached().fmt(formatter)
    }
}

impl Progress {
    /// The moment.
    pub fn reached(&self) -> Reached {
        let budget = self.runner.get().map(|runner| runner.budget());
        Reached {
            planned: self.planned.load(Ordering::Relaxed),
            done: self.done.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            running: budget.map_or(0, crate::transport::Budget::under_way),
            requests: budget.map_or(0, crate::transport::Budget::calls),
            dollars: *self.dollars.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// The run begins with so many trials.
    pub(super) fn begin(&self, planned: usize, runner: &Arc<TrialRunner>) {
        self.planned.store(planned, Ordering::Relaxed);
        let _ = self.runner.set(Arc::clone(runner));
    }

    /// A trial ended.
    pub(super) fn add(&self, verdict: Option<Verdict>, cost: Option<f64>) {
        if verdict != Some(Verdict::Pass) {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(cost) = cost {
            let mut dollars = self.dollars.lock().unwrap_or_else(PoisonError::into_inner);
            *dollars = Some(dollars.unwrap_or_default() + cost);
        }
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_are_counted_with_what_failed_and_what_they_cost() {
        let progress = Progress::default();
        progress.planned.store(3, Ordering::Relaxed);
        progress.add(Some(Verdict::Pass), None);
        assert_eq!(progress.reached().dollars, None);
        progress.add(Some(Verdict::Fail), Some(0.25));
        progress.add(None, Some(0.5));
        let expected = Reached { planned: 3, done: 3, failed: 2, dollars: Some(0.75), ..Reached::default() };
        assert_eq!(progress.reached(), expected);
    }
}

//! Progress of a run: counted by the threads that run trials, read by another thread.

use crate::gate::Verdict;
use crate::platform::lock::lock;
use crate::transport::Budget;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Counters of a run in progress.
///
/// ```
/// use ragcheck::RunOptions;
///
/// let options = RunOptions::default();
/// let progress = options.progress.clone();
/// // While another thread runs the suite with these options:
/// let reached = progress.reached();
/// println!("{} of {} trials", reached.done, reached.planned);
/// ```
#[derive(Default)]
pub struct Progress {
    planned: AtomicUsize,
    done: AtomicUsize,
    failed: AtomicUsize,
    errors: AtomicUsize,
    dollars: Mutex<Option<f64>>,
    budget: OnceLock<Arc<Budget>>,
}

/// Progress of a run at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reached {
    /// Planned trials; 0 while files are being read.
    pub planned: usize,
    /// Trials that ended.
    pub done: usize,
    /// Ended trials whose verdict is not PASS.
    pub failed: usize,
    /// Ended trials whose verdict is ERROR; they count as failed too.
    pub errors: usize,
    /// Trials in progress, in a live or recording run.
    pub running: u64,
    /// Requests sent.
    pub requests: u64,
    /// Cost of the ended trials in US dollars, as far as prices are known; `None` if none is.
    pub dollars: Option<f64>,
}

impl fmt::Debug for Progress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reached().fmt(formatter)
    }
}

impl Progress {
    /// Current progress.
    pub fn reached(&self) -> Reached {
        let budget = self.budget.get();
        Reached {
            planned: self.planned.load(Ordering::Relaxed),
            done: self.done.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            running: budget.map_or(0, |budget| budget.under_way()),
            requests: budget.map_or(0, |budget| budget.calls()),
            dollars: *lock(&self.dollars),
        }
    }

    /// Money spent by the count of `--max-cost`, in US dollars; answers that are still open count with the most that they
    /// may cost.
    pub fn spent(&self) -> f64 {
        self.budget.get().map_or(0.0, |budget| budget.spent())
    }

    /// Starts a run of `planned` trials.
    pub(super) fn begin(&self, planned: usize, budget: &Arc<Budget>) {
        self.planned.store(planned, Ordering::Relaxed);
        let _ = self.budget.set(Arc::clone(budget));
    }

    /// Counts an ended trial.
    pub(super) fn add(&self, verdict: Option<Verdict>, cost: Option<f64>) {
        if verdict != Some(Verdict::Pass) {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        if verdict == Some(Verdict::Error) {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(cost) = cost {
            let mut dollars = lock(&self.dollars);
            *dollars = Some(dollars.unwrap_or_default() + cost);
        }
        self.count();
    }

    /// Counts an ended trial that has no verdict of its own.
    pub(super) fn count(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds trials to the planned ones.
    pub(super) fn more(&self, planned: usize) {
        self.planned.fetch_add(planned, Ordering::Relaxed);
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
        progress.add(Some(Verdict::Error), Some(0.5));
        let expected = Reached { planned: 3, done: 3, failed: 2, errors: 1, dollars: Some(0.75), ..Reached::default() };
        assert_eq!(progress.reached(), expected);
    }
}

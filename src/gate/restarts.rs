//! How often the process of an external agent was started again.

use crate::trace::RestartCause;
use crate::trace::text::count;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Trials after which the process of an external agent was not used any further, so that it was started again, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Restarts {
    /// Trials in a turn of which it ended by itself.
    pub crashed: u64,
    /// Trials in which it was ended because a turn took longer than its limit.
    #[serde(default)]
    pub timed_out: u64,
    /// Trials in ERROR, after which it was ended.
    pub trial_error: u64,
    /// Trials whose scenario declares a new process for each trial: `target.restart: trial`.
    pub declared: u64,
}

impl Restarts {
    /// Counts a trial.
    pub(super) fn add(&mut self, cause: RestartCause) {
        *match cause {
            RestartCause::Crashed => &mut self.crashed,
            RestartCause::TimedOut => &mut self.timed_out,
            RestartCause::TrialError => &mut self.trial_error,
            RestartCause::Declared => &mut self.declared,
        } += 1;
    }

    /// Whether all counts are 0.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// A note on restarts that nobody declared; `None` if there are none.
    pub(super) fn words(&self) -> Option<String> {
        let undeclared = [
            ("crashed in", self.crashed, ""),
            ("was ended in", self.timed_out, " that took too long"),
            ("was ended after", self.trial_error, " in ERROR"),
        ];
        let happened = undeclared.into_iter().filter(|(_, times, _)| *times > 0);
        let cause = |(what, times, why)| format!("{what} {}{why}", count(times, "trial", "trials"));
        let causes: Vec<String> = happened.map(cause).collect();
        (!causes.is_empty()).then(|| {
            let times = count(self.crashed + self.timed_out + self.trial_error, "time", "times");
            format!("the agent's process had to be started again {times}: it {}", causes.join(" and "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_are_told_by_cause_and_declared_ones_are_not() {
        let mut restarts = Restarts::default();
        assert!(restarts.is_empty());
        restarts.add(RestartCause::Declared);
        assert_eq!((restarts.words(), restarts.is_empty()), (None, false));
        restarts.add(RestartCause::Crashed);
        restarts.add(RestartCause::Crashed);
        restarts.add(RestartCause::TrialError);
        let told = "the agent's process had to be started again 3 times: it crashed in 2 trials and was ended after 1 trial \
                    in ERROR";
        assert_eq!(restarts.words().as_deref(), Some(told));
    }
}

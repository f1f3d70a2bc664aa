//! `retry_recovery(by=attempt|episode, accounts=model+tool)`: retries that gave a valid result / retries (SC-007).
//!
//! By attempt, every retry is a unit. By episode, the retries of one cause in one turn are one unit, a success when
//! one of them recovered; the two can differ so much that a verdict turns, so criteria name theirs. Accounts are
//! never mixed silently: those that count are listed.

use super::{Metric, Mode, Observation, TrialView, quote};
use crate::trace::Account;
use std::collections::BTreeMap;

/// What one unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// Each retry.
    Attempt,
    /// The retries of one cause in one turn.
    Episode,
}

/// See the module.
#[derive(Debug)]
pub(super) struct RetryRecovery {
    /// What one unit is.
    pub by: By,
    /// The accounts that count.
    pub accounts: Vec<Account>,
}

impl Metric for RetryRecovery {
    fn units(&self) -> &'static str {
        match self.by {
            By::Attempt => "retries",
            By::Episode => "episodes of retries",
        }
    }

    fn hidden_in(&self, mode: Mode) -> Option<&'static str> {
        (mode == Mode::Imported).then_some("messages do not say which calls were retries")
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        let mut units = Vec::new();
        for turn in view.turns {
            let mut episodes: BTreeMap<(Account, u32), (String, String, bool)> = BTreeMap::new();
            for retry in turn.retries().filter(|retry| self.accounts.contains(&retry.account)) {
                let target = quote(&retry.target, 60);
                let note = format!("not recovered ({} account, {})", retry.account.as_str(), quote(&retry.cause, 60));
                match self.by {
                    By::Attempt => {
                        let unit = format!("{}, retry {} of {target}", turn.label(), retry.attempt);
                        units.push(if retry.recovered {
                            Observation::success(unit)
                        } else {
                            Observation::failure(unit, note)
                        });
                    }
                    By::Episode => {
                        let unit = || format!("{}, retries of {target}", turn.label());
                        let episode =
                            episodes.entry((retry.account, retry.episode)).or_insert_with(|| (unit(), note, false));
                        episode.2 |= retry.recovered;
                    }
                }
            }
            units.extend(episodes.into_values().map(|(unit, note, recovered)| {
                if recovered { Observation::success(unit) } else { Observation::failure(unit, note) }
            }));
        }
        units
    }
}

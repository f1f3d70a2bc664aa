//! `retry_recovery(by=attempt|episode, accounts=model+tool)`: retries that gave a valid result / retries (SC-007).
//!
//! By attempt, every retry is a unit. By episode, the retries of one cause in one turn are one unit, a success when
//! one of them recovered. The two can differ enough to change a verdict, so criteria name one. Accounts are never
//! mixed silently: `accounts` lists those that count.

use super::catalogue::Registered;
use super::{Member, Metric, Observation, TrialView, quote};
use crate::settings::catalogue::{Parameter, Units, Values};
use crate::trace::Account;
use std::collections::BTreeMap;

const BY: Parameter = Parameter::one_of("by", &["attempt", "episode"], "attempt");
const RETRY_ACCOUNTS: Parameter = Parameter { name: "accounts", values: Values::Accounts, default: Some("model+tool") };

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("retry_recovery", |asked| {
    RetryRecovery {
        by: if asked.parameter("by") == "episode" { By::Episode } else { By::Attempt },
        accounts: accounts(asked.parameter("accounts")),
    }
    .metric()
})
.about("Retries that gave a valid result, by attempt or by episode, on the accounts named.")
.takes(&[BY, RETRY_ACCOUNTS])
.counted(Units::Unlimited)];

/// Kind of unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// Each retry.
    Attempt,
    /// The retries of one cause in one turn.
    Episode,
}

#[derive(Debug)]
pub(super) struct RetryRecovery {
    /// Kind of unit.
    pub by: By,
    /// The accounts that count.
    pub accounts: Vec<Account>,
}

fn accounts(joined: &str) -> Vec<Account> {
    let named = |account: &Account| joined.split('+').any(|word| word == account.as_str());
    [Account::Transport, Account::Model, Account::Tool].into_iter().filter(named).collect()
}

impl RetryRecovery {
    fn metric(self) -> Metric {
        let units = match self.by {
            By::Attempt => "retries",
            By::Episode => "episodes of retries",
        };
        Metric { members: &[Member::Retries], ..Metric::new(units, move |view| self.observe(view)) }
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
                        units.push(Observation::unless(unit, (!retry.recovered).then_some(note)));
                    }
                    By::Episode => {
                        let unit = || format!("{}, retries of {target}", turn.label());
                        let episode =
                            episodes.entry((retry.account, retry.episode)).or_insert_with(|| (unit(), note, false));
                        episode.2 |= retry.recovered;
                    }
                }
            }
            let unit = |(unit, note, recovered): (_, _, bool)| Observation::unless(unit, (!recovered).then_some(note));
            units.extend(episodes.into_values().map(unit));
        }
        units
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_account_that_is_named_counts() {
        assert_eq!(accounts("tool+transport"), [Account::Transport, Account::Tool]);
        assert_eq!(accounts("transport+model+tool").len(), 3);
    }
}

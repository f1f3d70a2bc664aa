//! Checks of the values that an external agent generates per run.

use super::check::Checker;
use super::diagnostic::{At, Mistake};
use super::external::{IN_PATH, MintedValue, SHORTEST_VALUE};
use crate::settings::{expression, longest_found};
use std::collections::BTreeMap;

impl Checker<'_> {
    pub(super) fn vars(&mut self, vars: &BTreeMap<String, MintedValue>, at: At<'_>) {
        for (name, minted) in vars {
            let at = at.key(name);
            if !super::names::is_name(name) {
                let mistake = Mistake::at(at, "bad-name", format!("`{name}` cannot be a name")).on_key();
                self.say(mistake.label("use a to z, 0 to 9 and `-`"));
            }
            if minted.at != IN_PATH {
                self.pointer(&minted.at, at.key("at"));
            } else if minted.expression.is_none() {
                let mistake =
                    Mistake::at(at, "missing-key", "`match` is missing: which part of the path is the value?");
                self.say(
                    mistake.help("a group of a regular expression names it: `{at: path, match: '/tickets/([^/?]+)'}`"),
                );
            }
            let written = minted.expression.as_deref();
            if written.and_then(longest_found).is_some_and(|longest| longest < SHORTEST_VALUE) {
                let message =
                    format!("a value of `{name}` is shorter than {SHORTEST_VALUE} characters, and would not be bound");
                let mistake = Mistake::at(at.key("match"), "short-value", &message);
                self.say(
                    mistake
                        .help("let the group take the words beside the value, too: `(day \\d{3})` for `day (\\d{3})`"),
                );
            }
            if let Some(Err(why)) = written.map(expression) {
                let words = why.to_string();
                let last = words.lines().last().unwrap_or_default().trim();
                let mistake = Mistake::at(at.key("match"), "bad-regex", "not a regular expression");
                self.say(mistake.label(last.strip_prefix("error: ").unwrap_or(last)));
            }
        }
    }
}

//! States and transitions as data, and the check of a trace against them.
//!
//! A flow declares its [`Machine`] beside its code; `plan.json` stores it, so that evaluation needs no flow.

use crate::trace::{Trace, What};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
#[cfg(test)]
use std::collections::BTreeSet;

/// A flow's states and transitions, for one turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// The state in which every turn begins.
    pub initial: String,
    /// The states in which a turn may end.
    pub terminal: Vec<String>,
    /// The allowed transitions, in report order.
    pub transitions: Vec<Transition>,
}

/// One allowed transition.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Transition {
    /// State before it.
    pub from: String,
    /// Event that causes it.
    pub on: String,
    /// State after it.
    pub to: String,
}

/// A move in a trace that the machine does not allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Departure {
    /// Conversation, from 0.
    pub conversation: u32,
    /// Turn, from 0.
    pub turn: u32,
    /// Description.
    pub what: String,
}

impl Machine {
    /// Builds a machine from `(from, on, to)` rows.
    pub fn of(initial: &str, terminal: &[&str], rows: &[(&str, &str, &str)]) -> Self {
        let transitions = rows
            .iter()
            .map(|(from, on, to)| Transition { from: (*from).into(), on: (*on).into(), to: (*to).into() })
            .collect();
        Self { initial: initial.into(), terminal: terminal.iter().map(|state| (*state).into()).collect(), transitions }
    }

    /// State and event pairs with more than one next state: empty for a deterministic machine.
    #[cfg(test)]
    pub fn ambiguous(&self) -> Vec<(String, String)> {
        let mut targets: BTreeMap<(&String, &String), BTreeSet<&String>> = BTreeMap::new();
        for row in &self.transitions {
            targets.entry((&row.from, &row.on)).or_default().insert(&row.to);
        }
        let several = targets.into_iter().filter(|(_, to)| to.len() > 1);
        several.map(|((from, on), _)| (from.clone(), on.clone())).collect()
    }

    /// All departures of `trace` from this machine; empty if it conforms. Turns of concurrent conversations are
    /// distinguished by their ordinals.
    pub fn departures(&self, trace: &Trace) -> Vec<Departure> {
        let mut at: BTreeMap<(u32, u32), String> = BTreeMap::new();
        let mut found = Vec::new();
        for event in &trace.events {
            let key = (event.conversation, event.turn);
            let depart = |what: String| Departure { conversation: key.0, turn: key.1, what };
            match &event.what {
                What::TurnStarted { .. } => {
                    at.insert(key, self.initial.clone());
                }
                What::Moved(moved) => {
                    match at.get(&key) {
                        None => found.push(depart(format!("moved to `{}` before the turn began", moved.to))),
                        Some(state) if *state != moved.from => {
                            found.push(depart(format!("moved from `{}` while in `{state}`", moved.from)));
                        }
                        Some(_) => {}
                    }
                    let allowed = self
                        .transitions
                        .iter()
                        .any(|row| row.from == moved.from && row.on == moved.on && row.to == moved.to);
                    if !allowed {
                        let arrow = format!("`{}` -{}-> `{}`", moved.from, moved.on, moved.to);
                        found.push(depart(format!("{arrow} is not declared")));
                    }
                    at.insert(key, moved.to.clone());
                }
                What::TurnEnded(_) => match at.get(&key) {
                    Some(state) if self.terminal.contains(state) => {}
                    Some(state) => found.push(depart(format!("the turn ended in `{state}`, which is not terminal"))),
                    None => found.push(depart("a turn ended that never began".into())),
                },
                _ => {}
            }
        }
        found
    }
}

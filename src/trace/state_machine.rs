//! States and transitions as data, and the checker that holds a trace against them.
//!
//! A flow declares its [`Machine`] beside its code; `plan.json` carries it, so that judging needs no flow.

use crate::trace::{Trace, What};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
#[cfg(test)]
use std::collections::BTreeSet;

/// A flow's states and transitions, for one turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The state in which every turn begins.
    pub initial: String,
    /// The states in which a turn may end.
    pub terminal: Vec<String>,
    /// What may happen, in the order of the report.
    pub transitions: Vec<Transition>,
}

/// One allowed transition.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Transition {
    /// State that is left.
    pub from: String,
    /// What causes it.
    pub on: String,
    /// State that is entered.
    pub to: String,
}

/// Something that a trace did and its machine does not allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Departure {
    /// Conversation, from 0.
    pub conversation: u32,
    /// Turn, from 0.
    pub turn: u32,
    /// What, in words.
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

    /// States and events that lead to more than one next state: none in a machine that is a function.
    #[cfg(test)]
    pub fn ambiguous(&self) -> Vec<(String, String)> {
        let mut targets: BTreeMap<(&String, &String), BTreeSet<&String>> = BTreeMap::new();
        for row in &self.transitions {
            targets.entry((&row.from, &row.on)).or_default().insert(&row.to);
        }
        let several = targets.into_iter().filter(|(_, to)| to.len() > 1);
        several.map(|((from, on), _)| (from.clone(), on.clone())).collect()
    }

    /// Every way in which `trace` leaves this machine; empty when it keeps to it. Turns of conversations that run
    /// side by side are told apart by their ordinals.
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

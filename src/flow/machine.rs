//! How a flow declares its states: rows of (states that are left, event, state that is entered).
//!
//! A machine is a function: one state and one event give one next state. Where two targets would share an event, the
//! flow gives them two events. A test holds every flow's machine to it.

use crate::trace::state_machine::{Machine, Transition};

/// A machine under construction.
#[derive(Debug, Clone)]
pub(in crate::flow) struct MachineRows {
    machine: Machine,
}

impl MachineRows {
    /// A machine whose turns begin in `initial` and end in one of `terminal`.
    pub(in crate::flow) fn new(initial: &str, terminal: &[&str]) -> Self {
        Self { machine: Machine::of(initial, terminal, &[]) }
    }

    /// `on` leads from each of `from` to `to`.
    #[must_use]
    pub(in crate::flow) fn on<'s>(mut self, on: &str, from: impl IntoIterator<Item = &'s str>, to: &str) -> Self {
        let row = |from: &str| Transition { from: from.to_owned(), on: on.to_owned(), to: to.to_owned() };
        self.machine.transitions.extend(from.into_iter().map(row));
        self
    }

    /// `on` changes none of `states`.
    #[must_use]
    pub(in crate::flow) fn stay<'s>(mut self, on: &str, states: impl IntoIterator<Item = &'s str>) -> Self {
        let row = |state: &str| Transition { from: state.to_owned(), on: on.to_owned(), to: state.to_owned() };
        self.machine.transitions.extend(states.into_iter().map(row));
        self
    }

    /// The machine.
    pub(in crate::flow) fn build(self) -> Machine {
        self.machine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_in_which_they_were_declared() {
        let machine = MachineRows::new("a", &["end"]).on("go", ["a", "b"], "b").stay("wait", ["a"]).build();
        let rows: Vec<_> = machine.transitions.iter().map(|row| (&*row.from, &*row.on, &*row.to)).collect();
        assert_eq!(rows, [("a", "go", "b"), ("b", "go", "b"), ("a", "wait", "a")]);
        assert_eq!((machine.initial.as_str(), machine.terminal.len()), ("a", 1));
    }

    #[test]
    fn an_event_with_two_targets_is_seen() {
        let machine = MachineRows::new("a", &["end"]).on("go", ["a"], "b").on("go", ["a"], "end").build();
        assert_eq!(machine.ambiguous(), [("a".to_owned(), "go".to_owned())]);
        assert!(MachineRows::new("a", &["end"]).on("go", ["a", "b"], "end").build().ambiguous().is_empty());
    }
}

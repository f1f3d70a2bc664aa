//! Declares a flow's states: a table of rows (event, source states, target state).
//!
//! A table is a function: one state and one event give one next state. If an event would have two targets, the flow
//! declares two events. A test checks every flow's table.

use crate::trace::state_machine::{Machine, Transition};

/// A name in a state machine: a state or an event.
pub(in crate::flow) trait Word: std::fmt::Debug + Copy + Eq + Send + Sync + 'static {
    /// Name in traces and `plan.json`.
    fn name(self) -> &'static str;
}

/// Declares the states or events of a flow with their names in traces.
macro_rules! words {
    ($(#[$meta:meta])* enum $name:ident { $($(#[$doc:meta])* $word:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(in crate::flow) enum $name { $($(#[$doc])* $word),+ }

        impl $crate::flow::machine::Word for $name {
            fn name(self) -> &'static str {
                match self { $(Self::$word => $text),+ }
            }
        }
    };
}
pub(in crate::flow) use words;

/// The states and transitions of one turn.
#[derive(Debug)]
pub(in crate::flow) struct Table<S: 'static, E: 'static> {
    /// The state in which every turn begins.
    pub(in crate::flow) begins: S,
    /// The states in which a turn may end.
    pub(in crate::flow) ends: &'static [S],
    /// The event of each interruption.
    pub(in crate::flow) interruptions: Interruptions<E>,
    /// Transitions, in the order of the report.
    pub(in crate::flow) rows: &'static [EventRow<S, E>],
}

/// The events of a flow that the frame raises.
#[derive(Debug)]
pub(in crate::flow) struct Interruptions<E> {
    /// The model's service failed after all attempts.
    pub(in crate::flow) model_unavailable: E,
    /// The bound on completions was reached.
    pub(in crate::flow) model_calls_exhausted: E,
    /// The turn's time ran out.
    pub(in crate::flow) timeout: E,
}

/// One event, the states in which it may happen, and its target.
#[derive(Debug)]
pub(in crate::flow) struct EventRow<S: 'static, E> {
    on: E,
    from: &'static [S],
    to: Option<S>,
}

/// Declares that `event` leads from each of `from` to `to`.
pub(in crate::flow) const fn on<S: Word, E: Word>(event: E, from: &'static [S], to: S) -> EventRow<S, E> {
    EventRow { on: event, from, to: Some(to) }
}

/// Declares that `event` leaves each of `states` unchanged.
pub(in crate::flow) const fn stay<S: Word, E: Word>(event: E, states: &'static [S]) -> EventRow<S, E> {
    EventRow { on: event, from: states, to: None }
}

impl<S: Word, E: Word> Table<S, E> {
    /// Target of `event` in `state`; `None` if it cannot happen there.
    pub(in crate::flow) fn next(&self, state: S, event: E) -> Option<S> {
        let row = self.rows.iter().find(|row| row.on == event && row.from.contains(&state))?;
        Some(row.to.unwrap_or(state))
    }

    /// The table as plain data, for `plan.json`.
    pub(in crate::flow) fn machine(&self) -> Machine {
        let transitions = self.rows.iter().flat_map(|row| {
            row.from.iter().map(|from| Transition {
                from: from.name().to_owned(),
                on: row.on.name().to_owned(),
                to: row.to.unwrap_or(*from).name().to_owned(),
            })
        });
        let ends: Vec<&str> = self.ends.iter().map(|end| end.name()).collect();
        Machine { transitions: transitions.collect(), ..Machine::of(self.begins.name(), &ends, &[]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    words! { enum State { First = "a", Second = "b", End = "end" } }
    words! { enum Event { Go = "go", Wait = "wait" } }
    use State::{End, First, Second};

    const WAIT: Interruptions<Event> =
        Interruptions { model_unavailable: Event::Wait, model_calls_exhausted: Event::Wait, timeout: Event::Wait };
    const BOTH: &[State] = &[First, Second];

    #[test]
    fn rows_stand_in_the_order_in_which_they_were_declared_and_lead_where_they_say() {
        static TABLE: Table<State, Event> = Table {
            begins: First,
            ends: &[End],
            interruptions: WAIT,
            rows: &[on(Event::Go, BOTH, Second), stay(Event::Wait, BOTH)],
        };
        let machine = TABLE.machine();
        let rows: Vec<_> = machine.transitions.iter().map(|row| (&*row.from, &*row.on, &*row.to)).collect();
        assert_eq!(rows, [("a", "go", "b"), ("b", "go", "b"), ("a", "wait", "a"), ("b", "wait", "b")]);
        assert_eq!((machine.initial.as_str(), machine.terminal), ("a", vec!["end".to_owned()]));
        assert_eq!((TABLE.next(First, Event::Go), TABLE.next(Second, Event::Wait)), (Some(Second), Some(Second)));
        assert_eq!(TABLE.next(End, Event::Go), None, "nothing is declared of it");
    }

    #[test]
    fn an_event_with_two_targets_is_seen() {
        static TABLE: Table<State, Event> = Table {
            begins: First,
            ends: &[End],
            interruptions: WAIT,
            rows: &[on(Event::Go, BOTH, Second), on(Event::Go, &[First], End)],
        };
        assert_eq!(TABLE.machine().ambiguous(), [("a".to_owned(), "go".to_owned())]);
    }
}

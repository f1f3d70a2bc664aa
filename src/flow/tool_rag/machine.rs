//! The states of one turn, and what may lead from one to another.
//!
//! `knowledge_due` and `knowledge_reminded` last until the knowledge base was searched. `judging` is free: search more,
//! go outside, or respond. An external answer makes keywords due. `response_reminded` means that the first response
//! attempt is used up.

use crate::state_machine::Machine;

pub(super) const KNOWLEDGE_DUE: &str = "knowledge_due";
pub(super) const KNOWLEDGE_REMINDED: &str = "knowledge_reminded";
pub(super) const JUDGING: &str = "judging";
pub(super) const KEYWORDS_DUE: &str = "keywords_due";
pub(super) const KEYWORDS_REMINDED: &str = "keywords_reminded";
pub(super) const RESPONSE_REMINDED: &str = "response_reminded";
pub(super) const ANSWERED: &str = "answered";
pub(super) const FAILED: &str = "failed";

const BEFORE: [&str; 2] = [KNOWLEDGE_DUE, KNOWLEDGE_REMINDED];
const AFTER: [&str; 4] = [JUDGING, KEYWORDS_DUE, KEYWORDS_REMINDED, RESPONSE_REMINDED];

/// The machine of `tool-rag`.
pub(super) fn machine() -> Machine {
    let mut rows: Vec<(&str, &str, &str)> = Vec::new();
    for search in ["knowledge_found", "knowledge_empty", "knowledge_failed"] {
        rows.extend(BEFORE.map(|state| (state, search, JUDGING)));
        rows.extend(AFTER.map(|state| (state, search, state)));
    }
    rows.extend([
        (KNOWLEDGE_DUE, "knowledge_missing", KNOWLEDGE_REMINDED),
        (KNOWLEDGE_REMINDED, "knowledge_missing", FAILED),
        (KNOWLEDGE_DUE, "parameters_refused", FAILED),
        (KNOWLEDGE_REMINDED, "parameters_refused", FAILED),
        (JUDGING, "external_answered", KEYWORDS_DUE),
        (RESPONSE_REMINDED, "external_answered", KEYWORDS_DUE),
        (KEYWORDS_DUE, "external_answered", KEYWORDS_DUE),
        (KEYWORDS_REMINDED, "external_answered", KEYWORDS_REMINDED),
        // After the keywords were given up, further answers make none due.
        (JUDGING, "external_answered", JUDGING),
        (RESPONSE_REMINDED, "external_answered", RESPONSE_REMINDED),
        (KEYWORDS_DUE, "keywords_missing", KEYWORDS_REMINDED),
    ]);
    for done in ["keywords_indexed", "keywords_given_up"] {
        for state in [KEYWORDS_DUE, KEYWORDS_REMINDED] {
            rows.extend([(state, done, JUDGING), (state, done, RESPONSE_REMINDED)]);
        }
    }
    // Keywords for one of several answers, or more keywords for an answer that has some.
    rows.extend(AFTER.map(|state| (state, "keywords_indexed", state)));
    rows.extend(AFTER.map(|state| (state, "external_failed", state)));
    rows.extend(AFTER.map(|state| (state, "keywords_failed", state)));
    for refused in ["call_rejected", "out_of_order"] {
        rows.extend(BEFORE.iter().chain(&AFTER).map(|state| (*state, refused, *state)));
    }
    rows.extend([
        (JUDGING, "response_missing", RESPONSE_REMINDED),
        (KEYWORDS_DUE, "response_missing", KEYWORDS_DUE),
        (KEYWORDS_REMINDED, "response_missing", KEYWORDS_REMINDED),
        (RESPONSE_REMINDED, "response_missing", FAILED),
        (KEYWORDS_DUE, "response_missing", FAILED),
        (KEYWORDS_REMINDED, "response_missing", FAILED),
        (JUDGING, "answered", ANSWERED),
        (RESPONSE_REMINDED, "answered", ANSWERED),
        (KEYWORDS_REMINDED, "answered", ANSWERED),
    ]);
    for end in ["model_calls_exhausted", "model_unavailable", "timeout"] {
        rows.extend(BEFORE.iter().chain(&AFTER).map(|state| (*state, end, FAILED)));
    }
    Machine::of(KNOWLEDGE_DUE, &[ANSWERED, FAILED], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_transition_is_declared_twice_and_terminal_states_are_left_by_none() {
        let machine = machine();
        let distinct: BTreeSet<_> = machine.transitions.iter().collect();
        assert_eq!(distinct.len(), machine.transitions.len());
        assert!(machine.transitions.iter().all(|row| !machine.terminal.contains(&row.from)));
    }

    #[test]
    fn every_state_can_be_reached_and_left() {
        let machine = machine();
        for state in BEFORE.iter().chain(&AFTER) {
            let reached = machine.transitions.iter().any(|row| row.to == *state && row.from != *state);
            assert!(reached || *state == machine.initial, "{state}");
            assert!(machine.transitions.iter().any(|row| row.from == *state && row.to != *state), "{state}");
        }
    }
}

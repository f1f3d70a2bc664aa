//! The states of one turn and their transitions: retrieve, answer, done. There are no retries.

use crate::flow::machine::{Interruptions, Table, on, stay, words};
use State::{Answered, Answering, Failed, Retrieving};

words! {
    /// States of a turn.
    #[derive(Default)]
    enum State {
        #[default]
        Retrieving = "retrieving", Answering = "answering", Answered = "answered", Failed = "failed",
    }
}

words! {
    /// Events of a turn.
    enum Event {
        UnknownTenant = "unknown_tenant", DocumentsFound = "documents_found", NothingFound = "nothing_found",
        CallRejected = "call_rejected", ExtraCall = "extra_call", NoCall = "no_call", QueryRefused = "query_refused",
        RetrievalFailed = "retrieval_failed", Answered = "answered", Refused = "refused",
        CallInAnswer = "call_in_answer", NoAnswer = "no_answer", ModelCallsExhausted = "model_calls_exhausted",
        ModelUnavailable = "model_unavailable", Timeout = "timeout",
    }
}

const ASKING: &[State] = &[Retrieving, Answering];

/// The machine of `two-stage`.
pub(super) static MACHINE: Table<State, Event> = Table {
    begins: Retrieving,
    ends: &[Answered, Failed],
    interruptions: Interruptions {
        model_unavailable: Event::ModelUnavailable,
        model_calls_exhausted: Event::ModelCallsExhausted,
        timeout: Event::Timeout,
    },
    rows: &[
        on(Event::UnknownTenant, &[Retrieving], Failed),
        on(Event::DocumentsFound, &[Retrieving], Answering),
        on(Event::NothingFound, &[Retrieving], Answering),
        stay(Event::CallRejected, &[Retrieving]),
        stay(Event::ExtraCall, &[Answering]),
        on(Event::NoCall, &[Retrieving], Failed),
        on(Event::QueryRefused, &[Retrieving], Failed),
        on(Event::RetrievalFailed, &[Retrieving], Failed),
        on(Event::Answered, &[Answering], Answered),
        on(Event::Refused, &[Answering], Answered),
        on(Event::CallInAnswer, &[Answering], Failed),
        on(Event::NoAnswer, &[Answering], Failed),
        on(Event::ModelCallsExhausted, &[Answering], Failed),
        on(Event::ModelUnavailable, ASKING, Failed),
        on(Event::Timeout, ASKING, Failed),
    ],
};

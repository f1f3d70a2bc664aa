//! The states of one turn: the service is asked, then the model answers with the result. Either step is requested once
//! more if it is missing.

use crate::flow::machine::{Interruptions, Table, on, stay, words};
use State::{Answered, Answering, AnsweringReminded, Asking, AskingReminded, Failed};

words! {
    /// States of a turn.
    #[derive(Default)]
    enum State {
        #[default]
        Asking = "asking", AskingReminded = "asking_reminded", Answering = "answering",
        AnsweringReminded = "answering_reminded", Answered = "answered", Failed = "failed",
    }
}

words! {
    /// Events of a turn.
    enum Event {
        CallRejected = "call_rejected", AnswerFound = "answer_found", NoAnswerFound = "no_answer_found",
        ServiceFailed = "service_failed", CallMissing = "call_missing", NoCall = "no_call",
        ArtifactMissing = "artifact_missing", NoArtifact = "no_artifact", AnswerMissing = "answer_missing",
        NoAnswer = "no_answer", Answered = "answered", Refused = "refused",
        ModelCallsExhausted = "model_calls_exhausted", ModelUnavailable = "model_unavailable", Timeout = "timeout",
    }
}

/// States before the service was asked.
const BEFORE: &[State] = &[Asking, AskingReminded];
/// States after it was asked.
const AFTER: &[State] = &[Answering, AnsweringReminded];
const ALL: &[State] = &[Asking, AskingReminded, Answering, AnsweringReminded];

/// The machine of `managed-rag`.
pub(super) static MACHINE: Table<State, Event> = Table {
    begins: Asking,
    ends: &[Answered, Failed],
    interruptions: Interruptions {
        model_unavailable: Event::ModelUnavailable,
        model_calls_exhausted: Event::ModelCallsExhausted,
        timeout: Event::Timeout,
    },
    rows: &[
        stay(Event::CallRejected, ALL),
        on(Event::AnswerFound, BEFORE, Answering),
        stay(Event::AnswerFound, AFTER),
        on(Event::NoAnswerFound, BEFORE, Answering),
        stay(Event::NoAnswerFound, AFTER),
        on(Event::ServiceFailed, BEFORE, Answering),
        stay(Event::ServiceFailed, AFTER),
        on(Event::CallMissing, &[Asking], AskingReminded),
        on(Event::NoCall, &[AskingReminded], Failed),
        on(Event::ArtifactMissing, &[Answering], AnsweringReminded),
        on(Event::NoArtifact, &[AnsweringReminded], Failed),
        on(Event::AnswerMissing, &[Answering], AnsweringReminded),
        on(Event::NoAnswer, &[AnsweringReminded], Failed),
        on(Event::Answered, AFTER, Answered),
        on(Event::Refused, AFTER, Answered),
        on(Event::ModelCallsExhausted, ALL, Failed),
        on(Event::ModelUnavailable, ALL, Failed),
        on(Event::Timeout, ALL, Failed),
    ],
};

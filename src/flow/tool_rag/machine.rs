//! The states of one turn and their transitions.
//!
//! `knowledge_due` and `knowledge_reminded` last until the knowledge base was searched. In `judging`, the model may
//! search again, ask the external service, or respond. An external answer makes keywords due. `response_reminded` means
//! that the first response attempt is used up; while keywords are due it waits, and the event that ends the wait
//! determines its target.

use crate::flow::machine::{Interruptions, Table, on, stay, words};
use State::{
    Answered, Failed, Judging, KeywordsDue, KeywordsReminded, KnowledgeDue, KnowledgeReminded, ResponseReminded,
};

words! {
    /// States of a turn.
    #[derive(Default)]
    enum State {
        #[default]
        KnowledgeDue = "knowledge_due", KnowledgeReminded = "knowledge_reminded", Judging = "judging",
        KeywordsDue = "keywords_due", KeywordsReminded = "keywords_reminded", ResponseReminded = "response_reminded",
        Answered = "answered", Failed = "failed",
    }
}

words! {
    /// Events of a turn.
    enum Event {
        KnowledgeFound = "knowledge_found", KnowledgeEmpty = "knowledge_empty", KnowledgeFailed = "knowledge_failed",
        KnowledgeMissing = "knowledge_missing", ParametersRefused = "parameters_refused",
        ExternalAnswered = "external_answered",
        ExternalAnsweredWithoutKeywords = "external_answered_without_keywords", ExternalFailed = "external_failed",
        KeywordsIndexed = "keywords_indexed", KeywordsIndexedResponseReminded = "keywords_indexed_response_reminded",
        KeywordsAdded = "keywords_added", KeywordsFailed = "keywords_failed", KeywordsMissing = "keywords_missing",
        KeywordsGivenUp = "keywords_given_up",
        KeywordsGivenUpResponseReminded = "keywords_given_up_response_reminded", CallRejected = "call_rejected",
        OutOfOrder = "out_of_order", ResponseMissing = "response_missing",
        ResponseMissingAgain = "response_missing_again", Answered = "answered",
        ModelCallsExhausted = "model_calls_exhausted", ModelUnavailable = "model_unavailable", Timeout = "timeout",
    }
}

const BEFORE: &[State] = &[KnowledgeDue, KnowledgeReminded];
const AFTER: &[State] = &[Judging, KeywordsDue, KeywordsReminded, ResponseReminded];
const ALL: &[State] = &[KnowledgeDue, KnowledgeReminded, Judging, KeywordsDue, KeywordsReminded, ResponseReminded];
const WAITING: &[State] = &[KeywordsDue, KeywordsReminded];
const FREE: &[State] = &[Judging, ResponseReminded];

/// The machine of `tool-rag`.
pub(super) static MACHINE: Table<State, Event> = Table {
    begins: KnowledgeDue,
    ends: &[Answered, Failed],
    interruptions: Interruptions {
        model_unavailable: Event::ModelUnavailable,
        model_calls_exhausted: Event::ModelCallsExhausted,
        timeout: Event::Timeout,
    },
    rows: &[
        on(Event::KnowledgeFound, BEFORE, Judging),
        stay(Event::KnowledgeFound, AFTER),
        on(Event::KnowledgeEmpty, BEFORE, Judging),
        stay(Event::KnowledgeEmpty, AFTER),
        on(Event::KnowledgeFailed, BEFORE, Judging),
        stay(Event::KnowledgeFailed, AFTER),
        on(Event::KnowledgeMissing, &[KnowledgeDue], KnowledgeReminded),
        on(Event::KnowledgeMissing, &[KnowledgeReminded], Failed),
        on(Event::ParametersRefused, BEFORE, Failed),
        on(Event::ExternalAnswered, FREE, KeywordsDue),
        stay(Event::ExternalAnswered, WAITING),
        // After keywords were given up, further answers do not make any due.
        stay(Event::ExternalAnsweredWithoutKeywords, FREE),
        stay(Event::ExternalFailed, AFTER),
        on(Event::KeywordsIndexed, WAITING, Judging),
        on(Event::KeywordsIndexedResponseReminded, WAITING, ResponseReminded),
        // Keywords for one of several answers, or more keywords for the same answer.
        stay(Event::KeywordsAdded, AFTER),
        stay(Event::KeywordsFailed, AFTER),
        on(Event::KeywordsMissing, &[KeywordsDue], KeywordsReminded),
        on(Event::KeywordsGivenUp, WAITING, Judging),
        on(Event::KeywordsGivenUpResponseReminded, WAITING, ResponseReminded),
        stay(Event::CallRejected, ALL),
        stay(Event::OutOfOrder, ALL),
        on(Event::ResponseMissing, &[Judging], ResponseReminded),
        stay(Event::ResponseMissing, WAITING),
        on(Event::ResponseMissingAgain, &[KeywordsDue, KeywordsReminded, ResponseReminded], Failed),
        on(Event::Answered, &[Judging, ResponseReminded, KeywordsReminded], Answered),
        on(Event::ModelCallsExhausted, ALL, Failed),
        on(Event::ModelUnavailable, ALL, Failed),
        on(Event::Timeout, ALL, Failed),
    ],
};

//! The states of one turn, and what may lead from one to another.
//!
//! `knowledge_due` and `knowledge_reminded` last until the knowledge base was searched. `judging` is free: search more,
//! go outside, or respond. An external answer makes keywords due. `response_reminded` means that the first response
//! attempt is used up; while keywords are due it waits, and the event that ends the waiting says where it leads.

use crate::flow::machine::MachineRows;
use crate::trace::state_machine::Machine;

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
const WAITING: [&str; 2] = [KEYWORDS_DUE, KEYWORDS_REMINDED];
const FREE: [&str; 2] = [JUDGING, RESPONSE_REMINDED];

/// The machine of `tool-rag`.
pub(super) fn machine() -> Machine {
    let all = || BEFORE.into_iter().chain(AFTER);
    MachineRows::new(KNOWLEDGE_DUE, &[ANSWERED, FAILED])
        .on("knowledge_found", BEFORE, JUDGING)
        .stay("knowledge_found", AFTER)
        .on("knowledge_empty", BEFORE, JUDGING)
        .stay("knowledge_empty", AFTER)
        .on("knowledge_failed", BEFORE, JUDGING)
        .stay("knowledge_failed", AFTER)
        .on("knowledge_missing", [KNOWLEDGE_DUE], KNOWLEDGE_REMINDED)
        .on("knowledge_missing", [KNOWLEDGE_REMINDED], FAILED)
        .on("parameters_refused", BEFORE, FAILED)
        .on("external_answered", FREE, KEYWORDS_DUE)
        .stay("external_answered", WAITING)
        // After the keywords were given up, further answers make none due.
        .stay("external_answered_without_keywords", FREE)
        .stay("external_failed", AFTER)
        .on("keywords_indexed", WAITING, JUDGING)
        .on("keywords_indexed_response_reminded", WAITING, RESPONSE_REMINDED)
        // Keywords for one of several answers, or more keywords for an answer that has some.
        .stay("keywords_added", AFTER)
        .stay("keywords_failed", AFTER)
        .on("keywords_missing", [KEYWORDS_DUE], KEYWORDS_REMINDED)
        .on("keywords_given_up", WAITING, JUDGING)
        .on("keywords_given_up_response_reminded", WAITING, RESPONSE_REMINDED)
        .stay("call_rejected", all())
        .stay("out_of_order", all())
        .on("response_missing", [JUDGING], RESPONSE_REMINDED)
        .stay("response_missing", WAITING)
        .on("response_missing_again", WAITING.into_iter().chain([RESPONSE_REMINDED]), FAILED)
        .on("answered", [JUDGING, RESPONSE_REMINDED, KEYWORDS_REMINDED], ANSWERED)
        .on("model_calls_exhausted", all(), FAILED)
        .on("model_unavailable", all(), FAILED)
        .on("timeout", all(), FAILED)
        .build()
}

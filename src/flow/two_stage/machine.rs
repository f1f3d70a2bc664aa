//! The states of one turn, and what may lead from one to another: retrieve, answer, done. Nothing is tried twice.

use crate::flow::machine::MachineRows;
use crate::trace::state_machine::Machine;

pub(super) const RETRIEVING: &str = "retrieving";
pub(super) const ANSWERING: &str = "answering";
pub(super) const ANSWERED: &str = "answered";
pub(super) const FAILED: &str = "failed";

/// The machine of `two-stage`.
pub(super) fn machine() -> Machine {
    MachineRows::new(RETRIEVING, &[ANSWERED, FAILED])
        .on("unknown_tenant", [RETRIEVING], FAILED)
        .on("documents_found", [RETRIEVING], ANSWERING)
        .on("nothing_found", [RETRIEVING], ANSWERING)
        .stay("call_rejected", [RETRIEVING])
        .stay("extra_call", [ANSWERING])
        .on("no_call", [RETRIEVING], FAILED)
        .on("query_refused", [RETRIEVING], FAILED)
        .on("retrieval_failed", [RETRIEVING], FAILED)
        .on("answered", [ANSWERING], ANSWERED)
        .on("refused", [ANSWERING], ANSWERED)
        .on("call_in_answer", [ANSWERING], FAILED)
        .on("no_answer", [ANSWERING], FAILED)
        .on("model_calls_exhausted", [ANSWERING], FAILED)
        .on("model_unavailable", [RETRIEVING, ANSWERING], FAILED)
        .on("timeout", [RETRIEVING, ANSWERING], FAILED)
        .build()
}

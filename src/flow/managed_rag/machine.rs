//! The states of one turn: the service is asked, then the model answers with what came; each is asked for once more where
//! it is missing.

use crate::flow::machine::MachineRows;
use crate::trace::state_machine::Machine;

pub(super) const ASKING: &str = "asking";
pub(super) const ASKING_REMINDED: &str = "asking_reminded";
pub(super) const ANSWERING: &str = "answering";
pub(super) const ANSWERING_REMINDED: &str = "answering_reminded";
pub(super) const ANSWERED: &str = "answered";
pub(super) const FAILED: &str = "failed";

/// The machine of `managed-rag`.
pub(super) fn machine() -> Machine {
    let (asking, answering) = ([ASKING, ASKING_REMINDED], [ANSWERING, ANSWERING_REMINDED]);
    let all = || asking.into_iter().chain(answering);
    let mut machine = MachineRows::new(ASKING, &[ANSWERED, FAILED]).stay("call_rejected", all());
    for on in ["answer_found", "no_answer_found", "service_failed"] {
        machine = machine.on(on, asking, ANSWERING).stay(on, answering);
    }
    machine
        .on("call_missing", [ASKING], ASKING_REMINDED)
        .on("no_call", [ASKING_REMINDED], FAILED)
        .on("artifact_missing", [ANSWERING], ANSWERING_REMINDED)
        .on("no_artifact", [ANSWERING_REMINDED], FAILED)
        .on("answer_missing", [ANSWERING], ANSWERING_REMINDED)
        .on("no_answer", [ANSWERING_REMINDED], FAILED)
        .on("answered", answering, ANSWERED)
        .on("refused", answering, ANSWERED)
        .on("model_calls_exhausted", all(), FAILED)
        .on("model_unavailable", all(), FAILED)
        .on("timeout", all(), FAILED)
        .build()
}

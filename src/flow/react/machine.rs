//! The states of one turn, and what may lead from one to another: think and act, observe, reflect where something went
//! wrong, answer. `policy` decides which event happens; its tests hold it to these rows.

use crate::flow::machine::MachineRows;
use crate::trace::state_machine::Machine;

pub(super) const THINKING: &str = "thinking";
pub(super) const OBSERVING: &str = "observing";
pub(super) const REFLECTING: &str = "reflecting";
pub(super) const ANSWERING: &str = "answering";
pub(super) const ANSWERED: &str = "answered";
pub(super) const FAILED: &str = "failed";

/// The states in which the model is asked.
const ASKING: [&str; 4] = [THINKING, OBSERVING, REFLECTING, ANSWERING];

/// The machine of `react`.
pub(super) fn machine() -> Machine {
    MachineRows::new(THINKING, &[ANSWERED, FAILED])
        // One step: the model thinks and calls the search.
        .on("results_found", [THINKING], OBSERVING)
        .on("nothing_found", [THINKING], REFLECTING)
        .on("call_refused", [THINKING], REFLECTING)
        .on("no_call", [THINKING], REFLECTING)
        .on("search_failed", [THINKING], REFLECTING)
        .on("ready", [THINKING], ANSWERING)
        // What came of it.
        .on("goal_met", [OBSERVING], ANSWERING)
        .on("incomplete", [OBSERVING], THINKING)
        .on("irrelevant", [OBSERVING], REFLECTING)
        // What to do about a failure.
        .on("retry", [REFLECTING], THINKING)
        .on("change_approach", [REFLECTING], THINKING)
        .on("own_knowledge", [REFLECTING], ANSWERING)
        .on("retries_used_up", [REFLECTING], ANSWERING)
        .on("steps_used_up", [OBSERVING, REFLECTING], ANSWERING)
        // The end.
        .on("answered", [ANSWERING], ANSWERED)
        .on("no_answer", [ANSWERING], FAILED)
        .stay("shorter_context", [THINKING, OBSERVING, ANSWERING])
        .on("no_analysis", [REFLECTING], REFLECTING)
        .on("partial_result", ASKING, ANSWERED)
        .on("model_unavailable", [THINKING, OBSERVING, ANSWERING], FAILED)
        .on("budget_used_up", ASKING, FAILED)
        .on("timeout", ASKING, FAILED)
        .build()
}

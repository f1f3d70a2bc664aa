//! `first_attempt_rate(TOOL)`: queries whose first attempt at the final step is a valid call of the tool / queries
//! (SC-002). The tool is `generate_response` unless named.
//!
//! Free text, another tool, invalid arguments and a refusal use the first attempt up: the controller's feedback about
//! the tool, or a call of it that was rejected or failed, tells so. A call out of order belongs to an earlier step
//! and uses nothing up unless the controller booked it on this tool. HTTP retries use nothing up. A query that never
//! got so far has no valid first attempt: a failure.

use super::{Metric, Mode, Observation, TrialView, TurnView, quote};
use crate::trace::{ToolOutcome, What};

/// See the module.
#[derive(Debug)]
pub(super) struct FirstAttemptRate {
    /// The tool.
    pub tool: String,
}

impl FirstAttemptRate {
    fn judge(&self, turn: &TurnView<'_>) -> Result<(), String> {
        for what in &turn.events {
            match what {
                What::FedBack(told) if told.tool == self.tool => {
                    return Err(format!("{} needed feedback: {}", self.tool, quote(&told.cause, 60)));
                }
                What::ToolCalled(call) if call.tool == self.tool => match &call.outcome {
                    ToolOutcome::Ok(_) => return Ok(()),
                    ToolOutcome::OutOfOrder(_) => {}
                    ToolOutcome::Rejected(rejection) => {
                        return Err(format!("first call rejected: {}", quote(&rejection.reason, 100)));
                    }
                    ToolOutcome::Failed { message, .. } => {
                        return Err(format!("first call failed: {}", quote(message, 100)));
                    }
                },
                _ => {}
            }
        }
        Err(format!("{} was never accepted: {}", self.tool, turn.ending()))
    }
}

impl Metric for FirstAttemptRate {
    fn units(&self) -> &'static str {
        "queries"
    }

    fn hidden_in(&self, mode: Mode) -> Option<&'static str> {
        (mode == Mode::Imported).then_some("messages do not tell an agent's own feedback from the user's words")
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        view.by_turn(|turn| self.judge(turn))
    }
}

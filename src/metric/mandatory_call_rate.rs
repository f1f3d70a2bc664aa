//! `mandatory_call_rate(TOOL, at=after_retry|first)`: queries in which the tool was executed before the answer /
//! queries (SC-001).
//!
//! A call that ran and failed counts: the model did its part. A rejected call, or one out of order, did not run. With
//! `at=first`, the controller must not have had to ask for it.

use super::turns::executed;
use super::{Metric, Mode, Observation, TrialView, TurnView};
use crate::trace::{ToolOutcome, ToolResult, What};

/// Which attempts count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// Only without feedback.
    First,
    /// After the controller's feedback too.
    AfterRetry,
}

/// See the module.
#[derive(Debug)]
pub(super) struct MandatoryCallRate {
    /// The tool.
    pub tool: String,
    /// Which attempts count.
    pub at: At,
}

impl MandatoryCallRate {
    fn judge(&self, turn: &TurnView<'_>) -> Result<(), String> {
        let mut asked = false;
        for what in &turn.events {
            match what {
                What::FedBack(told) if told.tool == self.tool => asked = true,
                What::ToolCalled(call) if call.tool == self.tool && executed(call) => {
                    return if asked && self.at == At::First {
                        Err(format!("{} was called only after feedback", self.tool))
                    } else {
                        Ok(())
                    };
                }
                What::ToolCalled(call) if matches!(call.outcome, ToolOutcome::Ok(ToolResult::Responded)) => {
                    return Err(format!("answered without {}", self.tool));
                }
                _ => {}
            }
        }
        Err(format!("{} was never executed: {}", self.tool, turn.ending()))
    }
}

impl Metric for MandatoryCallRate {
    fn units(&self) -> &'static str {
        "queries"
    }

    fn hidden_in(&self, mode: Mode) -> Option<&'static str> {
        let hidden = mode == Mode::Imported && self.at == At::First;
        hidden.then_some("messages do not tell an agent's own feedback from the user's words")
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        view.by_turn(|turn| self.judge(turn))
    }
}

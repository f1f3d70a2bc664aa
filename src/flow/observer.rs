//! Who may watch while a turn runs: a chat service that shows its user what the agent does.
//!
//! An observer learns of everything that is recorded, in the order of the record, and of what is only under way, which
//! the record shows when it has ended. It changes nothing: without one a turn goes the same way.

use crate::trace::Event;
use serde_json::Value;

/// What an observer is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Status<'a> {
    /// The model is being asked.
    ModelAsked {
        /// The conversation's ordinal.
        conversation: u32,
        /// The turn's ordinal.
        turn: u32,
        /// The completion's ordinal within the trial.
        call: u32,
    },
    /// A tool is being called.
    ToolStarted {
        /// The conversation's ordinal.
        conversation: u32,
        /// The turn's ordinal.
        turn: u32,
        /// The tool's name as the model wrote it.
        tool: &'a str,
        /// The arguments as the trace will show them.
        arguments: &'a Value,
    },
    /// Something was recorded.
    Recorded(&'a Event),
}

/// Someone who watches.
pub trait Observer: Send + Sync {
    /// Is told; returns at once, as the turn waits for it.
    fn notice(&self, status: &Status<'_>);
}

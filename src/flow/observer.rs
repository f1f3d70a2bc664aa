//! Observes a running turn: for a chat service that shows its user what the agent does.
//!
//! An observer receives every recorded event, in order, and the start of calls, which the record shows only when they
//! end. It changes nothing: a turn runs the same way without one.

use crate::trace::Event;
use serde_json::Value;

/// A notification to an observer.
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
    /// An event was recorded.
    Recorded(&'a Event),
}

/// Receives notifications about a running turn.
pub trait Observer: Send + Sync {
    /// Called synchronously; must not block.
    fn notice(&self, status: &Status<'_>);
}

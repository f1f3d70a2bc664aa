//! Agents: what they are given, and one folder for each.
//!
//! A [`Flow`] turns one thing that the user says into an answer or an error. It acts through an [`AgentContext`], which
//! records and decides nothing, under [`Settings`], in a [`ConversationState`] that carries what earlier turns left. The prompts
//! are files in `prompts/`. Nothing here knows whether traffic is live or replayed.

mod context;
mod conversation;
pub mod external;
pub mod prompts;
mod retries;
mod settings;
pub mod tool_rag;
pub mod tools;

pub use context::{AgentContext, Stages};
pub use conversation::{ConversationState, digest};
pub use prompts::{PromptError, Prompts};
pub use settings::Settings;

use crate::clock::BoxFuture;
use crate::state_machine::Machine;
use crate::transport::Miss;

/// Why a trial cannot go on: its verdict is ERROR, nothing is said about the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Abort {
    /// Replay has no such exchange.
    Miss(Box<Miss>),
}

/// An agent.
pub trait Flow: Send + Sync {
    /// The name that scenarios use.
    fn name(&self) -> &'static str;
    /// States and transitions of one turn.
    fn machine(&self) -> Machine;
    /// Runs one turn of `talk` from the user's words to its end; everything goes into the environment's events.
    ///
    /// # Errors
    /// [`Abort`] when the trial cannot go on. An agent that fails has ended its turn, which is no error here.
    fn turn<'a>(
        &'a self,
        env: &'a AgentContext,
        conversation: &'a mut ConversationState,
        query: &'a str,
    ) -> BoxFuture<'a, Result<(), Abort>>;
}

/// The flow of that name.
pub fn by_name(name: &str) -> Option<&'static dyn Flow> {
    (name == tool_rag::NAME).then_some(&tool_rag::ToolRag as &'static dyn Flow)
}

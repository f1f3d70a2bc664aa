//! Conversations of other agents, in the messages of the OpenAI chat format, as traces that can be judged.
//!
//! A file is JSON or JSON lines: a list of messages (one conversation), or a list of conversations, each a list of
//! messages or an object with `messages` (`history` and `traj` are read too) and, where known, `task_id`, `trial`,
//! `reward` (0 to 1), `model`, `tools` (names or definitions of those on offer), and `mapping` (see there: names used in
//! place of OpenAI's roles, and what closing words are). Other members are ignored, and listed. A task becomes a case,
//! its conversations the repetitions of that case. A conversation that contradicts itself becomes a trial in ERROR, so
//! that none is dropped in silence. What messages do not show (times, hits, states) is made up nowhere: metrics that
//! need it measure nothing and say so. Nothing here judges.

mod conversation;
mod distinct;
mod error;
mod mapping;
mod planning;
mod record;

pub use error::{ConversationError, Kind, MappingError, MessageError, WrongMember};

use crate::plan::Plan;
use crate::scenario::{Criteria, Scenario};
use crate::trace::Trace;
use std::collections::BTreeMap;

/// A file of conversations, ready to be judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// One scenario named after the file, a case a task, a trial a conversation.
    pub plan: Plan,
    /// A trace a trial, in the order of the plan.
    pub traces: Vec<Trace>,
    /// Members of conversations that were ignored, with the number of conversations that have them.
    pub ignored: BTreeMap<String, usize>,
}

/// Why a file cannot be imported at all.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It is not JSON, nor JSON lines.
    #[error("not JSON and not JSON lines: {0}")]
    Json(#[from] serde_json::Error),
    /// Its mapping is not understood.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// There is no conversation in it.
    #[error("there is no conversation in it: write a list of messages, or a list of objects with `messages`")]
    Empty,
    /// Two conversations claim to be the same trial.
    #[error(
        "conversation {ordinal}: the task {task} has another conversation of trial {trial}; each counts once: remove \
         one of them, or `trial` from all"
    )]
    Twice {
        /// Which conversation, from 1.
        ordinal: usize,
        /// Its task.
        task: String,
        /// Its trial, as written.
        trial: u32,
    },
}

/// Reads the conversations in `text`, the content of the file `name`; `criteria` replace the ones made for any
/// conversation.
///
/// # Errors
/// When the file as a whole cannot be used; see [`ImportError`].
pub fn messages(name: &str, text: &[u8], criteria: Option<Criteria>) -> Result<Imported, ImportError> {
    planning::imported(name, record::records(text)?, criteria, None)
}

/// The same, of the agent that `scenario` is about: its tools have the roles that the scenario says, its gates hold, and a
/// task that is named like a case must meet what that case expects.
///
/// # Errors
/// When the file as a whole cannot be used; see [`ImportError`].
pub fn messages_of(
    scenario: &Scenario,
    name: &str,
    text: &[u8],
    criteria: Option<Criteria>,
) -> Result<Imported, ImportError> {
    planning::imported(name, record::records(text)?, criteria, Some(scenario))
}

//! Imports conversations of other agents as traces; `shape` defines which message formats are read.
//!
//! A file is JSON or JSON lines: a list of messages (one conversation), or a list of conversations. A conversation is a
//! list of messages or an object with `messages` (also `history`, `traj`, `contents`, `items`, or `input` with
//! `output`). Optional members are `task_id`, `trial`, `reward` (0 to 1), `model`, `tools` (names or definitions of the
//! offered tools), and `mapping` (other names of OpenAI's roles, and the meaning of closing messages). Other members
//! are ignored, and listed. A task becomes a case, and its conversations become repetitions of the case; without a
//! task, conversations with equal inputs do. A duplicate (same messages, and same id or times) is dropped, and listed.
//! A contradictory conversation becomes a trial in ERROR, so that none is dropped silently. Times, hits and states are
//! never made up: metrics that need them measure nothing and say so. Nothing here judges.

mod conversation;
mod copies;
mod distinct;
mod error;
mod mapping;
mod planning;
mod record;
mod shape;
mod spans;

pub use error::{ConversationError, Kind, MappingError, MessageError, WrongMember};

use crate::plan::Plan;
use crate::scenario::{Criteria, Scenario};
use crate::trace::Trace;
use crate::trace::spans::SpansError;
use std::collections::BTreeMap;

/// An imported file, ready to be judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// One scenario named after the file: one case per task, one trial per conversation.
    pub plan: Plan,
    /// One trace per trial, in plan order.
    pub traces: Vec<Trace>,
    /// Ignored members of conversations, with the number of conversations that have them.
    pub ignored: BTreeMap<String, usize>,
    /// Dropped duplicates: position in the file, from 1, and position of the original.
    pub copies: Vec<(usize, usize)>,
    /// How many traces were read, and why others were not, for formats that have traces.
    pub summary: Option<String>,
}

impl Imported {
    /// Adds the project's criteria; they replace default criteria with the same id.
    pub fn by_project(&mut self, project: Criteria, not_measured_ok: Vec<String>) {
        let usual = std::mem::take(&mut self.plan.criteria.criteria);
        let mut criteria = project.criteria;
        for row in usual {
            if !criteria.iter().any(|own| own.id == row.id) {
                criteria.push(row);
            }
        }
        self.plan.criteria = Criteria { criteria, ..project };
        self.plan.not_measured_ok = not_measured_ok;
    }
}

/// Why a file cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It is neither JSON nor JSON lines.
    #[error("not JSON and not JSON lines: {0}")]
    Json(#[from] serde_json::Error),
    /// It holds no spans.
    #[error(transparent)]
    Spans(#[from] SpansError),
    /// Its spans say nothing about an agent.
    #[error("no span says what an agent did, by the GenAI conventions or OpenInference; {0}")]
    NoAgent(String),
    /// Its mapping is invalid.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// It has no conversation.
    #[error("there is no conversation in it: write a list of messages, or a list of objects with `messages`")]
    Empty,
    /// Two conversations have the same task and trial.
    #[error(
        "conversation {ordinal}: the task {task} has another conversation of trial {trial}; each counts once: remove \
         one of them, or `trial` from all"
    )]
    Twice {
        /// Position of the conversation, from 1.
        ordinal: usize,
        /// Name of the task.
        task: String,
        /// Trial number in the file.
        trial: u32,
    },
}

/// Imports the conversations in `text`, the content of the file `name`; `criteria` replace the default ones.
///
/// # Errors
/// If the file as a whole cannot be used; see [`ImportError`].
pub fn messages(name: &str, text: &[u8], criteria: Option<Criteria>) -> Result<Imported, ImportError> {
    planning::imported(name, record::records(text)?, criteria, None)
}

/// Like [`messages`], for the agent of `scenario`: its tool roles and gates apply, and a task with the name of a case
/// must meet the expectations of that case.
///
/// # Errors
/// If the file as a whole cannot be used; see [`ImportError`].
pub fn messages_of(
    scenario: &Scenario,
    name: &str,
    text: &[u8],
    criteria: Option<Criteria>,
) -> Result<Imported, ImportError> {
    planning::imported(name, record::records(text)?, criteria, Some(scenario))
}

/// Imports the traces in `bytes`, an export of OpenTelemetry spans; as [`messages`] or [`messages_of`].
///
/// # Errors
/// If the file as a whole cannot be used; see [`ImportError`].
pub(super) fn traces(
    scenario: Option<&Scenario>,
    name: &str,
    bytes: &[u8],
    criteria: Option<Criteria>,
) -> Result<Imported, ImportError> {
    let (records, summary) = spans::records(bytes)?;
    if records.is_empty() {
        return Err(ImportError::NoAgent(summary));
    }
    let imported = planning::imported(name, records, criteria, scenario)?;
    Ok(Imported { summary: Some(summary), ..imported })
}

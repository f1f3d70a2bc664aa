//! State of `react`: for the session, and for the running turn, from which a restarted process continues.

use super::NAME;
use super::budget::Usage;
use super::policy::{Approach, Progress};
use super::style::{NoteKind, Style};
use crate::flow::FlowState;
use crate::provider::chat::Message;
use serde::{Deserialize, Serialize};

/// Maximum number of reflections and of notes in one session; the oldest are removed.
const MOST_KEPT: usize = 16;

/// The session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::flow) struct Memory {
    /// Lessons from failures, oldest first.
    pub(super) reflections: Vec<Reflection>,
    /// Decisions and preferences of the user, oldest first.
    pub(super) notes: Vec<Note>,
    /// Tokens used by the session.
    pub(super) usage: Usage,
    /// Services that were unavailable when last tried.
    pub(super) unavailable: Vec<String>,
    /// The running turn.
    pub(super) under_way: Option<TurnState>,
    /// The last turn that ended.
    pub(super) last: Option<Report>,
}

impl FlowState for Memory {
    const FLOW: &'static str = NAME;
    const VERSION: u32 = 1;
}

impl Memory {
    /// Adds a reflection, unless it is already there.
    pub(super) fn reflect(&mut self, reflection: Reflection) {
        if !self.reflections.contains(&reflection) {
            self.reflections.push(reflection);
        }
        let over = self.reflections.len().saturating_sub(MOST_KEPT);
        self.reflections.drain(..over);
    }

    /// Adds a note on what the user said, unless it is already there; returns whether it is new.
    pub(super) fn note(&mut self, note: Note) -> bool {
        let new = !self.notes.contains(&note);
        if new {
            self.notes.push(note);
        }
        let over = self.notes.len().saturating_sub(MOST_KEPT);
        self.notes.drain(..over);
        new
    }
}

/// Lesson from a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reflection {
    /// Kind of the failure.
    pub(super) trigger: String,
    /// Approach that failed.
    pub(super) approach: String,
    /// Analysis and lesson.
    pub(super) text: String,
}

/// A statement of the user that stays valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Note {
    pub(super) kind: NoteKind,
    pub(super) text: String,
}

/// One retrieved passage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) text: String,
}

/// Record of a finished step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Finding {
    pub(super) step: u32,
    pub(super) approach: Approach,
    pub(super) summary: String,
    /// Whether it added a source.
    pub(super) useful: bool,
}

/// The model's assessment of results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Assessment {
    pub(super) observation: String,
    /// Numbers of the relevant passages, from 1.
    pub(super) relevant: Vec<u64>,
    pub(super) goal_met: bool,
    pub(super) summary: String,
}

/// The running turn; its tools read and change it too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::flow) struct TurnState {
    pub(super) query: String,
    pub(super) progress: Progress,
    /// Time and number of completions so far.
    pub(super) elapsed_us: u64,
    pub(super) model_calls: u32,
    /// Number of call ids that the flow assigned.
    pub(super) minted: u32,
    pub(super) style: Style,
    /// Queries searched in this turn.
    pub(super) queries: Vec<String>,
    /// The call of this step and its result, as sent to the model.
    pub(super) exchange: Vec<Message>,
    /// Passages found by the search of this step.
    pub(super) found: Vec<Document>,
    pub(super) assessment: Option<Assessment>,
    pub(super) analysis: Option<String>,
    /// Description of the last failure.
    pub(super) trouble: String,
    /// Outcomes of the finished steps.
    pub(super) findings: Vec<Finding>,
    /// Sources graded relevant, in the order in which they were found.
    pub(super) relevant: Vec<Document>,
    /// Notices shown with the answer: subject and text.
    pub(super) notices: Vec<(String, String)>,
    /// The answer's text.
    pub(super) answer: String,
    /// Tokens used by this turn.
    pub(super) usage: Usage,
    /// Upper limit of its tokens, estimated before it began.
    pub(super) estimated: u64,
    /// Its tokens as usual for such a question, estimated before it began.
    #[serde(default)]
    pub(super) expected: u64,
    /// Description of what ended it early.
    pub(super) broken_off: String,
    /// How often the session was stored in this turn.
    #[serde(default)]
    pub(super) stored: u32,
    /// Number of messages in the history when compaction failed: it is retried only after there are more.
    #[serde(default)]
    pub(super) incompressible: Option<usize>,
}

/// Report on a finished turn, for display.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Report {
    pub(super) steps: u32,
    pub(super) retries: u32,
    pub(super) approaches: Vec<Approach>,
    pub(super) style: Style,
    pub(super) notices: Vec<String>,
    /// Steps that added a source / steps taken.
    pub(super) efficiency: f64,
    pub(super) tokens: Usage,
    pub(super) session_tokens: Usage,
    pub(super) estimated_tokens: u64,
    #[serde(default)]
    pub(super) expected_tokens: u64,
    pub(super) unavailable: Vec<String>,
    /// How often the session was stored: once at the beginning of the turn and once for each change.
    #[serde(default)]
    pub(super) stored: u32,
}

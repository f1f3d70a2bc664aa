//! What `react` keeps: for the session, and for the turn under way, from which a killed process goes on.

use super::NAME;
use super::budget::Usage;
use super::policy::{Approach, Progress};
use super::style::{NoteKind, Style};
use crate::flow::FlowState;
use crate::provider::chat::Message;
use serde::{Deserialize, Serialize};

/// Reflections and notes of one session; the oldest make room.
const MOST_KEPT: usize = 16;

/// The session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::flow) struct Memory {
    /// What was learned from failures, oldest first.
    pub(super) reflections: Vec<Reflection>,
    /// What the user decided or wishes, oldest first.
    pub(super) notes: Vec<Note>,
    /// Tokens of the session.
    pub(super) usage: Usage,
    /// What was unavailable when it was last tried.
    pub(super) unavailable: Vec<String>,
    /// The turn that is under way.
    pub(super) under_way: Option<TurnState>,
    /// The last turn that ended.
    pub(super) last: Option<Report>,
}

impl FlowState for Memory {
    const FLOW: &'static str = NAME;
    const VERSION: u32 = 1;
}

impl Memory {
    /// Keeps a reflection, once.
    pub(super) fn reflect(&mut self, reflection: Reflection) {
        if !self.reflections.contains(&reflection) {
            self.reflections.push(reflection);
        }
        let over = self.reflections.len().saturating_sub(MOST_KEPT);
        self.reflections.drain(..over);
    }

    /// Keeps what the user said, once; whether it is new.
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

/// What was learned from a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reflection {
    /// The failure's kind.
    pub(super) trigger: String,
    /// The approach that failed.
    pub(super) approach: String,
    /// The analysis and the lesson.
    pub(super) text: String,
}

/// A sentence of the user that stays true.
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

/// What stays of a finished step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Finding {
    pub(super) step: u32,
    pub(super) approach: Approach,
    pub(super) summary: String,
    /// Whether it added a source.
    pub(super) useful: bool,
}

/// What the model says of results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Assessment {
    pub(super) observation: String,
    /// Numbers of the relevant passages, from 1.
    pub(super) relevant: Vec<u64>,
    pub(super) goal_met: bool,
    pub(super) summary: String,
}

/// The turn under way: what its tools see and change too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::flow) struct TurnState {
    pub(super) query: String,
    pub(super) progress: Progress,
    /// Time and completions so far.
    pub(super) elapsed_us: u64,
    pub(super) model_calls: u32,
    /// Ids of calls that the flow gave itself.
    pub(super) minted: u32,
    pub(super) style: Style,
    /// Queries that were searched in this turn.
    pub(super) queries: Vec<String>,
    /// The call of this step and its result, as the model is shown them.
    pub(super) exchange: Vec<Message>,
    /// What the search of this step gave.
    pub(super) found: Vec<Document>,
    pub(super) assessment: Option<Assessment>,
    pub(super) analysis: Option<String>,
    /// What failed last, in words.
    pub(super) trouble: String,
    /// Outcomes of the finished steps.
    pub(super) findings: Vec<Finding>,
    /// Sources that were graded relevant, in the order in which they were found.
    pub(super) relevant: Vec<Document>,
    /// What the user is told beside the answer: subject and words.
    pub(super) notices: Vec<(String, String)>,
    /// The answer's text.
    pub(super) answer: String,
    /// Tokens of this turn.
    pub(super) usage: Usage,
    /// The most that it may cost, as estimated before it began.
    pub(super) estimated: u64,
    /// What broke it off, in words.
    pub(super) broken_off: String,
    /// How often the session was stored in this turn.
    #[serde(default)]
    pub(super) stored: u32,
    /// Messages of the history that could not be made shorter: it is not tried again before there are more.
    #[serde(default)]
    pub(super) incompressible: Option<usize>,
}

/// A finished turn, for whoever shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Report {
    pub(super) steps: u32,
    pub(super) retries: u32,
    pub(super) approaches: Vec<Approach>,
    pub(super) style: Style,
    pub(super) notices: Vec<String>,
    /// Optimal steps / steps taken.
    pub(super) efficiency: f64,
    pub(super) tokens: Usage,
    pub(super) session_tokens: Usage,
    pub(super) estimated_tokens: u64,
    /// What is unavailable.
    pub(super) unavailable: Vec<String>,
    /// How often the session was stored: at the turn's beginning and at each of its changes, and no more.
    #[serde(default)]
    pub(super) stored: u32,
}

//! State of `two-stage`: the documents of the last turn, for display with the answer, and the state of one turn.

use super::NAME;
use super::policy::Progress;
use crate::flow::FlowState;
use crate::knowledge::KnowledgeBase;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The documents of the last turn, in the order of their numbers; only that turn may cite them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::flow) struct Memory {
    pub(super) documents: Vec<Document>,
}

/// One retrieved passage, as shown to the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    /// The passage's id.
    pub(super) id: String,
    /// The name of its file.
    pub(super) filename: String,
    pub(super) title: String,
    pub(super) text: String,
    /// Its relevance by rank, 0 to 1.
    pub(super) score: f64,
}

impl FlowState for Memory {
    const FLOW: &'static str = NAME;
    const VERSION: u32 = 1;
}

/// State of one turn; the tool reads and changes it.
#[derive(Default)]
pub(in crate::flow) struct TurnState {
    pub(super) progress: Progress,
    /// The tenant's knowledge base, under its declared name.
    pub(super) base: Option<(String, Arc<dyn KnowledgeBase>)>,
}

//! What `two-stage` keeps: the documents of the last turn, for whoever shows the answer, and what it knows of one turn.

use super::NAME;
use super::policy::Progress;
use crate::flow::FlowState;
use crate::knowledge::KnowledgeBase;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The documents of the last turn, in the order of their numbers; they are citable in that turn alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::flow) struct Memory {
    pub(super) documents: Vec<Document>,
}

/// One retrieved passage, as the user may see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    /// The passage's id.
    pub(super) id: String,
    /// The name of its file.
    pub(super) filename: String,
    /// Its title.
    pub(super) title: String,
    /// Its text.
    pub(super) text: String,
    /// Its relevance by rank, 0 to 1.
    pub(super) score: f64,
}

impl FlowState for Memory {
    const FLOW: &'static str = NAME;
    const VERSION: u32 = 1;
}

/// What is known of one turn; the tool sees and changes it.
#[derive(Default)]
pub(in crate::flow) struct TurnState {
    pub(super) progress: Progress,
    /// The tenant's knowledge base, with the name that it is declared by.
    pub(super) base: Option<(String, Arc<dyn KnowledgeBase>)>,
}

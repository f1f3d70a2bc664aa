//! What `tool-rag` keeps: from turn to turn, and within one.

use super::NAME;
use super::policy::Progress;
use crate::flow::FlowState;
use crate::knowledge::ExternalRecord;
use crate::trace::Answer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What a conversation was shown: it stays citable, and keywords may be kept for it, in later turns too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::flow) struct Memory {
    /// External answers received so far, in order; ids are `result-<n>`.
    pub(super) received: Vec<ExternalRecord>,
    /// What may be cited.
    pub(super) citable: Citable,
}

/// What may be cited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Citable {
    /// Whether the knowledge base gave a result in this conversation.
    pub(super) searched: bool,
    /// Whether the external service gave an answer in this conversation; a learned entry is
    /// internal by its id, and external by the URLs that its answer cites.
    pub(super) asked: bool,
    /// Ids of all hits that this conversation was shown.
    pub(super) internal: BTreeSet<String>,
    /// URLs of all citations that this conversation received, those of learned entries included.
    pub(super) external: BTreeSet<String>,
}

impl FlowState for Memory {
    const FLOW: &'static str = NAME;
    const VERSION: u32 = 1;
}

/// What is known of one turn; the tools see and change it.
#[derive(Debug, Default)]
pub(in crate::flow) struct TurnState {
    pub(super) progress: Progress,
    /// The accepted response.
    pub(super) answer: Option<Answer>,
}

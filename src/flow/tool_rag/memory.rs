//! State of `tool-rag`, across turns and within one.

use super::NAME;
use super::policy::Progress;
use crate::flow::FlowState;
use crate::knowledge::ExternalRecord;
use crate::trace::Answer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Results shown in a conversation: later turns may still cite them and store keywords for them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::flow) struct Memory {
    /// External answers received so far, in order; ids are `result-<n>`.
    pub(super) received: Vec<ExternalRecord>,
    /// Sources that may be cited.
    pub(super) citable: Citable,
}

/// Sources that may be cited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Citable {
    /// Whether the knowledge base returned a result in this conversation.
    pub(super) searched: bool,
    /// Whether the external service answered in this conversation. A learned entry is internal by its id, and external
    /// by the URLs that its answer cites.
    pub(super) asked: bool,
    /// Ids of all hits shown in this conversation.
    pub(super) internal: BTreeSet<String>,
    /// URLs of all citations shown in this conversation, including those of learned entries.
    pub(super) external: BTreeSet<String>,
}

impl FlowState for Memory {
    const FLOW: &'static str = NAME;
    const VERSION: u32 = 1;
}

/// State of one turn; the tools read and change it.
#[derive(Debug, Default)]
pub(in crate::flow) struct TurnState {
    pub(super) progress: Progress,
    /// The accepted response.
    pub(super) answer: Option<Answer>,
}

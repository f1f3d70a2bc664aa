//! State of `managed-rag`: all versions of a conversation's artifacts with their sources, and the state of one turn.

use super::NAME;
use super::policy::Progress;
use crate::flow::FlowState;
use crate::trace::{Artifact, ManagedSource};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The artifacts of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::flow) struct Memory {
    /// All artifacts, oldest first: a new version does not replace an old one.
    pub(super) artifacts: Vec<KeptArtifact>,
    /// Artifacts that the last answer embeds, by name and version.
    pub(super) answered: Vec<(String, u32)>,
}

/// One artifact with the sources of its numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeptArtifact {
    pub(super) artifact: Artifact,
    pub(super) sources: Vec<ManagedSource>,
}

impl KeptArtifact {
    /// Name and version.
    pub(super) fn name(&self) -> (String, u32) {
        (self.artifact.filename.clone(), self.artifact.version)
    }
}

impl Memory {
    /// All artifacts of the conversation, oldest first.
    pub(super) fn all(&self) -> Vec<Artifact> {
        self.artifacts.iter().map(|kept| kept.artifact.clone()).collect()
    }

    /// The artifact of that name and version.
    pub(super) fn named(&self, name: &(String, u32)) -> Option<&Artifact> {
        self.artifacts.iter().find(|kept| kept.name() == *name).map(|kept| &kept.artifact)
    }
}

impl FlowState for Memory {
    const FLOW: &'static str = NAME;
    const VERSION: u32 = 1;
}

/// State of one turn; the tool reads and changes it.
#[derive(Default)]
pub(in crate::flow) struct TurnState {
    pub(super) progress: Progress,
    /// Data about the user that is passed to tools.
    pub(super) context: Value,
    /// Artifacts created in this turn, by name and version.
    pub(super) made: Vec<(String, u32)>,
}

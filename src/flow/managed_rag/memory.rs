//! What `managed-rag` keeps: the artifacts of a conversation with their sources, every version of them; and what the tool
//! of one turn sees and changes.

use super::NAME;
use crate::flow::FlowState;
use crate::trace::{Artifact, ManagedSource};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The artifacts of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Memory {
    /// All of them, oldest first: no version takes the place of another.
    pub(super) artifacts: Vec<KeptArtifact>,
    /// Those that the last answer embeds, by name and version.
    pub(super) answered: Vec<(String, u32)>,
}

/// One artifact with the sources that its numbers stand for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeptArtifact {
    pub(super) artifact: Artifact,
    pub(super) sources: Vec<ManagedSource>,
}

impl KeptArtifact {
    /// Its name and version.
    pub(super) fn name(&self) -> (String, u32) {
        (self.artifact.filename.clone(), self.artifact.version)
    }
}

impl FlowState for Memory {
    const FLOW: &'static str = NAME;
    const VERSION: u32 = 1;
}

/// What the tool of one turn sees and changes.
#[derive(Default)]
pub(super) struct TurnState {
    pub(super) memory: Memory,
    /// What tools know of the user.
    pub(super) context: Value,
    /// The artifacts of this turn, by name and version.
    pub(super) made: Vec<(String, u32)>,
}

impl TurnState {
    /// All artifacts of the conversation, oldest first.
    pub(super) fn artifacts(&self) -> Vec<Artifact> {
        self.memory.artifacts.iter().map(|kept| kept.artifact.clone()).collect()
    }

    /// The newest artifact of this turn.
    pub(super) fn newest(&self) -> Option<&Artifact> {
        let newest = self.made.last()?;
        self.memory.artifacts.iter().find(|kept| kept.name() == *newest).map(|kept| &kept.artifact)
    }
}

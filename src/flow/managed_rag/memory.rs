//! What `managed-rag` keeps: the artifacts of a conversation with their sources, every version of them; and what is
//! known of one turn.

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

/// What is known of one turn; the tool sees and changes it.
#[derive(Default)]
pub(in crate::flow) struct TurnState {
    pub(super) progress: Progress,
    /// What tools know of the user.
    pub(super) context: Value,
    /// The artifacts of this turn, by name and version.
    pub(super) made: Vec<(String, u32)>,
}

//! What part a tool plays for the agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The part that a tool plays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It searches the agent's own knowledge.
    Knowledge,
    /// It asks an external search service.
    External,
    /// It keeps what came from outside under keywords.
    Index,
    /// It gives the answer.
    Respond,
    /// Any other tool.
    #[default]
    None,
}

impl Role {
    /// The roles that a tool can be given, in the order of a turn.
    pub const GIVEN: [Self; 4] = [Self::Knowledge, Self::External, Self::Index, Self::Respond];

    /// The word used in YAML and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Knowledge => "knowledge",
            Self::External => "external",
            Self::Index => "index",
            Self::Respond => "respond",
            Self::None => "none",
        }
    }

    /// The role of that word; `none` is the absence of one and cannot be asked for.
    pub fn given(word: &str) -> Option<Self> {
        Self::GIVEN.into_iter().find(|role| role.as_str() == word)
    }
}

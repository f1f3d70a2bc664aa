//! Services that an agent can work without.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A service that a scenario can declare `optional`: after an outage of it, the trial is evaluated by how the agent
/// handles it. The model cannot be optional.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OptionalService {
    /// The external search service.
    Search,
    /// The model that computes embeddings.
    Embeddings,
    /// The server of a knowledge base.
    Knowledge,
    /// The managed retrieval service.
    ManagedRetrieval,
}

impl OptionalService {
    /// The name used in scenarios, recordings and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Embeddings => "embeddings",
            Self::Knowledge => "knowledge",
            Self::ManagedRetrieval => "managed_retrieval",
        }
    }
}

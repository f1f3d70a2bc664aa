//! Services without which an agent can do its work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A service that a scenario can declare `optional`: an outage of it is judged as the agent deals with it. The model cannot
/// be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OptionalService {
    /// The external search service.
    Search,
    /// The model that turns texts into vectors.
    Embeddings,
    /// The server of a knowledge base.
    Knowledge,
    /// The managed retrieval service.
    ManagedRetrieval,
}

impl OptionalService {
    /// The word used in scenarios, recordings and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Embeddings => "embeddings",
            Self::Knowledge => "knowledge",
            Self::ManagedRetrieval => "managed_retrieval",
        }
    }
}

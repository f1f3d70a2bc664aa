//! Services that an agent can work without.

use crate::platform::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    /// A service that a scenario can declare `optional`: after an outage of it, the trial is evaluated by how the agent
    /// handles it. The model cannot be optional.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum OptionalService {
        /// The external search service.
        Search = "search",
        /// The model that computes embeddings.
        Embeddings = "embeddings",
        /// The server of a knowledge base.
        Knowledge = "knowledge",
        /// The managed retrieval service.
        ManagedRetrieval = "managed_retrieval",
    }
}

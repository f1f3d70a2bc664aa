//! `qdrant`: a collection of a Qdrant server, searched by its vectors; with a folder, by the folder's words too.

use super::{Backend, Declared, behind_a_server};
use crate::knowledge::{KnowledgeError, KnowledgeSource};
use std::sync::Arc;

/// The backend.
pub(super) static BACKEND: QdrantBackend = QdrantBackend;

pub(super) struct QdrantBackend;

impl Backend for QdrantBackend {
    fn name(&self) -> &'static str {
        "qdrant"
    }

    fn prepare(&self, declared: Declared<'_>) -> Result<Arc<dyn KnowledgeSource>, KnowledgeError> {
        behind_a_server(declared)
    }
}

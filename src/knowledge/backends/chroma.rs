//! `chroma`: a collection of a Chroma server, searched by its vectors; with a folder, by the folder's words too.

use super::{Backend, Declared, behind_a_server};
use crate::knowledge::{KnowledgeError, KnowledgeSource};
use std::sync::Arc;

/// The backend.
pub(super) static BACKEND: ChromaBackend = ChromaBackend;

pub(super) struct ChromaBackend;

impl Backend for ChromaBackend {
    fn name(&self) -> &'static str {
        "chroma"
    }

    fn prepare(&self, declared: Declared<'_>) -> Result<Arc<dyn KnowledgeSource>, KnowledgeError> {
        behind_a_server(declared)
    }
}

//! `embedded`: a folder of documents, searched by the full-text index of this program. It asks no server, so its
//! searches run for real in replay, and all trials share one index.

use super::{Backend, Declared};
use crate::knowledge::{Corpus, Embedded, KnowledgeBase, KnowledgeError, KnowledgeSource};
use crate::provider::Access;
use std::sync::Arc;

/// The backend.
pub(super) static BACKEND: EmbeddedBackend = EmbeddedBackend;

pub(super) struct EmbeddedBackend;

impl Backend for EmbeddedBackend {
    fn name(&self) -> &'static str {
        "embedded"
    }

    fn prepare(&self, declared: Declared<'_>) -> Result<Arc<dyn KnowledgeSource>, KnowledgeError> {
        let corpus = Corpus::load(&declared.knowledge.join(declared.place))?;
        Ok(Arc::new(Shared(Arc::new(Embedded::open(corpus, declared.cache)?))))
    }
}

/// One index for all trials.
struct Shared(Arc<Embedded>);

impl KnowledgeSource for Shared {
    fn open(&self, _: &Access) -> Arc<dyn KnowledgeBase> {
        Arc::clone(&self.0) as Arc<dyn KnowledgeBase>
    }
}

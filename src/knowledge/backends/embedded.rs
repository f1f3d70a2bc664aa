//! `embedded`: a folder of documents, searched by the full-text index of this program and, where embeddings are declared,
//! by the vectors beside the folder. Words ask no server, so those searches run for real in replay, and all trials share
//! one index; a query's vector is an exchange of its lane.

use super::{Backend, Declared, words};
use crate::knowledge::hybrid::{Hybrid, Place};
use crate::knowledge::vectors::{self, Vectors};
use crate::knowledge::{Embedded, KnowledgeBase, KnowledgeError, KnowledgeSource};
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
        let Some(settings) = declared.settings else { return Ok(Arc::new(Shared(words(declared, declared.place)?))) };
        let folder = settings.folder.as_deref().unwrap_or(declared.place);
        let index = words(declared, folder)?;
        let Some(embeddings) = &settings.embeddings else { return Ok(Arc::new(Shared(index))) };
        let model = &embeddings.model;
        let file = vectors::file_of(&declared.knowledge.join(folder), model);
        let lacking = |count| KnowledgeError::Vectors { path: file.clone(), why: vectors::lacking(count) };
        let rows = Vectors::read(&file, model)?.of(index.corpus()).map_err(lacking)?;
        let place = Place::Here(Arc::new(rows));
        Ok(Arc::new(Arc::new(Hybrid::new(declared.place, Some(index), place, embeddings, &settings.filter))))
    }
}

/// One index for all trials.
struct Shared(Arc<Embedded>);

impl KnowledgeSource for Shared {
    fn open(&self, _: &Access) -> Arc<dyn KnowledgeBase> {
        Arc::clone(&self.0) as Arc<dyn KnowledgeBase>
    }
}

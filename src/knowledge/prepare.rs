//! From what is declared of a knowledge base to what trials open: a folder searched by its words and, where embeddings
//! are declared, by the vectors beside it; or a collection on a server.
//!
//! Words ask no server, so those searches run for real in replay, and all trials share one index. A query's vector, and
//! every request to a server, is an exchange of its lane.

use super::hybrid::{Hybrid, VectorsAt};
use super::server::is_known;
use super::vectors::{self, Vectors};
use super::{Corpus, Embedded, KnowledgeBase, KnowledgeError, KnowledgeSource};
use crate::provider::Access;
use crate::settings::KnowledgeBaseSettings;
use std::path::Path;
use std::sync::Arc;

/// What is declared of one knowledge base.
#[derive(Debug, Clone, Copy)]
pub struct Declared<'a> {
    /// Its name: a folder below the project's knowledge, or what the project declares under that name.
    pub place: &'a str,
    /// The project's folder of knowledge.
    pub knowledge: &'a Path,
    /// Where derived files may be kept.
    pub cache: Option<&'a Path>,
    /// What the project declares of it beside its place: vectors, a server.
    pub settings: Option<&'a KnowledgeBaseSettings>,
}

/// Prepares a base for trials. Nothing is asked of any server.
///
/// # Errors
/// If the declaration cannot be read or used.
pub fn prepare(declared: Declared<'_>) -> Result<Arc<dyn KnowledgeSource>, KnowledgeError> {
    let Some(settings) = declared.settings else { return Ok(Arc::new(Shared(words(declared, declared.place)?))) };
    if let Some(server) = &settings.server {
        let unusable = |why: String| KnowledgeError::Server { base: declared.place.to_owned(), why };
        if !is_known(server) {
            return Err(unusable(format!("unknown kind of server `{}`", server.scheme)));
        }
        let without = || unusable("a server is searched by vectors: declare `embeddings`".to_owned());
        let embeddings = settings.embeddings.as_ref().ok_or_else(without)?;
        let index = settings.folder.as_deref().map(|folder| words(declared, folder)).transpose()?;
        let place = VectorsAt::Server(server.clone());
        return Ok(Arc::new(Arc::new(Hybrid::new(declared.place, index, place, embeddings, &settings.filter))));
    }
    let folder = settings.folder.as_deref().unwrap_or(declared.place);
    let index = words(declared, folder)?;
    let Some(embeddings) = &settings.embeddings else { return Ok(Arc::new(Shared(index))) };
    let model = &embeddings.model;
    let file = vectors::file_of(&declared.knowledge.join(folder), model);
    let lacking = |count| {
        let why = format!("{}: run `ragcheck knowledge index {}`", vectors::lacking(count), declared.place);
        KnowledgeError::Vectors { path: file.clone(), why }
    };
    let rows = Vectors::read(&file, model)?.of(index.corpus()).map_err(lacking)?;
    let place = VectorsAt::Folder(Arc::new(rows));
    Ok(Arc::new(Arc::new(Hybrid::new(declared.place, Some(index), place, embeddings, &settings.filter))))
}

/// The full-text index of a folder of the project.
fn words(declared: Declared<'_>, folder: &str) -> Result<Arc<Embedded>, KnowledgeError> {
    let corpus = Corpus::load(&declared.knowledge.join(folder))?;
    let language = declared.settings.map(|settings| settings.language).unwrap_or_default();
    Ok(Arc::new(Embedded::open_in(language, corpus, declared.cache)?))
}

/// One index for all trials.
struct Shared(Arc<Embedded>);

impl KnowledgeSource for Shared {
    fn open(&self, _: &Access) -> Arc<dyn KnowledgeBase> {
        Arc::clone(&self.0) as Arc<dyn KnowledgeBase>
    }
}

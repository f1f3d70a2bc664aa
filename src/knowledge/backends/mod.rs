//! Kinds of knowledge bases: a file each, which says how one is opened from what is declared of it.

mod chroma;
mod embedded;
mod qdrant;

use super::hybrid::{Hybrid, Place};
use super::{Corpus, Embedded, KnowledgeError, KnowledgeSource};
use crate::settings::KnowledgeBaseSettings;
use std::path::Path;
use std::sync::Arc;

/// Lists the backends: one line each, beside its `mod` line.
macro_rules! backends {
    ($($file:ident),+ $(,)?) => {
        /// Every backend, by the name of its file.
        pub static BACKENDS: &[(&str, &dyn Backend)] = &[$((stringify!($file), &$file::BACKEND)),+];
    };
}

backends! {
    embedded,
    chroma,
    qdrant,
}

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

/// A kind of knowledge base.
pub trait Backend: Send + Sync {
    /// The name that scenarios use.
    fn name(&self) -> &'static str;
    /// Prepares a base for trials. Nothing is asked of any server.
    ///
    /// # Errors
    /// When what is declared cannot be read or used.
    fn prepare(&self, declared: Declared<'_>) -> Result<Arc<dyn KnowledgeSource>, KnowledgeError>;
}

/// The backend of that name.
pub fn backend(name: &str) -> Option<&'static dyn Backend> {
    BACKENDS.iter().map(|(_, backend)| *backend).find(|backend| backend.name() == name)
}

/// The full-text index of a folder of the project.
fn words(declared: Declared<'_>, folder: &str) -> Result<Arc<Embedded>, KnowledgeError> {
    let corpus = Corpus::load(&declared.knowledge.join(folder))?;
    let language = declared.settings.map(|settings| settings.language).unwrap_or_default();
    Ok(Arc::new(Embedded::open_in(language, corpus, declared.cache)?))
}

/// A base whose vectors are on the server that is declared.
fn behind_a_server(declared: Declared<'_>) -> Result<Arc<dyn KnowledgeSource>, KnowledgeError> {
    let server = declared
        .settings
        .and_then(|settings| Some((settings, settings.server.clone()?, settings.embeddings.as_ref()?)));
    let (settings, server, embeddings) =
        server.ok_or_else(|| KnowledgeError::NoServer { base: declared.place.to_owned() })?;
    let index = settings.folder.as_deref().map(|folder| words(declared, folder)).transpose()?;
    Ok(Arc::new(Arc::new(Hybrid::new(declared.place, index, Place::Server(server), embeddings, &settings.filter))))
}

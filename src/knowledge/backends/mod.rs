//! Kinds of knowledge bases: a file each, which says how one is opened from what is declared of it.

use super::{KnowledgeError, KnowledgeSource};
use std::path::Path;
use std::sync::Arc;

/// Declares the module of each backend and lists them: one line a backend.
macro_rules! backends {
    ($($file:ident),+ $(,)?) => {
        $(mod $file;)+

        /// Every backend, by the name of its file.
        pub static BACKENDS: &[(&str, &dyn Backend)] = &[$((stringify!($file), &$file::BACKEND)),+];
    };
}

backends! {
    embedded,
}

/// What is declared of one knowledge base.
#[derive(Debug, Clone, Copy)]
pub struct Declared<'a> {
    /// Where it is, as written: a folder below the project's knowledge, or an address.
    pub place: &'a str,
    /// The project's folder of knowledge.
    pub knowledge: &'a Path,
    /// Where derived files may be kept.
    pub cache: Option<&'a Path>,
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

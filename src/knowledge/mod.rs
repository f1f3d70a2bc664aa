//! What an agent can look up, and what it has learned: documents, their passages, the search over them by words and by
//! vectors, here or on a server, and the keyword index.
//!
//! [`KnowledgeBase`] is what flows search, opened for one trial; [`Embedded`] is the one that needs no server, `backends`
//! lists all kinds. [`KeywordIndex`] keeps the answers of the external service under keywords, so that later searches
//! find them. Nothing here knows what a model or a tool call is. No `SQLite` borrow crosses an await: searches of the embedded
//! index run to their end before they return.

mod base;
mod concept;
mod documents;
mod embedded;
mod excerpt;
mod found;
mod full_text;
mod fusion;
mod guard;
mod hybrid;
mod index_file;
mod keyword_index;
mod keyword_store;
mod language;
mod learned;
mod listing;
mod prepare;
mod query;
mod rank;
mod server;
pub mod tokenize;
mod upkeep;
mod vectors;

pub(crate) use base::KnowledgeBases;
pub use base::{DEFAULT_KB, Found, KnowledgeBase, KnowledgeSource, KnowledgeSources, Search, SearchError};
pub(crate) use concept::Concepts;
pub(crate) use documents::NAMES;
pub use documents::{Corpus, Passage};
pub use embedded::Embedded;
pub(crate) use excerpt::excerpt;
pub(crate) use found::FoundPassages;
pub(crate) use keyword_index::Indexed;
pub use keyword_index::KeywordIndex;
pub use learned::ExternalRecord;
pub(crate) use learned::{KeywordEntry, LearnedHit, question_id};
pub(crate) use listing::{Change, Listing};
pub use prepare::{Declared, prepare};
#[cfg(not(front_door_only))]
pub use server::qdrant_bodies;
pub use server::{BATCH, StoredPassage, store};
pub(crate) use server::{known_profile, server_auth, servers};
pub(crate) use upkeep::{PruneRule, Pruned, Upkeep};
pub(crate) use vectors::{PassageVectors, VectorError, lacking as lacking_vectors};
pub use vectors::{Vectors, file_of as vector_file, text_of as embedded_text};

use crate::platform::bounds::Bound;
use std::path::PathBuf;

/// Why knowledge cannot be read, searched or kept.
#[derive(Debug, thiserror::Error)]
pub enum KnowledgeError {
    /// A file or folder cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read { path: PathBuf, error: std::io::Error },
    /// A file or folder cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// A document whose bytes are no UTF-8. `looks`: what it is instead, where its first bytes say so: `, but UTF-16`.
    #[error("{}:{line}: the file is not UTF-8 text{looks}: save it as UTF-8", path.display())]
    NotText { path: PathBuf, line: usize, looks: &'static str },
    /// More documents than are read.
    #[error("the documents of {} are larger than {} together; {}", path.display(), Bound::DocumentsSize.shown(), Bound::DocumentsSize.advice())]
    TooLarge { path: PathBuf },
    /// More passages than are searched. `path`: the file with the first passage above the limit.
    #[error("{}: more than {} passages in this knowledge base; {}", path.display(), Bound::Passages.shown(), Bound::Passages.advice())]
    TooMany { path: PathBuf },
    /// A folder without a single passage.
    #[error("{} holds no passages: put files with text into it (.md, .txt, .html, .jsonl, .csv){not_read}", path.display())]
    Empty { path: PathBuf, not_read: String },
    /// A document that is not of its format.
    #[error("{}:{line}: {why}", path.display())]
    Document { path: PathBuf, line: usize, why: String },
    /// A base on a server that cannot be searched as declared.
    #[error("the knowledge base `{base}`: {why}")]
    Server { base: String, why: String },
    /// A file of vectors that cannot be used.
    #[error("{}: {why}", path.display())]
    Vectors { path: PathBuf, why: String },
    /// A file that is there, and is no keyword index of this build; it was not written.
    #[error("{} is not a keyword index that this build can open: {why}; it was left as it is. Name another file", path.display())]
    Foreign { path: PathBuf, why: ForeignFile },
    /// A text that a keyword index does not take. `what`: `keyword` or `text`.
    #[error("a {what} of more than {most} characters is not kept in a keyword index")]
    LongText { what: &'static str, most: usize },
    /// The index failed. `what`: which one: `search index` or `keyword index`. `file`: its file, where it is not in
    /// memory.
    #[error("the {what}{} failed: {error}", file.as_ref().map_or(String::new(), |file| format!(" {}", file.display())))]
    Index { what: &'static str, file: Option<PathBuf>, error: rusqlite::Error },
}

/// What a file is that is no keyword index of this build.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForeignFile {
    /// Nothing is in it.
    #[error("it is empty")]
    Empty,
    /// No database.
    #[error("it is not an SQLite database")]
    NotSqlite,
    /// A database of another program.
    #[error("it is a database of something else")]
    OtherProgram,
    /// An index of another build.
    #[error("its layout has version {version}, this build knows {known}")]
    OtherVersion { version: i64, known: i64 },
    /// A text too long for the index.
    #[error("it holds a text that is longer than what is indexed")]
    LongText,
    /// A schema that this build does not make: it could run something. `kind`: `table`, `index`, `view` or `trigger`.
    #[error("its {kind} `{name}` is not as this build makes it")]
    OtherSchema { kind: String, name: String },
}

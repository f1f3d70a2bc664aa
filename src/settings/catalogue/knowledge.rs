//! Catalogue entries for knowledge: names of documents and passages, and kinds of servers.

use crate::settings::Auth;
use std::collections::BTreeSet;
use std::path::Path;

/// Names of a folder's sources, as cited in answers.
#[derive(Debug, Clone, Copy)]
pub struct PassageNames {
    /// Maps a file to its document name; `None` for a file that is not read.
    pub document: fn(&Path) -> Option<String>,
    /// Ids of all passages of a folder; `None` if it cannot be read, which is reported elsewhere.
    pub passages: fn(&Path) -> Option<BTreeSet<String>>,
}

/// A kind of server that stores passages with their vectors.
#[derive(Debug, Clone, Copy)]
pub struct ServerEntry {
    /// The scheme of its addresses: `SCHEME://HOST:PORT/COLLECTION`.
    pub scheme: &'static str,
    /// How it receives a key.
    pub auth: Auth,
    /// Parameters allowed after `?` in its addresses.
    pub options: &'static [&'static str],
}

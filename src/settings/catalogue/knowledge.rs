//! What knowledge declares about itself: the names of documents and passages, and the kinds of servers.

use crate::settings::Auth;
use std::collections::BTreeSet;
use std::path::Path;

/// The names that sources of a folder have, by which answers cite them.
#[derive(Debug, Clone, Copy)]
pub struct PassageNames {
    /// The document's name of a file; `None` of a file that is not read.
    pub document: fn(&Path) -> Option<String>,
    /// The ids of all passages of a folder; `None` where it cannot be read, which is said elsewhere.
    pub passages: fn(&Path) -> Option<BTreeSet<String>>,
}

/// A kind of server that holds passages with their vectors.
#[derive(Debug, Clone, Copy)]
pub struct ServerEntry {
    /// The scheme of its addresses: `SCHEME://HOST:PORT/COLLECTION`.
    pub scheme: &'static str,
    /// How it takes a key.
    pub auth: Auth,
    /// What may stand behind `?` in its addresses.
    pub options: &'static [&'static str],
}

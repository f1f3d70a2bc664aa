//! How documents and passages of a knowledge folder are named.

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

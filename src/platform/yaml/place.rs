//! Places in a document: line and column, or the path that leads there.

use serde::Serialize;

/// A place in a file; line and column count from 1, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
    /// Characters to underline, at least 1, on that line.
    pub length: u32,
}

/// One step into a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// Into a map, by key.
    Key(String),
    /// Into a list, from 0.
    Index(usize),
}

/// What part of a value a mistake points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Focus {
    /// The value.
    Value,
    /// The key that leads to it.
    Key,
    /// So many characters of the value's text, from so many characters in.
    Within(usize, usize),
}

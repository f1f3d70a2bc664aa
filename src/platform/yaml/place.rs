//! Positions in a document: line and column, or a path.

use schemars::JsonSchema;
use serde::Serialize;
use std::ops::Range;

/// A position in a file; line and column count from 1, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Place {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// Characters to underline, at least 1, on that line.
    pub length: u32,
}

impl Place {
    /// The place of a part of a text, by its bytes; of several lines, the first counts.
    pub(crate) fn of(text: &str, part: &Range<usize>) -> Self {
        let before = text.get(..part.start).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default().trim_start_matches('\u{feff}');
        let on_line = text.get(part.clone()).unwrap_or_default().split('\n').next().unwrap_or_default();
        Self {
            line: 1 + before.matches('\n').count() as u32,
            column: 1 + line.chars().count() as u32,
            length: on_line.chars().count().max(1) as u32,
        }
    }
}

/// One step into a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// Into a map, by key.
    Key(String),
    /// Into a list, from 0.
    Index(usize),
}

/// The part of a value that a mistake points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Focus {
    Value,
    /// The key of the value.
    Key,
    /// Range in the value's text: start and length, in characters.
    Within(usize, usize),
}

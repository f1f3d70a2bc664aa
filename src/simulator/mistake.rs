//! Mistakes in a behaviour file, with their positions.

use crate::platform::yaml::Place;
use std::fmt;
use std::path::{Path, PathBuf};

/// Reason why a behaviour file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BehaviourError {
    /// It cannot be read.
    #[error("the behaviour file {} cannot be read: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Reason.
        error: std::io::Error,
    },
    /// It has mistakes, one per line.
    #[error("{}", listed(.path, .mistakes))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// All mistakes found, by position.
        mistakes: Vec<BehaviourMistake>,
    },
}

/// One mistake in a behaviour file.
#[derive(Debug)]
pub struct BehaviourMistake {
    /// Position, if it concerns one.
    pub place: Option<Place>,
    /// Description.
    pub problem: BehaviourProblem,
}

/// Kind of a mistake in a behaviour file.
#[derive(Debug, thiserror::Error)]
pub enum BehaviourProblem {
    /// It does not have the structure of a behaviour file.
    #[error("{0}")]
    Shape(String),
    /// It declares an invalid value.
    #[error(transparent)]
    Value(#[from] ValueError),
}

fn listed(path: &Path, mistakes: &[BehaviourMistake]) -> String {
    let one = |mistake: &BehaviourMistake| {
        let place = mistake.place.map_or_else(String::new, |at| format!(":{}:{}", at.line, at.column));
        format!("{}{place}: the behaviour file is not valid: {}", path.display(), mistake.problem)
    };
    mistakes.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// Kind of an invalid value.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum ValueError {
    /// The name is not allowed.
    #[error("name `{0}`: use lower-case letters, digits and hyphens")]
    Name(String),
    /// A tool is renamed that does not exist.
    #[error("tools: `{role}` is not a role of a tool; known: {known}")]
    UnknownRole { role: String, known: String },
    /// A tool is renamed to an empty name.
    #[error("tools: `{0}` has an empty name")]
    EmptyName(String),
    /// A number is out of its range.
    #[error("{what} must lie between {least} and {most}, not {found}")]
    Range { what: &'static str, least: f64, most: f64, found: f64 },
    /// The search would return nothing.
    #[error("top_k must be at least 1")]
    NoHits,
    /// A page or passage number is 0.
    #[error("managed: `{0}`: pages and passages are counted from 1")]
    NoPage(String),
    /// The cited words do not occur in the answer.
    #[error("managed: the answer does not hold the cited words `{0}`")]
    NotInAnswer(String),
    /// A topic of the search service has no results.
    #[error("the topic `{0}` needs at least one result")]
    NoResults(String),
}

impl fmt::Display for BehaviourMistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(formatter)
    }
}

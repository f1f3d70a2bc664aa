//! What is wrong with a behaviour file, and where.

use crate::platform::yaml::Place;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why a behaviour file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BehaviourError {
    /// It cannot be read.
    #[error("the behaviour file {} cannot be read: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It has mistakes, each told in a line.
    #[error("{}", listed(.path, .mistakes))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// All that were found, by place.
        mistakes: Vec<BehaviourMistake>,
    },
}

/// One mistake in a behaviour file.
#[derive(Debug)]
pub struct BehaviourMistake {
    /// Where, when it is about one place.
    pub place: Option<Place>,
    /// What is wrong.
    pub problem: BehaviourProblem,
}

/// What is wrong in a behaviour file.
#[derive(Debug, thiserror::Error)]
pub enum BehaviourProblem {
    /// It is not what a behaviour file looks like.
    #[error("{0}")]
    Shape(String),
    /// It declares what cannot be.
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

/// What is wrong with a declared value.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum ValueError {
    /// The name cannot be one.
    #[error("name `{0}`: use lower-case letters, digits and hyphens")]
    Name(String),
    /// Tools are renamed that there are not.
    #[error("tools: `{role}` is no role of a tool; known: {known}")]
    UnknownRole {
        /// What is written.
        role: String,
        /// The roles that there are.
        known: String,
    },
    /// A tool is renamed to nothing.
    #[error("tools: `{0}` has an empty name")]
    EmptyName(String),
    /// A number is out of its range.
    #[error("{what} must lie between {least} and {most}, not {found}")]
    Range {
        /// Which number.
        what: &'static str,
        /// The least that it may be.
        least: f64,
        /// The most.
        most: f64,
        /// What it is.
        found: f64,
    },
    /// Nothing would be searched.
    #[error("top_k must be at least 1")]
    NoHits,
    /// A page or passage is counted from 0.
    #[error("managed: `{0}`: pages and passages are counted from 1")]
    NoPage(String),
    /// Words are cited that the answer does not hold.
    #[error("managed: the answer does not hold the cited words `{0}`")]
    NotInAnswer(String),
    /// A topic of the search service answers with nothing.
    #[error("the topic `{0}` needs at least one result")]
    NoResults(String),
}

impl fmt::Display for BehaviourMistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(formatter)
    }
}

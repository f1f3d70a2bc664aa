//! Why a text could not be read, and where.

use super::place::Place;
use serde_saphyr::Error;

/// Why a text could not be read, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub(crate) struct ReadError {
    /// What is wrong.
    pub problem: Problem,
    /// Where, when it is about one place.
    pub place: Option<Place>,
}

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    /// A key that its type does not have.
    #[error("unknown key `{key}`")]
    UnknownKey {
        /// The key.
        key: String,
        /// Those that there are.
        known: Vec<&'static str>,
    },
    /// A word that is none of those that may stand there.
    #[error("unknown word `{word}`")]
    UnknownWord {
        /// The word.
        word: String,
        /// Those that there are.
        known: Vec<&'static str>,
    },
    /// A key that has to be there.
    #[error("the key `{0}` is missing")]
    MissingKey(String),
    /// A key that its map has already.
    #[error("{}", match .0 { Some(key) => format!("the key `{key}` is written twice"), None => "a key is written twice".to_owned() })]
    RepeatedKey(Option<String>),
    /// A key that is a list or a map.
    #[error("a key must be text")]
    KeyNotText,
    /// A value of another type.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// What may stand there.
        expected: String,
        /// What does.
        found: String,
    },
    /// Neither `true` nor `false`.
    #[error("expected `true` or `false`")]
    NotBoolean,
    /// More than one document.
    #[error("the file holds several documents (`---`): one file, one document")]
    SeveralDocuments,
    /// More than is read.
    #[error("the document is too deep, or its aliases make it too large")]
    TooLarge,
    /// Nothing, or only a part.
    #[error("the file is empty, or ends too early")]
    Empty,
    /// No YAML.
    #[error("not valid YAML here: {0}")]
    Syntax(String),
}

impl Problem {
    /// Whether there is no tree either: too much of it, or more than one.
    pub(crate) fn is_hopeless(&self) -> bool {
        matches!(self, Self::TooLarge | Self::SeveralDocuments)
    }
}

impl From<&Error> for ReadError {
    fn from(error: &Error) -> Self {
        let mut error = error.without_snippet();
        while let Error::AliasError { error: inner, .. } = error {
            error = inner.without_snippet();
        }
        let problem = match error {
            Error::SerdeUnknownField { field, expected, .. } => {
                Problem::UnknownKey { key: field.clone(), known: expected.clone() }
            }
            Error::SerdeUnknownVariant { variant, expected, .. } => {
                Problem::UnknownWord { word: variant.clone(), known: expected.clone() }
            }
            Error::SerdeMissingField { field, .. } => Problem::MissingKey((*field).to_string()),
            Error::DuplicateMappingKey { key, .. } => Problem::RepeatedKey(key.clone()),
            Error::SerdeInvalidType { unexpected, expected, .. }
            | Error::SerdeInvalidValue { unexpected, expected, .. } => {
                Problem::WrongType { expected: expected.clone(), found: unexpected.clone() }
            }
            Error::MultipleDocuments { .. } => Problem::SeveralDocuments,
            Error::Budget { .. }
            | Error::AliasReplayLimitExceeded { .. }
            | Error::AliasExpansionLimitExceeded { .. }
            | Error::AliasReplayStackDepthExceeded { .. } => Problem::TooLarge,
            Error::Eof { .. } => Problem::Empty,
            Error::InvalidBooleanStrict { .. } => Problem::NotBoolean,
            other => Problem::Syntax(plain(&other.render())),
        };
        let place = error.location().filter(|location| location.line() > 0).map(|location| Place {
            line: location.line() as u32,
            column: location.column() as u32,
            length: location.span().len().clamp(1, 200) as u32,
        });
        Self { problem, place }
    }
}

/// The first line of the library's own text, without the place that we print ourselves.
fn plain(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default().trim();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    let end = [" at line ", " at byte "].iter().filter_map(|mark| first.find(mark)).min().unwrap_or(first.len());
    let start = first.strip_prefix("line ").and_then(|_| first.find(": ")).map_or(0, |colon| colon + 2);
    first.get(start.min(end)..end).unwrap_or(first).to_owned()
}

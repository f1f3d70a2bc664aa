//! Why a text could not be read, and where.

use super::place::Place;
use serde_saphyr::Error;

/// A read error with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub(crate) struct ReadError {
    /// The problem.
    pub problem: Problem,
    /// Its position, if it concerns one place.
    pub place: Option<Place>,
}

/// Kinds of problems in a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    /// A key is unknown to its type.
    #[error("unknown key `{key}`")]
    UnknownKey { key: String, known: Vec<&'static str> },
    /// A word is not one of the allowed words.
    #[error("unknown word `{word}`")]
    UnknownWord { word: String, known: Vec<&'static str> },
    /// A required key is missing.
    #[error("the key `{0}` is missing")]
    MissingKey(String),
    /// A key is repeated in its map.
    #[error("{}", match .0 { Some(key) => format!("the key `{key}` is written twice"), None => "a key is written twice".to_owned() })]
    RepeatedKey(Option<String>),
    /// A key is a list or a map.
    #[error("a key must be text")]
    KeyNotText,
    /// A value has the wrong type.
    #[error("expected {expected}, found {found}")]
    WrongType { expected: String, found: String },
    /// A value is neither `true` nor `false`.
    #[error("expected `true` or `false`")]
    NotBoolean,
    /// The text has more than one document.
    #[error("the file holds several documents (`---`): one file, one document")]
    SeveralDocuments,
    /// The document exceeds the size limit.
    #[error("the document is too deep, or its aliases make it too large")]
    TooLarge,
    /// The document is empty or incomplete.
    #[error("the file is empty, or ends too early")]
    Empty,
    /// The text is not valid YAML.
    #[error("not valid YAML here: {0}")]
    Syntax(String),
}

impl Problem {
    /// Whether no tree can be built either: the text is too large, or has more than one document.
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

/// First line of the library's message, without the position, which is printed separately.
fn plain(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default().trim();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    let end = [" at line ", " at byte "].iter().filter_map(|mark| first.find(mark)).min().unwrap_or(first.len());
    let start = first.strip_prefix("line ").and_then(|_| first.find(": ")).map_or(0, |colon| colon + 2);
    first.get(start.min(end)..end).unwrap_or(first).to_owned()
}

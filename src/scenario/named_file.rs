//! Files that a scenario refers to: prompts and tables.

use crate::platform::bounds::Bound;
use crate::platform::files;
use std::path::{Path, PathBuf};

/// Reason why a file that a scenario names cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum NamedFileError {
    /// The path is absolute.
    #[error("an absolute path: it would not exist on another machine")]
    Absolute,
    /// The file does not exist.
    #[error("no such file")]
    Missing,
    /// The file exceeds its size limit.
    #[error("larger than {}; {}", .0.shown(), .0.advice())]
    TooLarge(Bound),
    /// The file is not text.
    #[error("line {0} is not UTF-8 text: save the file as UTF-8")]
    NotText(usize),
    /// The file cannot be read.
    #[error("{0}")]
    Unreadable(std::io::Error),
}

/// Path of a file that the scenario at `scenario` names.
pub(super) fn beside(scenario: &Path, file: &str) -> PathBuf {
    scenario.parent().unwrap_or(Path::new("")).join(file)
}

/// Reads the text of a file that the scenario at `scenario` names.
pub(super) fn read_named(scenario: &Path, file: &str, bound: Bound) -> Result<String, NamedFileError> {
    if Path::new(file).is_absolute() {
        return Err(NamedFileError::Absolute);
    }
    let bytes = files::read_at_most(beside(scenario, file), bound.most()).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => NamedFileError::Missing,
        std::io::ErrorKind::FileTooLarge => NamedFileError::TooLarge(bound),
        _ => NamedFileError::Unreadable(error),
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        NamedFileError::NotText(error.as_bytes()[..good].split(|byte| *byte == b'\n').count())
    })
}

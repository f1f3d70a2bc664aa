//! Finds secrets in files; reports position and kind, never the value.

use super::FileError;
use super::files::accepted;
use crate::cassette::{self, Find, Redactor};
use crate::platform::files::{self, Entry};
use crate::scenario::Project;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Name suffixes of variables that hold secrets.
const SECRET_NAMES: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIALS"];

/// Secrets known by value, with their variables' names: variables that the project file names, environment variables
/// whose names end like those of secrets, and all of `given`.
pub(crate) fn known_secrets(project: &Project, given: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let named = |name: &String| project.providers.values().any(|provider| provider.key.as_ref() == Some(name));
    let mut known: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| named(name) || SECRET_NAMES.iter().any(|end| name.to_ascii_uppercase().ends_with(end)))
        .collect();
    known.extend(given);
    for value in known.values_mut() {
        *value = value.trim().to_owned();
    }
    known
}

/// Secrets in a file.
///
/// # Errors
/// If it cannot be read: an unread file does not count as clean.
pub(crate) fn scan(file: &Path, redactor: &Redactor) -> Result<Vec<Find>, FileError> {
    let bytes = files::read(file).map_err(|error| FileError::Read { path: file.to_owned(), error })?;
    Ok(cassette::scan(&String::from_utf8_lossy(&bytes), redactor))
}

/// Files at and below these paths, sorted; does not follow links, and skips `.git`.
pub(crate) fn scan_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, FileError> {
    let below = |entry: &Entry| {
        Ok(if entry.is_folder { !entry.path.ends_with(".git") } else { entry.path.symlink_metadata()?.is_file() })
    };
    accepted(paths, &below)
}

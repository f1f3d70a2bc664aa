//! Finds the cassettes that paths refer to.

use super::FileError;
use crate::platform::files::{self, Entry};
use std::io;
use std::path::{Path, PathBuf};

/// A cassette on disk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CassetteFile {
    pub path: PathBuf,
    /// Blobs of its scenario: beside its case's folder, or beside the file if there are no cases.
    pub blobs: PathBuf,
    /// Name in messages.
    pub shown: String,
}

/// Cassettes at and below these paths, sorted; messages name them relative to the folder `here`.
///
/// # Errors
/// If a path does not exist or cannot be read, or nothing is found.
pub(crate) fn cassettes(here: &Path, paths: &[PathBuf]) -> Result<Vec<CassetteFile>, FileError> {
    let below = |entry: &Entry| Ok(entry.is_folder || entry.path.extension().is_some_and(|end| end == "yaml"));
    let found = accepted(paths.iter().map(|path| here.join(path)), &below)?;
    let file = |path: PathBuf| {
        let folder = path.parent().unwrap_or(Path::new(""));
        let scenario = folder.parent().unwrap_or(Path::new(""));
        // A grader's recordings have no cases: their blobs are right beside them.
        let blobs = Some(folder.join("blobs")).filter(|blobs| blobs.is_dir()).unwrap_or_else(|| scenario.join("blobs"));
        let shown = path.strip_prefix(here).unwrap_or(&path).display().to_string();
        CassetteFile { path, blobs, shown }
    };
    if found.is_empty() {
        return Err(FileError::NoCassette);
    }
    Ok(found.into_iter().map(file).collect())
}

/// Files at and below these paths, sorted and each once; below a path, those that `below` accepts.
pub(super) fn accepted(
    paths: impl IntoIterator<Item = impl AsRef<Path>>,
    below: &dyn Fn(&Entry) -> io::Result<bool>,
) -> Result<Vec<PathBuf>, FileError> {
    let mut found = Vec::new();
    for path in paths {
        walk(path.as_ref(), below, &mut found)?;
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Adds the file at `path`, or the files below it that `below` accepts, in the folders that it accepts.
fn walk(path: &Path, below: &dyn Fn(&Entry) -> io::Result<bool>, found: &mut Vec<PathBuf>) -> Result<(), FileError> {
    let unreadable = |error| FileError::Read { path: path.to_owned(), error };
    if !path.is_dir() {
        files::metadata(path).map_err(unreadable)?;
        found.push(path.to_owned());
        return Ok(());
    }
    for entry in files::entries(path).map_err(unreadable)? {
        if below(&entry).map_err(unreadable)? {
            walk(&entry.path, below, found)?;
        }
    }
    Ok(())
}

//! Which cassettes a verb is about.

use crate::cli::output::Problem;
use crate::scenario;
use std::path::{Path, PathBuf};

/// A cassette on disk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct File {
    /// Where it is.
    pub path: PathBuf,
    /// Its scenario's blobs: beside its case's folder.
    pub blobs: PathBuf,
    /// As messages call it.
    pub shown: String,
}

/// The cassettes at and below these paths, sorted; the project's without any.
///
/// # Errors
/// When a path is not there, or cannot be read, or when nothing is found.
pub fn cassettes(paths: &[PathBuf]) -> Result<Vec<File>, Problem> {
    let here = std::env::current_dir().map_err(|why| format!("the current folder cannot be read: {why}"))?;
    let mut found = Vec::new();
    if paths.is_empty() {
        let root = scenario::find_root(&here);
        descend(&root.join(scenario::load_project(&root)?.cassettes), &mut found)?;
    }
    for path in paths {
        descend(&here.join(path), &mut found)?;
    }
    found.sort();
    found.dedup();
    let file = |path: PathBuf| {
        let scenario = path.parent().and_then(Path::parent).unwrap_or(Path::new(""));
        let shown = path.strip_prefix(&here).unwrap_or(&path).display().to_string();
        File { blobs: scenario.join("blobs"), shown, path }
    };
    if found.is_empty() {
        return Err(Problem::Words("there is no cassette: a cassette is a .yaml file below fixtures/cassettes".into()));
    }
    Ok(found.into_iter().map(file).collect())
}

fn descend(path: &Path, found: &mut Vec<PathBuf>) -> Result<(), Problem> {
    let unreadable = |why: std::io::Error| format!("{} cannot be read: {why}", path.display());
    if !path.is_dir() {
        std::fs::metadata(path).map_err(unreadable)?;
        found.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?.path();
        if entry.is_dir() || entry.extension().is_some_and(|end| end == "yaml") {
            descend(&entry, found)?;
        }
    }
    Ok(())
}

//! `ragcheck cassette scan`: finds secrets in files, reported by position and kind, never by value.
//!
//! Known values come from the variables that the project file names, from environment variables whose names end like
//! those of secrets, and from all of `--env-file`.

use super::arguments::Scan;
use crate::cassette::{Find, Redactor};
use crate::cli::exit::Exit;
use crate::cli::output::{self, Problem};
use crate::cli::select::{current_folder, project, variables};
use crate::suite::recordings::{known_secrets, scan, scan_files};
use crate::trace::text::{plural, quote};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;

/// Maximum number of findings printed per file.
const SHOWN: usize = 20;

/// Runs `ragcheck cassette scan`.
///
/// # Errors
/// If a path does not exist or cannot be read: an unread file does not count as clean.
pub(super) fn run(given: &Scan) -> Result<Exit, Problem> {
    let here = current_folder()?;
    let (root, project) = project()?;
    let redactor = Redactor::new(known_secrets(&project, variables(given.env_file.as_deref())?));
    let all = [root.join(&project.cassettes)];
    let files = scan_files(if given.paths.is_empty() { &all } else { &given.paths })?;
    let scanned: Vec<_> = files.par_iter().map(|file| scan(file, &redactor)).collect();
    let mut secrets = Vec::new();
    let mut dirty = 0;
    for (file, found) in files.iter().zip(scanned) {
        let found = found?;
        let file = quote(&file.strip_prefix(&here).unwrap_or(file).display().to_string(), 400);
        dirty += usize::from(!found.is_empty());
        secrets.extend(found.into_iter().map(|find| Secret { file: file.clone(), find }));
    }
    let finds = secrets.len();
    let scanned = Scanned { files: files.len(), secrets };
    output::data(given.format, &scanned, text)?;
    if finds == 0 {
        return Ok(Exit::Passed);
    }
    let (finds, dirty) = (plural(finds, "secret"), plural(dirty, "file"));
    output::remark(&format!(
        "{finds} in {dirty}: revoke what is real, take it out, and record again with the key in the environment"
    ));
    Ok(Exit::Failed)
}

/// What a scan finds.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Scanned {
    /// Number of files that were read.
    pub files: usize,
    /// Secrets, by file and line.
    pub secrets: Vec<Secret>,
}

/// A secret in a file.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Secret {
    /// The file.
    pub file: String,
    /// Where in it, and of which kind.
    #[serde(flatten)]
    pub find: Find,
}

fn text(scanned: &Scanned) -> String {
    if scanned.secrets.is_empty() {
        return format!("no secret in {}\n", plural(scanned.files, "file"));
    }
    let mut text = String::new();
    for of_file in scanned.secrets.chunk_by(|one, other| one.file == other.file) {
        for Secret { file, find } in of_file.iter().take(SHOWN) {
            let _ = writeln!(text, "{file}:{}: {}", find.line, find.what);
        }
        if let Some(more) = of_file.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            let _ = writeln!(text, "{}: and {more} more", of_file[0].file);
        }
    }
    text
}

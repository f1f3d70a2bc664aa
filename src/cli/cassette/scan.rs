//! `ragcheck cassette scan`: finds secrets in files, reported by position and kind, never by value.
//!
//! Known values come from the variables that the project file names, from environment variables whose names end like
//! those of secrets, and from all of `--env-file`.

use super::arguments::Scan;
use crate::cassette::Redactor;
use crate::cli::exit::Exit;
use crate::cli::output::{self, Problem};
use crate::cli::select::{current_folder, variables};
use crate::scenario;
use crate::suite::recordings::{known_secrets, scan, scan_files};
use crate::trace::text::plural;
use crate::trace::text::quote;
use rayon::prelude::*;
/// Maximum number of findings printed per file.
const SHOWN: usize = 20;

/// Runs `ragcheck cassette scan`.
///
/// # Errors
/// If a path does not exist or cannot be read: an unread file does not count as clean.
pub(super) fn run(given: &Scan) -> Result<Exit, Problem> {
    let here = current_folder()?;
    let root = scenario::find_root(&here);
    let project = scenario::load_project(&root, &crate::catalogues())?;
    let redactor = Redactor::new(known_secrets(&project, variables(given.env_file.as_deref())?));
    let all = [root.join(&project.cassettes)];
    let files = scan_files(if given.paths.is_empty() { &all } else { &given.paths })?;
    let scanned: Vec<_> = files.par_iter().map(|file| scan(file, &redactor)).collect();
    let (mut finds, mut dirty) = (0, 0);
    for (file, found) in files.iter().zip(scanned) {
        let found = found?;
        let file = file.strip_prefix(&here).unwrap_or(file).display().to_string();
        let file = quote(&file, 400);
        for find in found.iter().take(SHOWN) {
            output::result(&format!("{file}:{}: {}\n", find.line, find.what));
        }
        if found.len() > SHOWN {
            output::result(&format!("{file}: and {} more\n", found.len() - SHOWN));
        }
        finds += found.len();
        dirty += usize::from(!found.is_empty());
    }
    if finds == 0 {
        output::result(&format!("no secret in {}\n", plural(files.len(), "file")));
        return Ok(Exit::Passed);
    }
    let (finds, dirty) = (plural(finds, "secret"), plural(dirty, "file"));
    output::remark(&format!(
        "{finds} in {dirty}: revoke what is real, take it out, and record again with the key in the environment"
    ));
    Ok(Exit::Failed)
}

//! `ragcheck cassette scan`: secrets in files, by place and kind, never by value.
//!
//! Known values are those of the variables that the project file names, of every variable of the environment whose
//! name ends like a secret's, and of everything in `--env-file`.

use super::arguments::Scan;
use crate::cassette::{self, Redactor};
use crate::cli::exit::Exit;
use crate::cli::output::{self, Problem};
use crate::cli::run::variables;
use crate::scenario::{self, Project};
use crate::trace::text::plural;
use crate::trace::text::quote;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Ends of the names of variables that hold secrets.
const SECRET_NAMES: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIALS"];
/// Finds that are printed of one file.
const SHOWN: usize = 20;

/// Does what `ragcheck cassette scan` was asked to.
///
/// # Errors
/// When a path is not there or cannot be read: what was not read is not clean.
pub fn run(given: &Scan) -> Result<Exit, Problem> {
    let here = std::env::current_dir().map_err(|why| format!("the current folder cannot be read: {why}"))?;
    let root = scenario::find_root(&here);
    let project = scenario::load_project(&root)?;
    let redactor = Redactor::new(known(&project, variables(given.env_file.as_deref())?));
    let mut files = Vec::new();
    if given.paths.is_empty() {
        collect(&root.join(&project.cassettes), &mut files)?;
    }
    for path in &given.paths {
        collect(path, &mut files)?;
    }
    files.sort();
    files.dedup();
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

/// The secrets that are known by value, with the variables' names.
pub fn known(project: &Project, given: BTreeMap<String, String>) -> BTreeMap<String, String> {
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

fn scan(file: &Path, redactor: &Redactor) -> Result<Vec<cassette::Find>, Problem> {
    let bytes = std::fs::read(file).map_err(|why| format!("{} cannot be read: {why}", file.display()))?;
    Ok(cassette::scan(&String::from_utf8_lossy(&bytes), redactor))
}

/// The files at and below a path; links are not followed, and `.git` is git's own matter.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Problem> {
    let unreadable = |why: std::io::Error| format!("{} cannot be read: {why}", path.display());
    if !path.is_dir() {
        std::fs::metadata(path).map_err(unreadable)?;
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_dir() && entry.file_name() != ".git" {
            collect(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}

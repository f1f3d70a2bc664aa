//! Imports a cassette of another recorder, redacted.

use super::FileError;
use crate::cassette::{self, Cassette, CassetteError, Header, Imported, Redactor, Refusal, Route, VcrError};
use crate::knowledge::known_profile;
use crate::platform::files;
use crate::provider::EXACT;
use crate::provider::wire::route;
use crate::transport::Service;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Lane that an external agent replays: see docs/how-to/external-agents.md, "Recordings of other tools".
const LANE: &str = "external.base.1";

/// Why a file was not imported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(std::io::Error),
    /// A recording of that name exists.
    #[error("{scenario}/{case} is there already: delete it, or give another --scenario")]
    Present {
        /// Scenario name.
        scenario: String,
        /// Case name.
        case: String,
    },
    /// It is not a cassette of that recorder.
    #[error(transparent)]
    Foreign(#[from] VcrError),
    /// It is empty.
    #[error("it holds no interaction")]
    Empty,
    /// None of its interactions can be imported; this is the reason for the first.
    #[error("{0}")]
    Refused(Refusal),
    /// The cassette cannot be written.
    #[error(transparent)]
    Unwritable(#[from] CassetteError),
}

/// Destination of an import.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Import<'a> {
    /// Folder of the project's cassettes.
    pub folder: &'a Path,
    /// Scenario name.
    pub scenario: &'a str,
    /// Case name.
    pub case: &'a str,
}

/// Imports a VCR.py cassette; returns the imported exchanges and the new file.
///
/// # Errors
/// If the file cannot be read or has nothing to import, or a recording of that name exists.
pub(crate) fn import(file: &Path, target: Import<'_>, redactor: &Redactor) -> Result<(Imported, PathBuf), ImportError> {
    let text = files::read_to_string(file).map_err(ImportError::Unreadable)?;
    let path = cassette::path(target.folder, target.scenario, target.case, &LANE);
    if path.exists() {
        return Err(ImportError::Present { scenario: target.scenario.to_owned(), case: target.case.to_owned() });
    }
    let mut imported = cassette::import_vcr(&text, &routed, redactor)?;
    if imported.exchanges.is_empty() {
        let why = imported.refused.into_iter().next();
        return Err(why.map_or(ImportError::Empty, |(_, why)| ImportError::Refused(why)));
    }
    let header = Header {
        scenario: target.scenario.to_owned(),
        case: target.case.to_owned(),
        lane: LANE.to_owned(),
        recorded_at: imported.recorded_at.unwrap_or(jiff::Timestamp::UNIX_EPOCH),
        recorded_from: imported.recorded_from.clone(),
        recorder: format!("VCR.py, imported by ragcheck {}", env!("CARGO_PKG_VERSION")),
        knowledge: String::new(),
        seed: 0,
        subject: String::new(),
        take: 1,
        takes: BTreeMap::new(),
        profiles: imported
            .exchanges
            .iter()
            .map(|one| (one.profile.clone(), known_profile(&one.profile).unwrap_or(&EXACT).version))
            .collect(),
        vars: BTreeMap::new(),
        spans: Vec::new(),
        stopping: None,
    };
    let lane = Cassette::new(header, std::mem::take(&mut imported.exchanges), BTreeMap::new());
    let blobs = cassette::blobs_dir(target.folder, target.scenario);
    lane.save(&path, &blobs, redactor)?;
    imported.exchanges = lane.exchanges;
    Ok((imported, path))
}

/// Route of a URL: by its dialect, or to an unknown service whose requests are matched as a whole.
fn routed(url: &str) -> Route {
    match route::route(url) {
        Some((dialect, path)) => {
            let service = if dialect.searches() { Service::Search } else { Service::Model };
            Route { service: service.as_str().into(), profile: dialect.profile(), path }
        }
        None => Route { service: "other".into(), profile: &EXACT, path: route::path(url) },
    }
}

/// Files at these paths, sorted; a folder stands for the YAML and JSON files directly in it.
///
/// # Errors
/// If a path does not exist or cannot be read.
pub(crate) fn import_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, FileError> {
    let mut found = Vec::new();
    for path in paths {
        let unreadable = |error| FileError::Read { path: path.clone(), error };
        if !path.is_dir() {
            files::metadata(path).map_err(unreadable)?;
            found.push(path.clone());
            continue;
        }
        for files::Entry { path: entry, .. } in files::entries(path).map_err(unreadable)? {
            if entry.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json") {
                found.push(entry);
            }
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Unique case names for files.
#[derive(Debug, Default)]
pub(crate) struct CaseNames(BTreeSet<String>);

impl CaseNames {
    /// A name based on the file's that no earlier file has.
    pub(crate) fn name(&mut self, file: &Path) -> String {
        let name = slug(&file.file_stem().unwrap_or_default().to_string_lossy());
        let mut free = name.clone();
        let mut number = 2;
        while !self.0.insert(free.clone()) {
            free = format!("{name}-{number}");
            number += 1;
        }
        free
    }
}

/// Whether the text is a valid folder name: a to z, 0 to 9 and `-`.
pub(crate) fn is_name(text: &str) -> bool {
    slug(text) == text
}

/// Converts a text into a name of a to z, 0 to 9 and `-`.
fn slug(text: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let words: String = text.chars().map(plain).collect();
    let words: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
    let name: String = words.join("-").chars().take(100).collect();
    if name.is_empty() { "cassette".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_gets_a_name_of_its_own_that_is_like_the_files() {
        let mut names = CaseNames::default();
        let names = ["Test[a-b]_C.yaml", "test-a-b-c.json", "[].yaml"].map(|file| names.name(Path::new(file)));
        assert_eq!(names, ["test-a-b-c", "test-a-b-c-2", "cassette"]);
    }
}

//! A cassette of another recorder, made one of ours through our redaction.

use super::FileError;
use crate::cassette::{self, Cassette, CassetteError, Header, Imported, Profile, Redactor, Refusal, Route, VcrError};
use crate::knowledge::known_profile;
use crate::platform::files;
use crate::provider::wire::route;
use crate::transport::Service;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The lane that an agent which runs elsewhere replays: see docs/how-to/external-agents.md, "Recordings of other tools".
const LANE: &str = "external.base.1";

/// Why a file was not imported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(std::io::Error),
    /// There is a recording of that name.
    #[error("{scenario}/{case} is there already: delete it, or give another --scenario")]
    Present {
        /// The scenario.
        scenario: String,
        /// The case.
        case: String,
    },
    /// It is no cassette of that recorder.
    #[error(transparent)]
    Foreign(#[from] VcrError),
    /// There is nothing in it.
    #[error("it holds no interaction")]
    Empty,
    /// None of its interactions can be taken over; this is why of the first.
    #[error("{0}")]
    Refused(Refusal),
    /// The cassette cannot be written.
    #[error(transparent)]
    Unwritable(#[from] CassetteError),
}

/// Where the exchanges of a file go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Import<'a> {
    /// The project's cassettes.
    pub folder: &'a Path,
    /// The scenario below whose name the cassette is put.
    pub scenario: &'a str,
    /// The case.
    pub case: &'a str,
}

/// Makes a cassette of what VCR.py wrote: what was taken over, and the file.
///
/// # Errors
/// When the file cannot be read or holds nothing to take over, or when there is a recording of that name already.
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
            .map(|one| (one.profile.clone(), known_profile(&one.profile).unwrap_or(&Profile::EXACT).version))
            .collect(),
        vars: BTreeMap::new(),
        stopping: None,
    };
    let lane = Cassette::new(header, std::mem::take(&mut imported.exchanges), BTreeMap::new());
    let blobs = cassette::blobs_dir(target.folder, target.scenario);
    lane.save(&path, &blobs, redactor)?;
    imported.exchanges = lane.exchanges;
    Ok((imported, path))
}

/// Where an address leads: by its dialect, or to a service of no known one, whose requests are matched as a whole.
fn routed(url: &str) -> Route {
    match route::route(url) {
        Some((dialect, path)) => {
            let service = if dialect.searches() { Service::Search } else { Service::Model };
            Route { service: service.as_str().into(), profile: dialect.profile(), path }
        }
        None => Route { service: "other".into(), profile: &Profile::EXACT, path: route::path(url) },
    }
}

/// The files that paths stand for, sorted: of a folder the YAML and JSON files right in it.
///
/// # Errors
/// When a path is not there or cannot be read.
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

/// Names of cases for files, each given once.
#[derive(Debug, Default)]
pub(crate) struct CaseNames(BTreeSet<String>);

impl CaseNames {
    /// A name like the file's that no earlier file has.
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

/// Whether the text can be a folder's name as it is: a to z, 0 to 9 and `-`.
pub(crate) fn is_name(text: &str) -> bool {
    slug(text) == text
}

/// A name of a to z, 0 to 9 and `-` that is like the text.
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

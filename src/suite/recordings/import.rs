//! Imports recordings of other recorders, redacted.

use super::FileError;
use super::files::accepted;
use crate::cassette::foreign::{self, ForeignError, Format, Imported, Refused, Route};
use crate::cassette::{self, Cassette, CassetteError, Header, Redactor};
use crate::knowledge::known_profile;
use crate::platform::files::{self, Entry};
use crate::provider::EXACT;
use crate::provider::wire::route;
use crate::transport::{Service, raw};
use std::cell::Cell;
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
    Present { scenario: String, case: String },
    /// It is not a recording that is known.
    #[error(transparent)]
    Foreign(#[from] ForeignError),
    /// It is empty.
    #[error("it is a recording of {} without any {}", .0.name(), .0.item())]
    Empty(Format),
    /// None of its exchanges can be imported.
    #[error("none of its exchanges can be imported")]
    Refused(Format, Vec<Refused>),
    /// The cassette cannot be written.
    #[error(transparent)]
    Unwritable(#[from] CassetteError),
}

/// Destination of an import.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Import<'a> {
    /// Folder of the project's cassettes.
    pub folder: &'a Path,
    pub scenario: &'a str,
    pub case: &'a str,
}

/// Imports a file of the format that is asked for, or else of the one that it has; returns the imported exchanges and
/// the new file.
///
/// # Errors
/// If the file cannot be read or has nothing to import, or a recording of that name exists.
pub(crate) fn import(
    file: &Path,
    format: Option<Format>,
    target: Import<'_>,
    redactor: &Redactor,
) -> Result<(Imported, PathBuf), ImportError> {
    let bytes = files::read(file).map_err(ImportError::Unreadable)?;
    let path = cassette::path(target.folder, target.scenario, target.case, &LANE);
    if path.exists() {
        return Err(ImportError::Present { scenario: target.scenario.to_owned(), case: target.case.to_owned() });
    }
    let mut imported = foreign::import(&bytes, format, &routed, redactor)?;
    if imported.exchanges.is_empty() {
        let (format, refused) = (imported.format, imported.refused);
        return Err(if refused.is_empty() {
            ImportError::Empty(format)
        } else {
            ImportError::Refused(format, refused)
        });
    }
    let header = Header {
        scenario: target.scenario.to_owned(),
        case: target.case.to_owned(),
        lane: LANE.to_owned(),
        recorded_at: imported.recorded_at.unwrap_or(jiff::Timestamp::UNIX_EPOCH),
        recorded_from: imported.recorded_from.clone(),
        recorder: format!("{}, imported by ragcheck {}", imported.format.name(), env!("CARGO_PKG_VERSION")),
        take: 1,
        profiles: imported
            .exchanges
            .iter()
            .map(|one| (one.profile.clone(), known_profile(&one.profile).unwrap_or(&EXACT).version))
            .collect(),
        ..Header::default()
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
            let service = if dialect.searches { Service::Search } else { Service::Model };
            Route { service: service.as_str().into(), profile: dialect.profile, path, document: None }
        }
        None => Route { service: "other".into(), profile: &EXACT, path: route::path(url), document: Some(raw::packed) },
    }
}

/// File name endings of recordings: what a folder has besides is passed over.
const ENDINGS: [&str; 6] = ["gz", "har", "httprr", "json", "yaml", "yml"];

/// Files at these paths, and in folders all below them that end like recordings do, sorted; and how many other files
/// these folders have. Links below a folder are not followed, and `.git` is passed over.
pub(crate) fn import_files(paths: &[PathBuf]) -> Result<(Vec<PathBuf>, usize), FileError> {
    let others = Cell::new(0);
    let below = |entry: &Entry| {
        if entry.is_folder {
            return Ok(!entry.path.ends_with(".git"));
        }
        let ends =
            entry.path.extension().is_some_and(|end| ENDINGS.iter().any(|ending| end.eq_ignore_ascii_case(ending)));
        let taken = ends && entry.path.symlink_metadata()?.is_file();
        others.set(others.get() + usize::from(!taken));
        Ok(taken)
    };
    Ok((accepted(paths, &below)?, others.get()))
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

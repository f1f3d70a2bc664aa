//! `ragcheck cassette import`: cassettes of other recorders become lanes, one a file, through our redaction.

use super::arguments::Import;
use super::scan::known;
use crate::cassette::{self, Cassette, CassetteError, Header, Imported, Redactor, Refusal, Route, VcrError};
use crate::cli::exit::Exit;
use crate::cli::output::{self, Problem};
use crate::cli::run::variables;
use crate::provider::wire::{Dialect, route};
use crate::scenario;
use crate::trace::text::plural;
use crate::trace::text::quote;
use crate::transport::{Service, profile};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The lane that an agent which runs elsewhere replays: see docs/external-agents.md, "Recordings of other tools".
const LANE: &str = "external.base.1";

/// Does what `ragcheck cassette import` was asked to.
///
/// # Errors
/// When a path is not there, or the scenario's name cannot be a folder's.
pub fn run(given: &Import) -> Result<Exit, Problem> {
    let here = std::env::current_dir().map_err(|why| format!("the current folder cannot be read: {why}"))?;
    let root = scenario::find_root(&here);
    let project = scenario::load_project(&root)?;
    if slug(&given.scenario) != given.scenario {
        return Err(Problem::Words(format!(
            "--scenario: `{}` is not a name: use a to z, 0 to 9 and `-`",
            given.scenario
        )));
    }
    let redactor = Redactor::new(known(&project, variables(given.env_file.as_deref())?));
    let folder = root.join(&project.cassettes);
    let (mut taken, mut whole, mut exchanges, mut losses) = (BTreeSet::new(), 0, 0, BTreeSet::new());
    let files = files(&given.paths)?;
    for file in &files {
        let shown = quote(&file.display().to_string(), 400);
        let target = Target { folder: &folder, scenario: &given.scenario, case: free(file, &mut taken) };
        match import(file, &target, &redactor) {
            Err(why) => output::remark(&format!("{shown}: not imported: {why}")),
            Ok((imported, path)) => {
                let path = path.strip_prefix(&here).unwrap_or(&path).display().to_string();
                let count = imported.exchanges.len();
                output::result(&format!("{shown}: {} -> {path}\n", plural(count, "exchange")));
                let foreign = imported.exchanges.iter().filter(|exchange| exchange.service == "other").count();
                if foreign > 0 {
                    output::remark(&format!("{shown}: {foreign} of them of no dialect known here: matched exactly"));
                }
                for (number, why) in &imported.refused {
                    output::remark(&format!("{shown}: interaction {number} not imported: {why}"));
                }
                exchanges += count;
                losses.extend(imported.losses);
                whole += usize::from(imported.refused.is_empty());
            }
        }
    }
    for loss in losses {
        output::remark(&format!("note: {loss}"));
    }
    let (exchanges, files_words) = (plural(exchanges, "exchange"), plural(files.len(), "file"));
    output::result(&format!("{exchanges} imported; {whole} of {files_words} whole\n"));
    Ok(if whole == files.len() { Exit::Passed } else { Exit::Incomplete })
}

/// Where one file's exchanges go.
struct Target<'a> {
    folder: &'a Path,
    scenario: &'a str,
    case: String,
}

/// Why a file was not imported.
#[derive(Debug, thiserror::Error)]
enum ImportError {
    #[error("it cannot be read: {0}")]
    Unreadable(std::io::Error),
    #[error("{scenario}/{case} is there already: delete it, or give another --scenario")]
    Present { scenario: String, case: String },
    #[error(transparent)]
    Foreign(#[from] VcrError),
    #[error("it holds no interaction")]
    Empty,
    #[error("{0}")]
    Refused(Refusal),
    #[error(transparent)]
    Unwritable(#[from] CassetteError),
}

fn import(file: &Path, target: &Target<'_>, redactor: &Redactor) -> Result<(Imported, PathBuf), ImportError> {
    let text = fs::read_to_string(file).map_err(ImportError::Unreadable)?;
    let path = cassette::path(target.folder, target.scenario, &target.case, &LANE);
    if path.exists() {
        return Err(ImportError::Present { scenario: target.scenario.to_owned(), case: target.case.clone() });
    }
    let mut imported = cassette::import_vcr(&text, &routed, redactor)?;
    if imported.exchanges.is_empty() {
        let why = imported.refused.into_iter().next();
        return Err(why.map_or(ImportError::Empty, |(_, why)| ImportError::Refused(why)));
    }
    let header = Header {
        scenario: target.scenario.to_owned(),
        case: target.case.clone(),
        lane: LANE.to_owned(),
        recorded_at: imported.recorded_at.unwrap_or(jiff::Timestamp::UNIX_EPOCH),
        recorded_from: imported.recorded_from.clone(),
        recorder: format!("VCR.py, imported by ragcheck {}", env!("CARGO_PKG_VERSION")),
        knowledge: String::new(),
        seed: 0,
        take: 1,
        takes: BTreeMap::new(),
        profiles: imported.exchanges.iter().map(|one| (one.profile.clone(), profile(&one.profile).version)).collect(),
        vars: BTreeMap::new(),
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
            let search = matches!(dialect, Dialect::PerplexityAgent | Dialect::PerplexitySonar);
            let service = if search { Service::Search } else { Service::Model };
            Route { service: service.as_str().into(), profile: profile(dialect.name()), path }
        }
        None => Route { service: "other".into(), profile: profile("exact"), path: route::path(url) },
    }
}

/// The files that paths stand for, sorted.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Problem> {
    let mut files = Vec::new();
    for path in paths {
        let unreadable = |why: std::io::Error| format!("{} cannot be read: {why}", path.display());
        if !path.is_dir() {
            fs::metadata(path).map_err(unreadable)?;
            files.push(path.clone());
            continue;
        }
        for entry in fs::read_dir(path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?.path();
            if entry.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json") {
                files.push(entry);
            }
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// A case's name for a file, one that no earlier file has.
fn free(file: &Path, taken: &mut BTreeSet<String>) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = slug(&stem);
    let mut free = name.clone();
    let mut number = 2;
    while !taken.insert(free.clone()) {
        free = format!("{name}-{number}");
        number += 1;
    }
    free
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
        let mut taken = BTreeSet::new();
        let names = ["Test[a-b]_C.yaml", "test-a-b-c.json", "[].yaml"].map(|file| free(Path::new(file), &mut taken));
        assert_eq!(names, ["test-a-b-c", "test-a-b-c-2", "cassette"]);
    }
}

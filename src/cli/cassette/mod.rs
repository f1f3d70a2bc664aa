//! `ragcheck cassette`: manages recordings, one file per verb.

pub(super) mod arguments;
mod diff;
mod import;
mod refresh;
mod rekey;
mod scan;

use super::exit::Exit;
use super::output::Problem;
use crate::suite::recordings::{self, CassetteFile, ServiceDiff};
use arguments::{Cassette, CassetteCommand};
use schemars::JsonSchema;
use std::path::PathBuf;

/// What a verb of `cassette` prints. A `refresh` that records prints the result of the run.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it names them for the schema")]
pub(super) enum Printable {
    /// Of `scan`.
    Scanned(scan::Scanned),
    /// Of `refresh`.
    Due(refresh::Due),
    /// Of `rekey`.
    Rekeyed(rekey::RekeyedFiles),
    /// Of `import`.
    Imported(import::Imported),
    /// Of `diff`: each service.
    Diff(Vec<ServiceDiff>),
}

/// Runs `ragcheck cassette`.
///
/// # Errors
/// If the verb cannot be carried out.
pub(super) fn run(given: &Cassette) -> Result<Exit, Problem> {
    match &given.command {
        CassetteCommand::Scan(given) => scan::run(given),
        CassetteCommand::Refresh(given) => refresh::run(given),
        CassetteCommand::Rekey(given) => rekey::run(given),
        CassetteCommand::Import(given) => import::run(given),
        CassetteCommand::Diff(given) => diff::run(given),
    }
}

/// Cassettes at and below these paths; without paths, those of the project.
fn cassettes(paths: &[PathBuf]) -> Result<Vec<CassetteFile>, Problem> {
    let here = super::select::current_folder()?;
    if !paths.is_empty() {
        return Ok(recordings::cassettes(&here, paths)?);
    }
    let (root, project) = super::select::project()?;
    Ok(recordings::cassettes(&here, &[root.join(project.cassettes)])?)
}

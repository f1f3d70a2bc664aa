//! `ragcheck cassette`: care for recordings, one file a verb.

pub mod arguments;
mod diff;
mod files;
mod import;
mod refresh;
mod rekey;
mod scan;

use super::exit::Exit;
use super::output::Problem;
use arguments::{Cassette, CassetteCommand};

/// Does what `ragcheck cassette` was asked to.
///
/// # Errors
/// When it cannot be done at all.
pub fn run(given: &Cassette) -> Result<Exit, Problem> {
    match &given.command {
        CassetteCommand::Scan(given) => scan::run(given),
        CassetteCommand::Refresh(given) => refresh::run(given),
        CassetteCommand::Rekey(given) => rekey::run(given),
        CassetteCommand::Import(given) => import::run(given),
        CassetteCommand::Diff(given) => diff::run(given),
    }
}

//! Keys by this build's matching profiles, from the stored requests of a cassette.

use crate::cassette::{Cassette, CassetteError, Redactor, RekeyProblem, Rekeyed};
use crate::knowledge::known_profile;
use std::path::Path;

/// Why a cassette cannot be rekeyed; it is as it was.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RekeyError {
    /// It cannot be read or written.
    #[error(transparent)]
    Cassette(#[from] CassetteError),
    /// What it stores does not suffice.
    #[error(transparent)]
    Incomplete(#[from] RekeyProblem),
}

/// Rekeys one file, whose blobs are in `blobs`, and converts it where it is of the first format: what changed, and how many exchanges it has.
///
/// # Errors
/// When it cannot be read or written, or a stored request is incomplete.
pub(crate) fn rekey(path: &Path, blobs: &Path) -> Result<(Rekeyed, usize), RekeyError> {
    let mut cassette = Cassette::load_to_convert(path, blobs)?;
    let rekeyed = cassette.rekey(known_profile)?;
    if !rekeyed.is_empty() {
        cassette.save(path, blobs, &Redactor::default())?;
    }
    Ok((rekeyed, cassette.exchanges.len()))
}

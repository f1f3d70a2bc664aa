//! Recomputes the keys of a cassette from its stored requests, with this build's matching profiles.

use crate::cassette::{Cassette, CassetteError, Redactor, RekeyProblem, Rekeyed};
use crate::knowledge::known_profile;
use std::path::Path;

/// Why a cassette cannot be rekeyed; it is then unchanged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RekeyError {
    /// It cannot be read or written.
    #[error(transparent)]
    Cassette(#[from] CassetteError),
    /// Its stored requests are incomplete.
    #[error(transparent)]
    Incomplete(#[from] RekeyProblem),
}

/// Rekeys one file with blobs in `blobs`, and converts it from format 1 if necessary. Returns the changes, and the
/// number of exchanges.
///
/// # Errors
/// If it cannot be read or written, or a stored request is incomplete.
pub(crate) fn rekey(path: &Path, blobs: &Path) -> Result<(Rekeyed, usize), RekeyError> {
    let mut cassette = Cassette::load_to_convert(path, blobs)?;
    let rekeyed = cassette.rekey(known_profile)?;
    if !rekeyed.is_empty() {
        cassette.save(path, blobs, &Redactor::default())?;
    }
    Ok((rekeyed, cassette.exchanges.len()))
}

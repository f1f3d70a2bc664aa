//! Allows one writer of recordings per project: a run, a grading, an import or a rekeying.

use crate::platform::files::{self, LockError, ProjectLock};
use jiff::{Timestamp, Unit};

/// Takes the project's lock for `command`, which other processes see in their error.
///
/// # Errors
/// [`LockError::Held`] if another process holds it.
#[expect(clippy::disallowed_methods, reason = "shows others since when the lock is held")]
pub(crate) fn lock(command: &str) -> Result<Option<ProjectLock>, LockError> {
    let since = Timestamp::now().round(Unit::Second).unwrap_or_default();
    files::lock(&format!("`ragcheck {command}` (process {}, since {since})", std::process::id()))
}

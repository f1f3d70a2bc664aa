//! One writer of recordings in a project at a time: a run, a grading, an import, a rekeying.

use crate::platform::files::{self, LockError, ProjectLock};
use jiff::{Timestamp, Unit};

/// The project's lock for `command`, which those that come meanwhile are told of.
///
/// # Errors
/// [`LockError::Held`] while another process has it.
#[expect(clippy::disallowed_methods, reason = "others are told since when they are kept out")]
pub(crate) fn lock(command: &str) -> Result<Option<ProjectLock>, LockError> {
    let since = Timestamp::now().round(Unit::Second).unwrap_or_default();
    files::lock(&format!("`ragcheck {command}` (process {}, since {since})", std::process::id()))
}

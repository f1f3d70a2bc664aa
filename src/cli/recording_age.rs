//! Age from which recordings cause a warning, from the command line and the project file.

use super::output::Problem;
use crate::platform::clock::{Clock, RealClock};
use crate::scenario::Project;
use crate::suite::recordings::Ages;
use std::time::Duration;

/// Variable that overrides the clock (RFC 3339), so that a rerun pipeline prints the same warnings.
const NOW: &str = "RAGCHECK_NOW";

/// The command line's limit, else the project file's, relative to now.
///
/// # Errors
/// If `RAGCHECK_NOW` is not a timestamp, or the project's age is invalid.
pub(super) fn ages(given: Option<Duration>, project: &Project) -> Result<Ages, Problem> {
    let now = match std::env::var(NOW) {
        Ok(text) => text.parse().map_err(|why| format!("{NOW} is not a time such as 2026-02-11T09:14:03Z: {why}"))?,
        Err(_) => RealClock::start().wall(),
    };
    Ok(Ages::new(given.or_else(|| project.recordings.warn_after()), now))
}

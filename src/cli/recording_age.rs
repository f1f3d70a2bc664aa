//! From which age on recordings are warned of, as the command line and the project file say.

use super::output::Problem;
use crate::platform::clock::{Clock, RealClock};
use crate::scenario::Project;
use crate::suite::recordings::Ages;
use std::time::Duration;

/// The variable that stands in for the machine's clock (RFC 3339): a pipeline that is run again gives the same warnings.
const NOW: &str = "RAGCHECK_NOW";

/// The limit of the command line, else that of the project file, counted to now.
///
/// # Errors
/// When `RAGCHECK_NOW` is no time, or the project's age is none.
pub(super) fn ages(given: Option<Duration>, project: &Project) -> Result<Ages, Problem> {
    let now = match std::env::var(NOW) {
        Ok(text) => text.parse().map_err(|why| format!("{NOW} is not a time such as 2026-02-11T09:14:03Z: {why}"))?,
        Err(_) => RealClock::start().wall(),
    };
    let limit = match given {
        Some(limit) => Some(limit),
        None => project.recordings.warn_after(),
    };
    Ok(Ages::new(limit, now))
}

//! The exit code of a run that more than its criteria decided, as `exit-code.json` of the run folder keeps it.

use serde::{Deserialize, Serialize};

/// What `ragcheck run --baseline` ended with, where `--fail-on` or the comparison itself decided it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidedExit {
    /// The exit code of the process.
    pub exit_code: u8,
    /// What decided it, in a sentence without its full stop.
    pub why: String,
}

//! Writes `environment.json`: facts that differ between machines and runs, and therefore are in no other file.

use crate::platform::{files, secrets};
use crate::trace;
use serde_json::json;
use std::io;
use std::path::Path;

/// What a kind of run knows of itself.
#[derive(Debug, Default)]
pub(super) struct Facts<'f> {
    /// The mode, as on the command line.
    pub mode: &'f str,
    /// Number of concurrent trials, if it was given.
    pub jobs: Option<u16>,
    /// The run's identity in the history.
    pub point: Option<&'f str>,
    /// When it was made, if that is not now (RFC 3339, UTC).
    pub made_at: Option<&'f str>,
}

/// Writes the file into a run folder; `root` is the project.
#[expect(clippy::disallowed_methods, reason = "environment.json is where the wall clock may show")]
pub(super) fn write(folder: &Path, root: &Path, facts: &Facts<'_>) -> io::Result<()> {
    let environment = json!({
        "ragcheck": env!("CARGO_PKG_VERSION"),
        "written_at": facts.made_at.map_or_else(|| jiff::Timestamp::now().to_string(), str::to_owned),
        "mode": facts.mode,
        "jobs": facts.jobs,
        "point": facts.point,
        "project": root.display().to_string(),
        "arguments": std::env::args().skip(1).collect::<Vec<_>>(),
        "system": std::env::consts::OS,
        "processor": std::env::consts::ARCH,
    });
    files::write(folder.join(trace::ENVIRONMENT), secrets::clean_bytes(&serde_json::to_vec_pretty(&environment)?))
}

//! Writes `environment.json`: facts that differ between machines and runs, and therefore are in no other file.

use crate::platform::{files, secrets};
use crate::trace;
use serde_json::json;
use std::io;
use std::path::Path;

/// Writes the file into a run folder; `point` is the run's identity in the history.
#[expect(clippy::disallowed_methods, reason = "environment.json is where the wall clock may show")]
pub(super) fn write(folder: &Path, mode: &str, jobs: Option<u16>, root: &Path, point: Option<&str>) -> io::Result<()> {
    let environment = json!({
        "ragcheck": env!("CARGO_PKG_VERSION"),
        "written_at": jiff::Timestamp::now().to_string(),
        "mode": mode,
        "jobs": jobs,
        "point": point,
        "project": root.display().to_string(),
        "arguments": std::env::args().skip(1).collect::<Vec<_>>(),
        "system": std::env::consts::OS,
        "processor": std::env::consts::ARCH,
    });
    files::write(folder.join(trace::ENVIRONMENT), secrets::clean_bytes(&serde_json::to_vec_pretty(&environment)?))
}

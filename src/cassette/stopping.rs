//! Stopping design of lanes recorded until decided: `stopping.json` beside the cases of a scenario.
//!
//! The number of lanes depended on their results, so a replay must judge them by the same rule, never as a fixed
//! number. Readers of the lanes read this file first; if it is missing, each lane repeats the design in its header. A
//! reader refuses a newer version, because it would not know the rule.

use crate::platform::files;
use crate::trace::{Seal, seal, sealed};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// Version of the file that this build writes.
const VERSION: u32 = 1;

/// Stopping design that determined the number of a scenario's lanes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoppingDesign {
    /// Format version.
    pub version: u32,
    /// Stopping rule: `complete passes`, evaluated after each pass.
    pub rule: String,
    /// Maximum number of passes; a pass is one repetition of every case.
    pub max_passes: u32,
    /// Probability of wrongly passing a gate.
    pub alpha_pass: f64,
    /// Probability of wrongly failing any gate.
    pub alpha_fail: f64,
    /// Scenarios recorded together, in order.
    pub together: Vec<String>,
    /// The pass after which every gate was decided; `None` if the recording did not finish.
    pub stopped_after: Option<u32>,
    /// Whether the file was edited by hand.
    #[serde(skip)]
    pub edited: bool,
}

/// Why a design cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoppingError {
    /// The file cannot be read or written.
    #[error("{path}: {error}", path = path.display())]
    File { path: PathBuf, error: io::Error },
    /// The file is not a valid design.
    #[error("{path}: not a stopping design: {error}; record the scenario again", path = path.display())]
    Parse { path: PathBuf, error: serde_json::Error },
    /// A newer build wrote it.
    #[error("{path}: stopping design {version} is newer than this build reads ({VERSION}); update ragcheck", path = path.display())]
    Newer { path: PathBuf, version: u32 },
}

/// Path of a scenario's design below the cassettes.
pub(crate) fn stopping_path(cassettes: &Path, scenario: &str) -> PathBuf {
    cassettes.join(scenario).join("stopping.json")
}

impl StoppingDesign {
    /// A design whose recording has not finished.
    pub fn new(max_passes: u32, alpha_pass: f64, alpha_fail: f64, together: Vec<String>) -> Self {
        let rule = "complete passes".to_owned();
        Self {
            version: VERSION,
            rule,
            max_passes,
            alpha_pass,
            alpha_fail,
            together,
            stopped_after: None,
            edited: false,
        }
    }

    /// Reads a design; `None` if there is none: the number of lanes was then fixed by the plan.
    ///
    /// # Errors
    /// If the file exists and cannot be used.
    pub fn load(path: &Path) -> Result<Option<Self>, StoppingError> {
        let text = match files::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoppingError::File { path: path.to_owned(), error }),
        };
        let parsed: Result<Self, _> = serde_json::from_str(&text);
        match parsed {
            Ok(design) if design.version > VERSION => {
                Err(StoppingError::Newer { path: path.to_owned(), version: design.version })
            }
            Ok(design) => Ok(Some(Self { edited: sealed(&text) == Seal::Edited, ..design })),
            Err(error) => Err(StoppingError::Parse { path: path.to_owned(), error }),
        }
    }

    /// Writes the design to a temporary file and renames it.
    pub fn save(&self, path: &Path) -> Result<(), StoppingError> {
        let text = seal(&serde_json::to_string_pretty(self).unwrap_or_default()).0 + "\n";
        files::replace(path, &text).map_err(|error| StoppingError::File { path: path.to_owned(), error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_design_comes_back_as_it_was_written_and_a_newer_one_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = stopping_path(folder.path(), "mine");
        assert_eq!(StoppingDesign::load(&path).expect("none"), None);
        let mut design = StoppingDesign::new(12, 0.05, 0.05, vec!["mine".into(), "other".into()]);
        design.stopped_after = Some(4);
        design.save(&path).expect("saved");
        assert_eq!(StoppingDesign::load(&path).expect("read"), Some(design.clone()));
        design.version += 1;
        design.save(&path).expect("saved");
        assert!(matches!(StoppingDesign::load(&path), Err(StoppingError::Newer { version: 2, .. })));
        fs::write(&path, "{").expect("written");
        let error = StoppingDesign::load(&path).expect_err("broken").to_string();
        assert!(error.contains("stopping.json") && error.contains("line 1"), "{error}");
    }
}

//! The stopping design of recordings that were made until decided: `stopping.json` beside the cases of a scenario.
//!
//! How many lanes such a scenario has was decided by what they showed, so a replay judges them by the same rule and
//! never as if their number had been fixed. Whoever reads the lanes reads this first; where the file is gone, each lane
//! says the same in its header. A reader refuses a newer version:
//! it would not know the rule.

use crate::platform::files;
use crate::trace::{Seal, seal, sealed};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// Version of the file that this build writes.
const VERSION: u32 = 1;

/// How the lanes of one scenario came to be as many as they are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoppingDesign {
    /// Format version.
    pub version: u32,
    /// The rule: `complete passes`, looked at after each.
    pub rule: String,
    /// Passes at most; one is one repetition of every case.
    pub max_passes: u32,
    /// Error probability of passing a gate wrongly.
    pub alpha_pass: f64,
    /// Error probability of failing any gate wrongly.
    pub alpha_fail: f64,
    /// Scenarios that were recorded together, in order.
    pub together: Vec<String>,
    /// The pass after which every gate was settled; `None` when the recording did not come to its end.
    pub stopped_after: Option<u32>,
    /// Whether the file was edited by hand after it was written.
    #[serde(skip)]
    pub edited: bool,
}

/// Why a design cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoppingError {
    /// The file cannot be read or written.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file does not hold a design.
    #[error("{path}: not a stopping design: {error}; record the scenario again", path = path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Why, with line and column.
        error: serde_json::Error,
    },
    /// Written by a newer build.
    #[error("{path}: stopping design {version} is newer than this build reads ({VERSION}); update ragcheck", path = path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
}

/// The file of a scenario's design below the cassettes.
pub(crate) fn stopping_path(cassettes: &Path, scenario: &str) -> PathBuf {
    cassettes.join(scenario).join("stopping.json")
}

impl StoppingDesign {
    /// A design that has not been followed to its end.
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

    /// Reads a design; `None` where there is none, so that the lanes are as many as were planned.
    ///
    /// # Errors
    /// When there is one that cannot be used.
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

    /// Writes a design, beside and renamed.
    ///
    /// # Errors
    /// When it cannot be written.
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

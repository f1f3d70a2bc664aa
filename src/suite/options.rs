//! How a suite is run.

use super::Progress;
use crate::plan::Selection;
use crate::suite::recordings::Ages;
use crate::trial::Variables;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Trials at the same time in a live or recording run that was not told how many.
pub(crate) const DEFAULT_JOBS: u16 = 4;

/// Where answers come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// From cassettes; opens no socket.
    #[default]
    Replay,
    /// From the providers; cassettes are written and then replayed.
    Record,
    /// From the providers; nothing is recorded.
    Live,
}

impl Mode {
    /// As `environment.json` writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Record => "record",
            Self::Live => "live",
        }
    }
}

/// What the recordings were at a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BaseCommit {
    /// The beginning of its hash, for people.
    pub name: String,
    /// Files below the folder of recordings that are as they were there, by path from that folder with forward slashes.
    pub same: BTreeSet<String>,
}

/// How a suite is run; the default replays every trial into the project's folder of reports.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Where answers come from.
    pub mode: Mode,
    /// Which trials; its `passes` is set by the run.
    pub selection: Selection,
    /// Run again what did not pass in the run of this folder, and take the other trials over from it.
    pub failed: Option<PathBuf>,
    /// Go on with the newest unfinished run of the same plan.
    pub resume: bool,
    /// Seed of the run.
    pub seed: u64,
    /// Go on in complete passes until every required gate is decided; for live and recording runs.
    pub until_decided: bool,
    /// Trials that a run until decided may take.
    pub max_trials: Option<u64>,
    /// Threads in replay (one a core by default), trials at the same time otherwise ([`DEFAULT_JOBS`] by default).
    pub jobs: Option<u16>,
    /// Requests that a live or recording run may send.
    pub max_calls: Option<u64>,
    /// US dollars that a live or recording run may spend, by the project's prices.
    pub max_cost: Option<f64>,
    /// Time for a live or recording run.
    pub timeout: Option<Duration>,
    /// Variables with the providers' keys; they win over those of the process.
    pub variables: Variables,
    /// Where the run folder goes; the project's folder of reports by default.
    pub reports: Option<PathBuf>,
    /// Which recordings are too old; none by default.
    pub ages: Option<Ages>,
    /// Labels of the point that a live or recording run adds to the project's history; `None` adds none.
    pub history: Option<BTreeMap<String, String>>,
    /// How far the run is, for another thread to read.
    pub progress: Arc<Progress>,
    /// A commit, on a pull request its base: the verdict names the recordings that are not as they were there.
    pub base: Option<BaseCommit>,
    /// Keep the figures of every case, for a comparison.
    pub for_comparison: bool,
}

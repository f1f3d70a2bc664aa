//! Options of a run.

use super::Progress;
use crate::plan::{Hold, Partition, Selection};
use crate::platform::words;
use crate::suite::recordings::Ages;
use crate::trial::Variables;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Default number of concurrent trials in live and recording runs.
pub(crate) const DEFAULT_JOBS: u16 = 4;

words! {
    /// Source of services' responses; the comments of its values are the help of `--mode`.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
    pub enum Mode {
        /// From cassettes; opens no socket.
        #[default]
        Replay = "replay",
        /// From the providers; cassettes are written and then replayed.
        Record = "record",
        /// From the providers; nothing is recorded.
        Live = "live",
    }
}

/// The recordings at a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BaseCommit {
    /// Abbreviated commit hash, for display.
    pub name: String,
    /// Files that are unchanged since that commit, relative to the recordings folder, with forward slashes.
    pub same: BTreeSet<String>,
    /// Files of that commit that are not there any more, named in the same way.
    pub deleted: BTreeSet<String>,
    /// The baseline of the run, if it differs from that of the commit or is not there; else empty.
    pub baseline: String,
}

/// Options of a run; the default replays every trial into the project's reports folder.
///
/// ```
/// use ragcheck::{RunOptions, Selection};
///
/// let selection = Selection { tags: vec!["smoke".into()], ..Selection::default() };
/// let options = RunOptions { selection, jobs: Some(2), ..RunOptions::default() };
/// assert_eq!(options.mode, ragcheck::Mode::Replay);
/// ```
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Source of services' responses.
    pub mode: Mode,
    /// What a live or recording run holds; `None` to ask every service.
    pub hold: Option<Hold>,
    /// Selected trials; the run sets `passes`.
    pub selection: Selection,
    /// The partition of the selected trials that runs here; `None` runs all. Limits of requests and costs, and the rates of the
    /// project's providers, are those of all partitions together.
    pub partition: Option<Partition>,
    /// Rerun the trials that did not pass in this run folder, and take the others from it.
    pub failed: Option<PathBuf>,
    /// Resume the newest unfinished run of the same plan.
    pub resume: bool,
    /// Seed of the run.
    pub seed: u64,
    /// Run complete passes until every required gate is decided; live and recording runs only.
    pub until_decided: bool,
    /// Maximum number of trials of a run until decided.
    pub max_trials: Option<u64>,
    /// Threads in replay (default: one per core, and at least 4 trials of external agents), else number of concurrent
    /// trials (default: 4).
    pub jobs: Option<u16>,
    /// Maximum number of requests of a live or recording run.
    pub max_calls: Option<u64>,
    /// Maximum cost of a live or recording run in US dollars, by the project's prices.
    pub max_cost: Option<f64>,
    /// Time limit of a live or recording run.
    pub timeout: Option<Duration>,
    /// Variables with the providers' keys; they take precedence over the process environment.
    pub variables: Variables,
    /// Parent of the run folder; the project's reports folder by default.
    pub reports: Option<PathBuf>,
    /// Age limit of recordings; none by default.
    pub ages: Option<Ages>,
    /// Labels of the point that a live or recording run adds to the project's history; `None` adds no point.
    pub history: Option<BTreeMap<String, String>>,
    /// Progress counters, for another thread to read.
    pub progress: Arc<Progress>,
    /// A commit, such as the base of a pull request: the verdict lists recordings that changed since.
    pub base: Option<BaseCommit>,
    /// Keep the figures of every case, for a comparison.
    pub for_comparison: bool,
}

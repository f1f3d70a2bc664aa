//! Runs a suite from its files to a written run folder: load, plan, run, evaluate, report.
//!
//! | entry point | does |
//! |---|---|
//! | [`Suite::load`] | reads scenarios, criteria and the project file |
//! | [`Suite::plan`] | says which trials a selection makes |
//! | [`Suite::run`] | runs them from recordings or against providers, evaluates the traces as they come, writes the run folder |
//! | `Suite::fault_matrix` | strikes passing cases with faults, or poisons what their model reads, one at a time |
//! | [`grade`](fn@grade) | has a model grade the answers of a run folder, and evaluates it with the grades |
//! | [`failed_trials`] | the trials of a run folder that did not pass |
//! | [`import`](fn@import) | makes a run folder of another agent's conversations |
//! | [`merge`](fn@merge) | makes one run of the runs of its partitions |
//! | `storage` | keeps runs and recordings in S3-compatible storage |
//!
//! Nothing here prints: remarks beside the verdicts are in [`FinishedRun`].

mod draws;
mod environment;
mod error;
pub(crate) mod evaluation;
pub(crate) mod exec;
pub(crate) mod faults;
mod first_replay;
mod grading;
pub(crate) mod import;
mod import_run;
mod merge;
pub(crate) mod mutation;
mod never_asked;
mod options;
mod poison;
mod progress;
pub(crate) mod recordings;
pub(crate) mod review;
mod run;
pub(crate) mod storage;

pub use error::SuiteError;
use error::Unlisted;
pub(crate) use grading::{GradedRun, GradingOptions, grade};
pub(crate) use import_run::{OfProject, import, imported};
pub(crate) use merge::{MergeError, merge};
pub(crate) use options::{BaseCommit, DEFAULT_JOBS};
pub use options::{Mode, RunOptions};
pub use progress::Progress;
pub(crate) use progress::Reached;
pub use run::FinishedRun;
pub(crate) use run::{HistoryPoint, StoppedRun};

use crate::gate::{Evaluation, Verdict};
use crate::plan::{self, Plan, Selection};
use crate::platform::files;
use crate::scenario::{self, Loaded};
use crate::settings::DeclaredFault;
use crate::suite::evaluation::RecordedPasses;
use crate::trace;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Scenarios, criteria and project settings, read and checked.
#[derive(Debug, Clone)]
pub struct Suite {
    loaded: Arc<Loaded>,
}

impl Suite {
    /// Loads the project at or above `folder`: the scenarios at `paths` (files or folders; by default the project's)
    /// and the criteria (`criteria` overrides the project's file).
    ///
    /// # Errors
    /// [`SuiteError::Files`] with all mistakes in the files and their positions.
    ///
    /// ```
    /// use ragcheck::{Suite, SuiteError};
    ///
    /// let missing = Suite::load(".".as_ref(), &["scenarios/no-such.yaml".into()], None);
    /// assert!(matches!(missing, Err(SuiteError::Files(_))));
    /// ```
    pub fn load(folder: &Path, paths: &[PathBuf], criteria: Option<&Path>) -> Result<Self, SuiteError> {
        let loaded = scenario::load(&scenario::find_root(folder), paths, criteria, &crate::catalogues())?;
        Ok(Self { loaded: Arc::new(loaded) })
    }

    /// The suite with faults that strike every case.
    pub(crate) fn with_faults(self, faults: &[DeclaredFault]) -> Self {
        let mut loaded = Arc::unwrap_or_clone(self.loaded);
        for source in &mut loaded.scenarios {
            source.scenario.faults.extend_from_slice(faults);
        }
        Self { loaded: Arc::new(loaded) }
    }

    /// The loaded files.
    pub(crate) fn loaded(&self) -> &Arc<Loaded> {
        &self.loaded
    }

    /// Plans `selection` as a replay of its recordings, and returns how they were recorded: a selection recorded until
    /// decided is planned pass by pass. [`Suite::run`] fills in the state machines.
    ///
    /// # Errors
    /// If nothing is selected, or the selection names something unknown.
    pub(crate) fn plan(&self, selection: &Selection, seed: u64) -> Result<(Plan, Option<RecordedPasses>), SuiteError> {
        let recorded = evaluation::recorded_passes(&self.loaded, selection)?;
        let passes = recorded.as_ref().map(|recorded| recorded.most);
        Ok((self.plan_passes(selection, seed, passes)?, recorded))
    }

    /// Plans `selection` with `passes` complete passes, or else with the repetitions of the cases.
    ///
    /// # Errors
    /// If nothing is selected, or the selection names something unknown.
    pub(crate) fn plan_passes(
        &self,
        selection: &Selection,
        seed: u64,
        passes: Option<u32>,
    ) -> Result<Plan, SuiteError> {
        let plan = plan::build(&self.loaded, &Selection { passes, ..selection.clone() }, seed)?;
        if plan.trials.is_empty() { Err(SuiteError::NothingSelected) } else { Ok(plan) }
    }

    /// Folder of the project's runs.
    pub fn reports(&self) -> PathBuf {
        self.loaded.root.join(&self.loaded.project.reports)
    }
}

/// Trials of a run folder that did not pass, from its `run.json`.
///
/// # Errors
/// If the file cannot be read, or every trial passed.
pub(crate) fn failed_trials(folder: &Path) -> Result<BTreeSet<String>, SuiteError> {
    let file = folder.join(trace::RUN);
    let text = files::read_to_string(&file)
        .map_err(|error| SuiteError::NoEarlierRun { file: file.clone(), reason: error.to_string() })?;
    let earlier: Evaluation = serde_json::from_str(&text)
        .map_err(|error| SuiteError::NoEarlierRun { file: file.clone(), reason: error.to_string() })?;
    let failed: BTreeSet<String> = earlier
        .trials
        .iter()
        .filter(|trial| trial.verdict != Verdict::Pass)
        .map(|trial| trial.id.into_owned())
        .collect();
    if failed.is_empty() { Err(SuiteError::EveryTrialPassed { file }) } else { Ok(failed) }
}

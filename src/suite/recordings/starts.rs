//! The lanes `start` of a plan: what the processes of external agents ask before their first turn.

use super::spending::{Spending, spending};
use crate::cassette::{self, Cassette, CassetteError};
use crate::plan::{Plan, PlannedTrial};
use crate::trace::EXTERNAL;
use crate::trial::Opened;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The lane `start` of a scenario and a variant; processes that ask nothing have no file.
#[derive(Debug)]
pub(crate) struct StartLane {
    /// Index of the scenario in the plan.
    pub scenario: usize,
    pub variant: String,
    /// Name in messages: `scenario/flow.variant.start`, the path of the file below the folder of cassettes without its
    /// ending.
    pub name: String,
    pub path: PathBuf,
    blobs: PathBuf,
}

impl StartLane {
    /// Reads the recording; `None` if there is none. `root` is taken off paths in messages.
    ///
    /// # Errors
    /// [`CassetteError`] if it is broken.
    pub(super) fn recording(&self, root: &Path) -> Result<Option<Cassette>, CassetteError> {
        let shown = self.path.strip_prefix(root).unwrap_or(&self.path);
        match Cassette::load_as(&self.path, shown, &self.blobs) {
            Ok(cassette) => Ok(Some(cassette)),
            Err(CassetteError::Missing { .. }) => Ok(None),
            Err(why) => Err(why),
        }
    }
}

/// The lanes `start` that the agents of a plan may have, in the folder `cassettes`.
pub(crate) fn start_lanes(plan: &Plan, cassettes: &Path) -> Vec<StartLane> {
    let started = plan
        .scenarios
        .iter()
        .enumerate()
        .filter(|(_, scenario)| scenario.agent.as_ref().is_some_and(|agent| !agent.target.command.is_empty()));
    let lanes = started.flat_map(|(place, scenario)| {
        let variants = scenario.variants.iter().filter(|variant| variant.flow == EXTERNAL);
        variants.map(move |variant| {
            let path = cassette::start_path(cassettes, &scenario.name, EXTERNAL, &variant.name);
            let blobs = cassette::blobs_dir(cassettes, &scenario.name);
            let name = path.strip_prefix(cassettes).unwrap_or(&path).with_extension("").display().to_string();
            StartLane { scenario: place, variant: variant.name.clone(), name: name.replace('\\', "/"), path, blobs }
        })
    });
    lanes.collect()
}

/// Spending on the recorded starts of these trials, each counted once.
pub(crate) fn spending_at_start<'t>(
    opened: &Opened,
    plan: &Plan,
    trials: impl Iterator<Item = &'t PlannedTrial>,
) -> Spending {
    let (mut all, mut counted) = (Spending::default(), BTreeSet::new());
    let lanes = start_lanes(plan, &opened.cassettes);
    for trial in trials.filter(|trial| trial.is_external()) {
        let is_of = |lane: &&StartLane| lane.scenario == trial.scenario && lane.variant == trial.lane.variant;
        if let Some(lane) = lanes.iter().find(is_of).filter(|lane| counted.insert(lane.path.clone()))
            && let Ok(Some(cassette)) = lane.recording(&opened.loaded.root)
        {
            all.add(&spending(opened, trial, &cassette));
        }
    }
    all
}

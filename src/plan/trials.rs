//! The planned trials: a list for most readers, and a compact form for runs of a million trials.
//!
//! In `plan.json` they are a list. An entry with `to` is a run of repeats: `id` is the common prefix of their ids
//! (`scenario/case/flow.variant`), `lane` that of the first, `to` the last repetition, `control` means that a control
//! arm follows each, and `seed` is the input for their seeds. Evaluation uses [`Trials::at`], [`Trials::each`] and
//! [`Trials::place_of`], which need no list; access as a slice expands the runs into a list first.

use super::{PlannedTrial, trial_seed};
use crate::platform::bounds::Bound;
use crate::trace::{Arm, Lane};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::OnceLock;

/// The trials of a plan, in order.
#[derive(Debug, Clone, Default)]
pub struct Trials {
    runs: Option<Runs>,
    list: OnceLock<Vec<PlannedTrial>>,
    places: OnceLock<HashMap<Box<str>, usize>>,
}

/// Attributes of a planned trial needed for aggregation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned<'a> {
    /// Index into [`super::Plan::scenarios`].
    pub scenario: usize,
    /// Index into that scenario's cases.
    pub case: usize,
    /// The flow's name.
    pub flow: &'a str,
    /// The variant's name.
    pub variant: &'a str,
    /// Repetition, counted from 1.
    pub repetition: u32,
    /// Main or control.
    pub arm: Arm,
}

/// An entry of the list in `plan.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PlannedTrial")]
pub(super) struct Entry {
    /// `scenario/case/flow.variant.n`, followed by `.control` for a control arm; without `n` for a run of repeats.
    id: String,
    /// Place of its scenario in `scenarios`, from 0.
    scenario: usize,
    /// Place of its case among the scenario's cases, from 0.
    case: usize,
    /// Flow, variant, repetition, arm; of the first one for a run of repeats.
    lane: Lane,
    /// The trial's seed; for a run of repeats, the run's seed, from which theirs follow.
    seed: u64,
    /// Last repetition of a run of repeats; absent for a single trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<u32>,
    /// Whether each repeat is followed by its control arm.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    control: bool,
}

impl Entry {
    fn arms(&self) -> usize {
        1 + usize::from(self.control)
    }

    fn len(&self) -> usize {
        self.to.map_or(1, |to| (1 + to.saturating_sub(self.lane.repetition) as usize) * self.arms())
    }

    /// Repetition and arm of the trial at `offset`.
    fn lane_at(&self, offset: usize) -> (u32, Arm) {
        if self.to.is_none() {
            return (self.lane.repetition, self.lane.arm);
        }
        let arm = if offset.is_multiple_of(self.arms()) { Arm::Main } else { Arm::Control };
        (self.lane.repetition + (offset / self.arms()) as u32, arm)
    }

    fn each(&self) -> impl Iterator<Item = Planned<'_>> {
        let Self { scenario, case, lane, .. } = self;
        (0..self.len()).map(|offset| {
            let (repetition, arm) = self.lane_at(offset);
            Planned { scenario: *scenario, case: *case, flow: &lane.flow, variant: &lane.variant, repetition, arm }
        })
    }

    fn at(&self, offset: usize) -> PlannedTrial {
        let (repetition, arm) = self.lane_at(offset);
        let (id, seed) = if self.to.is_none() {
            (self.id.clone(), self.seed)
        } else {
            let id = repeated(&self.id, repetition, arm);
            let seed = trial_seed(self.seed, &id);
            (id, seed)
        };
        let lane = Lane { repetition, arm, ..self.lane.clone() };
        PlannedTrial { id, scenario: self.scenario, case: self.case, lane, seed }
    }
}

/// The id of one of the repeats with the prefix `stem`.
fn repeated(stem: &str, repetition: u32, arm: Arm) -> String {
    let control = if arm == Arm::Control { ".control" } else { "" };
    format!("{stem}.{repetition}{control}")
}

/// Reason why the trials of a stored plan cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TrialsError {
    /// Repeats with non-increasing numbers, or of a control trial.
    #[error("the repeats of {0} are not in order")]
    Order(String),
    /// More trials than a run can hold.
    #[error("it plans more than {} trials; {}", Bound::Trials.shown(), Bound::Trials.advice())]
    TooMany,
}

#[derive(Debug, Clone)]
struct Runs {
    entries: Vec<Entry>,
    /// Place of each entry's first trial, and the total number.
    starts: Vec<usize>,
    /// Entries by id or by id prefix.
    by_id: HashMap<Box<str>, Vec<u32>>,
}

impl Runs {
    fn of(entries: Vec<Entry>) -> Result<Self, TrialsError> {
        let (mut starts, mut by_id) = (vec![0], HashMap::<Box<str>, Vec<u32>>::new());
        let mut number: usize = 0;
        for (index, entry) in entries.iter().enumerate() {
            if entry.to.is_some_and(|to| to < entry.lane.repetition || entry.lane.arm == Arm::Control) {
                return Err(TrialsError::Order(entry.id.clone()));
            }
            number = number.saturating_add(entry.len());
            // Reserves room for all of them.
            if number > Bound::Trials.most_in_memory() {
                return Err(TrialsError::TooMany);
            }
            starts.push(number);
            by_id.entry(entry.id.as_str().into()).or_default().push(index as u32);
        }
        Ok(Self { entries, starts, by_id })
    }

    fn at(&self, place: usize) -> Option<PlannedTrial> {
        let index = self.starts.partition_point(|start| *start <= place).checked_sub(1)?;
        self.entries.get(index).map(|entry| entry.at(place - self.starts[index]))
    }

    fn place_of(&self, id: &str) -> Option<usize> {
        let single = |index: &&u32| self.entries[**index as usize].to.is_none();
        if let Some(index) = self.by_id.get(id).and_then(|found| found.iter().find(single)) {
            return Some(self.starts[*index as usize]);
        }
        let (main, control) = id.strip_suffix(".control").map_or((id, false), |main| (main, true));
        let (stem, number) = main.rsplit_once('.')?;
        let repetition: u32 = number.parse().ok()?;
        let found = self.by_id.get(stem)?.iter().map(|index| *index as usize).find(|index| {
            let entry = &self.entries[*index];
            entry.to.is_some_and(|to| (entry.lane.repetition..=to).contains(&repetition)) && (entry.control || !control)
        })?;
        let entry = &self.entries[found];
        let offset = (repetition - entry.lane.repetition) as usize * entry.arms() + usize::from(control);
        let (repetition, arm) = entry.lane_at(offset);
        // `01` parses as 1, but is not a valid id.
        (repeated(&entry.id, repetition, arm) == id).then(|| self.starts[found] + offset)
    }
}

impl Trials {
    pub fn number(&self) -> usize {
        self.runs.as_ref().map_or_else(|| self.listed().len(), |runs| runs.starts.last().copied().unwrap_or(0))
    }

    /// The trial at `place`; `None` past the end.
    pub fn at(&self, place: usize) -> Option<PlannedTrial> {
        self.runs.as_ref().map_or_else(|| self.listed().get(place).cloned(), |runs| runs.at(place))
    }

    pub fn place_of(&self, id: &str) -> Option<usize> {
        if let Some(runs) = &self.runs {
            return runs.place_of(id);
        }
        let known =
            || self.listed().iter().enumerate().map(|(place, trial)| (trial.id.as_str().into(), place)).collect();
        self.places.get_or_init(known).get(id).copied()
    }

    /// Attributes of each trial for aggregation, in order.
    pub fn each(&self) -> impl Iterator<Item = Planned<'_>> {
        let (runs, list) = match &self.runs {
            Some(runs) => (runs.entries.as_slice(), [].as_slice()),
            None => ([].as_slice(), self.listed()),
        };
        runs.iter().flat_map(Entry::each).chain(list.iter().map(|trial| {
            let PlannedTrial { scenario, case, lane, .. } = trial;
            Planned {
                scenario: *scenario,
                case: *case,
                flow: &lane.flow,
                variant: &lane.variant,
                repetition: lane.repetition,
                arm: lane.arm,
            }
        }))
    }

    /// The same trials with repeats as runs, where their ids and seeds follow from those of a run of `seed`.
    pub(super) fn in_runs(&self, seed: u64) -> Self {
        let runs = Runs::of(entries(self, seed)).ok();
        let list = if runs.is_some() { OnceLock::new() } else { self.list.clone() };
        Self { runs, list, places: OnceLock::new() }
    }

    fn listed(&self) -> &[PlannedTrial] {
        self.list.get_or_init(|| match &self.runs {
            Some(runs) => {
                runs.entries.iter().flat_map(|entry| (0..entry.len()).map(|offset| entry.at(offset))).collect()
            }
            None => Vec::new(),
        })
    }
}

fn entries(trials: &[PlannedTrial], seed: u64) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut rest = trials;
    while let Some(first) = rest.first() {
        let PlannedTrial { id, scenario, case, lane, seed: own } = first.clone();
        let mut entry = Entry { id, scenario, case, lane, seed: own, to: None, control: false };
        let stem = entry.id.strip_suffix(&format!(".{}", entry.lane.repetition)).map(str::to_owned);
        let mut taken = 1;
        if let Some(stem) = stem.filter(|_| first.lane.arm == Arm::Main && own == trial_seed(seed, &first.id)) {
            let mut run = Entry { id: stem, seed, to: Some(entry.lane.repetition), ..entry.clone() };
            let controlled = Entry { control: true, ..run.clone() };
            run.control = rest.get(1).is_some_and(|next| *next == controlled.at(1));
            let whole =
                |run: &Entry, from: usize| (from..from + run.arms()).all(|at| rest.get(at) == Some(&run.at(at)));
            taken = run.arms();
            while whole(&run, taken) {
                taken += run.arms();
            }
            run.to = Some(run.lane.repetition + (taken / run.arms()) as u32 - 1);
            if taken > 1 {
                entry = run;
            }
        }
        entries.push(entry);
        rest = &rest[taken..];
    }
    entries
}

impl From<Vec<PlannedTrial>> for Trials {
    fn from(list: Vec<PlannedTrial>) -> Self {
        Self { runs: None, list: list.into(), places: OnceLock::new() }
    }
}

impl Deref for Trials {
    type Target = [PlannedTrial];

    fn deref(&self) -> &[PlannedTrial] {
        self.listed()
    }
}

#[cfg(test)]
impl std::ops::DerefMut for Trials {
    fn deref_mut(&mut self) -> &mut [PlannedTrial] {
        let list = self.listed().to_vec();
        *self = list.into();
        self.list.get_mut().map_or(&mut [], Vec::as_mut_slice)
    }
}

impl<'a> IntoIterator for &'a Trials {
    type Item = &'a PlannedTrial;
    type IntoIter = std::slice::Iter<'a, PlannedTrial>;

    fn into_iter(self) -> Self::IntoIter {
        self.listed().iter()
    }
}

impl PartialEq for Trials {
    fn eq(&self, other: &Self) -> bool {
        self.listed() == other.listed()
    }
}

impl Serialize for Trials {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.runs {
            Some(runs) => runs.entries.serialize(serializer),
            None => self.listed().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Trials {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entries = Vec::<Entry>::deserialize(deserializer)?;
        if entries.iter().any(|entry| entry.to.is_some()) {
            let runs = Runs::of(entries).map_err(serde::de::Error::custom)?;
            return Ok(Self { runs: Some(runs), ..Self::default() });
        }
        Ok(entries.iter().map(|entry| entry.at(0)).collect::<Vec<_>>().into())
    }
}

#[cfg(test)]
#[path = "trials_tests.rs"]
mod tests;

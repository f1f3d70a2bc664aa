//! Runs until decided: the maximum number of passes, and the stopping design stored with recordings.
//!
//! Live and recording runs request it with an option; a replay follows its recordings. Lanes whose number depended on
//! their results are judged by the same stopping rule.

use crate::cassette::{self, Cassette, StoppingDesign, stopping_path};
use crate::gate::Stopped;
use crate::plan::{self, Plan, Selection};
use crate::platform::files;
use crate::scenario::Loaded;
use crate::suite::SuiteError;
use crate::trace::Lane;
use crate::trial::stopping_design;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Maximum number of passes of a live or recording run: as many as `max_trials` allows, else the number of repetitions
/// of the cases.
///
/// # Errors
/// If that is less than two passes, or the selection cannot be planned.
pub(crate) fn passes(loaded: &Loaded, selection: &Selection, max_trials: Option<u64>) -> Result<u32, SuiteError> {
    let one = plan::build(loaded, &Selection { passes: Some(1), ..selection.clone() }, 0)?;
    let pass = one.trials.len();
    let repeats = match (max_trials, selection.repeat) {
        (Some(most), _) if most < pass as u64 => return Err(SuiteError::LessThanOnePass { most, pass }),
        (Some(most), repeat) => (most / pass as u64).min(u64::from(repeat.unwrap_or(u32::MAX))),
        (None, Some(repeat)) => u64::from(repeat),
        (None, None) => u64::from(repetitions(loaded, selection)?.into_values().max().unwrap_or(1)),
    };
    if repeats < 2 {
        return Err(SuiteError::OnePassOnly { pass });
    }
    Ok(u32::try_from(repeats).unwrap_or(u32::MAX))
}

/// How a selection with recordings made until decided was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedPasses {
    /// Maximum number of passes.
    pub most: u32,
    /// Scenarios recorded until decided.
    pub decided: Vec<String>,
    /// Scenarios recorded a fixed number of times.
    pub fixed: Vec<String>,
    /// Scenarios whose stopping design was edited after the recording.
    pub edited: Vec<String>,
    /// Scenarios whose `stopping.json` is missing, and whose recordings hold the design.
    pub lost: Vec<String>,
}

impl RecordedPasses {
    /// Note on mixing both kinds, or on a design that differs from the recorded one.
    pub(crate) fn note(&self) -> Option<String> {
        let edited = (!self.edited.is_empty())
            .then(|| format!("EDITED BY HAND after the recording: stopping.json of {}", self.edited.join(", ")));
        let lost = (!self.lost.is_empty()).then(|| {
            let of = self.lost.join(", ");
            format!("note: stopping.json of {of} is gone; its recordings say that they were made until decided")
        });
        let mixed = self.mixed();
        edited.into_iter().chain(lost).chain(mixed).reduce(|one, other| one + "\n" + &other)
    }

    fn mixed(&self) -> Option<String> {
        (!self.fixed.is_empty()).then(|| {
            format!(
                "note: {} was recorded until decided, so this run goes by complete passes, {} of every case at most; {} was recorded a fixed number of times",
                self.decided.join(", "),
                self.most,
                self.fixed.join(", ")
            )
        })
    }
}

/// How the recordings of the selected scenarios were made; `None` if all have a fixed number of repetitions.
///
/// # Errors
/// If nothing is selected, or a design cannot be read.
pub(crate) fn recorded_passes(loaded: &Loaded, selection: &Selection) -> Result<Option<RecordedPasses>, SuiteError> {
    let plan = plan::build(loaded, &Selection { passes: None, ..selection.clone() }, 0)?;
    let mut found =
        RecordedPasses { most: u32::MAX, decided: Vec::new(), fixed: Vec::new(), edited: Vec::new(), lost: Vec::new() };
    for (scenario, repeated) in repetitions_of(&plan) {
        let mut design = StoppingDesign::load(&file(loaded, &scenario))?;
        if design.is_none() {
            design = of_lanes(loaded, &plan, &scenario);
            found.lost.extend(design.is_some().then(|| scenario.clone()));
        }
        found.most = found.most.min(
            design.as_ref().map_or(repeated, |design| design.max_passes.min(selection.repeat.unwrap_or(u32::MAX))),
        );
        found.edited.extend(design.as_ref().filter(|design| design.edited).map(|_| scenario.clone()));
        if design.is_some() { &mut found.decided } else { &mut found.fixed }.push(scenario);
    }
    Ok(Some(found).filter(|found| !found.decided.is_empty()))
}

/// Number of times that each selected scenario repeats all its selected cases, from its files and the selection.
fn repetitions(loaded: &Loaded, selection: &Selection) -> Result<BTreeMap<String, u32>, SuiteError> {
    Ok(repetitions_of(&plan::build(loaded, &Selection { passes: None, ..selection.clone() }, 0)?))
}

/// Design in the first recording of a scenario.
fn of_lanes(loaded: &Loaded, plan: &Plan, scenario: &str) -> Option<StoppingDesign> {
    let cassettes = loaded.root.join(&loaded.project.cassettes);
    let blobs = cassette::blobs_dir(&cassettes, scenario);
    let own = plan.trials.iter().filter(|trial| plan.scenarios[trial.scenario].name == scenario);
    let files = own.filter_map(|trial| {
        let case = plan.case_of(trial)?;
        Some(cassette::path(&cassettes, scenario, &case.case, &trial.lane))
    });
    let first = files.into_iter().find(|file| file.is_file())?;
    // An unreadable recording is reported when it is replayed.
    Cassette::load(&first, &blobs).ok()?.header.stopping
}

/// Repetitions of every scenario of a plan.
fn repetitions_of(plan: &Plan) -> BTreeMap<String, u32> {
    let mut lanes: BTreeMap<(usize, usize, Lane), u32> = BTreeMap::new();
    for trial in &plan.trials {
        let lane = Lane { repetition: 0, ..trial.lane.clone() };
        *lanes.entry((trial.scenario, trial.case, lane)).or_default() += 1;
    }
    let mut least = BTreeMap::new();
    for ((scenario, ..), number) in lanes {
        let least = least.entry(plan.scenarios[scenario].name.clone()).or_insert(number);
        *least = number.min(*least);
    }
    least
}

fn file(loaded: &Loaded, scenario: &str) -> PathBuf {
    stopping_path(&loaded.root.join(&loaded.project.cassettes), scenario)
}

/// Stopping designs of a recording run and their paths.
pub(crate) struct Designs {
    files: Vec<PathBuf>,
    design: Option<StoppingDesign>,
    whole: bool,
}

impl Designs {
    /// Writes the stopping design before recording starts, so that lanes never exist without it. `whole` says that
    /// every lane of the scenarios is recorded.
    pub(crate) fn begin(loaded: &Loaded, plan: &Plan, whole: bool) -> Result<Self, SuiteError> {
        let files = plan.scenarios.iter().map(|scenario| file(loaded, &scenario.name)).collect();
        let design = stopping_design(plan);
        let begun = Self { files, design, whole };
        begun.save()?;
        Ok(begun)
    }

    fn save(&self) -> Result<(), SuiteError> {
        for (file, design) in self.files.iter().zip(self.design.iter().cycle()) {
            design.save(file)?;
        }
        Ok(())
    }

    /// Notes where a complete recording stopped. A complete recording with a fixed number of repetitions removes the
    /// design.
    ///
    /// # Errors
    /// If a file cannot be written or removed.
    pub(crate) fn end(mut self, stopped: Option<&Stopped>, complete: bool) -> Result<(), SuiteError> {
        if let Some(design) = &mut self.design {
            design.stopped_after = stopped.filter(|_| complete).map(|stopped| stopped.passes);
            return self.save();
        }
        for file in self.files.iter().filter(|file| complete && self.whole && file.exists()) {
            files::remove_file(file).map_err(|error| SuiteError::DesignRemoval { path: file.clone(), error })?;
        }
        Ok(())
    }
}

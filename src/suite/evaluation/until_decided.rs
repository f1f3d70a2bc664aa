//! Runs until decided: how many passes there may be, and the stopping design that recordings carry.
//!
//! A live or recording run is asked for it; a replay does what its recordings say, and is never asked. Lanes whose
//! number was decided by what they showed are judged by the rule that decided it.

use crate::cassette::{self, Cassette, StoppingDesign, StoppingError, stopping_path};
use crate::gate::Stopped;
use crate::plan::{self, Plan, Selection};
use crate::platform::files;
use crate::scenario::{Diagnostic, Loaded};
use crate::trace::Lane;
use crate::trace::text::plural;
use crate::trial::stopping_design;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Why a run cannot go on until it is decided, or its recordings cannot be replayed so.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// The selection cannot be planned.
    #[error("{}", crate::scenario::diagnostic::listed(.0))]
    Plan(Vec<Diagnostic>),
    /// A recorded stopping design that cannot be read or written.
    #[error(transparent)]
    Design(#[from] StoppingError),
    /// A recorded stopping design that cannot be removed.
    #[error("{path}: {error}", path = path.display())]
    Remove {
        /// The design's file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Fewer trials are allowed than one pass has.
    #[error("--max-trials {most} is less than one pass, which is one of every selected case: {}", plural(*pass, "trial"))]
    LessThanOnePass {
        /// Trials that are allowed.
        most: u64,
        /// Trials of one pass.
        pass: usize,
    },
    /// No second pass can be run.
    #[error(
        "--until-decided needs room for two passes or more: add --max-trials N (one pass is {})",
        plural(*pass, "trial")
    )]
    OnePassOnly {
        /// Trials of one pass.
        pass: usize,
    },
}

impl From<Vec<Diagnostic>> for StopError {
    fn from(mistakes: Vec<Diagnostic>) -> Self {
        Self::Plan(mistakes)
    }
}

/// The most passes that a live or recording run of the selection may take: as many as `max_trials` allow, or else as
/// the cases are repeated.
///
/// # Errors
/// When that is less than two passes, or the selection cannot be planned.
pub(crate) fn passes(loaded: &Loaded, selection: &Selection, max_trials: Option<u64>) -> Result<u32, StopError> {
    let one = plan::build(loaded, &Selection { passes: Some(1), ..selection.clone() }, 0)?;
    let pass = one.trials.len();
    let repeats = match (max_trials, selection.repeat) {
        (Some(most), _) if most < pass as u64 => return Err(StopError::LessThanOnePass { most, pass }),
        (Some(most), repeat) => (most / pass as u64).min(u64::from(repeat.unwrap_or(u32::MAX))),
        (None, Some(repeat)) => u64::from(repeat),
        (None, None) => u64::from(repetitions(loaded, selection)?.into_values().max().unwrap_or(1)),
    };
    if repeats < 2 {
        return Err(StopError::OnePassOnly { pass });
    }
    Ok(u32::try_from(repeats).unwrap_or(u32::MAX))
}

/// How the recordings of a selection were made, where any of them was made until decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedPasses {
    /// Passes at most.
    pub most: u32,
    /// Scenarios that were recorded until decided.
    pub decided: Vec<String>,
    /// Scenarios that were recorded a fixed number of times.
    pub fixed: Vec<String>,
    /// Scenarios whose stopping design was edited by hand after the recording.
    pub edited: Vec<String>,
    /// Scenarios whose `stopping.json` is gone, and whose recordings hold the design.
    pub lost: Vec<String>,
}

impl RecordedPasses {
    /// What to say when both kinds are replayed together, or when a design is not the one that was recorded by.
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

/// How the recordings of the selected scenarios were made; `None` when all were planned a fixed number of times.
///
/// # Errors
/// When nothing is selected, or a design cannot be read.
pub(crate) fn recorded_passes(loaded: &Loaded, selection: &Selection) -> Result<Option<RecordedPasses>, StopError> {
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

/// How often each selected scenario repeats every one of its selected cases, by what is written and asked for.
fn repetitions(loaded: &Loaded, selection: &Selection) -> Result<BTreeMap<String, u32>, StopError> {
    Ok(repetitions_of(&plan::build(loaded, &Selection { passes: None, ..selection.clone() }, 0)?))
}

/// The design that the first recording of a scenario was made by.
fn of_lanes(loaded: &Loaded, plan: &Plan, scenario: &str) -> Option<StoppingDesign> {
    let cassettes = loaded.root.join(&loaded.project.cassettes);
    let blobs = cassette::blobs_dir(&cassettes, scenario);
    let own = plan.trials.iter().filter(|trial| plan.scenarios[trial.scenario].name == scenario);
    let files = own.filter_map(|trial| {
        let case = plan.case_of(trial)?;
        Some(cassette::path(&cassettes, scenario, &case.case, &trial.lane))
    });
    let first = files.into_iter().find(|file| file.is_file())?;
    // A recording that cannot be read is told when it is replayed.
    Cassette::load(&first, &blobs).ok()?.header.stopping
}

/// The same of a plan.
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

/// The designs of a recording run: where they lie, and what they say.
pub(crate) struct Designs {
    files: Vec<PathBuf>,
    design: Option<StoppingDesign>,
    whole: bool,
}

impl Designs {
    /// Writes the stopping design of a recording that begins, so that its lanes never lie there without it. `whole` says
    /// that every lane of the scenarios is recorded.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn begin(loaded: &Loaded, plan: &Plan, whole: bool) -> Result<Self, StopError> {
        let files = plan.scenarios.iter().map(|scenario| file(loaded, &scenario.name)).collect();
        let design = stopping_design(plan);
        let begun = Self { files, design, whole };
        begun.save()?;
        Ok(begun)
    }

    fn save(&self) -> Result<(), StopError> {
        for (file, design) in self.files.iter().zip(self.design.iter().cycle()) {
            design.save(file)?;
        }
        Ok(())
    }

    /// Notes where the recording stopped, when it is complete. One of a fixed number that replaced every lane leaves no design behind.
    ///
    /// # Errors
    /// When a file cannot be written or removed.
    pub(crate) fn end(mut self, stopped: Option<&Stopped>, complete: bool) -> Result<(), StopError> {
        if let Some(design) = &mut self.design {
            design.stopped_after = stopped.filter(|_| complete).map(|stopped| stopped.passes);
            return self.save();
        }
        for file in self.files.iter().filter(|file| complete && self.whole && file.exists()) {
            files::remove_file(file).map_err(|error| StopError::Remove { path: file.clone(), error })?;
        }
        Ok(())
    }
}

//! Runs until decided: how many passes there may be, and the stopping design that recordings carry.
//!
//! A live or recording run is asked for it; a replay does what its recordings say, and is never asked. Lanes whose
//! number was decided by what they showed are judged by the rule that decided it.

use super::arguments::{Mode, Run};
use super::diagnostic::plural;
use super::output::{self, Problem};
use crate::cassette::{StoppingDesign, stopping_path};
use crate::gate::Stopped;
use crate::plan::{self, Plan, STOPPING_ALPHA, Selection};
use crate::scenario::Loaded;
use crate::trace::Lane;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The most passes of a run that stops when it is decided; `None` for one that runs every trial.
///
/// # Errors
/// When that is asked of a replay, when nothing bounds the run, or when a design cannot be read.
pub fn passes(given: &Run, loaded: &Loaded, selection: &Selection) -> Result<Option<u32>, Problem> {
    if given.mode == Mode::Replay {
        let recorded = of_recordings(loaded, selection)?;
        if given.until_decided && recorded.is_none() {
            return Err(Problem::Words(
                "--until-decided is for --mode record and --mode live: these recordings are as many as were planned, and a replay judges them so".into(),
            ));
        }
        return Ok(recorded);
    }
    if !given.until_decided {
        return Ok(None);
    }
    let one = plan::build(loaded, &Selection { passes: Some(1), ..selection.clone() }, 0)?;
    let pass = one.trials.len() as u64;
    let repeats = match (given.max_trials, selection.repeat) {
        (Some(most), _) if most < pass => {
            let whole = plural(one.trials.len(), "trial");
            return Err(Problem::Words(format!(
                "--max-trials {most} is less than one pass, which is one of every selected case: {whole}"
            )));
        }
        (Some(most), repeat) => (most / pass).min(u64::from(repeat.unwrap_or(u32::MAX))),
        (None, Some(repeat)) => u64::from(repeat),
        (None, None) => u64::from(repetitions(loaded, selection)?.into_values().max().unwrap_or(1)),
    };
    if repeats < 2 {
        return Err(Problem::Words(format!(
            "--until-decided needs room for two passes or more: add --max-trials N (one pass is {})",
            plural(one.trials.len(), "trial")
        )));
    }
    Ok(Some(u32::try_from(repeats).unwrap_or(u32::MAX)))
}

/// The most passes that the recordings of the selected scenarios were planned for, when any was made until decided.
///
/// # Errors
/// When nothing is selected, or a design cannot be read.
pub fn of_recordings(loaded: &Loaded, selection: &Selection) -> Result<Option<u32>, Problem> {
    let repetitions = repetitions(loaded, selection)?;
    let (mut most, mut decided, mut fixed) = (u32::MAX, Vec::new(), Vec::new());
    for (scenario, repeated) in repetitions {
        let design = StoppingDesign::load(&file(loaded, &scenario)).map_err(|why| why.to_string())?;
        most = most.min(
            design.as_ref().map_or(repeated, |design| design.max_passes.min(selection.repeat.unwrap_or(u32::MAX))),
        );
        if design.is_some() { &mut decided } else { &mut fixed }.push(scenario);
    }
    if decided.is_empty() {
        return Ok(None);
    }
    if !fixed.is_empty() {
        output::remark(&format!(
            "note: {} was recorded until decided, so this run goes by complete passes, {most} of every case at most; {} was recorded a fixed number of times",
            decided.join(", "),
            fixed.join(", ")
        ));
    }
    Ok(Some(most))
}

/// How often each selected scenario repeats every one of its selected cases, by what is written and asked for.
fn repetitions(loaded: &Loaded, selection: &Selection) -> Result<BTreeMap<String, u32>, Problem> {
    let plan = plan::build(loaded, &Selection { passes: None, ..selection.clone() }, 0)?;
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
    Ok(least)
}

fn file(loaded: &Loaded, scenario: &str) -> PathBuf {
    stopping_path(&loaded.root.join(&loaded.project.cassettes), scenario)
}

/// The designs of a recording run: where they lie, and what they say.
pub struct Designs {
    files: Vec<PathBuf>,
    design: Option<StoppingDesign>,
    whole: bool,
}

impl Designs {
    /// Writes the stopping design of a recording that begins, so that its lanes never lie there without it. `every` says
    /// that all selected trials are recorded.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(loaded: &Loaded, plan: &Plan, given: &Run, every: bool) -> Result<Self, Problem> {
        let names: Vec<String> = plan.scenarios.iter().map(|scenario| scenario.name.clone()).collect();
        let files = names.iter().map(|name| file(loaded, name)).collect();
        let design = plan
            .stopping
            .map(|stopping| StoppingDesign::new(stopping.max_passes, STOPPING_ALPHA, STOPPING_ALPHA, names));
        let chosen = &given.select;
        let whole = chosen.only.is_empty() && chosen.variant.is_none() && chosen.flow.is_none() && every;
        let begun = Self { files, design, whole };
        begun.save()?;
        Ok(begun)
    }

    fn save(&self) -> Result<(), Problem> {
        for (file, design) in self.files.iter().zip(self.design.iter().cycle()) {
            design.save(file).map_err(|why| why.to_string())?;
        }
        Ok(())
    }

    /// Notes where the recording stopped, when it is complete. One of a fixed number that replaced every lane leaves no design behind.
    ///
    /// # Errors
    /// When a file cannot be written or removed.
    pub fn end(mut self, stopped: Option<&Stopped>, complete: bool) -> Result<(), Problem> {
        if let Some(design) = &mut self.design {
            design.stopped_after = stopped.filter(|_| complete).map(|stopped| stopped.passes);
            return self.save();
        }
        for file in self.files.iter().filter(|file| complete && self.whole && file.exists()) {
            std::fs::remove_file(file).map_err(|why| format!("{}: {why}", file.display()))?;
        }
        Ok(())
    }
}

//! Draws of a plan's trials in earlier runs: see docs/how-to/runs.md, "First draws".

use super::{Mode, RunOptions, Suite, SuiteError};
use crate::gate::{Evaluation, Verdict};
use crate::plan::{Plan, Selection};
use crate::platform::files;
use crate::suite::evaluation;
use crate::trace;
use crate::trial::run::{EarlierDraws, KeptTraces};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

impl Suite {
    /// Scenarios, by index in `plan`, of which a run draws only selected trials; with `--failed`, all scenarios.
    pub(super) fn drawn_in_part(&self, options: &RunOptions, plan: &Plan) -> Result<BTreeSet<usize>, SuiteError> {
        // Rerunning failed trials is never a new draw.
        if options.failed.is_some() {
            return Ok((0..plan.scenarios.len()).collect());
        }
        // Recordings with fewer repetitions would be mixed with those of the others.
        let repeat = options.selection.repeat.filter(|_| options.mode == Mode::Live);
        let passes = plan.stopping.map(|stopping| stopping.max_passes);
        let all = self.plan_passes(&Selection { repeat, ..Selection::default() }, options.seed, passes)?;
        let missing = all.trials.iter().filter(|trial| plan.trials.place_of(&trial.id).is_none());
        let names: BTreeSet<&str> =
            missing.filter_map(|trial| all.scenario_of(trial)).map(|scenario| scenario.name.as_str()).collect();
        let scenarios = plan.scenarios.iter().enumerate();
        Ok(scenarios.filter(|(_, scenario)| names.contains(scenario.name.as_str())).map(|(place, _)| place).collect())
    }
}

/// Draws of the trials of `plan` in the live runs below `reports` (if `live`), newest first, and in the run of the
/// folder `named`. They still count in scenarios that are drawn `in_part`.
pub(super) fn earlier(
    reports: &Path,
    named: Option<&Path>,
    live: bool,
    plan: &Plan,
    in_part: &BTreeSet<usize>,
) -> EarlierDraws {
    let mut draws = EarlierDraws::default();
    // Trials whose draw has not been found: the hash of what they test, and whether an earlier draw still counts.
    let mut open: BTreeMap<String, (String, bool)> = plan
        .trials
        .iter()
        .map(|trial| (trial.id.clone(), (plan.subject(trial), in_part.contains(&trial.scenario))))
        .collect();
    // The newest run of a trial has the counting draw and all later ones. A named run may be in another folder.
    let mut runs = if live { live_runs(reports) } else { Vec::new() };
    runs.extend(named.map(Path::to_owned));
    for folder in runs {
        if open.is_empty() {
            break;
        }
        let Some((before, evaluation)) = held_alike(&folder, plan) else { continue };
        let subject = |id: &str| Some(before.subject(&before.trials.at(before.trials.place_of(id)?)?));
        let unmade = |kind: &str| NOTHING_RUN.contains(&kind);
        let groups = evaluation.errors.iter().filter(|group| !unmade(&group.kind));
        let failed: BTreeSet<&str> = groups.flat_map(|group| &group.trials).map(String::as_str).collect();
        let mut judged = Vec::new();
        for trial in evaluation.trials.iter() {
            let Some((tested, counts)) = open.get_mut(&*trial.id) else { continue };
            if subject(&trial.id).as_ref() != Some(tested) {
                continue;
            }
            match trial.verdict {
                Verdict::Pass | Verdict::Fail if live => {
                    judged.push((trial.id.clone().into_owned(), trial.verdict.as_str().to_owned(), *counts));
                }
                // An earlier draw is reported but does not count: its whole scenario has been drawn since.
                Verdict::Error if *counts && failed.contains(&*trial.id) => {
                    draws.set_errors(trial.id.clone().into_owned(), trial.draws.replaced_errors + 1);
                    *counts = false;
                }
                _ => {}
            }
        }
        let wanted: BTreeSet<&str> = judged.iter().map(|(trial, ..)| trial.as_str()).collect();
        let Ok(run) = KeptTraces::matching(&folder.join(trace::TRACES), |trace| wanted.contains(trace.trial.as_str()))
        else {
            continue;
        };
        for (trial, ..) in judged.iter().filter(|(trial, ..)| run.has(trial)) {
            open.remove(trial);
        }
        draws.add_run(run, judged);
    }
    draws
}

/// Trials of the run in the folder `named` that a later live run below `reports` drew anew, and that `plan` tests as
/// both did. Both draws cannot count, and to choose one for each trial would make the verdict a matter of chance.
pub(super) fn drawn_since(reports: &Path, named: &Path, plan: &Plan) -> BTreeSet<String> {
    let number = |evaluation: &Evaluation| -> BTreeMap<String, usize> {
        let judged = evaluation.trials.iter().filter(|trial| trial.verdict != Verdict::Error);
        judged.map(|trial| (trial.id.clone().into_owned(), trial.draws.earlier.len())).collect()
    };
    let own = evaluated(named).map(|evaluation| number(&evaluation)).unwrap_or_default();
    let named = files::resolved(named).unwrap_or_default();
    let mut since = BTreeSet::new();
    let later = live_runs(reports).into_iter();
    for folder in later.take_while(|folder| files::resolved(folder).ok().as_ref() != Some(&named)) {
        let Some((before, evaluation)) = held_alike(&folder, plan) else { continue };
        let subject = |plan: &Plan, id: &str| Some(plan.subject(&plan.trials.at(plan.trials.place_of(id)?)?));
        let anew = number(&evaluation).into_iter().filter(|(id, draw)| own.get(id).is_some_and(|first| first < draw));
        since.extend(anew.map(|(id, _)| id).filter(|id| subject(&before, id) == subject(plan, id)));
    }
    since
}

/// Causes of ERROR, as in `run.json`, that mean nothing was drawn.
const NOTHING_RUN: [&str; 5] = ["lane missing", "cassette miss", "cassette broken", "stopped", "not run"];

/// The plan and the evaluation of a run that held the services which `plan` holds.
fn held_alike(folder: &Path, plan: &Plan) -> Option<(Plan, Evaluation)> {
    let before = evaluation::read_plan(folder).ok()?;
    let evaluation = evaluated(folder)?;
    (before.hold == plan.hold).then_some((before, evaluation))
}

fn evaluated(folder: &Path) -> Option<Evaluation> {
    serde_json::from_str(&files::read_to_string(folder.join(trace::RUN)).ok()?).ok()
}

/// Folders of live runs, newest first.
fn live_runs(reports: &Path) -> Vec<PathBuf> {
    let mut runs = Vec::new();
    for entry in files::entries(reports).unwrap_or_default().into_iter().filter(|entry| entry.is_folder) {
        let Ok(text) = files::read(entry.path.join(trace::ENVIRONMENT)) else { continue };
        let Ok(environment) = serde_json::from_slice::<serde_json::Value>(&text) else { continue };
        let at = environment["written_at"].as_str().and_then(|at| at.parse::<jiff::Timestamp>().ok());
        if let Some(at) = at.filter(|_| environment["mode"] == Mode::Live.as_str()) {
            runs.push((at, entry.path));
        }
    }
    runs.sort_by(|one, other| other.cmp(one));
    runs.into_iter().map(|(_, folder)| folder).collect()
}

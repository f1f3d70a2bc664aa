//! What a run is before its first trial: its plan, what is opened for it, and trials of earlier runs.

use crate::grader;
use crate::plan::{self, Plan, Selection};
use crate::platform::{files, secrets};
use crate::scenario::Loaded;
use crate::suite::evaluation::passes;
use crate::suite::{BaseCommit, Mode, RunOptions, Suite, SuiteError, draws, failed_trials, recordings};
use crate::trace::text::plural;
use crate::trace::{self, Trace};
use crate::transport::Budget;
use crate::trial::run::{EarlierDraws, KeptTraces};
use crate::trial::{self, Opened, external};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// State of a run before the first trial.
pub(super) struct PreparedRun {
    pub(super) plan: Arc<Plan>,
    /// Text of `plan.json`.
    pub(super) text: Vec<u8>,
    pub(super) opened: Arc<Opened>,
    /// Trials that another run finished.
    pub(super) kept: KeptTraces,
    /// Draws of trials in earlier runs.
    pub(super) earlier: EarlierDraws,
    pub(super) notes: Vec<String>,
}

impl Suite {
    /// Prepares a run before its first trial.
    pub(super) fn prepare(&self, options: &RunOptions, reports: &Path) -> Result<PreparedRun, SuiteError> {
        let (mut plan, note) = self.planned(options)?;
        name_models(options, &mut plan);
        if plan.stopping.is_some() && options.partition.is_some() {
            return Err(SuiteError::PartitionUntilDecided);
        }
        plan.partition = options.partition;
        let mut notes: Vec<String> = note.into_iter().collect();
        let mut opened = self.open(options, &plan)?;
        opened.describe(&mut plan);
        plan.hold.clone_from(&options.hold);
        if let Some(hold) = &options.hold {
            notes.extend(trial::holdable(&opened, &plan, hold)?);
            // Its times are no measurement, as whoever holds something knows.
            let gates = plan.scenarios.iter().flat_map(|scenario| &scenario.gates);
            let timed = plan.criteria.criteria.iter().chain(gates).filter(|one| one.metric.starts_with("latency_p"));
            let timed: BTreeSet<String> = timed.map(|one| one.id.clone()).collect();
            plan.not_measured_ok.extend(timed);
        }
        if options.mode != Mode::Replay {
            notes.extend(opened.unredacted_keys());
        }
        // A recording reports the result of its replay.
        plan.mode = Some(if options.mode == Mode::Live { trace::Mode::Live } else { trace::Mode::Replay });
        if options.mode != Mode::Replay {
            plan.order = plan::interleaved(&plan.trials, plan.seed);
        }
        plan.part = self.part(options, &plan)?;
        plan.typed = self.typed(options);
        plan.changed_recordings = self.changed_recordings(options, &plan);
        let mut text = plan.stored(|text| secrets::clean_bytes(text).into_owned())?;
        let mut kept = KeptTraces::default();
        if let Some(earlier) = &options.failed {
            let failed = failed_trials(earlier)?;
            let changes = merging(earlier, &text)?;
            if changes.is_empty() {
                let live = options.mode == Mode::Live;
                let since = if live { draws::drawn_since(reports, earlier, &plan) } else { BTreeSet::new() };
                let mut replaced = 0;
                let stands = |trace: &Trace| {
                    if live { !since.contains(&trace.trial) } else { opened.has_recording_of(trace) }
                };
                let file = earlier.join(trace::TRACES);
                kept = KeptTraces::matching(&file, |trace| {
                    let passed = trace.plan == plan.id && !failed.contains(&trace.trial);
                    let stands = passed && stands(trace);
                    replaced += usize::from(passed && !stands);
                    stands
                })
                .map_err(|error| SuiteError::NoEarlierRun { file, reason: error.to_string() })?;
                if replaced > 0 && options.mode != Mode::Replay {
                    return Err(SuiteError::DrawnSince { run: earlier.clone(), trials: replaced });
                }
                notes.push(format!(
                    "--failed: {} taken over from {}, {} run again",
                    plural(kept.len(), "trial"),
                    earlier.display(),
                    plan.trials.len() - kept.len()
                ));
            } else {
                // The other trials would belong to another plan, so only those that did not pass run, as a part.
                let of = plan.trials.len() as u64;
                let only = Selection { trials: Some(failed), ..options.selection.clone() };
                let mode = plan.mode;
                plan = self.planned(&RunOptions { selection: only, failed: None, ..options.clone() })?.0;
                name_models(options, &mut plan);
                plan.mode = mode;
                plan.hold.clone_from(&options.hold);
                opened = self.open(options, &plan)?;
                opened.describe(&mut plan);
                plan.part = Some(plan::Part { of, by: "--failed".to_owned(), cases: true, scenarios: false });
                plan.typed = self.typed(options);
                if options.mode != Mode::Replay {
                    plan.order = plan::interleaved(&plan.trials, plan.seed);
                }
                plan.changed_recordings = self.changed_recordings(options, &plan);
                text = plan.stored(|text| secrets::clean_bytes(text).into_owned())?;
                notes.push(format!(
                    "--failed: what is asked for is not what {} ran, so this run is a part and not merged with it:\n  {}",
                    earlier.display(),
                    changes.join("\n  ")
                ));
            }
        }
        if options.max_cost.is_some() {
            let unpriced: Vec<String> = recordings::unpriced(self.loaded(), &plan).into_keys().collect();
            if !unpriced.is_empty() {
                return Err(SuiteError::Unpriced(unpriced));
            }
            let unbounded: Vec<String> = recordings::unbounded(&plan).into_keys().collect();
            if !unbounded.is_empty() {
                return Err(SuiteError::Unbounded(unbounded));
            }
        }
        let plan = plan.narrowed();
        let in_part = (options.mode != Mode::Replay).then(|| self.drawn_in_part(options, &plan)).transpose()?;
        if let Some(partition) = options.partition.filter(|_| plan.trials.is_empty()) {
            return Err(SuiteError::EmptyPartition(partition));
        }
        let earlier = if let Some(in_part) = in_part {
            let live = options.mode == Mode::Live;
            let earlier = draws::earlier(reports, options.failed.as_deref(), live, &plan, &in_part);
            opened.in_part = in_part;
            earlier
        } else {
            EarlierDraws::default()
        };
        Ok(PreparedRun { plan: Arc::new(plan), text, opened: Arc::new(opened), kept, earlier, notes })
    }

    /// Recordings of planned trials that changed since the base commit.
    fn changed_recordings(&self, options: &RunOptions, plan: &Plan) -> Option<plan::ChangedRecordings> {
        let BaseCommit { name, same, deleted, baseline } = options.base.as_ref()?;
        let Loaded { root, project, .. } = &**self.loaded();
        let folder = root.join(&project.cassettes);
        let is_changed = |file: &str| deleted.contains(file) || !same.contains(file) && folder.join(file).exists();
        let trials = (0..plan.trials.len()).filter_map(|place| plan.trials.at(place));
        let lanes = trials.map(|trial| trial.id).filter(|id| is_changed(&format!("{id}.yaml")));
        let files_in = |name: &str| {
            let there = files::entries(folder.join(name)).unwrap_or_default().into_iter();
            let there = there.filter(|entry| !entry.is_folder);
            let there = there.filter_map(|entry| Some(entry.path.file_name()?.to_string_lossy().into_owned()));
            let deleted = deleted.iter().filter_map(|file| file.strip_prefix(name)?.strip_prefix('/'));
            let deleted = deleted.filter(|file| !file.contains('/')).map(str::to_owned);
            there.chain(deleted).map(|file| format!("{name}/{file}")).collect::<BTreeSet<String>>()
        };
        // A stopping design decides which trials count, and a recorded grading which answers pass.
        let designs = plan.scenarios.iter().map(|scenario| format!("{}/stopping.json", scenario.name));
        let gradings = files_in(grader::FOLDER);
        let starts = recordings::start_lanes(plan, Path::new("")).into_iter().map(|lane| format!("{}.yaml", lane.name));
        // Prompts and tools that recordings share are parts of each of them.
        let folders = plan.scenarios.iter().map(|scenario| scenario.name.as_str()).chain([grader::FOLDER]);
        let shared = folders.flat_map(|name| files_in(&format!("{name}/blobs")));
        let others = designs.chain(starts).chain(gradings).chain(shared).filter(|file| is_changed(file));
        let named = |file: String| if deleted.contains(&file) { format!("{file} (deleted)") } else { file };
        let trials = lanes.chain(others.map(named)).collect();
        Some(plan::ChangedRecordings { base: name.clone(), trials, baseline: baseline.clone() })
    }

    /// What was typed to select the run; `None` if nothing was.
    fn typed(&self, options: &RunOptions) -> Option<plan::Typed> {
        let (chosen, loaded) = (&options.selection, self.loaded());
        let repeat: Vec<String> = chosen.repeat.map(|repeat| repeat.to_string()).into_iter().collect();
        let seed: Vec<String> =
            Some(options.seed).filter(|seed| *seed != 0).map(|seed| seed.to_string()).into_iter().collect();
        let criteria = loaded.typed_criteria.iter().cloned().collect();
        let others = [("repeat", repeat), ("seed", seed), ("criteria", criteria)];
        let all = chosen.options().into_iter().chain(others).filter(|(_, values)| !values.is_empty());
        let options = all.map(|(option, values)| (option.to_owned(), values)).collect();
        let typed = plan::Typed { paths: loaded.paths.clone(), options, exec: None };
        Some(typed).filter(|typed| *typed != plan::Typed::default())
    }

    /// The selected part of the suite, if the selection makes it a part.
    fn part(&self, options: &RunOptions, plan: &Plan) -> Result<Option<plan::Part>, SuiteError> {
        let chosen = &options.selection;
        let mut by = chosen.typed();
        by.extend(chosen.trials.is_some().then(|| "the lanes to record again".to_owned()));
        let scenarios = self.loaded().partial;
        if by.is_empty() {
            return Ok(scenarios.then_some(plan::Part { of: 0, by: String::new(), cases: false, scenarios }));
        }
        let passes = plan.stopping.map(|stopping| stopping.max_passes);
        let all = Selection { repeat: chosen.repeat, ..Selection::default() };
        let of = self.plan_passes(&all, options.seed, passes)?.trials.number() as u64;
        Ok(Some(plan::Part {
            of,
            by: by.join(", "),
            cases: chosen.chooses_cases() && (plan.trials.number() as u64) < of,
            scenarios,
        }))
    }

    /// The plan of a run, and notes on recordings of which only some were made until decided.
    fn planned(&self, options: &RunOptions) -> Result<(Plan, Option<String>), SuiteError> {
        let (selection, seed) = (&options.selection, options.seed);
        if options.mode == Mode::Replay {
            let (plan, recorded) = self.plan(selection, seed)?;
            if options.until_decided && recorded.is_none() {
                return Err(SuiteError::RecordedFixed);
            }
            return Ok((plan, recorded.and_then(|recorded| recorded.note())));
        }
        let most = options.until_decided.then(|| passes(self.loaded(), selection, options.max_trials)).transpose()?;
        Ok((self.plan_passes(selection, seed, most)?, None))
    }

    pub(in crate::suite) fn open(&self, options: &RunOptions, plan: &Plan) -> Result<Opened, SuiteError> {
        let mut opened = Opened::new(Arc::clone(self.loaded()), plan)?;
        external::agents_named(&opened, plan)?;
        opened.variables.clone_from(&options.variables);
        opened.hold.clone_from(&options.hold);
        let share = |calls| options.partition.map_or(calls, |partition| partition.share(calls));
        let dollars = options.max_cost.map(|dollars| dollars / options.partition.map_or(1.0, |own| f64::from(own.of)));
        opened.budget = Arc::new(Budget::new(options.max_calls.map(share)).with_dollars(dollars));
        Ok(opened)
    }
}

/// Differences between an earlier run's plan and the plan `now`, ignoring the order in which trials start.
fn merging(earlier: &Path, now: &[u8]) -> Result<Vec<String>, SuiteError> {
    let file = earlier.join(trace::PLAN);
    let text = trace::plan_text(earlier)
        .map_err(|error| SuiteError::NoEarlierRun { file: file.clone(), reason: error.to_string() })?;
    let (mut before, mut now): (serde_json::Value, serde_json::Value) =
        (serde_json::from_slice(&text)?, serde_json::from_slice(now)?);
    for plan in [&mut before, &mut now] {
        plan.as_object_mut().map(|plan| plan.remove("order"));
    }
    Ok(plan::differences(&before, &now))
}

/// In live runs, a variable may override a flow's model; recordings use the model of their scenario.
fn name_models(options: &RunOptions, plan: &mut Plan) {
    if options.mode == Mode::Live {
        trial::name_models(plan, &options.variables);
    }
}

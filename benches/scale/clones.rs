//! A run folder of any number of small traces: those of a few replayed trials, under other names, with other lanes,
//! seeds and times.
//!
//! Up to 1,000 cases are made of the [`SOURCES`] that are recorded and replayed, and repeated until there are enough
//! traces. One trial in [`FAILING`] ends in an error.

use crate::generate::{self, Size};
use ragcheck::internals::plan::{Plan, PlannedCase, PlannedTrial, trial_seed};
use ragcheck::internals::trace::{self, Lane, Trace, TurnOutcome, What};
use ragcheck::internals::trial::replay;
use rayon::prelude::*;
use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

/// Trials that are really run.
const SOURCES: usize = 20;
/// Cases that they become, at most.
const CASES: usize = 1_000;
/// One trial in so many fails.
const FAILING: usize = 400;
/// Traces that are made before they are written.
const WINDOW: usize = 4_096;

/// Writes the project of the sources into `root`, and a run of `traces` traces into `root/run`.
///
/// # Errors
/// When a source cannot be run, or a file not be written.
pub fn write(root: &Path, traces: usize) -> Result<(), Box<dyn Error>> {
    generate::write(root, Size { cases: SOURCES, repeat: 1, brief: true })?;
    let (opened, mut plan) = generate::load(&root.canonicalize()?)?;
    generate::record(&opened, &plan, true)?;
    let sources: Vec<Trace> = plan.trials.iter().map(|trial| replay(opened.trial(&plan, trial)).trace).collect();
    let trials = multiply(&mut plan, traces);
    let folder = root.join("run");
    fs::create_dir_all(&folder)?;
    let mut lines = BufWriter::with_capacity(1 << 20, File::create(folder.join(trace::TRACES))?);
    for (window, some) in trials.chunks(WINDOW).enumerate() {
        let made: Vec<Vec<u8>> = some
            .par_iter()
            .enumerate()
            .map(|(place, (trial, source))| {
                let mut line = Vec::new();
                let made = clone(&sources[*source], &plan, trial, window * WINDOW + place);
                trace::write_trace(&mut line, &made).map(|()| line)
            })
            .collect::<Result<_, _>>()?;
        made.iter().try_for_each(|line| lines.write_all(line))?;
    }
    lines.flush()?;
    plan.trials = trials.into_iter().map(|(trial, _)| trial).collect::<Vec<_>>().into();
    fs::write(folder.join(trace::PLAN), plan.to_json()?)?;
    Ok(())
}

/// Gives the plan more cases, and the trials of each with the place of its source, `traces` in all.
fn multiply(plan: &mut Plan, traces: usize) -> Vec<(PlannedTrial, usize)> {
    let copies = (CASES.min(traces) / SOURCES).max(1);
    let repeat = traces.div_ceil(copies * SOURCES);
    let (mut trials, mut source) = (Vec::new(), 0);
    for (place, scenario) in plan.scenarios.iter_mut().enumerate() {
        for PlannedCase { table, line, case, input } in std::mem::take(&mut scenario.cases) {
            for copy in 0..copies {
                let mut case = case.clone();
                case.case = format!("{}-{copy:02}", case.case);
                for repetition in 1..=repeat {
                    let first = &scenario.variants[0];
                    let (flow, variant) = (first.flow.clone(), first.name.clone());
                    let repetition = u32::try_from(repetition).unwrap_or(u32::MAX);
                    let lane = Lane { flow, variant, repetition, arm: trace::Arm::Main };
                    let id = format!("{}/{}/{lane}", scenario.name, case.case);
                    let seed = trial_seed(plan.seed, &id);
                    let trial = PlannedTrial { id, scenario: place, case: scenario.cases.len(), lane, seed };
                    trials.push((trial, source));
                }
                scenario.cases.push(PlannedCase { table: table.clone(), line, case, input: input.clone() });
            }
            source += 1;
        }
    }
    trials.truncate(traces);
    trials
}

/// The trace of `source` as that of `trial`, the `ordinal`th, slower or faster by up to a fifth.
fn clone(source: &Trace, plan: &Plan, trial: &PlannedTrial, ordinal: usize) -> Trace {
    let mut made = source.clone();
    made.trial.clone_from(&trial.id);
    made.case.clone_from(&plan.scenarios[trial.scenario].cases[trial.case].case.case);
    made.lane.clone_from(&trial.lane);
    made.seed = trial.seed;
    let percent = 80 + trial.seed % 41;
    let change = |time: &mut u64| *time = *time * percent / 100;
    change(&mut made.took_us);
    for event in &mut made.events {
        change(&mut event.at_us);
        match &mut event.what {
            What::ModelCalled(called) => {
                change(&mut called.took_us);
                called.attempts.iter_mut().for_each(|attempt| change(&mut attempt.took_us));
            }
            What::ToolCalled(called) => change(&mut called.took_us),
            What::TurnEnded(ended) => {
                change(&mut ended.took_us);
                if ordinal % FAILING == FAILING - 1 {
                    let message = "The answer took too long.".to_owned();
                    ended.outcome = TurnOutcome::Failed { kind: "timeout".into(), message };
                }
            }
            _ => {}
        }
    }
    made
}

//! `ragcheck cassette refresh`: record whole lanes again, only those that need it, and say beforehand what it takes.
//!
//! What it takes is taken from what was recorded before; of a lane without a sound recording, from the mean of its
//! scenario's others.

use super::arguments::Refresh;
use crate::cli::arguments::{Comparing, Mode, Printed, Run};
use crate::cli::exit::Exit;
use crate::cli::output::{self, Problem};
use crate::cli::run::{carry_on, select};
use crate::cli::staleness::{Ages, stale};
use crate::plan::Plan;
use crate::price::dollars;
use crate::run::{self, Step};
use crate::scenario::Project;
use crate::trace::text::plural;
use crate::trace::{TrialEnd, TrialErrorKind};
use crate::trial::{Spending, TrialRunner};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write as _};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Does what `ragcheck cassette refresh` was asked to.
///
/// # Errors
/// Every mistake in the files, or that nobody agreed to what it takes.
pub fn run(given: &Refresh) -> Result<Exit, Problem> {
    let (loaded, plan) = select(&given.select, None, |_, _| Ok(None))?;
    let project = loaded.project.clone();
    let ages = Ages::new(given.warn_recordings_after, &project)?;
    let runner = TrialRunner::new(Arc::new(loaded)).map_err(|why| why.to_string())?;
    let mut reasons: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut wanted: BTreeSet<usize> = BTreeSet::new();
    if given.missed {
        for (index, why) in missed(&runner, &plan).map_err(|why| format!("the replay stopped: {why}"))? {
            *reasons.entry(why).or_default() += 1;
            wanted.insert(index);
        }
    }
    if given.stale {
        for (index, why) in stale(&runner, &plan, ages) {
            if wanted.insert(index) {
                *reasons.entry(if why.old.is_some() { "too old" } else { "drifted" }).or_default() += 1;
            }
        }
    }
    if wanted.is_empty() {
        output::result(&format!("nothing to record again: {} looked at\n", plural(plan.trials.len(), "lane")));
        return Ok(Exit::Passed);
    }
    output::remark(&announcement(&runner, &project, &plan, &wanted, &reasons));
    if !given.yes && !agreed()? {
        output::remark("nothing was recorded");
        return Ok(Exit::Passed);
    }
    let trials = wanted.iter().map(|index| plan.trials[*index].id.clone()).collect();
    drop(runner);
    carry_on(&recording(given), Some(trials))
}

/// The trials whose replay does not get through for want of a recording, by index, with why.
fn missed(runner: &TrialRunner, plan: &Plan) -> std::io::Result<Vec<(usize, &'static str)>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut missed, mut index) = (Vec::new(), 0);
    run::replay(runner, plan, cores, &|_| (), &mut |step| {
        let Step::Trial(done) = step else { return Ok(ControlFlow::Continue(())) };
        if let TrialEnd::Error(problem) = &done.finished.trace.end {
            let lacking = [TrialErrorKind::LaneMissing, TrialErrorKind::CassetteMiss, TrialErrorKind::CassetteBroken];
            if lacking.contains(&problem.kind) {
                missed.push((index, problem.kind.label()));
            }
        }
        index += 1;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(missed)
}

/// How many lanes and why, how many calls, and about how much money.
fn announcement(
    runner: &TrialRunner,
    project: &Project,
    plan: &Plan,
    wanted: &BTreeSet<usize>,
    reasons: &BTreeMap<&'static str, usize>,
) -> String {
    let reasons: Vec<String> = reasons.iter().map(|(why, count)| format!("{count} {why}")).collect();
    let mut lines = vec![format!("{} to record again: {}", plural(wanted.len(), "lane"), reasons.join(", "))];
    let (mut all, mut blind, mut guessed) = (Spending::default(), 0, 0);
    let mut means: BTreeMap<usize, Option<(Spending, u64)>> = BTreeMap::new();
    for index in wanted {
        let trial = &plan.trials[*index];
        if let Ok(cassette) = runner.recording(plan, trial) {
            all.add(&runner.spending(plan, trial, &cassette));
        } else {
            let mean = means.entry(trial.scenario).or_insert_with(|| total(runner, plan, trial.scenario));
            match mean {
                Some((sum, lanes)) => {
                    let share = |calls: u64| calls.div_ceil(*lanes);
                    all.add(&Spending {
                        model_calls: share(sum.model_calls),
                        search_calls: share(sum.search_calls),
                        dollars: sum.dollars / *lanes as f64,
                        unpriced: sum.unpriced.clone(),
                        untold: 0,
                    });
                    guessed += 1;
                }
                None => blind += 1,
            }
        }
    }
    let calls = |number: u64, what| plural(number as usize, what);
    lines.push(format!(
        "about {} and {}, as recorded before",
        calls(all.model_calls, "model call"),
        calls(all.search_calls, "search call")
    ));
    if guessed > 0 {
        lines
            .push(format!("  {} without a sound recording counted as the mean of the others", plural(guessed, "lane")));
    }
    if blind > 0 {
        lines.push(format!("  {} not counted: nothing of their scenario was recorded before", plural(blind, "lane")));
    }
    if !project.prices.is_empty() && (all.dollars > 0.0 || all.unpriced.is_empty()) {
        lines.push(format!("about {}", dollars(all.dollars)));
    }
    if !all.unpriced.is_empty() {
        let models: Vec<&str> = all.unpriced.iter().map(String::as_str).collect();
        lines.push(format!("cost not measured for {}: no price in ragcheck.yaml (`prices`)", models.join(", ")));
    }
    if all.untold > 0 {
        lines.push(format!("cost not measured for {}: their tokens were not told", calls(all.untold, "call")));
    }
    lines.join("\n")
}

/// What the recorded lanes of a scenario came to together, and how many they are; `None` without any.
fn total(runner: &TrialRunner, plan: &Plan, scenario: usize) -> Option<(Spending, u64)> {
    let (mut sum, mut lanes) = (Spending::default(), 0);
    for trial in plan.trials.iter().filter(|trial| trial.scenario == scenario) {
        if let Ok(cassette) = runner.recording(plan, trial) {
            sum.add(&runner.spending(plan, trial, &cassette));
            lanes += 1;
        }
    }
    (lanes > 0).then_some((sum, lanes))
}

/// Asks at the terminal.
fn agreed() -> Result<bool, Problem> {
    if !std::io::stdin().is_terminal() {
        return Err(Problem::Words("nobody is there to be asked: add --yes to record these lanes again".into()));
    }
    let _ = write!(anstream::stderr(), "record them? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|why| format!("the answer cannot be read: {why}"))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// The run that records.
fn recording(given: &Refresh) -> Run {
    Run {
        select: given.select.clone(),
        mode: Mode::Record,
        env_file: given.env_file.clone(),
        failed: false,
        jobs: given.jobs,
        max_calls: given.max_calls,
        max_cost: given.max_cost,
        until_decided: false,
        max_trials: None,
        label: Vec::new(),
        no_history: true,
        timeout: given.timeout,
        warn_recordings_after: given.warn_recordings_after,
        report_dir: given.report_dir.clone(),
        baseline: None,
        comparing: Comparing { fail_on: None, margin: 0.0 },
        format: Printed::Human,
    }
}

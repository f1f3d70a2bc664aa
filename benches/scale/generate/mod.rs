//! A project of any size: documents, scenarios, and a recording of every lane.
//!
//! Each trial asks the model four times; one case in five goes outside and indexes keywords, the others search the
//! documents three times for five passages. Every lane has words of its own, and no exchange has less than 4 KB. The
//! recordings are made by the real flow through the recording transport, against a scripted model on a virtual clock.

mod project;
mod script;
mod words;

pub use project::{Size, write};

use ragcheck::internals::plan::{self, Plan, PlannedTrial, Selection};
use ragcheck::internals::platform::clock::{Clock, VirtualClock, block_on};
use ragcheck::internals::scenario;
use ragcheck::internals::trace::{ToolOutcome, TrialEnd, What};
use ragcheck::internals::trial::{Opened, record_with};
use rayon::prelude::*;
use script::Script;
use std::path::Path;
use std::sync::Arc;

/// The factory and the plan of a project that was written.
///
/// # Errors
/// In words, when the project cannot be loaded.
pub fn load(root: &Path) -> Result<(Opened, Plan), String> {
    let loaded = scenario::load(root, &[], None, &ragcheck::internals::catalogues())
        .map_err(|mistakes| format!("{mistakes:?}"))?;
    let mut plan = plan::build(&loaded, &Selection::default(), 0).map_err(|mistakes| format!("{mistakes:?}"))?;
    let opened = Opened::new(Arc::new(loaded), &plan).map_err(|why| why.to_string())?;
    plan.machines = opened.machines();
    Ok((opened, plan))
}

/// Records every trial of `plan`; `brief` is the project's.
///
/// # Errors
/// In words, when one does not run to its end.
pub fn record(opened: &Opened, plan: &Plan, brief: bool) -> Result<(), String> {
    plan.trials.par_iter().try_for_each(|trial| record_one(opened, plan, trial, brief))
}

fn record_one(opened: &Opened, plan: &Plan, trial: &PlannedTrial, brief: bool) -> Result<(), String> {
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let script = Arc::new(Script::new(&trial.id, project::indexes(trial.case), brief, Arc::clone(&shared)));
    let finished = block_on(&clock, record_with(opened.trial(plan, trial), shared, script));
    let trace = finished.map_err(|deadlock| deadlock.to_string())?.trace;
    // A script that the flow no longer accepts would measure failing trials.
    let refused = trace.events.iter().find_map(|event| match &event.what {
        What::ToolCalled(call) if !matches!(call.outcome, ToolOutcome::Ok(_)) => Some((&call.tool, &call.outcome)),
        _ => None,
    });
    if let Some((tool, outcome)) = refused {
        return Err(format!("{}: the scripted call of {tool} was refused: {outcome:?}", trial.id));
    }
    match trace.end {
        TrialEnd::Completed => Ok(()),
        TrialEnd::Error(why) => Err(format!("{}: {}\n{}", trial.id, why.message, why.detail.join("\n"))),
    }
}

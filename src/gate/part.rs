//! Of what a run is a part, and which traces do not belong to it.

use super::EvaluationError;
use super::format::count;
use crate::plan::{Plan, PlannedTrial};
use crate::trace::{Trace, TrialEnd, TrialError, TrialErrorKind};

/// In words, of what a run of `planned` trials is a part, when `errors` are those of the trials in ERROR (`None`: without
/// a trace); empty for a whole one.
pub(super) fn part<'e>(plan: &Plan, planned: usize, errors: impl Iterator<Item = Option<&'e TrialError>>) -> String {
    let not_run = |error: &Option<&TrialError>| error.is_none_or(|error| error.kind == TrialErrorKind::Stopped);
    let missing = errors.filter(not_run).count();
    let trials = count(planned as u64, "trial", "trials");
    let selected = plan.part.as_ref().map(|part| format!("{planned} of {} trials, selected by {}", part.of, part.by));
    let missing = (missing > 0).then(|| format!("{missing} of {trials} not run"));
    [selected, missing].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Refuses a trace that is not of this plan: one that another plan made, or one that contradicts what was planned.
pub(super) fn belongs(plan: &Plan, planned: &PlannedTrial, trace: &Trace) -> Result<(), EvaluationError> {
    if trace.plan != plan.digest {
        return Err(EvaluationError::Foreign(trace.trial.clone()));
    }
    let contradiction = |what, planned: &dyn std::fmt::Display, found: &dyn std::fmt::Display| {
        let (trial, planned, found) = (trace.trial.clone(), planned.to_string(), found.to_string());
        Err(EvaluationError::Contradiction { trial, what, planned, found })
    };
    if trace.lane != planned.lane {
        return contradiction("lane", &planned.lane, &trace.lane);
    }
    let scenario = plan.scenario_of(planned).map_or("", |scenario| scenario.name.as_str());
    let case = plan.case_of(planned).map_or("", |case| case.case.as_str());
    if trace.scenario != scenario {
        return contradiction("scenario", &scenario, &trace.scenario);
    }
    if trace.case != case {
        return contradiction("case", &case, &trace.case);
    }
    match plan.mode {
        // A trial that could not be run may have ended before it was replayed.
        Some(mode) if trace.end == TrialEnd::Completed && mode != trace.evidence.mode => {
            contradiction("mode", &mode, &trace.evidence.mode)
        }
        _ => Ok(()),
    }
}

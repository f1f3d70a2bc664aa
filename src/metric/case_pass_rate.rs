//! `case_pass_rate`: trials that met everything their case expects / trials.
//!
//! A trial without any check cannot pass: a case that expects nothing proves nothing. An imported conversation
//! without grades whose case expects nothing is not a unit.

use super::catalogue::Registered;
use super::{Metric, Observation, TrialView};
use crate::plan::{Plan, PlannedTrial};
use crate::trace::Mode;

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] =
    &[Registered::rate("case_pass_rate", |_| Metric { reads_expectations: true, ..Metric::new("trials", observe) })
        .about("Trials that met everything their case expects.")];

/// Whether something says what the trial must do: an imported conversation has a grade, or its case expects something.
pub(crate) fn is_unit(plan: &Plan, trial: &PlannedTrial, mode: Mode) -> bool {
    let expects = || plan.scenarios[trial.scenario].cases[trial.case].case.expects_something();
    mode != Mode::Imported || plan.rewards.contains_key(&trial.id) || expects()
}

pub(super) fn observe(view: &TrialView<'_>) -> Vec<Observation> {
    if !is_unit(view.plan, view.trial, view.trace.evidence.mode) {
        return Vec::new();
    }
    let failed: Vec<_> = view.checks.iter().filter(|check| !check.passed).collect();
    let unit = if view.checks.is_empty() {
        Observation::failure("trial", "the case expects nothing")
    } else if let Some(first) = failed.first() {
        let more = if failed.len() > 1 { format!(" (and {} more)", failed.len() - 1) } else { String::new() };
        Observation::failure("trial", format!("{}: {}{more}", first.what, first.seen))
    } else {
        Observation::success("trial")
    };
    vec![unit]
}

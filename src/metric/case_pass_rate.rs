//! `case_pass_rate`: trials that met everything their case expects / trials.
//!
//! A trial without any check cannot pass: a case that expects nothing proves nothing. An imported conversation
//! without grades whose case expects nothing is not a unit.

use super::catalogue::Registered;
use super::{Metric, Observation, TrialView};
use crate::trace::Mode;

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] =
    &[Registered::rate("case_pass_rate", |_| Metric { reads_expectations: true, ..Metric::new("trials", observe) })
        .about("Trials that met everything their case expects.")];

pub(super) fn observe(view: &TrialView<'_>) -> Vec<Observation> {
    let graded = view.plan.rewards.contains_key(&view.trial.id);
    if view.trace.evidence.mode == Mode::Imported && !graded && !view.case.case.expects_something() {
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

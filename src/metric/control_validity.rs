//! `control_validity`: control trials in which a context probe fails without history / control trials.
//!
//! The only metric that reads the control arm. A control whose probes hold shows that the case can be answered
//! without remembering anything.

use super::catalogue::Registered;
use super::{Metric, Observation, TrialView};
use crate::trace::Arm;

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("control_validity", |_| Metric {
    arm: Arm::Control,
    applies: Box::new(|case| case.control),
    reads_expectations: true,
    ..Metric::new("control trials", observe)
})
.about("Control trials, run without history, in which a context probe fails as it must.")];

fn observe(view: &TrialView<'_>) -> Vec<Observation> {
    vec![match view.checks.iter().find(|check| !check.passed) {
        None if !view.checks.is_empty() => Observation::success("control"),
        None => Observation::failure("control", "the case expects nothing"),
        Some(check) => Observation::failure("control", check.seen.as_str()),
    }]
}

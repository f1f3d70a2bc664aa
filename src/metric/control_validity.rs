//! `control_validity`: control trials in which a context probe fails without history / control trials.
//!
//! The only metric that reads the control arm. A control whose probes hold shows that the case can be answered
//! without remembering anything.

use super::catalogue::Registered;
use super::{Metric, Observation, TrialView};
use crate::plan::ResolvedCase;
use crate::trace::Arm;

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("control_validity", |_| Box::new(ControlValidity))
    .about("Control trials, run without history, in which a context probe fails as it must.")];

#[derive(Debug)]
pub(super) struct ControlValidity;

impl Metric for ControlValidity {
    fn units(&self) -> &'static str {
        "control trials"
    }

    fn arm(&self) -> Arm {
        Arm::Control
    }

    fn applies(&self, case: &ResolvedCase) -> bool {
        case.control
    }

    fn reads_expectations(&self) -> bool {
        true
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        vec![match view.checks.iter().find(|check| !check.passed) {
            None if !view.checks.is_empty() => Observation::success("control"),
            None => Observation::failure("control", "the case expects nothing"),
            Some(check) => Observation::failure("control", check.seen.as_str()),
        }]
    }
}

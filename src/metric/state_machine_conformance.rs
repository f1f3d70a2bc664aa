//! `state_machine_conformance`: trials that keep to their flow's state machine / trials of flows that declare one.

use super::{Metric, Observation, TrialView};

/// See the module.
#[derive(Debug)]
pub(super) struct StateMachineConformance;

impl Metric for StateMachineConformance {
    fn units(&self) -> &'static str {
        "trials"
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        // Without a machine there is nothing to conform to: no unit.
        let Some(departures) = view.departures else { return Vec::new() };
        vec![match departures.first() {
            None => Observation::success("trial"),
            Some(first) => Observation::failure("trial", format!("turn {}: {}", first.turn + 1, first.what)),
        }]
    }
}

//! `state_machine_conformance`: trials that follow their flow's state machine / trials of flows that declare one.

use super::catalogue::Registered;
use super::{Member, Metric, Observation, TrialView};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] =
    &[Registered::rate("state_machine_conformance", |_| Box::new(StateMachineConformance))
        .about("Trials that make only the moves that their flow's state machine declares.")];

#[derive(Debug)]
pub(super) struct StateMachineConformance;

impl Metric for StateMachineConformance {
    fn units(&self) -> &'static str {
        "trials"
    }

    fn members(&self) -> &'static [Member] {
        &[Member::Moves, Member::Machine]
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        // Without a machine there is nothing to conform to: no unit.
        let Some(departures) = view.departures else { return Vec::new() };
        vec![match departures.first() {
            None => Observation::success("trial"),
            Some(first) => {
                Observation::failure("trial", format!("turn {}: {}", first.turn.saturating_add(1), first.what))
            }
        }]
    }
}

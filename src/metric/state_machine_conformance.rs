//! `state_machine_conformance`: trials that follow their flow's state machine / trials of flows that declare one.

use super::catalogue::Registered;
use super::{Member, Metric, Observation, TrialView};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("state_machine_conformance", |_| Metric {
    members: &[Member::Moves, Member::Machine],
    ..Metric::new("trials", observe)
})
.about("Trials that make only the moves that their flow's state machine declares.")];

fn observe(view: &TrialView<'_>) -> Vec<Observation> {
    // Without a machine there is nothing to conform to: no unit.
    let Some(departures) = view.departures else { return Vec::new() };
    let why = departures.first().map(|first| format!("turn {}: {}", first.turn.saturating_add(1), first.what));
    vec![Observation::unless("trial", why)]
}

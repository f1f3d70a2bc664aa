//! `turn_success_rate`: answered queries / queries. An expected error is not an answer.

use super::catalogue::Registered;
use super::{Member, Metric, Observation, TrialView};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("turn_success_rate", |_| Metric {
    members: &[Member::Answers],
    ..Metric::new("queries", observe)
})
.about("Queries that got an answer and not an error.")];

fn observe(view: &TrialView<'_>) -> Vec<Observation> {
    let unit =
        |turn: &super::TurnView<'_>| Observation::unless(turn.label(), turn.answer().is_none().then(|| turn.ending()));
    view.turns.iter().map(unit).collect()
}

//! `turn_success_rate`: answered queries / queries. An expected error is not an answer.

use super::catalogue::Registered;
use super::{Member, Metric, Observation, TrialView};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("turn_success_rate", |_| Box::new(TurnSuccessRate))
    .about("Queries that got an answer and not an error.")];

#[derive(Debug)]
pub(super) struct TurnSuccessRate;

impl Metric for TurnSuccessRate {
    fn units(&self) -> &'static str {
        "queries"
    }

    fn members(&self) -> &'static [Member] {
        &[Member::Answers]
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        let unit = |turn: &super::TurnView<'_>| match turn.answer() {
            Some(_) => Observation::success(turn.label()),
            None => Observation::failure(turn.label(), turn.ending()),
        };
        view.turns.iter().map(unit).collect()
    }
}

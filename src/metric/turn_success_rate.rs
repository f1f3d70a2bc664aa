//! `turn_success_rate`: queries that got an answer / queries. An expected error is no answer.

use super::{Metric, Observation, TrialView};

/// See the module.
#[derive(Debug)]
pub(super) struct TurnSuccessRate;

impl Metric for TurnSuccessRate {
    fn units(&self) -> &'static str {
        "queries"
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        let unit = |turn: &super::TurnView<'_>| match turn.answer() {
            Some(_) => Observation::success(turn.label()),
            None => Observation::failure(turn.label(), turn.ending()),
        };
        view.turns.iter().map(unit).collect()
    }
}

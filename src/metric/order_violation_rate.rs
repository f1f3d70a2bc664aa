//! `order_violation_rate`: queries with a tool call out of order / queries. Lower is better.

use super::catalogue::Registered;
use super::{Member, Metric, Observation, TrialView, quote};
use crate::trace::ToolOutcome;

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("order_violation_rate", |_| Box::new(OrderViolationRate))
    .about("Queries with a tool call out of order; lower is better.")
    .lower_is_better()];

#[derive(Debug)]
pub(super) struct OrderViolationRate;

impl Metric for OrderViolationRate {
    fn units(&self) -> &'static str {
        "queries"
    }

    fn members(&self) -> &'static [Member] {
        &[Member::Calls, Member::Outcomes]
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        let unit = |turn: &super::TurnView<'_>| match turn
            .calls()
            .find(|call| matches!(call.outcome, ToolOutcome::OutOfOrder(_)))
        {
            Some(call) => Observation::occurrence(turn.label(), format!("{} out of order", quote(&call.tool, 60))),
            None => Observation::failure(turn.label(), ""),
        };
        view.turns.iter().map(unit).collect()
    }
}

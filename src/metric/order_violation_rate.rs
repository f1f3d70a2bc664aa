//! `order_violation_rate`: queries with a tool call out of order / queries. Lower is better.

use super::catalogue::Registered;
use super::{Metric, Mode, Observation, TrialView, quote};
use crate::settings::catalogue::MetricEntry;
use crate::trace::ToolOutcome;

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered {
    entry: MetricEntry::rate("order_violation_rate", "Queries with a tool call out of order; lower is better.", &[])
        .lower_is_better(),
    make: |_| Box::new(OrderViolationRate),
}];

#[derive(Debug)]
pub(super) struct OrderViolationRate;

impl Metric for OrderViolationRate {
    fn units(&self) -> &'static str {
        "queries"
    }

    fn hidden_in_traffic(&self) -> Option<&'static str> {
        Some("traffic does not show which calls an agent refused as out of order")
    }

    fn hidden_in(&self, mode: Mode) -> Option<&'static str> {
        (mode == Mode::Imported).then_some("messages do not say in which order the agent was to call")
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

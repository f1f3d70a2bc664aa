//! `order_violation_rate`: queries with a tool call out of order / queries. Lower is better.

use super::catalogue::Registered;
use super::{Member, Metric, Observation, TrialView, quote};
use crate::trace::ToolOutcome;

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("order_violation_rate", |_| Metric {
    members: &[Member::Calls, Member::Outcomes],
    ..Metric::new("queries", observe)
})
.about("Queries with a tool call out of order; lower is better.")
.lower_is_better()];

fn observe(view: &TrialView<'_>) -> Vec<Observation> {
    let unit =
        |turn: &super::TurnView<'_>| match turn.calls().find(|call| matches!(call.outcome, ToolOutcome::OutOfOrder(_)))
        {
            Some(call) => Observation::occurrence(turn.label(), format!("{} out of order", quote(&call.tool, 60))),
            None => Observation::failure(turn.label(), ""),
        };
    view.turns.iter().map(unit).collect()
}

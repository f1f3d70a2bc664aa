//! `keyword_coverage`: queries whose every external result was indexed and found again / queries with at least one
//! external result (SC-003).
//!
//! A result is found again when each keyword, looked up alone, returned the entry with this result as its source. An
//! acknowledgement alone is not enough. What was indexed before the result arrived does not count for it.

use super::catalogue::Registered;
use super::tools::Tools;
use super::{Held, Member, Metric, Observation, Seen, TrialView, TurnView};
use crate::settings::catalogue::Units;
use crate::trace::{Role, ToolResult};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("keyword_coverage", |_| Metric {
    needs: vec![Tools::Role(Role::External), Tools::Role(Role::Index)],
    members: &[Member::IndexWrites],
    ..Metric::new("queries with an external result", observe)
})
.about("Of the queries with an external result, those whose results were all indexed by keywords and read back.")
.counted(Units::OfTurns)];

/// Whether each external result of a turn was indexed and read back; the error describes the first that was not.
pub(super) fn indexed(turn: &TurnView<'_>) -> Held {
    for (at, external) in turn.retrievals().enumerate().filter_map(|(at, result)| Some((at, result.external()?))) {
        let mut reason = "no keywords were indexed for it";
        let later = turn.retrievals().skip(at).filter_map(ToolResult::indexed);
        let held = later.filter(|index| index.result == external.result).any(|index| {
            if index.keywords.is_empty() {
                reason = "it was indexed without any keyword";
                return false;
            }
            reason = "not every keyword was found again";
            index.keywords.iter().all(|keyword| index.read_back.contains(keyword))
        });
        if !held {
            return Err(Seen::new(format!("{}: {reason}", super::quote(&external.result, 60))));
        }
    }
    Ok(())
}

fn observe(view: &TrialView<'_>) -> Vec<Observation> {
    let unit = |turn: &TurnView<'_>| Observation::of(turn.label(), indexed(turn));
    view.turns.iter().filter(|turn| turn.externals().next().is_some()).map(unit).collect()
}

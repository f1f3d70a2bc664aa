//! `citation_validity`: answers whose every source was given to the model in the conversation / answers that name a
//! source.
//!
//! An answer without sources is not a unit. A source counts as given when it appeared in an earlier turn of the
//! conversation, or in this one before the response was called: for an internal source as a hit's id, for an external
//! one as an external result's id or the URL of one of its citations (a learned entry's too). The case of an address's
//! host and a `/` at its end make no difference.

use super::catalogue::Registered;
use super::turns::{is_traceable, untraceable};
use super::{Member, Metric, Observation, TrialView, quote};
use crate::settings::catalogue::Units;
use crate::trace::ToolResult;
use crate::trace::citations::one_spelling;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("citation_validity", |_| Metric {
    unseen: Box::new(untraceable),
    members: &[Member::Passages, Member::Sources],
    ..Metric::new("answers with sources", observe)
})
.about("Of the answers with sources, those that name only what the conversation retrieved.")
.counted(Units::OfTurns)];

/// Kind and id, in one spelling, of every source that can be cited from these results.
pub(super) fn retrieved<'t>(
    results: impl Iterator<Item = &'t ToolResult>,
) -> impl Iterator<Item = (&'static str, Cow<'t, str>)> {
    results.flat_map(ToolResult::names).map(|(kind, id)| (kind, one_spelling(id)))
}

fn observe(view: &TrialView<'_>) -> Vec<Observation> {
    let mut units = Vec::new();
    let mut given: BTreeSet<(&str, Cow<'_, str>)> = BTreeSet::new();
    let mut conversation = None;
    for turn in view.turns {
        if conversation != Some(turn.conversation) {
            conversation = Some(turn.conversation);
            given.clear();
        }
        given.extend(retrieved(turn.retrievals_before_response()));
        let answer = turn.answer().filter(|answer| !answer.sources.is_empty() && is_traceable(view, turn));
        let invented = answer.and_then(|answer| {
            answer.sources.iter().find(|source| !given.contains(&(source.kind.as_str(), one_spelling(&source.id))))
        });
        let why = invented.map(|source| {
            let (kind, id) = (quote(&source.kind, 20), quote(&source.id, 80));
            format!("cites {id}, which no earlier call gave as {kind}")
        });
        units.extend(answer.map(|_| Observation::unless(turn.label(), why)));
        // What arrived too late for this answer is available to the next.
        given.extend(retrieved(turn.retrievals()));
    }
    units
}

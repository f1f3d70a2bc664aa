//! `citation_provenance`: answers of which every citation was retrieved, named by the response call and shown with
//! its number unchanged / answers that cite something. [`provenance`] defines the possible flaws.

use super::catalogue::Registered;
use super::provenance::provenance;
use super::turns::{is_traceable, untraceable};
use super::{Member, Metric, Observation, TrialView};
use crate::settings::catalogue::Units;

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("citation_provenance", |_| Metric {
    unseen: Box::new(untraceable),
    members: &[Member::Passages, Member::Sources],
    ..Metric::new("answers that cite", observe)
})
.about(
    "Of the answers that cite, those whose every citation was retrieved, named and shown, none \
             lost, invented or renumbered.",
)
.counted(Units::OfTurns)];

fn observe(view: &TrialView<'_>) -> Vec<Observation> {
    let found = provenance(view.trace);
    let unit = |turn: &super::TurnView<'_>| {
        let found = found.get(&(turn.conversation, turn.turn)).filter(|found| found.cites)?;
        Some(match found.flaws.as_slice() {
            [] => Observation::success(turn.label()),
            [flaw] => Observation::failure(turn.label(), flaw.clone()),
            [flaw, rest @ ..] => Observation::failure(turn.label(), format!("{flaw}, and {} more", rest.len())),
        })
    };
    view.turns.iter().filter(|turn| is_traceable(view, turn)).filter_map(unit).collect()
}

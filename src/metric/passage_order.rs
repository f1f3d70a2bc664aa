//! `passage_order`: searches whose passages stand best first / searches that found two passages or more.
//!
//! Scores are those of the index, where a higher one is better. Entries that were learned have a score of their own and
//! are not compared.

use super::catalogue::Registered;
use super::{Member, Metric, Observation, TurnView};
use crate::settings::catalogue::Units;
use crate::trace::SearchResult;

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("passage_order", |_| Metric {
    members: &[Member::Passages],
    ..Metric::new("searches", |view| {
        view.turns.iter().flat_map(|turn| turn.searches().filter_map(|search| unit(turn, search))).collect()
    })
})
.about("Of the searches with several passages, those that return the best first.")
.counted(Units::OfTurns)];

/// The unit of a search, if it has passages to compare.
fn unit(turn: &TurnView<'_>, search: &SearchResult) -> Option<Observation> {
    let found: Vec<_> = search.hits.iter().filter(|hit| hit.learned.is_none()).collect();
    let worse = found.windows(2).find(|pair| pair[0].raw_score < pair[1].raw_score);
    let note = worse.map(|pair| {
        let [before, after] = [0, 1].map(|at| super::quote(&pair[at].id, 60));
        format!("{before} stands before {after}, which has a higher score")
    });
    (found.len() > 1).then(|| Observation::unless(turn.label(), note))
}

//! `satisfaction`: rated trials whose answer combines both sources and whose rater was satisfied / rated trials whose
//! answer combines both sources (SC-004).
//!
//! Without a ratings file it is a proxy, [`super::combined_sources`]: of the answers for which both sources gave
//! evidence, those that use both. That describes what an answer is made of and not satisfaction, so it never passes.

use super::catalogue::Registered;
use super::combined_sources::{mixed, unit};
use super::tools::Tools;
use super::{Basis, Member, Metric, Observation, TrialView};
use crate::settings::catalogue::Units;
use crate::trace::Role;

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("satisfaction", |_| Metric {
    needs: vec![Tools::Role(Role::Knowledge), Tools::Role(Role::External)],
    basis: Basis::Ratings,
    members: &[Member::Passages, Member::Sources],
    ..Metric::new("answers from both sources", observe)
})
.about("Rated answers from both sources whose rater was satisfied; without ratings a proxy that never passes.")
.rated()
.counted(Units::OfTurns)];

fn observe(view: &TrialView<'_>) -> Vec<Observation> {
    let mut combined = view.turns.iter().filter(|turn| mixed(turn));
    if let Some(ratings) = &view.plan.ratings {
        // A rating covers the whole trial; an unrated trial is not measured and is not a failure.
        return match (ratings.get(&view.trial.id), combined.next()) {
            (Some(true), Some(_)) => vec![Observation::success("rating")],
            (Some(false), Some(_)) => vec![Observation::failure("rating", "the rater was not satisfied")],
            _ => Vec::new(),
        };
    }
    combined.filter_map(unit).collect()
}

//! `source_flags`: answers whose flags name the kinds of their sources / answers.
//!
//! `used_internal_kb` is true where a source is of the knowledge base, and `used_external_kb` where one is of the search
//! service (FR-014); a confidence lies between 0 and 1 (FR-009). A flag or a list of sources that is undetermined is not compared; an answer without both flags and
//! sources to compare is not a unit.

use super::catalogue::Registered;
use super::{Member, Metric, Observation, TurnView};
use crate::settings::catalogue::Units;
use crate::trace::{SOURCES, USED_EXTERNAL_KB, USED_INTERNAL_KB};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("source_flags", |_| Metric {
    members: &[Member::Sources, Member::Claims],
    ..Metric::new("answers", |view| view.turns.iter().filter_map(unit).collect())
})
.about("Of the answers, those whose flags say which kinds of sources they name.")
.counted(Units::OfTurns)];

/// The unit of a turn's answer, if there is something to compare.
fn unit(turn: &TurnView<'_>) -> Option<Observation> {
    let answer = turn.answer().filter(|answer| !answer.hides(SOURCES))?;
    let flags = [
        ("internal", USED_INTERNAL_KB, answer.used_internal_kb),
        ("external", USED_EXTERNAL_KB, answer.used_external_kb),
    ];
    let known: Vec<_> = flags.into_iter().filter(|(_, member, _)| !answer.hides(member)).collect();
    let has = |kind: &str| answer.sources.iter().any(|source| source.kind == kind);
    if let Some(confidence) = answer.confidence.filter(|confidence| !(0.0..=1.0).contains(confidence)) {
        return Some(Observation::failure(turn.label(), format!("the confidence is {confidence}, not 0 to 1")));
    }
    let wrong = known.iter().find(|(kind, _, flag)| has(kind) != *flag);
    let why = wrong.map(|(kind, member, flag)| {
        let names = if has(kind) { "names an" } else { "names no" };
        format!("`{member}` is {flag}, and the answer {names} {kind} source")
    });
    (!known.is_empty()).then(|| Observation::unless(turn.label(), why))
}

//! `refusal_rate`: answers that rest on nothing, and say so by naming no source and claiming none / queries for which
//! nothing was found.
//!
//! Nothing was found where at least one search ran and none gave a passage or a citation, or where the case says that
//! the question cannot be answered (`answer.refusal: true`). In which words an answer refuses is for `answer.matches`.

use super::catalogue::Registered;
use super::expectation::answers;
use super::{Metric, Mode, Observation, TrialView, TurnView};
use crate::catalogue::MetricEntry;
use crate::trace::Answer;

/// What criteria may name.
pub(super) const ENTRIES: &[Registered] = &[Registered {
    entry: MetricEntry::rate(
        "refusal_rate",
        "Of the queries for which nothing was found, those whose answer claims no source.",
        &[],
    ),
    make: |_| Box::new(RefusalRate),
}];

/// See the module.
#[derive(Debug)]
pub(super) struct RefusalRate;

/// Whether an answer names no source and claims none.
pub(super) fn refuses(answer: &Answer) -> bool {
    answer.sources.is_empty() && !answer.used_internal_kb && !answer.used_external_kb
}

fn found_nothing(turn: &TurnView<'_>) -> bool {
    let searched = turn.searches().next().is_some() || turn.externals().next().is_some();
    searched
        && turn.searches().all(|search| search.hits.is_empty())
        && turn.externals().all(|external| external.citations.is_empty())
}

impl Metric for RefusalRate {
    fn units(&self) -> &'static str {
        "queries for which nothing was found"
    }

    fn hidden_in_traffic(&self) -> Option<&'static str> {
        Some("traffic does not show what an agent's answers claim to rest on")
    }

    fn hidden_in(&self, mode: Mode) -> Option<&'static str> {
        (mode == Mode::Imported).then_some("messages do not say what was retrieved or cited")
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        let expected: Vec<(u32, u32)> = answers(view)
            .filter(|(_, expected)| expected.refusal == Some(true))
            .map(|(turn, _)| (turn.conversation, turn.turn))
            .collect();
        let counts = |turn: &&TurnView<'_>| found_nothing(turn) || expected.contains(&(turn.conversation, turn.turn));
        let unit = |turn: &TurnView<'_>| match turn.answer() {
            Some(answer) if refuses(answer) => Observation::success(turn.label()),
            Some(_) => Observation::failure(turn.label(), "names or claims a source though nothing was found"),
            None => Observation::failure(turn.label(), turn.ending()),
        };
        view.turns.iter().filter(counts).map(unit).collect()
    }
}

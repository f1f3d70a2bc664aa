//! `combined_sources`: answers that cite both the knowledge base and the external service / answers for which both gave
//! something. A source that the answer calls by the wrong kind counts for neither. What an answer is made of, and nothing about anyone's satisfaction.

use super::catalogue::Registered;
use super::citation_validity::retrieved;
use super::tools::Tools;
use super::{Metric, Mode, Observation, TrialView, TurnView};
use crate::settings::catalogue::MetricEntry;
use crate::trace::Role;
use std::collections::BTreeMap;

/// What criteria may name.
pub(super) const ENTRIES: &[Registered] = &[Registered {
    entry: MetricEntry::rate(
        "combined_sources",
        "Of the answers for which both sources gave something, those that cite both.",
        &[],
    ),
    make: |_| Box::new(CombinedSources),
}];

/// See the module.
#[derive(Debug)]
pub(super) struct CombinedSources;

/// Whether there is an answer, and both sources gave something for it.
pub(super) fn mixed(turn: &TurnView<'_>) -> bool {
    let internal = turn.searches().any(|search| !search.hits.is_empty());
    turn.answer().is_some() && internal && turn.externals().next().is_some()
}

/// One unit for an answer for which both sources gave something.
pub(super) fn unit(turn: &TurnView<'_>) -> Observation {
    // By id: what this turn gave is of the kind that gave it. What it did not give, an earlier turn may have given.
    let given: BTreeMap<&str, &str> = retrieved(turn.retrievals()).map(|(kind, id)| (id, kind)).collect();
    let cites = |kind: &str| {
        let sources = turn.answer().map(|answer| answer.sources.as_slice()).unwrap_or_default();
        sources.iter().any(|source| source.kind == kind && given.get(source.id.as_str()).is_none_or(|by| *by == kind))
    };
    match (cites("internal"), cites("external")) {
        (true, true) => Observation::success(turn.label()),
        (true, false) => Observation::failure(turn.label(), "cites no external source"),
        (false, true) => Observation::failure(turn.label(), "cites no internal source"),
        (false, false) => Observation::failure(turn.label(), "cites neither source"),
    }
}

impl Metric for CombinedSources {
    fn needs(&self) -> Vec<Tools> {
        vec![Tools::Role(Role::Knowledge), Tools::Role(Role::External)]
    }

    fn units(&self) -> &'static str {
        "answers from both sources"
    }

    fn hidden_in(&self, mode: Mode) -> Option<&'static str> {
        (mode == Mode::Imported).then_some("messages do not say what an answer is made of")
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        view.turns.iter().filter(|turn| mixed(turn)).map(unit).collect()
    }
}

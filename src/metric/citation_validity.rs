//! `citation_validity`: answers whose every source was given to the model in the conversation / answers that name a
//! source.
//!
//! An answer without sources cites nothing wrong and nothing right: no unit. Given means: a hit's id, an external
//! result's id, or the URL of one of its citations (a learned entry's too), in this turn or an earlier one of the conversation.

use super::catalogue::Registered;
use super::{Metric, Mode, Observation, TrialView, quote};
use crate::catalogue::MetricEntry;
use std::collections::BTreeSet;

/// What criteria may name.
pub(super) const ENTRIES: &[Registered] = &[Registered {
    entry: MetricEntry::rate(
        "citation_validity",
        "Of the answers with sources, those that name only what the conversation retrieved.",
        &[],
    ),
    make: |_| Box::new(CitationValidity),
}];

/// See the module.
#[derive(Debug)]
pub(super) struct CitationValidity;

impl Metric for CitationValidity {
    fn units(&self) -> &'static str {
        "answers with sources"
    }

    fn hidden_in_traffic(&self) -> Option<&'static str> {
        Some("traffic does not show by which names an agent's answers cite its passages")
    }

    fn hidden_in(&self, mode: Mode) -> Option<&'static str> {
        (mode == Mode::Imported).then_some("messages do not say what was retrieved or cited")
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        let mut units = Vec::new();
        let mut given: BTreeSet<&str> = BTreeSet::new();
        let mut conversation = None;
        for turn in view.turns {
            if conversation != Some(turn.conversation) {
                conversation = Some(turn.conversation);
                given.clear();
            }
            given.extend(turn.searches().flat_map(|search| search.hits.iter().map(|hit| hit.id.as_str())));
            let hits = turn.searches().flat_map(|search| &search.hits);
            given.extend(
                hits.filter_map(|hit| hit.learned.as_ref()).flat_map(|one| one.urls.iter().map(String::as_str)),
            );
            for external in turn.externals() {
                given.insert(&external.result);
                given.extend(external.citations.iter().map(|(_, url)| url.as_str()));
            }
            let Some(answer) = turn.answer().filter(|answer| !answer.sources.is_empty()) else { continue };
            let invented = answer.sources.iter().find(|source| !given.contains(source.id.as_str()));
            units.push(match invented {
                None => Observation::success(turn.label()),
                Some(source) => {
                    Observation::failure(turn.label(), format!("cites {}, which it never got", quote(&source.id, 80)))
                }
            });
        }
        units
    }
}

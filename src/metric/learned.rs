//! `learned_retrieval`, `learned_found` and `learned_harm`: what indexed keywords add to later searches, how often they
//! are found, and what they cost (SC-006).
//!
//! All three compare each search with the same search without the keyword index; the trace holds both. Units of
//! `learned_retrieval` and `learned_found` are the queries of conversations labelled, before any run, as repeating,
//! paraphrasing or relating to an earlier one, with what answers them. `kind` restricts a metric to one of these
//! labels, and for `learned_harm` also to unrelated. A rescue finds something relevant among the learned entries and
//! nothing relevant without them, so documents that answer everything leave no rescue; `learned_found` asks only
//! whether a relevant learned entry was found. Units of `learned_harm` are these queries and the unrelated controls:
//! harm is a relevant passage lost, or, for a control, an unrelated learned entry among the hits.

use super::catalogue::Registered;
use super::tools::Tools;
use super::turns::names;
use super::{Metric, Mode, Observation, TrialView, TurnView, quote};
use crate::plan::ResolvedCase;
use crate::scenario::document::{Related, RelatedKind};
use crate::settings::catalogue::{MetricEntry, Parameter, Units};
use crate::trace::Role;

const KIND: Parameter = Parameter::one_of("kind", &["all", "repeat", "paraphrase", "related"], "all");
const KIND_OF_ALL: Parameter =
    Parameter::one_of("kind", &["all", "repeat", "paraphrase", "related", "unrelated"], "all");

/// Parses a label; `None` means all.
fn kind(name: &str) -> Option<RelatedKind> {
    match name {
        "repeat" => Some(RelatedKind::Repeat),
        "paraphrase" => Some(RelatedKind::Paraphrase),
        "related" => Some(RelatedKind::Related),
        "unrelated" => Some(RelatedKind::Unrelated),
        _ => None,
    }
}

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[
    Registered {
        entry: MetricEntry::rate(
            "learned_retrieval",
            "Later related queries that find something only because of keywords indexed earlier.",
            &[KIND],
        ),
        make: |asked| Box::new(LearnedRetrieval { kind: kind(asked.parameter("kind")), found: false }),
    },
    Registered {
        entry: MetricEntry::rate(
            "learned_found",
            "Later related queries that find what was learned earlier and answers them, whatever the documents hold.",
            &[KIND],
        ),
        make: |asked| Box::new(LearnedRetrieval { kind: kind(asked.parameter("kind")), found: true }),
    },
    Registered {
        entry: MetricEntry::rate(
            "learned_harm",
            "Labelled queries that lose a relevant passage to learned entries, or get an unrelated one; lower is better.",
            &[KIND_OF_ALL],
        )
        .lower_is_better()
        .counted(Units::OfTurns),
        make: |asked| Box::new(LearnedHarm { kind: kind(asked.parameter("kind")) }),
    },
];

#[derive(Debug)]
pub(super) struct LearnedRetrieval {
    /// The label that counts; `None` means all except unrelated.
    pub(super) kind: Option<RelatedKind>,
    /// Whether to count learned entries that were found where the documents would have sufficed.
    pub(super) found: bool,
}

#[derive(Debug)]
pub(super) struct LearnedHarm {
    /// The label that counts; `None` means all.
    kind: Option<RelatedKind>,
}

/// Search results of one turn.
struct TurnResults {
    searched: bool,
    learned: bool,
    with: bool,
    without: bool,
}

fn found(turn: &TurnView<'_>, related: &Related, origin: Option<u32>) -> TurnResults {
    let mut result = TurnResults { searched: false, learned: false, with: false, without: false };
    let relevant = |id: &str| related.relevant.iter().any(|wanted| names(wanted, id));
    let answers = related.relevant.iter().any(|wanted| wanted == Related::LEARNED);
    for search in turn.searches() {
        result.searched = true;
        for hit in &search.hits {
            let rescued = hit.learned.as_ref().is_some_and(|learned| Some(learned.conversation) == origin);
            result.learned |= rescued;
            result.with |= (rescued && answers) || relevant(&hit.id);
        }
        result.without |= search.without_learned.iter().any(|id| relevant(id));
    }
    result
}

/// The turns of labelled conversations, each with its label and search results.
fn labelled<'a>(view: &TrialView<'a>) -> Vec<(&'a TurnView<'a>, &'a Related, TurnResults)> {
    let mut units = Vec::new();
    for turn in view.turns {
        let mut conversations = view.case.case.conversations();
        let Some(related) = conversations.find(|one| one.name == turn.name).and_then(|one| one.related.as_ref()) else {
            continue;
        };
        // The trace's names decide; a conversation that never began learned nothing.
        let origin = view.turns.iter().find(|other| other.name == related.to).map(|other| other.conversation);
        units.push((turn, related, found(turn, related, origin)));
    }
    units
}

impl Metric for LearnedRetrieval {
    fn needs(&self) -> Vec<Tools> {
        vec![Tools::Role(Role::Knowledge), Tools::Role(Role::Index)]
    }

    fn units(&self) -> &'static str {
        "related queries"
    }

    fn applies(&self, case: &ResolvedCase) -> bool {
        case.conversations().any(|one| one.related.as_ref().is_some_and(|related| self.counts(related)))
    }

    fn hidden_in_traffic(&self) -> Option<&'static str> {
        Some("traffic does not show what an agent's search would find without learned keywords")
    }

    fn hidden_in(&self, mode: Mode) -> Option<&'static str> {
        (mode == Mode::Imported).then_some("messages do not say what a search found")
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        let unit = |(turn, related, found): (&TurnView<'_>, &Related, TurnResults)| {
            let note = match found {
                TurnResults { searched: false, .. } => "no search ran".to_owned(),
                TurnResults { with: false, .. } => format!("nothing learned from {} was found", quote(&related.to, 60)),
                TurnResults { learned: false, .. } if self.found => "found without anything learned".to_owned(),
                TurnResults { without: true, .. } if !self.found => "found without anything learned too".to_owned(),
                _ => return Observation::success(turn.label()),
            };
            Observation::failure(turn.label(), note)
        };
        labelled(view).into_iter().filter(|item| self.counts(item.1)).map(unit).collect()
    }
}

impl LearnedRetrieval {
    fn counts(&self, related: &Related) -> bool {
        self.kind.map_or(related.kind != RelatedKind::Unrelated, |kind| related.kind == kind)
    }
}

impl Metric for LearnedHarm {
    fn needs(&self) -> Vec<Tools> {
        vec![Tools::Role(Role::Knowledge), Tools::Role(Role::Index)]
    }

    fn units(&self) -> &'static str {
        "labelled queries"
    }

    fn applies(&self, case: &ResolvedCase) -> bool {
        case.conversations().any(|one| one.related.as_ref().is_some_and(|related| self.counts(related)))
    }

    fn hidden_in_traffic(&self) -> Option<&'static str> {
        Some("traffic does not show what an agent's search would find without learned keywords")
    }

    fn hidden_in(&self, mode: Mode) -> Option<&'static str> {
        (mode == Mode::Imported).then_some("messages do not say what a search found")
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        let unit = |(turn, related, found): (&TurnView<'_>, &Related, TurnResults)| {
            if found.without && !found.with {
                Observation::occurrence(turn.label(), "a relevant passage was lost to learned entries")
            } else if related.kind == RelatedKind::Unrelated && found.learned {
                let note = format!("an entry learned from {} came up unasked", quote(&related.to, 60));
                Observation::occurrence(turn.label(), note)
            } else {
                Observation::failure(turn.label(), "")
            }
        };
        // Without a search nothing could be lost: no unit.
        labelled(view).into_iter().filter(|item| item.2.searched && self.counts(item.1)).map(unit).collect()
    }
}

impl LearnedHarm {
    fn counts(&self, related: &Related) -> bool {
        self.kind.is_none_or(|kind| related.kind == kind)
    }
}

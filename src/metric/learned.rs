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
use super::{Member, Metric, Observation, TrialView, TurnView, quote};
use crate::scenario::document::{Related, RelatedKind};
use crate::settings::catalogue::{Parameter, Units};
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
    Registered::rate("learned_retrieval", |asked| {
        Learned { kind: kind(asked.parameter("kind")), question: Question::Rescued }.metric()
    })
    .about("Later related queries that find something only because of keywords indexed earlier.")
    .takes(&[KIND]),
    Registered::rate("learned_found", |asked| {
        Learned { kind: kind(asked.parameter("kind")), question: Question::Found }.metric()
    })
    .about("Later related queries that find what was learned earlier and answers them, whatever the documents hold.")
    .takes(&[KIND]),
    Registered::rate("learned_harm", |asked| {
        Learned { kind: kind(asked.parameter("kind")), question: Question::Harmed }.metric()
    })
    .about(
        "Labelled queries that lose a relevant passage to learned entries, or get an unrelated one; lower is better.",
    )
    .takes(&[KIND_OF_ALL])
    .lower_is_better()
    .counted(Units::OfTurns),
];

#[derive(Debug, Clone, Copy)]
pub(super) struct Learned {
    /// The label that counts; `None` means all, for a benefit all except unrelated.
    kind: Option<RelatedKind>,
    question: Question,
}

/// What is asked of a labelled query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    /// Whether it finds something relevant, and only among learned entries.
    Rescued,
    /// Whether it finds something relevant among learned entries, where the documents would have sufficed too.
    Found,
    /// Whether learned entries cost it something.
    Harmed,
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

/// A turn of a labelled conversation, with its label and search results.
type LabelledTurn<'a> = (&'a TurnView<'a>, &'a Related, TurnResults);

/// The turns of labelled conversations.
fn labelled<'a>(view: &TrialView<'a>) -> Vec<LabelledTurn<'a>> {
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

impl Learned {
    fn metric(self) -> Metric {
        let units = if self.question == Question::Harmed { "labelled queries" } else { "related queries" };
        Metric {
            needs: vec![Tools::Role(Role::Knowledge), Tools::Role(Role::Index)],
            applies: Box::new(move |case| {
                case.conversations().any(|one| one.related.as_ref().is_some_and(|related| self.counts(related)))
            }),
            members: &[Member::Passages, Member::WithoutLearned],
            ..Metric::new(units, move |view| self.observe(view))
        }
    }

    fn observe(self, view: &TrialView<'_>) -> Vec<Observation> {
        let counted = labelled(view).into_iter().filter(|item| self.counts(item.1));
        if self.question == Question::Harmed {
            // Without a search nothing could be lost: no unit.
            counted.filter(|item| item.2.searched).map(harm).collect()
        } else {
            let found = self.question == Question::Found;
            counted.map(|item| benefit(item, found)).collect()
        }
    }

    fn counts(self, related: &Related) -> bool {
        let all = self.question == Question::Harmed || related.kind != RelatedKind::Unrelated;
        self.kind.map_or(all, |kind| related.kind == kind)
    }
}

/// Whether learned entries helped the query; with `found`, also where the documents would have sufficed.
fn benefit((turn, related, results): LabelledTurn<'_>, found: bool) -> Observation {
    let note = match results {
        TurnResults { searched: false, .. } => "no search ran".to_owned(),
        TurnResults { with: false, .. } => format!("nothing learned from {} was found", quote(&related.to, 60)),
        TurnResults { learned: false, .. } if found => "found without anything learned".to_owned(),
        TurnResults { without: true, .. } if !found => "found without anything learned too".to_owned(),
        _ => return Observation::success(turn.label()),
    };
    Observation::failure(turn.label(), note)
}

/// Whether learned entries cost the query a relevant passage, or came up for an unrelated one.
fn harm((turn, related, results): LabelledTurn<'_>) -> Observation {
    if results.without && !results.with {
        Observation::occurrence(turn.label(), "a relevant passage was lost to learned entries")
    } else if related.kind == RelatedKind::Unrelated && results.learned {
        let note = format!("an entry learned from {} came up unasked", quote(&related.to, 60));
        Observation::occurrence(turn.label(), note)
    } else {
        Observation::failure(turn.label(), "")
    }
}

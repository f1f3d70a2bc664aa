//! `combined_sources`: answers that use both the knowledge base and the external service / answers for which both gave
//! evidence (FR-013).
//!
//! A search that finds passages on another subject gives no evidence. A passage fits when its title and excerpt hold
//! a third of the question's words, or when the answer cites it. A kind of source counts as used when the answer
//! names a source of that kind and its text either cites one in place (a number, an id, an address) or shares at
//! least two words with it that neither the question nor the other kind has. Where the trace keeps no words of a
//! source, naming it is enough. The metric describes what an answer is made of and says nothing about satisfaction.

use super::catalogue::Registered;
use super::citation_validity::retrieved;
use super::tools::Tools;
use super::{Member, Metric, Observation, TurnView};
use crate::settings::catalogue::Units;
use crate::trace::citations::{Mark, marks, one_spelling};
use crate::trace::{Answer, Hit, Role};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("combined_sources", |_| Metric {
    needs: vec![Tools::Role(Role::Knowledge), Tools::Role(Role::External)],
    members: &[Member::Passages, Member::Sources],
    ..Metric::new("answers with evidence from both sources", |view| view.turns.iter().filter_map(unit).collect())
})
.about("Of the answers for which both sources gave evidence, those that name both and use both in their text.")
.counted(Units::OfTurns)];

/// Number of words unique to a source, within the turn, that show that a text uses it.
const OWN_WORDS: usize = 2;

/// Words of four letters and more that say nothing about a subject.
const COMMON: &[&str] = &[
    "about", "according", "after", "also", "been", "before", "being", "could", "does", "during", "each", "find",
    "from", "have", "here", "into", "long", "many", "more", "most", "much", "must", "only", "other", "over", "says",
    "should", "some", "such", "than", "that", "their", "them", "then", "there", "these", "they", "this", "those",
    "until", "very", "were", "what", "when", "where", "which", "while", "will", "with", "would", "your",
];

/// Whether there is an answer and both sources returned something for it.
pub(super) fn mixed(turn: &TurnView<'_>) -> bool {
    let internal = turn.searches().any(|search| !search.hits.is_empty());
    turn.answer().is_some() && internal && turn.externals().next().is_some()
}

/// Whether the results of both sources are evidence for the answer.
fn both_gave_evidence(turn: &TurnView<'_>) -> bool {
    let Some(answer) = turn.answer().filter(|_| mixed(turn)) else { return false };
    let asked = words(turn.query);
    let fits = |hit: &Hit| {
        let has = hit_words(hit);
        // Without words there is no sign that it does not.
        asked.is_empty() || has.is_empty() || asked.intersection(&has).count() * 3 >= asked.len()
    };
    answer.sources.iter().any(|source| source.kind == "internal")
        || turn.searches().flat_map(|search| &search.hits).any(fits)
}

/// One unit for an answer for which both sources gave evidence.
pub(super) fn unit(turn: &TurnView<'_>) -> Option<Observation> {
    let answer = turn.answer().filter(|_| both_gave_evidence(turn))?;
    // By id: a source given in this turn has the kind of its giver. Any other may come from an earlier turn.
    let given: BTreeMap<Cow<'_, str>, &str> = retrieved(turn.retrievals()).map(|(kind, id)| (id, kind)).collect();
    let cites = |kind: &str| {
        answer
            .sources
            .iter()
            .any(|one| one.kind == kind && given.get(&one_spelling(&one.id)).is_none_or(|by| *by == kind))
    };
    let uses = |kind: &str| in_the_text(turn, answer, kind);
    Some(match (cites("internal"), cites("external")) {
        (true, true) => match (uses("internal"), uses("external")) {
            (true, true) => Observation::success(turn.label()),
            (true, false) => Observation::failure(turn.label(), "names an external source, and its text uses none"),
            (false, true) => Observation::failure(turn.label(), "names an internal source, and its text uses none"),
            (false, false) => Observation::failure(turn.label(), "names both sources, and its text uses neither"),
        },
        (true, false) => Observation::failure(turn.label(), "cites no external source"),
        (false, true) => Observation::failure(turn.label(), "cites no internal source"),
        (false, false) => Observation::failure(turn.label(), "cites neither source"),
    })
}

/// Whether the text cites a source of that kind in place, or has words found only in such a source.
fn in_the_text(turn: &TurnView<'_>, answer: &Answer, kind: &str) -> bool {
    let named = |id: &str| answer.sources.iter().any(|source| source.kind == kind && source.id == id);
    let cited = marks(&answer.text).into_iter().any(|mark| match mark {
        Mark::Number(number, _) => answer.source_of(number).is_some_and(|source| source.kind == kind),
        Mark::Id(id) | Mark::Address(id) => named(&id),
    });
    if cited {
        return true;
    }
    let (mut internal, mut external) = (BTreeSet::new(), BTreeSet::new());
    for hit in turn.searches().flat_map(|search| &search.hits).filter(|hit| kind == "external" || named(&hit.id)) {
        internal.extend(hit_words(hit));
    }
    for found in turn.externals() {
        external.extend(words(&found.answer));
    }
    let (own, other) = if kind == "internal" { (internal, external) } else { (external, internal) };
    let asked = words(turn.query);
    let own: BTreeSet<&String> = own.iter().filter(|word| !other.contains(*word) && !asked.contains(*word)).collect();
    let said = words(&answer.text);
    own.len() < OWN_WORDS || own.into_iter().filter(|word| said.contains(*word)).count() >= OWN_WORDS
}

fn hit_words(hit: &Hit) -> BTreeSet<String> {
    let mut found = words(&hit.title);
    found.extend(words(&hit.excerpt));
    found
}

/// The words of a text that carry its subject: four letters and more, and numbers; lower case.
fn words(text: &str) -> BTreeSet<String> {
    let word = |word: &str| {
        let word = word.to_lowercase();
        let counts = word.chars().count() > 3 || word.contains(|one: char| one.is_ascii_digit());
        (counts && !COMMON.contains(&word.as_str())).then_some(word)
    };
    text.split(|letter: char| !letter.is_alphanumeric()).filter_map(word).collect()
}

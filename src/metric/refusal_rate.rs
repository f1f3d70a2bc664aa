//! `refusal_rate`: answers that state that they cannot answer and neither name nor claim a source / queries for which
//! nothing was found.
//!
//! Nothing was found where at least one search ran and none returned a passage, a citation or a managed service's answer,
//! or where the case declares the question unanswerable (`answer.refusal: true`). Refusals are recognised by the phrases in
//! `trace::refusal`; a case that expects a refusal and lists phrases (`answer.contains`, `answer.matches`) is decided
//! by those.

use super::catalogue::Registered;
use super::expectation::answers;
use super::text_match::contains;
use super::{Member, Metric, Observation, TrialView, TurnView};
use crate::scenario::expect::AnswerExpectation;
use crate::settings::catalogue::Units;
use crate::settings::expression;
use crate::trace::refusal::says_that_it_cannot_answer;
use crate::trace::{Answer, SOURCES};
use std::collections::BTreeMap;

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("refusal_rate", |_| Metric {
    members: &[Member::Passages, Member::Sources, Member::Claims],
    ..Metric::new("queries for which nothing was found", observe)
})
.about("Of the queries for which nothing was found, those whose answer says so and claims no source.")
.counted(Units::OfTurns)];

/// Whether an answer neither names nor claims a source.
pub(super) fn claims_nothing(answer: &Answer) -> bool {
    answer.sources.is_empty() && !answer.used_internal_kb && !answer.used_external_kb
}

/// Whether an answer may be a refusal, by its sources. Where the reply shows none, that the agent searched is no claim.
pub(super) fn may_be_refusal(answer: &Answer) -> bool {
    claims_nothing(answer) || answer.sources.is_empty() && answer.hides(SOURCES)
}

/// Whether an answer states that it cannot answer, by the case's phrases if it lists some, otherwise by ours.
pub(super) fn says_so(answer: &Answer, expected: Option<&AnswerExpectation>) -> bool {
    match expected.filter(|expected| !expected.contains.is_empty() || !expected.matches.is_empty()) {
        None => answer.refused || says_that_it_cannot_answer(&answer.text),
        Some(own) => {
            let matches = |written: &String| expression(written).is_ok_and(|made| made.is_match(&answer.text));
            own.contains.iter().all(|part| contains(&answer.text, part)) && own.matches.iter().all(matches)
        }
    }
}

fn found_nothing(turn: &TurnView<'_>) -> bool {
    let searched = turn.searches().next().is_some() || turn.externals().next().is_some();
    searched
        && turn.searches().all(|search| !search.found_something())
        && turn.externals().all(|external| external.citations.is_empty())
}

fn observe(view: &TrialView<'_>) -> Vec<Observation> {
    let expected: BTreeMap<(u32, u32), &AnswerExpectation> = answers(view)
        .filter(|(_, expected)| expected.refusal == Some(true))
        .map(|(turn, expected)| ((turn.conversation, turn.turn), expected))
        .collect();
    let of = |turn: &TurnView<'_>| expected.get(&(turn.conversation, turn.turn)).copied();
    let unit = |turn: &TurnView<'_>| match turn.answer() {
        Some(answer) if !may_be_refusal(answer) => {
            Observation::failure(turn.label(), "names or claims a source though nothing was found")
        }
        Some(answer) if says_so(answer, of(turn)) => Observation::success(turn.label()),
        Some(_) => Observation::failure(turn.label(), "does not say that it cannot answer"),
        None => Observation::failure(turn.label(), turn.ending()),
    };
    view.turns.iter().filter(|turn| found_nothing(turn) || of(turn).is_some()).map(unit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_searched_may_be_refusal_unless_its_reply_names_or_claims_a_source() {
        let answer = |used_internal_kb, unseen: &[&str]| Answer {
            used_internal_kb,
            unseen: unseen.iter().map(|member| (*member).to_owned()).collect(),
            ..Answer::default()
        };
        assert!(may_be_refusal(&answer(false, &[])));
        assert!(may_be_refusal(&answer(true, &[SOURCES])), "its reply shows no sources: it only searched");
        assert!(!may_be_refusal(&answer(true, &[])));
    }
}

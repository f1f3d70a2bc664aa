//! `citation_precision` and `citation_recall`, for cases with `answer.evidence`: cited sources that are evidence /
//! cited sources, and evidence that is cited / evidence.
//!
//! Units are the different sources of an answer and the different pieces of evidence. A turn without an answer cites none
//! of its evidence; an answer that cites nothing has no precision. Matching is by id alone: whether a passage entails a
//! sentence is a question for a grader.

use super::catalogue::Registered;
use super::expectation::{answers, expects};
use super::turns::{is_traceable, names, untraceable};
use super::{Member, Metric, Observation, TrialView, quote};
use crate::settings::catalogue::Units;
use crate::trace::citations::one_spelling;
use std::collections::BTreeSet;

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[
    Registered::rate("citation_precision", |_| metric(Of::Precision, "sources of answers with known evidence"))
        .about("Of the sources that answers with known evidence cite, those that are evidence.")
        .counted(Units::Unlimited),
    Registered::rate("citation_recall", |_| metric(Of::Recall, "pieces of evidence"))
        .about("Of the evidence that cases give, what the answers cite."),
];

/// Which of the two metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// Cited sources.
    Precision,
    /// Evidence.
    Recall,
}

fn metric(of: Of, units: &'static str) -> Metric {
    let expects_evidence = |view: &TrialView<'_>| answers(view).any(|(_, expected)| !expected.evidence.is_empty());
    Metric {
        members: &[Member::Sources],
        applies: Box::new(|case| expects(case, |answer| !answer.evidence.is_empty())),
        unseen: Box::new(move |view| untraceable(view).filter(|_| expects_evidence(view))),
        ..Metric::new(units, move |view| observe(view, of))
    }
}

fn observe(view: &TrialView<'_>, of: Of) -> Vec<Observation> {
    let mut units = Vec::new();
    for (turn, expected) in answers(view).filter(|(turn, _)| turn.answer().is_none() || is_traceable(view, turn)) {
        let evidence = &expected.evidence;
        let cited: Vec<&str> =
            turn.answer().iter().flat_map(|answer| &answer.sources).map(|source| source.id.as_str()).collect();
        let mut push = |what: &str, holds: bool, note: &str| {
            let unit = format!("{}, {}", turn.label(), quote(what, 80));
            units.push(if holds { Observation::success(unit) } else { Observation::failure(unit, note) });
        };
        // An answer may name a source for each of its marks, and a list from a table or another tool may repeat an id.
        let mut counted = BTreeSet::new();
        match of {
            _ if evidence.is_empty() => {}
            Of::Precision => {
                for id in cited.into_iter().filter(|id| counted.insert(one_spelling(id))) {
                    push(id, evidence.iter().any(|wanted| names(wanted, id)), "cited, and no evidence");
                }
            }
            Of::Recall => {
                for wanted in evidence.iter().filter(|wanted| counted.insert(one_spelling(wanted))) {
                    push(wanted, cited.iter().any(|id| names(wanted, id)), "evidence, and not cited");
                }
            }
        }
    }
    units
}

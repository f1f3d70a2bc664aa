//! `nugget_recall(of)`: nuggets found in answers / nuggets of the cases that list some (`answer.nuggets`); vital ones
//! alone, or all.
//!
//! After AutoNuggetizer (Pradeep et al. 2024), with the strict score: a nugget counts when the answer has one of its
//! spellings, both normalised as for `answer.contains`; half a nugget does not count. A turn without an answer has
//! none.

use super::catalogue::Registered;
use super::expectation::{answers, expects};
use super::text_match::contains;
use super::{Member, Metric, Observation, TrialView, quote};
use crate::scenario::expect::Nugget;
use crate::settings::catalogue::Parameter;

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] =
    &[Registered::rate("nugget_recall", |asked| metric(asked.parameter("of") == "vital"))
        .about("Of the facts that cases ask of answers, those that the answers hold.")
        .takes(&[Parameter::one_of("of", &["vital", "all"], "vital")])];

/// The metric of vital nuggets alone, or of all.
fn metric(vital: bool) -> Metric {
    Metric {
        members: &[Member::Answers],
        applies: Box::new(move |case| expects(case, |answer| answer.nuggets.iter().any(|one| counts(one, vital)))),
        ..Metric::new(if vital { "vital nuggets" } else { "nuggets" }, move |view| observe(view, vital))
    }
}

fn counts(nugget: &Nugget, vital: bool) -> bool {
    nugget.vital || !vital
}

fn observe(view: &TrialView<'_>, vital: bool) -> Vec<Observation> {
    let mut units = Vec::new();
    for (turn, expected) in answers(view) {
        let text = turn.answer().map(|answer| answer.text.as_str());
        for nugget in expected.nuggets.iter().filter(|one| counts(one, vital)) {
            let first = nugget.any_of.first().map(String::as_str).unwrap_or_default();
            let unit = format!("{}, {}", turn.label(), quote(first, 60));
            let held = |text: &str| nugget.any_of.iter().any(|spelling| contains(text, spelling));
            units.push(match text {
                Some(text) if held(text) => Observation::success(unit),
                Some(_) => Observation::failure(unit, "not in the answer"),
                None => Observation::failure(unit, turn.ending()),
            });
        }
    }
    units
}

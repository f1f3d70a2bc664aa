//! `nugget_recall(of)`: nuggets found in answers / nuggets of the cases that list some (`answer.nuggets`); vital ones
//! alone, or all.
//!
//! After AutoNuggetizer (Pradeep et al. 2024), with the strict score: a nugget counts when the answer has one of its
//! spellings, both normalised as for `answer.contains`; half a nugget does not count. A turn without an answer has
//! none.

use super::catalogue::Registered;
use super::expectation::answers;
use super::text_match::contains;
use super::{Member, Metric, Observation, TrialView, quote};
use crate::plan::ResolvedCase;
use crate::scenario::expect::Nugget;
use crate::settings::catalogue::Parameter;

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] =
    &[Registered::rate("nugget_recall", |asked| Box::new(NuggetRecall { vital: asked.parameter("of") == "vital" }))
        .about("Of the facts that cases ask of answers, those that the answers hold.")
        .takes(&[Parameter::one_of("of", &["vital", "all"], "vital")])];

#[derive(Debug)]
pub(super) struct NuggetRecall {
    /// Whether only vital nuggets count.
    pub vital: bool,
}

impl NuggetRecall {
    fn counts(&self, nugget: &Nugget) -> bool {
        nugget.vital || !self.vital
    }
}

impl Metric for NuggetRecall {
    fn units(&self) -> &'static str {
        if self.vital { "vital nuggets" } else { "nuggets" }
    }

    fn members(&self) -> &'static [Member] {
        &[Member::Answers]
    }

    fn applies(&self, case: &ResolvedCase) -> bool {
        super::expectation::expects(case, |answer| answer.nuggets.iter().any(|nugget| self.counts(nugget)))
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        let mut units = Vec::new();
        for (turn, expected) in answers(view) {
            let text = turn.answer().map(|answer| answer.text.as_str());
            for nugget in expected.nuggets.iter().filter(|nugget| self.counts(nugget)) {
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
}

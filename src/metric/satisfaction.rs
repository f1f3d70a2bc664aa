//! `satisfaction`: rated trials whose answer combines both sources and whose rater was satisfied / such rated trials
//! (SC-004).
//!
//! Without a ratings file it is a proxy: of the answers for which both sources gave something, those that cite both.
//! That says what an answer is made of and nothing about anyone's satisfaction, so it never passes.

use super::{Metric, Mode, Observation, TrialView, TurnView};
use crate::plan::Plan;

/// See the module.
#[derive(Debug)]
pub(super) struct Satisfaction;

fn mixed(turn: &TurnView<'_>) -> bool {
    let internal = turn.searches().any(|search| !search.hits.is_empty());
    turn.answer().is_some() && internal && turn.externals().next().is_some()
}

impl Metric for Satisfaction {
    fn units(&self) -> &'static str {
        "answers from both sources"
    }

    fn is_proxy(&self, plan: &Plan) -> bool {
        plan.ratings.is_none()
    }

    fn hidden_in(&self, mode: Mode) -> Option<&'static str> {
        (mode == Mode::Imported).then_some("messages do not say what an answer is made of")
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        let mut combined = view.turns.iter().filter(|turn| mixed(turn));
        if let Some(ratings) = &view.plan.ratings {
            // A rating is of the whole trial; one that nobody rated is not measured, and no failure.
            return match (ratings.get(&view.trial.id), combined.next()) {
                (Some(true), Some(_)) => vec![Observation::success("rating")],
                (Some(false), Some(_)) => vec![Observation::failure("rating", "the rater was not satisfied")],
                _ => Vec::new(),
            };
        }
        let unit = |turn: &TurnView<'_>| {
            let cites = |kind: &str| {
                turn.answer().is_some_and(|answer| answer.sources.iter().any(|source| source.kind == kind))
            };
            match (cites("internal"), cites("external")) {
                (true, true) => Observation::success(turn.label()),
                (true, false) => Observation::failure(turn.label(), "cites no external source"),
                (false, true) => Observation::failure(turn.label(), "cites no internal source"),
                (false, false) => Observation::failure(turn.label(), "cites neither source"),
            }
        };
        combined.map(unit).collect()
    }
}

//! `grade(item)`: graded answers that pass an item of a rubric / graded answers with a verdict on it.
//!
//! Grades stand beside the traces (`grades.jsonl`); without any, nothing is measured. An answer whose verdict depends on
//! the order of the items, or whose reply could not be used, has no verdict and is no unit: reports count them beside. It is
//! a rate of what a model says, not of what people think.

use super::catalogue::Registered;
use super::{Metric, Observation, TrialView, quote};
use crate::catalogue::{MetricEntry, Parameter, Values};

const ITEM: Parameter = Parameter { name: "item", values: Values::Item, default: None };

/// What criteria may name.
pub(super) const ENTRIES: &[Registered] = &[Registered {
    entry: MetricEntry::rate(
        "grade",
        "Of the answers that a model graded by this item of a rubric (`ragcheck judge`), those that pass; no grades, NOT_MEASURED.",
        &[ITEM],
    ),
    make: |asked| Box::new(GradeRate { item: asked.parameter("item").to_owned() }),
}];

/// See the module.
#[derive(Debug)]
pub(super) struct GradeRate {
    /// The item.
    pub item: String,
}

impl Metric for GradeRate {
    fn units(&self) -> &'static str {
        "graded answers"
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        let own = view.grades.iter().filter(|grade| grade.item == self.item);
        let unit = |grade: &crate::trace::Grade| {
            Some(match grade.value.verdict()? {
                true => Observation::success(&grade.label),
                false if grade.evidence.is_empty() => Observation::failure(&grade.label, "the grader quotes nothing"),
                false => {
                    let note = format!("the grader quotes: {}", quote(&grade.evidence, 120));
                    Observation::failure(&grade.label, note)
                }
            })
        };
        own.filter_map(unit).collect()
    }
}

//! `grade(item)`: graded answers that pass an item of a rubric / graded answers with a verdict on it.
//!
//! Grades are stored beside the traces (`grades.jsonl`); without any, nothing is measured. An answer whose verdict
//! depends on the order of the items, or whose reply could not be parsed, has no verdict and is not a unit; reports
//! count these separately. The rate measures a model's grades, not people's opinion, so it is a proxy unless the plan
//! holds how far this item agrees with people (`agreement.json`). In that case its bounds include the grader's
//! errors, grades by any other rubric or model are not counted, an answer without a verdict does not pass, and
//! nothing is measured while a requested grade is missing.

use super::catalogue::Registered;
use super::{Basis, Metric, Observation, TrialView, quote};
use crate::plan::Plan;
use crate::scenario::Target;
use crate::settings::catalogue::{Parameter, Units, Values};
use crate::trace::{Grade, GradeValue, Grades, MeasuredAgreement};

const ITEM: Parameter = Parameter { name: "item", values: Values::Item, default: None };

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] =
    &[Registered::rate("grade", |asked| GradeRate { item: asked.parameter("item").to_owned() }.metric())
        .about(
            "Of the answers that a model graded by this item of a rubric (`ragcheck judge`), those \
             that pass; no grades, NOT_MEASURED.",
        )
        .takes(&[ITEM])
        .counted(Units::OfTurns)];

/// The rate of an item of a rubric.
#[derive(Debug, Clone)]
pub(crate) struct GradeRate {
    /// Name of the rubric item.
    pub(super) item: String,
}

/// Whether a grade was made with the rubric and model whose agreement was measured.
fn is_measured(grade: &Grade, measured: &MeasuredAgreement) -> bool {
    grade.rubric == measured.rubric && grade.model == measured.model
}

impl GradeRate {
    fn metric(self) -> Metric {
        let graded = self.clone();
        Metric { basis: Basis::Grades(self), ..Metric::new("graded answers", move |view| graded.observe(view)) }
    }

    /// The agreement with people that was measured, if it was of this item.
    pub(super) fn agreement_measured<'p>(&self, plan: &'p Plan) -> Option<&'p MeasuredAgreement> {
        plan.agreement.as_ref().filter(|measured| measured.items.contains_key(&self.item))
    }

    /// Reason why the grades of a run cannot decide: they were made with another rubric or model than the one
    /// compared with people, or they lack a verdict that the target would count as good.
    pub(crate) fn doubt(&self, plan: &Plan, grades: &Grades, target: Target) -> Option<String> {
        let measured = plan.agreement.as_ref()?;
        // Leaving answers out would choose the sample.
        let missing = grades.iter().filter(|grade| grade.value == GradeValue::NotGraded).count();
        if missing > 0 {
            return Some(format!(
                "{missing} answers were asked for and not graded: grade them with `ragcheck judge` first"
            ));
        }
        let own = || grades.iter().filter(|grade| grade.item == self.item);
        // Without a verdict an answer does not pass, which counts against a floor and in favour of a ceiling.
        let open = own().filter(|grade| grade.value.verdict().is_none()).count();
        if target.is_ceiling() && open > 0 {
            return Some(format!(
                "{open} graded answers have no verdict, and a target of few would take them for good: grade them again"
            ));
        }
        let other = own().find(|grade| !is_measured(grade, measured))?;
        let short = |digest: &str| digest.chars().take(8).collect::<String>();
        Some(format!(
            "the grades are by {} with the rubric {}, and agreement with people was measured of {} with the rubric {}: \
             measure it again",
            quote(&other.model, 60),
            short(&other.rubric),
            quote(&measured.model, 60),
            short(&measured.rubric)
        ))
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        let measured = self.agreement_measured(view.plan);
        let own = view.grades.iter().filter(|grade| grade.item == self.item);
        let own = own.filter(|grade| measured.is_none_or(|measured| is_measured(grade, measured)));
        let unit = |grade: &Grade| {
            let verdict = match grade.value.verdict() {
                Some(verdict) => verdict,
                // A grade that decides a criterion counts every answer: one without a verdict does not pass.
                None if measured.is_some() => {
                    return Some(Observation::failure(
                        &grade.label,
                        format!("no verdict: {}", quote(&grade.reason, 120)),
                    ));
                }
                None => return None,
            };
            Some(match verdict {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::sample::plan;
    use crate::scenario::parse_target;
    use crate::trace::{Agreement, Grades};

    #[test]
    fn an_answer_without_a_verdict_counts_against_a_target_of_many_and_leaves_one_of_few_unmeasured() {
        let mut plan = plan("[{case: one, ask: q}]", "[]", 1);
        let items =
            [("polite".to_owned(), Agreement { both: 9, judge_only: 1, human_only: 1, neither: 9, by_case: None })]
                .into();
        let [rubric, model, from, id] = ["r", "m", "simulator", "p"].map(str::to_owned);
        plan.agreement = Some(MeasuredAgreement::new((rubric, model, from), id, items, [].into()));
        let grade = |value: &str, item: &str| -> Grade {
            serde_json::from_value(serde_json::json!({"version": 1, "trial": "t", "conversation": 0, "turn": 0, "label": "turn 1",
                "answer": "a", "item": item, "kind": "model", "value": value, "model": "m", "rubric": "r", "content": "c"}))
            .expect("a grade")
        };
        let metric = GradeRate { item: "polite".into() };
        assert!(matches!(metric.clone().metric().basis, Basis::Grades(of) if of.item == "polite"));
        let doubt = |values: &[(&str, &str)], target: &str| {
            let grades: Grades = values.iter().map(|(value, item)| grade(value, item)).collect();
            metric.doubt(&plan, &grades, parse_target(target).expect("a target"))
        };
        let open = [("pass", "polite"), ("inconsistent", "polite"), ("error", "polite")];
        assert_eq!(doubt(&open, ">= 90%"), None, "it does not pass, which is bad news here");
        assert!(doubt(&open, "<= 10%").is_some_and(|why| why.starts_with("2 graded answers have no verdict")));
        assert_eq!(doubt(&[("pass", "polite"), ("error", "another")], "<= 10%"), None);
    }
}

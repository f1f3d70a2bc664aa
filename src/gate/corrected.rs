//! The figure that decides a gate on grades: the observed rate corrected for the grader's errors.

use super::CriterionResult;
use super::rule::Evidence;
use crate::stats::percent::{percent, percent_beside};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rate that grades would have if the grader made no errors: `(observed - f) / (1 - f - g)`, between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Corrected {
    /// The corrected rate, which is compared with the target; `None` if a grader with these errors says nothing.
    pub rate: Option<f64>,
    /// Share of the answers that people fail and the grader passes, in the rated trials.
    pub f: f64,
    /// Share of the answers that people pass and the grader fails.
    pub g: f64,
}

/// Adds the corrected rate to the figures of a result, and to their text.
pub(super) fn correct(result: &mut CriterionResult, evidence: &Evidence<'_>, wanted: (f64, bool)) {
    let Some((passed, failed)) = evidence.agreement.and_then(|agreement| agreement.error_rates()) else { return };
    // The rule counts good units, which are the failed answers where few shall pass.
    let few = wanted.1;
    let rate = evidence.corrected(evidence.sample.figure()).map(|rate| if few { 1.0 - rate } else { rate });
    let (f, g) = if few { (failed, passed) } else { (passed, failed) };
    result.corrected = Some(Corrected { rate, f, g });
    let errors = format!("f {}, g {}", percent(f), percent(g));
    let (short, long) = match rate {
        Some(rate) => {
            let shown = percent_beside(rate, wanted);
            (format!("corrected {shown}"), format!("corrected for the grader's errors {shown} ({errors})"))
        }
        None => ("not corrected".into(), format!("which the grader's errors leave open ({errors})")),
    };
    // Then the corrected rate of all units must reach the target, too.
    let unit = evidence.per_unit_corrected().map(|rate| if few { 1.0 - rate } else { rate });
    let misses = |rate: f64| if few { rate > wanted.0 + 1e-12 } else { rate < wanted.0 - 1e-12 };
    let side = |rate| match (misses(rate), few) {
        (false, _) => "",
        (true, false) => ", below target",
        (true, true) => ", above target",
    };
    let unit =
        unit.map_or_else(String::new, |rate| format!(", per unit {}{}", percent_beside(rate, wanted), side(rate)));
    result.observed_text += &format!("; {short}");
    result.seen_text += &format!("; {long}{unit}");
}

#[cfg(test)]
mod tests {
    use super::super::Unshown;
    use super::super::rule::{Asked, Ruling, rule};
    use super::super::unshown::ending;
    use super::*;
    use crate::gate::Verdict;
    use crate::scenario::GateKind;
    use crate::stats::{ALPHA, Clusters, Sample};
    use crate::trace::Agreement;

    /// Of 50 rated good answers the grader fails 5, of 10 bad ones it passes 3.
    const RATED: Agreement = Agreement { both: 45, judge_only: 3, human_only: 5, neither: 7, by_case: None };

    fn sample(good: u64) -> Sample {
        let mut clusters = Clusters::default();
        clusters.add_many(1, 1, good);
        clusters.add_many(0, 1, 100 - good);
        Sample::Fixed(clusters)
    }

    fn decided(kind: GateKind, target: f64, sample: &Sample, agreement: Agreement) -> (Ruling, Evidence<'_>, Asked) {
        let evidence = Evidence {
            good: (100.0 * sample.figure()).round() as u64,
            n: 100,
            sample,
            per_conversation: false,
            agreement: Some(agreement),
        };
        let asked = Asked { kind, target, floor: None, min_n: 1, alpha_fail: ALPHA };
        (rule(asked, evidence), evidence, asked)
    }

    #[test]
    fn the_corrected_rate_that_decides_is_printed_with_the_errors_that_give_it() {
        // (0.6 - 0.3) / (1 - 0.3 - 0.1) = 0.5: a point gate of 55 % fails beside an observed 60 %.
        let seen = sample(60);
        let (ruling, evidence, _) = decided(GateKind::Point, 0.55, &seen, RATED);
        let mut result = CriterionResult { seen_text: "60/100 = 60.0 %".into(), ..CriterionResult::default() };
        correct(&mut result, &evidence, (0.55, false));
        let Corrected { rate, f, g } = result.corrected.expect("rated");
        assert!(
            rate.is_some_and(|rate| (rate - 0.5).abs() < 1e-12) && (f - 0.3).abs() < 1e-12 && (g - 0.1).abs() < 1e-12,
            "{rate:?} {f} {g}"
        );
        assert_eq!(ruling.verdict, Verdict::Fail);
        assert_eq!(result.seen_text, "60/100 = 60.0 %; corrected for the grader's errors 50.0 % (f 30.0 %, g 10.0 %)");
    }

    #[test]
    fn a_limit_on_few_is_corrected_by_the_same_errors_of_the_same_answers() {
        let failing = sample(40);
        let (_, evidence, _) = decided(GateKind::Point, 0.45, &failing, RATED.mirrored());
        let mut result = CriterionResult::default();
        correct(&mut result, &evidence, (0.55, true));
        let Corrected { rate, f, g } = result.corrected.expect("rated");
        assert!(
            rate.is_some_and(|rate| (rate - 0.5).abs() < 1e-12) && (f - 0.3).abs() < 1e-12 && (g - 0.1).abs() < 1e-12,
            "{rate:?} {f} {g}"
        );
    }

    #[test]
    fn what_is_below_the_target_is_the_corrected_figure_where_the_observed_one_reaches_it() {
        let end = |good: u64, target: f64, agreement| {
            let seen = sample(good);
            let (ruling, evidence, asked) = decided(GateKind::Confidence, target, &seen, agreement);
            assert_eq!(ruling.verdict, Verdict::Inconclusive, "{good} {target}");
            ending(Unshown::of(&evidence.figures(), asked.figure(), true), asked, &evidence, ("case", "cases"))
        };
        assert_eq!(end(60, 0.55, RATED), "the corrected figure is below target, not shown");
        assert_eq!(end(60, 0.45, RATED), "met, not shown");
        let lucky = Agreement { both: 1, judge_only: 1, human_only: 0, neither: 0, by_case: None };
        assert_eq!(end(60, 0.65, lucky), "below target, not shown", "a grader that passes all is not corrected");
    }

    #[test]
    fn a_grader_no_better_than_chance_leaves_the_rate_open() {
        let blind = Agreement { both: 5, judge_only: 5, human_only: 5, neither: 5, by_case: None };
        let seen = sample(60);
        let mut result = CriterionResult::default();
        correct(&mut result, &decided(GateKind::Point, 0.5, &seen, blind).1, (0.5, false));
        assert_eq!((result.corrected.expect("rated").rate, result.observed_text.as_str()), (None, "; not corrected"));
    }
}

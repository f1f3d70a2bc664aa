//! Classifies INCONCLUSIVE criteria by whether the observed figure reaches the target.
//!
//! Only a criterion that reaches it may be accepted (`undecided: warn`), and only while it can still pass. A
//! criterion with several figures (the rate per unit beside the mean of the conversations) is met when all of them
//! reach the target.

use super::rule::{Asked, Evidence};
use crate::platform::words;
use crate::stats::percent::{Rounding, rounded};
use crate::stats::{ALPHA, Sample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    /// Kind of an INCONCLUSIVE criterion.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Unshown {
        /// Every observed figure reaches the target, and more units at this rate can prove it.
        Met = "met",
        /// An observed figure is below the target.
        Below = "below target",
        /// The observed figures reach the target, but no number of units can prove it, or the plan cannot pass any more.
        CannotPass = "cannot pass",
    }
}

impl Unshown {
    /// Classifies a criterion by its observed shares of good units.
    pub(super) fn of(figures: &[f64], target: f64, can_pass: bool) -> Self {
        // Compares a share of whole units with a decimal target: 19/20 is 0.95, despite rounding.
        match figures.iter().all(|figure| *figure >= target - 1e-12) {
            false => Self::Below,
            true if can_pass => Self::Met,
            true => Self::CannotPass,
        }
    }
}

/// The end of the sentence of an INCONCLUSIVE criterion: `met, not shown: 62 more conversations at this rate would show it`.
pub(super) fn ending(found: Unshown, asked: Asked, evidence: &Evidence<'_>, (one, many): (&str, &str)) -> String {
    let corrected = evidence.corrected(evidence.sample.figure());
    match found {
        Unshown::Below if corrected.is_some_and(|share| share < asked.figure() - 1e-12) => {
            "the corrected figure is below target, not shown".to_owned()
        }
        Unshown::Below => "below target, not shown".to_owned(),
        Unshown::CannotPass => format!("met, and no number of {many} can show it"),
        // More answers alone do not reduce a grader's errors.
        Unshown::Met if evidence.agreement.is_some() => "met, not shown".to_owned(),
        Unshown::Met => {
            let more = |least| evidence.sample.more_at_this_rate(asked.bound(0.0), least, ALPHA);
            let noun = |number| if number == 1 { one } else { many };
            match more(asked.min_n) {
                // The bound holds already: the number alone is missing, whatever their rate.
                Some(lacking) if more(0) == Some(0) => {
                    format!("met, not shown: min_n {} requires {lacking} more {}", asked.min_n, noun(lacking))
                }
                Some(more) => format!("met, not shown: {more} more {} at this rate would show it", noun(more)),
                None => format!("met, not shown: at this rate no number of {many} would show it"),
            }
        }
    }
}

/// The end of the sentence of an invariant without a violation. Without a floor the bound has no threshold, so the
/// sentence states the bound and no verdict on it.
pub(super) fn unbroken(seen: &str, sample: &Sample, lower: f64, floor: Option<&str>) -> String {
    if let Some(floor) = floor {
        let floor = floor.trim_start_matches(['>', '=', ' ']);
        return format!("no violation in {seen}, and the bound reaches the floor of {floor}");
    }
    let number = sample.number();
    let up_to = rounded((1.0 - lower) * 100.0, 1, Rounding::Up);
    if number == 0 {
        "no violation".to_owned()
    } else {
        format!("no violation in {seen}; could still be up to {up_to} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Clusters;

    fn singles(good: u64, n: u64) -> Sample {
        let mut clusters = Clusters::default();
        clusters.add_many(1, 1, good);
        clusters.add_many(0, 1, n - good);
        Sample::Fixed(clusters)
    }

    #[test]
    fn met_needs_every_figure_and_a_way_to_pass() {
        assert_eq!(Unshown::of(&[0.98], 0.95, true), Unshown::Met);
        assert_eq!(Unshown::of(&[0.981, 0.838], 0.95, true), Unshown::Below, "98 % of conversations, 84 % of calls");
        assert_eq!(Unshown::of(&[0.981, 0.95], 0.95, true), Unshown::Met);
        assert_eq!(Unshown::of(&[0.98], 0.95, false), Unshown::CannotPass);
        assert_eq!(Unshown::of(&[0.90], 0.95, false), Unshown::Below);
        assert_eq!(Unshown::of(&[19.0 / 20.0], 0.95, true), Unshown::Met);
    }

    #[test]
    fn so_many_more_at_this_rate_show_it_and_one_fewer_do_not() {
        for (good, n, target) in [(39_u64, 40_u64, 0.95), (20, 20, 0.95), (97, 100, 0.95), (9, 10, 0.8)] {
            let more = singles(good, n).more_at_this_rate(target, 0, ALPHA).expect("above the target");
            let lower = |n_more: u64| {
                let all = (n + n_more) as f64;
                crate::stats::rate::lower_bound_at(all * good as f64 / n as f64, all, ALPHA)
            };
            assert!(lower(more) >= target && lower(more - 1) < target, "{good}/{n}: {more}");
        }
        assert_eq!(singles(20, 20).more_at_this_rate(0.95, 0, ALPHA), Some(39));
        assert_eq!(singles(19, 20).more_at_this_rate(0.95, 0, ALPHA), None, "the rate is the target");
        let cases = Sample::Means { s: 20.0, number: 20 };
        assert_eq!(cases.more_at_this_rate(0.95, 0, ALPHA), Some(39));
        let talks = Sample::Fixed(std::iter::repeat_n((4, 4), 20).collect());
        assert!(talks.more_at_this_rate(0.95, 0, ALPHA).is_some_and(|more| more >= 39));
        assert_eq!(singles(3, 3).more_at_this_rate(0.0, 10, ALPHA), Some(7), "min_n alone is missing");
    }

    #[test]
    fn no_violation_in_two_could_still_be_up_to_78_percent() {
        let lower = crate::stats::lower_bound(2, 2);
        assert_eq!(unbroken("2", &singles(2, 2), lower, None), "no violation in 2; could still be up to 77.7 %");
        assert_eq!(
            unbroken("60", &singles(60, 60), crate::stats::lower_bound(60, 60), Some(">= 95%")),
            "no violation in 60, and the bound reaches the floor of 95%"
        );
    }
}

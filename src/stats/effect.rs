//! How large a paired difference is: intervals, ratios, and the margin within which it does not matter.
//!
//! `only_a` and `only_b` are discordant pairs: units that succeed under one setting alone.

use super::rate::interval;
use super::student::normal_quantile;

/// The difference between two settings on the same units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Rate under B minus rate under A.
    pub value: f64,
    /// Lower end of its two-sided 95 % interval.
    pub low: f64,
    /// Upper end of its two-sided 95 % interval.
    pub high: f64,
}

/// Rate under B minus rate under A over `pairs` pairs, with the adjusted Wald interval of Agresti and Min (2005), who
/// add half a pair to each of the four cells; `None` when the discordant pairs are more than all, or there are none
/// at all.
pub fn paired_difference(only_a: u64, only_b: u64, pairs: u64) -> Option<Difference> {
    if pairs == 0 || only_a.checked_add(only_b).is_none_or(|discordant| discordant > pairs) {
        return None;
    }
    let (a, b, n) = (only_a as f64, only_b as f64, pairs as f64);
    let middle = (b - a) / (n + 2.0);
    let variance = (a + b + 1.0 - (b - a).powi(2) / (n + 2.0)) / (n + 2.0).powi(2);
    let half = normal_quantile(0.975) * variance.sqrt();
    Some(Difference { value: (b - a) / n, low: (middle - half).max(-1.0), high: (middle + half).min(1.0) })
}

/// The odds of success under B over those under A, conditional on the unit: its value, and the exact two-sided 95 %
/// interval that the binomial share of `only_b` gives; `None` without discordant pairs, infinite without `only_a`.
pub fn matched_odds(only_a: u64, only_b: u64) -> Option<Difference> {
    let pairs = only_a + only_b;
    let odds = |share: f64| if share < 1.0 { share / (1.0 - share) } else { f64::INFINITY };
    let (low, high) = interval(only_b, pairs);
    (pairs > 0).then(|| Difference { value: only_b as f64 / only_a as f64, low: odds(low), high: odds(high) })
}

/// Cohen's h between two rates, `2 asin(sqrt(to)) - 2 asin(sqrt(from))`: .2 is small, .5 medium, .8 large (1988).
pub fn cohens_h(from: f64, to: f64) -> f64 {
    2.0 * to.clamp(0.0, 1.0).sqrt().asin() - 2.0 * from.clamp(0.0, 1.0).sqrt().asin()
}

/// What an interval of B minus A says, given a margin below which a loss does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// The whole interval is above 0.
    Better,
    /// The whole interval is above minus the margin: not worse by more than the margin.
    NotInferior,
    /// The whole interval is below minus the margin, or below 0 with a margin of 0.
    Worse,
    /// None of these: "no significant difference" does not show that there is none.
    Undecided,
}

/// Compares an interval of B minus A (higher is better) with `margin`, which is 0 or more.
pub fn compare_with_margin(low: f64, high: f64, margin: f64) -> Comparison {
    if low > 0.0 {
        Comparison::Better
    } else if low > -margin {
        Comparison::NotInferior
    } else if high < -margin {
        Comparison::Worse
    } else {
        Comparison::Undecided
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_interval_of_agresti_and_min() {
        let found = paired_difference(2, 10, 82).expect("pairs");
        assert!((found.value - 0.0976).abs() < 5e-5, "{found:?}");
        assert!((found.low - 0.0136).abs() < 5e-5 && (found.high - 0.1769).abs() < 5e-5, "{found:?}");
        assert_eq!(paired_difference(0, 0, 0), None);
        assert_eq!(paired_difference(3, 3, 5), None);
        assert_eq!(paired_difference(u64::MAX, 1, 5), None);
    }

    #[test]
    fn odds_are_the_ratio_of_discordant_pairs_and_may_have_no_upper_end() {
        let found = matched_odds(2, 10).expect("pairs");
        assert!((found.value - 5.0).abs() < 1e-12 && found.low > 1.0 && found.high > 5.0, "{found:?}");
        let all_one_way = matched_odds(0, 5).expect("pairs");
        assert!(all_one_way.value.is_infinite() && all_one_way.high.is_infinite() && all_one_way.low < 1.0);
        assert_eq!(matched_odds(0, 0), None);
    }

    #[test]
    fn cohens_h_between_90_and_95_percent() {
        assert!((cohens_h(0.90, 0.95) - 0.192_47).abs() < 5e-6);
        assert!((cohens_h(0.0, 1.0) - std::f64::consts::PI).abs() < 1e-12);
    }

    #[test]
    fn no_significant_regression_is_not_the_same_as_not_inferior() {
        assert_eq!(compare_with_margin(0.01, 0.2, 0.05), Comparison::Better);
        assert_eq!(compare_with_margin(-0.04, 0.02, 0.05), Comparison::NotInferior);
        assert_eq!(compare_with_margin(-0.08, 0.03, 0.05), Comparison::Undecided);
        assert_eq!(compare_with_margin(-0.2, -0.06, 0.05), Comparison::Worse);
        assert_eq!(compare_with_margin(-0.2, -0.01, 0.0), Comparison::Worse);
        assert_eq!(compare_with_margin(0.0, 0.0, 0.0), Comparison::Undecided);
    }

    proptest! {
        #[test]
        fn swapping_the_settings_mirrors_the_interval(a in 0_u64..50, b in 0_u64..50, same in 0_u64..100) {
            prop_assume!(a + b + same > 0);
            let one = paired_difference(a, b, a + b + same).expect("pairs");
            let other = paired_difference(b, a, a + b + same).expect("pairs");
            prop_assert!((one.low + other.high).abs() < 1e-12 && (one.value + other.value).abs() < 1e-12);
            prop_assert!(one.low <= one.high);
            prop_assert!((cohens_h(0.3, 0.6) + cohens_h(0.6, 0.3)).abs() < 1e-12);
        }
    }
}

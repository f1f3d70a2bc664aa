//! Power of a number of pairs, and the smallest difference that they can detect. `alpha` is always the two-sided error
//! probability of the deciding test: that of its step if several tests are corrected together.

use super::paired::mcnemar_exact;
use super::rate::binomial_cdf;
use super::student::normal_quantile;

/// The exact power of the two-sided McNemar test at level `alpha` over `pairs` pairs, of which a share of `only_a`
/// succeeds under A alone and of `only_b` under B alone.
pub(crate) fn mcnemar_power(pairs: u64, only_a: f64, only_b: f64, alpha: f64) -> f64 {
    let discordant = only_a + only_b;
    if discordant <= 0.0 || pairs == 0 {
        return 0.0;
    }
    let share = (only_b / discordant).min(1.0);
    let up_to = |m: u64| binomial_cdf(m, pairs, discordant.min(1.0));
    (1..=pairs)
        .filter_map(|m| {
            let critical = critical_count(m, alpha)?;
            let rejects = binomial_cdf(critical, m, share) + binomial_cdf(critical, m, 1.0 - share);
            Some((up_to(m) - up_to(m - 1)).max(0.0) * rejects)
        })
        .sum()
}

/// Of `m` discordant pairs, the largest count in the rarer direction at which McNemar's test rejects; `None` if none does.
fn critical_count(m: u64, alpha: f64) -> Option<u64> {
    let rejects = |count: u64| mcnemar_exact(count, m - count).is_some_and(|p| p <= alpha);
    let (mut low, mut high) = (0, m / 2 + 1);
    while low < high {
        let middle = u64::midpoint(low, high);
        if rejects(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low.checked_sub(1)
}

/// The smallest gain that `pairs` pairs detect with probability `power` although a share of `only_a` gets worse; `None` if
/// they can detect none.
pub(crate) fn smallest_visible_difference(pairs: u64, only_a: f64, power: f64, alpha: f64) -> Option<f64> {
    let largest = 1.0 - 2.0 * only_a;
    let found = |gain: f64| mcnemar_power(pairs, only_a, only_a + gain, alpha) >= power;
    if largest <= 0.0 || !found(largest) {
        return None;
    }
    let (mut low, mut high) = (0.0, largest);
    for _ in 0..30 {
        let middle = f64::midpoint(low, high);
        if found(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

/// The smallest number of cases with which a paired test at level `alpha` can reject, if all differ in one direction: the
/// smallest `n` with `2 (1/2)^n <= alpha`.
pub(crate) fn fewest_cases(alpha: f64) -> u64 {
    (1.0 - alpha.max(f64::MIN_POSITIVE).log2() - 1e-9).ceil().max(1.0) as u64
}

/// Variances behind repetitions of paired scenarios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    /// Variance of the true difference between scenarios.
    pub between: f64,
    /// Variance of one repetition under A.
    pub within_a: f64,
    /// Variance of one repetition under B.
    pub within_b: f64,
}

/// The mean difference that `scenarios` scenarios of `repeats` repetitions find with probability `power`
/// (Miller 2024, section 5); `None` without scenarios or repetitions.
pub(crate) fn repeats_difference(spread: Spread, scenarios: u64, repeats: u64, power: f64, alpha: f64) -> Option<f64> {
    if scenarios == 0 || repeats == 0 {
        return None;
    }
    let variance = (spread.between + (spread.within_a + spread.within_b) / repeats as f64) / scenarios as f64;
    Some((normal_quantile(1.0 - alpha / 2.0) + normal_quantile(power)) * variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALPHA: f64 = 0.05;

    #[test]
    fn mcnemar_needs_more_pairs_than_the_normal_formula_promises() {
        // (only B, only A, pairs that the exact power of 80 % takes, pairs by the normal formula of Connor 1987).
        for (only_b, only_a, exact, normal) in [(0.10, 0.02, 153, 145), (0.15, 0.05, 168, 155), (0.20, 0.05, 92, 85)] {
            assert!(mcnemar_power(exact, only_a, only_b, ALPHA) >= 0.8, "{only_b} {only_a}");
            assert!(mcnemar_power(exact - 1, only_a, only_b, ALPHA) < 0.8, "{only_b} {only_a}");
            assert!(mcnemar_power(normal, only_a, only_b, ALPHA) < 0.8, "{only_b} {only_a}");
        }
    }

    #[test]
    fn repetitions_help_until_the_scenarios_are_the_limit() {
        let spread = Spread { between: 0.01, within_a: 0.08, within_b: 0.08 };
        for (repeats, expected) in [(1, 0.183), (3, 0.111), (5, 0.091), (10, 0.071), (30, 0.055)] {
            let found = repeats_difference(spread, 40, repeats, 0.8, ALPHA).expect("a plan");
            assert!((found - expected).abs() < 5e-4, "K {repeats}: {found}");
        }
        assert_eq!(repeats_difference(spread, 0, 3, 0.8, ALPHA), None);
    }

    #[test]
    fn a_point_gate_passes_and_refuses_by_luck() {
        // Observed rate of 0.95 or more: at most 1 failure of 20, 2 of 40.
        let passes = |failures, n, rate: f64| binomial_cdf(failures, n, 1.0 - rate);
        assert!((passes(1, 20, 0.90) - 0.39).abs() < 0.005 && (passes(2, 40, 0.90) - 0.22).abs() < 0.005);
        assert!((1.0 - passes(2, 40, 0.95) - 0.32).abs() < 0.005);
    }

    #[test]
    fn how_often_an_invariant_gate_catches_a_defect_and_blocks_a_good_agent() {
        let blocks = |n, rate: f64| 1.0 - binomial_cdf(0, n, 1.0 - rate);
        for (n, rate, expected) in [(20, 0.9, 0.88), (40, 0.9, 0.985), (20, 0.95, 0.64), (40, 0.95, 0.87)] {
            assert!((blocks(n, rate) - expected).abs() < 0.005, "{n} {rate}");
        }
        assert!((blocks(60, 0.999) - 0.058).abs() < 0.0005);
    }

    #[test]
    fn power_at_the_null_is_at_most_the_level() {
        for pairs in [5, 20, 60, 150] {
            assert!(mcnemar_power(pairs, 0.1, 0.1, ALPHA) <= 0.05, "{pairs}");
        }
        assert!(mcnemar_power(5, 0.0, 1.0, ALPHA) < 1e-12, "five discordant pairs can never show anything");
        assert!(mcnemar_power(6, 0.0, 1.0, ALPHA) > 1.0 - 1e-9, "six can");
    }

    #[test]
    fn one_six_and_eleven_rows_need_six_eight_and_nine_cases() {
        assert_eq!([1.0, 6.0, 11.0].map(|rows| fewest_cases(ALPHA / rows)), [6, 8, 9]);
        for rows in 1..40 {
            let (alpha, n) = (ALPHA / f64::from(rows), fewest_cases(ALPHA / f64::from(rows)));
            assert!(mcnemar_exact(0, n).is_some_and(|p| p <= alpha), "{rows}");
            assert!(mcnemar_exact(0, n - 1).is_some_and(|p| p > alpha), "{rows}");
        }
    }

    #[test]
    fn a_stricter_level_shows_less() {
        let at = |alpha| smallest_visible_difference(40, 0.0, 0.8, alpha).expect("some");
        assert!(at(ALPHA) < at(ALPHA / 6.0) && at(ALPHA / 6.0) < at(ALPHA / 11.0));
        assert!(
            repeats_difference(Spread { between: 0.01, within_a: 0.0, within_b: 0.0 }, 40, 1, 0.8, ALPHA / 6.0)
                > repeats_difference(Spread { between: 0.01, within_a: 0.0, within_b: 0.0 }, 40, 1, 0.8, ALPHA)
        );
    }

    #[test]
    fn the_smallest_visible_difference_shrinks_with_the_pairs_and_is_just_visible() {
        let gains: Vec<f64> = [20, 40, 153]
            .iter()
            .map(|pairs| smallest_visible_difference(*pairs, 0.02, 0.8, ALPHA).expect("some"))
            .collect();
        assert!(gains[0] > gains[1] && gains[1] > gains[2], "{gains:?}");
        assert!((gains[2] - 0.08).abs() < 0.001, "{gains:?}");
        assert_eq!(smallest_visible_difference(5, 0.0, 0.8, ALPHA), None);
    }
}

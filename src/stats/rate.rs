//! Bounds on a rate: Clopper-Pearson for gates, Wilson for display, and how many units would decide.
//!
//! All take successes `s` of `n` units as `f64`, so that an effective sample size (a fraction of units) works too.

use super::beta::{inverse, regularised};
use super::{ALPHA, fewest};

/// Exact one-sided lower bound at level `1 - alpha` (Clopper and Pearson 1934); 0 without a success.
pub(crate) fn lower_bound_at(s: f64, n: f64, alpha: f64) -> f64 {
    if s <= 0.0 { 0.0 } else { inverse(s, n - s + 1.0, alpha) }
}

/// Exact one-sided upper bound at level `1 - alpha` (Clopper and Pearson 1934); 1 without a failure.
pub(crate) fn upper_bound_at(s: f64, n: f64, alpha: f64) -> f64 {
    if s >= n { 1.0 } else { inverse(s + 1.0, n - s, 1.0 - alpha) }
}

/// Exact one-sided 95 % lower bound on the rate behind `s` of `n`.
pub(crate) fn lower_bound(s: u64, n: u64) -> f64 {
    lower_bound_at(s as f64, n as f64, ALPHA)
}

/// Exact one-sided 95 % upper bound on the rate behind `s` of `n`.
#[cfg(test)]
pub(crate) fn upper_bound(s: u64, n: u64) -> f64 {
    upper_bound_at(s as f64, n as f64, ALPHA)
}

/// Exact two-sided 95 % interval (Clopper and Pearson 1934).
#[cfg(test)]
pub(crate) fn interval(s: u64, n: u64) -> (f64, f64) {
    let (s, n) = (s as f64, n as f64);
    (lower_bound_at(s, n, ALPHA / 2.0), upper_bound_at(s, n, ALPHA / 2.0))
}

/// Two-sided 95 % interval by Wilson's score (1927): for display, it undercovers where gates are decided.
pub(crate) fn wilson(s: f64, n: f64) -> (f64, f64) {
    // Quantile 0.975 of the standard normal distribution.
    let z = 1.959_963_984_540_054_f64;
    let (rate, z2) = (s / n, z * z);
    let middle = rate + z2 / (2.0 * n);
    let half = z * (rate * (1.0 - rate) / n + z2 / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z2 / n;
    (((middle - half) / scale).max(0.0), ((middle + half) / scale).min(1.0))
}

/// `P(X <= k)` for `X` binomial with `n` trials of probability `p`.
pub(crate) fn binomial_cdf(k: u64, n: u64, p: f64) -> f64 {
    if k >= n { 1.0 } else { 1.0 - regularised(k as f64 + 1.0, (n - k) as f64, p) }
}

/// The fewest units that, with `failures` failures among them, have a lower bound of at least `target`; `None` when
/// no number of units does (`target` of 1 or more).
pub(crate) fn units_for(failures: u64, target: f64) -> Option<u64> {
    fewest(|n| n > failures && lower_bound(n - failures, n) >= target)
}

/// How many more units without a failure would lift the lower bound of `s` of `n` to `target` and the count to
/// `min_n`; `None` when no number does.
pub(crate) fn units_to_pass(s: u64, n: u64, target: f64, min_n: u64) -> Option<u64> {
    let needed = units_for(n - s, target)?;
    Some(needed.max(min_n).saturating_sub(n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() < 6e-7
    }

    #[test]
    fn clopper_pearson_agrees_with_scipy() {
        let rows = [
            (40, 40, 0.911_903, 1.0, 0.927_842),
            (38, 40, 0.830_803, 0.993_886, 0.850_848),
            (0, 20, 0.0, 0.168_433, 0.0),
        ];
        for (s, n, low, high, one_sided) in rows {
            let found = interval(s, n);
            assert!(near(found.0, low) && near(found.1, high), "{s}/{n}: {found:?}");
            assert!(near(lower_bound(s, n), one_sided), "{s}/{n}");
        }
        assert!(near(upper_bound(0, 20), 0.139_108));
        assert!(near(upper_bound(0, 40), 1.0 - 0.05_f64.powf(1.0 / 40.0)));
        assert!((lower_bound(11, 40) - 0.1625).abs() < 5e-5);
        assert!((lower_bound(20, 20) - 0.861).abs() < 5e-4);
    }

    #[test]
    fn wilson_agrees_with_statsmodels() {
        for (s, n, low, high) in [(40, 40, 0.912_378, 1.0), (38, 40, 0.834_961, 0.986_179), (0, 20, 0.0, 0.161_125)] {
            let found = wilson(f64::from(s), f64::from(n));
            assert!(near(found.0, low) && near(found.1, high), "{s}/{n}: {found:?}");
        }
    }

    #[test]
    fn the_fewest_units_for_each_target_and_number_of_failures() {
        let rows: [(f64, &[u64]); 4] =
            [(0.95, &[59, 93, 124, 153]), (0.99, &[299]), (0.90, &[29, 46, 61, 76]), (0.80, &[14, 22, 30, 37])];
        for (target, counts) in rows {
            for (failures, n) in counts.iter().enumerate() {
                assert_eq!(units_for(failures as u64, target), Some(*n), "{failures} failures, {target}");
            }
        }
        assert_eq!(units_for(0, 1.0), None);
        assert_eq!(units_to_pass(38, 40, 0.95, 0), Some(84));
        assert_eq!(units_to_pass(10, 10, 0.5, 60), Some(50), "the minimum n counts too");
    }

    #[test]
    fn zero_failures_have_a_closed_form() {
        for n in [1, 20, 59, 300] {
            assert!(near(lower_bound(n, n), ALPHA.powf(1.0 / n as f64)));
        }
    }

    #[test]
    fn twenty_units_decide_a_p95_only_against_it() {
        assert!((1.0 - binomial_cdf(3, 20, 0.05) - 0.0159).abs() < 5e-5);
        assert!((1.0 - binomial_cdf(2, 20, 0.05) - 0.0755).abs() < 5e-5);
        assert!(lower_bound(20, 20) < 0.95);
        assert!(upper_bound(17, 20) >= 0.95 && upper_bound(16, 20) < 0.95);
        // scipy's quantile_test of the methodology's sample: 19 of 20 below 10.
        assert!(near(1.0 - binomial_cdf(18, 20, 0.95), 0.735_840));
    }

    #[test]
    fn the_lower_bound_covers_for_every_n_up_to_100_and_every_rate_on_a_grid() {
        for n in 1..=100 {
            let bounds: Vec<f64> = (0..=n).map(|s| lower_bound(s, n)).collect();
            for step in 1..100_u32 {
                let p = f64::from(step) / 100.0;
                // s covers while its bound is at most p; bounds grow with s, so this is one cumulated probability.
                let covering = bounds.iter().take_while(|bound| **bound <= p + 1e-12).count() as u64;
                let covered = binomial_cdf(covering - 1, n, p);
                assert!(covered >= 0.95 - 1e-9, "n {n}, p {p}: {covered}");
            }
        }
    }

    proptest! {
        #[test]
        fn bounds_enclose_the_rate_and_mirror_each_other(n in 1_u64..2_000, share in 0.0..=1.0_f64) {
            let s = (share * n as f64).round() as u64;
            let rate = s as f64 / n as f64;
            prop_assert!(lower_bound(s, n) <= rate && rate <= upper_bound(s, n));
            prop_assert!((lower_bound(s, n) - (1.0 - upper_bound(n - s, n))).abs() < 1e-9);
        }

        #[test]
        fn a_success_more_never_lowers_the_bound(n in 2_u64..500, share in 0.0..1.0_f64) {
            let s = (share * n as f64) as u64;
            prop_assert!(lower_bound(s + 1, n) >= lower_bound(s, n));
        }
    }
}

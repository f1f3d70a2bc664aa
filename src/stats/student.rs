//! Quantiles of the normal distribution, and Student's t: quantiles, p-values and the pooled two-sample test.
//!
//! The t distribution is written by the incomplete beta function (Abramowitz and Stegun 26.7.1), whose small tails
//! keep their digits: change points are judged at p-values of 1e-15.

use super::beta::{inverse, regularised};
use statrs::distribution::{ContinuousCDF as _, Normal};

/// The standard normal quantile at `probability`; infinite at 0 and 1.
pub(super) fn normal_quantile(probability: f64) -> f64 {
    Normal::standard().inverse_cdf(probability)
}

/// `P(Z > z)` of the standard normal distribution.
pub(super) fn normal_tail(z: f64) -> f64 {
    Normal::standard().sf(z)
}

/// `P(|T| >= |t|)` for Student's t with `df` degrees of freedom.
pub(super) fn two_sided(t: f64, df: f64) -> f64 {
    if t.is_finite() { regularised(df / 2.0, 0.5, df / (df + t * t)) } else { 0.0 }
}

/// The `t` that Student's t with `df` degrees of freedom exceeds, on either side, with probability `alpha`.
pub(super) fn critical(df: f64, alpha: f64) -> f64 {
    let x = inverse(df / 2.0, 0.5, alpha);
    (df * (1.0 - x) / x).sqrt()
}

/// One sample as its moments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moments {
    /// Number of values.
    pub n: f64,
    pub mean: f64,
    /// Their variance, with divisor `n - 1`.
    pub variance: f64,
}

impl Moments {
    /// The moments of `values`; the variance of fewer than two is 0.
    pub(super) fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self { n, mean, variance: if values.len() < 2 { 0.0 } else { squares / (n - 1.0) } }
    }
}

/// Two-sided p-value of the pooled two-sample t-test (oracle `scipy.stats.ttest_ind_from_stats`); 1 when both samples
/// are constant and equal, 0 when they are constant and differ.
pub(super) fn pooled_test(left: Moments, right: Moments) -> f64 {
    let df = left.n + right.n - 2.0;
    if df <= 0.0 {
        return 1.0;
    }
    let pooled = ((left.n - 1.0) * left.variance + (right.n - 1.0) * right.variance) / df;
    let gap = (right.mean - left.mean).abs();
    if pooled <= 0.0 {
        return if gap > 0.0 { 0.0 } else { 1.0 };
    }
    two_sided(gap / (pooled * (1.0 / left.n + 1.0 / right.n)).sqrt(), df)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_the_printed_tables() {
        assert!((normal_quantile(0.975) - 1.959_963_985).abs() < 1e-8);
        assert!((normal_tail(1.644_853_627) - 0.05).abs() < 1e-9);
        for (df, expected) in [(1.0, 12.706_205), (5.0, 2.570_582), (39.0, 2.022_691)] {
            assert!((critical(df, 0.05) - expected).abs() < 1e-5, "{df}: {}", critical(df, 0.05));
        }
    }

    #[test]
    fn the_tail_and_the_quantile_undo_each_other() {
        for df in [2.0, 7.0, 40.0] {
            for alpha in [0.5, 0.05, 1e-6] {
                assert!((two_sided(critical(df, alpha), df) / alpha - 1.0).abs() < 1e-6, "{df} {alpha}");
            }
        }
    }

    #[test]
    fn constant_samples_differ_surely_or_not_at_all() {
        let level = |value: f64| Moments::of(&[value, value, value]);
        assert!(pooled_test(level(1.0), level(1.0)) > 0.999);
        assert!(pooled_test(level(1.0), level(2.0)) < 1e-300);
        assert!(pooled_test(Moments::of(&[1.0]), Moments::of(&[2.0])) > 0.999, "two values have no spread");
    }
}

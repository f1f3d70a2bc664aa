//! Paired comparison of two settings, and Holm's correction for several of them.

use super::rate::binomial_cdf;

/// Two-sided exact McNemar test on `only_a` and `only_b` discordant pairs; `None` without any, which is "no
/// discordance" and not "equal".
pub fn mcnemar_exact(only_a: u64, only_b: u64) -> Option<f64> {
    let pairs = only_a + only_b;
    (pairs > 0).then(|| (2.0 * binomial_cdf(only_a.min(only_b), pairs, 0.5)).min(1.0))
}

/// P-values adjusted by Holm's step-down method (1979), in the order given.
pub fn holm(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|left, right| values[*left].total_cmp(&values[*right]));
    let mut adjusted = vec![0.0; values.len()];
    let mut largest = 0.0_f64;
    for (step, index) in order.iter().enumerate() {
        largest = largest.max(values[*index] * (values.len() - step) as f64).min(1.0);
        adjusted[*index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcnemar_agrees_with_statsmodels_and_swapping_changes_nothing() {
        assert!((mcnemar_exact(2, 10).expect("pairs") - 0.038_574_2).abs() < 1e-7);
        assert!((mcnemar_exact(0, 5).expect("pairs") - 0.0625).abs() < 1e-9);
        assert!((mcnemar_exact(11, 1).expect("pairs") - 0.006_348).abs() < 1e-6);
        assert_eq!(mcnemar_exact(10, 2), mcnemar_exact(2, 10));
        assert_eq!(mcnemar_exact(0, 0), None);
    }

    #[test]
    fn holm_agrees_with_statsmodels() {
        let found = holm(&[0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205]);
        let expected = [0.008, 0.056, 0.234, 0.234, 0.234, 0.234, 0.234, 0.234];
        for (value, wanted) in found.iter().zip(expected) {
            assert!((value - wanted).abs() < 1e-9, "{found:?}");
        }
        assert!((holm(&[0.5, 0.001])[1] - 0.002).abs() < 1e-12, "order is kept");
    }
}

//! Paired comparison of two settings, and corrections for several of them: Holm for gates, Benjamini and Hochberg to
//! explore.

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

/// P-values adjusted to the false discovery rate of Benjamini and Hochberg (1995), in the order given: for
/// exploration, not for gates.
pub fn benjamini_hochberg(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|left, right| values[*left].total_cmp(&values[*right]));
    let mut adjusted = vec![0.0; values.len()];
    let mut smallest = 1.0_f64;
    for (step, index) in order.iter().enumerate().rev() {
        smallest = smallest.min(values[*index] * values.len() as f64 / (step + 1) as f64);
        adjusted[*index] = smallest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{SeedableRng as _, rngs::ChaCha8Rng};

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

    #[test]
    fn benjamini_hochberg_agrees_with_statsmodels() {
        let found = benjamini_hochberg(&[0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205]);
        let expected = [0.008, 0.032, 0.0672, 0.0672, 0.0672, 0.08, 0.084_571, 0.205];
        for (value, wanted) in found.iter().zip(expected) {
            assert!((value - wanted).abs() < 1e-6, "{found:?}");
        }
        assert!(benjamini_hochberg(&[]).is_empty());
    }

    #[test]
    fn one_variant_against_itself_alarms_at_the_stated_rate_over_10_000_runs() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut alarms = 0_u32;
        for _ in 0..10_000 {
            let (mut only_a, mut only_b) = (0, 0);
            for _ in 0..40 {
                match (rng.random_bool(0.6), rng.random_bool(0.6)) {
                    (true, false) => only_a += 1,
                    (false, true) => only_b += 1,
                    _ => {}
                }
            }
            alarms += u32::from(mcnemar_exact(only_a, only_b).is_some_and(|p| p <= 0.05));
        }
        assert!(alarms <= 500, "{alarms} of 10,000");
        assert!(alarms >= 100, "a test that never alarms would be useless: {alarms}");
    }

    proptest! {
        #[test]
        fn corrections_never_lower_a_p_and_holm_is_the_stricter(values in proptest::collection::vec(0.0..=1.0_f64, 1..12)) {
            let (gate, explore) = (holm(&values), benjamini_hochberg(&values));
            for i in 0..values.len() {
                prop_assert!(values[i] <= explore[i] + 1e-12 && explore[i] <= gate[i] + 1e-12 && gate[i] <= 1.0);
            }
        }
    }
}

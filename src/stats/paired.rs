//! Paired comparison of two settings, and corrections for several of them: Holm for gates, Benjamini and Hochberg to
//! explore.

use super::rate::binomial_cdf;

/// Two-sided exact McNemar test on `only_a` and `only_b` discordant pairs; `None` without any, which is "no
/// discordance" and not "equal".
pub(crate) fn mcnemar_exact(only_a: u64, only_b: u64) -> Option<f64> {
    let pairs = only_a + only_b;
    (pairs > 0).then(|| (2.0 * binomial_cdf(only_a.min(only_b), pairs, 0.5)).min(1.0))
}

/// The places of the values, from the smallest value.
fn ascending(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|left, right| values[*left].total_cmp(&values[*right]));
    order
}

/// P-values adjusted by Holm's step-down method (1979), in the order given.
pub(crate) fn holm(values: &[f64]) -> Vec<f64> {
    let order = ascending(values);
    let mut adjusted = vec![0.0; values.len()];
    let mut largest = 0.0_f64;
    for (step, index) in order.iter().enumerate() {
        largest = largest.max(values[*index] * (values.len() - step) as f64).min(1.0);
        adjusted[*index] = largest;
    }
    adjusted
}

/// For each p-value the level of the step of Holm's method that decides it, in the order given: a value is rejected
/// exactly when it does not exceed its level. Values after the step at which the method stops have the level of that step.
pub(crate) fn holm_levels(values: &[f64], alpha: f64) -> Vec<f64> {
    let order = ascending(values);
    let level = |step: usize| alpha / (values.len() - step) as f64;
    let stopped = order.iter().enumerate().find(|(step, index)| values[**index] > level(*step)).map(|(step, _)| step);
    let mut levels = vec![alpha; values.len()];
    for (step, index) in order.into_iter().enumerate() {
        levels[index] = level(stopped.map_or(step, |stopped| step.min(stopped)));
    }
    levels
}

/// The same for the method of Benjamini and Hochberg: rejected values have the level of the last one that is rejected
/// (Benjamini and Yekutieli 2005), the others that of the step after it.
pub(crate) fn benjamini_hochberg_levels(values: &[f64], alpha: f64) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let level = |rejected: usize| rejected.min(values.len()) as f64 * alpha / values.len() as f64;
    let rejected = (1..=values.len()).rev().find(|step| sorted[step - 1] <= level(*step)).unwrap_or(0);
    let most = rejected.checked_sub(1).map(|last| sorted[last]);
    let of = |value: &f64| level(if most.is_some_and(|most| *value <= most) { rejected } else { rejected + 1 });
    values.iter().map(of).collect()
}

/// P-values adjusted to the false discovery rate of Benjamini and Hochberg (1995), in the order given: for
/// exploration, not for gates.
pub(crate) fn benjamini_hochberg(values: &[f64]) -> Vec<f64> {
    let order = ascending(values);
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

    proptest! {
        #[test]
        fn a_value_is_at_most_its_level_exactly_when_its_adjusted_value_is_at_most_alpha(
            steps in prop::collection::vec(0_u32..40, 0..9),
        ) {
            let values: Vec<f64> = steps.iter().map(|step| f64::from(*step) / 400.0).collect();
            for (adjusted, levels) in [
                (holm(&values), holm_levels(&values, 0.05)),
                (benjamini_hochberg(&values), benjamini_hochberg_levels(&values, 0.05)),
            ] {
                prop_assert_eq!(levels.len(), values.len());
                for ((value, adjusted), level) in values.iter().zip(&adjusted).zip(&levels) {
                    // Where both are equal but for rounding, either may be.
                    prop_assume!((adjusted - 0.05).abs() > 1e-12);
                    prop_assert_eq!(value <= level, *adjusted <= 0.05, "{:?} {:?} {:?}", values, adjusted, levels);
                }
            }
        }
    }

    #[test]
    fn values_at_their_levels_are_rejected() {
        assert_eq!(holm_levels(&[0.025, 0.05], 0.05), [0.025, 0.05]);
        assert_eq!(benjamini_hochberg_levels(&[0.025, 0.05], 0.05), [0.05, 0.05]);
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
        fn a_value_is_rejected_exactly_when_it_does_not_exceed_its_level(
            values in proptest::collection::vec(0.0..=0.2_f64, 1..12),
        ) {
            type Correction = (fn(&[f64]) -> Vec<f64>, fn(&[f64], f64) -> Vec<f64>);
            let corrections: [Correction; 2] = [(holm, holm_levels), (benjamini_hochberg, benjamini_hochberg_levels)];
            for (adjusted, levels) in corrections {
                for ((value, adjusted), level) in values.iter().zip(adjusted(&values)).zip(levels(&values, 0.05)) {
                    prop_assert_eq!(*value <= level, adjusted <= 0.05, "{} {} {}", value, adjusted, level);
                    prop_assert!(level <= 0.05 + 1e-12 && level >= 0.05 / values.len() as f64 - 1e-12);
                }
            }
        }

        #[test]
        fn corrections_never_lower_a_p_and_holm_is_the_stricter(values in proptest::collection::vec(0.0..=1.0_f64, 1..12)) {
            let (gate, explore) = (holm(&values), benjamini_hochberg(&values));
            for i in 0..values.len() {
                prop_assert!(values[i] <= explore[i] + 1e-12 && explore[i] <= gate[i] + 1e-12 && gate[i] <= 1.0);
            }
        }
    }
}

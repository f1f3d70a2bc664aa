//! Sign-flip test of paired differences: one difference for each scenario, the mean over its repetitions.
//!
//! Under the null hypothesis each difference is symmetric around 0, so both signs are equally likely.
//! Exact up to 20 scenarios, by two half-sums that are merged, seeded Monte Carlo beyond.

use rand::{RngExt as _, SeedableRng as _, rngs::ChaCha8Rng};

/// Largest number of scenarios whose signs are enumerated.
pub(crate) const EXACT_UP_TO: usize = 20;

/// Draws of the Monte Carlo test.
const DRAWS: u32 = 9_999;

/// The result of a sign-flip test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SignFlip {
    /// Mean difference.
    pub mean: f64,
    /// Two-sided p-value.
    pub p: f64,
    /// Whether all sign patterns were enumerated; otherwise `p` is `(hits + 1) / (draws + 1)`.
    pub exact: bool,
}

/// Two-sided sign-flip test of `differences` (oracle `scipy.stats.permutation_test`, `permutation_type='samples'`);
/// `None` without differences or with one that is not finite.
pub(crate) fn sign_flip(differences: &[f64], seed: u64) -> Option<SignFlip> {
    if differences.is_empty() || differences.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let sum: f64 = differences.iter().sum();
    // Sums that are equal on paper differ in their last digits.
    let slack = 1e-9 * differences.iter().map(|value| value.abs()).sum::<f64>();
    let extreme = sum.abs() - slack;
    let exact = differences.len() <= EXACT_UP_TO;
    let p = if exact { enumerate(differences, extreme) } else { draw(differences, extreme, seed) };
    Some(SignFlip { mean: sum / differences.len() as f64, p, exact })
}

/// The share of all sign patterns whose sum is at least `extreme` away from 0.
fn enumerate(differences: &[f64], extreme: f64) -> f64 {
    let (left, right) = differences.split_at(differences.len() / 2);
    let mut right = signed_sums(right);
    right.sort_by(f64::total_cmp);
    let left = signed_sums(left);
    let hits: usize = left
        .iter()
        .map(|sum| {
            let low = right.partition_point(|other| sum + other <= -extreme);
            let below = right.partition_point(|other| sum + other < extreme);
            // With an extreme of 0 or less every pattern counts, once.
            low + right.len() - below.max(low)
        })
        .sum();
    hits as f64 / (left.len() * right.len()) as f64
}

/// The sums of `values` under all patterns of signs.
fn signed_sums(values: &[f64]) -> Vec<f64> {
    values.iter().fold(vec![0.0], |sums, value| sums.iter().flat_map(|sum| [sum + value, sum - value]).collect())
}

fn draw(differences: &[f64], extreme: f64, seed: u64) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut hits = 0_u32;
    for _ in 0..DRAWS {
        let sum: f64 = differences.iter().map(|value| if rng.random_bool(0.5) { *value } else { -value }).sum();
        hits += u32::from(sum.abs() >= extreme);
    }
    f64::from(hits + 1) / f64::from(DRAWS + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn six_scenarios_agree_with_scipy() {
        let found = sign_flip(&[0.25, 0.0, 0.5, 0.25, -0.25, 0.25], 1).expect("differences");
        assert!((found.mean - 0.1667).abs() < 5e-5 && (found.p - 0.3125).abs() < 1e-12, "{found:?}");
        assert!(found.exact);
    }

    #[test]
    fn no_difference_at_all_has_p_of_1_and_nonsense_has_none() {
        assert!((sign_flip(&[0.0; 7], 1).expect("differences").p - 1.0).abs() < 1e-12);
        assert_eq!(sign_flip(&[], 1), None);
        assert_eq!(sign_flip(&[0.1, f64::NAN], 1), None);
    }

    #[test]
    fn drawing_comes_near_enumerating_and_repeats_itself() {
        let differences: Vec<f64> = (0..20).map(|i| f64::from((i * 7) % 11) / 10.0 - 0.35).collect();
        let exact = sign_flip(&differences, 1).expect("differences");
        let drawn = draw(&differences, differences.iter().sum::<f64>().abs() - 1e-9, 5);
        assert!((exact.p - drawn).abs() < 0.02, "{exact:?} {drawn}");
        let many: Vec<f64> = (0..30).map(|i| f64::from((i * 7) % 11) / 10.0 - 0.35).collect();
        let found = sign_flip(&many, 5).expect("differences");
        assert!(!found.exact && found.p > 0.0);
        assert_eq!(sign_flip(&many, 5), Some(found));
    }

    #[test]
    fn one_variant_against_itself_alarms_at_the_stated_rate_over_10_000_runs() {
        // Ten scenarios, four repetitions each way, rates that differ between scenarios.
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let mut alarms = 0_u32;
        for run in 0..10_000 {
            let differences: Vec<f64> = (0..10)
                .map(|scenario| {
                    let rate = 0.5 + f64::from(scenario) / 20.0;
                    let mut wins = || (0..4).map(|_| f64::from(u8::from(rng.random_bool(rate)))).sum::<f64>();
                    (wins() - wins()) / 4.0
                })
                .collect();
            alarms += u32::from(sign_flip(&differences, run).expect("differences").p <= 0.05);
        }
        assert!(alarms <= 500, "{alarms} of 10,000");
        assert!(alarms >= 100, "a test that never alarms would be useless: {alarms}");
    }

    proptest! {
        #[test]
        fn swapping_the_settings_negates_the_effect_and_keeps_the_p(steps in proptest::collection::vec(-8_i32..=8, 1..14)) {
            let forward: Vec<f64> = steps.iter().map(|step| f64::from(*step) / 8.0).collect();
            let back: Vec<f64> = forward.iter().map(|value| -value).collect();
            let (one, other) = (sign_flip(&forward, 3).expect("some"), sign_flip(&back, 3).expect("some"));
            prop_assert!((one.p - other.p).abs() < 1e-12 && (one.mean + other.mean).abs() < 1e-12);
            prop_assert!(one.p > 0.0 && one.p <= 1.0);
        }

        #[test]
        fn merging_halves_counts_what_plain_enumeration_counts(steps in proptest::collection::vec(-8_i32..=8, 1..9)) {
            let values: Vec<f64> = steps.iter().map(|step| f64::from(*step)).collect();
            let extreme = values.iter().sum::<f64>().abs() - 1e-9;
            let all = signed_sums(&values);
            let hits = all.iter().filter(|sum| sum.abs() >= extreme).count();
            prop_assert!((enumerate(&values, extreme) - hits as f64 / all.len() as f64).abs() < 1e-12);
        }
    }
}

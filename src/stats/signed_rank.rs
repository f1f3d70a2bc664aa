//! The signed-rank test of a shift in paired differences, and the Hodges-Lehmann estimate with the interval that inverts it.
//!
//! For times, the differences are log ratios of scenario medians, so that the estimate is a factor after `exp`.

use super::student::{normal_quantile, normal_tail};

/// Largest number of differences whose null distribution is enumerated; above it, the normal approximation is used.
const EXACT_UP_TO: usize = 150;

/// The most values whose pairs are listed; beyond, evenly spaced order statistics stand for all, so that memory stays
/// bounded.
const PAIRED_UP_TO: usize = 1_000;

/// A location with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Location {
    /// The estimate.
    pub value: f64,
    /// The two-sided interval at the level asked for, or wider; `None` when there are too few values for one.
    pub interval: Option<(f64, f64)>,
}

/// The two-sided p-value of the signed-rank test that [`hodges_lehmann`] inverts: it does not exceed `alpha` exactly when
/// that interval excludes 0. Walsh averages of 0 (values of 0, and ties of opposite sign) count for both directions, so
/// that equal pairs never strengthen a difference; without them it is Wilcoxon's (1945; oracle `scipy.stats.wilcoxon`). `None` when all values are 0, there are
/// none, or one is not finite.
pub(crate) fn shift_p(values: &[f64]) -> Option<f64> {
    if values.iter().any(|value| !value.is_finite()) || values.iter().all(|value| *value == 0.0) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    // Averages of two values, each with itself too, that are at most 0, and those that are less.
    let (mut at_most, mut below) = (0_usize, 0_usize);
    for (place, value) in sorted.iter().enumerate() {
        at_most += sorted.partition_point(|other| f64::midpoint(*value, *other) <= 0.0).saturating_sub(place);
        below += sorted.partition_point(|other| f64::midpoint(*value, *other) < 0.0).saturating_sub(place);
    }
    let smaller = at_most.min(n * (n + 1) / 2 - below);
    let tail = if n <= EXACT_UP_TO {
        let ranks: Vec<usize> = (1..=n).collect();
        subset_sums(&ranks).iter().take(smaller + 1).sum()
    } else {
        let n = n as f64;
        let spread = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        normal_tail(((n * (n + 1.0) / 4.0 - smaller as f64 - 0.5) / spread).max(0.0))
    };
    Some((2.0 * tail).min(1.0))
}

/// The Hodges-Lehmann estimate of the centre (1963): the median of all Walsh averages, with the two-sided interval of
/// level `1 - alpha` that inverts the signed-rank test; `None` without values, or with one that is not finite.
pub(crate) fn hodges_lehmann(values: &[f64], alpha: f64) -> Option<Location> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let n = values.len();
    let skipped = if n <= EXACT_UP_TO {
        let ranks: Vec<usize> = (1..=n).collect();
        least_rank(&subset_sums(&ranks), alpha)
    } else {
        let n = n as f64;
        let half = normal_quantile(1.0 - alpha / 2.0) * (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        Some((n * (n + 1.0) / 4.0 - half - 0.5).floor().max(0.0) as usize)
    };
    let kept = thin(values);
    let mut walsh: Vec<f64> = (0..kept.len())
        .flat_map(|i| kept[i..].iter().map(move |other| (i, other)))
        .map(|(i, other)| f64::midpoint(kept[i], *other))
        .collect();
    let all = n as f64 * (n as f64 + 1.0) / 2.0;
    Some(location(&mut walsh, skipped, all))
}

/// How many values each end of an ordered list loses for an interval of level `1 - alpha`, given the null distribution of
/// the statistic that counts them; `None` when even the widest interval has less.
fn least_rank(null: &[f64], alpha: f64) -> Option<usize> {
    let mut cumulated = 0.0;
    let outside = null.iter().take_while(|mass| {
        cumulated += **mass;
        cumulated <= alpha / 2.0 + 1e-12
    });
    outside.count().checked_sub(1)
}

/// The median of `values`, which get sorted, and the interval that leaves out `skipped` of `all` at each end, `values`
/// standing for all.
fn location(values: &mut [f64], skipped: Option<usize>, all: f64) -> Location {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let value = f64::midpoint(values[(n - 1) / 2], values[n / 2]);
    let share = n as f64 / all;
    let interval = skipped.map(|skipped| {
        let skipped = ((skipped as f64 * share).round() as usize).min((n - 1) / 2);
        (values[skipped], values[n - 1 - skipped])
    });
    Location { value, interval }
}

/// The values in order, or as many evenly spaced ones of them as may be paired.
fn thin(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    if sorted.len() <= PAIRED_UP_TO {
        return sorted;
    }
    (0..PAIRED_UP_TO).map(|i| sorted[(2 * i + 1) * sorted.len() / (2 * PAIRED_UP_TO)]).collect()
}

/// The probability of each sum of a random subset of `parts`, each part being in it with probability one half.
fn subset_sums(parts: &[usize]) -> Vec<f64> {
    let mut null = vec![1.0];
    for part in parts {
        let mut next = vec![0.0; null.len() + part];
        for (sum, mass) in null.iter().enumerate() {
            next[sum] += mass / 2.0;
            next[sum + part] += mass / 2.0;
        }
        null = next;
    }
    null
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LOG_RATIOS: [f64; 10] = [0.5, 0.6, -0.15, 1.2, 0.7, -0.1, 1.5, 0.8, 0.45, 0.9];

    #[test]
    fn ten_log_ratios_agree_with_scipy() {
        let centre = hodges_lehmann(&LOG_RATIOS, 0.05).expect("values");
        let (low, high) = centre.interval.expect("ten are enough");
        assert!((centre.value - 0.65).abs() < 1e-9, "{centre:?}");
        assert!((low - 0.25).abs() < 1e-9 && (high - 1.0).abs() < 1e-9, "{centre:?}");
    }

    #[test]
    fn five_values_have_no_95_percent_interval_and_six_have_one() {
        assert_eq!(hodges_lehmann(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.05).expect("values").interval, None);
        assert!(hodges_lehmann(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.05).expect("values").interval == Some((1.0, 6.0)));
        assert_eq!(hodges_lehmann(&[], 0.05), None);
    }

    #[test]
    fn the_approximation_for_many_joins_the_exact_test() {
        let values = |n: u32| -> Vec<f64> { (0..n).map(|i| f64::from((i * 37) % 101) - 42.5).collect() };
        let (exact, near) = (shift_p(&values(150)).expect("some"), shift_p(&values(151)).expect("some"));
        assert!((exact - near).abs() < 0.02, "{exact} {near}");
        let wide = |n| hodges_lehmann(&values(n), 0.05).and_then(|found| found.interval).expect("many");
        assert!((wide(150).0 - wide(151).0).abs() < 1.0 && (wide(150).1 - wide(151).1).abs() < 1.0);
    }

    #[test]
    fn a_hundred_thousand_values_are_located_without_listing_all_pairs() {
        let values: Vec<f64> = (0..100_000_u32).map(|i| f64::from((i * 7919) % 100_003)).collect();
        let found = hodges_lehmann(&values, 0.05).expect("values");
        let (low, high) = found.interval.expect("many");
        // Uniform on 0 to 100,003: the centre is half, its standard error about 91.
        assert!((found.value - 50_001.0).abs() < 110.0, "{found:?}");
        assert!((f64::midpoint(low, high) - found.value).abs() < 110.0 && high - low > 200.0 && high - low < 600.0);
    }

    #[test]
    fn the_test_of_a_shift_is_wilcoxons_where_no_average_is_0_and_equal_pairs_make_it_no_surer() {
        assert!((shift_p(&LOG_RATIOS).expect("differences") - 0.009_765_625).abs() < 1e-12);
        let equal = [&[0.0; 14][..], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]].concat();
        assert!(shift_p(&equal).is_some_and(|p| p > 0.5));
        assert_eq!(shift_p(&[0.0; 3]), None);
        assert_eq!(shift_p(&[1.0, f64::INFINITY]), None, "a timeout has no log ratio");
    }

    proptest! {
        #[test]
        fn the_interval_excludes_0_exactly_when_the_test_rejects_at_its_level(
            steps in proptest::collection::vec(-3_i32..=9, 1..60), rows in 1_u32..12,
        ) {
            let values: Vec<f64> = steps.iter().map(|step| f64::from(*step)).collect();
            let alpha = 0.05 / f64::from(rows);
            prop_assume!(values.iter().any(|value| *value != 0.0));
            let interval = hodges_lehmann(&values, alpha).expect("values").interval;
            let excludes = interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0);
            prop_assert_eq!(excludes, shift_p(&values).expect("differences") <= alpha);
        }

        #[test]
        fn swapping_the_settings_keeps_p_and_mirrors_the_estimate(steps in proptest::collection::vec(-9_i32..=9, 1..25)) {
            let forward: Vec<f64> = steps.iter().map(|step| f64::from(*step)).collect();
            let back: Vec<f64> = forward.iter().map(|value| -value).collect();
            prop_assert_eq!(shift_p(&forward), shift_p(&back));
            let (one, other) = (hodges_lehmann(&forward, 0.05).expect("some"), hodges_lehmann(&back, 0.05).expect("some"));
            prop_assert!((one.value + other.value).abs() < 1e-12);
            prop_assert_eq!(one.interval.map(|(low, high)| (-high, -low)), other.interval);
            if let Some(p) = shift_p(&forward) {
                prop_assert!(p > 0.0 && p <= 1.0);
            }
        }

        #[test]
        fn shifting_all_values_shifts_the_estimate(steps in proptest::collection::vec(-9_i32..=9, 1..25)) {
            let values: Vec<f64> = steps.iter().map(|step| f64::from(*step)).collect();
            let moved: Vec<f64> = values.iter().map(|value| value + 3.0).collect();
            let shift = hodges_lehmann(&moved, 0.05).expect("some").value - hodges_lehmann(&values, 0.05).expect("some").value;
            prop_assert!((shift - 3.0).abs() < 1e-12);
        }
    }
}

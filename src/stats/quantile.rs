//! Quantiles without interpolation: nearest rank for display, order statistics for bounds.

use super::rate::binomial_cdf;
use super::{ALPHA, Clusters, Sample, bisect};

/// The nearest-rank quantile of `sorted` (ascending), `x_(ceil(q n))`; `None` of nothing.
pub(crate) fn nearest_rank(sorted: &[u64], q: f64) -> Option<u64> {
    rank(sorted.len() as u64, q).map(|rank| sorted[rank as usize - 1])
}

/// The mean of the two middle values, or the middle one; `u64::MAX` if the upper of them is that.
pub(crate) fn median(sorted: &[u64]) -> Option<u64> {
    let n = sorted.len();
    let (lower, upper) = (*sorted.get(n.checked_sub(1)? / 2)?, *sorted.get(n / 2)?);
    Some(if upper == u64::MAX { upper } else { u64::midpoint(lower, upper) })
}

/// The rank `ceil(q n)`, counted from 1; `None` for `n` of 0.
pub(crate) fn rank(n: u64, q: f64) -> Option<u64> {
    // 0.95 * 100 is 95.00000000000001 or 94.99999999999999 depending on the factors: forgive that much.
    let exact = (q * n as f64 - 1e-9).ceil().max(1.0) as u64;
    (n > 0).then_some(exact.min(n))
}

/// Ranks, from 1, of the order statistics that bound the `q`-quantile of `n` values from below and from above, each
/// one-sided with 95 %; `None` where `n` is too small for a bound on that side.
#[cfg(test)]
pub(crate) fn bound_ranks(n: u64, q: f64) -> (Option<u64>, Option<u64>) {
    ranks_at(n, q, ALPHA)
}

/// The same, each one-sided with `1 - alpha`.
fn ranks_at(n: u64, q: f64, alpha: f64) -> (Option<u64>, Option<u64>) {
    // Upper: the least r with P(Bin(n, q) <= r - 1) >= 0.95. Lower: the largest r with P(Bin(n, q) <= r - 1) <= 0.05.
    let below = |r: u64| binomial_cdf(r - 1, n, q);
    // 1 - 0.95 is a little more than 0.05: forgive that much.
    let upper = first(n, |r| below(r) >= 1.0 - alpha - 1e-12).filter(|r| *r <= n);
    let lower = first(n, |r| below(r) > alpha + 1e-12).map_or(n, |r| r - 1);
    (Some(lower).filter(|r| *r >= 1), upper)
}

/// Quantiles shown for latencies.
pub(crate) const SHOWN: [f64; 4] = [0.5, 0.9, 0.95, 0.99];

/// A quantile of a sample with its bounds, in the unit of the values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bounded {
    /// The quantile, between 0 and 1.
    pub q: f64,
    /// The nearest-rank value, for display.
    pub value: u64,
    /// One-sided lower bound, of 95 % unless another level was asked for; `None` is unbounded: there are too few values.
    pub lower: Option<u64>,
    /// One-sided upper bound of the same level; `None` is unbounded: there are too few values.
    pub upper: Option<u64>,
}

/// The quantiles [`SHOWN`] of `sorted` (ascending, timeouts as `u64::MAX` and not left out) with their bounds; empty
/// without values.
#[cfg(test)]
pub(crate) fn bounded(sorted: &[u64]) -> Vec<Bounded> {
    SHOWN.into_iter().filter_map(|q| bounded_at(sorted, q, ALPHA)).collect()
}

fn bounded_at(sorted: &[u64], q: f64, alpha: f64) -> Option<Bounded> {
    let at = |rank: u64| sorted[rank as usize - 1];
    let (lower, upper) = ranks_at(sorted.len() as u64, q, alpha);
    Some(Bounded { q, value: nearest_rank(sorted, q)?, lower: lower.map(at), upper: upper.map(at) })
}

/// What determines how many values a cluster has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// The plan.
    Planned,
    /// What happened, as in a log. Where clusters then differ in size, nothing bounds a quantile of all values: a rare long
    /// cluster may have most of them, and none be seen.
    Observed,
}

/// The same of values in clusters, such as the turns of conversations, which are not independent: (value, cluster).
///
/// A quantile is at most `x` if the lower bound on the share of values up to `x` reaches it, and at least `x` if the
/// upper bound on the share below `x` does not exceed it; shares are bounded by the bet on clusters
/// ([`Sample::Fixed`](super::Sample)), or by the mean over clusters of equal size where sizes are observed. Shares grow with
/// `x`, so the bounds hold for all `x` at once. With one value a cluster these are bounds by order statistics.
pub(crate) fn bounded_in_clusters(values: Vec<(u64, u32)>, sizes: Sizes) -> Vec<Bounded> {
    in_clusters(values, sizes, &SHOWN, ALPHA)
}

/// One quantile of values in clusters, with one-sided bounds of `1 - alpha` each; `None` without values.
pub(crate) fn quantile_in_clusters(values: Vec<(u64, u32)>, by: Sizes, q: f64, alpha: f64) -> Option<Bounded> {
    in_clusters(values, by, &[q], alpha).pop()
}

fn in_clusters(mut values: Vec<(u64, u32)>, by: Sizes, quantiles: &[f64], alpha: f64) -> Vec<Bounded> {
    values.sort_unstable();
    let sorted: Vec<u64> = values.iter().map(|(value, _)| *value).collect();
    let clusters = values.iter().map(|(_, cluster)| *cluster as usize + 1).max().unwrap_or(0);
    let mut sizes = vec![0_u64; clusters];
    for (_, cluster) in &values {
        sizes[*cluster as usize] += 1;
    }
    if sizes.iter().all(|size| *size <= 1) {
        return quantiles.iter().filter_map(|q| bounded_at(&sorted, *q, alpha)).collect();
    }
    let mut present = sizes.iter().filter(|size| **size > 0);
    if by == Sizes::Observed && present.next().is_some_and(|first| present.any(|other| other != first)) {
        let bare = |q: &f64| Some(Bounded { q: *q, value: nearest_rank(&sorted, *q)?, lower: None, upper: None });
        return quantiles.iter().filter_map(bare).collect();
    }
    // The first `count` values are successes.
    let sample = |count: u64| {
        let mut good = vec![0_u64; clusters];
        for (_, cluster) in &values[..count as usize] {
            good[*cluster as usize] += 1;
        }
        let clusters: Clusters = good.into_iter().zip(sizes.iter().copied()).collect();
        if by == Sizes::Planned { Sample::Fixed(clusters) } else { Sample::conversations(&clusters) }
    };
    let n = sorted.len() as u64;
    let up_to = |value: u64| sorted.partition_point(|other| *other <= value) as u64;
    let below = |value: u64| sorted.partition_point(|other| *other < value) as u64;
    let at = |rank: u64| sorted[rank as usize - 1];
    quantiles
        .iter()
        .filter_map(|q| {
            let q = *q;
            let upper = first(n, |rank| sample(up_to(at(rank))).lower_at(alpha) >= q).map(at);
            let beyond = first(n, |rank| sample(below(at(rank))).upper_at(alpha) > q).map_or(n, |rank| rank - 1);
            Some(Bounded { q, value: nearest_rank(&sorted, q)?, lower: (beyond >= 1).then(|| at(beyond)), upper })
        })
        .collect()
}

/// The first of `1..=n` for which `holds`, which holds for all after it; `n` 0 or none: `None`.
fn first(n: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    (n > 0 && holds(n)).then(|| bisect(0, n, holds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn with_one_value_a_cluster_the_bounds_are_those_of_independent_values() {
        let values: Vec<(u64, u32)> = (0..93).map(|n| (u64::from(n) * 7 % 93, n)).collect();
        let sorted: Vec<u64> = (0..93).collect();
        assert_eq!(bounded_in_clusters(values, Sizes::Planned), bounded(&sorted));
        assert_eq!(bounded_in_clusters(Vec::new(), Sizes::Planned), Vec::new());
    }

    #[test]
    fn one_quantile_is_that_among_all_and_the_median_of_an_even_number_is_between_two() {
        let values: Vec<(u64, u32)> = (0..93).map(|n| (u64::from(n) * 7 % 93, n / 3)).collect();
        assert_eq!(
            quantile_in_clusters(values.clone(), Sizes::Planned, 0.95, ALPHA),
            bounded_in_clusters(values, Sizes::Planned).get(2).copied()
        );
        assert_eq!(quantile_in_clusters(Vec::new(), Sizes::Planned, 0.95, ALPHA), None);
        assert_eq!([median(&[]), median(&[7]), median(&[1, 5])], [None, Some(7), Some(3)]);
        assert_eq!([median(&[1, 2, 9]), median(&[1, 4, 8, 90])], [Some(2), Some(6)]);
        assert_eq!(median(&[5, u64::MAX]), Some(u64::MAX), "the upper one never ended");
    }

    #[test]
    fn turns_that_go_together_bound_less_than_as_many_that_do_not() {
        // 30 conversations of four turns, each quick or slow as a whole: 30 things were seen, and not 120.
        let values: Vec<(u64, u32)> = (0..120).map(|n| (1_000 * u64::from(n / 4 + 1), n / 4)).collect();
        let sorted: Vec<u64> = values.iter().map(|(value, _)| *value).collect();
        let (together, alone) = (bounded_in_clusters(values, Sizes::Planned), bounded(&sorted));
        for (one, other) in together.iter().zip(&alone) {
            assert_eq!(one.value, other.value);
            assert!(one.upper.is_none_or(|upper| other.upper.is_some_and(|alone| upper >= alone)), "{one:?} {other:?}");
            assert!(one.lower.is_none_or(|lower| other.lower.is_some_and(|alone| lower <= alone)), "{one:?} {other:?}");
        }
        assert_eq!((together[2].upper, alone[2].upper.is_some()), (None, true), "30 conversations bound no p95");
    }

    #[test]
    fn where_sizes_are_outcomes_clusters_of_different_sizes_bound_no_quantile() {
        // 59 conversations of one turn and one of eight: that no two are long is chance.
        let mut values: Vec<(u64, u32)> = (0..60).map(|n| (1_000 + u64::from(n), n)).collect();
        let single = values.clone();
        values.extend((0..7).map(|_| (60_000, 59)));
        let bounds = |values: &[(u64, u32)], by: Sizes| {
            let found = quantile_in_clusters(values.to_vec(), by, 0.9, ALPHA).expect("values");
            (found.value, found.lower.is_some(), found.upper.is_some())
        };
        assert_eq!(bounds(&values, Sizes::Observed), (60_000, false, false));
        assert!(bounds(&values, Sizes::Planned).1, "of a script the number is known");
        assert_eq!(bounds(&single, Sizes::Observed), (1_053, true, true), "conversations of one turn each");
        let pairs: Vec<(u64, u32)> = (0..120).map(|n| (1_000 + u64::from(n), n / 2)).collect();
        assert_eq!(bounds(&pairs, Sizes::Observed), (1_107, true, true), "conversations of two turns each");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn bounds_in_clusters_are_those_found_by_trying_every_value(
            sizes in proptest::collection::vec(2_u32..5, 4..20), seed in 0_u64..1000,
        ) {
            let mut values = Vec::new();
            for (cluster, size) in (0..).zip(&sizes) {
                values.extend((0..*size).map(|turn| ((seed * 31 + u64::from(cluster * 7 + turn * 3)) % 20, cluster)));
            }
            let share = |holds: &dyn Fn(u64) -> bool| {
                let of = |cluster: u32| values.iter().filter(move |(_, own)| *own == cluster);
                let good = |cluster| of(cluster).filter(|(value, _)| holds(*value)).count() as u64;
                Sample::Fixed((0..sizes.len() as u32).map(|cluster| (good(cluster), of(cluster).count() as u64)).collect())
            };
            let found = bounded_in_clusters(values.clone(), Sizes::Planned);
            prop_assert_eq!(found.len(), SHOWN.len());
            for (one, q) in found.iter().zip(SHOWN) {
                let upper = (0..20).find(|most| share(&|value| value <= *most).lower_at(ALPHA) >= q);
                let tried = values.iter().map(|(value, _)| *value);
                let lower = tried.filter(|least| share(&|value| value < *least).upper_at(ALPHA) <= q).max();
                prop_assert_eq!((one.lower, one.upper), (lower, upper), "{:?}", one);
            }
        }

        #[test]
        fn bounds_stand_around_the_quantile(sizes in proptest::collection::vec(1_u32..6, 1..30), seed in 0_u64..1000) {
            let mut values = Vec::new();
            for (cluster, size) in (0..).zip(&sizes) {
                values.extend((0..*size).map(|turn| ((seed * 31 + u64::from(cluster * 7 + turn * 3)) % 50, cluster)));
            }
            for one in bounded_in_clusters(values, Sizes::Planned) {
                prop_assert!(one.lower.is_none_or(|lower| lower <= one.value), "{one:?}");
                prop_assert!(one.upper.is_none_or(|upper| upper >= one.value), "{one:?}");
            }
        }
    }

    #[test]
    fn nearest_rank_of_the_reference_sample() {
        let sample: Vec<u64> =
            [3.1, 3.4, 3.8, 4.0, 4.1, 4.4, 4.6, 4.9, 5.0, 5.2, 5.5, 5.7, 6.0, 6.3, 6.8, 7.1, 7.7, 8.2, 9.1, 11.5]
                .iter()
                .map(|seconds: &f64| (seconds * 1e6).round() as u64)
                .collect();
        assert_eq!(nearest_rank(&sample, 0.95), Some(9_100_000));
        assert_eq!(nearest_rank(&[], 0.95), None);
        assert_eq!(nearest_rank(&[7], 0.5), Some(7));
    }

    #[test]
    fn ranks_that_bound_a_p95() {
        let rows = [
            (20, Some(17), None),
            (40, Some(36), None),
            (59, Some(53), Some(59)),
            (93, Some(85), Some(92)),
            (100, Some(91), Some(99)),
            (200, Some(185), Some(196)),
        ];
        for (n, lower, upper) in rows {
            assert_eq!(bound_ranks(n, 0.95), (lower, upper), "n = {n}");
        }
        assert_eq!(bound_ranks(0, 0.95), (None, None));
    }

    #[test]
    fn each_quantile_is_bounded_as_soon_as_the_sample_allows() {
        // The fewest values with an upper bound: q^n <= 0.05; with a lower bound: (1 - q)^n <= 0.05.
        for (q, upper_from, lower_from) in [(0.5, 5, 5), (0.9, 29, 2), (0.95, 59, 1), (0.99, 299, 1)] {
            assert_eq!((1..400).find(|n| bound_ranks(*n, q).1.is_some()), Some(upper_from), "upper {q}");
            assert_eq!((1..400).find(|n| bound_ranks(*n, q).0.is_some()), Some(lower_from), "lower {q}");
        }
        assert_eq!(bound_ranks(5, 0.99), (Some(5), None), "all five are below p99 with 95.1 %");
    }

    #[test]
    fn twenty_times_bound_the_median_and_no_high_quantile_from_above() {
        let sample: Vec<u64> = (1..=19).chain([u64::MAX]).collect();
        let found = bounded(&sample);
        assert_eq!((found[0].value, found[0].lower, found[0].upper), (10, Some(6), Some(15)));
        assert_eq!((found[2].value, found[2].lower, found[2].upper), (19, Some(17), None));
        assert_eq!((found[3].value, found[3].upper), (u64::MAX, None), "a timeout is the largest value");
        assert!(bounded(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn scaling_all_values_scales_the_quantile(mut values in proptest::collection::vec(0_u64..1_000_000, 1..60)) {
            values.sort_unstable();
            let scaled: Vec<u64> = values.iter().map(|value| value * 7).collect();
            let once = nearest_rank(&values, 0.95).map(|value| value * 7);
            prop_assert_eq!(nearest_rank(&scaled, 0.95), once);
        }
    }
}

//! Two samples that are not paired: the Mann-Whitney test, exact also with ties, the shift between them, and Cliff's
//! delta.

use super::signed_rank::{Location, doubled_ranks, least_rank, location, thin};
use super::student::{normal_quantile, normal_tail};

/// The most values in both samples together whose null distribution is enumerated.
const EXACT_UP_TO: usize = 60;

/// The result of a comparison of two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankSum {
    /// Pairs in which the value of B is larger, ties counting one half.
    pub u: f64,
    /// One-sided p-value that values under B are larger.
    pub p_larger: f64,
    /// Two-sided p-value.
    pub p: f64,
    /// Cliff's delta: the share of pairs in which B is larger, minus the share in which it is smaller (1993).
    pub delta: f64,
    /// The shift from A to B: the median of all differences of finite values (Hodges and Lehmann 1963); `None` when a
    /// sample holds none.
    pub shift: Option<Location>,
    /// Whether the null distribution was enumerated.
    pub exact: bool,
}

/// Compares `a` with `b` (oracle `scipy.stats.mannwhitneyu`); `None` when a sample is empty or holds a NaN.
/// Infinite values count as largest; they leave the shift to the others.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<RankSum> {
    if a.is_empty() || b.is_empty() || a.iter().chain(b).any(|value| value.is_nan()) {
        return None;
    }
    let pooled: Vec<f64> = a.iter().chain(b).copied().collect();
    let ranks = doubled_ranks(&pooled);
    let rank_sum: usize = ranks[a.len()..].iter().sum();
    let (m, n) = (a.len(), b.len());
    // U = R - n(n+1)/2, everything doubled.
    let larger = (rank_sum - n * (n + 1)) as f64 / 2.0;
    let exact = m + n <= EXACT_UP_TO;
    let (at_least, at_most) = if exact {
        let null = sums_of(&ranks, n);
        (null[rank_sum..].iter().sum(), null[..=rank_sum].iter().sum())
    } else {
        approximate(&ranks, m, n, larger)
    };
    Some(RankSum {
        u: larger,
        p_larger: f64::min(at_least, 1.0),
        p: (2.0 * f64::min(at_least, at_most)).min(1.0),
        delta: 2.0 * larger / (m * n) as f64 - 1.0,
        shift: shift(a, b),
        exact,
    })
}

/// Upper and lower tail of `u` by the normal approximation with corrections for ties and continuity.
fn approximate(ranks: &[usize], m: usize, n: usize, u: f64) -> (f64, f64) {
    let all = (m + n) as f64;
    let pairs = (m * n) as f64;
    let middle = f64::midpoint(all, 1.0);
    let spread: f64 = ranks.iter().map(|rank| (*rank as f64 / 2.0 - middle).powi(2)).sum();
    let deviation = (pairs * spread / (all * (all - 1.0))).sqrt();
    if deviation <= 0.0 {
        return (1.0, 1.0);
    }
    let tail = |gap: f64| normal_tail((gap - 0.5) / deviation);
    (tail(u - pairs / 2.0), tail(pairs / 2.0 - u))
}

fn shift(a: &[f64], b: &[f64]) -> Option<Location> {
    let finite = |values: &[f64]| values.iter().copied().filter(|value| value.is_finite()).collect::<Vec<_>>();
    let (a, b) = (finite(a), finite(b));
    let (m, n) = (a.len(), b.len());
    if m == 0 || n == 0 {
        return None;
    }
    let skipped = if m + n <= EXACT_UP_TO {
        let ranks: Vec<usize> = (1..=m + n).collect();
        // The null distribution of U, which starts at its least rank sum.
        least_rank(&sums_of(&ranks, n)[n * (n + 1) / 2..])
    } else {
        let half = normal_quantile(0.975) * ((m * n * (m + n + 1)) as f64 / 12.0).sqrt();
        Some(((m * n) as f64 / 2.0 - half - 0.5).floor().max(0.0) as usize)
    };
    let (a, b) = (thin(&a), thin(&b));
    let mut gaps: Vec<f64> = b.iter().flat_map(|later| a.iter().map(move |earlier| later - earlier)).collect();
    Some(location(&mut gaps, skipped, (m * n) as f64))
}

/// The probability of each sum of `n` of the `parts`, all choices being equally likely.
fn sums_of(parts: &[usize], n: usize) -> Vec<f64> {
    let total: usize = parts.iter().sum();
    // chosen[k][sum]: the probability of that sum among choices of k of the parts so far, scaled by their number.
    let mut chosen = vec![vec![0.0; total + 1]; n + 1];
    chosen[0][0] = 1.0;
    for (seen, part) in parts.iter().enumerate() {
        for k in (1..=n.min(seen + 1)).rev() {
            let (lower, upper) = chosen.split_at_mut(k);
            for sum in *part..=total {
                upper[0][sum] += lower[k - 1][sum - part];
            }
        }
    }
    let services: f64 = chosen[n].iter().sum();
    chosen[n].iter().map(|count| count / services).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BEFORE: [f64; 8] = [4.2, 5.1, 3.9, 6.0, 4.8, 5.5, 4.4, 5.0];
    const AFTER: [f64; 8] = [5.9, 6.4, 5.2, 7.1, 6.6, 4.9, 8.0, 6.1];

    #[test]
    fn two_samples_of_eight_agree_with_scipy() {
        let found = mann_whitney(&BEFORE, &AFTER).expect("samples");
        assert!((found.u - 57.0).abs() < 1e-12 && (found.p_larger - 0.003_496_50).abs() < 5e-9, "{found:?}");
        assert!(
            (found.shift.expect("finite").value - 1.35).abs() < 1e-9 && (found.delta - 0.781_25).abs() < 1e-12,
            "{found:?}"
        );
        let (low, high) = found.shift.and_then(|shift| shift.interval).expect("enough values");
        assert!(found.exact && low > 0.0 && high > 1.35 && (found.p - 0.006_993).abs() < 1e-6);
    }

    #[test]
    fn ties_are_enumerated_and_equal_samples_differ_in_nothing() {
        let same = mann_whitney(&[2.0; 5], &[2.0; 4]).expect("samples");
        assert!(
            (same.p - 1.0).abs() < 1e-12 && same.delta.abs() < 1e-12 && same.shift.expect("finite").value.abs() < 1e-12
        );
        // {1, 1} below {1, 2}: of the 6 choices of two of (1, 1, 1, 2), the 3 with the 2 reach that sum.
        let tied = mann_whitney(&[1.0, 1.0], &[1.0, 2.0]).expect("samples");
        assert!((tied.p_larger - 0.5).abs() < 1e-12, "{tied:?}");
        assert_eq!(mann_whitney(&[], &[1.0]), None);
        assert_eq!(mann_whitney(&[f64::NAN], &[1.0]), None);
    }

    #[test]
    fn a_timeout_is_the_largest_value_and_not_a_missing_one() {
        let late = mann_whitney(&[1.0, 2.0, 3.0], &[4.0, f64::INFINITY, f64::INFINITY]).expect("samples");
        assert!((late.delta - 1.0).abs() < 1e-12 && (late.p_larger - 0.05).abs() < 1e-12, "{late:?}");
        let lost = mann_whitney(&[1.0, 2.0, 3.0], &[f64::INFINITY; 3]).expect("samples");
        assert!(lost.shift.is_none() && (lost.p_larger - 0.05).abs() < 1e-12, "{lost:?}");
    }

    #[test]
    fn the_approximation_for_many_joins_the_exact_test() {
        let values = |n: u32, step: u32| -> Vec<f64> { (0..n).map(|i| f64::from((i * step) % 41)).collect() };
        let exact = mann_whitney(&values(30, 7), &values(30, 11)).expect("samples");
        let near = mann_whitney(&values(31, 7), &values(31, 11)).expect("samples");
        assert!(exact.exact && !near.exact && (exact.p - near.p).abs() < 0.1, "{exact:?} {near:?}");
    }

    proptest! {
        #[test]
        fn swapping_the_samples_mirrors_everything(
            a in proptest::collection::vec(0_u8..12, 1..10), b in proptest::collection::vec(0_u8..12, 1..10),
        ) {
            let [a, b]: [Vec<f64>; 2] = [a, b].map(|values| values.iter().map(|value| f64::from(*value)).collect());
            let (one, other) = (mann_whitney(&a, &b).expect("some"), mann_whitney(&b, &a).expect("some"));
            prop_assert!((one.p - other.p).abs() < 1e-9 && (one.delta + other.delta).abs() < 1e-12);
            prop_assert!((one.shift.expect("finite").value + other.shift.expect("finite").value).abs() < 1e-12);
            prop_assert!((one.u + other.u - (a.len() * b.len()) as f64).abs() < 1e-9);
        }
    }
}

//! Cluster bootstrap of a mean: scenarios are drawn again, never their repetitions alone.
//!
//! For differences of scores, where no exact test fits. It decides no gate: the percentile interval covers less than
//! it says in small samples, and quantiles least of all.

use rand::{RngExt as _, SeedableRng as _, rngs::ChaCha8Rng};

/// Resamples of an interval.
const RESAMPLES: usize = 4_000;

/// A mean with the interval that resampling gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Resampled {
    /// Mean over all units.
    pub mean: f64,
    /// Lower end of the two-sided 95 % percentile interval.
    pub low: f64,
    /// Upper end of the two-sided 95 % percentile interval.
    pub high: f64,
}

/// The mean of all values and its percentile interval (Efron 1979) from resampling whole clusters, the same for the
/// same seed; `None` with fewer than two clusters that hold values, or with a value that is not finite.
pub(crate) fn cluster_bootstrap(clusters: &[Vec<f64>], seed: u64) -> Option<Resampled> {
    resample(clusters, seed, RESAMPLES)
}

fn resample(clusters: &[Vec<f64>], seed: u64, resamples: usize) -> Option<Resampled> {
    if clusters.iter().flatten().any(|value| !value.is_finite()) {
        return None;
    }
    let sums: Vec<(f64, f64)> = clusters
        .iter()
        .filter(|values| !values.is_empty())
        .map(|values| (values.iter().sum(), values.len() as f64))
        .collect();
    if sums.len() < 2 {
        return None;
    }
    let mean = |drawn: &mut dyn Iterator<Item = (f64, f64)>| {
        let (total, n) = drawn.fold((0.0, 0.0), |(total, n), (sum, units)| (total + sum, n + units));
        total / n
    };
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut means: Vec<f64> =
        (0..resamples).map(|_| mean(&mut (0..sums.len()).map(|_| sums[rng.random_range(0..sums.len())]))).collect();
    means.sort_by(f64::total_cmp);
    let skipped = resamples / 40;
    Some(Resampled { mean: mean(&mut sums.iter().copied()), low: means[skipped - 1], high: means[resamples - skipped] })
}

#[cfg(test)]
mod tests {
    use super::super::clustered;
    use super::*;
    use proptest::prelude::*;

    fn of_counts(counts: &[(u64, u64)]) -> Vec<Vec<f64>> {
        let values = |(s, n): &(u64, u64)| (0..*n).map(|i| f64::from(u8::from(i < *s))).collect();
        counts.iter().map(values).collect()
    }

    #[test]
    fn its_width_is_that_of_the_clustered_standard_error_and_not_of_independent_units() {
        // Forty scenarios, all or nothing: ten repetitions say no more than one.
        let counts: Vec<(u64, u64)> = (0..40).map(|i| (if i % 4 == 0 { 0 } else { 10 }, 10)).collect();
        let found = cluster_bootstrap(&of_counts(&counts), 7).expect("clusters");
        let error = clustered(&counts).expect("clusters").standard_error;
        assert!((found.mean - 0.75).abs() < 1e-12);
        let half = (found.high - found.low) / 2.0;
        assert!((half / (1.96 * error) - 1.0).abs() < 0.12, "{found:?}, standard error {error}");
        let naive = 1.96 * (0.75_f64 * 0.25 / 400.0).sqrt();
        assert!(half > 2.5 * naive, "{half} {naive}");
    }

    #[test]
    fn equal_clusters_have_no_width_and_one_cluster_says_nothing() {
        let found = cluster_bootstrap(&[vec![0.5, 0.5], vec![0.5]], 1).expect("two clusters");
        assert!((found.high - found.low).abs() < 1e-12);
        assert_eq!(cluster_bootstrap(&[vec![0.5, 0.7], vec![]], 1), None);
        assert_eq!(cluster_bootstrap(&[vec![0.5], vec![f64::NAN]], 1), None);
    }

    #[test]
    fn the_interval_of_one_variant_against_itself_holds_zero_as_often_as_a_bootstrap_does() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let missed = (0..200).filter(|run| {
            let clusters: Vec<Vec<f64>> =
                (0..30).map(|_| (0..3).map(|_| rng.random::<f64>() - rng.random::<f64>()).collect()).collect();
            let found = resample(&clusters, *run, 400).expect("clusters");
            found.low > 0.0 || found.high < 0.0
        });
        // A little more than 5 % of 200: the percentile interval is known to be narrow in small samples.
        let missed = missed.count();
        assert!((3..=24).contains(&missed), "{missed} of 200");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn the_seed_alone_decides_and_the_interval_holds_the_mean(
            clusters in proptest::collection::vec(proptest::collection::vec(0.0..1.0_f64, 1..4), 5..12), seed: u64,
        ) {
            let found = resample(&clusters, seed, 400).expect("clusters");
            prop_assert_eq!(resample(&clusters, seed, 400), Some(found));
            prop_assert!(found.low <= found.mean + 1e-9 && found.mean <= found.high + 1e-9);
        }
    }
}

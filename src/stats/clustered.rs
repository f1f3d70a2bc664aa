//! Standard errors of a rate over units in clusters.

/// A rate over clusters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Clustered {
    /// Clusters with at least one unit.
    pub clusters: u64,
    /// Successes per unit, over all clusters.
    pub rate: f64,
    /// Cluster-robust standard error of the rate (CR1: CR0 of Miller 2024 with the factor G/(G-1)).
    pub standard_error: f64,
}

/// Clustered figures of `(successes, units)` for each cluster; `None` with fewer than two clusters that have units.
pub(crate) fn clustered(counts: &[(u64, u64)]) -> Option<Clustered> {
    let filled = || counts.iter().filter(|(_, n)| *n > 0);
    let clusters = filled().count() as u64;
    if clusters < 2 {
        return None;
    }
    let n: f64 = filled().map(|(_, n)| *n as f64).sum();
    let rate = filled().map(|(s, _)| *s as f64).sum::<f64>() / n;
    let squares: f64 = filled().map(|(s, units)| (*s as f64 - rate * *units as f64).powi(2)).sum();
    let groups = clusters as f64;
    let standard_error = squares.sqrt() / n * (groups / (groups - 1.0)).sqrt();
    Some(Clustered { clusters, rate, standard_error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn six_clusters_of_four_agree_with_statsmodels() {
        let found = clustered(&[(4, 4), (4, 4), (3, 4), (4, 4), (1, 4), (4, 4)]).expect("six clusters");
        assert_eq!(found.clusters, 6);
        assert!((found.standard_error - 0.123_603).abs() < 1e-6 && (found.rate - 0.8333).abs() < 5e-5, "{found:?}");
    }

    #[test]
    fn an_empty_cluster_does_not_count_and_one_cluster_says_nothing() {
        assert_eq!(clustered(&[(5, 5), (7, 7), (0, 0)]).expect("two").clusters, 2);
        assert_eq!(clustered(&[(3, 9)]), None);
    }

    #[test]
    fn the_published_airline_runs_are_half_as_sure_again_as_they_seem() {
        // Tasks with 0 to 4 successes of 4.
        let tasks = [14, 12, 10, 4, 10];
        let counts: Vec<(u64, u64)> = (0_u64..).zip(tasks).flat_map(|(c, n)| vec![(c, 4); n]).collect();
        let found = clustered(&counts).expect("fifty tasks");
        let naive = (0.42_f64 * 0.58 / 200.0).sqrt();
        assert!((found.rate - 0.42).abs() < 1e-12 && (naive - 0.0349).abs() < 5e-5);
        assert!((found.standard_error - 0.0522).abs() < 5e-5, "{found:?}");
        assert!((found.standard_error / naive - 1.50).abs() < 0.005);
    }

    proptest! {
        #[test]
        fn repeating_every_unit_within_its_cluster_changes_no_error(
            counts in proptest::collection::vec((0_u64..6, 0_u64..6), 2..12),
        ) {
            let counts: Vec<(u64, u64)> = counts.iter().map(|(s, f)| (*s, s + f + 1)).collect();
            let doubled: Vec<(u64, u64)> = counts.iter().map(|(s, n)| (2 * s, 2 * n)).collect();
            let (one, two) = (clustered(&counts).expect("some"), clustered(&doubled).expect("some"));
            prop_assert!((one.standard_error - two.standard_error).abs() < 1e-12);
        }
    }
}

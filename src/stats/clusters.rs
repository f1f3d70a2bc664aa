//! Counts of clusters by successes and size; order is not kept.

use std::collections::BTreeMap;

/// Clusters that have at least one unit, counted by `(successes, units)`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Clusters {
    counts: BTreeMap<(u64, u64), u64>,
}

impl Clusters {
    /// Adds one cluster of `n` units, `good` of them successes; an empty one is not counted.
    pub(crate) fn add(&mut self, good: u64, n: u64) {
        self.add_many(good, n, 1);
    }

    /// Adds `times` clusters alike.
    pub(crate) fn add_many(&mut self, good: u64, n: u64, times: u64) {
        if n > 0 && times > 0 {
            *self.counts.entry((good.min(n), n)).or_default() += times;
        }
    }

    /// Adds the clusters of another count.
    pub(crate) fn absorb(&mut self, other: &Self) {
        for ((good, n), times) in &other.counts {
            self.add_many(*good, *n, *times);
        }
    }

    /// The same clusters with successes and failures exchanged.
    #[must_use]
    pub(crate) fn mirrored(&self) -> Self {
        Self { counts: self.counts.iter().map(|((good, n), times)| ((n - good, *n), *times)).collect() }
    }

    /// The same sizes without a failure.
    #[must_use]
    pub(crate) fn without_failure(&self) -> Self {
        let mut all = Self::default();
        for ((_, n), times) in &self.counts {
            all.add_many(*n, *n, *times);
        }
        all
    }

    /// Successes, units and number of such clusters.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64, u64)> + Clone {
        self.counts.iter().map(|((good, n), times)| (*good, *n, *times))
    }

    pub(crate) fn number(&self) -> u64 {
        self.counts.values().sum()
    }

    pub(crate) fn units(&self) -> u64 {
        self.iter().map(|(_, n, times)| n * times).sum()
    }

    /// Successes of all clusters.
    pub(crate) fn good(&self) -> u64 {
        self.iter().map(|(good, _, times)| good * times).sum()
    }

    /// The sum of the clusters' own rates.
    pub(crate) fn shares(&self) -> f64 {
        self.iter().map(|(good, n, times)| good as f64 / n as f64 * times as f64).sum()
    }

    /// Units of the largest cluster; 0 without any.
    pub(crate) fn largest(&self) -> u64 {
        self.iter().map(|(_, n, _)| n).max().unwrap_or(0)
    }

    /// Whether no cluster has more than one unit.
    pub(crate) fn is_single(&self) -> bool {
        self.largest() <= 1
    }
}

impl FromIterator<(u64, u64)> for Clusters {
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(all: I) -> Self {
        let mut clusters = Self::default();
        for (good, n) in all {
            clusters.add(good, n);
        }
        clusters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_a_cluster_without_units_nor_none_of_a_kind_is_counted() {
        for (n, times) in [(0, 1), (1, 0)] {
            let mut clusters = Clusters::default();
            clusters.add_many(0, n, times);
            assert_eq!(clusters, Clusters::default(), "{n} {times}");
        }
    }
}

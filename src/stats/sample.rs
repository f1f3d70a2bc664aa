//! What a rate was seen in, and the bounds that this allows: clusters of units run again, or cases of equal weight
//! that stand for cases not seen yet.

use super::betting::{self, Bet};
use super::clusters::Clusters;
use super::population;
use super::rate::{lower_bound_at, units_to_pass, upper_bound_at};

/// How many times as many clusters [`Sample::more_to_pass`] looks ahead.
const FURTHEST: f64 = 1e6;

/// What a rate was seen in.
#[derive(Debug, Clone, PartialEq)]
pub enum Sample {
    /// These cases, run again: the rate per unit, the units of one cluster not being independent.
    Fixed(Clusters),
    /// Cases not seen yet: the mean rate of cases.
    Population {
        /// The sum of the cases' own rates.
        s: f64,
        /// How many cases.
        cases: u64,
    },
}

impl Sample {
    /// Cases of equal weight with successes and units each.
    pub fn population(cases: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let (mut s, mut number) = (0.0, 0);
        for (good, n) in cases.into_iter().filter(|(_, n)| *n > 0) {
            (s, number) = (s + good as f64 / n as f64, number + 1);
        }
        Self::Population { s, cases: number }
    }

    /// How many independent things were seen: what `min_n` counts.
    pub fn number(&self) -> u64 {
        match self {
            Self::Fixed(clusters) => clusters.number(),
            Self::Population { cases, .. } => *cases,
        }
    }

    /// One-sided lower bound at level `1 - alpha`: Clopper-Pearson where every cluster has one unit, the bet otherwise.
    pub fn lower_at(&self, alpha: f64) -> f64 {
        match self {
            Self::Fixed(clusters) if clusters.is_single() => {
                lower_bound_at(clusters.good() as f64, clusters.units() as f64, alpha)
            }
            Self::Fixed(clusters) => betting::lower_at(clusters, alpha),
            Self::Population { s, cases } => population::lower_at(*s, *cases, alpha),
        }
    }

    /// One-sided upper bound at level `1 - alpha`.
    pub fn upper_at(&self, alpha: f64) -> f64 {
        match self {
            Self::Fixed(clusters) if clusters.is_single() => {
                upper_bound_at(clusters.good() as f64, clusters.units() as f64, alpha)
            }
            Self::Fixed(clusters) => betting::upper_at(clusters, alpha),
            Self::Population { s, cases } => population::upper_at(*s, *cases, alpha),
        }
    }

    /// How many more clusters like these (or cases) without a failure would lift the lower bound to `target` and
    /// their number to `least`; `None` when no number does.
    pub fn more_to_pass(&self, target: f64, least: u64, alpha: f64) -> Option<u64> {
        let short = least.saturating_sub(self.number());
        match self {
            Self::Fixed(clusters) if clusters.is_single() => {
                units_to_pass(clusters.good(), clusters.units(), target, least)
            }
            Self::Fixed(clusters) => {
                let more = without_failure(clusters, clusters, target, alpha)?;
                Some(((more * clusters.number() as f64).ceil() as u64).max(short))
            }
            Self::Population { s, cases } => {
                let needed = population::cases_for(*cases as f64 - s, target)?;
                Some(needed.saturating_sub(*cases).max(short))
            }
        }
    }
}

impl Sample {
    /// How many more clusters like these, failures included (or cases at this mean rate), would lift the lower bound to
    /// `target` and their number to `least`; `None` when no number would, as the rate is no higher than the target.
    pub fn more_at_this_rate(&self, target: f64, least: u64, alpha: f64) -> Option<u64> {
        let seen = self.number();
        if seen == 0 {
            return None;
        }
        let reaches = |rate: f64, n: u64| match self {
            Self::Fixed(_) => lower_bound_at(rate * n as f64, n as f64, alpha) >= target,
            Self::Population { .. } => population::lower_at(rate * n as f64, n, alpha) >= target,
        };
        let needed = match self {
            _ if target <= 0.0 => Some(seen),
            Self::Fixed(clusters) if !clusters.is_single() => clusters_as_seen(clusters, target, alpha),
            Self::Fixed(clusters) => {
                let rate = clusters.good() as f64 / clusters.units() as f64;
                if rate > target { super::fewest(|n| reaches(rate, n)) } else { None }
            }
            Self::Population { s, cases } => {
                let rate = s / *cases as f64;
                if rate > target { super::fewest(|n| reaches(rate, n)) } else { None }
            }
        }?;
        Some(needed.max(least).saturating_sub(seen))
    }
}

/// How many times `sizes`, without a failure, must be added to what was seen for the lower bound to reach `target`.
fn without_failure(seen: &Clusters, sizes: &Clusters, target: f64, alpha: f64) -> Option<f64> {
    let perfect = sizes.without_failure();
    let holds = |times: f64| {
        let mut bet = Bet::on(seen);
        bet.add(&perfect, times);
        bet.reaches(target, alpha)
    };
    if target >= 1.0 || sizes.number() == 0 {
        return None;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while !holds(high) {
        (low, high) = (high, high * 2.0);
        if high > FURTHEST {
            return None;
        }
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

/// How many clusters, of sizes like these and without a failure, show a rate of at least `target`; `None` when no
/// number does.
pub fn clusters_for(sizes: &Clusters, target: f64, alpha: f64) -> Option<u64> {
    if sizes.is_single() {
        return units_to_pass(0, 0, target, 0);
    }
    let times = without_failure(&Clusters::default(), sizes, target, alpha)?;
    Some((times * sizes.number() as f64).ceil() as u64)
}

/// How many clusters like those that were seen, failures included, show a rate of at least `target`; `None` when no
/// number does, up to a thousand times as many.
pub fn clusters_as_seen(seen: &Clusters, target: f64, alpha: f64) -> Option<u64> {
    let holds = |times: f64| {
        let mut bet = Bet::default();
        bet.add(seen, times);
        bet.reaches(target, alpha)
    };
    let (mut low, mut high) = (0.0, 1.0);
    while !holds(high) {
        (low, high) = (high, high * 2.0);
        if high > 1_000.0 {
            return None;
        }
    }
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some((high * seen.number() as f64).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_unit_a_cluster_is_clopper_pearson() {
        let clusters: Clusters = std::iter::repeat_n((1, 1), 38).chain([(0, 1); 2]).collect();
        let sample = Sample::Fixed(clusters);
        assert!((sample.lower_at(0.05) - 0.850_848).abs() < 1e-6);
        assert_eq!((sample.number(), sample.more_to_pass(0.95, 0, 0.05)), (40, Some(84)));
    }

    #[test]
    fn two_hundred_of_two_hundred_over_five_cases_bound_no_more_than_five_cases_can() {
        let all = Sample::population([(40, 40); 5]);
        let less = Sample::population([(40, 40), (40, 40), (40, 40), (40, 40), (39, 40)]);
        assert!((all.lower_at(0.05) - 0.5493).abs() < 5e-5);
        assert!(less.lower_at(0.05) < all.lower_at(0.05), "a failure never helps");
        assert_eq!((all.number(), all.more_to_pass(0.95, 0, 0.05)), (5, Some(54)));
    }

    proptest! {
        #[test]
        fn what_is_said_to_be_missing_passes(
            counts in proptest::collection::vec((1_u64..5, 0_u64..2), 1..30), target in 0.5..0.97_f64,
        ) {
            let clusters: Clusters = counts.iter().map(|(good, bad)| (*good, good + bad)).collect();
            prop_assume!(!clusters.is_single());
            if let Some(times) = without_failure(&clusters, &clusters, target, 0.05) {
                let mut bet = Bet::on(&clusters);
                bet.add(&clusters.without_failure(), times);
                prop_assert!(bet.lower(0.05) >= target - 1e-9);
            }
        }
    }
}

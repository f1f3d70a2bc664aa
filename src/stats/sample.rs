//! The data behind a rate, and its bounds: units in clusters, of planned or observed sizes, or the mean of the rates of
//! conversations or cases.

use super::betting::{self, Bet, Stakes};
use super::clusters::Clusters;
use super::population;
use super::rate::{lower_bound_at, units_to_pass, upper_bound_at};

/// How many times as many clusters [`Sample::more_to_pass`] looks ahead.
const FURTHEST: f64 = 1e6;

/// The data behind a rate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sample {
    /// The rate per unit, with planned sizes of clusters; units of one cluster are not independent.
    Fixed(Clusters),
    /// The rate per unit, with sizes that are outcomes.
    Limited {
        /// The observed clusters.
        clusters: Clusters,
        /// Largest possible size of a cluster; without it nothing bounds the rate.
        most: Option<u64>,
    },
    /// The mean of the rates of conversations, or of cases.
    Means {
        /// The sum of these rates.
        s: f64,
        number: u64,
    },
}

/// Method of a bound: exact for independent units, a bet for clusters.
enum Bound<'c> {
    Exact(&'c Clusters),
    Bet(Stakes, &'c Clusters),
    Mean(f64, u64),
    None,
}

impl Sample {
    /// Conversations of equal weight, each with the share of its own units.
    pub(crate) fn conversations(clusters: &Clusters) -> Self {
        Self::Means { s: clusters.shares(), number: clusters.number() }
    }

    /// Cases of equal weight; the rate of each is the mean of its conversations' own.
    pub(crate) fn cases<'c>(cases: impl IntoIterator<Item = &'c Clusters>) -> Self {
        let (mut s, mut number) = (0.0, 0);
        for clusters in cases.into_iter().filter(|clusters| clusters.number() > 0) {
            (s, number) = (s + clusters.shares() / clusters.number() as f64, number + 1);
        }
        Self::Means { s, number }
    }

    /// Number of independent clusters, conversations or cases, as `min_n` counts them.
    pub(crate) fn number(&self) -> u64 {
        match self {
            Self::Fixed(clusters) | Self::Limited { clusters, .. } => clusters.number(),
            Self::Means { number, .. } => *number,
        }
    }

    /// The observed figure: the share of units, or the mean of the rates.
    pub(crate) fn figure(&self) -> f64 {
        match self {
            Self::Fixed(clusters) | Self::Limited { clusters, .. } => {
                clusters.good() as f64 / clusters.units().max(1) as f64
            }
            Self::Means { s, number } => s / (*number).max(1) as f64,
        }
    }

    fn bound(&self) -> Bound<'_> {
        match self {
            Self::Fixed(clusters) if clusters.is_single() => Bound::Exact(clusters),
            Self::Fixed(clusters) => Bound::Bet(Stakes::Planned, clusters),
            Self::Limited { clusters, most: Some(most) } if clusters.largest() <= *most => match most {
                0 | 1 => Bound::Exact(clusters),
                _ => Bound::Bet(Stakes::Limited(*most), clusters),
            },
            Self::Limited { .. } => Bound::None,
            Self::Means { s, number } => Bound::Mean(*s, *number),
        }
    }

    /// One-sided lower bound at level `1 - alpha`: Clopper-Pearson where every cluster has one unit, a bet where they have
    /// more, [`population`] for means.
    pub(crate) fn lower_at(&self, alpha: f64) -> f64 {
        match self.bound() {
            Bound::Exact(clusters) => lower_bound_at(clusters.good() as f64, clusters.units() as f64, alpha),
            Bound::Bet(stakes, clusters) => betting::lower_at(stakes, clusters, alpha),
            Bound::Mean(s, number) => population::lower_at(s, number, alpha),
            Bound::None => 0.0,
        }
    }

    /// One-sided upper bound at level `1 - alpha`.
    pub(crate) fn upper_at(&self, alpha: f64) -> f64 {
        match self.bound() {
            Bound::Exact(clusters) => upper_bound_at(clusters.good() as f64, clusters.units() as f64, alpha),
            Bound::Bet(stakes, clusters) => betting::upper_at(stakes, clusters, alpha),
            Bound::Mean(s, number) => population::upper_at(s, number, alpha),
            Bound::None => 1.0,
        }
    }

    /// How many more clusters like these (or rates of 1) without a failure would lift the lower bound to `target` and
    /// their number to `least`; `None` when no number does.
    pub(crate) fn more_to_pass(&self, target: f64, least: u64, alpha: f64) -> Option<u64> {
        let short = least.saturating_sub(self.number());
        match self.bound() {
            Bound::Exact(clusters) => units_to_pass(clusters.good(), clusters.units(), target, least),
            Bound::Bet(stakes, clusters) => {
                let more = without_failure(stakes, clusters, clusters, target, alpha)?;
                Some(((more * clusters.number() as f64).ceil() as u64).max(short))
            }
            Bound::Mean(s, number) => {
                let needed = population::cases_for(number as f64 - s, target)?;
                Some(needed.saturating_sub(number).max(short))
            }
            Bound::None => None,
        }
    }
}

impl Sample {
    /// How many more clusters like these, failures included (or cases at this mean rate), would lift the lower bound to
    /// `target` and their number to `least`; `None` when no number would, as the rate is no higher than the target.
    pub(crate) fn more_at_this_rate(&self, target: f64, least: u64, alpha: f64) -> Option<u64> {
        let seen = self.number();
        if seen == 0 {
            return None;
        }
        if target <= 0.0 {
            return Some(least.saturating_sub(seen));
        }
        let rate = self.figure();
        let at_rate = |lower: &dyn Fn(f64, f64) -> f64| {
            let reaches = |n: u64| lower(rate * n as f64, n as f64) >= target;
            if rate > target { super::fewest(reaches) } else { None }
        };
        let needed = match self.bound() {
            Bound::Exact(_) => at_rate(&|good, n| lower_bound_at(good, n, alpha)),
            Bound::Mean(..) => at_rate(&|sum, n| population::lower_at(sum, n as u64, alpha)),
            Bound::Bet(stakes, clusters) => as_seen(stakes, clusters, target, alpha),
            Bound::None => None,
        }?;
        Some(needed.max(least).saturating_sub(seen))
    }
}

/// How many times `sizes`, without a failure, must be added for the lower bound to reach `target`.
fn without_failure(stakes: Stakes, seen: &Clusters, sizes: &Clusters, target: f64, alpha: f64) -> Option<f64> {
    let perfect = sizes.without_failure();
    let holds = |times: f64| {
        let mut bet = Bet::on(stakes, seen);
        bet.add(&perfect, times);
        bet.reaches(target, alpha)
    };
    if target >= 1.0 || sizes.number() == 0 { None } else { fewest_times(holds, FURTHEST) }
}

/// Smallest number, up to a limit, for which it holds.
fn fewest_times(holds: impl Fn(f64) -> bool, furthest: f64) -> Option<f64> {
    let (mut low, mut high) = (0.0, 1.0);
    while !holds(high) {
        (low, high) = (high, high * 2.0);
        if high > furthest {
            return None;
        }
    }
    // To a millionth of a suite.
    for _ in 0..40 {
        if high - low < 1e-6 {
            break;
        }
        let middle = f64::midpoint(low, high);
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

/// How many clusters, of sizes like these and without a failure, show a rate per unit of at least `target`; `None` when
/// no number does.
pub(crate) fn clusters_for(sizes: &Clusters, target: f64, alpha: f64) -> Option<u64> {
    if sizes.is_single() {
        return units_to_pass(0, 0, target, 0);
    }
    let times = without_failure(Stakes::Planned, &Clusters::default(), sizes, target, alpha)?;
    Some((times * sizes.number() as f64).ceil() as u64)
}

/// How many clusters like those that were seen, failures included, show a rate per unit of at least `target`; `None`
/// when no number does, up to a thousand times as many.
pub(crate) fn clusters_as_seen(seen: &Clusters, target: f64, alpha: f64) -> Option<u64> {
    as_seen(Stakes::Planned, seen, target, alpha)
}

/// The same by the bet with these stakes.
fn as_seen(stakes: Stakes, seen: &Clusters, target: f64, alpha: f64) -> Option<u64> {
    let holds = |times: f64| {
        let mut bet = Bet::new(stakes);
        bet.add(seen, times);
        bet.reaches(target, alpha)
    };
    let times = fewest_times(holds, 1_000.0)?;
    Some((times * seen.number() as f64).ceil() as u64)
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
        let case = |good: u64| -> Clusters { (0..40).map(|trial| (u64::from(trial < good), 1)).collect() };
        let all = Sample::cases(&[40; 5].map(case));
        let less = Sample::cases(&[40, 40, 40, 40, 39].map(case));
        assert!((all.lower_at(0.05) - 0.5493).abs() < 5e-5);
        assert!(less.lower_at(0.05) < all.lower_at(0.05), "a failure never helps");
        assert_eq!((all.number(), all.more_to_pass(0.95, 0, 0.05)), (5, Some(54)));
    }

    #[test]
    fn conversations_agree_with_the_vectors_whatever_their_sizes() {
        let rows = [
            (60, 60.0, 0.95130),
            (61, 61.0, 0.95208),
            (60, 59.5, 0.93876),
            (60, 59.0, 0.92336),
            (60, 57.25, 0.88210),
            (120, 118.75, 0.95829),
            (377, 377.0, 0.99209),
            (377, 374.5, 0.98160),
            (98, 98.0, 0.96989),
            (30, 27.5, 0.78438),
        ];
        for (number, s, expected) in rows {
            let found = Sample::Means { s, number }.lower_at(0.05);
            assert!((found - expected).abs() < 5.1e-6, "{number} {s}: {found}");
        }
        let clusters: Clusters = std::iter::repeat_n((1, 1), 59).chain([(6, 12)]).collect();
        let mean = Sample::conversations(&clusters);
        assert!((mean.lower_at(0.05) - 0.93876).abs() < 5.1e-6 && (mean.figure() - 59.5 / 60.0).abs() < 1e-12);
    }

    #[test]
    fn so_many_more_at_this_rate_reach_the_target_and_one_fewer_does_not() {
        let clusters: Clusters = std::iter::repeat_n((1, 1), 38).chain([(0, 1); 2]).collect();
        let (units, means) = (Sample::Fixed(clusters), Sample::Means { s: 38.0, number: 40 });
        let of_units = |n: u64| lower_bound_at(0.95 * n as f64, n as f64, 0.05);
        let of_means = |n: u64| population::lower_at(0.95 * n as f64, n, 0.05);
        for (sample, bound) in [(&units, &of_units as &dyn Fn(u64) -> f64), (&means, &of_means)] {
            let all = 40 + sample.more_at_this_rate(0.9, 0, 0.05).expect("a number");
            assert!(all > 40 && bound(all) >= 0.9 && bound(all - 1) < 0.9, "{all}");
            assert_eq!(sample.more_at_this_rate(0.9, 10_000, 0.05), Some(9_960), "no fewer than are required");
            assert_eq!(sample.more_at_this_rate(0.95, 0, 0.05), None, "the rate is no higher");
        }
    }

    #[test]
    fn without_a_known_maximum_nothing_bounds_a_rate_per_unit_and_a_larger_cluster_than_it_breaks_it() {
        let clusters: Clusters = std::iter::repeat_n((1, 1), 300).chain([(3, 3)]).collect();
        let of = |most| Sample::Limited { clusters: clusters.clone(), most };
        let bounds =
            |sample: &Sample| (sample.lower_at(0.05), sample.upper_at(0.05), sample.more_to_pass(0.9, 0, 0.05));
        assert_eq!(bounds(&of(None)), (0.0, 1.0, None));
        assert_eq!(bounds(&of(Some(2))), (0.0, 1.0, None));
        let (three, eight) = (of(Some(3)).lower_at(0.05), of(Some(8)).lower_at(0.05));
        assert!(eight > 0.9 && three > eight, "{three} {eight}");
    }

    #[test]
    fn one_more_perfect_conversation_takes_no_more_than_it_must() {
        let sixty: Clusters = std::iter::repeat_n((1, 1), 60).collect();
        let mut longer = sixty.clone();
        longer.add(12, 12);
        assert!(Sample::Fixed(longer.clone()).lower_at(0.05) > 0.827, "0.630 before, and 0.84 is possible");
        assert!(Sample::conversations(&longer).lower_at(0.05) > Sample::conversations(&sixty).lower_at(0.05));
    }

    proptest! {
        #[test]
        fn one_more_perfect_conversation_never_lowers_a_bound_per_conversation(
            counts in proptest::collection::vec((0_u64..9, 0_u64..3), 1..60), n in 1_u64..20,
        ) {
            let mut clusters: Clusters = counts.iter().map(|(good, bad)| (*good, good + bad)).collect();
            let before = Sample::conversations(&clusters);
            clusters.add(n, n);
            let after = Sample::conversations(&clusters);
            for alpha in [0.05, 0.05 / 60.0] {
                prop_assert!(after.lower_at(alpha) >= before.lower_at(alpha) - 1e-9);
                prop_assert!(after.upper_at(alpha) >= before.upper_at(alpha) - 1e-9);
            }
        }

        #[test]
        fn what_is_said_to_be_missing_passes(
            counts in proptest::collection::vec((1_u64..5, 0_u64..2), 1..30), target in 0.5..0.97_f64,
        ) {
            let clusters: Clusters = counts.iter().map(|(good, bad)| (*good, good + bad)).collect();
            prop_assume!(!clusters.is_single());
            if let Some(times) = without_failure(Stakes::Planned, &clusters, &clusters, target, 0.05) {
                let mut bet = Bet::on(Stakes::Planned, &clusters);
                bet.add(&clusters.without_failure(), times);
                prop_assert!(bet.lower(0.05) >= target - 1e-8);
            }
        }
    }
}

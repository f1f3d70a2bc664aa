//! Bounds on a rate over clusters of units, by bets with fixed stakes against the claim that the rate is at most `p`.
//!
//! [`Stakes`] selects the claim and the bets. The evidence `e(p)` of a bet is the mean, over the stakes `θ`, of a
//! product over the clusters. If the claim is true, the expectation of this product is at most 1, so `e(p) >= 1/α` has
//! probability at most `α`. The lower bound is the smallest `p` with `e(p) < 1/α`. The evidence of complete passes
//! over a suite is multiplied, so the bound holds at any stopping pass (Ville 1939). It grows with every success and does not
//! depend on the order.
//!
//! - *Stakes on the largest cluster.* A cluster of `n` units with `S` successes pays `1 + λ(S - p n)`, with
//!   `λ = θ / (p max n)`. Where the expected gains `μ` of the clusters sum up to 0 or less, `Π(1 + λμ) <= exp(λ Σμ) <= 1`,
//!   for independent clusters of any sizes and rates, and with any dependence between the units of one. `max n` must be
//!   known beforehand: planned, or a limit.
//! - *Least-favourable stakes*, for planned sizes: see [`super::least_favourable`]. One long cluster costs them little.

use super::clusters::Clusters;
use super::least_favourable::{ln_gain, ln_least_gain, water_level};

/// Stakes `θ`, equally weighted: `1 - 2^-j` for j = 1 to 11, and three more.
const STAKES: [f64; 14] = [
    0.5, 0.75, 0.875, 0.937_5, 0.968_75, 0.984_375, 0.992_187_5, 0.996_093_75, 0.998_046_875, 0.999_023_437_5,
    0.999_511_718_75, 0.1, 0.25, 1.0,
];

/// Width to which the first crossing is located if evidence is not monotone.
const WIDTH: f64 = 1e-10;

/// The claim of a bet, and what is known in advance about the sizes of clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stakes {
    /// The rate per unit, with planned sizes: half the money on least-favourable stakes, half on the largest cluster.
    Planned,
    /// The rate per unit, with sizes that are outcomes: the stake is on the most units that a cluster can have.
    Limited(u64),
    /// The mean of the clusters' own rates, whatever their sizes.
    Means,
}

/// One kind of cluster: successes, units, number of such clusters.
pub(super) type Kind = (f64, f64, f64);

/// The clusters of one pass, by size.
#[derive(Debug, Clone)]
struct Pass {
    /// The largest cluster in this pass and earlier ones, in units.
    largest: f64,
    kinds: Vec<Kind>,
}

/// The clusters of complete passes over a suite, in order; a single pass if a run is evaluated only at its end.
#[derive(Debug, Clone)]
pub(crate) struct Bet {
    stakes: Stakes,
    passes: Vec<Pass>,
}

impl Bet {
    /// A bet without clusters.
    pub(crate) fn new(stakes: Stakes) -> Self {
        Self { stakes, passes: Vec::new() }
    }

    /// A bet on the clusters of one pass.
    pub(crate) fn on(stakes: Stakes, clusters: &Clusters) -> Self {
        Self::over(stakes, [clusters])
    }

    /// A bet on several passes.
    pub(crate) fn over<'c>(stakes: Stakes, passes: impl IntoIterator<Item = &'c Clusters>) -> Self {
        let mut bet = Self::new(stakes);
        for pass in passes {
            bet.add(pass, 1.0);
        }
        bet
    }

    /// Adds a pass whose clusters count `times` times.
    pub(crate) fn add(&mut self, clusters: &Clusters, times: f64) {
        let means = self.stakes == Stakes::Means;
        let kind = |(good, n, number): (u64, u64, u64)| {
            let (good, n, number) = (good as f64, n as f64, number as f64 * times);
            if means { (good / n, 1.0, number) } else { (good, n, number) }
        };
        let mut kinds: Vec<Kind> = clusters.iter().map(kind).collect();
        kinds.sort_by(|left, right| left.1.total_cmp(&right.1));
        let before = self.passes.last().map_or(0.0, |pass| pass.largest);
        let largest = match self.stakes {
            Stakes::Planned => before.max(clusters.largest() as f64),
            Stakes::Limited(most) => most.max(1) as f64,
            Stakes::Means => 1.0,
        };
        if !kinds.is_empty() {
            self.passes.push(Pass { largest, kinds });
        }
    }

    /// `ln e(p)`, the evidence that the rate is above `p`, for `0 < p <= 1`.
    pub(crate) fn ln_evidence(&self, p: f64) -> f64 {
        self.ln_least(p, p)
    }

    /// A lower bound on `ln e` between `low` and `high`, and `ln e` itself if they are equal.
    fn ln_least(&self, low: f64, high: f64) -> f64 {
        let mut logs = [f64::NEG_INFINITY; 2 * STAKES.len()];
        let (first, second) = logs.split_at_mut(STAKES.len());
        for (log, stake) in first.iter_mut().zip(STAKES) {
            let gain = |pass: &Pass, (good, n, number): &Kind| {
                number * (stake / pass.largest * (good / high - n)).max(-1.0).ln_1p()
            };
            *log = self.passes.iter().map(|pass| pass.kinds.iter().map(|kind| gain(pass, kind)).sum::<f64>()).sum();
        }
        if self.stakes != Stakes::Planned {
            return ln_mean(first);
        }
        let levels = |pass: &Pass| (water_level(&pass.kinds, low), water_level(&pass.kinds, high));
        let levels: Vec<(f64, f64)> = self.passes.iter().map(levels).collect();
        for (log, stake) in second.iter_mut().zip(STAKES) {
            let of = |(pass, (from, to)): (&Pass, &(f64, f64))| -> f64 {
                let gain = |kind: &Kind| {
                    if from < to { ln_least_gain(*kind, stake, *from, *to) } else { ln_gain(*kind, stake, *to) }
                };
                pass.kinds.iter().map(gain).sum()
            };
            *log = self.passes.iter().zip(&levels).map(of).sum();
        }
        ln_mean(&logs)
    }

    /// Whether the lower bound at level `1 - alpha` reaches `p`.
    pub(crate) fn reaches(&self, p: f64, alpha: f64) -> bool {
        if p <= 0.0 {
            return true;
        }
        p <= 1.0
            && self.ln_evidence(p) >= -alpha.ln()
            && (self.stakes != Stakes::Planned || self.lower(alpha) >= p - 10.0 * WIDTH)
    }

    /// The lower bound at level `1 - alpha`: the smallest rate that the evidence does not reject; 0 without a
    /// success. With planned sizes evidence may be non-monotone, so the search starts at 0.
    pub(crate) fn lower(&self, alpha: f64) -> f64 {
        let (mut low, mut width, needed) = (0.0_f64, 0.5_f64, -alpha.ln());
        while low < 1.0 && width > WIDTH {
            let high = (low + width).min(1.0);
            if self.ln_least(low, high) >= needed {
                (low, width) = (high, width * 2.0);
            } else {
                width /= 2.0;
            }
        }
        low
    }
}

/// The logarithm of the mean of numbers given by their logarithms.
fn ln_mean(logs: &[f64]) -> f64 {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most.is_infinite() {
        return most;
    }
    let sum: f64 = logs.iter().map(|log| (log - most).exp()).sum();
    most + (sum / logs.len() as f64).ln()
}

/// One-sided lower bound at level `1 - alpha`.
pub(crate) fn lower_at(stakes: Stakes, clusters: &Clusters, alpha: f64) -> f64 {
    Bet::on(stakes, clusters).lower(alpha)
}

/// One-sided upper bound at level `1 - alpha`: 1 less the lower bound on failures.
pub(crate) fn upper_at(stakes: Stakes, clusters: &Clusters, alpha: f64) -> f64 {
    1.0 - lower_at(stakes, &clusters.mirrored(), alpha)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Stakes; 3] = [Stakes::Planned, Stakes::Limited(11), Stakes::Means];

    /// So many clusters of each size, all held.
    fn held(sizes: &[(u64, u64)]) -> Clusters {
        let mut clusters = Clusters::default();
        for (number, n) in sizes {
            clusters.add_many(*n, *n, *number);
        }
        clusters
    }

    /// Clusters of the shipped suite's sizes, so many failures spread from the shortest to the longest.
    fn suite(failures: u64) -> Clusters {
        let sizes = [(1_u64, 165), (2, 83), (3, 23), (4, 12)];
        let mut counts: Vec<(u64, u64)> =
            sizes.into_iter().flat_map(|(n, number)| std::iter::repeat_n((n, n), number)).collect();
        for failure in 0..failures {
            counts[(282 * failure / (failures - 1)) as usize].0 -= 1;
        }
        counts.into_iter().collect()
    }

    #[test]
    fn the_bet_on_planned_sizes_agrees_with_the_vectors() {
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1.01e-5, "{found} {expected}");
        let perfect = [
            (held(&[(60, 1)]), 0.94607),
            (held(&[(60, 1), (1, 2)]), 0.93414),
            (held(&[(60, 1), (1, 12)]), 0.82768),
            (held(&[(300, 1), (1, 20)]), 0.93783),
            (held(&[(54, 1), (9, 2), (2, 5), (2, 8)]), 0.83523),
        ];
        for (clusters, expected) in perfect {
            near(lower_at(Stakes::Planned, &clusters, 0.05), expected);
        }
        assert_eq!((suite(0).units(), suite(0).number()), (448, 283));
        let rows = [(0, 0.97289), (2, 0.96815), (4, 0.96277), (8, 0.95165), (12, 0.94039), (20, 0.91729)];
        for (failures, expected) in rows {
            near(lower_at(Stakes::Planned, &suite(failures), 0.05), expected);
        }
    }

    #[test]
    fn the_stake_on_the_largest_number_agrees_with_the_vectors() {
        // Sizes 165 x 1, 83 x 2, 23 x 3, 12 x 4, each failure in a conversation of one.
        let alone = |failures: u64| {
            let mut clusters = held(&[(165 - failures, 1), (83, 2), (23, 3), (12, 4)]);
            clusters.add_many(0, 1, failures);
            lower_at(Stakes::Limited(4), &clusters, 0.05)
        };
        let rows = [(0, 0.97093), (2, 0.96591), (4, 0.96089), (8, 0.95083), (12, 0.94074), (20, 0.92050)];
        for (failures, expected) in rows {
            assert!((alone(failures) - expected).abs() < 5.1e-6, "{failures} failures: {}", alone(failures));
        }
        // "About 240 clean ones are needed against 90 %", one unit each of at most eight.
        let needed = (1..400).find(|n| Bet::on(Stakes::Limited(8), &held(&[(*n, 1)])).reaches(0.90, 0.05));
        assert!(needed.is_some_and(|n| (225..=255).contains(&n)), "{needed:?}");
    }

    #[test]
    fn the_bet_on_means_agrees_with_the_vectors_and_counts_a_conversation_once() {
        let of = |counts: &[(u64, u64, u64)]| {
            let mut clusters = Clusters::default();
            for (good, n, times) in counts {
                clusters.add_many(*good, *n, *times);
            }
            lower_at(Stakes::Means, &clusters, 0.05)
        };
        for (found, expected) in [
            (of(&[(1, 1, 60)]), 0.94607),
            (of(&[(1, 1, 120)]), 0.97265),
            (of(&[(1, 1, 59), (1, 2, 1)]), 0.93535),
            (of(&[(1, 1, 30), (12, 12, 30)]), 0.94607),
        ] {
            assert!((found - expected).abs() < 5.1e-6, "{found} {expected}");
        }
    }

    #[test]
    fn nothing_seen_bounds_nothing_and_both_ends_mirror_each_other() {
        for stakes in ALL {
            let nothing = Clusters::default();
            assert_eq!((lower_at(stakes, &nothing, 0.05), upper_at(stakes, &nothing, 0.05)), (0.0, 1.0));
            let none: Clusters = [(0, 3), (0, 2)].into_iter().collect();
            assert!(lower_at(stakes, &none, 0.05) <= 0.0);
            let some: Clusters = [(3, 3), (2, 2), (1, 4)].into_iter().collect();
            assert!((upper_at(stakes, &some, 0.05) - (1.0 - lower_at(stakes, &some.mirrored(), 0.05))).abs() < 1e-12);
        }
    }

    #[test]
    fn passes_of_equal_sizes_give_the_figure_of_the_whole() {
        let pass: Clusters = [(3, 3), (1, 1), (1, 2)].into_iter().collect();
        let mut all = Clusters::default();
        (0..7).for_each(|_| all.absorb(&pass));
        for stakes in ALL {
            let by_pass = Bet::over(stakes, [&pass; 7]).lower(0.05);
            assert!((by_pass - lower_at(stakes, &all, 0.05)).abs() < 1e-8, "{by_pass}");
        }
    }

    fn clusters() -> impl Strategy<Value = Vec<(u64, u64)>> {
        proptest::collection::vec((0_u64..6, 0_u64..6).prop_map(|(good, bad)| (good, good + bad + 1)), 1..40)
    }

    proptest! {
        #[test]
        fn a_success_instead_of_a_failure_never_lowers_a_bound(mut counts in clusters(), at in 0_usize..40) {
            let before: Clusters = counts.iter().copied().collect();
            let place = at % counts.len();
            counts[place].0 = (counts[place].0 + 1).min(counts[place].1);
            let after: Clusters = counts.into_iter().collect();
            for stakes in ALL {
                prop_assert!(lower_at(stakes, &after, 0.05) >= lower_at(stakes, &before, 0.05) - 1e-8);
                prop_assert!(upper_at(stakes, &after, 0.05) >= upper_at(stakes, &before, 0.05) - 1e-8);
            }
        }

        #[test]
        fn bounds_enclose_the_figure(counts in clusters()) {
            let all: Clusters = counts.into_iter().collect();
            let unit = all.good() as f64 / all.units() as f64;
            for (stakes, figure) in ALL.into_iter().zip([unit, unit, all.shares() / all.number() as f64]) {
                let (low, high) = (lower_at(stakes, &all, 0.05), upper_at(stakes, &all, 0.05));
                prop_assert!(low <= figure + 1e-8 && figure <= high + 1e-8, "{low} {figure} {high}");
            }
        }

        #[test]
        fn no_rate_below_the_bound_is_left_by_the_evidence(counts in clusters(), share in 0.01..1.0_f64) {
            // The first crossing from below: a bound above the true rate means that the evidence against it sufficed.
            let bet = Bet::on(Stakes::Planned, &counts.into_iter().collect());
            let lower = bet.lower(0.05);
            prop_assert!(lower <= 0.0 || bet.ln_evidence(lower * share) >= 20.0_f64.ln() - 1e-9);
            prop_assert!(bet.ln_evidence((lower + 1e-6).min(1.0)) < 20.0_f64.ln() + 1e-3);
        }
    }
}

//! Bounds on the rate of units that come in clusters of unequal sizes and rates, by a bet with fixed stakes.
//!
//! Against the claim that the rate is `p`, a cluster of `n` units with `S` successes pays `1 + λ(S - p n)`, with
//! `λ = θ / (p max n)`; `e(p)` is the mean, over the stakes `θ`, of the product over all clusters. Where the true rate
//! over all units is at most `p`, the expected gains `μ` of the clusters sum up to 0 or less, and
//! `Π(1 + λμ) <= exp(λ Σμ) <= 1`: `e(p) >= 1/α` happens with probability `α` at most, for independent clusters of any
//! sizes and rates, and with any dependence between the units of one. The lower bound is the largest `p` with
//! `e(p) >= 1/α`; it grows with every success. Complete passes over a suite multiply, so the bound holds at whatever
//! pass one stops (Ville 1939); `max n` is then that of the passes so far.

use super::clusters::Clusters;

/// Stakes `θ`, equally weighted: `1 - 2^-j` for j = 1 to 11, and three more.
const STAKES: [f64; 14] = [
    0.5,
    0.75,
    0.875,
    0.937_5,
    0.968_75,
    0.984_375,
    0.992_187_5,
    0.996_093_75,
    0.998_046_875,
    0.999_023_437_5,
    0.999_511_718_75,
    0.1,
    0.25,
    1.0,
];

/// Clusters of one pass, each kind with how often it counts.
#[derive(Debug, Clone)]
struct Stretch {
    largest: f64,
    /// Successes, units, number of clusters.
    kinds: Vec<(f64, f64, f64)>,
}

/// The clusters of complete passes over a suite, in their order; one pass where a run does not look before its end.
#[derive(Debug, Clone, Default)]
pub struct Bet {
    stretches: Vec<Stretch>,
    largest: u64,
}

impl Bet {
    /// A bet on the clusters of one pass.
    pub fn on(clusters: &Clusters) -> Self {
        let mut bet = Self::default();
        bet.add(clusters, 1.0);
        bet
    }

    /// A bet on several passes.
    pub fn over<'c>(passes: impl IntoIterator<Item = &'c Clusters>) -> Self {
        let mut bet = Self::default();
        for pass in passes {
            bet.add(pass, 1.0);
        }
        bet
    }

    /// Adds a pass whose clusters count `times` times.
    pub fn add(&mut self, clusters: &Clusters, times: f64) {
        self.largest = self.largest.max(clusters.largest());
        let kinds: Vec<_> =
            clusters.iter().map(|(good, n, number)| (good as f64, n as f64, number as f64 * times)).collect();
        match self.stretches.last_mut().filter(|last| last.largest >= self.largest as f64) {
            Some(last) => last.kinds.extend(kinds),
            None => self.stretches.push(Stretch { largest: self.largest as f64, kinds }),
        }
    }

    /// `ln e(p)`, the evidence that the rate is above `p`, for `0 < p <= 1`.
    pub fn ln_evidence(&self, p: f64) -> f64 {
        let logs = STAKES.map(|stake| {
            let of = |stretch: &Stretch| -> f64 {
                let gain = |(good, n, number): &(f64, f64, f64)| {
                    number * (stake / stretch.largest * (good / p - n)).max(-1.0).ln_1p()
                };
                stretch.kinds.iter().map(gain).sum()
            };
            self.stretches.iter().map(of).sum::<f64>()
        });
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if most.is_infinite() {
            return most;
        }
        let sum: f64 = logs.iter().map(|log| (log - most).exp()).sum();
        most + (sum / STAKES.len() as f64).ln()
    }

    /// Whether the lower bound at level `1 - alpha` reaches `p`.
    pub fn reaches(&self, p: f64, alpha: f64) -> bool {
        p <= 0.0 || (p <= 1.0 && self.ln_evidence(p) >= -alpha.ln())
    }

    /// The lower bound at level `1 - alpha`; 0 without a success.
    pub fn lower(&self, alpha: f64) -> f64 {
        let (mut low, mut high) = (0.0_f64, 1.0_f64);
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if middle <= low || middle >= high {
                break;
            }
            if self.reaches(middle, alpha) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// One-sided lower bound at level `1 - alpha` on the rate per unit.
pub fn lower_at(clusters: &Clusters, alpha: f64) -> f64 {
    Bet::on(clusters).lower(alpha)
}

/// One-sided upper bound at level `1 - alpha` on the rate per unit: 1 less the lower bound on failures.
pub fn upper_at(clusters: &Clusters, alpha: f64) -> f64 {
    1.0 - lower_at(&clusters.mirrored(), alpha)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Clusters of the shipped suite's sizes, so many of those of one unit without a success.
    fn suite(failures: u64) -> Clusters {
        let mut clusters = Clusters::default();
        clusters.add_many(0, 1, failures);
        clusters.add_many(1, 1, 165 - failures);
        for (n, number) in [(2, 83), (3, 23), (4, 12)] {
            clusters.add_many(n, n, number);
        }
        clusters
    }

    #[test]
    fn the_bet_agrees_with_the_vectors() {
        assert_eq!((suite(0).units(), suite(0).number()), (448, 283));
        let rows = [(0, 0.97093), (2, 0.96591), (4, 0.96089), (8, 0.95083), (12, 0.94074), (20, 0.92050)];
        for (failures, expected) in rows {
            let found = lower_at(&suite(failures), 0.05);
            assert!((found - expected).abs() < 5.1e-6, "{failures} failures: {found}");
        }
    }

    #[test]
    fn nothing_seen_bounds_nothing_and_both_ends_mirror_each_other() {
        assert_eq!((lower_at(&Clusters::default(), 0.05), upper_at(&Clusters::default(), 0.05)), (0.0, 1.0));
        let none: Clusters = [(0, 3), (0, 2)].into_iter().collect();
        assert!(lower_at(&none, 0.05) <= 0.0);
        let some: Clusters = [(3, 3), (2, 2), (1, 4)].into_iter().collect();
        assert!((upper_at(&some, 0.05) - (1.0 - lower_at(&some.mirrored(), 0.05))).abs() < 1e-12);
    }

    #[test]
    fn passes_of_equal_sizes_give_the_figure_of_the_whole() {
        let pass: Clusters = [(3, 3), (1, 1), (1, 2)].into_iter().collect();
        let mut all = Clusters::default();
        (0..7).for_each(|_| all.absorb(&pass));
        let by_pass = Bet::over([&pass; 7]).lower(0.05);
        assert!((by_pass - lower_at(&all, 0.05)).abs() < 1e-9, "{by_pass}");
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
            prop_assert!(lower_at(&after, 0.05) >= lower_at(&before, 0.05) - 1e-12);
            prop_assert!(upper_at(&after, 0.05) >= upper_at(&before, 0.05) - 1e-12);
        }

        #[test]
        fn bounds_enclose_the_rate(counts in clusters()) {
            let all: Clusters = counts.into_iter().collect();
            let rate = all.good() as f64 / all.units() as f64;
            prop_assert!(lower_at(&all, 0.05) <= rate + 1e-12 && rate <= upper_at(&all, 0.05) + 1e-12);
        }
    }
}

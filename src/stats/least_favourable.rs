//! Least-favourable stakes of a bet on clusters of planned sizes (see [`super::betting`]).
//!
//! The claim is `Σ w_i μ_i <= p`, where `w_i` is the share of cluster `i` in all planned units and `μ_i` is the mean of
//! `x_i`, the share of its units that hold. The least favourable means are `μ*_i = min(1, c / w_i)`, where `c` solves
//! `Σ w_i μ*_i = p`: small clusters always hold, and the others fail as much as the claim permits. A cluster pays
//! `1 - λ_i + λ_i x_i / μ*_i`, with `λ_i = θ` where `μ*_i < 1` and `λ_i = θ w_i / c` where it is 1. The sum of the logarithms of
//! these payments at `x = μ` is concave in `μ`, and `μ*` is its maximum under the constraint; so the product's mean is at
//! most 1 for every behaviour that the claim allows, whatever the dependence between the units of a cluster.
//!
//! The code uses numbers of units as weights: `C = c N` is the water level over columns of heights `n_i`.

use super::betting::Kind;

/// The level `C` with `Σ min(n_i, C) = p Σ n_i`; `kinds` are sorted by size, and not empty.
pub(super) fn water_level(kinds: &[Kind], p: f64) -> f64 {
    let units: f64 = kinds.iter().map(|(_, n, number)| n * number).sum();
    let mut above: f64 = kinds.iter().map(|(_, _, number)| number).sum();
    let (mut covered, mut level) = (0.0, 0.0);
    for (_, n, number) in kinds {
        level = (p * units - covered) / above;
        if level <= *n {
            return level;
        }
        covered += n * number;
        above -= number;
        level = *n;
    }
    level
}

/// Logarithm of the payment of clusters of one kind, at a level and stake.
pub(super) fn ln_gain((good, n, number): Kind, stake: f64, level: f64) -> f64 {
    let gain = if n > level { stake * (good / level - 1.0) } else { -stake * (n - good) / level };
    number * gain.max(-1.0).ln_1p()
}

/// The least of [`ln_gain`] over the levels between `low` and `high`: it falls up to the level `n` and rises after it.
pub(super) fn ln_least_gain(kind: Kind, stake: f64, low: f64, high: f64) -> f64 {
    ln_gain(kind, stake, kind.1.clamp(low, high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_level_covers_the_claimed_share_of_all_units() {
        let kinds = [(0.0, 1.0, 60.0), (0.0, 2.0, 3.0), (0.0, 12.0, 1.0)];
        for p in [0.001, 0.5, 0.8, 0.9, 0.95, 1.0] {
            let level = water_level(&kinds, p);
            let covered: f64 = kinds.iter().map(|(_, n, number)| n.min(level) * number).sum();
            assert!((covered - p * 78.0).abs() < 1e-9, "{p}: {level}");
        }
    }

    /// The mean of the product over the clusters, of rates `means` all-or-nothing in each, by enumeration.
    fn mean_of_product(sizes: &[f64], means: &[f64], p: f64, stake: f64) -> f64 {
        let mut kinds: Vec<Kind> = sizes.iter().map(|n| (0.0, *n, 1.0)).collect();
        kinds.sort_by(|left, right| left.1.total_cmp(&right.1));
        let level = water_level(&kinds, p);
        sizes
            .iter()
            .zip(means)
            .map(|(n, mean)| {
                let pays = |good: f64| ln_gain((good, *n, 1.0), stake, level).exp();
                mean * pays(*n) + (1.0 - mean) * pays(0.0)
            })
            .product()
    }

    proptest! {
        #[test]
        fn no_behaviour_that_the_claim_allows_wins_on_average(
            sizes in proptest::collection::vec(1_u32..20, 1..12), draws in proptest::collection::vec(0.0..1.0_f64, 12),
            stake in 0.1..=1.0_f64,
        ) {
            let sizes: Vec<f64> = sizes.into_iter().map(f64::from).collect();
            let units: f64 = sizes.iter().sum();
            let p = sizes.iter().zip(&draws).map(|(n, mean)| n * mean).sum::<f64>() / units;
            prop_assume!(p > 0.01);
            prop_assert!(mean_of_product(&sizes, &draws, p, stake) <= 1.0 + 1e-9);
        }

        #[test]
        fn the_least_gain_between_two_levels_is_no_more_than_any_between_them(
            good in 0_u32..9, bad in 0_u32..9, low in 0.01..10.0_f64, more in 0.0..10.0_f64, at in 0.0..=1.0_f64, stake in 0.1..0.999_f64,
        ) {
            prop_assume!(good + bad > 0);
            let kind = (f64::from(good), f64::from(good + bad), 1.0);
            let high = low + more;
            prop_assert!(ln_least_gain(kind, stake, low, high) <= ln_gain(kind, stake, low + at * more) + 1e-9);
        }
    }
}

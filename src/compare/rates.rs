//! One criterion on both sides, paired by case: what was seen, the test, and what it could have seen.
//!
//! A case's difference is the mean over its units, so that repetitions never count as cases. With one unit a case the
//! test is McNemar's, exact; with several it is the sign-flip test by case, which is the same test for single units.

use super::pairing::Pair;
use super::summary::Measured;
use crate::plan::trial_seed;
use crate::stats::bootstrap::cluster_bootstrap;
use crate::stats::effect::paired_difference;
use crate::stats::mcnemar_exact;
use crate::stats::permutation::sign_flip;
use crate::stats::power::{Spread, repeats_difference, smallest_visible_difference};

/// The power at which a difference counts as visible.
pub(super) const POWER: f64 = 0.8;

/// Beyond so many cases the normal approximation alone says what could have been seen.
const EXACT_POWER_UP_TO: usize = 200;

/// The figures of one criterion, paired.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Rates {
    /// B minus A for each case, as the metric counts.
    pub differences: Vec<f64>,
    /// Means over the cases under A and under B.
    pub means: (f64, f64),
    /// Successes and units under A.
    pub a: (u64, u64),
    /// Successes and units under B.
    pub b: (u64, u64),
    /// Whether every case has one unit on each side.
    pub single: bool,
}

/// Pairs the units of one criterion; cases without units on both sides are left out.
pub(super) fn rates(pairs: &[Pair<'_>], measured: &Measured) -> Rates {
    let mut found = Rates { single: true, ..Rates::default() };
    for pair in pairs {
        let units = pair.rows.iter().filter_map(|(a, b)| a.units.get(&measured.key).zip(b.units.get(&measured.key)));
        let units: Vec<_> = units.filter(|(a, b)| a.1 > 0 && b.1 > 0).collect();
        if units.is_empty() {
            continue;
        }
        let rate = |(successes, n): &(u64, u64)| *successes as f64 / *n as f64;
        let mean = |side: &dyn Fn(usize) -> f64| (0..units.len()).map(side).sum::<f64>() / units.len() as f64;
        let (one, other) = (mean(&|i| rate(units[i].0)), mean(&|i| rate(units[i].1)));
        found.single &= units.len() == 1 && units[0].0.1 == 1 && units[0].1.1 == 1;
        for (a, b) in units {
            found.a = (found.a.0 + a.0, found.a.1 + a.1);
            found.b = (found.b.0 + b.0, found.b.1 + b.1);
        }
        // The same counts on both sides differ by nothing, whatever the last digit of a mean says.
        found.differences.push(if (other - one).abs() < 1e-12 { 0.0 } else { other - one });
        found.means = (found.means.0 + one, found.means.1 + other);
    }
    let n = found.differences.len().max(1) as f64;
    found.means = (found.means.0 / n, found.means.1 / n);
    found
}

/// A test of the differences.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tested {
    /// Which.
    pub method: &'static str,
    /// Its two-sided p-value.
    pub p: f64,
}

impl Rates {
    /// Cases that differ: upwards, and downwards, as the metric counts.
    pub(super) fn discordant(&self) -> (u64, u64) {
        let count = |which: fn(f64) -> bool| self.differences.iter().filter(|value| which(**value)).count() as u64;
        (count(|value| value > 0.0), count(|value| value < 0.0))
    }

    /// B minus A, the mean over the cases.
    pub(super) fn value(&self) -> f64 {
        self.differences.iter().sum::<f64>() / self.differences.len().max(1) as f64
    }

    /// The test; `None` without discordance.
    pub(super) fn test(&self, seed: u64) -> Option<Tested> {
        let (up, down) = self.discordant();
        if self.single {
            return mcnemar_exact(down, up).map(|p| Tested { method: "exact McNemar", p });
        }
        // Cases without a difference change no pattern's sum: only the others need their signs drawn.
        let nonzero: Vec<f64> = self.differences.iter().copied().filter(|value| *value != 0.0).collect();
        let found = sign_flip(&nonzero, trial_seed(seed, "sign-flip"))?;
        let method = if found.exact { "exact sign-flip by case" } else { "sign-flip by case, drawn" };
        Some(Tested { method, p: found.p })
    }

    /// The two-sided 95 % interval of the difference: Agresti and Min's for single units and where nothing differs,
    /// the bootstrap over cases otherwise.
    pub(super) fn interval(&self, seed: u64) -> Option<(f64, f64)> {
        let (up, down) = self.discordant();
        if self.single || up + down == 0 {
            return paired_difference(down, up, self.differences.len() as u64).map(|found| (found.low, found.high));
        }
        let clusters: Vec<Vec<f64>> = self.differences.iter().map(|value| vec![*value]).collect();
        cluster_bootstrap(&clusters, trial_seed(seed, "bootstrap")).map(|found| (found.low, found.high))
    }

    /// The smallest change of the rate that would have been seen four times in five, before any correction; `None`
    /// when the cases are too few to show any.
    pub(super) fn visible(&self) -> Option<f64> {
        let n = self.differences.len();
        let spread = normal_difference(&self.differences);
        if n > EXACT_POWER_UP_TO {
            return spread.filter(|visible| *visible > 0.0);
        }
        let (up, down) = self.discordant();
        let discordant: f64 = self.differences.iter().map(|value| value.abs()).sum();
        // A case that changes does so by as much as those that did here, or wholly where none did.
        let size = if up + down == 0 { 1.0 } else { discordant / (up + down) as f64 };
        let exact = smallest_visible_difference(n as u64, up.min(down) as f64 / n.max(1) as f64, POWER)?;
        Some((exact * size).max(spread.unwrap_or(0.0)).min(1.0))
    }
}

/// The mean difference that so many values, spread like these, would have shown.
pub(super) fn normal_difference(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let spread = Spread { between: variance, within_a: 0.0, within_b: 0.0 };
    repeats_difference(spread, values.len() as u64, 1, POWER)
}

#[cfg(test)]
mod tests {
    use super::super::collect::cases_row;
    use super::super::{pairing::pair, sample::summary};
    use super::*;
    use proptest::prelude::*;
    use rand::{SeedableRng as _, rngs::ChaCha8Rng};

    fn of(a: &[(&str, u64, u64)], b: &[(&str, u64, u64)]) -> Rates {
        let (a, b) = (summary("a", a), summary("b", b));
        rates(&pair(&a, &b).pairs, &cases_row())
    }

    fn from(differences: Vec<f64>, single: bool) -> Rates {
        Rates { differences, single, ..Rates::default() }
    }

    #[test]
    fn one_unit_a_case_is_mcnemar_and_agrees_with_the_vectors() {
        let mut differences = vec![0.0; 70];
        differences.extend([-1.0; 2]);
        differences.extend([1.0; 10]);
        let found = from(differences, true);
        let tested = found.test(1).expect("discordance");
        assert!((tested.p - 0.038_574_2).abs() < 1e-6 && tested.method == "exact McNemar");
        assert!((found.value() - 0.0976).abs() < 5e-5);
        let (low, high) = found.interval(1).expect("pairs");
        assert!((low - 0.0136).abs() < 5e-5 && (high - 0.1769).abs() < 5e-5, "{low} {high}");
    }

    #[test]
    fn several_units_a_case_are_the_sign_flip_test_of_the_vector() {
        let found = from(vec![0.25, 0.0, 0.5, 0.25, -0.25, 0.25], false);
        assert!((found.test(1).expect("discordance").p - 0.3125).abs() < 1e-12);
    }

    #[test]
    fn repetitions_are_averaged_and_never_count_as_cases() {
        let found = of(&[("one", 4, 4), ("two", 2, 4)], &[("one", 2, 4), ("two", 2, 4)]);
        assert_eq!(found.differences, [-0.5, 0.0]);
        assert_eq!((found.a, found.b, found.single), ((6, 8), (4, 8), false));
        assert!((found.value() - (found.means.1 - found.means.0)).abs() < 1e-12);
    }

    #[test]
    fn equal_sides_have_no_test_but_an_interval_and_a_smallest_visible_difference() {
        let cases: Vec<String> = (0..20).map(|i| format!("c{i}")).collect();
        let rows: Vec<(&str, u64, u64)> = cases.iter().map(|case| (case.as_str(), 1, 1)).collect();
        let found = of(&rows, &rows);
        assert_eq!(found.test(1), None);
        let (low, high) = found.interval(1).expect("pairs");
        assert!(low < -0.05 && high > 0.05, "no discordance is not equality: {low} {high}");
        assert!(found.visible().is_some_and(|visible| (0.3..0.45).contains(&visible)), "{:?}", found.visible());
        assert_eq!(of(&rows[..5], &rows[..5]).visible(), None, "five cases can show nothing");
    }

    #[test]
    fn two_thousand_suites_compared_with_themselves_alarm_at_most_as_often_as_stated() {
        // Cases of unequal rates, with one repetition each and with three. Three criteria, corrected by Holm.
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        for (repeats, cases) in [(1_u32, 30), (3, 12)] {
            let mut alarms = 0_u32;
            for suite in 0..2_000 {
                let p: Vec<f64> = (0..3)
                    .map(|_| {
                        let differences = (0..cases).map(|case| {
                            let rate = 0.4 + f64::from(case) * 0.015;
                            let mut share = || {
                                (0..repeats).map(|_| f64::from(u8::from(rng.random_bool(rate)))).sum::<f64>()
                                    / f64::from(repeats)
                            };
                            share() - share()
                        });
                        from(differences.collect(), repeats == 1).test(suite).map_or(1.0, |tested| tested.p)
                    })
                    .collect();
                alarms += u32::from(crate::stats::holm(&p).iter().any(|p| *p < 0.05));
            }
            assert!(alarms <= 100, "{alarms} of 2,000 with {repeats} repetitions");
            assert!(alarms >= 10, "a test that never alarms would be useless: {alarms}");
        }
    }

    proptest! {
        #[test]
        fn single_units_give_the_same_p_by_either_test(signs in proptest::collection::vec(-1_i8..=1, 1..18)) {
            let differences: Vec<f64> = signs.iter().map(|sign| f64::from(*sign)).collect();
            let by = |single| from(differences.clone(), single).test(3).map(|tested| tested.p);
            match (by(true), by(false)) {
                (Some(one), Some(other)) => prop_assert!((one - other).abs() < 1e-9, "{one} {other}"),
                (one, other) => prop_assert_eq!(one, other),
            }
        }
    }
}

//! One criterion on both sides, paired by case: the observed rates, the test, and its power.
//!
//! Repetitions are paired by number, and a case's difference is that of its rates over them, so repetitions never
//! count as cases, and more repetitions on one side add no certainty. The test is the exact sign-flip test by case
//! (McNemar's for single units), and the interval is its inversion.

use super::pairing::Pair;
use super::summary::Measured;
use crate::plan::trial_seed;
use crate::stats::paired_shift::PairedShift;
use crate::stats::population;
use crate::stats::power::{Spread, smallest_visible_difference};

/// The error probability of the bound on the loss, both ends together.
const ALPHA: f64 = 0.05;

/// The largest denominator for which sign patterns are counted one by one.
const FINEST: u64 = 1_000_000;

/// The power at which a difference counts as visible.
pub(super) const POWER: f64 = 0.8;

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
    /// The common denominator of all differences, if not too large.
    pub scale: Option<u64>,
    /// Repetitions of a case on both sides, the mean over the cases, rounded down.
    pub repeats: u64,
}

/// Pairs the units of one criterion; cases without units on both sides are left out.
pub(super) fn rates(pairs: &[Pair<'_>], measured: &Measured) -> Rates {
    let mut found = Rates { scale: Some(1), ..Rates::default() };
    for pair in pairs {
        let units = pair.rows.iter().map(|(a, b)| a.paired(b, &measured.key, pair.logged));
        let units: Vec<_> = units.filter(|paired| paired.a.1 > 0 && paired.b.1 > 0).collect();
        if units.is_empty() {
            continue;
        }
        let rate = |(successes, n): (u64, u64)| successes as f64 / n as f64;
        let number = units.len() as f64;
        let one = units.iter().map(|paired| rate(paired.a)).sum::<f64>() / number;
        let other = units.iter().map(|paired| rate(paired.b)).sum::<f64>() / number;
        for paired in &units {
            found.repeats += paired.repetitions;
            found.a = (found.a.0 + paired.a.0, found.a.1 + paired.a.1);
            found.b = (found.b.0 + paired.b.0, found.b.1 + paired.b.1);
            for n in [paired.a.1, paired.b.1] {
                found.scale = found.scale.and_then(|scale| common_multiple(scale, n * units.len() as u64));
            }
        }
        // Equal counts on both sides differ by exactly 0, whatever the rounding of a mean.
        found.differences.push(if (other - one).abs() < 1e-12 { 0.0 } else { other - one });
        found.means = (found.means.0 + one, found.means.1 + other);
    }
    found.repeats /= found.differences.len().max(1) as u64;
    let n = found.differences.len().max(1) as f64;
    found.means = (found.means.0 / n, found.means.1 / n);
    found
}

fn common_multiple(one: u64, other: u64) -> Option<u64> {
    let (mut a, mut b) = (one, other);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    (one / a).checked_mul(other).filter(|multiple| *multiple <= FINEST)
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

    /// The test, with its interval at any level; `None` when no case changed.
    pub(super) fn test(&self, seed: u64) -> Option<PairedShift> {
        PairedShift::new(&self.differences, self.scale, trial_seed(seed, "sign-flip"))
    }

    /// If no case changed: the differences not excluded at the two-sided level `alpha`.
    pub(super) fn unchanged(&self, alpha: f64) -> Option<(f64, f64)> {
        Some((self.least_at(1.0, alpha)?, -self.least_at(-1.0, alpha)?))
    }

    /// The least mean change upwards supported by these cases: a one-sided 97.5 % bound, from a lower bound on the
    /// gain less an upper bound on the loss over cases like these. `sign` is -1 where lower is better.
    pub(super) fn least_gain(&self, sign: f64) -> Option<f64> {
        self.least_at(sign, ALPHA)
    }

    fn least_at(&self, sign: f64, alpha: f64) -> Option<f64> {
        let cases = self.differences.len() as u64;
        let sum = |sign: f64| self.differences.iter().map(|value| (sign * value).max(0.0)).sum::<f64>();
        let gained = population::lower_at(sum(sign), cases, alpha / 4.0);
        (cases > 0).then(|| gained - population::upper_at(sum(-sign), cases, alpha / 4.0))
    }

    /// The smallest change of the rate detectable with 80 % power at the two-sided level `alpha`; `None` if there are
    /// too few cases for any.
    pub(super) fn visible(&self, alpha: f64) -> Option<f64> {
        let (cases, repeats) = (self.differences.len() as u64, self.repeats.max(1));
        let varied = variance(&self.differences)?;
        let rate = f64::midpoint(self.means.0, self.means.1);
        // A repetition varies at most as it would if all cases had the same rate; that none varied here is no proof that
        // none does, so one more counts as failed.
        let seen = (varied * repeats as f64 / 2.0).min(rate * (1.0 - rate)).max(0.0);
        let within = (seen + 0.5 / (cases * repeats + 1) as f64).min(0.25);
        let between = (varied - 2.0 * within / repeats as f64).max(0.0);
        smallest_visible_difference(cases, Spread { repeats, within, between }, POWER, alpha)
    }
}

/// Variance of some values, with divisor `n - 1`; `None` of fewer than two.
pub(super) fn variance(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| squares / (n - 1.0))
}

#[cfg(test)]
mod tests {
    use super::super::collect::cases_row;
    use super::super::{RepetitionCounts, pairing::pair, sample::summary};
    use super::*;
    use rand::{RngExt as _, SeedableRng as _, rngs::ChaCha8Rng};

    fn of(a: &[(&str, u64, u64)], b: &[(&str, u64, u64)]) -> Rates {
        let (a, b) = (summary("a", a), summary("b", b));
        rates(&pair(&a, &b).pairs, &cases_row())
    }

    fn from(differences: Vec<f64>, scale: u64) -> Rates {
        Rates { differences, scale: Some(scale), ..Rates::default() }
    }

    #[test]
    fn one_unit_a_case_is_mcnemar_and_agrees_with_the_vectors() {
        let mut differences = vec![0.0; 70];
        differences.extend([-1.0; 2]);
        differences.extend([1.0; 10]);
        let found = from(differences, 1);
        let tested = found.test(1).expect("discordance");
        assert!((tested.p() - 0.038_574_2).abs() < 1e-6 && tested.is_exact());
        assert!((found.value() - 0.0976).abs() < 5e-5);
        assert!(tested.interval(0.05).0 >= 0.0, "p below 5 %: {:?}", tested.interval(0.05));
        assert!(tested.interval(0.05 / 2.0).0 < 0.0, "p above 2.5 %: {:?}", tested.interval(0.05 / 2.0));
    }

    #[test]
    fn several_units_a_case_are_the_sign_flip_test_of_the_vector() {
        let found = from(vec![0.25, 0.0, 0.5, 0.25, -0.25, 0.25], 4);
        assert!((found.test(1).expect("discordance").p() - 0.3125).abs() < 1e-12);
    }

    #[test]
    fn two_cases_and_one_improvement_do_not_show_that_nothing_is_worse() {
        let found = of(&[("one", 0, 1), ("two", 1, 1)], &[("one", 1, 1), ("two", 1, 1)]);
        assert!(found.least_gain(1.0).is_some_and(|least| least < -0.8), "{:?}", found.least_gain(1.0));
        let many = from(vec![0.0; 1_000], 1);
        assert!(many.least_gain(1.0).is_some_and(|least| (-0.005..0.0).contains(&least)), "{:?}", many.least_gain(1.0));
    }

    #[test]
    fn repetitions_without_a_partner_are_left_out() {
        let found = of(&[("one", 1, 1), ("two", 1, 1)], &[("one", 12, 20), ("two", 1, 20)]);
        assert_eq!((found.differences.as_slice(), found.a, found.b), ([0.0, 0.0].as_slice(), (2, 2), (2, 2)));
    }

    #[test]
    fn ragged_repetitions_are_paired_by_number_whatever_is_missing_on_either_side() {
        let numbered = |label: &str, rows: &[(u32, u64)]| {
            let mut side = summary(label, &[("one", 0, 1)]);
            let rows = rows.iter().map(|(repetition, successes)| RepetitionCounts {
                repetition: *repetition,
                successes: *successes,
                n: 1,
            });
            let rows = rows.collect();
            side.cases[0].repetitions.insert(super::super::CASES.to_owned(), rows);
            side
        };
        // 2 and 4 stand on both sides; 1, 3 and 7 have no partner, and count for neither rate.
        let a = numbered("a", &[(1, 0), (2, 1), (4, 1), (7, 0)]);
        let b = numbered("b", &[(2, 1), (3, 0), (4, 0)]);
        let found = rates(&pair(&a, &b).pairs, &cases_row());
        assert_eq!((found.a, found.b, found.differences.as_slice()), ((2, 2), (1, 2), [-0.5].as_slice()));
        let notes = crate::compare::compare(&a, &b, 0.0).expect("comparable").notes;
        assert!(notes.iter().any(|note| note.starts_with("2 repetitions of a without a partner in b")), "{notes:?}");
        assert!(notes.iter().any(|note| note.starts_with("1 repetition of b without a partner in a")), "{notes:?}");
    }

    #[test]
    fn one_repetition_against_twenty_of_the_same_agent_alarms_at_the_stated_rate_also_in_logs() {
        // Ten cases that succeed 95 times in 100: means of 1 against 20 would alarm in four runs of ten.
        let names: Vec<String> = (0..10).map(|case| format!("c{case}")).collect();
        for mode in ["REPLAYED", "IMPORTED"] {
            let mut rng = ChaCha8Rng::seed_from_u64(5);
            let mut alarms = 0_u32;
            for run in 0..300 {
                let mut side = |label: &str, trials: u32| {
                    let cases: Vec<(&str, u64, u64)> =
                        names.iter().map(|name| (name.as_str(), 0, u64::from(trials))).collect();
                    let mut side = summary(label, &cases);
                    side.settings[0].modes = [mode.to_owned()].into();
                    for case in &mut side.cases {
                        for row in case.repetitions.values_mut().flatten() {
                            row.successes = u64::from(rng.random_bool(0.95));
                        }
                    }
                    side
                };
                let (a, b) = (side("a", 1), side("b", 20));
                let p = rates(&pair(&a, &b).pairs, &cases_row()).test(run).map_or(1.0, |tested| tested.p());
                alarms += u32::from(p < 0.05);
            }
            assert!(alarms <= 15, "{mode}: {alarms} of 300");
        }
    }

    #[test]
    fn repetitions_are_averaged_and_never_count_as_cases() {
        let found = of(&[("one", 4, 4), ("two", 2, 4)], &[("one", 2, 4), ("two", 2, 4)]);
        assert_eq!(found.differences, [-0.5, 0.0]);
        assert_eq!((found.a, found.b, found.scale), ((6, 8), (4, 8), Some(4)));
        assert!((found.value() - (found.means.1 - found.means.0)).abs() < 1e-12);
    }

    #[test]
    fn equal_sides_have_no_test_but_an_interval_and_a_smallest_visible_difference() {
        let cases: Vec<String> = (0..20).map(|i| format!("c{i}")).collect();
        let rows: Vec<(&str, u64, u64)> = cases.iter().map(|case| (case.as_str(), 1, 1)).collect();
        let found = of(&rows, &rows);
        assert_eq!(found.test(1), None);
        let least = found.least_gain(1.0).expect("pairs");
        assert!(least < -0.15, "no case changed, which is not equality: {least}");
        let visible = |level: f64| found.visible(level).expect("enough");
        assert!((0.3..0.45).contains(&visible(0.05)) && visible(0.05) < visible(0.05 / 6.0), "{}", visible(0.05));
        assert_eq!(of(&rows[..5], &rows[..5]).visible(0.05), None, "five cases can show nothing");
        assert_eq!(of(&rows[..7], &rows[..7]).visible(0.05 / 6.0), None, "seven cannot beside five other criteria");
    }

    #[test]
    fn what_is_said_to_be_seen_four_times_in_five_is_seen_so_often_at_the_level_of_every_number_of_rows() {
        const RUNS: u32 = 400;
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        for rows in [1.0, 6.0, 11.0] {
            let level = 0.05 / rows;
            let visible = from(vec![0.0; 40], 1).visible(level).expect("enough cases");
            let mut seen = 0_u32;
            for run in 0..RUNS {
                let lost = (0..40).map(|_| -f64::from(u8::from(rng.random_bool(visible)))).collect();
                seen += u32::from(from(lost, 1).test(u64::from(run)).is_some_and(|tested| tested.p() <= level));
            }
            assert!(f64::from(seen) >= 0.75 * f64::from(RUNS), "{rows}: {seen} of {RUNS}");
        }
    }

    #[test]
    fn what_is_said_of_several_repetitions_is_seen_four_times_in_five_by_another_comparison_of_the_same_agents() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        for (cases, repeats, rate) in
            [(8, 3_u32, 0.95), (12, 3, 0.95), (20, 3, 0.8), (20, 5, 0.9), (20, 1, 0.95), (40, 3, 0.95)]
        {
            let mut compared = |lost: f64| {
                let mut side = |rate: f64| -> Vec<f64> {
                    let mut passed = || (0..repeats).filter(|_| rng.random_bool(rate)).count() as f64;
                    (0..cases).map(|_| passed() / f64::from(repeats)).collect()
                };
                let (a, b) = (side(rate), side((rate - lost).max(0.0)));
                let mean = |side: &[f64]| side.iter().sum::<f64>() / side.len() as f64;
                let differences = a.iter().zip(&b).map(|(a, b)| b - a).collect();
                let repeats = u64::from(repeats);
                Rates { means: (mean(&a), mean(&b)), repeats, ..from(differences, repeats) }
            };
            let (mut seen, mut told) = (0, 0);
            for run in 0..300 {
                let Some(visible) = compared(0.0).visible(0.05) else { continue };
                told += 1;
                seen += u32::from(compared(visible).test(run).is_some_and(|tested| tested.p() <= 0.05));
            }
            let share = f64::from(seen) / f64::from(told);
            assert!(told > 100 && share >= 0.75, "{cases} x {repeats}, {rate}: {seen} of {told}");
        }
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
                        from(differences.collect(), u64::from(repeats)).test(suite).map_or(1.0, |tested| tested.p())
                    })
                    .collect();
                alarms += u32::from(crate::stats::holm(&p).iter().any(|p| *p < 0.05));
            }
            assert!(alarms <= 100, "{alarms} of 2,000 with {repeats} repetitions");
            assert!(alarms >= 10, "a test that never alarms would be useless: {alarms}");
        }
    }
}

//! The sign-flip test of a shift in paired differences, and the interval from its inversion.
//!
//! Under a shift `δ`, each difference minus `δ` is symmetric around 0. Flipping the signs of a subset changes the sum
//! by twice the subset's, so the one-sided p-value is the share of subsets `S` with `Σ_S (d - δ) <= 0`: it grows with
//! `δ`, and the shifts whose two-sided p-value exceeds 5 % are an interval (Hartigan 1969). It contains 0 exactly if the
//! test does not reject. Exact for differences that are fractions of one small denominator, whatever their number;
//! otherwise by a random sample of subsets, the same for test and interval.
//!
//! Equal differences are not symmetric around anything but their value, and the inversion would be that one point.
//! They bound the share of cases that differ by so much, from below at `(α/2)^(1/n)` (Clopper and Pearson 1934): at the
//! end that is nearer to 0 the interval assumes that all other cases are unchanged, at the other that they change entirely.

use super::rate::binomial_cdf;
use rand::{RngExt as _, SeedableRng as _, rngs::ChaCha8Rng};

/// Largest number of steps for counting subsets: at most 271 differences are nonzero, and the probability of one subset is a
/// normal float.
const STEPS: u64 = 20_000_000;
/// Number of random subsets if they cannot be counted.
const DRAWS: u32 = 9_999;

/// Subsets of the differences, by size and sum.
#[derive(Debug, Clone, PartialEq)]
enum Subsets {
    /// Size, sum and probability for the nonzero differences, and the distribution of the size for those that are 0.
    Counted { kinds: Vec<(f64, f64, f64)>, zeros: Vec<f64> },
    /// Sizes and sums.
    Drawn(Vec<(f64, f64)>),
}

/// The sign-flip test of some differences, for any shift.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PairedShift {
    subsets: Subsets,
    /// The difference of all cases, if it is the same, and their number.
    equal: Option<(f64, usize)>,
}

impl PairedShift {
    /// The test of `differences`, each a multiple of `1/scale` if there is a `scale`; `None` if all are 0, there
    /// are none, or one is not finite.
    pub(crate) fn new(differences: &[f64], scale: Option<u64>, seed: u64) -> Option<Self> {
        if differences.iter().any(|value| !value.is_finite()) || differences.iter().all(|value| *value == 0.0) {
            return None;
        }
        let counted = scale.and_then(|scale| count(differences, scale));
        let equal = differences.windows(2).all(|two| (two[0] - two[1]).abs() < 1e-12);
        let equal = equal.then(|| (differences[0], differences.len()));
        Some(Self { subsets: counted.unwrap_or_else(|| draw(differences, seed)), equal })
    }

    /// Whether all subsets were counted.
    pub(crate) fn is_exact(&self) -> bool {
        matches!(self.subsets, Subsets::Counted { .. })
    }

    /// `P(sign Σ_S (d - shift) <= 0)` over random subsets.
    fn at_most(&self, shift: f64, sign: f64) -> f64 {
        let shift = sign * shift;
        match &self.subsets {
            Subsets::Drawn(drawn) => {
                let hits = drawn.iter().filter(|(size, sum)| sign * sum <= size * shift + 1e-9).count();
                (hits + 1) as f64 / (drawn.len() + 1) as f64
            }
            Subsets::Counted { kinds, zeros } => {
                let up_to = |most: f64| {
                    if most < 0.0 { 0.0 } else { zeros[(most as usize).min(zeros.len() - 1)] }
                };
                let share = |(size, sum, probability): &(f64, f64, f64)| {
                    let sum = sign * sum;
                    let of = if shift.abs() < 1e-12 {
                        f64::from(u8::from(sum <= 1e-12))
                    } else {
                        // So many zeros in the subset bring its mean to the shift.
                        let needed = sum / shift - size;
                        if shift > 0.0 {
                            1.0 - up_to((needed - 1e-9).ceil() - 1.0)
                        } else {
                            up_to((needed + 1e-9).floor())
                        }
                    };
                    probability * of
                };
                kinds.iter().map(share).sum()
            }
        }
    }

    /// The two-sided p-value of no shift.
    pub(crate) fn p(&self) -> f64 {
        (2.0 * self.at_most(0.0, 1.0).min(self.at_most(0.0, -1.0))).min(1.0)
    }

    /// The shifts between `-1` and `1` that the test does not reject at level `alpha`; wider if all differences are equal.
    pub(crate) fn interval(&self, alpha: f64) -> (f64, f64) {
        let (low, high) = (self.end(alpha, 1.0), -self.end(alpha, -1.0));
        let Some((shift, cases)) = self.equal else { return (low, high) };
        let share = (alpha / 2.0).powf(1.0 / cases as f64);
        let (unchanged, changed) = (share * shift, share * shift + (1.0 - share).copysign(shift));
        (low.min(unchanged.min(changed)), high.max(unchanged.max(changed)))
    }

    /// The lower end of the interval, or of that of the negated differences.
    fn end(&self, alpha: f64, sign: f64) -> f64 {
        let held = |shift: f64| 2.0 * self.at_most(sign * shift, sign) > alpha;
        if held(-1.0) {
            return -1.0;
        }
        let (mut low, mut high) = if held(0.0) { (-1.0, 0.0) } else { (0.0, 1.0) };
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            if held(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        high
    }
}

fn count(differences: &[f64], scale: u64) -> Option<Subsets> {
    let whole: Vec<i64> = differences.iter().map(|value| (value * scale as f64).round() as i64).collect();
    let exact = |(value, whole): (&f64, &i64)| (value * scale as f64 - *whole as f64).abs() < 1e-6;
    let nonzero: Vec<i64> = whole.iter().copied().filter(|value| *value != 0).collect();
    let below: i64 = nonzero.iter().filter(|value| **value < 0).sum();
    let above: i64 = nonzero.iter().filter(|value| **value > 0).sum();
    let width = (above - below) as u64 + 1;
    let steps = (nonzero.len() as u64).pow(2).checked_mul(width)?;
    if nonzero.is_empty() || steps > STEPS || !differences.iter().zip(&whole).all(exact) {
        return None;
    }
    let width = width as usize;
    // shares[size][sum - below]: the probability of a subset of that size and sum.
    let mut shares = vec![vec![0.0_f64; width]; nonzero.len() + 1];
    shares[0][(-below) as usize] = 1.0;
    for (taken, value) in nonzero.iter().enumerate() {
        for size in (0..=taken).rev() {
            let (kept, grown) = shares.split_at_mut(size + 1);
            let (from, to) = (&mut kept[size], &mut grown[0]);
            for (place, share) in from.iter_mut().enumerate().filter(|(_, share)| **share > 0.0) {
                *share *= 0.5;
                to[(place as i64 + value) as usize] += *share;
            }
        }
    }
    let kinds = shares.iter().enumerate().flat_map(|(size, row)| {
        let kind = move |(place, share): (usize, &f64)| {
            (*share > 0.0).then_some((size as f64, (place as i64 + below) as f64 / scale as f64, *share))
        };
        row.iter().enumerate().filter_map(kind)
    });
    let zero = (differences.len() - nonzero.len()) as u64;
    let zeros = (0..=zero).map(|most| binomial_cdf(most, zero, 0.5)).collect();
    Some(Subsets::Counted { kinds: kinds.collect(), zeros })
}

fn draw(differences: &[f64], seed: u64) -> Subsets {
    // Signs drawn for the values, not for the places that cases happen to have in a log, and the same for the values of
    // exchanged sides.
    let ordered = |sign: f64| {
        let mut values: Vec<f64> = differences.iter().map(|value| sign * value + 0.0).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let (as_given, exchanged) = (ordered(1.0), ordered(-1.0));
    let (values, sign) = if as_given < exchanged { (exchanged, -1.0) } else { (as_given, 1.0) };
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut one = || {
        let taken = values.iter().filter(|_| rng.random_bool(0.5));
        taken.fold((0.0, 0.0), |(size, sum), value| (size + 1.0, sum + sign * value))
    };
    Subsets::Drawn((0..DRAWS).map(|_| one()).collect())
}

#[cfg(test)]
mod tests {
    use super::super::paired::mcnemar_exact;
    use super::*;
    use proptest::prelude::*;

    /// The share of all patterns of signs whose sum is at least as far from 0.
    fn p_of_all_signs(differences: &[f64]) -> f64 {
        let patterns = 1_u32 << differences.len();
        let sum = |pattern: u32| -> f64 {
            let signed = differences.iter().enumerate();
            signed.map(|(place, value)| if pattern >> place & 1 == 1 { -value } else { *value }).sum()
        };
        let hits = (0..patterns).filter(|pattern| sum(*pattern).abs() >= sum(0).abs() - 1e-9).count();
        hits as f64 / f64::from(patterns)
    }

    #[test]
    fn six_cases_agree_with_scipy_and_interval_and_p_agree() {
        let found = PairedShift::new(&[0.25, 0.0, 0.5, 0.25, -0.25, 0.25], Some(4), 1).expect("differences");
        assert!(found.is_exact() && (found.p() - 0.3125).abs() < 1e-12, "{}", found.p());
        let (low, high) = found.interval(0.05);
        assert!(low < 0.0 && high > 0.0, "{low} {high}");
    }

    #[test]
    fn four_cases_that_all_gain_are_no_proof() {
        // A bootstrap interval of these is above 0 while the exact p-value is 0.125.
        let found = PairedShift::new(&[0.9, 0.7, 0.1, 0.3], Some(10), 1).expect("differences");
        assert!((found.p() - 0.125).abs() < 1e-12);
        assert_eq!(found.interval(0.05), (-1.0, 1.0), "four cases bound nothing");
    }

    #[test]
    fn the_ends_are_means_of_subsets() {
        // 2^6 subsets: P <= 1/64 of the empty one alone is below 2.5 %, with one more it is not.
        let found = PairedShift::new(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], Some(10), 1).expect("differences");
        let (low, high) = found.interval(0.05);
        assert!((low - 0.1).abs() < 1e-9 && (high - 0.6).abs() < 1e-9, "{low} {high}");
    }

    #[test]
    fn equal_differences_leave_as_much_room_as_their_number_allows() {
        // The lower bound of Clopper and Pearson for 7 of 7 is 59 %.
        let found = PairedShift::new(&[-1.0; 7], Some(1), 1).expect("differences");
        let (low, high) = found.interval(0.05);
        assert!((low + 1.0).abs() < 1e-9 && (high + 0.590_4).abs() < 1e-4, "{low} {high}");
        let halves = PairedShift::new(&[0.5; 7], Some(2), 1).expect("differences");
        let (low, high) = halves.interval(0.05);
        assert!((low - 0.295_2).abs() < 1e-4 && (high - 0.704_8).abs() < 1e-4, "{low} {high}");
    }

    #[test]
    fn the_interval_of_pairs_that_nearly_all_change_covers_their_rate() {
        let (cases, rate) = (12_u64, 0.95);
        let covers = |changed: u64| {
            let mut differences = vec![-1.0; changed as usize];
            differences.resize(cases as usize, 0.0);
            let found = PairedShift::new(&differences, Some(1), 1);
            let (low, high) = found.map_or((-1.0, 1.0), |found| found.interval(0.05));
            low <= -rate && -rate <= high
        };
        let exactly = |changed: u64| {
            let up_to = |most: u64| binomial_cdf(most, cases, rate);
            up_to(changed) - changed.checked_sub(1).map_or(0.0, up_to)
        };
        let covered: f64 = (0..=cases).filter(|changed| covers(*changed)).map(exactly).sum();
        assert!(covered >= 0.95, "{covered}");
    }

    #[test]
    fn the_observed_signs_are_one_of_those_drawn() {
        let found = PairedShift::new(&[1.0; 40], None, 1).expect("differences");
        assert!(!found.is_exact() && (found.p() - 2.0 / 10_000.0).abs() < 1e-9, "{}", found.p());
    }

    #[test]
    fn drawn_signs_do_not_depend_on_the_order_of_the_differences() {
        let differences: Vec<f64> = (0..30).map(|case| f64::from(case * case % 17) / 7.1 - 0.9).collect();
        let shifted = |by: usize| {
            let turned: Vec<f64> = differences.iter().cycle().skip(by).take(30).copied().collect();
            PairedShift::new(&turned, None, 1).expect("differences").p()
        };
        assert!([1, 7, 20].into_iter().all(|by| shifted(by).total_cmp(&shifted(0)).is_eq()));
    }

    #[test]
    fn single_pairs_are_mcnemar_whatever_their_number() {
        let mut differences = vec![0.0; 300];
        differences.extend([-1.0; 2]);
        differences.extend([1.0; 10]);
        let found = PairedShift::new(&differences, Some(1), 1).expect("differences");
        assert!((found.p() - mcnemar_exact(2, 10).expect("discordance")).abs() < 1e-9);
        assert_eq!(PairedShift::new(&[0.0; 4], Some(1), 1), None);
    }

    proptest! {
        #[test]
        fn it_is_the_sign_flip_test_and_its_interval_holds_0_when_it_does_not_reject(
            steps in proptest::collection::vec(-6_i32..=6, 1..14), exact in any::<bool>(),
        ) {
            prop_assume!(steps.iter().any(|step| *step != 0));
            let differences: Vec<f64> = steps.iter().map(|step| f64::from(*step) / 6.0).collect();
            let found = PairedShift::new(&differences, exact.then_some(6), 7).expect("differences");
            if exact {
                prop_assert!((found.p() - p_of_all_signs(&differences)).abs() < 1e-9);
            }
            let (low, high) = found.interval(0.05);
            prop_assert_eq!(low <= 0.0 && 0.0 <= high, found.p() > 0.05, "{} {} {}", low, high, found.p());
        }

        #[test]
        fn swapping_the_sides_mirrors_it(steps in proptest::collection::vec(-6_i32..=6, 1..20), exact in any::<bool>()) {
            prop_assume!(steps.iter().any(|step| *step != 0));
            let forward: Vec<f64> = steps.iter().map(|step| f64::from(*step) / 6.0).collect();
            let back: Vec<f64> = forward.iter().map(|value| -value).collect();
            let scale = exact.then_some(6);
            let (one, other) = (PairedShift::new(&forward, scale, 1), PairedShift::new(&back, scale, 1));
            let (one, other) = (one.expect("some"), other.expect("some"));
            prop_assert!((one.p() - other.p()).abs() < 1e-12);
            let ((low, high), (lowest, highest)) = (one.interval(0.05), other.interval(0.05));
            prop_assert!((low + highest).abs() < 1e-9 && (high + lowest).abs() < 1e-9);
        }
    }
}

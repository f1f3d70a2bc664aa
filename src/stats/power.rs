//! Power of a number of pairs, and the smallest difference that they can detect. `alpha` is always the two-sided error
//! probability of the deciding test: that of its step if several tests are corrected together.

use super::paired::mcnemar_exact;
use super::rate::binomial_cdf;
use super::student::critical;

/// The exact power of the two-sided McNemar test at level `alpha` over `pairs` pairs, of which a share of `only_a`
/// succeeds under A alone and of `only_b` under B alone.
pub(crate) fn mcnemar_power(pairs: u64, only_a: f64, only_b: f64, alpha: f64) -> f64 {
    let discordant = only_a + only_b;
    if discordant <= 0.0 || pairs == 0 {
        return 0.0;
    }
    let share = (only_b / discordant).min(1.0);
    let up_to = |m: u64| binomial_cdf(m, pairs, discordant.min(1.0));
    (1..=pairs)
        .filter_map(|m| {
            let critical = critical_count(m, alpha)?;
            let rejects = binomial_cdf(critical, m, share) + binomial_cdf(critical, m, 1.0 - share);
            Some((up_to(m) - up_to(m - 1)).max(0.0) * rejects)
        })
        .sum()
}

/// Of `m` discordant pairs, the largest count in the rarer direction at which McNemar's test rejects; `None` if none does.
fn critical_count(m: u64, alpha: f64) -> Option<u64> {
    let rejects = |count: u64| mcnemar_exact(count, m - count).is_some_and(|p| p <= alpha);
    super::first_of(m / 2, |count| !rejects(count)).unwrap_or(m / 2 + 1).checked_sub(1)
}

/// The smallest gain, up to `largest`, that `pairs` pairs detect with probability `power`; `shares` of a gain are those of
/// the pairs that succeed under A alone and under B alone. `None` if they detect none.
fn smallest_gain(
    (pairs, largest): (u64, f64),
    shares: impl Fn(f64) -> (f64, f64),
    power: f64,
    alpha: f64,
) -> Option<f64> {
    let found = |gain: f64| {
        let (only_a, only_b) = shares(gain);
        mcnemar_power(pairs, only_a, only_b, alpha) >= power
    };
    (largest > 0.0 && found(largest)).then(|| smallest(largest, found))
}

/// The smallest value up to `largest` for which `found` holds, as it does for `largest`.
fn smallest(largest: f64, found: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, largest);
    for _ in 0..16 {
        let middle = f64::midpoint(low, high);
        if found(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// The smallest number of cases with which a paired test at level `alpha` can reject, if all differ in one direction: the
/// smallest `n` with `2 (1/2)^n <= alpha`.
pub(crate) fn fewest_cases(alpha: f64) -> u64 {
    (1.0 - alpha.max(f64::MIN_POSITIVE).log2() - 1e-9).ceil().max(1.0) as u64
}

/// Cases above which only the normal approximation is used.
const EXACT_UP_TO: u64 = 200;
/// Repetitions beyond which more are taken to add nothing.
const MOST_REPETITIONS: u64 = 200;

/// What paired cases vary by when nothing changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    /// Repetitions of each case on each side.
    pub repeats: u64,
    /// Variance of one repetition, at most 1/4: that of a rate `r` is `r (1 - r)`.
    pub within: f64,
    /// Variance of the true difference between cases.
    pub between: f64,
}

/// The smallest difference of two rates that the sign-flip test by case detects at level `alpha` with probability `power`,
/// rather too large than too small; `None` if it can detect none.
///
/// Every case is assumed to fall by the difference from the same rate. The sign test on cases that got worse and better
/// (McNemar's, exact) detects hardly more than the sign-flip test, and as much where all changed cases must agree. With
/// more cases and several repetitions, Student's approximation finds smaller differences; its margin of `2/n` is
/// measured. The smaller of both counts.
pub(crate) fn smallest_visible_difference(cases: u64, spread: Spread, power: f64, alpha: f64) -> Option<f64> {
    if cases < fewest_cases(alpha) || spread.repeats == 0 {
        return None;
    }
    let repeats = spread.repeats.min(MOST_REPETITIONS);
    let rate = f64::midpoint(1.0, (1.0 - 4.0 * spread.within).max(0.0).sqrt());
    let before = binomial(repeats, rate);
    let apart = spread.between.sqrt();
    // Cases whose own difference is one standard deviation below and above the mean.
    let shares = |gain: f64| {
        let each = [gain - apart, gain + apart].map(|gain| worse_and_better(&before, rate - gain));
        (f64::midpoint(each[0].1, each[1].1), f64::midpoint(each[0].0, each[1].0))
    };
    let exact = if cases <= EXACT_UP_TO { smallest_gain((cases, rate), shares, power, alpha) } else { None };
    let steps = (cases * repeats) as f64;
    let found = |gain: f64| {
        let after = (rate - gain).clamp(0.0, 1.0);
        let variance = (rate * (1.0 - rate) + after * (1.0 - after)) / repeats as f64 + spread.between;
        gain >= (needed(cases, power, alpha) * variance.sqrt() + 0.5 / steps) * (1.0 + 2.0 / cases as f64)
    };
    let several = repeats > 1 || cases > EXACT_UP_TO;
    let near = several && cases >= fewest_cases(alpha) + 4 && found(rate);
    let near = near.then(|| smallest(rate, found));
    exact.into_iter().chain(near).reduce(f64::min)
}

/// The smallest shift, in standard deviations as estimated from `n` values, that the signed-rank test of `n` normal values
/// detects with that probability, rather too large than too small; `None` if it can detect none. The margin over Student's
/// test is measured: the fewer ranks there are, the further is the attained level below `alpha`, and the estimate off.
pub(crate) fn smallest_visible_shift(n: u64, power: f64, alpha: f64) -> Option<f64> {
    let spare = n.checked_sub(fewest_cases(alpha))?;
    Some(needed(n, power, alpha) * (1.04 + 1.0 / (2.0 + spare as f64)))
}

/// The mean, in standard deviations of `n` values, that Student's test detects with that probability.
fn needed(n: u64, power: f64, alpha: f64) -> f64 {
    let df = n as f64 - 1.0;
    (critical(df, alpha) + critical(df, 2.0 * (1.0 - power))) / (n as f64).sqrt()
}

/// Probabilities of 0 to `n` successes.
fn binomial(n: u64, rate: f64) -> Vec<f64> {
    let one_more = |shares: Vec<f64>, _| {
        let share = |place: usize| shares.get(place).copied().unwrap_or(0.0);
        let below = |place: usize| place.checked_sub(1).map_or(0.0, share);
        (0..=shares.len()).map(|place| share(place) * (1.0 - rate) + below(place) * rate).collect()
    };
    (0..n).fold(vec![1.0], one_more)
}

/// Probabilities of fewer successes than `before` at the rate `after`, and of more.
fn worse_and_better(before: &[f64], after: f64) -> (f64, f64) {
    let after = binomial(before.len() as u64 - 1, after.clamp(0.0, 1.0));
    let (mut below, mut worse, mut same) = (0.0, 0.0, 0.0);
    for (one, other) in before.iter().zip(&after) {
        worse += one * below;
        same += one * other;
        below += other;
    }
    (worse, (1.0 - worse - same).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::super::paired_shift::PairedShift;
    use super::super::signed_rank::shift_p;
    use super::super::student::normal_quantile;
    use super::*;
    use rand::{RngExt as _, SeedableRng as _, rngs::ChaCha8Rng};

    const ALPHA: f64 = 0.05;

    #[test]
    fn mcnemar_needs_more_pairs_than_the_normal_formula_promises() {
        // (only B, only A, pairs that the exact power of 80 % takes, pairs by the normal formula of Connor 1987).
        for (only_b, only_a, exact, normal) in [(0.10, 0.02, 153, 145), (0.15, 0.05, 168, 155), (0.20, 0.05, 92, 85)] {
            assert!(mcnemar_power(exact, only_a, only_b, ALPHA) >= 0.8, "{only_b} {only_a}");
            assert!(mcnemar_power(exact - 1, only_a, only_b, ALPHA) < 0.8, "{only_b} {only_a}");
            assert!(mcnemar_power(normal, only_a, only_b, ALPHA) < 0.8, "{only_b} {only_a}");
        }
    }

    #[test]
    fn repetitions_help_until_the_cases_are_the_limit() {
        let visible = |repeats: u64, between: f64| {
            smallest_visible_difference(40, Spread { repeats, within: 0.08, between }, 0.8, ALPHA).expect("enough")
        };
        let found = [1, 3, 5, 10, 30].map(|repeats| (visible(repeats, 0.0), visible(repeats, 0.01)));
        for (two, repeats) in found.windows(2).zip([1, 3, 5, 10]) {
            assert!(two[0].0 > two[1].0 && two[0].1 > two[1].1, "{repeats}: {found:?}");
        }
        // Single repetitions of binary outcomes vary by their rate alone.
        assert!(found.iter().all(|(suite, unseen)| suite <= unseen) && found[1].0 < found[1].1, "{found:?}");
        // Two and a half standard errors of a mean over 40 cases with that variance, whatever the repetitions.
        assert!(found[4].1 > 2.8 * (0.01_f64 / 40.0).sqrt(), "{found:?}");
        let none = Spread { repeats: 0, within: 0.08, between: 0.0 };
        assert_eq!(smallest_visible_difference(40, none, 0.8, ALPHA), None);
        assert_eq!(
            smallest_visible_difference(5, Spread { repeats: 50, ..none }, 0.8, ALPHA),
            None,
            "five show nothing"
        );
    }

    #[test]
    fn what_is_promised_for_several_repetitions_is_seen_four_times_in_five_by_the_sign_flip_test() {
        const RUNS: u64 = 400;
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        let plans =
            [(6, 3, 0.91), (8, 3, 0.95), (10, 1, 0.91), (10, 3, 0.91), (12, 3, 0.95), (20, 3, 0.8), (20, 5, 0.9)];
        let more = [(12, 20, 0.91), (40, 2, 0.99), (210, 1, 0.95)];
        for (cases, repeats, rate) in plans.into_iter().chain(more) {
            for level in [ALPHA, ALPHA / 6.0] {
                for between in [0.0, 0.01] {
                    let spread = Spread { repeats, within: rate * (1.0 - rate), between };
                    let Some(visible) = smallest_visible_difference(cases, spread, 0.8, level) else { continue };
                    let mut drawn = |rate: f64| (0..repeats).filter(|_| rng.random_bool(rate)).count() as f64;
                    let mut seen = 0;
                    for run in 0..RUNS {
                        let own = |case: u64| between.sqrt() * if (case + run).is_multiple_of(2) { 1.0 } else { -1.0 };
                        let after = |case| (rate - visible + own(case)).clamp(0.0, 1.0);
                        let lost = (0..cases).map(|case| (drawn(after(case)) - drawn(rate)) / repeats as f64);
                        let lost: Vec<f64> = lost.collect();
                        let tested = PairedShift::new(&lost, Some(repeats), run);
                        seen += u64::from(tested.is_some_and(|tested| tested.p() <= level));
                    }
                    // Three standard errors of a share of 80 % in 400.
                    assert!(
                        seen * 100 >= 74 * RUNS,
                        "{cases} x {repeats}, {rate}, {level}, {between}: {visible} {seen}"
                    );
                    assert!(seen * 100 <= 97 * RUNS, "{cases} x {repeats}, {rate}, {level}: {visible} {seen}");
                }
            }
        }
    }

    #[test]
    fn a_shift_of_times_that_is_promised_is_seen_four_times_in_five_by_the_signed_rank_test() {
        const RUNS: u32 = 1_000;
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        for level in [ALPHA, ALPHA / 2.0, ALPHA / 11.0] {
            for n in [6_u64, 8, 9, 10, 12, 15, 30].into_iter().filter(|n| *n >= fewest_cases(level)) {
                let shift = smallest_visible_shift(n, 0.8, level).expect("enough");
                let mut seen = 0;
                let mut drawn =
                    || -> Vec<f64> { (0..n).map(|_| normal_quantile(rng.random_range(1e-9..1.0))).collect() };
                for _ in 0..RUNS {
                    // The deviation is estimated from values of another comparison.
                    let before = drawn();
                    let mean = before.iter().sum::<f64>() / n as f64;
                    let squares: f64 = before.iter().map(|value| (value - mean).powi(2)).sum();
                    let shift = shift * (squares / (n as f64 - 1.0)).sqrt();
                    let values: Vec<f64> = drawn().iter().map(|value| value + shift).collect();
                    seen += u32::from(shift_p(&values).is_some_and(|p| p <= level));
                }
                assert!((0.76..0.90).contains(&(f64::from(seen) / f64::from(RUNS))), "{n} {level}: {shift} {seen}");
            }
        }
        assert_eq!(smallest_visible_shift(5, 0.8, ALPHA), None);
    }

    #[test]
    fn a_point_gate_passes_and_refuses_by_luck() {
        // Observed rate of 0.95 or more: at most 1 failure of 20, 2 of 40.
        let passes = |failures, n, rate: f64| binomial_cdf(failures, n, 1.0 - rate);
        assert!((passes(1, 20, 0.90) - 0.39).abs() < 0.005 && (passes(2, 40, 0.90) - 0.22).abs() < 0.005);
        assert!((1.0 - passes(2, 40, 0.95) - 0.32).abs() < 0.005);
    }

    #[test]
    fn how_often_an_invariant_gate_catches_a_defect_and_blocks_a_good_agent() {
        let blocks = |n, rate: f64| 1.0 - binomial_cdf(0, n, 1.0 - rate);
        for (n, rate, expected) in [(20, 0.9, 0.88), (40, 0.9, 0.985), (20, 0.95, 0.64), (40, 0.95, 0.87)] {
            assert!((blocks(n, rate) - expected).abs() < 0.005, "{n} {rate}");
        }
        assert!((blocks(60, 0.999) - 0.058).abs() < 0.0005);
    }

    #[test]
    fn power_at_the_null_is_at_most_the_level() {
        for pairs in [5, 20, 60, 150] {
            assert!(mcnemar_power(pairs, 0.1, 0.1, ALPHA) <= 0.05, "{pairs}");
        }
        assert!(mcnemar_power(5, 0.0, 1.0, ALPHA) < 1e-12, "five discordant pairs can never show anything");
        assert!(mcnemar_power(6, 0.0, 1.0, ALPHA) > 1.0 - 1e-9, "six can");
    }

    #[test]
    fn one_six_and_eleven_rows_need_six_eight_and_nine_cases() {
        assert_eq!([1.0, 6.0, 11.0].map(|rows| fewest_cases(ALPHA / rows)), [6, 8, 9]);
        for rows in 1..40 {
            let (alpha, n) = (ALPHA / f64::from(rows), fewest_cases(ALPHA / f64::from(rows)));
            assert!(mcnemar_exact(0, n).is_some_and(|p| p <= alpha), "{rows}");
            assert!(mcnemar_exact(0, n - 1).is_some_and(|p| p > alpha), "{rows}");
        }
    }

    #[test]
    fn a_stricter_level_shows_less() {
        for (repeats, between) in [(1, 0.0), (5, 0.01)] {
            let spread = Spread { repeats, within: 0.02, between };
            let at = |rows: f64| smallest_visible_difference(40, spread, 0.8, ALPHA / rows).expect("some");
            assert!(at(1.0) < at(6.0) && at(6.0) < at(11.0), "{repeats}");
        }
    }

    #[test]
    fn the_smallest_visible_difference_shrinks_with_the_pairs_and_is_just_visible() {
        let least = |pairs: u64, only_a: f64| {
            smallest_gain((pairs, 1.0 - 2.0 * only_a), |gain| (only_a, only_a + gain), 0.8, ALPHA)
        };
        let gains: Vec<f64> = [20, 40, 153].iter().map(|pairs| least(*pairs, 0.02).expect("some")).collect();
        assert!(gains[0] > gains[1] && gains[1] > gains[2], "{gains:?}");
        assert!((gains[2] - 0.08).abs() < 0.001, "{gains:?}");
        assert_eq!(least(5, 0.0), None);
    }
}

//! Turn times on both sides, paired by case: log ratios of case medians, so that an estimate is a factor.

use super::pairing::Pair;
use super::rates::{POWER, variance};
use super::summary::CaseFigures;
use crate::stats::percent::MOST_CHANGE;
use crate::stats::power::smallest_visible_shift;
use crate::stats::quantile;
use crate::stats::signed_rank::{hodges_lehmann, shift_p};

/// How many times as slow a turn without an answer counts, as a logarithm: more than any two answers differ.
const NO_ANSWER: f64 = 13.8;

/// The times of both sides, paired.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Times {
    /// ln(B / A) for each case that was timed on both sides; a median turn without an answer is slower than any other.
    pub ratios: Vec<f64>,
    /// Medians over the cases, in seconds, under A and under B; `None` for that of a turn without an answer.
    pub medians: (Option<f64>, Option<f64>),
    /// Cases whose median turn got no answer on one side or both.
    pub unanswered: u64,
}

/// Pairs the median turn times.
pub(super) fn times(pairs: &[Pair<'_>]) -> Times {
    let mut found = Times::default();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for pair in pairs {
        let run = pair.rows.iter().filter(|(a, b)| a.trials > 0 && b.trials > 0 && a.is_timed() && b.is_timed());
        let medians: Vec<(u64, u64)> = run.filter_map(|(a, b)| medians_of(a, b, pair.logged)).collect();
        if medians.is_empty() {
            continue;
        }
        // A time of 0 has no logarithm: the clock's own step stands for it.
        let log = |micros: u64| if micros == u64::MAX { f64::INFINITY } else { (micros.max(1) as f64).ln() };
        let mean = |logs: f64| logs / medians.len() as f64;
        let one = mean(medians.iter().map(|(a, _)| log(*a)).sum());
        let other = mean(medians.iter().map(|(_, b)| log(*b)).sum());
        let ratio = other - one;
        found.unanswered += u64::from(!ratio.is_finite());
        found.ratios.push(match ratio {
            // Of two sides without an answer, none is slower.
            _ if ratio.is_nan() || ratio.abs() < 1e-12 => 0.0,
            _ if ratio.is_infinite() => NO_ANSWER.copysign(ratio),
            _ => ratio,
        });
        ours.push(one.exp() / 1e6);
        theirs.push(other.exp() / 1e6);
    }
    found.medians = (median(&mut ours), median(&mut theirs));
    found
}

/// The median times of a case under A and under B, over the repetitions that are compared, in microseconds, `u64::MAX` for that
/// of a turn without an answer; `None` where they have none in common, or one did not record them.
fn medians_of(a: &CaseFigures, b: &CaseFigures, logged: bool) -> Option<(u64, u64)> {
    if a.times.is_empty() || b.times.is_empty() {
        let has_times = |one: &CaseFigures| one.usage.as_ref().is_some_and(|usage| !usage.turns_us.is_empty());
        let of = |one: &CaseFigures| one.turn_us.or_else(|| has_times(one).then_some(u64::MAX));
        return of(a).zip(of(b));
    }
    let (mut ours, mut theirs) = a.paired_times(b, logged)?;
    let of = |times: &mut [u64]| {
        times.sort_unstable();
        quantile::median(times)
    };
    of(&mut ours).zip(of(&mut theirs))
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let middle = f64::midpoint(*values.get(n.checked_sub(1)? / 2)?, values[n / 2]);
    middle.is_finite().then_some(middle)
}

impl Times {
    /// The two-sided p-value of the signed-rank test; `None` without discordance.
    pub(super) fn test(&self) -> Option<f64> {
        shift_p(&self.ratios)
    }

    /// How much longer B takes, as a share of A's time (Hodges and Lehmann): 0.1 is ten per cent slower.
    pub(super) fn change(&self) -> Option<f64> {
        hodges_lehmann(&self.ratios, 0.05).map(|found| found.value.exp_m1().min(MOST_CHANGE))
    }

    /// The interval of the change at the two-sided level `alpha`.
    pub(super) fn interval(&self, alpha: f64) -> Option<(f64, f64)> {
        let (low, high) = hodges_lehmann(&self.ratios, alpha)?.interval?;
        Some((low.exp_m1().min(MOST_CHANGE), high.exp_m1().min(MOST_CHANGE)))
    }

    /// The smallest slowdown that would have been seen four times in five at the two-sided level `alpha`; `None` when
    /// the cases are too few, when no case differs and nothing tells how much they vary, and beside cases without an answer,
    /// which differ by no known amount.
    pub(super) fn visible(&self, alpha: f64) -> Option<f64> {
        let shift = smallest_visible_shift(self.ratios.len() as u64, POWER, alpha)?;
        let visible = (shift * variance(&self.ratios)?.sqrt()).exp_m1();
        (self.unanswered == 0 && visible > 0.0 && visible < MOST_CHANGE).then_some(visible)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{pairing::pair, sample::summary};
    use super::*;
    use rand::{RngExt as _, SeedableRng as _, rngs::ChaCha8Rng};

    #[test]
    fn an_agent_that_is_quick_in_most_cases_and_hangs_in_a_quarter_is_not_shown_to_be_quicker() {
        let quick: Vec<f64> = (0..15).map(|case| -1.5 - f64::from(case) * 0.01).collect();
        let ratios = [quick, vec![NO_ANSWER; 5]].concat();
        let found = Times { ratios, ..Times::default() };
        assert!(found.test().is_some_and(|p| p > 0.05), "{:?}", found.test());
        assert!(found.interval(0.05).is_some_and(|(_, high)| high > 1.0), "{:?}", found.interval(0.05));
    }

    #[test]
    fn no_slowdown_is_said_to_have_been_seen_beside_cases_without_an_answer() {
        let ratios: Vec<f64> =
            (0..24).map(|case| if case % 2 == 0 { NO_ANSWER } else { -0.69 - f64::from(case) / 1e3 }).collect();
        let found = Times { ratios: ratios.clone(), unanswered: 12, ..Times::default() };
        assert_eq!(found.visible(0.05), None);
        let answered = ratios.into_iter().filter(|ratio| *ratio < 0.0).collect();
        assert!(Times { ratios: answered, ..Times::default() }.visible(0.05).is_some());
    }

    #[test]
    fn a_slowdown_that_is_said_to_be_seen_is_seen_four_times_in_five_by_another_comparison() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for cases in [6, 8, 10, 15, 30] {
            let mut drawn = |slower: f64| {
                // The sum of twelve is near the normal distribution, of variance 1.
                let mut ratio = || slower + 0.2 * ((0..12).map(|_| rng.random_range(0.0..1.0)).sum::<f64>() - 6.0);
                Times { ratios: (0..cases).map(|_| ratio()).collect(), ..Times::default() }
            };
            let mut seen = 0;
            for _ in 0..400 {
                let visible = drawn(0.0).visible(0.05).expect("enough");
                seen += u32::from(drawn(visible.ln_1p()).test().is_some_and(|p| p <= 0.05));
            }
            assert!(seen >= 300, "{cases} cases: {seen} of 400");
        }
    }

    #[test]
    fn log_ratios_agree_with_the_vector() {
        let ratios = vec![0.5, 0.6, -0.15, 1.2, 0.7, -0.1, 1.5, 0.8, 0.45, 0.9];
        let found = Times { ratios, ..Times::default() };
        assert!((found.test().expect("discordance") - 0.009_765_625).abs() < 1e-12);
        assert!((found.change().expect("values") - 0.65_f64.exp_m1()).abs() < 1e-9);
        let (low, high) = found.interval(0.05).expect("enough");
        assert!((low - 0.25_f64.exp_m1()).abs() < 1e-9 && (high - 1.0_f64.exp_m1()).abs() < 1e-9);
    }

    #[test]
    fn a_case_without_an_answer_is_slower_than_any_other() {
        let rows = [("one", 1, 1), ("two", 1, 1)];
        let (mut a, mut b) = (summary("a", &rows), summary("b", &rows));
        (b.cases[0].turn_us, b.cases[0].usage) = (None, None);
        assert_eq!(times(&pair(&a, &b).pairs).ratios.len(), 1, "an older build recorded no times");
        for (case, time) in [(0, u64::MAX), (1, 4_000_000)] {
            a.cases[case].times = [(1, vec![2_000_000])].into();
            b.cases[case].times = [(1, vec![time])].into();
        }
        let found = times(&pair(&a, &b).pairs);
        assert_eq!((found.ratios.len(), found.unanswered), (2, 1));
        assert!((found.ratios[0] - NO_ANSWER).abs() < 1e-9 && (found.ratios[1] - 2.0_f64.ln()).abs() < 1e-9);
        assert_eq!((found.medians.0.map(f64::round), found.medians.1), (Some(2.0), None), "one of two got no answer");
        assert_eq!(found.change(), Some(MOST_CHANGE));
        let back = times(&pair(&b, &a).pairs);
        assert!((back.ratios[0] + NO_ANSWER).abs() < 1e-9);
        let neither = times(&pair(&b, &b).pairs);
        assert_eq!((neither.test(), neither.unanswered), (None, 1));
    }

    #[test]
    fn the_median_of_two_is_their_mean_and_a_repetition_of_one_side_counts_nowhere() {
        let (mut a, mut b) = (summary("a", &[("one", 2, 2)]), summary("b", &[("one", 3, 3)]));
        a.cases[0].times = [(1, vec![1_000_000]), (2, vec![1_200_000])].into();
        b.cases[0].times = [(1, vec![1_000_000]), (2, vec![10_200_000]), (3, vec![90_000_000])].into();
        let found = times(&pair(&a, &b).pairs);
        let near = |median: Option<f64>, wanted: f64| median.is_some_and(|median| (median - wanted).abs() < 1e-9);
        assert!(near(found.medians.0, 1.1) && near(found.medians.1, 5.6), "{:?}", found.medians);
        b.cases[0].times.insert(2, vec![u64::MAX]);
        let found = times(&pair(&a, &b).pairs);
        assert_eq!((found.medians.1, found.unanswered), (None, 1), "a median between a time and no answer is none");
        let text = b.to_text().expect("JSON");
        assert!(text.contains(r#""times":{"1":[1000000],"2":[null],"3":[90000000]}"#), "{text}");
        assert_eq!(
            crate::compare::Summary::parse(&text).expect("the text of a baseline").cases[0].times,
            b.cases[0].times
        );
    }

    #[test]
    fn a_case_without_a_repetition_in_common_got_its_answers() {
        let (mut a, mut b) = (summary("a", &[("one", 1, 1)]), summary("b", &[("one", 1, 1)]));
        a.cases[0].times = [(1, vec![1_000_000])].into();
        b.cases[0].times = [(2, vec![1_000_000])].into();
        let found = times(&pair(&a, &b).pairs);
        assert_eq!((found.ratios.len(), found.unanswered), (0, 0));
    }

    #[test]
    fn equal_times_have_no_test() {
        let run = summary("a", &[("one", 1, 1)]);
        assert_eq!(times(&pair(&run, &run).pairs).test(), None);
    }
}

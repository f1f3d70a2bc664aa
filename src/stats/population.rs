//! Bounds on the mean of rates of equal weight: of cases not seen yet, or of conversations.
//!
//! `s` is the sum of the `G` cases' own rates. The lower bound is the `p` for which `P(Bin(G, p) >= s) = alpha`, with the
//! tail interpolated log-linearly between the integers around `s`. If every case is perfect, it is `alpha^(1/G)`, its
//! maximum. Repetitions of a case make its own rate more precise, but add no case. There is no proof without a constant.
//! Searches over groups of two-point behaviours found a wrong bound in at most .0494 of runs (methodology, 2026-11-23).

use super::ALPHA;
use super::beta::ln_lower;

/// `ln P(Bin(G, p) >= s)` for `0 < p < 1`, log-linear between integers.
fn ln_tail(s: f64, cases: u64, p: f64) -> f64 {
    // A sum of rates is a whole number but for its last digits.
    let whole = (s + 1e-9).floor();
    let part = (s - whole).max(0.0);
    let at = |k: f64| {
        if k <= 0.0 {
            0.0
        } else if k > cases as f64 {
            f64::NEG_INFINITY
        } else {
            ln_lower(k, cases as f64 - k + 1.0, p)
        }
    };
    if part > 0.0 { (1.0 - part) * at(whole) + part * at(whole + 1.0) } else { at(whole) }
}

/// Whether the lower bound at level `1 - alpha` reaches `p`, for `0 < p < 1`.
pub(crate) fn reaches(s: f64, cases: u64, p: f64, alpha: f64) -> bool {
    cases > 0 && s > 0.0 && ln_tail(s.min(cases as f64), cases, p) <= alpha.ln()
}

/// One-sided lower bound at level `1 - alpha` on the mean rate of unseen cases. `s` is the sum of the rates of
/// `cases` cases. 0 without a success.
pub(crate) fn lower_at(s: f64, cases: u64, alpha: f64) -> f64 {
    if cases == 0 || s <= 0.0 {
        return 0.0;
    }
    super::halved(0.0, 1.0, |middle| reaches(s, cases, middle, alpha)).0
}

/// One-sided upper bound at level `1 - alpha`, the mirror of [`lower_at`].
pub(crate) fn upper_at(s: f64, cases: u64, alpha: f64) -> f64 {
    1.0 - lower_at(cases as f64 - s, cases, alpha)
}

/// The smallest number of cases that shows a mean rate of at least `target`, if their rates are `missing` below 1 in total;
/// `None` if no number does.
pub(crate) fn cases_for(missing: f64, target: f64) -> Option<u64> {
    super::fewest(|cases| cases as f64 > missing && lower_at(cases as f64 - missing, cases, ALPHA) >= target)
}

#[cfg(test)]
mod tests {
    use super::super::rate::lower_bound;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn five_cases_agree_with_the_vectors() {
        let rows = [
            (5.0, 0.5493),
            (4.975, 0.5448),
            (4.75, 0.5024),
            (4.5, 0.4517),
            (4.25, 0.3980),
            (4.0, 0.3426),
            (3.5, 0.2680),
        ];
        for (s, expected) in rows {
            let found = lower_at(s, 5, 0.05);
            assert!((found - expected).abs() < 5.1e-5, "{s}: {found}");
        }
    }

    #[test]
    fn a_target_needs_so_many_cases() {
        assert_eq!([0.95, 0.90, 0.80].map(|target| cases_for(0.0, target)), [Some(59), Some(29), Some(14)]);
        assert_eq!(cases_for(1.0, 0.95), Some(93), "a whole case lost");
        assert_eq!(cases_for(0.0, 1.0), None);
    }

    #[test]
    fn whole_cases_are_clopper_pearson() {
        for (s, cases) in [(0, 7), (3, 7), (7, 7), (38, 40)] {
            assert!(
                (lower_at(f64::from(s), u64::from(cases as u32), 0.05) - lower_bound(s as u64, cases as u64)).abs()
                    < 1e-9
            );
        }
    }

    proptest! {
        #[test]
        fn more_successes_never_lower_a_bound_and_none_exceeds_all_cases_perfect(
            shares in proptest::collection::vec(0.0..=1.0_f64, 1..61), at in 0_usize..60, more in 0.0..=1.0_f64,
        ) {
            let cases = shares.len() as u64;
            let s: f64 = shares.iter().sum();
            let raised = s + (1.0 - shares[at % shares.len()]) * more;
            prop_assert!(lower_at(raised, cases, 0.05) >= lower_at(s, cases, 0.05) - 1e-9);
            prop_assert!(upper_at(raised, cases, 0.05) >= upper_at(s, cases, 0.05) - 1e-9);
            prop_assert!(lower_at(raised, cases, 0.05) <= 0.05_f64.powf(1.0 / cases as f64) + 1e-12);
            prop_assert!(lower_at(s, cases, 0.05) <= s / cases as f64 + 1e-9);
            prop_assert!(lower_at(s + 1.0, cases + 1, 0.05) >= lower_at(s, cases, 0.05) - 1e-9, "a perfect case more");
        }
    }
}

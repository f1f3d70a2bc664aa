//! Evidence on a rate that may be examined at any time: the truncated-Beta mixture e-process, and its interval.
//!
//! `E+` is the mean likelihood ratio, over rates above `target - margin`, against that boundary: whatever the true
//! rate at or below the boundary, it exceeds `1/alpha` *ever* with probability at most `alpha` (Ville 1939; mixture of
//! Robbins 1970). `E-` mirrors it below the target. Both presume that the next unit succeeds with at most (at least)
//! the boundary's probability given the past: true when scenarios are drawn with replacement, and at the ends of
//! complete passes over a suite, and false in the middle of a pass. [`super::stopping`] keeps to the ends of passes.

use super::beta::{ln_beta, ln_lower, ln_upper};

/// The prior's `a` and `b`: Beta(1/2, 1/2), of Jeffreys, and of Krichevsky and Trofimov.
const PRIOR: f64 = 0.5;

/// A two-sided sequential test of a rate against a target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mixture {
    target: f64,
    boundary: f64,
    alpha_pass: f64,
    alpha_fail: f64,
}

/// Why no sequential test can be designed.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub(crate) enum DesignError {
    /// A boundary leaves the open interval between 0 and 1. `margin`: how far below the target a rate may be that passes.
    #[error("a sequential test needs 0 < target - margin <= target < 1, not target {target} with margin {margin}")]
    Boundary { target: f64, margin: f64 },
    /// An error probability leaves the open interval between 0 and 1.
    #[error("an error probability must lie between 0 and 1, not be {alpha}")]
    Alpha { alpha: f64 },
}

impl Mixture {
    /// A test that passes a rate of `target - margin` or less with probability at most `alpha_pass`, and fails one of
    /// `target` or more with probability at most `alpha_fail`, however often it is looked at.
    pub(crate) fn new(target: f64, margin: f64, alpha_pass: f64, alpha_fail: f64) -> Result<Self, DesignError> {
        let boundary = target - margin;
        if !(boundary > 0.0 && margin >= 0.0 && target < 1.0) {
            return Err(DesignError::Boundary { target, margin });
        }
        match [alpha_pass, alpha_fail].into_iter().find(|alpha| !(*alpha > 0.0 && *alpha < 1.0)) {
            Some(alpha) => Err(DesignError::Alpha { alpha }),
            None => Ok(Self { target, boundary, alpha_pass, alpha_fail }),
        }
    }

    /// `ln E+` after `s` successes and `f` failures: the evidence that the rate is above `target - margin`.
    pub(crate) fn ln_for(&self, s: u64, f: u64) -> f64 {
        let tail = |s: f64, f: f64| ln_upper(s + PRIOR, f + PRIOR, self.boundary);
        mixture(s as f64, f as f64, PRIOR, self.boundary) + tail(s as f64, f as f64) - tail(0.0, 0.0)
    }

    /// `ln E-` after `s` successes and `f` failures: the evidence that the rate is below the target.
    pub(crate) fn ln_against(&self, s: u64, f: u64) -> f64 {
        let tail = |s: f64, f: f64| ln_lower(s + PRIOR, f + PRIOR, self.target);
        mixture(s as f64, f as f64, PRIOR, self.target) + tail(s as f64, f as f64) - tail(0.0, 0.0)
    }

    /// Whether the evidence suffices to pass: `E+ >= 1 / alpha_pass`.
    pub(crate) fn passes(&self, s: u64, f: u64) -> bool {
        self.ln_for(s, f) >= -self.alpha_pass.ln()
    }

    /// Whether the evidence suffices to fail: `E- >= 1 / alpha_fail`.
    pub(crate) fn fails(&self, s: u64, f: u64) -> bool {
        self.ln_against(s, f) >= -self.alpha_fail.ln()
    }

    /// The rate above which it passes: the target less the margin.
    pub(crate) fn boundary(&self) -> f64 {
        self.boundary
    }
}

/// `ln` of the mean likelihood ratio against the rate `m`, over all rates under a Beta(`prior`, `prior`).
fn mixture(s: f64, f: f64, prior: f64, m: f64) -> f64 {
    // 0 ln 0 is 0: a rate of 1 is at odds with failures only.
    let log = |count: f64, value: f64| if count > 0.0 { count * value } else { 0.0 };
    ln_beta(s + prior, f + prior) - ln_beta(prior, prior) - log(s, m.ln()) - log(f, (-m).ln_1p())
}

/// The rates that `s` successes and `f` failures do not reject at level `1 - alpha`, under any stopping rule: those against
/// which the untruncated mixture stays below `1/alpha` (Robbins 1970, Krichevsky and Trofimov 1981), by bisection.
#[cfg(test)]
pub(crate) fn interval_at_stopping(s: u64, f: u64, alpha: f64) -> (f64, f64) {
    let (s, f) = (s as f64, f as f64);
    let inside = |m: f64| mixture(s, f, PRIOR, m) < -alpha.ln();
    if s + f <= 0.0 {
        return (0.0, 1.0);
    }
    let middle = s / (s + f);
    let edge = |outer: f64| {
        let (mut kept, mut left_out) = (middle, outer);
        for _ in 0..200 {
            let between = f64::midpoint(kept, left_out);
            if inside(between) {
                kept = between;
            } else {
                left_out = between;
            }
        }
        kept
    };
    (if s > 0.0 { edge(0.0) } else { 0.0 }, if f > 0.0 { edge(1.0) } else { 1.0 })
}

/// The one-sided lower bound at level `1 - alpha` that holds at any time: all rates up to it are rejected by
/// the `E+` against them. A test of [`Mixture`] passes exactly when this bound reaches its boundary.
pub(crate) fn lower_at_stopping(s: u64, f: u64, alpha: f64) -> f64 {
    if s == 0 {
        return 0.0;
    }
    let rejects = |m: f64| {
        let tail = |s: f64, f: f64| ln_upper(s + PRIOR, f + PRIOR, m);
        let (s, f) = (s as f64, f as f64);
        mixture(s, f, PRIOR, m) + tail(s, f) - tail(0.0, 0.0) >= -alpha.ln()
    };
    super::halved(0.0, s as f64 / (s + f) as f64, rejects).0
}

/// The mirror image of [`lower_at_stopping`]: all rates from it on are rejected by the `E-` against them.
pub(crate) fn upper_at_stopping(s: u64, f: u64, alpha: f64) -> f64 {
    1.0 - lower_at_stopping(f, s, alpha)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn strict() -> Mixture {
        Mixture::new(0.95, 0.0, 0.05, 0.05).expect("a valid design")
    }

    #[test]
    fn both_evidences_agree_with_scipy_and_mpmath() {
        let rows = [
            (40, 0, 1.529_700, -3.379_816),
            (59, 0, 2.340_232, -3.723_474),
            (38, 2, -0.942_072, -2.544_608),
            (30, 10, -2.884_884, 7.079_819),
            (0, 3, -1.934_536, 7.979_016),
        ];
        for (s, f, above, below) in rows {
            let found = (strict().ln_for(s, f), strict().ln_against(s, f));
            assert!((found.0 - above).abs() < 1e-6 && (found.1 - below).abs() < 1e-6, "({s}, {f}): {found:?}");
        }
    }

    #[test]
    fn without_margin_it_takes_74_straight_successes_and_65_with_half_the_prior_at_certainty() {
        assert_eq!((1..200).find(|n| strict().passes(*n, 0)), Some(74));
        let half_at_one = |n: u64| 0.5 * strict().ln_for(n, 0).exp() + 0.5 * 0.95_f64.powf(-(n as f64));
        assert_eq!((1..200).find(|n| half_at_one(*n) >= 20.0), Some(65));
    }

    #[test]
    fn the_interval_at_stopping_agrees_with_the_reference() {
        let rows = [(40, 0, 0.873_373, 1.0), (38, 2, 0.766_106, 0.998_476)];
        for (s, f, low, high) in rows {
            let found = interval_at_stopping(s, f, 0.05);
            assert!((found.0 - low).abs() < 1e-6 && (found.1 - high).abs() < 1e-6, "({s}, {f}): {found:?}");
        }
        assert_eq!(interval_at_stopping(0, 0, 0.05), (0.0, 1.0));
    }

    #[test]
    fn a_run_that_may_stop_at_any_time_bounds_less_than_a_planned_one() {
        let bound = lower_at_stopping(74, 0, 0.05);
        assert!((0.95..super::super::lower_bound(74, 74)).contains(&bound), "{bound}");
        assert_eq!((lower_at_stopping(0, 7, 0.05), upper_at_stopping(7, 0, 0.05)), (0.0, 1.0));
        assert_eq!((lower_at_stopping(0, 0, 0.05), upper_at_stopping(0, 0, 0.05)), (0.0, 1.0));
    }

    #[test]
    fn a_uniform_prior_gives_the_confidence_sequence_criterion_of_pkhuong() {
        // ln b(n, p, s) + ln(n + 1), which is the negative of the uniform mixture.
        assert!((-mixture(80.0, 20.0, 1.0, 0.95) - -11.672_354).abs() < 1e-6);
    }

    #[test]
    fn impossible_designs_are_refused_with_the_reason() {
        for (target, margin) in [(1.0, 0.0), (0.95, 0.95), (0.95, -0.1), (f64::NAN, 0.0)] {
            let error = Mixture::new(target, margin, 0.05, 0.05).expect_err("not a design");
            assert!(error.to_string().contains("target"), "{error}");
        }
        assert_eq!(Mixture::new(0.9, 0.0, 0.05, 0.0), Err(DesignError::Alpha { alpha: 0.0 }));
    }

    #[test]
    fn thousands_of_units_leave_both_evidences_finite() {
        for (s, f) in [(0, 20_000), (20_000, 0), (10_000, 10_000)] {
            assert!(strict().ln_for(s, f).is_finite() && strict().ln_against(s, f).is_finite(), "({s}, {f})");
        }
    }

    proptest! {
        #[test]
        fn a_success_instead_of_a_failure_never_worsens_the_evidence(s in 0_u64..300, f in 1_u64..60) {
            let rule = Mixture::new(0.95, 0.05, 0.05, 0.05).expect("a valid design");
            prop_assert!(rule.ln_for(s + 1, f - 1) >= rule.ln_for(s, f));
            prop_assert!(rule.ln_against(s + 1, f - 1) <= rule.ln_against(s, f));
            prop_assert!(rule.ln_for(s + 1, f) >= rule.ln_for(s, f));
        }

        #[test]
        fn a_test_passes_when_the_bound_reaches_its_boundary_and_fails_when_the_other_misses_its_target(
            s in 0_u64..300, f in 0_u64..60, target in 0.02..0.98_f64, margin in 0.0..0.5_f64,
        ) {
            let margin = margin * target;
            let rule = Mixture::new(target, margin, 0.05, 0.02).expect("a valid design");
            let (low, high) = (lower_at_stopping(s, f, 0.05), upper_at_stopping(s, f, 0.02));
            prop_assert!(s + f == 0 || (low <= s as f64 / (s + f) as f64 && s as f64 / (s + f) as f64 <= high));
            // Not asked on the very edge, where the last float decides.
            if (low - (target - margin)).abs() > 1e-9 {
                prop_assert_eq!(rule.passes(s, f), low >= target - margin);
            }
            if (high - target).abs() > 1e-9 {
                prop_assert_eq!(rule.fails(s, f), high < target);
            }
        }

        #[test]
        fn the_interval_encloses_the_rate_and_the_fixed_size_bounds(s in 0_u64..300, f in 0_u64..60) {
            prop_assume!(s + f > 0);
            let (low, high) = interval_at_stopping(s, f, 0.05);
            let rate = s as f64 / (s + f) as f64;
            prop_assert!(low <= rate && rate <= high);
            let exact = super::super::rate::interval(s, s + f);
            prop_assert!(low <= exact.0 + 1e-9 && high >= exact.1 - 1e-9, "optional stopping costs width");
        }
    }
}

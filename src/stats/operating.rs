//! Exact error rates and expected numbers of units of a stopping rule, by dynamic programming over failures.
//!
//! A rule is converted to whole numbers, one [`Look`] for each end of a pass, so plans can be compared before any call
//! is made. Other rules, such as fixed plans, can be written as looks too.

use super::first_of;
use super::stopping::{Decision, Rule};

/// One look at the units: the rule in whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub units: u64,
    /// Largest number of failures that passes here; `None` if none does.
    pub pass_at_most: Option<u64>,
    /// Smallest number of failures that fails here; `None` if none does.
    pub fail_at_least: Option<u64>,
    /// Smallest number of failures at which the rule gives up; `None` if it never does.
    pub give_up_at_least: Option<u64>,
}

/// The looks of `rule` at the ends of passes of `pass` units each, up to `max_units`.
pub(crate) fn looks(rule: &Rule, pass: u64, max_units: u64) -> Vec<Look> {
    let pass = pass.max(1);
    (1..=max_units / pass)
        .map(|number| {
            let units = number * pass;
            let at = |f: u64| rule.decide(units - f, f);
            // From no failure to all, decisions only go from Pass over Undecided and CannotPass to Fail.
            let first = |holds: &dyn Fn(Decision) -> bool| first_of(units, |f| holds(at(f)));
            let passing = first(&|decision| decision != Decision::Pass).unwrap_or(units + 1);
            Look {
                units,
                pass_at_most: passing.checked_sub(1),
                fail_at_least: first(&|decision| decision == Decision::Fail),
                give_up_at_least: first(&|decision| matches!(decision, Decision::CannotPass | Decision::Fail)),
            }
        })
        .collect()
}

/// Behaviour of a rule for units of one true rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Characteristics {
    /// Probability that it ever passes.
    pub pass: f64,
    /// Probability that it ever fails.
    pub fail: f64,
    /// Mean number of units; the last look is the end.
    pub expected_units: f64,
}

/// The exact operating characteristics of `looks` (ascending in units) for independent units of rate `p`.
pub(crate) fn characteristics(looks: &[Look], p: f64) -> Characteristics {
    let mut result = Characteristics { pass: 0.0, fail: 0.0, expected_units: 0.0 };
    // alive[f]: the probability of f failures so far without a decision.
    let mut alive = vec![1.0_f64];
    let mut units = 0;
    for look in looks {
        result.expected_units += alive.iter().sum::<f64>() * (look.units - units) as f64;
        while units < look.units {
            alive.push(0.0);
            for f in (0..alive.len()).rev() {
                alive[f] = alive[f] * p + if f > 0 { alive[f - 1] * (1.0 - p) } else { 0.0 };
            }
            units += 1;
        }
        for (f, mass) in (0_u64..).zip(alive.iter_mut()) {
            if look.pass_at_most.is_some_and(|most| f <= most) {
                result.pass += std::mem::take(mass);
            } else if look.fail_at_least.is_some_and(|least| f >= least) {
                result.fail += std::mem::take(mass);
            } else if look.give_up_at_least.is_some_and(|least| f >= least) {
                *mass = 0.0;
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::super::sequential::Mixture;
    use super::*;
    use rand::{RngExt as _, SeedableRng as _, rngs::ChaCha8Rng};

    fn mixture(margin: f64, alpha_fail: f64) -> Rule {
        Rule::Mixture(Mixture::new(0.95, margin, 0.05, alpha_fail).expect("a valid design"))
    }

    fn curtailed(units: u64, failures: u64) -> Rule {
        let evidence = Mixture::new(0.95, 0.0, 0.05, 0.05).expect("a valid design");
        Rule::Curtailed { units, failures, evidence: Some(evidence) }
    }

    fn near(found: f64, expected: f64, half_a_digit: f64) -> bool {
        (found - expected).abs() <= half_a_digit
    }

    #[test]
    fn the_published_operating_characteristics_come_out_exactly() {
        let looks = looks(&mixture(0.05, 0.05), 1, 200);
        let rows = [
            (0.5, 0.0, 1.0, 5.5, 0.05),
            (0.7, 0.0, 1.0, 14.0, 0.05),
            (0.8, 0.0, 1.0, 33.3, 0.05),
            (0.90, 0.035, 0.465, 146.0, 0.5),
            (0.95, 0.534, 0.016, 141.0, 0.5),
            (0.97, 0.921, 0.004, 90.0, 0.5),
            (0.99, 1.0, 0.0, 48.0, 0.5),
            (1.0, 1.0, 0.0, 36.0, 1e-9),
        ];
        for (p, pass, fail, calls, digit) in rows {
            let found = characteristics(&looks, p);
            let same = near(found.pass, pass, 5.1e-4)
                && near(found.fail, fail, 5.1e-4)
                && near(found.expected_units, calls, digit);
            assert!(same, "p {p}: {found:?}");
        }
    }

    #[test]
    fn a_variant_against_itself_is_wronged_no_more_often_than_stated() {
        let looks = looks(&mixture(0.05, 0.01), 1, 200);
        assert!(near(characteristics(&looks, 0.90).pass, 0.0352, 5e-5));
        assert!(near(characteristics(&looks, 0.95).fail, 0.0049, 5e-5));
        assert!(near(characteristics(&looks, 0.5).expected_units, 7.1, 0.05), "a broken agent dies early");
    }

    #[test]
    fn looking_again_and_again_at_a_fixed_bound_passes_far_too_often() {
        // Exact: a second enumeration, by binomial sums in whole numbers, gives the same digits.
        for (target, expected) in [(0.90, 0.1648), (0.80, 0.2072)] {
            let peeking: Vec<Look> = (1..=200)
                .map(|units| {
                    let reaches = |f: u64| super::super::lower_bound(units - f, units) >= target;
                    let pass_at_most = first_of(units, |f| !reaches(f)).and_then(|first| first.checked_sub(1));
                    Look { units, pass_at_most, fail_at_least: None, give_up_at_least: None }
                })
                .collect();
            let found = characteristics(&peeking, target).pass;
            assert!(near(found, expected, 5e-5), "{target}: {found}");
        }
    }

    #[test]
    fn walds_ratio_test_takes_the_calls_that_are_known_of_it() {
        // Bounds of +-ln 19; +0.0749013 for a success, -1.2039728 for a failure.
        let score = |units: u64, f: u64| 0.074_901_3 * (units - f) as f64 - 1.203_972_8 * f as f64;
        let bound = 19.0_f64.ln();
        let looks: Vec<Look> = (1..=1_000)
            .map(|units| Look {
                units,
                pass_at_most: first_of(units, |f| score(units, f) < bound).and_then(|first| first.checked_sub(1)),
                fail_at_least: first_of(units, |f| score(units, f) <= -bound),
                give_up_at_least: None,
            })
            .collect();
        for (p, calls) in [(0.90, 58.0), (0.97, 76.0), (1.0, 40.0)] {
            let found = characteristics(&looks, p).expected_units;
            assert!(near(found, calls, 0.5), "{p}: {found}");
        }
    }

    #[test]
    fn the_strict_plan_needs_59_and_is_lost_after_5_calls_of_a_weak_agent() {
        let looks = looks(&curtailed(59, 0), 1, 59);
        let perfect = characteristics(&looks, 1.0);
        assert!(near(perfect.pass, 1.0, 1e-12) && near(perfect.expected_units, 59.0, 1e-9), "{perfect:?}");
        let weak = characteristics(&looks, 0.8);
        assert!(near(weak.expected_units, 5.0, 0.005) && weak.pass < 1e-5, "{weak:?}");
        assert!(characteristics(&looks, 0.95).pass <= 0.05, "the plan keeps its level");
    }

    #[test]
    fn a_planned_sample_looked_at_between_passes_keeps_its_level_and_saves_calls_of_a_weak_agent() {
        // 124 units with two failures, in passes of 20: decided with 140 units at the latest.
        let looks = looks(&curtailed(124, 2), 20, 240);
        assert!(characteristics(&looks, 0.95).pass <= 0.05);
        let good = characteristics(&looks, 0.995);
        assert!(good.pass > 0.95 && good.expected_units <= 140.0, "{good:?}");
        let weak = characteristics(&looks, 0.80);
        assert!(weak.pass < 1e-9 && weak.fail > 0.2 && weak.expected_units < 25.0, "{weak:?}");
    }

    /// Whether `looks` pass the outcomes, which come in the order they ran.
    fn passes(looks: &[Look], mut outcome: impl FnMut(u64) -> bool) -> bool {
        let (mut units, mut f) = (0, 0);
        for look in looks {
            while units < look.units {
                f += u64::from(!outcome(units));
                units += 1;
            }
            if look.pass_at_most.is_some_and(|most| f <= most) {
                return true;
            }
            if look.fail_at_least.is_some_and(|least| f >= least) {
                return false;
            }
        }
        false
    }

    #[test]
    fn only_scenario_major_order_breaks_the_error_rate() {
        const RUNS: u32 = 2_000;
        // Ten scenarios of mean 0.90, which is not enough: nine perfect ones and a hopeless one, or all alike.
        let (split, alike) = ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0], [0.9; 10]);
        let each = looks(&mixture(0.05, 0.05), 1, 200);
        let at_ends = looks(&mixture(0.05, 0.05), 10, 200);
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let mut share = |run: &mut dyn FnMut(&mut ChaCha8Rng) -> bool| {
            f64::from((0..RUNS).map(|_| u32::from(run(&mut rng))).sum::<u32>()) / f64::from(RUNS)
        };
        let major = share(&mut |rng| passes(&each, |i| rng.random_bool(split[i as usize / 20])));
        assert!(near(major, 1.0, 0.0), "each scenario 20 times in a row: {major}");
        let drawn = share(&mut |rng| {
            passes(&each, |_| {
                let scenario = rng.random_range(0..10);
                rng.random_bool(split[scenario])
            })
        });
        assert!(drawn > 0.02 && drawn < 0.05, "scenarios drawn with replacement: {drawn}");
        for suite in [split, alike, [0.99, 0.99, 0.99, 0.99, 0.99, 0.99, 0.99, 0.99, 0.99, 0.09]] {
            let ends = share(&mut |rng| passes(&at_ends, |i| rng.random_bool(suite[i as usize % 10])));
            assert!(ends <= 0.035, "complete passes: {ends}");
        }
    }
}

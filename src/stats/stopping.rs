//! When to stop: rules that decide at the ends of complete passes over a suite, and their exact error rates.
//!
//! A [`Monitor`] takes whole passes, so the order within one cannot matter, and keeps its first decision for good: a
//! gate that has decided is not undone by passes that others still need. A stored run is judged by feeding its passes
//! to the same rule again. [`characteristics`] says beforehand how often a rule passes and fails a given rate, and
//! how many units it takes, by dynamic programming over the number of failures.

use super::sequential::Mixture;

/// What a rule says of the units so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The rate is shown to be high enough.
    Pass,
    /// The rate is shown to be below the target.
    Fail,
    /// Neither, and more units cannot lead to a pass.
    CannotPass,
    /// Neither so far.
    Undecided,
}

/// How a gate decides while units come in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// The mixture e-process: may decide at the end of any pass.
    Mixture(Mixture),
    /// A fixed plan for strict targets, cut short when it is lost.
    Curtailed {
        /// Units that the plan needs.
        units: u64,
        /// Failures among them that it allows.
        failures: u64,
        /// The test whose `E-` tells a failed target from a plan that is merely lost.
        evidence: Mixture,
    },
}

impl Rule {
    /// The decision after `s` successes and `f` failures, ignoring what was decided before.
    pub fn decide(&self, s: u64, f: u64) -> Decision {
        match self {
            Self::Mixture(mixture) if mixture.passes(s, f) => Decision::Pass,
            Self::Mixture(mixture) | Self::Curtailed { evidence: mixture, .. } if mixture.fails(s, f) => Decision::Fail,
            Self::Curtailed { failures, .. } if f > *failures => Decision::CannotPass,
            Self::Curtailed { units, .. } if s + f >= *units => Decision::Pass,
            Self::Mixture(_) | Self::Curtailed { .. } => Decision::Undecided,
        }
    }

    /// Whether `f` failures leave a way to pass within `max_units`: all other units being successes.
    pub fn can_pass(&self, f: u64, max_units: u64) -> bool {
        max_units.checked_sub(f).is_some_and(|s| self.decide(s, f) == Decision::Pass)
    }
}

/// A rule at work over the passes of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Monitor {
    rule: Rule,
    max_units: Option<u64>,
    seen: Seen,
    stopped: Option<(Decision, Seen)>,
}

/// What a monitor has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// Complete passes.
    pub passes: u64,
    /// Units that succeeded.
    pub successes: u64,
    /// Units that failed.
    pub failures: u64,
}

impl Monitor {
    /// A monitor that has seen nothing; with `max_units` it also stops when a pass is out of reach.
    pub fn new(rule: Rule, max_units: Option<u64>) -> Self {
        Self { rule, max_units, seen: Seen::default(), stopped: None }
    }

    /// Takes one complete pass and decides; units that were not measured are in neither number.
    pub fn end_of_pass(&mut self, successes: u64, failures: u64) -> Decision {
        self.seen.passes += 1;
        self.seen.successes += successes;
        self.seen.failures += failures;
        if self.stopped.is_none() {
            let decided = match self.rule.decide(self.seen.successes, self.seen.failures) {
                Decision::Undecided if self.is_lost() => Decision::CannotPass,
                other => other,
            };
            self.stopped = (decided != Decision::Undecided).then_some((decided, self.seen));
        }
        self.decision()
    }

    fn is_lost(&self) -> bool {
        self.max_units.is_some_and(|max| !self.rule.can_pass(self.seen.failures, max.max(self.seen.units())))
    }

    /// The decision that stands: the first one that was not `Undecided`.
    pub fn decision(&self) -> Decision {
        self.stopped.map_or(Decision::Undecided, |(decision, _)| decision)
    }

    /// What had been seen when the decision fell: figures and bounds of the gate belong to these units.
    pub fn at_decision(&self) -> Option<Seen> {
        self.stopped.map(|(_, seen)| seen)
    }

    /// All that was seen, also after the decision.
    pub fn seen(&self) -> Seen {
        self.seen
    }
}

impl Seen {
    /// Successes and failures together.
    pub fn units(&self) -> u64 {
        self.successes + self.failures
    }
}

/// One look at the units: the rule in whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Units at this look.
    pub units: u64,
    /// The most failures that pass here; `None` when nothing does.
    pub pass_at_most: Option<u64>,
    /// The fewest failures that fail here; `None` when nothing does.
    pub fail_at_least: Option<u64>,
    /// The fewest failures at which the rule gives up; `None` when it never does.
    pub give_up_at_least: Option<u64>,
}

/// The looks of `rule` at the ends of passes of `pass` units each, up to `max_units`.
pub fn looks(rule: &Rule, pass: u64, max_units: u64) -> Vec<Look> {
    let pass = pass.max(1);
    (1..=max_units / pass)
        .map(|number| {
            let units = number * pass;
            let at = |f: u64| rule.decide(units - f, f);
            // From no failure to all, decisions only go from Pass over Undecided and CannotPass to Fail.
            let first = |holds: &dyn Fn(Decision) -> bool| partition(units, &|f| holds(at(f)));
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

/// The first of `0..=last` for which `holds`, which holds for all after it.
fn partition(last: u64, holds: &dyn Fn(u64) -> bool) -> Option<u64> {
    let (mut low, mut high) = (0, last + 1);
    while low < high {
        let middle = u64::midpoint(low, high);
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    (low <= last).then_some(low)
}

/// What a rule does to units of one true rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Characteristics {
    /// Probability that it ever passes.
    pub pass: f64,
    /// Probability that it ever fails.
    pub fail: f64,
    /// Units that it takes on average, the last look being the end.
    pub expected_units: f64,
}

/// The exact operating characteristics of `looks` (ascending in units) for independent units of rate `p`.
pub fn characteristics(looks: &[Look], p: f64) -> Characteristics {
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
    use super::*;
    use proptest::prelude::*;
    use rand::{SeedableRng as _, rngs::ChaCha8Rng};

    fn mixture(margin: f64, alpha_fail: f64) -> Rule {
        Rule::Mixture(Mixture::new(0.95, margin, 0.05, alpha_fail).expect("a valid design"))
    }

    fn curtailed(units: u64, failures: u64) -> Rule {
        let evidence = Mixture::new(0.95, 0.0, 0.05, 0.05).expect("a valid design");
        Rule::Curtailed { units, failures, evidence }
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
                    let pass_at_most = partition(units, &|f| !reaches(f)).and_then(|first| first.checked_sub(1));
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
                pass_at_most: partition(units, &|f| score(units, f) < bound).and_then(|first| first.checked_sub(1)),
                fail_at_least: partition(units, &|f| score(units, f) <= -bound),
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
    fn a_lost_plan_fails_only_on_evidence() {
        assert_eq!(curtailed(59, 0).decide(40, 1), Decision::CannotPass);
        assert_eq!(curtailed(59, 0).decide(0, 3), Decision::Fail);
        assert_eq!(curtailed(59, 0).decide(60, 0), Decision::Pass, "a pass may overshoot the plan");
        assert_eq!(curtailed(59, 0).decide(0, 0), Decision::Undecided, "nothing seen is nothing shown");
    }

    #[test]
    fn a_decision_once_made_stands_and_keeps_its_figures() {
        let mut monitor = Monitor::new(mixture(0.05, 0.05), Some(400));
        assert_eq!(monitor.end_of_pass(20, 0), Decision::Undecided);
        assert_eq!(monitor.end_of_pass(20, 0), Decision::Pass);
        assert_eq!(monitor.end_of_pass(0, 20), Decision::Pass);
        assert_eq!(monitor.at_decision(), Some(Seen { passes: 2, successes: 40, failures: 0 }));
        assert_eq!(monitor.seen().units(), 60);
    }

    #[test]
    fn passes_without_units_never_pass_and_a_lost_gate_stops() {
        let mut nothing = Monitor::new(mixture(0.05, 0.05), Some(10_000));
        for _ in 0..50 {
            assert_eq!(nothing.end_of_pass(0, 0), Decision::Undecided);
        }
        let mut lost = Monitor::new(mixture(0.05, 0.05), Some(60));
        assert_eq!(lost.end_of_pass(18, 2), Decision::CannotPass, "60 units cannot outweigh two failures");
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

    proptest! {
        #[test]
        fn the_order_within_a_pass_changes_nothing(outcomes in proptest::collection::vec(any::<bool>(), 1..60)) {
            let count = |pass: &[bool]| pass.iter().filter(|ok| **ok).count() as u64;
            let judge = |reverse: bool| {
                let mut monitor = Monitor::new(mixture(0.05, 0.05), None);
                for pass in outcomes.chunks(10) {
                    let mut pass = pass.to_vec();
                    if reverse {
                        pass.reverse();
                    }
                    monitor.end_of_pass(count(&pass), pass.len() as u64 - count(&pass));
                }
                monitor
            };
            prop_assert_eq!(judge(false), judge(true));
        }

        #[test]
        fn a_failure_turned_into_a_success_never_worsens_a_decision(s in 0_u64..150, f in 1_u64..20) {
            let rank = |decision| match decision {
                Decision::Fail => 0,
                Decision::CannotPass => 1,
                Decision::Undecided => 2,
                Decision::Pass => 3,
            };
            for rule in [mixture(0.05, 0.05), mixture(0.0, 0.05), curtailed(93, 1)] {
                prop_assert!(rank(rule.decide(s + 1, f - 1)) >= rank(rule.decide(s, f)));
            }
        }
    }
}

//! Stopping rules that decide at the ends of complete passes over a suite.
//!
//! A [`Monitor`] takes whole passes, so the order within one cannot matter, and keeps the first pass or fail for good:
//! later passes, needed by other gates, do not change a decided gate. A gate that cannot pass any more may still
//! fail. A stored run is judged by feeding its passes to the same rule again.

use super::sequential::Mixture;

/// Decision of a rule after some units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The rate is shown to be high enough.
    Pass,
    /// The rate is shown to be below the target.
    Fail,
    /// Neither, and more units cannot lead to a pass.
    CannotPass,
    Undecided,
}

/// Decision rule of a gate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Rule {
    /// The mixture e-process: may decide at the end of any pass.
    Mixture(Mixture),
    /// A fixed plan for strict targets, cut short when it is lost.
    Curtailed {
        /// Units that the plan needs.
        units: u64,
        /// Failures among them that it allows.
        failures: u64,
        /// The test whose `E-` tells a failed target from a plan that is merely lost; `None` for a target of 0 or 1,
        /// against which there is no such evidence.
        evidence: Option<Mixture>,
    },
}

impl Rule {
    /// The decision after `s` successes and `f` failures, ignoring what was decided before.
    pub(crate) fn decide(&self, s: u64, f: u64) -> Decision {
        match self {
            Self::Mixture(mixture) if mixture.passes(s, f) => Decision::Pass,
            Self::Mixture(test) | Self::Curtailed { evidence: Some(test), .. } if test.fails(s, f) => Decision::Fail,
            Self::Curtailed { failures, .. } if f > *failures => Decision::CannotPass,
            Self::Curtailed { units, .. } if s + f >= *units => Decision::Pass,
            Self::Mixture(_) | Self::Curtailed { .. } => Decision::Undecided,
        }
    }

    /// Whether `f` failures leave a way to pass within `max_units`: all other units being successes.
    fn can_pass(&self, f: u64, max_units: u64) -> bool {
        max_units.checked_sub(f).is_some_and(|s| self.decide(s, f) == Decision::Pass)
    }
}

/// Applies a rule to the passes of one run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Monitor {
    rule: Rule,
    min_units: u64,
    seen: UnitsSeen,
    stopped: Option<(Decision, UnitsSeen)>,
}

/// Units counted by a monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct UnitsSeen {
    /// Complete passes.
    pub passes: u64,
    /// Units that succeeded.
    pub successes: u64,
    /// Units that failed.
    pub failures: u64,
}

impl Monitor {
    /// A monitor without units, which passes nothing below `min_units` units.
    pub(crate) fn new(rule: Rule, min_units: u64) -> Self {
        Self { rule, min_units, seen: UnitsSeen::default(), stopped: None }
    }

    /// Takes one complete pass and decides; units that were not measured are in neither number. `to_come` is the most
    /// units that further passes can bring, where that is known.
    pub(crate) fn end_of_pass(&mut self, successes: u64, failures: u64, to_come: Option<u64>) -> Decision {
        self.seen.passes += 1;
        self.seen.successes += successes;
        self.seen.failures += failures;
        if self.stopped.is_none_or(|(decision, _)| decision == Decision::CannotPass) {
            let decided = match self.rule.decide(self.seen.successes, self.seen.failures) {
                Decision::Pass if self.seen.units() < self.min_units => Decision::Undecided,
                other => other,
            };
            let decided =
                if decided == Decision::Undecided && self.is_lost(to_come) { Decision::CannotPass } else { decided };
            match decided {
                Decision::Undecided => {}
                // What could not pass at an earlier look is not passed at a later one.
                Decision::CannotPass | Decision::Pass if self.stopped.is_some() => {}
                _ => self.stopped = Some((decided, self.seen)),
            }
        }
        self.decision()
    }

    fn is_lost(&self, to_come: Option<u64>) -> bool {
        to_come.is_some_and(|more| {
            let max = self.seen.units() + more;
            max < self.min_units || !self.rule.can_pass(self.seen.failures, max)
        })
    }

    /// The final decision: the first one that was not `Undecided`, or the fail that followed `CannotPass`.
    pub(crate) fn decision(&self) -> Decision {
        self.stopped.map_or(Decision::Undecided, |(decision, _)| decision)
    }

    /// Units up to the decision: figures and bounds of the gate refer to these.
    pub(crate) fn at_decision(&self) -> Option<UnitsSeen> {
        self.stopped.map(|(_, seen)| seen)
    }

    /// All units, including those after the decision.
    pub(crate) fn seen(&self) -> UnitsSeen {
        self.seen
    }
}

impl UnitsSeen {
    /// Successes and failures together.
    pub(crate) fn units(&self) -> u64 {
        self.successes + self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mixture(margin: f64, alpha_fail: f64) -> Rule {
        Rule::Mixture(Mixture::new(0.95, margin, 0.05, alpha_fail).expect("a valid design"))
    }

    fn curtailed(units: u64, failures: u64) -> Rule {
        let evidence = Mixture::new(0.95, 0.0, 0.05, 0.05).expect("a valid design");
        Rule::Curtailed { units, failures, evidence: Some(evidence) }
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
        let mut monitor = Monitor::new(mixture(0.05, 0.05), 0);
        assert_eq!(monitor.end_of_pass(20, 0, Some(380)), Decision::Undecided);
        assert_eq!(monitor.end_of_pass(20, 0, Some(360)), Decision::Pass);
        assert_eq!(monitor.end_of_pass(0, 20, Some(340)), Decision::Pass);
        assert_eq!(monitor.at_decision(), Some(UnitsSeen { passes: 2, successes: 40, failures: 0 }));
        assert_eq!(monitor.seen().units(), 60);
    }

    #[test]
    fn passes_without_units_never_pass_and_a_lost_gate_stops() {
        let mut nothing = Monitor::new(mixture(0.05, 0.05), 0);
        for _ in 0..50 {
            assert_eq!(nothing.end_of_pass(0, 0, Some(10_000)), Decision::Undecided);
        }
        let mut lost = Monitor::new(mixture(0.05, 0.05), 0);
        assert_eq!(lost.end_of_pass(18, 2, Some(40)), Decision::CannotPass, "60 units cannot outweigh two failures");
        assert_eq!(lost.end_of_pass(400, 0, Some(0)), Decision::CannotPass, "a lost gate does not come back");
        assert_eq!(lost.end_of_pass(0, 80, Some(0)), Decision::Fail, "but may be shown to fail");
    }

    #[test]
    fn a_least_number_of_units_delays_a_pass_and_not_a_fail() {
        let mut monitor = Monitor::new(mixture(0.05, 0.05), 60);
        assert_eq!(monitor.end_of_pass(40, 0, Some(40)), Decision::Undecided);
        assert_eq!(monitor.end_of_pass(20, 0, Some(20)), Decision::Pass);
        let mut few = Monitor::new(mixture(0.05, 0.05), 60);
        assert_eq!(few.end_of_pass(40, 0, Some(19)), Decision::CannotPass);
        let mut bad = Monitor::new(mixture(0.05, 0.05), 60);
        assert_eq!(bad.end_of_pass(0, 10, None), Decision::Fail);
    }

    proptest! {
        #[test]
        fn the_order_within_a_pass_changes_nothing(outcomes in proptest::collection::vec(any::<bool>(), 1..60)) {
            let count = |pass: &[bool]| pass.iter().filter(|ok| **ok).count() as u64;
            let judge = |reverse: bool| {
                let mut monitor = Monitor::new(mixture(0.05, 0.05), 0);
                for pass in outcomes.chunks(10) {
                    let mut pass = pass.to_vec();
                    if reverse {
                        pass.reverse();
                    }
                    monitor.end_of_pass(count(&pass), pass.len() as u64 - count(&pass), None);
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

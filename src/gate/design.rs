//! The decision rule of one gate in a run until decided: what it checks at the end of each pass, and bounds that stay
//! valid although the run stops early.
//!
//! | kind | PASS | FAIL | bounds |
//! |---|---|---|---|
//! | invariant | no bad unit in the units that floor and `min_n` need | a bad unit, whenever | below; `E-` |
//! | confidence | the planned units, at least those of the first pass, hold no more bad ones than the plan allows | `E-` against the target | below; `E-` |
//! | confidence with margin | `E+` against target less margin, `min_n` reached | `E-` against the target | `E+` and `E-` inverted |
//! | point | the share of the first `min_n` units reaches the target | it does not | of those units |
//!
//! Where trials have several units, or may have them, [`PassBet`] decides.
//!
//! A plan's lower bound is Clopper-Pearson's at the one look fixed beforehand. Before that look, all remaining
//! planned units count as bad, so the bound never exceeds that of the whole plan. An invariant's is `alpha^(1/n)` for
//! the `n` units of the passes before its first violation. It holds at any stopping pass, because the first time that
//! it exceeds the true rate `p` comes after `n` good units with `p^n <= alpha`. Independent units of different rates
//! only lower these probabilities (products by the means' inequality, counts by Hoeffding 1956), as long as passes
//! are complete.

use super::Verdict;
use super::counting::Counting;
use super::pass_bet::PassBet;
use super::rule::{Asked, Ruling};
use crate::scenario::GateKind;
use crate::stats::Clusters;
use crate::stats::rate::{lower_bound_at, units_for, upper_bound_at};
use crate::stats::sequential::{Mixture, lower_at_stopping, upper_at_stopping};
use crate::stats::stopping::{Decision, Monitor, Rule};
use crate::trace::text;

/// Condition that a gate checks after each pass.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Look {
    /// No bad unit among `units`.
    NoViolation { units: u64 },
    /// As few bad units among `units`, or among those of the first pass if these are more, as `target` allows.
    Plan { units: u64, target: f64, evidence: Option<Mixture> },
    /// The mixture e-process, and at least `units` units.
    Mixture { test: Mixture, units: u64 },
    /// The share of good units among the first `units`.
    Figure { units: u64, target: f64 },
    /// No number of units can prove it.
    Nothing,
}

/// The stopping rule of one gate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Design {
    look: Look,
    /// The unit that is counted.
    counting: Counting,
    /// Decides where trials have several units.
    bet: PassBet,
    max_passes: u32,
    /// Error probability of its lower bound and of its PASS.
    pub alpha_pass: f64,
    /// Error probability of its upper bound and of its FAIL.
    pub alpha_fail: f64,
}

/// State of a gate after some passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Standing {
    /// What was decided.
    pub decision: Decision,
    /// Number of passes that its figures cover: those up to the decision, or all.
    pub covers: usize,
    /// Verdict and bounds.
    pub ruling: Ruling,
}

/// Good units and all units of one pass of independent units.
pub(super) type Pass = (u64, u64);

impl Design {
    /// The design of a gate that asks this, with that margin, in at most `max_passes` passes.
    pub(super) fn of(
        (asked, counting): (Asked, Counting),
        margin: f64,
        max_passes: u32,
        (alpha_pass, alpha_fail): (f64, f64),
    ) -> Self {
        let least = asked.min_n.max(1);
        let zero = |target: f64| if target > 0.0 { units_for(0, target) } else { Some(1) };
        let look = match asked.kind {
            GateKind::Point => Look::Figure { units: least, target: asked.target },
            GateKind::Invariant => zero(asked.floor.unwrap_or(0.0))
                .map_or(Look::Nothing, |units| Look::NoViolation { units: units.max(least) }),
            GateKind::Confidence => {
                match (zero(asked.target), Mixture::new(asked.target, margin, alpha_pass, alpha_fail)) {
                    (None, _) => Look::Nothing,
                    (_, Ok(test)) if margin > 0.0 => Look::Mixture { test, units: least },
                    (Some(zero), test) => {
                        Look::Plan { units: zero.max(least), target: asked.target, evidence: test.ok() }
                    }
                }
            }
        };
        let bet = PassBet::of((asked, counting), margin, max_passes, (alpha_pass, alpha_fail));
        Self { look, counting, bet, max_passes, alpha_pass, alpha_fail }
    }

    /// Passes at most.
    pub(super) fn max_passes(&self) -> u32 {
        self.max_passes
    }

    /// The rule in words, for passes like these.
    pub(super) fn words(&self, passes: &[Clusters]) -> String {
        if !self.counting.is_single(passes) && self.look != Look::Nothing {
            return self.bet.words();
        }
        let count = |n: u64| text::count(n, "unit", "units");
        match self.look {
            Look::NoViolation { units } => format!("no violation in {} or more", count(units)),
            Look::Plan { units, target, .. } => {
                match self.planned(units, target, passes.first().map_or(0, Clusters::units)) {
                    (units, 0) => format!("{} without a failure", count(units)),
                    (units, bad) => {
                        format!("{} with at most {}", count(units), text::count(bad, "failure", "failures"))
                    }
                }
            }
            Look::Mixture { test, units } => {
                let at_least = if units > 1 { format!(", {} at least", count(units)) } else { String::new() };
                format!("mixture e-process against {}{at_least}", crate::stats::percent::percent(test.boundary()))
            }
            Look::Figure { units, .. } => format!("the figure of the first {}, as it is", count(units)),
            Look::Nothing => "no number of units can show it".into(),
        }
    }

    /// State of the gate after complete passes.
    pub(super) fn standing(&self, passes: &[Clusters]) -> Standing {
        if !self.counting.is_single(passes) {
            return self.bet.standing(passes, self.look == Look::Nothing);
        }
        let passes: Vec<Pass> = passes.iter().map(|pass| (pass.good(), pass.units())).collect();
        self.of_units(&passes)
    }

    /// State of the gate after complete passes of independent units.
    pub(super) fn of_units(&self, passes: &[Pass]) -> Standing {
        match self.look {
            Look::NoViolation { units } => self.without_violation(units, passes),
            Look::Plan { units, target, evidence } => {
                let (units, bad) = self.planned(units, target, passes.first().map_or(0, |(_, n)| *n));
                let rule = Rule::Curtailed { units, failures: bad, evidence };
                self.monitored(Monitor::new(rule, 0), passes, |good, bad| {
                    (self.planned_lower(units, passes), upper_at_stopping(good, bad, self.alpha_fail))
                })
            }
            Look::Mixture { test, units } => {
                self.monitored(Monitor::new(Rule::Mixture(test), units), passes, |good, bad| {
                    (lower_at_stopping(good, bad, self.alpha_pass), upper_at_stopping(good, bad, self.alpha_fail))
                })
            }
            Look::Figure { units, target } => self.figure(units, target, passes),
            Look::Nothing => {
                let (good, n) = sum(passes);
                standing(Decision::CannotPass, passes.len(), (0.0, upper_at_stopping(good, n - good, self.alpha_fail)))
            }
        }
    }

    /// The units of a plan and its bad ones at most. The first look is after a whole pass, so a plan has no fewer units than that.
    fn planned(&self, units: u64, target: f64, first_pass: u64) -> (u64, u64) {
        let units = units.max(first_pass);
        let allows = |bad: &u64| lower_bound_at((units - bad) as f64, units as f64, self.alpha_pass) >= target;
        let all: Vec<u64> = (0..units).collect();
        (units, (all.partition_point(allows) as u64).saturating_sub(1))
    }

    fn monitored(&self, mut monitor: Monitor, passes: &[Pass], bounds: impl Fn(u64, u64) -> (f64, f64)) -> Standing {
        for (index, (good, n)) in passes.iter().enumerate() {
            monitor.end_of_pass(*good, n - good, self.still_ahead(&passes[..=index]));
        }
        let decision = monitor.decision();
        let settled = monitor.at_decision().filter(|_| matches!(decision, Decision::Pass | Decision::Fail));
        let seen = settled.unwrap_or_else(|| monitor.seen());
        standing(decision, seen.passes as usize, bounds(seen.successes, seen.failures))
    }

    fn without_violation(&self, units: u64, passes: &[Pass]) -> Standing {
        let (good, n) = sum(passes);
        let decision = if good < n {
            Decision::Fail
        } else if n >= units {
            Decision::Pass
        } else if self.still_ahead(passes).is_some_and(|more| n + more < units) {
            Decision::CannotPass
        } else {
            Decision::Undecided
        };
        // What the passes before the first violation had proven.
        let unbroken: u64 = passes.iter().take_while(|(good, n)| good == n).map(|(good, _)| good).sum();
        let lower = lower_bound_at(unbroken as f64, unbroken as f64, self.alpha_pass);
        standing(decision, passes.len(), (lower, upper_at_stopping(good, n - good, self.alpha_fail)))
    }

    fn figure(&self, units: u64, target: f64, passes: &[Pass]) -> Standing {
        let Some(at) = look_of(units, passes) else {
            let (good, n) = sum(passes);
            let lost = self.still_ahead(passes).is_some_and(|more| n + more < units);
            let decision = if lost { Decision::CannotPass } else { Decision::Undecided };
            let planned = eventual(units, passes) as f64;
            let upper = upper_bound_at(planned - (n - good) as f64, planned, self.alpha_fail);
            return standing(decision, passes.len(), (self.planned_lower(units, passes), upper));
        };
        let (good, n) = sum(&passes[..at]);
        // Compares a share of whole units with a decimal target: see the rule for a fixed number.
        let reaches = good as f64 >= target * n as f64 - 1e-9;
        let decision = if reaches { Decision::Pass } else { Decision::Fail };
        let (good, n) = (good as f64, n as f64);
        standing(decision, at, (lower_bound_at(good, n, self.alpha_pass), upper_bound_at(good, n, self.alpha_fail)))
    }

    /// The lower bound at the look of a plan of `units` units; before it, with all remaining units counted as bad.
    fn planned_lower(&self, units: u64, passes: &[Pass]) -> f64 {
        let (good, n) = match look_of(units, passes) {
            Some(at) => sum(&passes[..at]),
            None => (sum(passes).0, eventual(units, passes)),
        };
        lower_bound_at(good as f64, n as f64, self.alpha_pass)
    }

    /// The most units that further passes can add, each as large as the largest so far; `None` before the first pass.
    fn still_ahead(&self, passes: &[Pass]) -> Option<u64> {
        let left = u64::from(self.max_passes).saturating_sub(passes.len() as u64);
        if left == 0 {
            return Some(0);
        }
        let largest = passes.iter().map(|(_, n)| *n).max().filter(|n| *n > 0)?;
        Some(left * largest)
    }
}

/// The first pass after which there are `units` units.
fn look_of(units: u64, passes: &[Pass]) -> Option<usize> {
    (1..=passes.len()).find(|end| sum(&passes[..*end]).1 >= units)
}

/// Number of units at the end of the pass that completes a plan of `units`.
fn eventual(units: u64, passes: &[Pass]) -> u64 {
    let largest = passes.iter().map(|(_, n)| *n).max().unwrap_or(0).max(1);
    let n = sum(passes).1;
    n + units.saturating_sub(n).div_ceil(largest) * largest
}

fn sum(passes: &[Pass]) -> Pass {
    passes.iter().fold((0, 0), |sum, pass| (sum.0 + pass.0, sum.1 + pass.1))
}

pub(super) fn standing(decision: Decision, covers: usize, (lower, upper): (f64, f64)) -> Standing {
    let verdict = match decision {
        Decision::Pass => Verdict::Pass,
        Decision::Fail => Verdict::Fail,
        Decision::CannotPass | Decision::Undecided => Verdict::Inconclusive,
    };
    Standing { decision, covers, ruling: Ruling { verdict, lower, upper, more: None } }
}

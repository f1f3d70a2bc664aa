//! Decides a gate between passes where trials have several units, by the bets of [`crate::stats::betting`], which are
//! valid at any complete pass. Where units are counted, a fixed run shows the same figure.

use super::counting::Counting;
use super::design::{Standing, standing};
use super::rule::Asked;
use crate::scenario::GateKind;
use crate::stats::Clusters;
use crate::stats::betting::{Bet, Stakes};
use crate::stats::percent::percent;
use crate::stats::stopping::Decision;
use crate::trace::text::count;

/// The bets of one gate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PassBet {
    counting: Counting,
    kind: GateKind,
    /// The share of good units that the lower bound must reach.
    pass: f64,
    /// The share below which the upper bound shows a failure.
    target: f64,
    /// Smallest number of trials.
    least: u64,
    max_passes: u32,
    alpha_pass: f64,
    alpha_fail: f64,
}

impl PassBet {
    /// Creates the bets of a gate with that margin and these error probabilities.
    pub(super) fn of(
        (asked, counting): (Asked, Counting),
        margin: f64,
        max_passes: u32,
        (alpha_pass, alpha_fail): (f64, f64),
    ) -> Self {
        let pass = asked.bound(margin);
        let least = asked.min_n.max(1);
        Self { counting, kind: asked.kind, pass, target: asked.target, least, max_passes, alpha_pass, alpha_fail }
    }

    /// The rule as text.
    pub(super) fn words(&self) -> String {
        let conversations = count(self.least, "conversation", "conversations");
        match self.kind {
            GateKind::Point => format!("the figure of the first {conversations}, as it is"),
            GateKind::Invariant if self.pass > 0.0 => {
                format!("no violation, and a lower bound of {} over conversations", percent(self.pass))
            }
            GateKind::Invariant => format!("no violation in {conversations} or more"),
            GateKind::Confidence => {
                let at_least = if self.least > 1 { format!(", {conversations} at least") } else { String::new() };
                format!("bet on whole conversations against {}{at_least}", percent(self.pass))
            }
        }
    }

    /// State of the gate after complete passes; `nothing` if no number of units can prove the target.
    pub(super) fn standing(&self, passes: &[Clusters], nothing: bool) -> Standing {
        let (mut decision, mut covers) = (Decision::Undecided, passes.len());
        let stakes = self.counting.stakes(passes).filter(|_| !nothing);
        for end in 1..=passes.len() {
            let found = match stakes {
                Some(stakes) => self.decide(stakes, &passes[..end]),
                None if self.broken(&passes[..end]) => Decision::Fail,
                None => Decision::CannotPass,
            };
            match (decision, found) {
                // A gate that could not pass at an earlier look does not pass at a later one, but may fail.
                (Decision::Undecided, _) | (Decision::CannotPass, Decision::Fail) => decision = found,
                _ => {}
            }
            // A violation fails an invariant at any pass.
            if self.kind == GateKind::Invariant {
                decision = if decision == Decision::CannotPass && found != Decision::Fail { decision } else { found };
            } else if matches!(decision, Decision::Pass | Decision::Fail) {
                covers = end;
                break;
            }
        }
        let covered = &passes[..covers];
        let mirrored: Vec<Clusters> = covered.iter().map(Clusters::mirrored).collect();
        let bounds = stakes.map_or((0.0, 1.0), |stakes| {
            let lower = Bet::over(stakes, covered).lower(self.alpha_pass);
            (lower, 1.0 - Bet::over(stakes, &mirrored).lower(self.alpha_fail))
        });
        standing(decision, covers, bounds)
    }

    /// Whether a violation occurred.
    fn broken(&self, passes: &[Clusters]) -> bool {
        self.kind == GateKind::Invariant && passes.iter().any(|pass| pass.good() < pass.units())
    }

    /// The figure after these passes: the share of units, or the mean of the shares of conversations.
    fn figure(&self, passes: &[Clusters]) -> f64 {
        let sum = |of: &dyn Fn(&Clusters) -> f64| passes.iter().map(of).sum::<f64>();
        if self.counting.per_conversation() {
            sum(&Clusters::shares) / sum(&|pass| pass.number() as f64)
        } else {
            sum(&|pass| pass.good() as f64) / sum(&|pass| pass.units() as f64)
        }
    }

    /// The decision at the end of these passes, ignoring earlier decisions.
    fn decide(&self, stakes: Stakes, passes: &[Clusters]) -> Decision {
        let (good, n) = passes.iter().fold((0, 0), |sum, pass| (sum.0 + pass.good(), sum.1 + pass.units()));
        let trials: u64 = passes.iter().map(Clusters::number).sum();
        let fails = match self.kind {
            GateKind::Invariant => self.broken(passes),
            GateKind::Confidence => {
                let mirrored: Vec<Clusters> = passes.iter().map(Clusters::mirrored).collect();
                self.target > 0.0 && Bet::over(stakes, &mirrored).lower(self.alpha_fail) > 1.0 - self.target
            }
            GateKind::Point => trials >= self.least && self.figure(passes) < self.target - 1e-12,
        };
        if fails {
            return Decision::Fail;
        }
        // A mean of conversations passes only where the share of units reaches the target too.
        let per_unit = !self.counting.per_conversation() || good as f64 >= self.pass * n as f64 - 1e-9;
        let shown = || Bet::over(stakes, passes).reaches(self.pass, self.alpha_pass);
        if n > 0 && trials >= self.least && per_unit && shown() {
            return Decision::Pass;
        }
        let left = f64::from(self.max_passes) - passes.len() as f64;
        let Some(largest) = passes.iter().max_by_key(|pass| pass.units()).filter(|pass| pass.units() > 0) else {
            return if left > 0.0 { Decision::Undecided } else { Decision::CannotPass };
        };
        let mut best = Bet::over(stakes, passes);
        best.add(&largest.without_failure(), left.max(0.0));
        let enough = trials as f64 + left.max(0.0) * largest.number() as f64 >= self.least as f64;
        if enough && best.reaches(self.pass, self.alpha_pass) { Decision::Undecided } else { Decision::CannotPass }
    }
}

#[cfg(test)]
mod tests {
    use super::super::counting::Size;
    use super::*;
    use crate::gate::Verdict;

    fn bet(kind: GateKind, target: f64, floor: Option<f64>, min_n: u64, max_passes: u32) -> PassBet {
        let asked = Asked { kind, target, floor, min_n, alpha_fail: 0.05 };
        PassBet::of((asked, Counting::Planned), 0.0, max_passes, (0.05, 0.05))
    }

    /// A pass of `conversations` conversations of two turns, of which `lost` fail entirely.
    fn pass(conversations: u64, lost: u64) -> Clusters {
        let mut clusters = Clusters::default();
        clusters.add_many(2, 2, conversations - lost);
        clusters.add_many(0, 2, lost);
        clusters
    }

    #[test]
    fn it_passes_on_the_evidence_of_whole_conversations_and_keeps_its_decision() {
        let gate = bet(GateKind::Confidence, 0.90, None, 0, 10);
        let mut passes = vec![pass(20, 0)];
        assert_eq!(gate.standing(&passes, false).decision, Decision::Undecided, "40 turns are 20 conversations");
        passes.extend([pass(20, 0), pass(20, 20)]);
        let found = gate.standing(&passes, false);
        assert_eq!((found.decision, found.covers, found.ruling.verdict), (Decision::Pass, 2, Verdict::Pass));
        assert!(found.ruling.lower >= 0.90);
    }

    #[test]
    fn what_cannot_pass_any_more_is_no_fail_until_it_is_shown_to() {
        let gate = bet(GateKind::Confidence, 0.95, None, 0, 2);
        let found = gate.standing(&[pass(60, 4)], false);
        assert_eq!((found.decision, found.ruling.verdict), (Decision::CannotPass, Verdict::Inconclusive));
        assert_eq!(gate.standing(&[pass(60, 4), pass(60, 50)], false).decision, Decision::Fail);
    }

    #[test]
    fn an_invariant_fails_by_a_violation_after_it_had_passed() {
        let gate = bet(GateKind::Invariant, 1.0, Some(0.8), 0, 4);
        assert_eq!(gate.standing(&[pass(60, 0)], false).decision, Decision::Pass);
        assert_eq!(gate.standing(&[pass(60, 0), pass(60, 1)], false).decision, Decision::Fail);
    }

    #[test]
    fn conversations_of_unplanned_sizes_count_once_and_long_ones_that_fail_hold_a_pass_back() {
        let asked = Asked { kind: GateKind::Confidence, target: 0.90, floor: None, min_n: 0, alpha_fail: 0.05 };
        let of = |counting| PassBet::of((asked, counting), 0.0, 10, (0.05, 0.05));
        let gate = of(Counting::Conversations(Size::Outcome));
        let mut good = Clusters::default();
        good.add_many(1, 1, 100);
        assert_eq!(gate.standing(&[good.clone()], false).decision, Decision::Pass);
        good.add_many(20, 40, 2);
        // 98 of 102 conversations in the mean, and 140 of 180 calls.
        assert_eq!(gate.standing(&[good.clone()], false).decision, Decision::Undecided);
        let unlimited = of(Counting::Outcome(None)).standing(&[good], false);
        assert_eq!((unlimited.decision, unlimited.ruling.lower), (Decision::CannotPass, 0.0));
    }

    #[test]
    fn min_n_counts_conversations() {
        let gate = bet(GateKind::Confidence, 0.5, None, 60, 4);
        assert_eq!(gate.standing(&[pass(40, 0)], false).decision, Decision::Undecided);
        assert_eq!(gate.standing(&[pass(40, 0), pass(40, 0)], false).decision, Decision::Pass);
        assert_eq!(gate.standing(&[pass(14, 0)], false).decision, Decision::CannotPass, "56 at most");
    }
}

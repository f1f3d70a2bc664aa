//! The rules: from counts of good units to a verdict. Pure, and the only place where a verdict is decided.
//!
//! | kind | PASS | FAIL | otherwise |
//! |---|---|---|---|
//! | invariant | no bad unit, bound reaches the floor, n reaches `min_n` | one bad unit, at any n | INCONCLUSIVE |
//! | confidence | lower bound reaches the target, n reaches `min_n` | upper bound is below it, at any n | INCONCLUSIVE |
//! | point | observed share reaches the target | it does not | below `min_n`: INCONCLUSIVE |
//!
//! Bounds are exact, one-sided, 95 %. `min_n` keeps a small sample from passing and, for a point gate, from saying
//! anything; a violation, or a bound that excludes the target, is evidence at any n.

use super::Verdict;
use crate::scenario::GateKind;
use crate::stats::rate::{lower_bound_at, units_to_pass, upper_bound_at};
use crate::stats::{ALPHA, Clustered};

/// What a rule reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence {
    /// Good units.
    pub good: u64,
    /// Units, at least 1.
    pub n: u64,
    /// What the units are a sample of.
    pub sample: Sample,
}

/// What the units are a sample of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sample {
    /// These cases, run again.
    Fixed,
    /// Cases not seen yet, clustered by case.
    Clusters(Clustered),
    /// Cases not seen yet, of which there is one: it says nothing about others.
    OneCluster,
}

/// What a criterion asks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// How it is judged.
    pub kind: GateKind,
    /// The share of good units.
    pub target: f64,
    /// For an invariant: the share that the lower bound must reach.
    pub floor: Option<f64>,
    /// The least n that may pass.
    pub min_n: u64,
}

/// What came of it; bounds are on the share of good units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ruling {
    /// PASS, FAIL or INCONCLUSIVE.
    pub verdict: Verdict,
    /// One-sided lower bound.
    pub lower: f64,
    /// One-sided upper bound.
    pub upper: f64,
    /// For INCONCLUSIVE: how many more good units would pass, where that can be said.
    pub more: Option<u64>,
}

/// Decides.
pub(super) fn rule(asked: Asked, evidence: Evidence) -> Ruling {
    let Evidence { good, n, sample } = evidence;
    let rate = good as f64 / n as f64;
    let (lower, upper) = match sample {
        Sample::Fixed => bounds(good as f64, n as f64),
        Sample::Clusters(clustered) => bounds(rate * clustered.effective_n, clustered.effective_n),
        Sample::OneCluster => (0.0, 1.0),
    };
    let enough = n >= asked.min_n;
    let verdict = match asked.kind {
        GateKind::Invariant if good < n => Verdict::Fail,
        GateKind::Invariant if enough && asked.floor.is_none_or(|floor| lower >= floor) => Verdict::Pass,
        GateKind::Confidence if enough && lower >= asked.target => Verdict::Pass,
        GateKind::Confidence if upper < asked.target => Verdict::Fail,
        GateKind::Point if !enough => Verdict::Inconclusive,
        // A share of whole units and a decimal target: 19/20 is 0.95, whatever the floats say.
        GateKind::Point if good as f64 >= asked.target * n as f64 - 1e-9 => Verdict::Pass,
        GateKind::Point => Verdict::Fail,
        GateKind::Invariant | GateKind::Confidence => Verdict::Inconclusive,
    };
    let wanted = match asked.kind {
        GateKind::Invariant => asked.floor.unwrap_or(0.0),
        GateKind::Confidence => asked.target,
        GateKind::Point => 0.0,
    };
    let more = (verdict == Verdict::Inconclusive && matches!(sample, Sample::Fixed))
        .then(|| units_to_pass(good, n, wanted, asked.min_n))
        .flatten()
        .filter(|more| *more > 0);
    Ruling { verdict, lower, upper, more }
}

fn bounds(good: f64, n: f64) -> (f64, f64) {
    (lower_bound_at(good, n, ALPHA), upper_bound_at(good, n, ALPHA))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn asked(kind: GateKind, target: f64, floor: Option<f64>, min_n: u64) -> Asked {
        Asked { kind, target, floor, min_n }
    }

    fn of(good: u64, n: u64) -> Evidence {
        Evidence { good, n, sample: Sample::Fixed }
    }

    #[test]
    fn an_invariant_needs_no_violation_and_its_floor() {
        let sc = asked(GateKind::Invariant, 1.0, Some(0.95), 60);
        assert_eq!(rule(sc, of(60, 60)).verdict, Verdict::Pass);
        assert_eq!(rule(sc, of(59, 59)).verdict, Verdict::Inconclusive);
        assert_eq!(rule(sc, of(59, 59)).more, Some(1));
        assert_eq!(rule(sc, of(1_999, 2_000)).verdict, Verdict::Fail);
        assert_eq!(rule(sc, of(0, 1)).verdict, Verdict::Fail, "at any n");
        assert_eq!(rule(asked(GateKind::Invariant, 1.0, None, 0), of(1, 1)).verdict, Verdict::Pass);
    }

    #[test]
    fn confidence_rests_on_bounds() {
        let sc = asked(GateKind::Confidence, 0.95, None, 0);
        assert_eq!(rule(sc, of(38, 40)).verdict, Verdict::Inconclusive);
        assert_eq!(rule(sc, of(38, 40)).more, Some(84));
        assert_eq!(rule(sc, of(122, 124)).verdict, Verdict::Pass);
        assert_eq!(rule(sc, of(16, 20)).verdict, Verdict::Fail);
        assert_eq!(rule(sc, of(20, 20)).verdict, Verdict::Inconclusive, "20 units cannot pass 95 %");
        assert_eq!(rule(asked(GateKind::Confidence, 0.20, None, 0), of(11, 40)).verdict, Verdict::Inconclusive);
    }

    #[test]
    fn a_point_gate_looks_at_the_figure_alone() {
        let sc = asked(GateKind::Point, 0.95, None, 10);
        assert_eq!(rule(sc, of(19, 20)).verdict, Verdict::Pass);
        assert_eq!(rule(sc, of(18, 20)).verdict, Verdict::Fail);
        assert_eq!(rule(sc, of(3, 9)).verdict, Verdict::Inconclusive);
    }

    #[test]
    fn a_population_counts_clusters() {
        let clustered =
            crate::stats::clustered(&[(4, 4), (4, 4), (3, 4), (4, 4), (1, 4), (4, 4)]).expect("six clusters");
        let evidence = Evidence { good: 20, n: 24, sample: Sample::Clusters(clustered) };
        let alone = rule(asked(GateKind::Confidence, 0.6, None, 0), of(20, 24));
        let ruling = rule(asked(GateKind::Confidence, 0.6, None, 0), evidence);
        assert_eq!((alone.verdict, ruling.verdict), (Verdict::Pass, Verdict::Inconclusive));
        let one = rule(asked(GateKind::Confidence, 0.6, None, 0), Evidence { sample: Sample::OneCluster, ..evidence });
        assert_eq!(one.verdict, Verdict::Inconclusive);
    }

    fn worth(verdict: Verdict) -> u8 {
        match verdict {
            Verdict::Pass => 2,
            Verdict::Inconclusive => 1,
            _ => 0,
        }
    }

    proptest! {
        #[test]
        fn a_failure_that_becomes_a_success_never_worsens_a_verdict(
            n in 1_u64..300, share in 0.0..1.0_f64, kind in 0..3_u8, target in 0.01..=1.0_f64, min_n in 0_u64..200,
        ) {
            let good = (share * n as f64) as u64;
            let kind = [GateKind::Invariant, GateKind::Confidence, GateKind::Point][usize::from(kind)];
            let asked = asked(kind, target, Some(target * 0.9), min_n);
            prop_assert!(worth(rule(asked, of(good + 1, n)).verdict) >= worth(rule(asked, of(good, n)).verdict));
        }

        #[test]
        fn what_is_said_to_be_missing_is_what_is_missing(
            n in 1_u64..200, failures in 0_u64..6, target in 0.5..0.99_f64, min_n in 0_u64..100,
        ) {
            let good = n.saturating_sub(failures);
            let asked = asked(GateKind::Confidence, target, None, min_n);
            if let Some(more) = rule(asked, of(good, n)).more {
                prop_assert_eq!(rule(asked, of(good + more, n + more)).verdict, Verdict::Pass);
                prop_assert_ne!(rule(asked, of(good + more - 1, n + more - 1)).verdict, Verdict::Pass);
            }
        }
    }
}

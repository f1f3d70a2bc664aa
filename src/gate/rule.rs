//! The decision rules: from counts of good units to a verdict. Pure, and the only place where a verdict is decided.
//!
//! | kind | PASS | FAIL | otherwise |
//! |---|---|---|---|
//! | invariant | no bad unit, bound reaches the floor, n reaches `min_n` | one bad unit, at any n | INCONCLUSIVE |
//! | confidence | lower bound reaches the target, n reaches `min_n` | upper bound is below it, at any n | INCONCLUSIVE |
//! | point | observed share reaches the target | it does not | below `min_n`: INCONCLUSIVE |
//!
//! Bounds are one-sided, 95 % for PASS; for FAIL the error probability is shared among the required confidence gates
//! of a run, since failing one of them is enough to fail it. A claim about the mean of conversations passes only
//! where the observed figure per unit reaches the target too. `n` counts independent clusters: trials, or cases where
//! the claim is about unseen cases. `min_n` keeps a small sample from passing and, for a point gate, from any
//! decision; a violation, or a bound that excludes the target, is evidence at any n.

use super::Verdict;
use crate::scenario::GateKind;
use crate::stats::{ALPHA, Sample, population};
use crate::trace::Agreement;

/// Input of a rule.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence<'s> {
    /// Good units.
    pub good: u64,
    /// Number of units, at least 1.
    pub n: u64,
    /// The sample of the units.
    pub sample: &'s Sample,
    /// Whether the claim is about the mean of conversations; then the share of units must reach the target too.
    pub per_conversation: bool,
    /// For units graded by a model: its measured agreement with people.
    pub agreement: Option<Agreement>,
}

impl Evidence<'_> {
    /// The observed share corrected for the grader's measured errors, `(q - f) / (1 - f - g)` (Rogan and Gladen
    /// 1978); `None` if the errors were not measured on answers of both kinds, or the grader is no better than
    /// chance.
    pub(super) fn corrected(&self, observed: f64) -> Option<f64> {
        let (passed, failed) = self.agreement?.error_rates()?;
        let apart = 1.0 - passed - failed;
        (apart > 0.0).then(|| ((observed - passed) / apart).clamp(0.0, 1.0))
    }

    /// One-sided bounds on the rate of good units at these error probabilities.
    ///
    /// A model passes a share `f` of the answers that people find bad, and fails a share `g` of those that they find
    /// good. Its rate of passes is `q = p(1 - g) + (1 - p)f`, so `(q - f) / (1 - f) <= p <= q / (1 - g)`. Half of the
    /// error probability is spent on the bound on `q`, half on the bound on `f` or `g`: the bound on the mean of the
    /// rated cases' shares, which is exact (Clopper and Pearson 1934) if each case was rated once.
    fn bounds(&self, lower: f64, upper: f64) -> (f64, f64) {
        let Some(Agreement { both, judge_only, human_only, neither, by_case }) = self.agreement else {
            return (self.sample.lower_at(lower), self.sample.upper_at(upper));
        };
        // An older measurement did not separate the cases: each rating then counts as a case.
        let ((passed, bad), (failed, good)) = match by_case {
            Some(cases) => {
                let sum = |millionths: u64| millionths as f64 / 1e6;
                ((sum(cases.judge_only), cases.bad), (sum(cases.human_only), cases.good))
            }
            None => ((judge_only as f64, judge_only + neither), (human_only as f64, human_only + both)),
        };
        let share =
            |sum: f64, cases: u64, alpha: f64| if cases == 0 { 1.0 } else { population::upper_at(sum, cases, alpha) };
        let passed = share(passed, bad, lower / 2.0);
        let failed = share(failed, good, upper / 2.0);
        let (q_low, q_high) = (self.sample.lower_at(lower / 2.0), self.sample.upper_at(upper / 2.0));
        let low = if passed >= 1.0 { 0.0 } else { ((q_low - passed) / (1.0 - passed)).max(0.0) };
        let high = if failed >= 1.0 { 1.0 } else { (q_high / (1.0 - failed)).min(1.0) };
        (low, high)
    }

    /// Every observed figure that must reach the target for the criterion to be met: the bounded one, per
    /// conversation also the share of units, and with known grader errors the corrected value of each.
    pub(super) fn figures(&self) -> Vec<f64> {
        let per_unit = self.good as f64 / self.n as f64;
        let observed = std::iter::once(self.sample.figure()).chain(self.per_conversation.then_some(per_unit));
        observed.flat_map(|figure| std::iter::once(figure).chain(self.corrected(figure))).collect()
    }

    /// The corrected share of all units where a mean of conversations is claimed.
    pub(super) fn per_unit_corrected(&self) -> Option<f64> {
        self.corrected(self.good as f64 / self.n as f64).filter(|_| self.per_conversation)
    }

    /// Whether the observed figure per unit reaches the target. It has no bound: it keeps a mean of conversations
    /// from passing while most units belong to a few long conversations that fail.
    fn reaches_per_unit(&self, target: f64) -> bool {
        let observed = self.good as f64 / self.n as f64;
        !self.per_conversation || self.corrected(observed).unwrap_or(observed) >= target - 1e-12
    }
}

/// Requirement of a criterion.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// How it is decided.
    pub kind: GateKind,
    /// The share of good units.
    pub target: f64,
    /// For an invariant: the share that the lower bound must reach.
    pub floor: Option<f64>,
    /// Smallest number of trials, or of cases, for a PASS.
    pub min_n: u64,
    /// Error probability of the upper bound, which decides a FAIL.
    pub alpha_fail: f64,
}

impl Asked {
    /// The share that every observed figure must reach.
    pub(super) fn figure(&self) -> f64 {
        if self.kind == GateKind::Invariant { 1.0 } else { self.target }
    }

    /// The share that the lower bound must reach for a PASS, with that margin below the target.
    pub(super) fn bound(&self, margin: f64) -> f64 {
        match self.kind {
            GateKind::Invariant => self.floor.unwrap_or(0.0),
            GateKind::Confidence => self.target - margin,
            GateKind::Point => 0.0,
        }
    }
}

/// Result of a rule; bounds are on the share of good units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ruling {
    /// PASS, FAIL or INCONCLUSIVE.
    pub verdict: Verdict,
    /// One-sided lower bound.
    pub lower: f64,
    /// One-sided upper bound.
    pub upper: f64,
    /// For INCONCLUSIVE: how many more trials or cases without a failure would pass, where defined.
    pub more: Option<u64>,
}

/// Decides.
pub(super) fn rule(asked: Asked, evidence: Evidence<'_>) -> Ruling {
    let Evidence { good, n, sample, agreement, .. } = evidence;
    let (lower, upper) = evidence.bounds(ALPHA, asked.alpha_fail);
    let enough = sample.number() >= asked.min_n;
    let verdict = match asked.kind {
        // One bad unit violates an invariant; a model's grade alone does not.
        GateKind::Invariant if good < n && (agreement.is_none() || upper < 1.0) => Verdict::Fail,
        // No bad grade proves only what the measured errors allow: the floor says how much is required.
        GateKind::Invariant if agreement.is_some() && asked.floor.is_none_or(|floor| lower < floor) => {
            Verdict::Inconclusive
        }
        GateKind::Invariant if good == n && enough && asked.floor.is_none_or(|floor| lower >= floor) => Verdict::Pass,
        GateKind::Confidence if enough && lower >= asked.target => Verdict::Pass,
        GateKind::Confidence if upper < asked.target => Verdict::Fail,
        GateKind::Point if !enough => Verdict::Inconclusive,
        GateKind::Point if agreement.is_some() => match evidence.corrected(sample.figure()) {
            None => Verdict::Inconclusive,
            Some(share) if share >= asked.target - 1e-12 => Verdict::Pass,
            Some(_) => Verdict::Fail,
        },
        // Compares a share of whole units with a decimal target: 19/20 is 0.95, despite rounding.
        GateKind::Point if sample.figure() >= asked.target - 1e-12 => Verdict::Pass,
        GateKind::Point => Verdict::Fail,
        GateKind::Invariant | GateKind::Confidence => Verdict::Inconclusive,
    };
    let held_back = verdict == Verdict::Pass && !evidence.reaches_per_unit(asked.target);
    let verdict = if held_back { Verdict::Inconclusive } else { verdict };
    let can_add = verdict == Verdict::Inconclusive && agreement.is_none() && !held_back;
    let more = can_add.then(|| sample.more_to_pass(asked.bound(0.0), asked.min_n, ALPHA)).flatten();
    let more = more.filter(|more| *more > 0);
    Ruling { verdict, lower, upper, more }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Clusters;
    use proptest::prelude::*;

    fn asked(kind: GateKind, target: f64, floor: Option<f64>, min_n: u64) -> Asked {
        Asked { kind, target, floor, min_n, alpha_fail: ALPHA }
    }

    /// Cases of one conversation for each unit, `(good, n)`.
    fn cases_of(cases: &[(u64, u64)]) -> Sample {
        let case = |(good, n): &(u64, u64)| -> Clusters { (0..*n).map(|unit| (u64::from(unit < *good), 1)).collect() };
        Sample::cases(&cases.iter().map(case).collect::<Vec<_>>())
    }

    /// The ruling on independent units.
    fn ruled(asked: Asked, good: u64, n: u64) -> Ruling {
        let mut clusters = Clusters::default();
        clusters.add_many(1, 1, good);
        clusters.add_many(0, 1, n - good);
        rule(asked, Evidence { good, n, sample: &Sample::Fixed(clusters), per_conversation: false, agreement: None })
    }

    #[test]
    fn ratings_of_one_case_bound_a_graders_errors_like_one_rating() {
        let bound = |cases: &[Agreement]| {
            let mut clusters = Clusters::default();
            clusters.add_many(1, 1, 300);
            let (sample, agreement) = (&Sample::Fixed(clusters), Some(Agreement::of_cases(cases)));
            let evidence = Evidence { good: 300, n: 300, sample, per_conversation: false, agreement };
            rule(asked(GateKind::Confidence, 0.9, None, 1), evidence).lower
        };
        let rated = |times: u64| Agreement { neither: times, ..Agreement::default() };
        let (once, often) = (bound(&[rated(1); 30]), bound(&[rated(10); 30]));
        assert!((once - often).abs() < 1e-12, "ten ratings of each of 30 cases: {once} {often}");
        assert!(bound(&vec![rated(1); 300]) > once + 0.001);
    }

    #[test]
    fn bounds_on_grades_include_what_the_grader_gets_wrong() {
        let graded = |good: u64, n: u64, agreement: Agreement| {
            let mut clusters = Clusters::default();
            clusters.add_many(1, 1, good);
            clusters.add_many(0, 1, n - good);
            let evidence = Evidence {
                good,
                n,
                sample: &Sample::Fixed(clusters),
                per_conversation: false,
                agreement: Some(agreement),
            };
            rule(asked(GateKind::Confidence, 0.9, None, 1), evidence)
        };
        let sure = Agreement { both: 300, judge_only: 0, human_only: 0, neither: 300, by_case: None };
        assert_eq!(graded(300, 300, sure).verdict, Verdict::Pass);
        // (q - f) / (1 - f) with q >= .975^(1/300)… and f <= 1 - .025^(1/300), both by scipy's beta.ppf.
        let q = 0.025_f64.powf(1.0 / 300.0);
        let f = 1.0 - q;
        assert!((graded(300, 300, sure).lower - (q - f) / (1.0 - f)).abs() < 1e-9);
        let few = Agreement { both: 3, judge_only: 0, human_only: 0, neither: 1, by_case: None };
        assert_eq!(graded(300, 300, few).verdict, Verdict::Inconclusive, "four ratings show nothing of the grader");
        let lenient = Agreement { both: 50, judge_only: 45, human_only: 0, neither: 5, by_case: None };
        assert_eq!(graded(300, 300, lenient).verdict, Verdict::Inconclusive, "it passes nearly everything");
        let harsh = Agreement { both: 100, judge_only: 0, human_only: 100, neither: 50, by_case: None };
        assert_eq!(graded(150, 300, harsh).verdict, Verdict::Inconclusive, "it fails half of what is good");
        assert_eq!(graded(30, 300, sure).verdict, Verdict::Fail);
        let kinds = |kind, floor, agreement| {
            let mut clusters = Clusters::default();
            clusters.add_many(1, 1, 300);
            let evidence = Evidence {
                good: 300,
                n: 300,
                sample: &Sample::Fixed(clusters),
                per_conversation: false,
                agreement: Some(agreement),
            };
            rule(asked(kind, 0.5, floor, 1), evidence).verdict
        };
        let blind = Agreement { both: 0, judge_only: 15, human_only: 0, neither: 0, by_case: None };
        for kind in [GateKind::Point, GateKind::Invariant, GateKind::Confidence] {
            assert_eq!(kinds(kind, None, blind), Verdict::Inconclusive, "{kind:?}: it is wrong every time");
        }
        assert_eq!(kinds(GateKind::Point, None, sure), Verdict::Pass);
        assert_eq!(kinds(GateKind::Invariant, Some(0.95), sure), Verdict::Pass);
        assert_eq!(kinds(GateKind::Invariant, None, sure), Verdict::Inconclusive, "no floor says what is asked");
        let nobody = Agreement { both: 200, judge_only: 0, human_only: 0, neither: 0, by_case: None };
        assert_eq!(graded(300, 300, nobody).verdict, Verdict::Inconclusive, "it was never seen to find a bad answer");
    }

    #[test]
    fn an_invariant_needs_no_violation_and_its_floor() {
        let sc = asked(GateKind::Invariant, 1.0, Some(0.95), 60);
        assert_eq!(ruled(sc, 60, 60).verdict, Verdict::Pass);
        assert_eq!(ruled(sc, 59, 59).verdict, Verdict::Inconclusive);
        assert_eq!(ruled(sc, 59, 59).more, Some(1));
        assert_eq!(ruled(sc, 1_999, 2_000).verdict, Verdict::Fail);
        assert_eq!(ruled(sc, 0, 1).verdict, Verdict::Fail, "at any n");
        assert_eq!(ruled(asked(GateKind::Invariant, 1.0, None, 0), 1, 1).verdict, Verdict::Pass);
    }

    #[test]
    fn confidence_rests_on_bounds() {
        let sc = asked(GateKind::Confidence, 0.95, None, 0);
        assert_eq!(ruled(sc, 38, 40).verdict, Verdict::Inconclusive);
        assert_eq!(ruled(sc, 38, 40).more, Some(84));
        assert_eq!(ruled(sc, 122, 124).verdict, Verdict::Pass);
        assert_eq!(ruled(sc, 16, 20).verdict, Verdict::Fail);
        assert_eq!(ruled(sc, 20, 20).verdict, Verdict::Inconclusive, "20 units cannot pass 95 %");
        assert_eq!(ruled(asked(GateKind::Confidence, 0.20, None, 0), 11, 40).verdict, Verdict::Inconclusive);
    }

    #[test]
    fn a_point_gate_looks_at_the_figure_alone() {
        let sc = asked(GateKind::Point, 0.95, None, 10);
        assert_eq!(ruled(sc, 19, 20).verdict, Verdict::Pass);
        assert_eq!(ruled(sc, 18, 20).verdict, Verdict::Fail);
        assert_eq!(ruled(sc, 3, 9).verdict, Verdict::Inconclusive);
    }

    #[test]
    fn a_population_counts_cases_of_equal_weight_and_a_failure_never_helps() {
        let asked = asked(GateKind::Confidence, 0.95, None, 0);
        let of = |cases: &[(u64, u64)]| {
            let (good, n) = cases.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            rule(asked, Evidence { good, n, sample: &cases_of(cases), per_conversation: false, agreement: None })
        };
        let (all, less) = (of(&[(40, 40); 5]), of(&[(40, 40), (40, 40), (40, 40), (40, 40), (39, 40)]));
        assert_eq!((all.verdict, less.verdict), (Verdict::Inconclusive, Verdict::Inconclusive));
        assert!(less.lower < all.lower && all.more == Some(54), "{all:?} {less:?}");
        assert_eq!(of(&[(1, 1); 59]).verdict, Verdict::Pass);
    }

    #[test]
    fn turns_of_one_conversation_are_one_piece_of_evidence() {
        // Sixty conversations of four turns, all or nothing: 236 of 240 turns are 59 of 60 conversations.
        let clusters: Clusters = std::iter::repeat_n((4, 4), 59).chain([(0, 4)]).collect();
        let asked = asked(GateKind::Confidence, 0.95, None, 0);
        let found = rule(
            asked,
            Evidence { good: 236, n: 240, sample: &Sample::Fixed(clusters), per_conversation: false, agreement: None },
        );
        assert_eq!((found.verdict, ruled(asked, 236, 240).verdict), (Verdict::Inconclusive, Verdict::Pass));
        let few: Clusters = std::iter::repeat_n((4, 4), 30).collect();
        let point = Asked { kind: GateKind::Point, target: 0.5, floor: None, min_n: 60, ..asked };
        let found = rule(
            point,
            Evidence { good: 120, n: 120, sample: &Sample::Fixed(few), per_conversation: false, agreement: None },
        );
        assert_eq!(found.verdict, Verdict::Inconclusive, "min_n counts conversations");
    }

    #[test]
    fn a_mean_of_conversations_passes_only_where_the_share_of_units_reaches_the_target_too() {
        // 300 good conversations of one turn, and 12 of 12 turns of which half fail.
        let clusters: Clusters = std::iter::repeat_n((1, 1), 300).chain([(6, 12); 12]).collect();
        let sample = Sample::conversations(&clusters);
        let found = |target: f64, per_conversation: bool| {
            let evidence = Evidence { good: 372, n: 444, sample: &sample, per_conversation, agreement: None };
            rule(asked(GateKind::Confidence, target, None, 0), evidence)
        };
        assert_eq!((found(0.95, false).verdict, found(0.95, true).verdict), (Verdict::Pass, Verdict::Inconclusive));
        assert_eq!(found(0.95, true).more, None, "no number of good conversations is promised to mend it");
        assert_eq!(found(0.83, true).verdict, Verdict::Pass);
        let point = Evidence { good: 372, n: 444, sample: &sample, per_conversation: true, agreement: None };
        assert_eq!(rule(asked(GateKind::Point, 0.95, None, 0), point).verdict, Verdict::Inconclusive);
        assert_eq!(point.figures(), [sample.figure(), 372.0 / 444.0]);
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
            prop_assert!(worth(ruled(asked, good + 1, n).verdict) >= worth(ruled(asked, good, n).verdict));
        }

        #[test]
        fn a_success_instead_of_a_failure_never_lowers_a_bound_or_worsens_a_verdict_of_any_estimand_and_kind(
            counts in proptest::collection::vec((0_u64..5, 0_u64..3), 1..40), at in 0_usize..40,
            kind in 0..3_u8, target in 0.5..=1.0_f64, min_n in 0_u64..60, population in any::<bool>(),
        ) {
            let kind = [GateKind::Invariant, GateKind::Confidence, GateKind::Point][usize::from(kind)];
            let asked = asked(kind, target, Some(target * 0.9), min_n);
            let mut counts: Vec<(u64, u64)> = counts.into_iter().map(|(good, bad)| (good, good + bad)).collect();
            let judged = |counts: &[(u64, u64)]| {
                let (good, n) = counts.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
                let sample = if population {
                    cases_of(counts)
                } else {
                    Sample::Fixed(counts.iter().copied().collect())
                };
                rule(asked, Evidence { good, n: n.max(1), sample: &sample, per_conversation: false, agreement: None })
            };
            prop_assume!(counts.iter().any(|(_, n)| *n > 0));
            let before = judged(&counts);
            let place = at % counts.len();
            counts[place].0 = (counts[place].0 + 1).min(counts[place].1);
            let after = judged(&counts);
            prop_assert!(worth(after.verdict) >= worth(before.verdict));
            prop_assert!(after.lower >= before.lower - 1e-12 && after.upper >= before.upper - 1e-12);
        }

        #[test]
        fn what_is_said_to_be_missing_is_what_is_missing(
            n in 1_u64..200, failures in 0_u64..6, target in 0.5..0.99_f64, min_n in 0_u64..100,
        ) {
            let good = n.saturating_sub(failures);
            let asked = asked(GateKind::Confidence, target, None, min_n);
            if let Some(more) = ruled(asked, good, n).more {
                prop_assert_eq!(ruled(asked, good + more, n + more).verdict, Verdict::Pass);
                prop_assert_ne!(ruled(asked, good + more - 1, n + more - 1).verdict, Verdict::Pass);
            }
        }
    }
}

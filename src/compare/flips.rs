//! Cases that passed on one side only, or more often on one side, with a trial of each side to inspect.

use super::Passes;
use super::pairing::Pair;
use super::summary::{CASES, CaseFigures, TrialOutcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One case with different results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flip {
    /// `scenario/case`.
    pub case: String,
    /// The variant under A.
    pub variant_a: String,
    /// The variant under B.
    pub variant_b: String,
    /// Trials passed and run under A.
    pub a: Passes,
    /// Trials passed and run under B.
    pub b: Passes,
    /// Those of A in the repetitions that both sides have, where that leaves some out: by these it is worse or better,
    /// unless they are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub both_a: Option<Passes>,
    /// Those of B in the repetitions that both sides have, where that leaves some out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub both_b: Option<Passes>,
    /// Whether B is worse.
    pub worse: bool,
    /// A trial of A as evidence; `None` when A is a baseline file.
    pub trial_a: Option<String>,
    /// A trial of B as evidence, of the same repetition if there is one.
    pub trial_b: Option<String>,
    /// The first expectation that the failing trial did not meet.
    pub why: String,
}

impl Flip {
    /// Trials passed before and after: `3/3 passed, then 2/5 (3/3 and 0/3 in the repetitions that both have)`.
    pub(crate) fn counts(&self) -> String {
        format!("{} passed, then {}{}", share(self.a), share(self.b), self.in_both())
    }

    /// Trials passed in the repetitions that both sides have, in brackets; empty if these are all.
    pub(crate) fn in_both(&self) -> String {
        self.both_a.zip(self.both_b).map_or_else(String::new, |(a, b)| {
            format!(" ({} and {} in the repetitions that both have)", share(a), share(b))
        })
    }
}

fn share(passes: Passes) -> String {
    format!("{}/{}", passes.passed, passes.trials)
}

/// Passes of one case on both sides, over the repetitions that both have; of logs, over all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PairedCase {
    /// `scenario/case`.
    pub case: String,
    /// The variant under A.
    pub variant_a: String,
    /// The variant under B.
    pub variant_b: String,
    /// Trials passed and run under A.
    pub a: Passes,
    /// Trials passed and run under B.
    pub b: Passes,
}

/// Trials of a case that passed, and that ran, under A and under B: in the repetitions that both have, of logs in all.
fn counted(pair: &Pair<'_>, a: &CaseFigures, b: &CaseFigures) -> ((u64, u64), (u64, u64)) {
    if pair.logged {
        return (a.graded(), b.graded());
    }
    let paired = a.paired(b, CASES, false);
    (paired.a, paired.b)
}

/// Every case that ran on both sides: largest losses first, then largest gains, then in plan order.
pub(super) fn paired(pairs: &[Pair<'_>]) -> Vec<PairedCase> {
    let mut found = Vec::new();
    for pair in pairs {
        for (a, b) in &pair.rows {
            let (of_a, of_b) = counted(pair, a, b);
            if of_a.1 > 0 && of_b.1 > 0 {
                let case = format!("{}/{}", pair.scenario, pair.case);
                let (variant_a, variant_b) = (a.variant.clone(), b.variant.clone());
                found.push(PairedCase { case, variant_a, variant_b, a: of_a.into(), b: of_b.into() });
            }
        }
    }
    let share = |one: Passes| one.passed as f64 / one.trials as f64;
    let gap = |one: &PairedCase| share(one.b) - share(one.a);
    let rank = |one: &PairedCase| {
        if gap(one) < 0.0 {
            0
        } else if gap(one) > 0.0 {
            1
        } else {
            2
        }
    };
    found.sort_by(|one, other| rank(one).cmp(&rank(other)).then(gap(other).abs().total_cmp(&gap(one).abs())));
    found
}

/// Flips and lesser changes: worse ones first, then by the size of the difference and the name.
///
/// A flip is a case with every repetition passed on one side and none on the other. Anything between can be chance
/// for a case that passes nine times in ten: it is a change, reported with both shares.
pub(super) fn flips(pairs: &[Pair<'_>]) -> (Vec<Flip>, Vec<Flip>) {
    let mut flips: Vec<(f64, Flip)> = Vec::new();
    let mut changes: Vec<(f64, Flip)> = Vec::new();
    for pair in pairs {
        for (a, b) in &pair.rows {
            let (of_a, of_b) = counted(pair, a, b);
            let ((mut passed_a, mut trials_a), (mut passed_b, mut trials_b)) = (of_a, of_b);
            let all = [a.graded(), b.graded()];
            let both = ([of_a, of_b] != all && trials_a > 0).then_some((of_a.into(), of_b.into()));
            // An unpaired repetition counts if it ends a clean record.
            let clean = |case: &CaseFigures| case.passed > 0 && case.passed == case.graded().1;
            if trials_a == 0 || passed_a == passed_b && clean(a) != clean(b) {
                [(passed_a, trials_a), (passed_b, trials_b)] = all;
            }
            if trials_a == 0 || trials_b == 0 || passed_a * trials_b == passed_b * trials_a {
                continue;
            }
            let gap = passed_b as f64 / trials_b as f64 - passed_a as f64 / trials_a as f64;
            let none = |case: &CaseFigures| case.passed == 0;
            let whole = clean(a) && none(b) || clean(b) && none(a);
            let (both_a, both_b) = both.unzip();
            let flip = Flip { both_a, both_b, ..flip(pair, (a, b), gap < 0.0) };
            if whole { &mut flips } else { &mut changes }.push((gap, flip));
        }
    }
    for found in [&mut flips, &mut changes] {
        found.sort_by(|(one_gap, one), (other_gap, other)| {
            let size = other_gap.abs().total_cmp(&one_gap.abs());
            other.worse.cmp(&one.worse).then(size).then_with(|| one.case.cmp(&other.case))
        });
    }
    let bare = |found: Vec<(f64, Flip)>| found.into_iter().map(|(_, flip)| flip).collect();
    (bare(flips), bare(changes))
}

fn flip(pair: &Pair<'_>, (a, b): (&CaseFigures, &CaseFigures), worse: bool) -> Flip {
    let (good, bad) = if worse { (a, b) } else { (b, a) };
    let failing = bad.trials_run.iter().find(|trial| !trial.passed).or(bad.trials_run.first());
    let same = |trial: &&TrialOutcome| failing.is_none_or(|failing| failing.repetition == trial.repetition);
    let passing = good.trials_run.iter().filter(|trial| trial.passed);
    let passing = passing.clone().find(same).or_else(|| passing.clone().next()).or(good.trials_run.first());
    let (one, other) = if worse { (passing, failing) } else { (failing, passing) };
    Flip {
        case: format!("{}/{}", pair.scenario, pair.case),
        variant_a: a.variant.clone(),
        variant_b: b.variant.clone(),
        a: a.graded().into(),
        b: b.graded().into(),
        both_a: None,
        both_b: None,
        worse,
        trial_a: one.map(|trial| trial.id.clone()),
        trial_b: other.map(|trial| trial.id.clone()),
        why: failing.map(|trial| trial.why.clone()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RepetitionCounts, pairing::pair, sample::summary};
    use super::*;

    #[test]
    fn a_repetition_without_a_partner_that_fails_ends_a_clean_record() {
        let (once, twice) = (summary("a", &[("one", 1, 1)]), summary("b", &[("one", 1, 2)]));
        let (flips_of, found) = flips(&pair(&once, &twice).pairs);
        assert_eq!(
            found.iter().map(|flip| (flip.a, flip.b, flip.worse)).collect::<Vec<_>>(),
            [((1, 1).into(), (1, 2).into(), true)]
        );
        assert_eq!(flips_of, [], "one of two still passes: a change");
        assert!(!flips(&pair(&twice, &once).pairs).1[0].worse);
        assert_eq!(flips(&pair(&once, &summary("b", &[("one", 2, 2)])).pairs), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_case_without_a_repetition_in_common_flips_by_those_that_each_side_has() {
        let (a, mut b) = (summary("a", &[("one", 3, 3)]), summary("b", &[("one", 0, 3)]));
        let later = |repetition| RepetitionCounts { repetition, successes: 0, n: 1 };
        b.cases[0].repetitions.insert(CASES.into(), (4..=6).map(later).collect());
        let (found, changes) = flips(&pair(&a, &b).pairs);
        assert_eq!((found[0].counts().as_str(), found[0].worse), ("3/3 passed, then 0/3", true));
        assert_eq!((found.len(), changes), (1, Vec::new()));
    }

    #[test]
    fn a_share_is_that_of_all_repetitions_and_those_of_both_stand_beside_it() {
        let a = summary("a", &[("one", 3, 3)]);
        let mut b = summary("b", &[("one", 2, 5)]);
        b.cases[0].repetitions.insert(
            CASES.into(),
            (1..=5)
                .map(|repetition| RepetitionCounts { repetition, successes: u64::from(repetition > 3), n: 1 })
                .collect(),
        );
        let found = flips(&pair(&a, &b).pairs).1;
        assert_eq!(found[0].counts(), "3/3 passed, then 2/5 (3/3 and 0/3 in the repetitions that both have)");
        let same = flips(&pair(&a, &summary("b", &[("one", 2, 3)])).pairs).1;
        assert_eq!((same[0].counts().as_str(), same[0].both_a), ("3/3 passed, then 2/3", None));
    }

    #[test]
    fn a_flip_is_every_repetition_passing_to_none_and_what_lies_between_is_a_change() {
        let a = summary("a", &[("all", 3, 3), ("fewer", 3, 3), ("some", 2, 3), ("none", 0, 3), ("once", 1, 1)]);
        let b = summary("b", &[("all", 0, 3), ("fewer", 2, 3), ("some", 0, 3), ("none", 3, 3), ("once", 0, 1)]);
        let (found, changes) = flips(&pair(&a, &b).pairs);
        let names = |all: &[Flip]| all.iter().map(|one| (one.case.clone(), one.worse)).collect::<Vec<_>>();
        let expect =
            |rows: &[(&str, bool)]| rows.iter().map(|(name, worse)| ((*name).to_owned(), *worse)).collect::<Vec<_>>();
        assert_eq!(names(&found), expect(&[("s/all", true), ("s/once", true), ("s/none", false)]));
        assert_eq!(names(&changes), expect(&[("s/some", true), ("s/fewer", true)]));
        assert_eq!((changes[1].a, changes[1].b), ((3, 3).into(), (2, 3).into()));
    }

    #[test]
    fn worse_cases_come_first_each_with_a_passing_and_a_failing_trial() {
        let a = summary("a", &[("better", 0, 3), ("same", 2, 3), ("worse", 3, 3), ("worst", 3, 3)]);
        let b = summary("b", &[("better", 3, 3), ("same", 2, 3), ("worse", 2, 3), ("worst", 0, 3)]);
        let (flips, changes) = flips(&pair(&a, &b).pairs);
        assert_eq!(flips.iter().map(|flip| flip.case.as_str()).collect::<Vec<_>>(), ["s/worst", "s/better"]);
        let found = [&flips[0], &changes[0], &flips[1]];
        assert!(found[0].worse && found[1].worse && !found[2].worse);
        assert_eq!(found[1].trial_a.as_deref(), Some("s/worse/tool-rag.base.3"), "of the repetition that fails");
        assert_eq!(found[1].trial_b.as_deref(), Some("s/worse/tool-rag.base.3"));
        assert_eq!(found[1].why, "it was wrong");
        assert_eq!(found[2].trial_a.as_deref(), Some("s/better/tool-rag.base.1"));
    }
}

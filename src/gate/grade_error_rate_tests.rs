//! Simulates how often a verdict on grades is wrong: the true rate is the target, the grader errs, and its error
//! rates are estimated from rated answers alone. The slow test (`.ci/slow`) prints the rows of
//! `docs/why/verdicts.md`.

use super::Verdict;
use super::rule::{Asked, Evidence, rule};
use crate::scenario::GateKind;
use crate::stats::{ALPHA, Clusters, Sample};
use crate::trace::Agreement;
use rand::{RngExt as _, SeedableRng as _, rngs::ChaCha8Rng};

const QUICK: u32 = 400;
const SLOW: u32 = 10_000;
/// The true rate, equal to the target.
const TARGET: f64 = 0.85;

/// A grader: rates of passing bad answers and of failing good ones.
type Grader = (f64, f64);

/// Draws an answer that is good with probability `TARGET`: the grade, and whether it was good.
fn graded(rng: &mut ChaCha8Rng, grader: Grader) -> (bool, bool) {
    let good = rng.random_bool(TARGET);
    (rng.random_bool(if good { 1.0 - grader.1 } else { grader.0 }), good)
}

/// The verdict on `n` answers by a grader with measured agreement, with `often` ratings of each case that are all
/// alike.
fn verdict(rng: &mut ChaCha8Rng, grader: Grader, (rated, often, answers): (u32, u32, u64), correct: bool) -> Verdict {
    let cases: Vec<Agreement> = (0..rated / often)
        .map(|_| {
            let (passes, good) = graded(rng, grader);
            let mut case = Agreement::default();
            (0..often).for_each(|_| case.add(passes, good));
            case
        })
        .collect();
    let agreement = Agreement::of_cases(&cases);
    let good = (0..answers).filter(|_| graded(rng, grader).0).count() as u64;
    let mut clusters = Clusters::default();
    clusters.add_many(1, 1, good);
    clusters.add_many(0, 1, answers - good);
    let asked = Asked { kind: GateKind::Confidence, target: TARGET, floor: None, min_n: 1, alpha_fail: ALPHA };
    let agreement = correct.then_some(agreement);
    rule(asked, Evidence { good, n: answers, sample: &Sample::Fixed(clusters), per_conversation: false, agreement })
        .verdict
}

fn share(runs: u32, seed: u64, wrong: impl Fn(&mut ChaCha8Rng) -> bool) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    f64::from((0..runs).map(|_| u32::from(wrong(&mut rng))).sum::<u32>()) / f64::from(runs)
}

fn lines(runs: u32) -> Vec<(String, f64)> {
    let graders: [(&str, Grader); 3] = [("lenient", (0.4, 0.02)), ("harsh", (0.05, 0.15)), ("sound", (0.1, 0.05))];
    let mut lines = Vec::new();
    for (name, grader) in graders {
        for wrong in [Verdict::Pass, Verdict::Fail] {
            for (often, cases) in [(1, ""), (4, ", four of each case")] {
                let found = share(runs, 1, |rng| verdict(rng, grader, (120, often, 300), true) == wrong);
                let what = format!("{wrong:?} of grades at the target, a {name} grader, 120 rated{cases}, 300 graded");
                lines.push((what, found));
            }
        }
    }
    lines
}

fn hold(lines: &[(String, f64)], runs: u32) {
    let most = ALPHA + 4.0 * (ALPHA * (1.0 - ALPHA) / f64::from(runs)).sqrt();
    for (what, found) in lines {
        assert!(*found <= most, "{what}: {found} of a stated {ALPHA}");
    }
}

#[test]
fn a_grader_that_errs_deceives_no_verdict_and_would_without_the_correction() {
    hold(&lines(QUICK), QUICK);
    let naive = share(QUICK, 2, |rng| verdict(rng, (0.4, 0.02), (120, 1, 300), false) == Verdict::Pass);
    assert!(naive > 0.3, "what the correction is there for: {naive}");
}

#[test]
#[ignore = "10,000 runs of each grader: .ci/slow"]
fn ten_thousand_runs_of_each_grader() {
    let lines = lines(SLOW);
    for (what, found) in &lines {
        eprintln!("| {what} | .05 | {found:.4} |");
    }
    hold(&lines, SLOW);
}

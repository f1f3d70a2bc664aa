//! How often a whole comparison is wrong, by simulation: equal behaviours that are called different, and a loss of exactly the
//! margin that is called none. The quick test looks for what is far off; the slow one (`.ci/slow`) makes 10,000 runs of each
//! and prints the table of `docs/why/verdicts.md`.

use super::collect::cases_row;
use super::counts::RepetitionCounts;
use super::judged::TURN_TIME;
use super::sample::summary;
use super::{CASES, Finding, Measured, Summary, compare, compare_variants};
use rand::{RngExt as _, SeedableRng as _, rngs::ChaCha8Rng};

const QUICK: u32 = 120;
const SLOW: u32 = 10_000;

/// One behaviour: cases of unequal rates, less `loss`, and log-normal turn times; so many repetitions of each case.
fn side(rng: &mut ChaCha8Rng, variant: &str, (cases, repetitions): (u32, u32), loss: f64) -> Summary {
    let names: Vec<String> = (0..cases).map(|case| format!("c{case:02}")).collect();
    let rows: Vec<(&str, u64, u64)> = names.iter().map(|name| (name.as_str(), 0, u64::from(repetitions))).collect();
    let mut side = summary("run", &rows);
    variant.clone_into(&mut side.settings[0].variant);
    for (number, case) in side.cases.iter_mut().enumerate() {
        variant.clone_into(&mut case.variant);
        let rate = 0.5 + 0.49 * number as f64 / f64::from(cases) - loss;
        for row in case.repetitions.get_mut(CASES).into_iter().flatten() {
            row.successes = u64::from(rng.random_bool(rate));
        }
        // The sum of twelve evens is near enough to a normal one.
        let spread = (0..12).map(|_| rng.random_range(0.0..1.0)).sum::<f64>() - 6.0;
        case.turn_us = Some((2e6 * (0.4 * spread).exp()) as u64);
    }
    side
}

/// One behaviour under six required criteria of random numbers of units: 1, 2 or 4 in each repetition, of which all fail or
/// none, more often the more there are.
fn six_criteria(rng: &mut ChaCha8Rng, (cases, repetitions): (u32, u32)) -> Summary {
    let mut side = side(rng, "base", (cases, repetitions), 0.0);
    for key in ["c1", "c2", "c3", "c4", "c5", "c6"] {
        side.criteria.push(Measured { key: key.into(), ..cases_row() });
        for (number, case) in side.cases.iter_mut().enumerate() {
            let rate = 0.4 + 0.55 * number as f64 / f64::from(cases);
            let rows = (1..=repetitions).map(|repetition| {
                let units = 1 << rng.random_range(0..3_u64);
                let good = rng.random_bool(rate * (1.0 - 0.05 * units as f64));
                RepetitionCounts { repetition, successes: units * u64::from(good), n: units }
            });
            case.repetitions.insert(key.into(), rows.collect());
        }
    }
    side
}

fn share(runs: u32, seed: u64, mut wrong: impl FnMut(&mut ChaCha8Rng) -> bool) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    f64::from((0..runs).map(|_| u32::from(wrong(&mut rng))).sum::<u32>()) / f64::from(runs)
}

/// What is wrong, what is stated, and how often it was seen.
type Line = (&'static str, f64, f64);

fn lines(runs: u32) -> Vec<Line> {
    let alarm = |row: &super::ComparedCriterion| matches!(row.finding, Finding::Better | Finding::Worse);
    let two = |rng: &mut ChaCha8Rng, size: (u32, u32), loss: f64, margin: f64| {
        let (a, b) = (side(rng, "base", size, 0.0), side(rng, "base", size, loss));
        compare(&a, &b, margin).expect("comparable")
    };
    let of = |size: (u32, u32), seed| {
        share(runs, seed, |rng| two(rng, size, 0.0, 0.0).rows.iter().any(|row| row.gated && alarm(row)))
    };
    let four = share(runs, 3, |rng| {
        let mut run = side(rng, "a", (10, 2), 0.0);
        for variant in ["b", "c", "d"] {
            let more = side(rng, variant, (10, 2), 0.0);
            run.cases.extend(more.cases);
            run.settings.extend(more.settings);
        }
        let found = compare_variants(&run, &[], 0.0).expect("comparable");
        found.pairs.iter().flat_map(|pair| &pair.rows).any(|row| row.gated && alarm(row))
    });
    let six = |size: (u32, u32), seed| {
        share(runs, seed, |rng| {
            let (a, b) = (six_criteria(rng, size), six_criteria(rng, size));
            compare(&a, &b, 0.0).expect("comparable").rows.iter().any(|row| row.gated && alarm(row))
        })
    };
    let time =
        share(runs, 4, |rng| two(rng, (20, 1), 0.0, 0.0).rows.iter().any(|row| row.key == TURN_TIME && alarm(row)));
    let lost = share(runs, 5, |rng| {
        let found = two(rng, (40, 4), 0.10, 0.10);
        let row = found.rows.iter().find(|row| row.key == CASES).expect("the row on cases");
        matches!(row.finding, Finding::NotWorse | Finding::Better)
    });
    vec![
        ("a difference between equal behaviours, 20 cases once", 0.05, of((20, 1), 1)),
        ("a difference between equal behaviours, 10 cases five times", 0.05, of((10, 5), 2)),
        ("a difference in any of seven required rows, 1 to 4 units at random, 20 cases once", 0.05, six((20, 1), 6)),
        ("a difference in any of seven required rows, 1 to 4 units at random, 12 cases twice", 0.05, six((12, 2), 7)),
        ("a difference in any of six pairs of four equal variants, 10 cases twice", 0.05, four),
        ("a difference of turn times, 20 cases of equal times", 0.05, time),
        ("\"not worse by more than 10 points\" of a loss of 10, 40 cases four times", 0.025, lost),
    ]
}

fn hold(lines: &[Line], runs: u32) {
    // Four standard errors above what is stated.
    for (what, stated, found) in lines {
        let most = stated + 4.0 * (stated * (1.0 - stated) / f64::from(runs)).sqrt();
        assert!(*found <= most, "{what}: {found} of a stated {stated}");
    }
}

#[test]
fn equal_behaviours_are_seldom_called_different_nor_a_loss_none() {
    hold(&lines(QUICK), QUICK);
}

#[test]
#[ignore = "10,000 runs of each comparison: .ci/slow"]
fn ten_thousand_comparisons_of_each_kind() {
    let lines = lines(SLOW);
    for (what, stated, found) in &lines {
        eprintln!("| {what} | {stated} | {found:.4} |");
    }
    hold(&lines, SLOW);
}

//! Simulated error rates of verdicts under adversarial behaviours, compared with the stated 5 %.
//!
//! The quick tests find large deviations; the slow one (`.ci/slow`) makes 10,000 runs of each behaviour and prints the
//! table of `docs/why/verdicts.md`.

use super::betting::{Bet, Stakes};
use super::rate::{binomial_cdf, lower_bound};
use super::{Clusters, Sample, population};
use rand::{RngExt as _, SeedableRng as _, rngs::ChaCha8Rng};

/// Runs of one behaviour in the quick tests.
const QUICK: u32 = 300;
/// Runs of one behaviour in `.ci/slow`.
const SLOW: u32 = 10_000;

/// Sizes of conversations like the shipped ones: 165 of one turn, 83 of two, 23 of three, 12 of four.
const SHIPPED: &[(u64, u64)] = &[(1, 165), (2, 83), (3, 23), (4, 12)];
/// Two long conversations among many short ones.
const LONG: &[(u64, u64)] = &[(1, 60), (20, 2)];

/// Dependence between the turns of one conversation.
#[derive(Debug, Clone, Copy)]
enum Turns {
    /// All of them fail, or none.
    AllOrNothing,
    /// Independently.
    Independent,
    /// The longest conversations alone fail, as a whole, as often as the rate over all turns allows.
    LongFail,
}

/// The conversations of one run whose true rate per turn is `rate`.
fn conversations(rng: &mut ChaCha8Rng, sizes: &[(u64, u64)], rate: f64, turns: Turns) -> Clusters {
    let all: u64 = sizes.iter().map(|(n, number)| n * number).sum();
    let (longest, number) = sizes.last().copied().unwrap_or((1, 1));
    // Failing turns, all in the longest conversations.
    let lost = ((1.0 - rate) * all as f64 / (longest * number) as f64).min(1.0);
    let mut clusters = Clusters::default();
    for (n, number) in sizes {
        for _ in 0..*number {
            let good = match turns {
                Turns::AllOrNothing => n * u64::from(rng.random_bool(rate)),
                Turns::Independent => (0..*n).filter(|_| rng.random_bool(rate)).count() as u64,
                Turns::LongFail if *n == longest => n * u64::from(!rng.random_bool(lost)),
                Turns::LongFail => *n,
            };
            clusters.add(good, *n);
        }
    }
    clusters
}

/// How the rates of cases not seen yet are spread around their mean.
#[derive(Debug, Clone, Copy)]
enum Cases {
    /// Each succeeds always or never.
    AllOrNothing,
    /// All alike.
    Alike,
    /// Most succeed always, the others as seldom as the mean allows, in half of their repetitions.
    HalfOrAll,
    /// Half of them or fewer succeed seldom enough for the mean, nine times in ten at most, the others always.
    NearlyAll,
    /// Evenly between twice the distance from 1 and 1.
    Spread,
}

/// The cases of one run whose mean rate is `rate`: repetitions between 1 and 20, unequal.
fn cases(rng: &mut ChaCha8Rng, number: u64, rate: f64, spread: Cases) -> Sample {
    let counts = (0..number).map(|case| -> Clusters {
        let own = match spread {
            Cases::AllOrNothing => f64::from(u8::from(rng.random_bool(rate))),
            Cases::Alike => rate,
            Cases::HalfOrAll => below(rng, rate, 0.5),
            Cases::NearlyAll => below(rng, rate, (2.0 * rate - 1.0).min(0.9)),
            Cases::Spread => rng.random_range(2.0 * rate - 1.0..=1.0),
        };
        let n = 1 + (case * 7) % 20;
        (0..n).map(|_| (u64::from(rng.random_bool(own)), 1)).collect()
    });
    Sample::cases(&counts.collect::<Vec<_>>())
}

/// `low` as often as the mean `rate` allows, 1 otherwise.
fn below(rng: &mut ChaCha8Rng, rate: f64, low: f64) -> f64 {
    if rng.random_bool((1.0 - rate) / (1.0 - low)) { low } else { 1.0 }
}

/// Whether the mean rate of cases not seen yet is shown to reach the target.
fn passes(sample: &Sample, target: f64) -> bool {
    matches!(sample, Sample::Means { s, number } if population::reaches(*s, *number, target, 0.05))
}

/// The share of runs for which `wrong` holds.
fn share(runs: u32, seed: u64, mut wrong: impl FnMut(&mut ChaCha8Rng) -> bool) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    f64::from((0..runs).map(|_| u32::from(wrong(&mut rng))).sum::<u32>()) / f64::from(runs)
}

/// One line of the table: what, and how often the verdict was wrong.
type Line = (String, f64);

fn fixed_suite(runs: u32) -> Vec<Line> {
    let mut lines = Vec::new();
    for (name, sizes) in [("sizes as shipped", SHIPPED), ("two conversations of 20 turns among 60 of one", LONG)] {
        for target in [0.90, 0.95] {
            for turns in [Turns::AllOrNothing, Turns::Independent, Turns::LongFail] {
                let pass = share(runs, 1, |rng| {
                    Bet::on(Stakes::Planned, &conversations(rng, sizes, target, turns)).reaches(target, 0.05)
                });
                lines.push((format!("PASS at the target {target}, {name}, {turns:?}"), pass));
            }
            let fail = share(runs, 2, |rng| {
                let failures = conversations(rng, sizes, target, Turns::AllOrNothing).mirrored();
                Bet::on(Stakes::Planned, &failures).lower(0.05) > 1.0 - target
            });
            lines.push((format!("FAIL at the target {target}, {name}, AllOrNothing"), fail));
        }
    }
    let looked = share(runs, 3, |rng| {
        let mut passes = Vec::new();
        (0..10).any(|_| {
            passes.push(conversations(rng, &[(1, 16), (2, 8), (3, 2), (4, 1)], 0.90, Turns::AllOrNothing));
            Bet::over(Stakes::Planned, &passes).reaches(0.90, 0.05)
        })
    });
    lines.push(("PASS at the target 0.9, looked at after each of ten passes, AllOrNothing".into(), looked));
    lines
}

/// Dependence between the number of units of a conversation and their outcomes.
#[derive(Debug, Clone, Copy)]
enum Numbers {
    /// A bad conversation has eight units, all of which fail, a good one has one.
    BadAreLong,
    /// A bad conversation has one unit, a good one eight.
    GoodAreLong,
    /// One to eight, uniform and independent of the outcome; all fail or none.
    Even,
    /// One to eight, uniform; units fail independently.
    EachForItself,
}

impl Numbers {
    /// The share of bad conversations (of bad units in each) with which a share `bad` of all units fails.
    fn of_units(self, bad: f64) -> f64 {
        match self {
            Self::BadAreLong => bad / (8.0 - 7.0 * bad),
            Self::GoodAreLong => 8.0 * bad / (1.0 + 7.0 * bad),
            Self::Even | Self::EachForItself => bad,
        }
    }

    /// One conversation, bad with that probability.
    fn draw(self, rng: &mut ChaCha8Rng, bad: f64) -> (u64, u64) {
        let even = rng.random_range(1..=8_u64);
        match self {
            Self::EachForItself => ((0..even).filter(|_| !rng.random_bool(bad)).count() as u64, even),
            _ => match (rng.random_bool(bad), self) {
                (true, Self::BadAreLong) => (0, 8),
                (true, Self::GoodAreLong) => (0, 1),
                (true, _) => (0, even),
                (false, Self::BadAreLong) => (1, 1),
                (false, Self::GoodAreLong) => (8, 8),
                (false, _) => (even, even),
            },
        }
    }
}

/// Numbers of units that are an outcome, at the target: per unit with eight as their maximum, and per conversation, after a
/// fixed number and whenever a look after a pass passes.
fn random_numbers(runs: u32) -> Vec<Line> {
    let mut lines = Vec::new();
    let all = [Numbers::BadAreLong, Numbers::GoodAreLong, Numbers::Even, Numbers::EachForItself];
    for (numbers, target) in all.into_iter().flat_map(|numbers| [(numbers, 0.90), (numbers, 0.95)]) {
        let run = |rng: &mut ChaCha8Rng, bad: f64, conversations: u32| -> Clusters {
            (0..conversations).map(|_| numbers.draw(rng, bad)).collect()
        };
        let per_unit = numbers.of_units(1.0 - target);
        for (claim, bad) in [("unit", per_unit), ("conversation", 1.0 - target)] {
            let stakes = if claim == "unit" { Stakes::Limited(8) } else { Stakes::Means };
            let fixed = |conversations: u32| {
                share(runs, 8, |rng| {
                    let clusters = run(rng, bad, conversations);
                    let sample = match stakes {
                        Stakes::Means => Sample::conversations(&clusters),
                        _ => Sample::Limited { clusters, most: Some(8) },
                    };
                    sample.lower_at(0.05) >= target
                })
            };
            let looked = share(runs, 9, |rng| {
                let mut passes = Vec::new();
                (0..10).any(|_| {
                    passes.push(run(rng, bad, 30));
                    Bet::over(stakes, &passes).reaches(target, 0.05)
                })
            });
            let fail = share(runs, 10, |rng| {
                let clusters = run(rng, bad, 150);
                let sample = match stakes {
                    Stakes::Means => Sample::conversations(&clusters),
                    _ => Sample::Limited { clusters, most: Some(8) },
                };
                sample.upper_at(0.05) < target
            });
            let of = format!("at the target {target} per {claim}, {numbers:?}");
            lines.push((format!("PASS {of}, 60 conversations"), fixed(60)));
            lines.push((format!("PASS {of}, 300 conversations"), fixed(300)));
            lines.push((format!("PASS {of}, after any of ten passes of 30"), looked));
            lines.push((format!("FAIL {of}, 150 conversations"), fail));
        }
    }
    lines
}

fn unseen(runs: u32, numbers: &[u64]) -> Vec<Line> {
    let mut lines = Vec::new();
    for number in numbers {
        for target in [0.80, 0.90, 0.95] {
            for spread in [Cases::AllOrNothing, Cases::Alike, Cases::HalfOrAll, Cases::NearlyAll, Cases::Spread] {
                let pass = share(runs, 4, |rng| passes(&cases(rng, *number, target, spread), target));
                lines.push((format!("PASS at the target {target}, {number} cases not seen yet, {spread:?}"), pass));
            }
        }
        // Three and five cases of mean .7425 against 80 %: the attack of a hundred false PASS in 300 runs.
        let low = share(runs, 5, |rng| passes(&cases(rng, *number, 0.7425, Cases::AllOrNothing), 0.80));
        lines.push((format!("PASS of a mean of 0.7425 against 0.8, {number} cases not seen yet, AllOrNothing"), low));
    }
    lines
}

/// Six required gates at their targets: at least one FAIL.
fn several_gates(runs: u32) -> Vec<Line> {
    let run = |alpha: f64| {
        share(runs, 6, |rng| {
            (0..6).any(|_| {
                let good = (0..150).filter(|_| rng.random_bool(0.95)).count() as u64;
                let clusters: Clusters = (0..150).map(|unit| (u64::from(unit < good), 1)).collect();
                Sample::Fixed(clusters).upper_at(alpha) < 0.95
            })
        })
    };
    let mut lines = vec![("FAIL of a run of six gates at their targets, 150 units each".into(), run(0.05 / 6.0))];
    for numbers in [Numbers::BadAreLong, Numbers::GoodAreLong, Numbers::Even, Numbers::EachForItself] {
        let fail = share(runs, 12, |rng| {
            (0..6).any(|_| {
                let clusters: Clusters = (0..150).map(|_| numbers.draw(rng, 0.05)).collect();
                Sample::conversations(&clusters).upper_at(0.05 / 6.0) < 0.95
            })
        });
        lines.push((
            format!("FAIL of a run of six gates at their targets per conversation, 150 each, {numbers:?}"),
            fail,
        ));
    }
    lines
}

fn hold(lines: &[Line], runs: u32) {
    // Four standard errors above the stated 5 %: what is far off is found, what holds is not blamed.
    let most = 0.05 + 4.0 * (0.05 * 0.95 / f64::from(runs)).sqrt();
    for (what, found) in lines {
        assert!(*found <= most, "{what}: {found} of a stated 0.05");
    }
}

#[test]
fn turns_of_one_conversation_deceive_no_verdict() {
    hold(&fixed_suite(QUICK), QUICK);
    // The bound on turns as if they were independent: what it is there for.
    let naive = share(QUICK, 7, |rng| {
        let all = conversations(rng, &[(4, 60)], 0.90, Turns::AllOrNothing);
        lower_bound(all.good(), all.units()) >= 0.90
    });
    assert!(naive > 0.10, "{naive}");
}

#[test]
fn numbers_of_units_that_are_an_outcome_deceive_no_verdict() {
    hold(&random_numbers(QUICK), QUICK);
    // The stake on the largest number that was seen: what the maximum is declared for.
    let naive = share(QUICK, 11, |rng| {
        let bad = Numbers::BadAreLong.of_units(0.10);
        let all: Clusters = (0..60).map(|_| Numbers::BadAreLong.draw(rng, bad)).collect();
        Bet::on(Stakes::Planned, &all).reaches(0.90, 0.05)
    });
    assert!(naive > 0.3, "{naive}");
}

#[test]
fn few_cases_deceive_no_verdict_on_cases_not_seen_yet() {
    hold(&unseen(QUICK, &[2, 3, 5, 20, 60]), QUICK);
}

#[test]
fn six_gates_at_their_targets_fail_a_run_no_more_often_than_one() {
    hold(&several_gates(QUICK), QUICK);
    assert!(1.0 - binomial_cdf(13, 150, 0.05) < 0.05, "one gate alone");
}

#[test]
#[ignore = "10,000 runs of each behaviour: .ci/slow"]
fn ten_thousand_runs_of_each_behaviour() {
    let lines =
        [fixed_suite(SLOW), random_numbers(SLOW), unseen(SLOW, &[2, 3, 5, 10, 20, 30, 60]), several_gates(SLOW)]
            .concat();
    for (what, found) in &lines {
        eprintln!("| {what} | .05 | {found:.4} |");
    }
    hold(&lines, SLOW);
}

//! Tests of alarms over the history.

use super::super::{ANSWERED_VERSION, Rate, Times};
use super::*;
use rand::{RngExt as _, SeedableRng as _, rngs::ChaCha8Rng};

/// The series of points that are few enough to be shown.
fn series(points: &[Point]) -> Vec<Series> {
    super::series(points).0
}

/// The point of that day, with one rate of 1,000 units.
pub fn point(day: u32, rate: f64) -> Point {
    Point {
        version: ANSWERED_VERSION,
        id: format!("{day:016x}"),
        at: format!("2026-{:02}-{:02}T08:00:00Z", 1 + day / 28, 1 + day % 28),
        conditions: Conditions {
            mode: "LIVE".into(),
            models: BTreeSet::from(["m-1".into()]),
            answered_by: BTreeSet::from(["acme m-1".into()]),
            concurrency: 4,
            cases: "c".into(),
        },
        labels: BTreeMap::new(),
        scenarios: BTreeSet::new(),
        trials: 10,
        rates: vec![Rate {
            key: "SC-002".into(),
            metric: "first_attempt_rate".into(),
            target: ">= 95%".into(),
            successes: (rate * 1_000.0).round() as u64,
            n: 1_000,
        }],
        times: Some(Times { n: 10, p50_us: Some(2_000_000), p95_us: Some(4_000_000) }),
        doubt: "",
    }
}

#[test]
fn points_without_an_answer_stay_on_the_line_and_in_no_mean() {
    let points: Vec<Point> = (0..12)
        .map(|day| {
            let mut point = point(day, 0.97);
            point.times = Some(Times { n: 20, p50_us: Some(2_000_000), p95_us: (day < 6).then_some(4_000_000) });
            point
        })
        .collect();
    let [found] = series(&points).try_into().expect("one series");
    let [p50, p95] = &found.lines[1..] else { panic!("{:?}", found.lines) };
    assert!(p50.values.len() == 12 && p50.unanswered.is_empty(), "{p50:?}");
    assert!(p95.values.len() == 6 && p95.unanswered == [6, 7, 8, 9, 10, 11], "{p95:?}");
    assert_eq!((p95.ends(), p95.at(5), p95.at(11)), (Some((0, 11)), Some(4e6), Some(f64::INFINITY)));
    let [none] = series(&points[6..]).try_into().expect("one series");
    assert_eq!((none.lines[2].values.len(), none.lines[2].ends()), (0, Some((0, 5))));
}

#[test]
fn a_lasting_change_is_found_where_it_begins() {
    let points: Vec<Point> =
        (0..24).map(|day| point(day, if day < 12 { 0.97 } else { 0.90 } + f64::from(day % 3) * 0.002)).collect();
    let [found] = series(&points).try_into().expect("one series");
    let changes = &found.lines[0].changes;
    assert_eq!(changes.iter().map(|change| change.point).collect::<Vec<_>>(), [12]);
    assert!((changes[0].before - 0.972).abs() < 1e-9 && (changes[0].after - 0.902).abs() < 1e-9, "{changes:?}");
    assert_eq!(found.lines.len(), 3, "one criterion, p50 and p95");
}

#[test]
fn of_sixteen_points_six_that_lie_five_points_lower_are_a_change_also_among_eighteen_lines() {
    // 590 units in each run, as in the suite of this repository; 94 to 96 % before, 89 to 91 % after.
    let wave: [f64; 10] = [0.0, 0.008, -0.006, 0.003, -0.009, 0.006, -0.002, 0.009, -0.004, 0.001];
    let day = |day: u32| {
        let mut point = point(day, 1.0);
        let line = |line: usize| Rate {
            key: format!("C{line}"),
            metric: "m".into(),
            target: ">= 50%".into(),
            successes: {
                let level = if line == 0 && day >= 10 { 0.90 } else { 0.95 };
                ((level + wave[(day as usize * 7 + line * 3) % 10]) * 590.0).round() as u64
            },
            n: 590,
        };
        point.rates = (0..16).map(line).collect();
        point
    };
    let points: Vec<Point> = (0..16).map(day).collect();
    let [found] = series(&points).try_into().expect("one series");
    let changes: Vec<(usize, usize)> = found
        .lines
        .iter()
        .enumerate()
        .flat_map(|(line, found)| found.changes.iter().map(move |change| (line, change.point)))
        .collect();
    assert_eq!(changes, [(0, 10)]);
    let unchanged = found.lines[1].detectable.expect("sixteen points");
    assert!(unchanged > 0.02 && unchanged < 0.05, "{unchanged}");
    assert_eq!(found.lines[0].detectable, None, "six points since the change");
}

#[test]
fn a_step_of_a_rate_at_100_percent_that_is_said_to_be_found_half_of_the_time_is() {
    let mut rng = ChaCha8Rng::seed_from_u64(41);
    let mut line = |step: f64| {
        let points: Vec<Point> = (0..16)
            .map(|day| {
                let mut point = point(day, 1.0);
                let holds = if day < 10 { 1.0 } else { 1.0 - step };
                (point.rates[0].n, point.rates[0].successes) =
                    (20, (0..20).filter(|_| rng.random_bool(holds)).count() as u64);
                point
            })
            .collect();
        series(&points).remove(0).lines.remove(0)
    };
    let step = line(0.0).detectable.expect("sixteen points");
    let found = (0..300).filter(|_| !line(step).changes.is_empty()).count();
    assert!((90..=210).contains(&found), "{step}: {found} of 300");
}

#[test]
fn another_model_concurrency_or_target_begins_a_new_series() {
    let mut points: Vec<Point> = (0..24).map(|day| point(day, if day < 12 { 0.97 } else { 0.90 })).collect();
    points[12..].iter_mut().for_each(|point| point.conditions.models = BTreeSet::from(["m-2".into()]));
    points[18..].iter_mut().for_each(|point| point.conditions.concurrency = 8);
    let found = series(&points);
    assert_eq!(found.iter().map(|series| series.points.len()).collect::<Vec<_>>(), [12, 6, 6]);
    assert!(found.iter().all(|series| series.lines.iter().all(|line| line.changes.is_empty())));
    let mut raised: Vec<Point> = (0..24).map(|day| point(day, 0.97)).collect();
    raised[12..].iter_mut().for_each(|point| point.rates[0].target = ">= 99%".into());
    let [found] = series(&raised).try_into().expect("one series");
    assert_eq!(found.lines.iter().map(|line| line.values.len()).collect::<Vec<_>>(), [12, 12, 24, 24]);
}

#[test]
fn points_come_by_time_however_they_lie_in_the_file() {
    let mut points: Vec<Point> = (0..6).map(|day| point(day, 0.9)).collect();
    points.reverse();
    let [found] = series(&points).try_into().expect("one series");
    assert!(found.points.is_sorted_by_key(|point| &point.at));
}

#[test]
fn a_noisy_machine_that_does_not_change_raises_hardly_an_alarm() {
    // 300 histories of 40 points of an unchanged agent: a rate of 58 units, and p95 times with heavy tails.
    let mut rng = ChaCha8Rng::seed_from_u64(17);
    let (mut rates, mut times) = (0, 0);
    for _ in 0..300 {
        let points: Vec<Point> = (0..40)
            .map(|day| {
                let mut point = point(day, 1.0);
                (point.rates[0].n, point.rates[0].successes) =
                    (58, (0..58).filter(|_| rng.random_bool(0.95)).count() as u64);
                // A sum of uniforms for the bulk, and one run in twelve on a busy machine.
                let bulk: f64 = (0..6).map(|_| rng.random_range(0.0..1.0)).sum::<f64>() * 300_000.0;
                let busy = if rng.random_bool(1.0 / 12.0) { rng.random_range(1.2..2.0) } else { 1.0 };
                point.times =
                    Some(Times { n: 58, p50_us: Some(2_000_000), p95_us: Some(((4e6 + bulk) * busy) as u64) });
                point
            })
            .collect();
        let [found] = series(&points).try_into().expect("one series");
        let alarmed = |name: &str| found.lines.iter().any(|line| line.name == name && !line.changes.is_empty());
        rates += u32::from(alarmed("SC-002"));
        times += u32::from(alarmed("turn p95"));
        assert!(!alarmed("turn p50"), "what never varies never changes");
    }
    assert!(rates <= 15 && times <= 15, "of 300 histories {rates} alarm by the rate and {times} by the time");
}

/// Simulates a history of an unchanged agent with sixteen criteria and two times, point by point.
fn unchanged(rng: &mut ChaCha8Rng, points: u32) -> Vec<Point> {
    let rates = [0.80, 0.90, 0.95, 0.99];
    let day = |day: u32, rng: &mut ChaCha8Rng| {
        let mut point = point(day, 1.0);
        point.rates = (0..16)
            .map(|line| Rate {
                key: format!("C{line}"),
                metric: "m".into(),
                target: ">= 50%".into(),
                successes: (0..58).filter(|_| rng.random_bool(rates[line % 4])).count() as u64,
                n: 58,
            })
            .collect();
        let bulk: f64 = (0..6).map(|_| rng.random_range(0.0..1.0)).sum::<f64>() * 300_000.0;
        let busy = if rng.random_bool(1.0 / 12.0) { rng.random_range(1.2..2.0) } else { 1.0 };
        let (p50, p95) = ((2e6 + bulk / 3.0) as u64, ((4e6 + bulk) * busy) as u64);
        point.times = Some(Times { n: 58, p50_us: Some(p50), p95_us: Some(p95) });
        point
    };
    (0..points).map(|number| day(number, rng)).collect()
}

/// Number of unchanged histories of 50 points, tested after every point, that ever alarm in any of their 18
/// lines.
fn alarms(histories: u32) -> u32 {
    let mut rng = ChaCha8Rng::seed_from_u64(23);
    let ever = |points: &[Point]| {
        (6..=points.len()).any(|end| series(&points[..end])[0].lines.iter().any(|line| !line.changes.is_empty()))
    };
    (0..histories).filter(|_| ever(&unchanged(&mut rng, 50))).count() as u32
}

#[test]
fn eighteen_lines_looked_at_after_every_point_alarm_together_at_most_one_time_in_twenty() {
    // 40 histories: more than 5 alarms would occur once in a hundred times at the stated 5 %.
    assert!(alarms(40) <= 5, "{} of 40", alarms(40));
}

#[test]
#[ignore = "2,000 histories: .ci/slow"]
fn two_thousand_unchanged_histories() {
    let found = alarms(2_000);
    eprintln!("| alarm of 18 unchanged lines over 50 points and all looks | .05 | {:.4} |", f64::from(found) / 2e3);
    assert!(found <= 130, "{found} of 2,000");
}

const HISTORIES: u32 = 100;

/// In percent, how often a step down of this many standard deviations is found, at its true place and by the
/// newest point, among `lines` lines; the noise is normal, and the rates have so many units that counting adds
/// nothing to it.
fn power(rng: &mut ChaCha8Rng, (points, after): (u32, u32), lines: usize, step: f64) -> u32 {
    let mut normal = || {
        let (radius, angle): (f64, f64) = (rng.random(), rng.random());
        (-2.0 * (1.0 - radius).ln()).sqrt() * (angle * std::f64::consts::TAU).cos()
    };
    let mut once = || {
        let day = |day: u32, noise: f64| {
            let mut point = point(day, 1.0);
            let level = if day >= points - after { 0.7 - 0.01 * step } else { 0.7 };
            let of = |line: usize| {
                let rate = if line == 0 { level + 0.01 * noise } else { 0.7 };
                let (key, metric, target) = (format!("C{line}"), "m".into(), ">= 50%".into());
                Rate { key, metric, target, successes: (rate * 1e7).round() as u64, n: 10_000_000 }
            };
            point.rates = (0..lines - 2).map(of).collect();
            point
        };
        let points: Vec<Point> = (0..points).map(|number| day(number, normal())).collect();
        let [found] = series(&points).try_into().expect("one series");
        let near = |change: &Change| change.point.abs_diff(points.len() - after as usize) <= 1;
        found.lines[0].changes.iter().any(near)
    };
    (0..HISTORIES).filter(|_| once()).count() as u32 * 100 / HISTORIES
}

#[test]
fn a_clear_step_is_found_with_sixteen_points_and_a_faint_one_is_not() {
    let mut rng = ChaCha8Rng::seed_from_u64(37);
    let found = [(16, 6, 1.0), (16, 6, 3.0), (16, 6, 6.0), (30, 15, 3.0)]
        .map(|(points, after, step)| power(&mut rng, (points, after), 18, step));
    assert!(found[0] <= 3 && (13..=48).contains(&found[1]) && found[2] >= 95 && found[3] >= 85, "{found:?}");
}

#[test]
#[ignore = "the table of docs/how-to/history.md: .ci/slow"]
fn the_power_that_is_published() {
    let mut rng = ChaCha8Rng::seed_from_u64(41);
    let rounds = 10;
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/how-to/history.md")).expect("a page");
    for (points, after) in [(16, 3), (16, 6), (30, 3), (30, 6), (30, 15), (50, 6)] {
        for lines in [3, 18] {
            let found = [1.0, 2.0, 3.0, 4.0, 6.0]
                .map(|step| (0..rounds).map(|_| power(&mut rng, (points, after), lines, step)).sum::<u32>() / rounds);
            let figures: Vec<String> = found.iter().map(|share| format!("{share} %")).collect();
            let row = format!("| {points} | {after} | {lines} | {} |", figures.join(" | "));
            eprintln!("{row}");
            let cells = |row: &str| -> Vec<f64> {
                row.split('|').filter_map(|cell| cell.trim().trim_end_matches(" %").parse().ok()).collect()
            };
            let written: Vec<Vec<f64>> = docs.lines().filter(|line| line.starts_with('|')).map(cells).collect();
            let same = |other: &&Vec<f64>| other.len() == 8 && other[..3] == cells(&row)[..3];
            let published = written.iter().find(same).unwrap_or_else(|| panic!("docs/how-to/history.md lacks {row}"));
            // Of 1,000, by chance alone.
            assert!(
                published.iter().zip(cells(&row)).all(|(one, other)| (one - other).abs() <= 6.0),
                "{row}: {published:?}"
            );
        }
    }
}

#[test]
fn a_planted_change_is_found_among_eighteen_lines() {
    let mut rng = ChaCha8Rng::seed_from_u64(29);
    let mut points = unchanged(&mut rng, 40);
    for point in &mut points[25..] {
        point.rates[2].successes = (0..58).filter(|_| rng.random_bool(0.75)).count() as u64;
    }
    let [found] = series(&points).try_into().expect("one series");
    let changes: Vec<usize> = found.lines[2].changes.iter().map(|change| change.point).collect();
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert!(changes[0].abs_diff(25) <= 1, "{changes:?}");
    assert_eq!(found.lines.iter().filter(|line| !line.changes.is_empty()).count(), 1);
}

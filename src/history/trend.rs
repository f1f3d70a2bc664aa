//! Points under equal conditions as series, and where a figure changed for good.

use super::{Conditions, Point};
use crate::stats::change_points::change_points;
use crate::stats::rate::wilson;
use std::collections::BTreeMap;

/// The level, shared among the lines of a series, at which unchanged histories of 50 points that are looked at after
/// each of them alarm in 5 % or less: there are some 40 places for a change, and as many looks.
const LEVEL: f64 = 1e-4;

/// The length of history, in points, that [`LEVEL`] is for; longer ones are given less at each place.
const LENGTH: f64 = 50.0;

/// Points under equal conditions.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Under which.
    pub conditions: Conditions,
    /// Its points by time: when, and the labels.
    pub points: Vec<(String, BTreeMap<String, String>)>,
    /// What was measured in them.
    pub lines: Vec<Line>,
}

/// What a line's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A rate of 0 to 1.
    Rate,
    /// Microseconds.
    Time,
}

/// One figure over the points of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The criterion, or `turn p95`.
    pub name: String,
    /// Its target; empty for a time without one.
    pub target: String,
    /// The metric of the criterion; empty for a time.
    pub metric: String,
    /// What its values are.
    pub unit: Unit,
    /// By point, Wilson's 95 % interval of a rate as if its units were independent: for display alone.
    pub intervals: Vec<(usize, f64, f64)>,
    /// The values: index into the series' points, and value. Points that measured nothing have none.
    pub values: Vec<(usize, f64)>,
    /// Where it changed.
    pub changes: Vec<Change>,
}

/// A change that lasts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Index, into the series' points, of the first point after it.
    pub point: usize,
    /// Mean before.
    pub before: f64,
    /// Mean after.
    pub after: f64,
    /// Two-sided p-value.
    pub p: f64,
}

/// The series of a history: that of the oldest point first.
pub fn series(points: &[Point]) -> Vec<Series> {
    let mut sorted: Vec<&Point> = points.iter().collect();
    sorted.sort_by(|one, other| (&one.at, &one.id).cmp(&(&other.at, &other.id)));
    let mut order: Vec<&Conditions> = Vec::new();
    for point in &sorted {
        if !order.contains(&&point.conditions) {
            order.push(&point.conditions);
        }
    }
    let of = |conditions: &&Conditions| {
        let own: Vec<&Point> = sorted.iter().filter(|point| point.conditions == **conditions).copied().collect();
        Series {
            conditions: (*conditions).clone(),
            lines: lines(&own),
            points: own.iter().map(|point| (point.at.clone(), point.labels.clone())).collect(),
        }
    };
    order.iter().map(of).collect()
}

/// Id, metric and target of a criterion.
type Name = (String, String, String);

fn lines(points: &[&Point]) -> Vec<Line> {
    let mut names: Vec<Name> = Vec::new();
    let mut values: BTreeMap<Name, Vec<(usize, f64)>> = BTreeMap::new();
    let mut intervals: BTreeMap<Name, Vec<(usize, f64, f64)>> = BTreeMap::new();
    for (index, point) in points.iter().enumerate() {
        for rate in &point.rates {
            // Another metric or target under the same id is another question.
            let name = (rate.key.clone(), rate.metric.clone(), rate.target.clone());
            if rate.n > 0 {
                let (low, high) = wilson(rate.successes as f64, rate.n as f64);
                intervals.entry(name.clone()).or_default().push((index, low, high));
            }
            let line = values.entry(name.clone()).or_insert_with(|| {
                names.push(name);
                Vec::new()
            });
            line.push((index, rate.successes as f64 / rate.n.max(1) as f64));
        }
    }
    let timed = ["turn p50", "turn p95"].len() * usize::from(points.iter().any(|point| point.times.is_some()));
    let number = (names.len() + timed).max(1) as f64;
    // An alarm is an alarm in whatever line it is: the level is shared among all of them.
    let level = LEVEL / number / (points.len() as f64 / LENGTH).max(1.0);
    let mut found: Vec<Line> = names
        .into_iter()
        .map(|name| {
            let values = values.remove(&name).unwrap_or_default();
            let intervals = intervals.remove(&name).unwrap_or_default();
            Line { metric: name.1, intervals, ..line(name.0, name.2, Unit::Rate, values, level) }
        })
        .collect();
    for (name, of) in [("turn p50", 0), ("turn p95", 1)] {
        let times = points.iter().enumerate().filter_map(|(index, point)| point.times.map(|times| (index, times)));
        let values: Vec<_> = times.map(|(index, times)| (index, [times.p50_us, times.p95_us][of] as f64)).collect();
        if !values.is_empty() {
            found.push(line(name.to_owned(), String::new(), Unit::Time, values, level));
        }
    }
    found
}

fn line(name: String, target: String, unit: Unit, values: Vec<(usize, f64)>, level: f64) -> Line {
    let figures: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    let found = change_points(&figures, level);
    let ends = [0].into_iter().chain(found.iter().map(|change| change.index)).chain([figures.len()]);
    let ends: Vec<usize> = ends.collect();
    let sure = found
        .iter()
        .zip(ends.windows(3))
        .filter(|(_, ends)| arrangements(ends[1] - ends[0], ends[2] - ends[1]) * level > 1.0);
    let changes = sure.map(|(change, _)| Change {
        point: values[change.index].0,
        before: change.before,
        after: change.after,
        p: change.p,
    });
    let changes = changes.collect();
    Line { name, target, metric: String::new(), unit, intervals: Vec::new(), values, changes }
}

/// In how many ways so many points before and after a change could have come in another order. No order of points
/// that did not change is less likely than one of these, whatever a t-test says of points that hardly vary: three
/// equal ones after three other equal ones have a t of infinity, and are one of twenty orders.
fn arrangements(before: usize, after: usize) -> f64 {
    (1..=after.min(before)).map(|step| (before.max(after) + step) as f64 / step as f64).product()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{POINT_VERSION, Rate, Times};
    use super::*;
    use rand::{RngExt as _, SeedableRng as _, rngs::ChaCha8Rng};
    use std::collections::BTreeSet;

    /// The point of that day, with one rate of 1,000 units.
    pub fn point(day: u32, rate: f64) -> Point {
        Point {
            version: POINT_VERSION,
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
            trials: 10,
            rates: vec![Rate {
                key: "SC-002".into(),
                metric: "first_attempt_rate".into(),
                target: ">= 95%".into(),
                successes: (rate * 1_000.0).round() as u64,
                n: 1_000,
            }],
            times: Some(Times { n: 10, p50_us: 2_000_000, p95_us: 4_000_000 }),
        }
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
        assert!(found.points.is_sorted_by_key(|(at, _)| at));
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
                    point.times = Some(Times { n: 58, p50_us: 2_000_000, p95_us: ((4e6 + bulk) * busy) as u64 });
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

    /// A history of an unchanged agent with sixteen criteria and two times, point by point.
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
            point.times =
                Some(Times { n: 58, p50_us: (2e6 + bulk / 3.0) as u64, p95_us: ((4e6 + bulk) * busy) as u64 });
            point
        };
        (0..points).map(|number| day(number, rng)).collect()
    }

    /// Unchanged histories of 50 points, looked at after every point, that ever alarm in any of their 18 lines.
    fn alarms(histories: u32) -> u32 {
        let mut rng = ChaCha8Rng::seed_from_u64(23);
        let ever = |points: &[Point]| {
            (6..=points.len()).any(|end| series(&points[..end])[0].lines.iter().any(|line| !line.changes.is_empty()))
        };
        (0..histories).filter(|_| ever(&unchanged(&mut rng, 50))).count() as u32
    }

    #[test]
    fn eighteen_lines_looked_at_after_every_point_alarm_together_at_most_one_time_in_twenty() {
        // 40 histories: more than 5 would be more than the stated 5 % allows once in a hundred times.
        assert!(alarms(40) <= 5, "{} of 40", alarms(40));
    }

    #[test]
    #[ignore = "2,000 histories: .ci/slow"]
    fn two_thousand_unchanged_histories() {
        let found = alarms(2_000);
        eprintln!("| alarm of 18 unchanged lines over 50 points and all looks | .05 | {:.4} |", f64::from(found) / 2e3);
        assert!(found <= 130, "{found} of 2,000");
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
}

//! Groups points under equal conditions into series, and finds lasting changes of a figure.

use super::{Conditions, Point};
use crate::stats::change_points::{Measured, Rule, change_points, detectable};
use crate::stats::rate::wilson;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The level, shared among the lines of a series, at which at most 5 % of unchanged histories of 50 points, tested
/// after each point, raise an alarm: there are about 40 places for a change, and as many tests.
const LEVEL: f64 = 1e-4;

/// Smallest number of points on each side of a change of a rate: a single outlier is not a change, and three in a row
/// are rare.
const RATES: usize = 3;

/// Smallest number of points on each side of a change of a time: machines are busy now and then, even for three runs
/// in a row, and such times are far outliers.
const TIMES: usize = 5;

/// Times that differ by less than this share of their mean count as equal.
const SAME: f64 = 0.01;

/// The largest step of a time that is looked for, in times of its mean.
const FURTHEST: f64 = 100.0;

/// The most points of a history that are drawn and searched for changes: a run a day for five years.
const MOST_POINTS: usize = 2_000;

/// The most rates of these points together.
const MOST_FIGURES: usize = 50_000;

/// Age, in points, of the change that [`Line::detectable`] is about.
pub(crate) const RECENT: usize = 6;

/// The length of history, in points, that [`LEVEL`] is calibrated for; longer ones get a lower level at each place.
const LENGTH: f64 = 50.0;

/// Points under equal conditions.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Series {
    /// The shared conditions.
    pub conditions: Conditions,
    /// Its points by time.
    pub points: Vec<Shown>,
    /// The measured figures.
    pub lines: Vec<Line>,
}

/// A point of a series, without its figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Shown {
    /// The identity of what was run.
    pub id: String,
    /// Its time (RFC 3339, UTC).
    pub at: String,
    /// User-defined labels.
    pub labels: BTreeMap<String, String>,
    /// The scenarios, by name, if the point lists them.
    pub scenarios: BTreeSet<String>,
    /// Warning about its line in the file; empty for an unchanged one.
    pub doubt: &'static str,
}

/// Unit of a line's values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A rate of 0 to 1.
    #[default]
    Rate,
    /// Microseconds.
    Time,
}

/// One figure over the points of a series.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Line {
    /// The criterion, or `turn p95`.
    pub name: String,
    /// Its target; empty for a time without one.
    pub target: String,
    /// The metric of the criterion; empty for a time.
    #[serde(skip)]
    pub metric: String,
    /// Unit of its values.
    #[serde(skip)]
    pub unit: Unit,
    /// Wilson's 95 % interval of a rate by point, as if its units were independent: for display only.
    #[serde(skip)]
    pub intervals: Vec<(usize, f64, f64)>,
    /// Index into the series' points, and value. Points without a measurement are left out.
    pub values: Vec<(usize, f64)>,
    /// Index of each point where a time got no answer: longer than any value, and in no mean and no change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<usize>,
    /// Lasting changes.
    pub changes: Vec<Change>,
    /// The step that would be found with probability one half, had it begun [`RECENT`] points ago; `None` while there
    /// are too few points since the last change.
    pub detectable: Option<f64>,
}

impl Line {
    /// A line without points.
    pub(crate) fn new(unit: Unit) -> Self {
        Self { unit, ..Self::default() }
    }

    /// The value at a point, infinite if that point got no answer; `None` if it did not measure it.
    pub(crate) fn at(&self, point: usize) -> Option<f64> {
        let value = self.values.iter().find(|(at, _)| *at == point).map(|(_, value)| *value);
        value.or_else(|| self.unanswered.contains(&point).then_some(f64::INFINITY))
    }

    /// The first and the last point that measured it.
    pub(crate) fn ends(&self) -> Option<(usize, usize)> {
        let points = || self.values.iter().map(|(at, _)| *at).chain(self.unanswered.iter().copied());
        points().min().zip(points().max())
    }
}

/// A lasting change.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Change {
    /// Index, into the series' points, of the first point after it.
    pub point: usize,
    /// Mean before.
    pub before: f64,
    /// Mean after.
    pub after: f64,
    /// Two-sided p-value.
    pub p: f64,
}

/// The series of a history, ordered by their oldest point, and a sentence on older points that are left out; empty if none
/// are.
pub(crate) fn series(points: &[Point]) -> (Vec<Series>, String) {
    let mut newest: Vec<&Point> = points.iter().collect();
    newest.sort_by(|one, other| (&other.at, &other.id).cmp(&(&one.at, &one.id)));
    let mut figures = 0;
    let is_shown = |point: &&&Point| {
        figures += point.rates.len();
        figures <= MOST_FIGURES
    };
    let shown_points = newest.iter().take(MOST_POINTS).take_while(is_shown).count();
    let mut groups: BTreeMap<&Conditions, Vec<&Point>> = BTreeMap::new();
    for point in newest[..shown_points].iter().rev() {
        groups.entry(&point.conditions).or_default().push(point);
    }
    let mut groups: Vec<(&Conditions, Vec<&Point>)> = groups.into_iter().collect();
    groups.sort_by_key(|(_, points)| (&points[0].at, &points[0].id));
    let of = |(conditions, points): (&Conditions, Vec<&Point>)| Series {
        conditions: conditions.clone(),
        lines: lines(&points),
        points: points.iter().map(|point| shown(point)).collect(),
    };
    let older = newest.len() - shown_points;
    let left_out =
        if older > 0 { format!("The oldest {older} of {} points are left out.", newest.len()) } else { String::new() };
    (groups.into_iter().map(of).collect(), left_out)
}

fn shown(point: &Point) -> Shown {
    let (id, at, labels) = (point.id.clone(), point.at.clone(), point.labels.clone());
    Shown { id, at, labels, scenarios: point.scenarios(), doubt: point.doubt }
}

/// Id, metric and target of a criterion.
type Name = (String, String, String);

fn lines(points: &[&Point]) -> Vec<Line> {
    let mut names: Vec<Name> = Vec::new();
    let mut rates: BTreeMap<Name, Vec<(usize, f64, f64)>> = BTreeMap::new();
    for (index, point) in points.iter().enumerate() {
        for rate in point.rates.iter().filter(|rate| rate.n > 0) {
            // Another metric or target under the same id is a different figure.
            let name = (rate.key.clone(), rate.metric.clone(), rate.target.clone());
            let line = rates.entry(name.clone()).or_insert_with(|| {
                names.push(name);
                Vec::new()
            });
            line.push((index, rate.successes as f64, rate.n as f64));
        }
    }
    let timed = ["turn p50", "turn p95"].len() * usize::from(points.iter().any(|point| point.times.is_some()));
    let number = (names.len() + timed).max(1) as f64;
    // An alarm in any line counts: the level is shared among all of them.
    let level = LEVEL / number / (points.len() as f64 / LENGTH).max(1.0);
    let mut found: Vec<Line> =
        names.into_iter().map(|name| rate(rates.remove(&name).unwrap_or_default(), name, level)).collect();
    for (name, of) in [("turn p50", 0), ("turn p95", 1)] {
        let times = points.iter().enumerate().filter_map(|(index, point)| point.times.map(|times| (index, times)));
        let (answered, unanswered): (Vec<_>, Vec<_>) =
            times.map(|(index, times)| (index, times.ranks()[of])).partition(|(_, us)| *us != u64::MAX);
        if !(answered.is_empty() && unanswered.is_empty()) {
            let values = answered.into_iter().map(|(index, us)| (index, us as f64)).collect();
            let unanswered = unanswered.into_iter().map(|(index, _)| index).collect();
            found.push(Line { unanswered, ..time(name, values, level) });
        }
    }
    found
}

/// The variance of a rate is at least that of the same number of independent units.
fn rate(counts: Vec<(usize, f64, f64)>, (name, metric, target): Name, level: f64) -> Line {
    let (successes, units) = counts.iter().fold((1.0, 2.0), |sum, (_, s, n)| (sum.0 + s, sum.1 + n));
    let noise = |successes: f64| successes / units * (1.0 - successes / units);
    let each = noise(successes);
    let measured: Vec<_> = counts.iter().map(|(_, s, n)| Measured { value: s / n, variance: each / n }).collect();
    let intervals =
        counts.iter().map(|(index, s, n)| (*index, wilson(*s, *n))).map(|(at, (low, high))| (at, low, high));
    let fewer = counts.iter().map(|(_, _, n)| 1.0 / n).sum::<f64>() / counts.len() as f64;
    let (intervals, values) = (intervals.collect(), counts.iter().map(|(index, s, n)| (*index, s / n)).collect());
    let line = Line { name, target, metric, intervals, values, ..Line::new(Unit::Rate) };
    changed(line, &measured, Rule { level, least: RATES }, |rate| noise(rate * (units - 2.0) + 1.0) * fewer)
}

fn time(name: &str, values: Vec<(usize, f64)>, level: f64) -> Line {
    let mean = values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64;
    let variance = (SAME * mean).powi(2);
    let measured: Vec<_> = values.iter().map(|(_, value)| Measured { value: *value, variance }).collect();
    let line = Line { name: name.to_owned(), values, ..Line::new(Unit::Time) };
    changed(line, &measured, Rule { level, least: TIMES }, |time| (SAME * time).powi(2))
}

/// The line with its changes; `noise` is the variance of one measurement of a value.
fn changed(mut line: Line, measured: &[Measured], rule: Rule, noise: impl Fn(f64) -> f64) -> Line {
    let found = change_points(measured, rule);
    let same = &measured[found.last().map_or(0, |change| change.index)..];
    let mean = same.iter().map(|one| one.value).sum::<f64>() / same.len() as f64;
    let furthest = match line.unit {
        Unit::Rate if mean < 0.5 => 1.0 - mean,
        Unit::Rate => -mean,
        Unit::Time => FURTHEST * mean,
    };
    line.detectable = detectable(same, RECENT, rule, furthest, noise);
    let change = |found: crate::stats::change_points::ChangePoint| Change {
        point: line.values[found.index].0,
        before: found.before,
        after: found.after,
        p: found.p,
    };
    line.changes = found.into_iter().map(change).collect();
    line
}

#[cfg(test)]
#[path = "trend_tests.rs"]
pub(super) mod tests;

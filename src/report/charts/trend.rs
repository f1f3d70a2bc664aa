//! One figure over time: points at their days joined by a line, the interval of each as a band, means between changes, a
//! dashed line at each change, and the target.

use crate::history::{Line, Series, Unit};
use crate::percent::percent;
use crate::report::figures::duration;
use std::fmt::Write as _;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 168.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 14.0;
const BASE: f64 = 132.0;

/// What a chart shows beside the values of its line.
#[derive(Debug, Clone, Default)]
pub(in crate::report) struct Beside {
    /// The target, in the unit of the line.
    pub target: Option<f64>,
    /// By point, the 95 % interval.
    pub band: Vec<(usize, f64, f64)>,
    /// By point, seconds since some moment, ascending; empty where a date cannot be read: points then stand at equal
    /// distances.
    pub seconds: Vec<i64>,
}

/// The chart of a line of `series`.
pub(in crate::report) fn trend(series: &Series, line: &Line, beside: &Beside) -> String {
    let (low, high) = scale(line, beside);
    let last = series.points.len().saturating_sub(1).max(1) as f64;
    let span = beside.seconds.first().zip(beside.seconds.last()).map(|(first, last)| (*first, (last - first) as f64));
    let span = span.filter(|(_, length)| *length > 0.0);
    let x = |point: usize| {
        let share = match (span, beside.seconds.get(point)) {
            (Some((first, length)), Some(at)) => (at - first) as f64 / length,
            _ => point as f64 / last,
        };
        LEFT + share * (WIDTH - LEFT - RIGHT)
    };
    let y = |value: f64| BASE - (value - low) / (high - low) * (BASE - TOP);
    let mut svg = format!("<svg class=\"trend\" viewBox=\"0 0 {WIDTH:.0} {HEIGHT:.0}\" role=\"img\"><title>");
    if let Some(((_, first), (_, newest))) = line.values.first().zip(line.values.last()) {
        let number = line.values.len();
        let (first, newest) = (value(line.unit, *first), value(line.unit, *newest));
        let _ = write!(svg, "{number} points, from {first} to {newest}, changes: {}", line.changes.len());
    }
    if let Some(target) = beside.target {
        let _ = write!(svg, ", target {}", value(line.unit, target));
    }
    svg.push_str("</title>");
    for mark in [low, f64::midpoint(low, high), high] {
        let (at, shown) = (y(mark), value(line.unit, mark));
        let _ = write!(svg, "<path class=\"grid\" d=\"M{LEFT:.0} {at:.1}H{:.1}\"/>", WIDTH - RIGHT);
        let _ = write!(svg, "<text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{shown}</text>", LEFT - 6.0, at + 4.0);
    }
    days(&mut svg, series, &x);
    let band = |side: fn(&(usize, f64, f64)) -> f64| {
        beside.band.iter().map(move |point| format!("{:.1},{:.1}", x(point.0), y(side(point).clamp(low, high))))
    };
    if beside.band.len() > 1 {
        let edge: Vec<String> = band(|point| point.2).chain(band(|point| point.1).rev()).collect();
        let _ = write!(svg, "<polygon class=\"band\" points=\"{}\"/>", edge.join(" "));
    } else if let Some((point, from, to)) = beside.band.first() {
        let _ = write!(svg, "<path class=\"whisker\" d=\"M{:.1} {:.1}V{:.1}\"/>", x(*point), y(*from), y(*to));
    }
    if let Some(at) = beside.target.map(y) {
        let _ = write!(svg, "<path class=\"target\" d=\"M{LEFT:.0} {at:.1}H{:.1}\"/>", WIDTH - RIGHT);
        let _ = write!(svg, "<text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">target</text>", WIDTH - RIGHT, at - 4.0);
    }
    let mut from = line.values.first().map_or(0, |(point, _)| *point);
    for (index, change) in line.changes.iter().enumerate() {
        let at = f64::midpoint(x(change.point), x(change.point.saturating_sub(1)));
        let _ = write!(svg, "<path class=\"change\" d=\"M{at:.1} {TOP:.0}V{BASE:.0}\"/>");
        let _ = write!(svg, "<path class=\"flag\" d=\"M{at:.1} {:.1}l5 5l-5 5l-5 -5z\"/>", TOP - 9.0);
        let _ = write!(svg, "<path class=\"mean\" d=\"M{:.1} {:.1}H{at:.1}\"/>", x(from), y(change.before));
        if line.changes.get(index + 1).is_none() {
            let end = line.values.last().map_or(change.point, |(point, _)| *point);
            let _ = write!(svg, "<path class=\"mean\" d=\"M{at:.1} {:.1}H{:.1}\"/>", y(change.after), x(end));
        }
        from = change.point;
    }
    let joined: Vec<String> =
        line.values.iter().map(|(point, value)| format!("{:.1},{:.1}", x(*point), y(*value))).collect();
    let _ = write!(svg, "<polyline class=\"line\" points=\"{}\"/>", joined.join(" "));
    for (point, seen) in &line.values {
        let _ = write!(
            svg,
            "<circle class=\"seen\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>{}: {}</title></circle>",
            x(*point),
            y(*seen),
            super::escaped(day(&series.points[*point].0)),
            value(line.unit, *seen)
        );
    }
    svg.push_str("</svg>");
    svg
}

/// The first and the last day below the axis, and those between for which there is room.
fn days(svg: &mut String, series: &Series, x: &impl Fn(usize) -> f64) {
    let _ = write!(svg, "<path class=\"axis\" d=\"M{LEFT:.0} {BASE:.0}H{:.1}\"/>", WIDTH - RIGHT);
    let last = series.points.len().saturating_sub(1);
    let mut taken = f64::NEG_INFINITY;
    for (point, (at, _)) in series.points.iter().enumerate() {
        let place = x(point);
        let _ = write!(svg, "<path class=\"axis\" d=\"M{place:.1} {BASE:.0}v4\"/>");
        let fits = place - taken > 90.0 && (point == last || x(last) - place > 90.0);
        if !fits {
            continue;
        }
        taken = place;
        let anchor = if point == 0 {
            "start"
        } else if point == last {
            "end"
        } else {
            "middle"
        };
        let day = super::escaped(day(at));
        let _ = write!(svg, "<text x=\"{place:.1}\" y=\"{:.0}\" text-anchor=\"{anchor}\">{day}</text>", BASE + 18.0);
    }
}

fn day(at: &str) -> &str {
    at.get(..10).unwrap_or(at)
}

fn value(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Rate => percent(value),
        Unit::Time => duration(value.round() as u64),
    }
}

/// What the chart spans: values, target and band with some room, a rate never beyond 0 and 1, a time from 0.
fn scale(line: &Line, beside: &Beside) -> (f64, f64) {
    let band = beside.band.iter().flat_map(|(_, from, to)| [*from, *to]);
    let values: Vec<f64> = line.values.iter().map(|(_, value)| *value).chain(beside.target).chain(band).collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match line.unit {
        _ if least > most => (0.0, 1.0),
        Unit::Time => (0.0, (most * 1.1).max(1.0)),
        Unit::Rate => {
            let room = ((most - least) * 0.1).max(0.02);
            ((least - room).max(0.0), (most + room).min(1.0))
        }
    }
}

//! One figure over time as inline SVG: points joined by a line, means between changes, a dashed line at each change.

use super::value;
use crate::history::{Line, Series, Unit};
use std::fmt::Write as _;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 14.0;
const BASE: f64 = 122.0;

/// The chart of a line of `series`; points stand at equal distances, in the order of time.
pub(super) fn trend(series: &Series, line: &Line) -> String {
    let (low, high) = scale(line);
    let last = series.points.len().saturating_sub(1).max(1) as f64;
    let x = |point: usize| LEFT + point as f64 / last * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| BASE - (value - low) / (high - low) * (BASE - TOP);
    let mut svg = format!("<svg class=\"trend\" viewBox=\"0 0 {WIDTH:.0} {HEIGHT:.0}\" role=\"img\"><title>");
    let ends = line.values.first().zip(line.values.last());
    if let Some(((_, first), (_, newest))) = ends {
        let number = line.values.len();
        let (first, newest) = (value(line.unit, *first), value(line.unit, *newest));
        let _ = write!(svg, "{number} points, from {first} to {newest}, changes: {}", line.changes.len());
    }
    svg.push_str("</title>");
    for mark in [low, f64::midpoint(low, high), high] {
        let (at, shown) = (y(mark), value(line.unit, mark));
        let _ = write!(svg, "<path class=\"grid\" d=\"M{LEFT:.0} {at:.1}H{:.1}\"/>", WIDTH - RIGHT);
        let _ = write!(svg, "<text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{shown}</text>", LEFT - 6.0, at + 4.0);
    }
    let mut from = line.values.first().map_or(0, |(point, _)| *point);
    for (index, change) in line.changes.iter().enumerate() {
        let at = f64::midpoint(x(change.point), x(change.point.saturating_sub(1)));
        let _ = write!(svg, "<path class=\"change\" d=\"M{at:.1} {TOP:.0}V{BASE:.0}\"/>");
        let _ = write!(svg, "<path class=\"flag\" d=\"M{at:.1} {:.1}l5 5l-5 5l-5 -5z\"/>", TOP - 9.0);
        let _ = write!(svg, "<path class=\"mean\" d=\"M{:.1} {:.1}H{at:.1}\"/>", x(from), y(change.before));
        let next = line.changes.get(index + 1);
        if next.is_none() {
            let end = line.values.last().map_or(change.point, |(point, _)| *point);
            let _ = write!(svg, "<path class=\"mean\" d=\"M{at:.1} {:.1}H{:.1}\"/>", y(change.after), x(end));
        }
        from = change.point;
    }
    let joined: Vec<String> =
        line.values.iter().map(|(point, value)| format!("{:.1},{:.1}", x(*point), y(*value))).collect();
    let _ = write!(svg, "<polyline class=\"line\" points=\"{}\"/>", joined.join(" "));
    for (point, seen) in &line.values {
        let _ = write!(svg, "<circle class=\"seen\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"/>", x(*point), y(*seen));
    }
    svg.push_str("</svg>");
    svg
}

/// What the chart spans: the values with some room, a rate never beyond 0 and 1, a time from 0.
fn scale(line: &Line) -> (f64, f64) {
    let values = || line.values.iter().map(|(_, value)| *value);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    match line.unit {
        _ if least > most => (0.0, 1.0),
        Unit::Time => (0.0, (most * 1.1).max(1.0)),
        Unit::Rate => {
            let room = ((most - least) * 0.2).max(0.02);
            ((least - room).max(0.0), (most + room).min(1.0))
        }
    }
}

//! One figure over time: points joined by a line, intervals as a band, means between changes, a dashed line at each
//! change, and the target. A pause much longer than the others is shortened and labelled with its length, because a
//! year without a run would leave no room for the runs.
//!
//! Drawn for any width, see [`super::across`].

use super::moments::{Moments, stretches};
use super::{STRETCH, across, stretched};
use crate::history::{Line, Series, Unit};
use crate::report::figures::line_value;
use std::fmt::Write as _;

const HEIGHT: f64 = 178.0;
/// Width of the axis in a window of 390 pixels: labels have room there.
const NARROW: f64 = 262.0;
const TOP: f64 = 16.0;
const BASE: f64 = 142.0;
/// Width of a day label.
const DAY: f64 = 76.0;
/// Marks closer together than this are merged.
const MARKS: f64 = 4.0;

/// Data of a chart besides the values of its line.
#[derive(Debug, Clone, Default)]
pub(in crate::report) struct Beside {
    /// Target, in the unit of the line.
    pub target: Option<f64>,
    /// 95 % interval by point.
    pub band: Vec<(usize, f64, f64)>,
    /// Seconds of each point since some origin, ascending; empty if a date cannot be parsed: points are then
    /// equidistant.
    pub seconds: Vec<i64>,
    /// Links of the points, in their order.
    pub links: Vec<String>,
}

/// Draws a line of `series`.
pub(in crate::report) fn trend(series: &Series, line: &Line, beside: &Beside) -> String {
    let (low, high) = scale(line, beside);
    let moments = Moments::new(series.points.len(), &beside.seconds);
    let x = |point: usize| moments.place(point);
    let y = |value: f64| BASE - (value - low) / (high - low) * (BASE - TOP);
    let radius = match line.values.len() {
        0..=60 => "3.2",
        61..=150 => "2.2",
        _ => "1.5",
    };
    let dense = if line.values.len() > 60 { " dense" } else { "" };
    let mut svg = format!("<svg class=\"trend{dense}\" height=\"{HEIGHT:.0}\"><title>");
    let shown = |value: f64| line_value(line.unit, value);
    let ends = line.ends().and_then(|(first, last)| line.at(first).zip(line.at(last)));
    if let Some((first, newest)) = ends.map(|(first, last)| (shown(first), shown(last))) {
        let number = crate::trace::text::plural(line.values.len() + line.unanswered.len(), "point");
        let _ = write!(svg, "{number}, from {first} to {newest}, changes: {}", line.changes.len());
    }
    if let Some(target) = beside.target {
        let _ = write!(svg, ", target {}", line_value(line.unit, target));
    }
    svg.push_str("</title>");
    for mark in [low, f64::midpoint(low, high), high] {
        let (at, shown) = (y(mark), line_value(line.unit, mark));
        let _ = write!(svg, "<line class=\"grid\" x2=\"100%\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>");
        let _ = write!(svg, "<text x=\"-6\" y=\"{:.1}\" text-anchor=\"end\">{shown}</text>", at + 4.0);
    }
    days(&mut svg, series, &moments, &x);
    let wide = |point: usize| STRETCH * x(point);
    let mut joined = stretched(HEIGHT);
    for band in stretches(&beside.band, &moments, |point| point.0) {
        if let [(point, from, to)] = band {
            let _ = write!(svg, "{}", upright("whisker", x(*point), y(*from), y(*to)));
            continue;
        }
        let side = |side: fn(&(usize, f64, f64)) -> f64| {
            band.iter().map(move |point| format!("{:.1},{:.1}", wide(point.0), y(side(point).clamp(low, high))))
        };
        let edge: Vec<String> = side(|point| point.2).chain(side(|point| point.1).rev()).collect();
        let _ = write!(joined, "<polygon class=\"band\" points=\"{}\"/>", edge.join(" "));
    }
    for part in stretches(&line.values, &moments, |point| point.0) {
        let points: Vec<String> =
            part.iter().map(|(point, value)| format!("{:.1},{:.1}", wide(*point), y(*value))).collect();
        let _ = write!(joined, "<polyline class=\"line\" points=\"{}\"/>", points.join(" "));
    }
    svg.push_str(&joined);
    svg.push_str("</svg>");
    if let Some(target) = beside.target {
        let at = y(target);
        let _ = write!(svg, "<line class=\"target\" x2=\"100%\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>");
        // Below the line if there is no room above it.
        let words = if at < TOP + 12.0 { at + 13.0 } else { at - 4.0 };
        let _ =
            write!(svg, "<text class=\"on\" x=\"4\" y=\"{words:.1}\">target {}</text>", line_value(line.unit, target));
    }
    means(&mut svg, line, &x, &y);
    for (point, seen) in &line.values {
        // Rows of the table have the same links for keyboard users.
        let (at, shown) = (super::escaped(day(&series.points[*point].at)), line_value(line.unit, *seen));
        let _ = write!(
            svg,
            "<a href=\"{}\" tabindex=\"-1\" aria-label=\"{at}: {shown}\"><circle class=\"seen\" cx=\"{}\" \
             cy=\"{:.1}\" r=\"{radius}\"><title>{at}: {shown}</title></circle></a>",
            beside.links.get(*point).map_or("#", String::as_str),
            across(x(*point)),
            y(*seen),
        );
    }
    for point in &line.unanswered {
        let (at, place, top) = (super::escaped(day(&series.points[*point].at)), across(x(*point)), TOP - 4.0);
        let _ = write!(
            svg,
            "<a href=\"{}\" tabindex=\"-1\" aria-label=\"{at}: no answer\"><svg x=\"{place}\" overflow=\"visible\"><path \
             class=\"pause\" d=\"M-4 {top:.0}l8 8M4 {top:.0}l-8 8\"><title>{at}: no answer</title></path></svg></a>",
            beside.links.get(*point).map_or("#", String::as_str),
        );
    }
    svg.push_str("</svg>");
    svg
}

/// An upright line.
fn upright(class: &str, at: f64, from: f64, to: f64) -> String {
    let at = across(at);
    format!("<line class=\"{class}\" x1=\"{at}\" x2=\"{at}\" y1=\"{from:.1}\" y2=\"{to:.1}\"/>")
}

/// Draws a dashed line at each change, and the means before and after it.
fn means(svg: &mut String, line: &Line, x: &impl Fn(usize) -> f64, y: &impl Fn(f64) -> f64) {
    let mut from = line.values.first().map_or(0, |(point, _)| *point);
    let mean = |from: f64, to: f64, at: f64| {
        let (from, to) = (across(from), across(to));
        format!("<line class=\"mean\" x1=\"{from}\" x2=\"{to}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>")
    };
    for (index, change) in line.changes.iter().enumerate() {
        let at = f64::midpoint(x(change.point), x(change.point.saturating_sub(1)));
        svg.push_str(&upright("change", at, TOP, BASE));
        let (place, top) = (across(at), TOP - 9.0);
        let _ = write!(
            svg,
            "<svg x=\"{place}\" overflow=\"visible\"><path class=\"flag\" d=\"M0 {top:.1}l5 5l-5 5l-5 -5z\"/></svg>"
        );
        svg.push_str(&mean(x(from), at, y(change.before)));
        if line.changes.get(index + 1).is_none() {
            let end = line.values.last().map_or(change.point, |(point, _)| *point);
            svg.push_str(&mean(at, x(end), y(change.after)));
        }
        from = change.point;
    }
}

/// Draws the first and the last day below the axis, days between if there is room, and the shortened pauses.
fn days(svg: &mut String, series: &Series, moments: &Moments, x: &impl Fn(usize) -> f64) {
    let _ = write!(svg, "<line class=\"axis\" x2=\"100%\" y1=\"{BASE:.0}\" y2=\"{BASE:.0}\"/>");
    let last = series.points.len().saturating_sub(1);
    let hours = moments.seconds().is_some_and(|length| length < 3 * 86_400);
    let (mut marked, mut taken) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for (point, shown) in series.points.iter().enumerate() {
        let place = NARROW * x(point);
        if place - marked >= MARKS {
            marked = place;
            svg.push_str(&upright("axis", x(point), BASE, BASE + 4.0));
        }
        // The first begins at its position and the last ends there, so that neither leaves the drawing.
        let (anchor, from) = match point {
            0 if last == 0 => ("middle", place - DAY / 2.0),
            0 => ("start", place),
            _ if point == last => ("end", place - DAY),
            _ => ("middle", place - DAY / 2.0),
        };
        if from < taken || (point != last && from + DAY > NARROW * x(last) - DAY && point != 0) {
            continue;
        }
        taken = from + DAY;
        let at = &shown.at;
        let said = if hours { at.get(5..16).unwrap_or(at).replace('T', " ") } else { day(at).to_owned() };
        let said = super::escaped(&said);
        let place = across(x(point));
        let _ = write!(svg, "<text x=\"{place}\" y=\"{:.0}\" text-anchor=\"{anchor}\">{said}</text>", BASE + 20.0);
    }
    for (point, seconds) in moments.pauses() {
        let at = across(f64::midpoint(x(point - 1), x(point)));
        let (days, top) = (seconds / 86_400, BASE - 5.0);
        let _ = write!(
            svg,
            "<svg x=\"{at}\" overflow=\"visible\"><path class=\"pause\" d=\"M0 {top:.0}l-4 10M5 {top:.0}l-4 10\"><title>{days} \
             days without a point, cut short</title></path></svg>"
        );
        let _ = write!(svg, "<text x=\"{at}\" y=\"{:.1}\" text-anchor=\"middle\">{days} d</text>", BASE - 10.0);
    }
}

fn day(at: &str) -> &str {
    at.get(..10).unwrap_or(at)
}

/// Range of the chart: values, target and band with some margin; a rate stays within 0 and 1, a time starts at 0.
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

//! `history.html`: one page without a script, newest series first.

use super::{changed, conditions, value, when};
use crate::history::{Line, Series};
use crate::report::charts::{self, Beside};
use crate::report::figures::{claimed_share, counted};
use crate::report::page;
use crate::scenario::{Target, parse_target};
use jiff::Timestamp;
use serde::Serialize;
use std::io;

const PAGE: page::Page = page::Page {
    file: "history.html",
    kind: "history",
    template: include_str!("page.html"),
    style: include_str!("history.css"),
    script: "",
};

#[derive(Serialize)]
struct Page {
    outcome: &'static str,
    conclusion: String,
    series: Vec<Shown>,
}

#[derive(Serialize)]
struct Shown {
    conditions: String,
    span: String,
    lines: Vec<Trend>,
    /// By point, newest first: its number from 1, when, and the figures.
    points: Vec<(usize, String, Vec<String>)>,
}

#[derive(Serialize)]
struct Trend {
    name: String,
    target: String,
    newest: String,
    chart: String,
    /// Number, from 1, of the first point after it, and the change in words.
    changes: Vec<(usize, String)>,
}

/// The page of a history.
///
/// # Errors
/// When the template cannot be filled in, which would be a bug.
pub fn html(series: &[Series]) -> io::Result<Vec<u8>> {
    Ok(page::render(&PAGE, page(series))?.into_bytes())
}

fn page(series: &[Series]) -> Page {
    let points: usize = series.iter().map(|series| series.points.len()).sum();
    let changes: usize = series.iter().flat_map(|series| &series.lines).map(|line| line.changes.len()).sum();
    let conclusion = match (points, changes) {
        (0, _) => "There is no point yet".to_owned(),
        (_, 0) => format!("{}, no change that lasts", counted(points as u64, "point")),
        _ => format!("{}, {}", counted(points as u64, "point"), counted(changes as u64, "lasting change")),
    };
    let outcome = if changes > 0 { "undecided" } else { "pass" };
    Page { outcome, conclusion, series: series.iter().rev().map(shown).collect() }
}

fn shown(series: &Series) -> Shown {
    let row = |(index, point): (usize, &(String, _))| {
        let figure = |line: &Line| {
            let own = line.values.iter().find(|(at, _)| *at == index);
            own.map_or_else(|| "–".to_owned(), |(_, seen)| value(line.unit, *seen))
        };
        (index + 1, when(point), series.lines.iter().map(figure).collect())
    };
    let ends = series.points.first().zip(series.points.last());
    let span = ends.map(|(first, last)| {
        let number = counted(series.points.len() as u64, "point");
        let day = |at: &str| at.get(..10).unwrap_or(at).to_owned();
        format!("{number}, {} to {}", day(&first.0), day(&last.0))
    });
    Shown {
        conditions: conditions(series),
        span: span.unwrap_or_default(),
        lines: series.lines.iter().map(|line| trend(series, line)).collect(),
        points: series.points.iter().enumerate().map(row).rev().collect(),
    }
}

fn trend(series: &Series, line: &Line) -> Trend {
    Trend {
        name: line.name.clone(),
        target: line.target.clone(),
        newest: line.values.last().map_or_else(String::new, |(_, seen)| value(line.unit, *seen)),
        chart: charts::trend(series, line, &beside(series, line)),
        changes: line.changes.iter().map(|change| (change.point + 1, changed(series, line, change))).collect(),
    }
}

/// The target as a value of the line, the intervals, and the moments of the points.
fn beside(series: &Series, line: &Line) -> Beside {
    let target = match parse_target(&line.target) {
        Ok(Target::AtLeastRate(share) | Target::AtMostRate(share)) => Some(share),
        // The line of a time is the share of units below its limit.
        Ok(Target::AtMostTime(_)) => claimed_share(&line.metric),
        Err(_) => None,
    };
    let moments = series.points.iter().map(|(at, _)| at.parse().ok().map(Timestamp::as_second));
    Beside { target, band: line.intervals.clone(), seconds: moments.collect::<Option<Vec<i64>>>().unwrap_or_default() }
}

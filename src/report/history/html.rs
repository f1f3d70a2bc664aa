//! `history.html`: a page without scripts, newest series first.

use super::{
    Links, cannot_change, changed, conditions, found_nothing, headline, missed_targets, scenarios, seen_at, unanswered,
    when,
};
use crate::history::{Line, Series, Shown};
use crate::report::charts::{self, Beside};
use crate::report::figures::{claimed_share, counted, together};
use crate::report::page;
use crate::scenario::{Target, parse_target, target_text};
use jiff::Timestamp;
use serde::Serialize;
use std::io;

const PAGE: page::PageTemplate = page::PageTemplate {
    file: "history.html",
    kind: "history",
    template: include_str!("page.html"),
    style: include_str!("history.css"),
    script: "",
};

#[derive(Serialize)]
struct HistoryPage {
    outcome: &'static str,
    conclusion: String,
    /// Targets that the newest run misses.
    below: String,
    /// Why there are no points; empty if they could be read.
    note: String,
    runs: bool,
    /// Link to the report of the newest point; empty if there is none.
    newest: String,
    series: Vec<SeriesShown>,
}

#[derive(Serialize)]
struct SeriesShown {
    title: String,
    conditions: String,
    span: String,
    lines: Vec<Trend>,
    /// Names of the lines in the order of the points' figures.
    columns: Vec<String>,
    /// Whether any point has a report.
    linked: bool,
    /// Points, newest first.
    points: Vec<PointShown>,
}

#[derive(Serialize)]
struct PointShown {
    /// Number, from 1.
    number: usize,
    when: String,
    /// Link to its report; empty if there is none.
    report: String,
    figures: Vec<String>,
}

#[derive(Serialize)]
struct Trend {
    /// Whether the page's heading is about it.
    headline: bool,
    name: String,
    target: String,
    newest: String,
    chart: String,
    /// Number, from 1, of the first point after each change, and the change as text.
    changes: Vec<(usize, String)>,
    /// Statement on an unchanged line.
    unchanged: String,
}

/// Renders the page of a history; `links` lists the existing reports and pages beside it.
///
/// # Errors
/// If the template cannot be rendered, which would be a bug.
pub(crate) fn html(series: &[Series], links: &Links) -> io::Result<Vec<u8>> {
    Ok(page::render(&PAGE, page(series, links))?.into_bytes())
}

fn page(series: &[Series], links: &Links) -> HistoryPage {
    let points: usize = series.iter().map(|series| series.points.len()).sum();
    let changes: usize = series.iter().flat_map(|series| &series.lines).map(|line| line.changes.len()).sum();
    let blind = series.iter().all(cannot_change);
    // The series with the newest run comes first.
    let mut order: Vec<&Series> = series.iter().collect();
    order.sort_by_key(|series| std::cmp::Reverse(series.points.last().map(|point| &point.at)));
    let conclusion = match (points, changes) {
        (0, _) if !links.note.is_empty() => "The history cannot be read".to_owned(),
        (0, _) => "There is no point yet".to_owned(),
        _ if let Some(found) = order.first().and_then(|newest| headline(newest)) => {
            let more = counted(found.more as u64, "further line");
            let more = if found.more > 0 { format!("; {more} changed, too") } else { String::new() };
            let mut sentence = found.sentence;
            if let Some(first) = sentence.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            together(&format!("{sentence}{more}"))
        }
        (_, 0) if blind => format!("{}, too few to find a change", counted(points as u64, "point")),
        (_, 0) => format!("{}, no change that lasts", counted(points as u64, "point")),
        _ => format!("{}, {}", counted(points as u64, "point"), counted(changes as u64, "lasting change")),
    };
    let outcome = match (points, changes) {
        (0, _) => "unmeasured",
        (_, 0) if blind => "unmeasured",
        (_, 0) => "pass",
        _ => "undecided",
    };
    let shown = |(place, series): (usize, &&Series)| shown(series, links, &format!("s{}-p", place + 1));
    let below = order.first().and_then(|newest| missed_targets(newest)).map(|said| together(&said)).unwrap_or_default();
    let series: Vec<SeriesShown> = order.iter().enumerate().map(shown).collect();
    let newest =
        series.first().and_then(|one| one.points.first()).map(|point| point.report.clone()).unwrap_or_default();
    HistoryPage { outcome, conclusion, below, note: links.note.clone(), runs: links.runs, newest, series }
}

fn shown(series: &Series, links: &Links, anchors: &str) -> SeriesShown {
    let row = |(index, point): (usize, &Shown)| {
        let figure = |line: &Line| seen_at(line, index).unwrap_or_else(|| "–".to_owned());
        PointShown {
            number: index + 1,
            when: when(point),
            report: links.reports.get(&point.id).map(|folder| page::below(folder, "index.html")).unwrap_or_default(),
            figures: series.lines.iter().map(figure).collect(),
        }
    };
    let ends = series.points.first().zip(series.points.last());
    let span = ends.map(|(first, last)| {
        let number = counted(series.points.len() as u64, "point");
        let day = |shown: &Shown| shown.at.get(..10).unwrap_or(&shown.at).to_owned();
        if day(first) == day(last) {
            format!("{number}, {}", day(first))
        } else {
            format!("{number}, {} to {}", day(first), day(last))
        }
    });
    let points: Vec<PointShown> = series.points.iter().enumerate().map(row).rev().collect();
    let own = |point: &PointShown| format!("#{anchors}{}", point.number);
    let report = |point: &PointShown| if point.report.is_empty() { own(point) } else { point.report.clone() };
    let links: Vec<String> = points.iter().rev().map(report).collect();
    let first = headline(series).map(|found| found.line);
    let mut lines: Vec<(usize, &Line)> = series.lines.iter().enumerate().collect();
    lines.sort_by_key(|(place, line)| (Some(*place) != first, line.changes.is_empty()));
    let lines = lines.into_iter().map(|(place, line)| trend(series, line, &links, Some(place) == first)).collect();
    SeriesShown {
        title: scenarios(series),
        conditions: conditions(series),
        span: span.unwrap_or_default(),
        columns: series.lines.iter().map(|line| line.name.clone()).collect(),
        lines,
        linked: points.iter().any(|point| !point.report.is_empty()),
        points,
    }
}

fn trend(series: &Series, line: &Line, links: &[String], headline: bool) -> Trend {
    Trend {
        headline,
        name: line.name.clone(),
        target: target_text(&line.target),
        newest: line.ends().and_then(|(_, last)| seen_at(line, last)).unwrap_or_default(),
        chart: charts::trend(series, line, &Beside { links: links.to_owned(), ..beside(series, line) }),
        changes: line.changes.iter().map(|change| (change.point + 1, changed(series, line, change))).collect(),
        unchanged: [found_nothing(line), unanswered(line)].join(" ").trim().to_owned(),
    }
}

/// Target in the unit of the line, intervals, and times of the points.
fn beside(series: &Series, line: &Line) -> Beside {
    let target = match parse_target(&line.target) {
        Ok(Target::AtLeastRate(share) | Target::AtMostRate(share)) => Some(share),
        // The line of a time is the share of units below its limit.
        Ok(Target::AtMostTime(_)) => claimed_share(&line.metric),
        Err(_) => limit_of(series, line),
    };
    let moments = series.points.iter().map(|point| point.at.parse().ok().map(Timestamp::as_second));
    let seconds = moments.collect::<Option<Vec<i64>>>().unwrap_or_default();
    Beside { target, band: line.intervals.clone(), seconds, links: Vec::new() }
}

/// Limit of a time without a target of its own: that of the criterion on the same quantile.
fn limit_of(series: &Series, time: &Line) -> Option<f64> {
    let share = time.name.strip_prefix("turn p")?.parse::<f64>().ok()? / 100.0;
    let asked = |line: &&Line| claimed_share(&line.metric).is_some_and(|claimed| (claimed - share).abs() < 1e-9);
    series.lines.iter().filter(asked).find_map(|line| match parse_target(&line.target) {
        Ok(Target::AtMostTime(limit)) => Some(limit.as_micros() as f64),
        _ => None,
    })
}

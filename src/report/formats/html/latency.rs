//! Section on times: a distribution for each kind of evidence, quantiles with their bounds, stages along the critical
//! path, and time to first token.

use crate::gate::{Evaluation, KindCount, Latency as Times, Quantile};
use crate::metric::stages::Stage;
use crate::report::charts::{self, Curve};
use crate::report::figures::{self, duration, target, thousands};
use crate::scenario::Target;
use crate::stats::percent::{at_most, percent};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The section on times.
#[derive(Serialize)]
pub(super) struct Latency {
    kinds: Vec<Distribution>,
    rows: Vec<LatencyRow>,
    stages: Vec<Stages>,
    names: Vec<String>,
    first: Vec<LatencyRow>,
}

#[derive(Serialize)]
struct Distribution {
    kind: String,
    chart: String,
    figures: Vec<(String, String)>,
    n: String,
    /// Variants in the order of their curves, and the number of variants without one.
    names: Vec<String>,
    more: usize,
}

#[derive(Serialize)]
struct LatencyRow {
    name: String,
    kind: String,
    n: String,
    unanswered: String,
    quantiles: Vec<(String, String)>,
}

#[derive(Serialize)]
struct Stages {
    name: String,
    kind: String,
    n: String,
    total: String,
    chart: String,
    parts: Vec<(String, String)>,
}

/// Times of a run; `None` if no turn was timed.
pub(super) fn latency(evaluation: &Evaluation) -> Option<Latency> {
    let mut by_kind: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let mut rest = evaluation.turn_times_us.as_slice();
    for KindCount { kind, turns } in &evaluation.turn_kinds {
        let (these, others) = rest.split_at(rest.len().min(*turns as usize));
        by_kind.entry(kind).or_default().extend(these);
        rest = others;
    }
    if !rest.is_empty() {
        by_kind.entry("").or_default().extend(rest);
    }
    let limits: Vec<u64> = limits(evaluation).into_iter().collect();
    let rows = evaluation.latency.as_slice();
    let kinds = by_kind.into_iter().filter_map(|(kind, times)| distribution(kind, times, rows, &limits));
    let kinds: Vec<_> = kinds.collect();
    if kinds.is_empty() {
        return None;
    }
    let all: BTreeSet<&Stage> = rows.iter().flat_map(|row| row.stages.iter().map(|one| &one.stage)).collect();
    let first = rows.iter().filter_map(|row| {
        let first = row.first_token.as_ref()?;
        let quantiles = first.quantiles.iter().map(cells).collect();
        Some(LatencyRow {
            name: name(row),
            kind: row.kind.clone(),
            n: thousands(first.n),
            unanswered: String::new(),
            quantiles,
        })
    });
    Some(Latency {
        kinds,
        rows: rows.iter().map(quantiles).collect(),
        stages: rows
            .iter()
            .filter(|row| row.answered() > 0 && !row.stages.is_empty())
            .map(|row| stages(row, &all))
            .collect(),
        names: all.iter().map(|stage| stage.as_str().to_owned()).collect(),
        first: first.collect(),
    })
}

fn name(row: &Times) -> String {
    format!("{}.{}", row.flow, row.variant)
}

/// Time limits of the criteria, in microseconds.
pub(super) fn limits(evaluation: &Evaluation) -> BTreeSet<u64> {
    let of = |row| match target(row) {
        Some(Target::AtMostTime(limit)) => Some(limit.as_micros() as u64),
        _ => None,
    };
    evaluation.criteria.iter().filter_map(of).collect()
}

fn distribution(kind: &str, mut sorted: Vec<u64>, rows: &[Times], limits: &[u64]) -> Option<Distribution> {
    sorted.sort_unstable();
    let own: Vec<&Times> = rows.iter().filter(|row| row.kind == kind).collect();
    let mut curves: Vec<Curve<'_>> = Vec::new();
    for row in &own {
        let (turns, unanswered) = (row.turns, row.unanswered);
        curves.push(Curve { name: name(row), points: &row.curve, turns, unanswered });
    }
    let chart = charts::curves(&curves, limits)?;
    let answered = sorted.partition_point(|us| *us < u64::MAX);
    let longest = answered.checked_sub(1).map_or_else(|| "–".to_owned(), |last| duration(sorted[last]));
    let mut figures = vec![
        ("longest answered turn".into(), longest),
        ("without an answer".into(), thousands((sorted.len() - answered) as u64)),
    ];
    for limit in limits {
        let late = sorted.iter().filter(|us| **us > *limit).count() as u64;
        figures.push((format!("over the limit {}", duration(*limit)), thousands(late)));
    }
    let names = curves.iter().map(|one| one.name.clone());
    let (shown, more): (Vec<String>, usize) =
        (names.take(charts::CURVES).collect(), own.len().saturating_sub(charts::CURVES));
    Some(Distribution { kind: kind.to_owned(), chart, figures, n: thousands(sorted.len() as u64), names: shown, more })
}

fn quantiles(row: &Times) -> LatencyRow {
    LatencyRow {
        name: name(row),
        kind: row.kind.clone(),
        n: thousands(row.turns),
        unanswered: thousands(row.unanswered),
        quantiles: row.quantiles.iter().map(cells).collect(),
    }
}

/// The value and its bounds.
fn cells(one: &Quantile) -> (String, String) {
    (figures::edge(one.value), figures::bounds(one))
}

/// A share in a narrow column; a nonzero share is never shown as 0.
fn brief(share: f64) -> String {
    if share > 0.0 && share < 0.0005 { format!("< {}", at_most(share)) } else { percent(share) }
}

/// Times of a row for the stages of all rows; missing stages are zero.
fn stages(row: &Times, all: &BTreeSet<&Stage>) -> Stages {
    let n = row.answered().max(1);
    let mean = |us: u64| duration((us + n / 2) / n);
    let share = |us: u64| us as f64 / row.answered_us.max(1) as f64;
    let took = |stage: &Stage| row.stages.iter().find(|one| one.stage == *stage).map_or(0, |one| one.took_us);
    let parts: Vec<f64> = all.iter().map(|stage| share(took(stage))).collect();
    let names: Vec<&str> = all.iter().map(|stage| stage.as_str()).collect();
    Stages {
        name: name(row),
        kind: row.kind.clone(),
        n: thousands(row.answered()),
        total: mean(row.answered_us),
        chart: charts::shares(&names, &parts),
        parts: all.iter().map(|stage| took(stage)).map(|us| (mean(us), brief(share(us)))).collect(),
    }
}

//! Figures of variants side by side: the rate of each criterion, and usage per query.

use super::usage::Usage;
use super::variants::{Cell, Figure, Unit};
use super::{Counts, Fraction, Measured, Summary};
use crate::stats::quantile::nearest_rank;

/// Every figure of these sides.
pub(super) fn figures(criteria: &[Measured], sides: &[Summary]) -> Vec<Figure> {
    let mut figures: Vec<Figure> = criteria
        .iter()
        .filter(|measured| {
            sides.iter().any(|side| side.cases.iter().any(|case| case.units.contains_key(&measured.key)))
        })
        .map(|measured| Figure {
            key: measured.key.clone(),
            about: if measured.about.is_empty() { measured.metric.clone() } else { measured.about.clone() },
            unit: Unit::Share,
            cells: sides.iter().map(|side| rate(side, &measured.key)).collect(),
        })
        .collect();
    let usages: Vec<Usage> = sides.iter().map(usage).collect();
    for (key, about, unit, cell) in TAKEN {
        figures.push(Figure { key: key.into(), about: about.into(), unit, cells: usages.iter().map(cell).collect() });
    }
    figures
}

/// A figure of what was taken: name, meaning, unit, and how it is made.
type Taken = (&'static str, &'static str, Unit, fn(&Usage) -> Cell);

const TAKEN: [Taken; 9] = [
    ("model calls", "Model calls per query.", Unit::Number, |taken| mean(Some(taken.model_calls), taken.turns)),
    ("tool calls", "Tool calls per query, executed or not.", Unit::Number, |taken| {
        mean(Some(taken.tool_calls), taken.turns)
    }),
    ("input tokens", "Tokens that the model read, per query.", Unit::Number, |taken| {
        mean(taken.input_tokens, taken.turns)
    }),
    ("output tokens", "Tokens that the model wrote, per query.", Unit::Number, |taken| {
        mean(taken.output_tokens, taken.turns)
    }),
    (
        "service tokens",
        "Tokens that external search and managed retrieval read and wrote, per query.",
        Unit::Number,
        |taken| {
            if taken.service_answers == 0 {
                return without("no service was asked for an answer");
            }
            mean(taken.service_tokens, taken.turns)
        },
    ),
    ("turn p50", "Time from the user's words to the answer, the median of all queries.", Unit::Seconds, |taken| {
        quantile(taken, 0.5)
    }),
    ("turn p95", "The time that 95 of 100 queries do not exceed.", Unit::Seconds, |taken| quantile(taken, 0.95)),
    ("citations", "Sources that an answer names.", Unit::Number, |taken| cited(taken, taken.citations)),
    ("citing answers", "Answers that name a source.", Unit::Share, |taken| cited(taken, taken.citing)),
];

pub(super) fn without(why: &str) -> Cell {
    Cell { not_measured: why.to_owned(), ..Cell::default() }
}

/// A figure of the sources that answers name, per answer that shows them.
fn cited(taken: &Usage, sum: u64) -> Cell {
    match (taken.answers, taken.shown_answers()) {
        (0, _) => without("no query was answered"),
        (_, 0) => without("no answer shows its sources"),
        (_, shown) => mean(Some(sum), shown),
    }
}

fn mean(sum: Option<u64>, of: u64) -> Cell {
    match sum {
        None => without("a service did not report its tokens"),
        Some(_) if of == 0 => without("no query"),
        Some(sum) => Cell {
            value: Some(sum as f64 / of as f64),
            counts: Some(Fraction { numerator: sum, denominator: of }),
            not_measured: String::new(),
        },
    }
}

/// A quantile of the times of all queries, the nearest rank; a query without an answer takes longer than any other.
pub(super) fn quantile(taken: &Usage, q: f64) -> Cell {
    if taken.held > 0 {
        return without("recordings answered part of the calls");
    }
    let mut times = taken.turns_us.clone();
    times.sort_unstable();
    match nearest_rank(&times, q) {
        None => without("no query"),
        Some(u64::MAX) => without("falls on a query without an answer"),
        Some(us) => Cell { value: Some(us as f64 / 1e6), ..Cell::default() },
    }
}

/// The mean of the cases' rates, as the pairs compare them.
fn rate(side: &Summary, key: &str) -> Cell {
    let units: Vec<Counts> =
        side.cases.iter().filter_map(|case| case.units.get(key).copied()).filter(|counts| counts.n > 0).collect();
    if units.is_empty() {
        return without("no unit");
    }
    let sum = units.iter().map(|one| one.successes as f64 / one.n as f64).sum::<f64>();
    let (numerator, denominator) = units.iter().fold((0, 0), |sum, one| (sum.0 + one.successes, sum.1 + one.n));
    Cell {
        value: Some(sum / units.len() as f64),
        counts: Some(Fraction { numerator, denominator }),
        not_measured: String::new(),
    }
}

fn usage(side: &Summary) -> Usage {
    let mut sum = Usage::default();
    for case in &side.cases {
        case.usage.iter().for_each(|usage| sum.add(usage));
    }
    sum
}

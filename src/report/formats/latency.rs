//! `latency.csv`: quantiles, stages and times to first token, one row per figure, by flow, variant and kind of
//! evidence.
//!
//! Times are milliseconds with three decimals, or empty: a quantile that falls on an unanswered turn has the state
//! `unanswered`, a bound that needs more times has the state `unbounded`. A stage's value is its mean over the answered
//! turns, along the critical path; the means add up to that of `total`.

use super::csv::{DAYS, PART, SourceColumns};
use crate::gate::{Edge, Latency, Quantile};
use crate::report::figures::quantile_name;
use crate::report::formats::encoding::Encoding;
use crate::report::{Format, View};
use crate::trace::LATENCY_CSV;
use crate::trace::columns::{Column, column, decimal_column, whole_column};
use crate::trace::text::cell;
use std::io::{self, Write};
use std::rc::Rc;

pub(super) const FORMATS: &[Format] =
    &[Format { name: "csv", file: LATENCY_CSV, write: |view, out| latency(view, out, Encoding::Csv) }];

/// Values of one row.
pub(crate) struct Figure<'a> {
    of: &'a Latency,
    name: String,
    n: u64,
    unanswered: Option<u64>,
    value: Value,
    part: &'a str,
    from: Rc<SourceColumns>,
}

/// The value of a figure.
#[derive(Clone, Copy)]
enum Value {
    Quantile(Quantile),
    /// Mean time of a stage in milliseconds, and its share of all stages.
    Mean(f64, f64),
}

/// Columns of `latency.csv`.
pub(crate) fn columns<'a>() -> Vec<Column<Figure<'a>>> {
    vec![
        column("flow", "the agent's flow", |row| cell(&row.of.flow)),
        column("variant", "the variant", |row| cell(&row.of.variant)),
        column(
            "kind",
            "who answered: `recorded`, `live`, `simulator` and so on; kinds are never averaged. Cases that declare a `fault`              or expect an error have a kind with `, declared faults`",
            |row| row.of.kind.as_str().into(),
        ),
        column(
            "figure",
            "`turn_p50` to `turn_p99`; `stage_…` (means along the critical path); `first_token_p50` to `first_token_p99`",
            |row| cell(&row.name),
        ),
        whole_column("n", "number of turns, or of completions for `first_token_…`", |row| Some(row.n)),
        whole_column("unanswered", "turns without an answer among them; empty for a stage", |row| row.unanswered),
        decimal_column("value_ms", "milliseconds; empty unless `value_state` is `measured`", |row| match row.value {
            Value::Quantile(one) => edge(one.value).into(),
            Value::Mean(ms, _) => format!("{ms:.3}").into(),
        }),
        decimal_column("lower_95_ms", "one-sided 95 % lower bound in milliseconds", |row| {
            bound(row, |one| one.lower).into()
        }),
        decimal_column("upper_95_ms", "one-sided 95 % upper bound in milliseconds", |row| {
            bound(row, |one| one.upper).into()
        }),
        decimal_column("share", "a stage's share of the total, 0 to 1", |row| match row.value {
            Value::Quantile(_) => "".into(),
            Value::Mean(_, share) => format!("{share:.6}").into(),
        }),
        column("part", PART, |row| cell(row.part)),
        column(
            "value_state",
            "`measured`; `unanswered`: the quantile falls on a turn without an answer; `unbounded`: there are too few times \
             for a bound, or the number of times (turns of a log, completions) differs between conversations and was not planned",
            |row| match row.value {
                Value::Quantile(one) => state(one.value).into(),
                Value::Mean(..) => "measured".into(),
            },
        ),
        column("lower_95_state", "the same for the lower bound; empty for a stage", |row| {
            bound_state(row, |one| one.lower).into()
        }),
        column("upper_95_state", "the same for the upper bound; empty for a stage", |row| {
            bound_state(row, |one| one.upper).into()
        }),
        column("model", "the models as requested, joined by `; `", |row| cell(&row.from.model)),
        column("recorded_on", DAYS, |row| cell(&row.from.dates)),
        column("evidence", "source of the figure, in words", |row| cell(&row.of.evidence)),
    ]
}

/// Writes `latency.csv` or `latency.parquet`.
pub(super) fn latency(view: &View<'_>, out: &mut dyn Write, encoding: Encoding) -> io::Result<()> {
    let part = view.evaluation.part.as_str();
    let rows = view.evaluation.latency.iter().flat_map(|of| figures(of, part));
    encoding.write(out, &columns(), rows)
}

/// Figures of one flow, variant and kind of evidence.
fn figures<'a>(of: &'a Latency, part: &'a str) -> Vec<Figure<'a>> {
    let sources = Rc::new(SourceColumns::of(&of.sources));
    let quantile = |what: &str, n: u64, unanswered: u64, one: &Quantile| {
        let name = format!("{what}_{}", quantile_name(one.q));
        Figure {
            of,
            name,
            n,
            unanswered: Some(unanswered),
            value: Value::Quantile(*one),
            part,
            from: Rc::clone(&sources),
        }
    };
    let mut figures: Vec<_> = of.quantiles.iter().map(|one| quantile("turn", of.turns, of.unanswered, one)).collect();
    let n = of.answered();
    let mean = |stage: &str, us: u64| {
        let share = if of.answered_us == 0 { 0.0 } else { us as f64 / of.answered_us as f64 };
        let (name, value) = (format!("stage_{}", stage.to_lowercase()), Value::Mean(us as f64 / n as f64 / 1e3, share));
        Figure { of, name, n, unanswered: None, value, part, from: Rc::clone(&sources) }
    };
    if n > 0 {
        figures.extend(of.stages.iter().map(|one| mean(one.stage.as_str(), one.took_us)));
        figures.push(mean("total", of.answered_us));
    }
    if let Some(first) = &of.first_token {
        figures.extend(first.quantiles.iter().map(|one| quantile("first_token", first.n, 0, one)));
    }
    figures
}

fn bound(row: &Figure<'_>, side: fn(&Quantile) -> Edge) -> String {
    if let Value::Quantile(one) = &row.value { edge(side(one)) } else { String::new() }
}

fn bound_state(row: &Figure<'_>, side: fn(&Quantile) -> Edge) -> &'static str {
    if let Value::Quantile(one) = &row.value { state(side(one)) } else { "" }
}

fn edge(edge: Edge) -> String {
    match edge {
        Edge::Us(us) => format!("{:.3}", us as f64 / 1e3),
        Edge::Unanswered | Edge::Unbounded => String::new(),
    }
}

fn state(edge: Edge) -> &'static str {
    match edge {
        Edge::Us(_) => "measured",
        Edge::Unanswered => "unanswered",
        Edge::Unbounded => "unbounded",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{sample, tests::written};

    #[test]
    fn the_model_and_the_days_of_a_row_are_those_of_its_own_turns() {
        let mut run = sample::run(1);
        let first = run.evaluation.latency[0].clone();
        let source = |model: &str, day: &str| crate::gate::Source {
            mode: crate::trace::Mode::Replay,
            from: "acme".into(),
            model: model.into(),
            dates: vec![day.into()],
        };
        let own = [source("m-1", "2026-11-22"), source("m-2", "2026-11-23")];
        run.evaluation.latency = own
            .iter()
            .map(|own| Latency { variant: own.model.clone(), sources: vec![own.clone()], ..first.clone() })
            .collect();
        run.evaluation.sources = own.to_vec();
        let text = written(&FORMATS[0], &run.view());
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<_> = reader.records().map(|row| row.expect("a row")).collect();
        let days = |model: &str| if model == "m-1" { "2026-11-22" } else { "2026-11-23" };
        assert!(rows.iter().all(|row| row[14] == row[1] && row[15] == *days(&row[1])), "{text}");
    }

    #[test]
    fn every_figure_is_a_row_and_the_means_of_the_stages_sum_to_the_total() {
        let run = sample::run(3);
        let text = written(&FORMATS[0], &run.view());
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<Vec<String>> =
            reader.records().map(|row| row.expect("a row").iter().map(str::to_owned).collect()).collect();
        let of = |figure: &str| rows.iter().find(|row| row[3] == figure).expect(figure);
        assert_eq!((of("turn_p95")[8].as_str(), of("turn_p95")[13].as_str()), ("", "unbounded"));
        let first = rows.iter().filter(|row| row[..3] == rows[0][..3] && row[3].starts_with("stage_"));
        let (total, parts): (Vec<_>, Vec<_>) = first.partition(|row| row[3] == "stage_total");
        let sum = |rows: &[&Vec<String>]| rows.iter().map(|row| row[6].parse::<f64>().expect("ms")).sum::<f64>();
        assert!((sum(&total) - sum(&parts)).abs() < 0.01, "{rows:?}");
        assert_eq!(parts.len(), 6);
        assert!(rows.iter().all(|row| row[16].starts_with("REPLAYED, recorded from ")), "{rows:?}");
    }

    #[test]
    fn the_name_of_a_stage_commands_no_terminal() {
        let mut run = sample::run(1);
        run.evaluation.latency[0].stages[0].stage = "red\u{1b}[31m\r\n::x\u{9b}".to_owned().into();
        let text = written(&FORMATS[0], &run.view());
        assert!(text.contains("stage_red\u{fffd}[31m ::x\u{fffd},"), "{text}");
    }
}

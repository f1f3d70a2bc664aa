//! `latency.csv`: quantiles, stages and times to the first token, one row a figure, by flow, variant and kind of evidence.
//!
//! Times are milliseconds with three decimals. A quantile that falls on a turn without an answer has the word
//! `unanswered`, a bound that too few times allow the word `unbounded`. A stage's value is its mean over the answered
//! turns, along the critical path; the means sum to that of `total`.

use crate::gate::{Edge, Latency, Quantile};
use crate::report::figures::quantile_name;
use crate::report::{Format, View};
use crate::trace::LATENCY_CSV;
use crate::trace::text::cell;
use std::borrow::Cow;
use std::io::{self, Write};

pub(super) const FORMATS: &[&dyn Format] = &[&LatencyCsv];

/// Writes `latency.csv`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LatencyCsv;

const COLUMNS: [&str; 11] =
    ["flow", "variant", "kind", "figure", "n", "unanswered", "value_ms", "lower_95_ms", "upper_95_ms", "share", "part"];

impl Format for LatencyCsv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn file(&self) -> &'static str {
        LATENCY_CSV
    }

    fn write(&self, view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
        let mut rows = ::csv::Writer::from_writer(out);
        rows.write_record(COLUMNS)?;
        for row in &view.evaluation.latency {
            for record in records(row) {
                let place = [cell(&row.flow), cell(&row.variant), Cow::Borrowed(row.kind.as_str())];
                let part = [cell(&view.evaluation.part)];
                rows.write_record(place.iter().chain(&record).chain(&part).map(AsRef::as_ref))?;
            }
        }
        rows.flush()
    }
}

/// The figures of a row, without its place.
fn records(row: &Latency) -> Vec<[Cow<'static, str>; 7]> {
    let quantile = |what: &str, n: u64, unanswered: u64, one: &Quantile| {
        [
            format!("{what}_{}", quantile_name(one.q)).into(),
            n.to_string().into(),
            unanswered.to_string().into(),
            edge(one.value),
            edge(one.lower),
            edge(one.upper),
            "".into(),
        ]
    };
    let mut records: Vec<_> =
        row.quantiles.iter().map(|one| quantile("turn", row.turns, row.unanswered, one)).collect();
    let answered = row.answered();
    let mean = |name: String, us: u64| {
        let ms = us as f64 / answered as f64 / 1e3;
        let share = if row.answered_us == 0 { 0.0 } else { us as f64 / row.answered_us as f64 };
        [
            name.into(),
            answered.to_string().into(),
            "".into(),
            format!("{ms:.3}").into(),
            "".into(),
            "".into(),
            format!("{share:.6}").into(),
        ]
    };
    if answered > 0 {
        let stage = |name: &str| format!("stage_{}", name.to_lowercase());
        records.extend(row.stages.iter().map(|(one, us)| mean(stage(one.as_str()), *us)));
        records.push(mean(stage("total"), row.answered_us));
    }
    if let Some(first) = &row.first_token {
        records.extend(first.quantiles.iter().map(|one| quantile("first_token", first.n, 0, one)));
    }
    records
}

fn edge(edge: Edge) -> Cow<'static, str> {
    match edge {
        Edge::Us(us) => format!("{:.3}", us as f64 / 1e3).into(),
        Edge::Unanswered => "unanswered".into(),
        Edge::Unbounded => "unbounded".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{sample, tests::written};

    #[test]
    fn every_figure_is_a_row_and_the_means_of_the_stages_sum_to_the_total() {
        let run = sample::run(3);
        let text = written(&LatencyCsv, &run.view());
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<Vec<String>> =
            reader.records().map(|row| row.expect("a row").iter().map(str::to_owned).collect()).collect();
        let of = |figure: &str| rows.iter().find(|row| row[3] == figure).expect(figure);
        assert_eq!((of("turn_p95")[8].as_str(), of("turn_p99")[8].as_str()), ("unbounded", "unbounded"));
        let first = rows.iter().filter(|row| row[..3] == rows[0][..3] && row[3].starts_with("stage_"));
        let (total, parts): (Vec<_>, Vec<_>) = first.partition(|row| row[3] == "stage_total");
        let sum = |rows: &[&Vec<String>]| rows.iter().map(|row| row[6].parse::<f64>().expect("ms")).sum::<f64>();
        assert!((sum(&total) - sum(&parts)).abs() < 0.01, "{rows:?}");
        assert_eq!(parts.len(), 6);
    }
}

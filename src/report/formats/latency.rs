//! `latency.csv`: quantiles, stages and times to first token, one row per figure, by flow, variant and kind of
//! evidence.
//!
//! Times are milliseconds with three decimals, or empty: a quantile that falls on an unanswered turn has the state
//! `unanswered`, a bound that needs more times has the state `unbounded`. A stage's value is its mean over the answered
//! turns, along the critical path; the means add up to that of `total`.

use super::csv::SourceColumns;
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

const COLUMNS: [&str; 17] = [
    "flow",
    "variant",
    "kind",
    "figure",
    "n",
    "unanswered",
    "value_ms",
    "lower_95_ms",
    "upper_95_ms",
    "share",
    "part",
    "value_state",
    "lower_95_state",
    "upper_95_state",
    "model",
    "recorded_on",
    "evidence",
];

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
        let from = SourceColumns::of(&view.evaluation.sources);
        for row in &view.evaluation.latency {
            for (record, states) in records(row) {
                let place = [cell(&row.flow), cell(&row.variant), Cow::Borrowed(row.kind.as_str())];
                let part = [cell(&view.evaluation.part)];
                let states = states.map(Cow::Borrowed);
                let from = [cell(&from.model), cell(&from.dates), cell(&row.evidence)];
                rows.write_record(
                    place.iter().chain(&record).chain(&part).chain(&states).chain(&from).map(AsRef::as_ref),
                )?;
            }
        }
        rows.flush()
    }
}

/// Figures of a row with the states of value and bounds, without its flow and variant.
fn records(row: &Latency) -> Vec<([Cow<'static, str>; 7], [&'static str; 3])> {
    let quantile = |what: &str, n: u64, unanswered: u64, one: &Quantile| {
        let cells = [
            format!("{what}_{}", quantile_name(one.q)).into(),
            n.to_string().into(),
            unanswered.to_string().into(),
            edge(one.value),
            edge(one.lower),
            edge(one.upper),
            "".into(),
        ];
        (cells, [one.value, one.lower, one.upper].map(state))
    };
    let mut records: Vec<_> =
        row.quantiles.iter().map(|one| quantile("turn", row.turns, row.unanswered, one)).collect();
    let answered = row.answered();
    let mean = |name: String, us: u64| {
        let ms = us as f64 / answered as f64 / 1e3;
        let share = if row.answered_us == 0 { 0.0 } else { us as f64 / row.answered_us as f64 };
        let cells = [
            name.into(),
            answered.to_string().into(),
            "".into(),
            format!("{ms:.3}").into(),
            "".into(),
            "".into(),
            format!("{share:.6}").into(),
        ];
        (cells, ["measured", "", ""])
    };
    if answered > 0 {
        let stage = |name: &str| format!("stage_{}", name.to_lowercase());
        records.extend(row.stages.iter().map(|one| mean(stage(one.stage.as_str()), one.took_us)));
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
        Edge::Unanswered | Edge::Unbounded => "".into(),
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
    fn every_figure_is_a_row_and_the_means_of_the_stages_sum_to_the_total() {
        let run = sample::run(3);
        let text = written(&LatencyCsv, &run.view());
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
}

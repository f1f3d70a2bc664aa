//! Writes `comparison.csv`, and `pairs.csv` for several comparisons: one row per criterion. Rates are shares of 0 to 1
//! and times seconds, with six decimals; unknown figures are empty. New columns are added last.

use crate::compare::{Comparison, Scale};
use crate::stats::percent::{Rounding, rounded};
use crate::trace::text::cell;
use std::io;

const COLUMNS: [&str; 27] = [
    "criterion",
    "metric",
    "scale",
    "gated",
    "cases",
    "a",
    "b",
    "difference",
    "low",
    "high",
    "p",
    "p_adjusted",
    "method",
    "better",
    "worse",
    "visible",
    "finding",
    "differs",
    "sentence",
    "part_a",
    "part_b",
    "evidence_a",
    "evidence_b",
    "side_a",
    "side_b",
    "level",
    "family",
];

/// Rows of some comparisons, in their order.
pub(in crate::report) fn csv(comparisons: &[Comparison]) -> io::Result<Vec<u8>> {
    let mut rows = ::csv::Writer::from_writer(Vec::new());
    rows.write_record(COLUMNS)?;
    let figure = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.6}"));
    let bound = |value: Option<f64>, rounding| value.map_or_else(String::new, |value| rounded(value, 6, rounding));
    for (comparison, row) in comparisons.iter().flat_map(|found| found.rows.iter().map(move |row| (found, row))) {
        let differs: Vec<String> = comparison.differences.iter().map(super::differs).collect();
        rows.write_record([
            cell(&row.key).as_ref(),
            cell(&row.metric).as_ref(),
            if row.scale == Scale::Rate { "rate" } else { "time" },
            if row.gated { "true" } else { "false" },
            &row.cases.to_string(),
            &figure(row.a),
            &figure(row.b),
            &figure(row.difference),
            &bound(row.interval.map(|span| span.low), Rounding::Down),
            &bound(row.interval.map(|span| span.high), Rounding::Up),
            &figure(row.p),
            &figure(row.p_adjusted),
            &row.method,
            &row.better.to_string(),
            &row.worse.to_string(),
            &figure(row.visible),
            row.finding.as_str(),
            cell(&differs.join("; ")).as_ref(),
            cell(&row.sentence).as_ref(),
            cell(&comparison.a.part).as_ref(),
            cell(&comparison.b.part).as_ref(),
            cell(&comparison.a.evidence).as_ref(),
            cell(&comparison.b.evidence).as_ref(),
            cell(&comparison.a.label).as_ref(),
            cell(&comparison.b.label).as_ref(),
            &figure(row.level),
            &row.family.to_string(),
        ])?;
    }
    rows.into_inner().map_err(|why| io::Error::other(why.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_criterion_is_a_row_that_reads_back() {
        let found = super::super::tests::worse();
        let text = csv(std::slice::from_ref(&found)).expect("a file");
        let mut reader = ::csv::Reader::from_reader(text.as_slice());
        let rows: Vec<::csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
        assert_eq!(rows.len(), found.rows.len());
        assert_eq!((&rows[0][0], &rows[0][7], &rows[0][16]), ("cases", "-0.800000", "worse"));
        assert!(rows[0][17].contains("model: sim-1 in A, sim-2 in B (s)"), "{:?}", rows[0]);
    }
}

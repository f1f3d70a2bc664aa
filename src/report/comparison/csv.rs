//! Writes `comparison.csv`, and `pairs.csv` for several comparisons: one row per criterion. Rates are shares of 0 to 1
//! and times seconds, with six decimals; unknown figures are empty. New columns are added last.

use crate::compare::{ComparedCriterion, Comparison, Scale};
use crate::report::formats::{PART, bound, decimal};
use crate::stats::percent::Rounding;
use crate::trace::columns::{Column, column, write_rows};
use crate::trace::text::cell;
use std::borrow::Cow;
use std::io;

/// Values of one row.
pub(crate) struct Compared<'a> {
    comparison: &'a Comparison,
    row: &'a ComparedCriterion,
}

/// Columns of `comparison.csv` and `pairs.csv`.
pub(crate) fn columns<'a>() -> Vec<Column<Compared<'a>>> {
    vec![
        column("criterion", "what is compared: a criterion, a gate, `cases`, `turn time` or `turn time p95`", |one| {
            cell(&one.row.key)
        }),
        column("metric", "the metric as written", |one| cell(&one.row.metric)),
        column("scale", "`rate` (shares of 0 to 1) or `time` (seconds)", |one| {
            if one.row.scale == Scale::Rate { "rate".into() } else { "time".into() }
        }),
        column("gated", "whether it can be a regression: `true` or `false`", |one| one.row.gated.to_string().into()),
        column("cases", "number of paired cases", |one| one.row.cases.to_string().into()),
        column("a", "mean over the cases under A; for times, the median or p95", |one| figure(one.row.a)),
        column("b", "mean over the cases under B; for times, the median or p95", |one| figure(one.row.b)),
        column(
            "difference",
            "B − A; for times, B / A − 1, at most 99.99, estimated over pairs of cases (Hodges-Lehmann) in the row on the \
             median case",
            |one| figure(one.row.difference),
        ),
        column("low", "lower end of the difference's interval at `level`, rounded down", |one| {
            bound(one.row.interval.map(|span| span.low), Rounding::Down).into()
        }),
        column("high", "upper end of the same interval, rounded up", |one| {
            bound(one.row.interval.map(|span| span.high), Rounding::Up).into()
        }),
        column("p", "two-sided p-value of the test", |one| figure(one.row.p)),
        column("p_adjusted", "the p-value corrected over all required rows of the file", |one| {
            figure(one.row.p_adjusted)
        }),
        column("method", "the test", |one| one.row.method.as_str().into()),
        column("better", "number of cases in which B is better", |one| one.row.better.to_string().into()),
        column("worse", "number of cases in which B is worse", |one| one.row.worse.to_string().into()),
        column(
            "visible",
            "smallest difference that would have been detected with a power of 80 % at the first step of the correction",
            |one| figure(one.row.visible),
        ),
        column(
            "finding",
            "`better`, `worse`, `not worse`, `inconclusive`, `no case changed` or `not compared`",
            |one| one.row.finding.as_str().into(),
        ),
        column("differs", "differences in the settings, joined by `; `", |one| {
            let names = one.comparison.names();
            let differs: Vec<String> =
                one.comparison.differences.iter().map(|row| super::differs(row, names)).collect();
            cell(&differs.join("; ")).into_owned().into()
        }),
        column("sentence", "the finding in words", |one| cell(&one.row.sentence)),
        column("part_a", PART, |one| cell(&one.comparison.a.part)),
        column("part_b", "the same for B", |one| cell(&one.comparison.b.part)),
        column("evidence_a", "source of the figures of A, in words", |one| cell(&one.comparison.a.evidence)),
        column("evidence_b", "source of the figures of B, in words", |one| cell(&one.comparison.b.evidence)),
        column("side_a", "name of A: a run folder, with `@variant` for one variant", |one| {
            cell(&one.comparison.a.label)
        }),
        column("side_b", "name of B", |one| cell(&one.comparison.b.label)),
        column("level", "two-sided error probability that decides the row", |one| figure(one.row.level)),
        column("family", "number of rows that are corrected together", |one| one.row.family.to_string().into()),
    ]
}

fn figure(value: Option<f64>) -> Cow<'static, str> {
    decimal(value).into()
}

/// Rows of some comparisons, in their order.
pub(in crate::report) fn csv(comparisons: &[Comparison]) -> io::Result<Vec<u8>> {
    let rows =
        comparisons.iter().flat_map(|comparison| comparison.rows.iter().map(move |row| Compared { comparison, row }));
    let mut bytes = Vec::new();
    write_rows(&mut bytes, &columns(), rows)?;
    Ok(bytes)
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
        assert!(rows[0][17].contains("model: sim-1 in a, sim-2 in b (s)"), "{:?}", rows[0]);
    }
}

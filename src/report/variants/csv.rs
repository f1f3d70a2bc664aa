//! `variants.csv`: one row per figure, variant and case; `case` is empty for the figure over all cases. Shares of 0 to
//! 1, seconds, and numbers per query or answer, with six decimals; unknown figures are empty. New columns are added
//! last.

use crate::compare::{Cell, Fraction, InCase, Passes, Unit, Variant, Variants};
use crate::trace::text::cell as text;
use std::io;

const COLUMNS: [&str; 11] = [
    "figure",
    "variant",
    "flow",
    "case",
    "unit",
    "value",
    "numerator",
    "denominator",
    "not_measured",
    "part",
    "evidence",
];

/// Writes the file.
pub(super) fn csv(found: &Variants) -> io::Result<Vec<u8>> {
    let mut rows = ::csv::Writer::from_writer(Vec::new());
    rows.write_record(COLUMNS)?;
    let mut write = |figure: &str, case: &str, unit: Unit, variant: &Variant, cell: &Cell| {
        rows.write_record([
            text(figure).as_ref(),
            text(&variant.name).as_ref(),
            text(&variant.flow).as_ref(),
            text(case).as_ref(),
            match unit {
                Unit::Share => "share",
                Unit::Number => "number",
                Unit::Seconds => "s",
                Unit::Dollars => "USD",
            },
            &cell.value.map_or_else(String::new, |value| format!("{value:.6}")),
            &cell.counts.map_or_else(String::new, |counts| counts.numerator.to_string()),
            &cell.counts.map_or_else(String::new, |counts| counts.denominator.to_string()),
            text(&cell.not_measured).as_ref(),
            text(&found.part).as_ref(),
            text(&variant.evidence).as_ref(),
        ])
    };
    for figure in &found.figures {
        for (variant, cell) in found.variants.iter().zip(&figure.cells) {
            write(&figure.key, "", figure.unit, variant, cell)?;
        }
    }
    for case in &found.cases {
        for (variant, one) in found.variants.iter().zip(&case.variants) {
            for (figure, unit, cell) in in_case(one) {
                write(figure, &case.case, unit, variant, &cell)?;
            }
        }
    }
    rows.into_inner().map_err(|why| io::Error::other(why.to_string()))
}

/// Figures of one case, with the names used over all cases.
fn in_case(one: &InCase) -> [(&'static str, Unit, Cell); 7] {
    let known = |value: Option<f64>, why: &str| Cell {
        value,
        counts: None,
        not_measured: if value.is_none() { why.to_owned() } else { String::new() },
    };
    let Passes { passed, trials } = one.passed;
    let rate = Cell {
        value: (trials > 0).then(|| passed as f64 / trials as f64),
        counts: Some(Fraction { numerator: passed, denominator: trials }),
        not_measured: String::new(),
    };
    let silent = "a service did not tell its tokens";
    [
        (crate::compare::CASES, Unit::Share, rate),
        ("model calls", Unit::Number, known(Some(one.model_calls), "")),
        ("tool calls", Unit::Number, known(Some(one.tool_calls), "")),
        ("input tokens", Unit::Number, known(one.input_tokens, silent)),
        ("output tokens", Unit::Number, known(one.output_tokens, silent)),
        ("turn p50", Unit::Seconds, known(one.turn, "falls on a query without an answer")),
        ("citations", Unit::Number, known(one.citations, "no query was answered")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_of_every_variant_is_a_row_over_all_cases_and_in_each() {
        let found = super::super::tests::found();
        let bytes = csv(&found).expect("a file");
        let mut reader = ::csv::Reader::from_reader(bytes.as_slice());
        let rows: Vec<::csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
        assert_eq!(rows.len(), found.figures.len() * 2 + 8 * 2 * 7);
        let of = |figure: &str, variant: &str, case: &str| {
            let row = rows.iter().find(|row| (&row[0], &row[1], &row[3]) == (figure, variant, case)).expect("a row");
            (row[5].to_owned(), row[6].to_owned(), row[7].to_owned(), row[8].to_owned())
        };
        let told = |value: &str, a: &str, b: &str, why: &str| (value.into(), a.into(), b.into(), why.into());
        assert_eq!(of("cases", "a", ""), told("1.000000", "8", "8", ""));
        assert_eq!(of("cases", "b", "s/c3"), told("0.000000", "0", "1", ""));
        assert_eq!(of("model calls", "b", ""), told("3.000000", "24", "8", ""));
        assert_eq!(of("service tokens", "a", ""), told("", "", "", "no service was asked for an answer"));
    }
}

//! `variants.csv`: one row per figure, variant and case; `case` is empty for the figure over all cases. Shares of 0 to
//! 1, seconds, and numbers per query or answer, with six decimals; unknown figures are empty. New columns are added
//! last.

use crate::compare::{Cell, Fraction, InCase, Passes, Unit, Variant, Variants};
use crate::report::formats::PART;
use crate::trace::columns::{Column, column, write_rows};
use crate::trace::text::cell as text;
use std::io;

/// Values of one row.
pub(crate) struct Figure<'a> {
    name: &'a str,
    case: &'a str,
    unit: Unit,
    variant: &'a Variant,
    cell: Cell,
    part: &'a str,
}

/// Columns of `variants.csv`.
pub(crate) fn columns<'a>() -> Vec<Column<Figure<'a>>> {
    vec![
        column(
            "figure",
            "a criterion, `cases`, `model calls`, `tool calls`, `input tokens`, `output tokens`, `service tokens` (each              per query), `turn p50`, `turn p95`, `citations` (per answer) or `citing answers`",
            |row| text(row.name),
        ),
        column("variant", "the variant", |row| text(&row.variant.name)),
        column("flow", "its flow", |row| text(&row.variant.flow)),
        column("case", "`scenario/case`; empty for the figure over all cases", |row| text(row.case)),
        column("unit", "`share` (0 to 1), `number`, `s` or `USD`", |row| match row.unit {
            Unit::Share => "share".into(),
            Unit::Number => "number".into(),
            Unit::Seconds => "s".into(),
            Unit::Dollars => "USD".into(),
        }),
        column("value", "the figure in its unit; empty if unknown", |row| {
            row.cell.value.map_or_else(String::new, |value| format!("{value:.6}")).into()
        }),
        column("numerator", "successes, or the sum behind the figure", |row| {
            row.cell.counts.map_or_else(String::new, |counts| counts.numerator.to_string()).into()
        }),
        column("denominator", "units, queries or answers that it was counted over", |row| {
            row.cell.counts.map_or_else(String::new, |counts| counts.denominator.to_string()).into()
        }),
        column("not_measured", "why there is no value, in words", |row| text(&row.cell.not_measured)),
        column("part", PART, |row| text(row.part)),
        column("evidence", "source of the variant's figures, in words", |row| text(&row.variant.evidence)),
    ]
}

/// Writes the file.
pub(super) fn csv(found: &Variants) -> io::Result<Vec<u8>> {
    let part = found.part.as_str();
    let over_all = found.figures.iter().flat_map(|figure| {
        let cells = found.variants.iter().zip(&figure.cells);
        cells.map(move |(variant, cell)| Figure {
            name: &figure.key,
            case: "",
            unit: figure.unit,
            variant,
            cell: cell.clone(),
            part,
        })
    });
    let by_case = found.cases.iter().flat_map(|case| {
        let variants = found.variants.iter().zip(&case.variants);
        variants.flat_map(move |(variant, one)| {
            in_case(one).map(|(name, unit, cell)| Figure { name, case: &case.case, unit, variant, cell, part })
        })
    });
    let mut bytes = Vec::new();
    write_rows(&mut bytes, &columns(), over_all.chain(by_case))?;
    Ok(bytes)
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
    let silent = "a service did not report its tokens";
    [
        (crate::compare::CASES, Unit::Share, rate),
        ("model calls", Unit::Number, known(Some(one.model_calls), "")),
        ("tool calls", Unit::Number, known(Some(one.tool_calls), "")),
        ("input tokens", Unit::Number, known(one.input_tokens, silent)),
        ("output tokens", Unit::Number, known(one.output_tokens, silent)),
        ("turn p50", Unit::Seconds, known(one.turn, "falls on a query without an answer")),
        ("citations", Unit::Number, known(one.citations, "no answer that shows its sources")),
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

//! Columns of CSV files: a table of name, meaning and cell for each file, which also describes the file in the
//! reference.

#[cfg(feature = "parquet")]
use crate::platform::secrets;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// One column of a file whose rows are made from `R`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column<R> {
    /// Name in the header.
    pub name: &'static str,
    meaning: &'static str,
    /// What the cells hold.
    pub cells: Cells<R>,
}

/// The cells of a column. CSV writes them all as text.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cells<R> {
    Text(fn(&R) -> Cow<'_, str>),
    /// A whole number, or nothing.
    Whole(fn(&R) -> Option<u64>),
    /// A number with decimals, or nothing.
    Decimal(fn(&R) -> Cow<'_, str>),
    /// `true` or `false`.
    Flag(fn(&R) -> bool),
}

/// Declares a column; the meaning is Markdown on one line.
pub(crate) fn column<R>(name: &'static str, meaning: &'static str, cell: fn(&R) -> Cow<'_, str>) -> Column<R> {
    Column { name, meaning, cells: Cells::Text(cell) }
}

/// Declares a column of whole numbers.
pub(crate) fn whole_column<R>(name: &'static str, meaning: &'static str, cell: fn(&R) -> Option<u64>) -> Column<R> {
    Column { name, meaning, cells: Cells::Whole(cell) }
}

/// Declares a column of numbers with decimals.
pub(crate) fn decimal_column<R>(name: &'static str, meaning: &'static str, cell: fn(&R) -> Cow<'_, str>) -> Column<R> {
    Column { name, meaning, cells: Cells::Decimal(cell) }
}

/// Declares a column of `true` and `false`.
pub(crate) fn flag_column<R>(name: &'static str, meaning: &'static str, cell: fn(&R) -> bool) -> Column<R> {
    Column { name, meaning, cells: Cells::Flag(cell) }
}

impl<R> Column<R> {
    fn cell<'r>(&self, row: &'r R) -> Cow<'r, str> {
        match self.cells {
            Cells::Text(cell) | Cells::Decimal(cell) => cell(row),
            Cells::Whole(cell) => cell(row).map(|number| number.to_string()).unwrap_or_default().into(),
            Cells::Flag(cell) => cell(row).to_string().into(),
        }
    }

    /// The cell of a row without declared secrets, for files in which texts cannot be searched later.
    #[cfg(feature = "parquet")]
    pub(crate) fn clean(&self, row: &R) -> String {
        secrets::clean(&self.cell(row)).into_owned()
    }
}

/// Writes a header, and one line per row.
pub(crate) fn write_rows<R>(
    out: impl Write,
    columns: &[Column<R>],
    rows: impl IntoIterator<Item = R>,
) -> io::Result<()> {
    let mut csv = ::csv::Writer::from_writer(out);
    csv.write_record(columns.iter().map(|column| column.name))?;
    for row in rows {
        for column in columns {
            csv.write_field(column.cell(&row).as_bytes())?;
        }
        csv.write_record(None::<&[u8]>)?;
    }
    csv.flush()
}

/// Describes the columns as a Markdown table.
pub(crate) fn described<R>(columns: &[Column<R>]) -> String {
    let mut text = String::from("| column | meaning |\n|---|---|\n");
    for column in columns {
        let _ = writeln!(text, "| `{}` | {} |", column.name, column.meaning);
    }
    text
}

//! Columns of CSV files: a table of name, meaning and cell for each file, which also describes the file in the
//! reference.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// One column of a file whose rows are made from `R`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column<R> {
    /// Name in the header.
    pub name: &'static str,
    meaning: &'static str,
    cell: fn(&R) -> Cow<'_, str>,
}

/// Declares a column; the meaning is Markdown on one line.
pub(crate) fn column<R>(name: &'static str, meaning: &'static str, cell: fn(&R) -> Cow<'_, str>) -> Column<R> {
    Column { name, meaning, cell }
}

/// Writes a header, and one line per row.
///
/// # Errors
/// If writing fails.
pub(crate) fn write_rows<R>(
    out: impl Write,
    columns: &[Column<R>],
    rows: impl IntoIterator<Item = R>,
) -> io::Result<()> {
    let mut csv = ::csv::Writer::from_writer(out);
    csv.write_record(columns.iter().map(|column| column.name))?;
    for row in rows {
        for column in columns {
            csv.write_field((column.cell)(&row).as_bytes())?;
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

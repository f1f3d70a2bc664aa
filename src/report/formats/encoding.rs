//! Encodings of a table, as CSV or Parquet, and the names of their files.

use crate::trace::columns::{Column, write_rows};
use std::io::{self, Write};

/// Encoding of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Comma-separated values.
    Csv,
    /// Apache Parquet, with typed columns.
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Encoding {
    /// The encoding that `--to` names; `None` for a format without tables.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "csv" => Some(Self::Csv),
            #[cfg(feature = "parquet")]
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }

    /// Writes a table.
    pub(crate) fn write<R>(
        self,
        out: &mut dyn Write,
        columns: &[Column<R>],
        rows: impl IntoIterator<Item = R>,
    ) -> io::Result<()> {
        match self {
            Self::Csv => write_rows(out, columns, rows),
            #[cfg(feature = "parquet")]
            Self::Parquet => super::parquet::write_rows(out, columns, rows),
        }
    }
}

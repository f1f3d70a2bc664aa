//! Tables as Apache Parquet: the cells of the CSV files, with typed columns; an empty cell is null.

use super::csv::{criteria, trials, violations};
use super::latency::latency;
use super::requirements::requirements;
use super::{Encoding, Format};
use crate::trace::columns::{Cells, Column};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::io::{self, Write};
use std::str::FromStr;
use std::sync::Arc;

pub(super) const FORMATS: &[Format] = &[
    Format { name: "parquet", file: "trials.parquet", write: |view, out| trials(view, out, Encoding::Parquet) },
    Format { name: "parquet", file: "criteria.parquet", write: |view, out| criteria(view, out, Encoding::Parquet) },
    Format { name: "parquet", file: "violations.parquet", write: |view, out| violations(view, out, Encoding::Parquet) },
    Format { name: "parquet", file: "latency.parquet", write: |view, out| latency(view, out, Encoding::Parquet) },
    Format {
        name: "parquet",
        file: "requirements.parquet",
        write: |view, out| requirements(view, out, Encoding::Parquet),
    },
];

/// Rows of a group, which are held in memory.
const GROUP: usize = 65_536;

/// Writes a table.
///
/// # Errors
/// If writing fails, or a cell is not of its column's kind.
pub(super) fn write_rows<R>(
    out: &mut dyn Write,
    columns: &[Column<R>],
    rows: impl IntoIterator<Item = R>,
) -> io::Result<()> {
    let schema = Arc::new(schema(columns).map_err(io::Error::other)?);
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).map_err(io::Error::other)?;
    let mut cells: Vec<Vec<String>> = columns.iter().map(|_| Vec::new()).collect();
    for row in rows {
        for (column, cells) in columns.iter().zip(&mut cells) {
            cells.push(column.clean(&row));
        }
        if cells.first().is_some_and(|cells| cells.len() == GROUP) {
            write_group(&mut file, columns, &mut cells)?;
        }
    }
    write_group(&mut file, columns, &mut cells)?;
    out.write_all(&file.into_inner().map_err(io::Error::other)?)
}

fn schema<R>(columns: &[Column<R>]) -> Result<Type, ParquetError> {
    let field = |column: &Column<R>| {
        let (physical, logical) = match column.cells {
            Cells::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Cells::Whole(_) => (Physical::INT64, None),
            Cells::Decimal(_) => (Physical::DOUBLE, None),
            Cells::Flag(_) => (Physical::BOOLEAN, None),
        };
        let field = Type::primitive_type_builder(column.name, physical).with_logical_type(logical);
        Ok(Arc::new(field.with_repetition(Repetition::OPTIONAL).build()?))
    };
    let fields = columns.iter().map(field).collect::<Result<_, ParquetError>>()?;
    Type::group_type_builder("rows").with_fields(fields).build()
}

/// Writes the collected rows as a group, and empties them.
fn write_group<R>(
    file: &mut SerializedFileWriter<Vec<u8>>,
    columns: &[Column<R>],
    cells: &mut [Vec<String>],
) -> io::Result<()> {
    if cells.first().is_none_or(Vec::is_empty) {
        return Ok(());
    }
    let mut group = file.next_row_group().map_err(io::Error::other)?;
    for (column, cells) in columns.iter().zip(cells) {
        let cells = std::mem::take(cells);
        match column.cells {
            Cells::Text(_) => write_column::<ByteArrayType>(&mut group, &cells, |cell| Ok(ByteArray::from(cell))),
            Cells::Whole(_) => write_column::<Int64Type>(&mut group, &cells, |cell| typed(column.name, cell)),
            Cells::Decimal(_) => write_column::<DoubleType>(&mut group, &cells, |cell| typed(column.name, cell)),
            Cells::Flag(_) => write_column::<BoolType>(&mut group, &cells, |cell| typed(column.name, cell)),
        }?;
    }
    group.close().map_err(io::Error::other)?;
    Ok(())
}

fn typed<T: FromStr>(column: &str, cell: &str) -> io::Result<T> {
    let why = |_| io::Error::new(io::ErrorKind::InvalidData, format!("column `{column}` cannot hold `{cell}`"));
    cell.parse().map_err(why)
}

fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    cells: &[String],
    value: impl Fn(&str) -> io::Result<T::T>,
) -> io::Result<()> {
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(!cell.is_empty())).collect();
    let full = cells.iter().filter(|cell| !cell.is_empty());
    let values = full.map(|cell| value(cell)).collect::<io::Result<Vec<T::T>>>()?;
    let Some(mut column) = group.next_column().map_err(io::Error::other)? else {
        return Err(io::Error::other("the table has more columns than its schema"));
    };
    column.typed::<T>().write_batch(&values, Some(&levels), None).map_err(io::Error::other)?;
    column.close().map_err(io::Error::other)
}

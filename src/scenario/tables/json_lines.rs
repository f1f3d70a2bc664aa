//! Reads JSON lines: one object per line, whose keys are columns. A missing key is an empty cell.

use super::{Cell, CellValue, Column, Flaw, Table, TableRow};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// Reads the columns and rows of `table` from its text.
pub(super) fn read(table: &mut Table) -> Vec<Flaw> {
    let text = std::mem::take(&mut table.text);
    let mut columns: BTreeMap<String, usize> = BTreeMap::new();
    let (mut flaws, mut next) = (Vec::new(), 0);
    for whole in text.split_inclusive('\n') {
        let start = next;
        next += whole.len();
        let line = whole.trim_end();
        if line.is_empty() {
            continue;
        }
        if table.is_full(&flaws) {
            break;
        }
        let pairs = match serde_json::from_str::<Pairs<'_>>(line) {
            Ok(Pairs(pairs)) => pairs,
            Err(error) => {
                flaws.push(not_an_object(&error, line, start));
                continue;
            }
        };
        let mut row = TableRow { at: start..start + line.len(), cells: Vec::new() };
        for (name, raw) in pairs {
            let name = name.trim().to_owned();
            let at = within(line, raw.get(), start);
            let known = columns.len();
            let column = *columns.entry(name.clone()).or_insert(known);
            if column == known {
                table.columns.push(Column { name: name.clone(), at: at.clone() });
            }
            row.cells.push((column, Cell { at, value: value(raw.get()) }));
        }
        row.cells.sort_by_key(|(column, _)| *column);
        for pair in row.cells.windows(2) {
            if let [(one, _), (other, cell)] = pair
                && one == other
            {
                let name = table.columns.get(*one).map_or("", |column| column.name.as_str());
                let message = format!("the key `{name}` is written twice");
                flaws.push(Flaw { at: cell.at.clone(), code: "duplicate-key", message, help: None });
            }
        }
        if !row.is_empty() {
            table.rows.push(row);
        }
    }
    table.text = text;
    flaws
}

fn value(raw: &str) -> CellValue {
    match serde_json::from_str(raw).unwrap_or(Value::Null) {
        Value::Null => CellValue::Empty,
        Value::String(text) if text.trim().is_empty() => CellValue::Empty,
        Value::Array(items) if items.is_empty() => CellValue::Empty,
        value => CellValue::Json(value),
    }
}

/// The byte range of a part of `line`, which begins at `start`.
fn within(line: &str, part: &str, start: usize) -> Range<usize> {
    let from = start + (part.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
    from..from + part.len()
}

fn not_an_object(error: &serde_json::Error, line: &str, start: usize) -> Flaw {
    let begins = line.trim_start();
    if !begins.starts_with('{') {
        let from = start + line.len() - begins.len();
        let message = "a line of JSON lines is an object: `{\"column\": \"value\"}`".to_owned();
        return Flaw { at: from..start + line.len(), code: "bad-json", message, help: None };
    }
    let at = line.floor_char_boundary(error.column().saturating_sub(1).min(line.len()));
    let end = line.ceil_char_boundary((at + 1).min(line.len()));
    let told = error.to_string();
    let told = told.split(" at line ").next().unwrap_or_default();
    Flaw { at: start + at..start + end, code: "bad-json", message: format!("not valid JSON here: {told}"), help: None }
}

/// The pairs of an object, including repeated keys.
struct Pairs<'t>(Vec<(String, &'t RawValue)>);

impl<'t> Deserialize<'t> for Pairs<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'t> Visitor<'t> for Each {
            type Value = Pairs<'t>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Pairs<'t>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry::<String, &'t RawValue>()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

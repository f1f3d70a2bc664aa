//! Reads CSV as written by spreadsheets (RFC 4180), with the place of every cell. Rejects what a lenient reader would
//! silently lose rows over: an unclosed quotation, and text after a closing quote.

use super::{Cell, CellValue, Column, Flaw, Table, TableRow};
use std::collections::BTreeMap;
use std::ops::Range;

/// Reads the columns and rows of `table` from its text. The default separator is a comma, or a semicolon or tab if
/// the first line has no comma.
pub(super) fn read(table: &mut Table, separator: Option<char>) -> Vec<Flaw> {
    let text = std::mem::take(&mut table.text);
    let mut reader = Reader { text: &text, at: 0, separator: separator.unwrap_or_else(|| separator_of(&text)) };
    let mut flaws = Vec::new();
    let mut seen = BTreeMap::new();
    if let Some(head) = reader.record(&mut flaws) {
        for (index, (at, name)) in head.cells.into_iter().enumerate() {
            let name = name.trim().to_owned();
            if !name.is_empty() && seen.insert(name.clone(), index).is_some() {
                let message = format!("two columns are called `{name}`");
                flaws.push(Flaw { at: at.clone(), code: "duplicate-column", message, help: None });
            }
            table.columns.push(Column { name, at });
        }
    }
    while !table.is_full(&flaws)
        && let Some(record) = reader.record(&mut flaws)
    {
        if record.broken || (record.cells.len() == 1 && record.at.is_empty()) {
            continue;
        }
        let (wanted, found) = (table.columns.len(), record.cells.len());
        if found != wanted {
            let at = record.cells.get(wanted).map_or(record.at.clone(), |(at, _)| at.clone());
            let message = format!("this row has {found} cells, and the first line names {wanted} columns");
            let help = Some("put a cell that holds the separator in quotes, and leave empty cells empty");
            flaws.push(Flaw { at, code: "ragged-row", message, help });
            continue;
        }
        let cell = |(at, text): (Range<usize>, String)| {
            let value = if text.trim().is_empty() { CellValue::Empty } else { CellValue::Word(text) };
            Cell { at, value }
        };
        let row = TableRow { at: record.at, cells: record.cells.into_iter().map(cell).enumerate().collect() };
        if !row.is_empty() {
            table.rows.push(row);
        }
    }
    table.text = text;
    flaws
}

/// The first of comma, semicolon and tab outside quotes in the first line.
fn separator_of(text: &str) -> char {
    let line = text.split('\n').next().unwrap_or_default();
    let outside: String = line.split('"').step_by(2).collect();
    [',', ';', '\t'].into_iter().find(|separator| outside.contains(*separator)).unwrap_or(',')
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    separator: char,
}

struct Record {
    at: Range<usize>,
    cells: Vec<(Range<usize>, String)>,
    /// Whether the row has a flaw, which was reported.
    broken: bool,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn record(&mut self, flaws: &mut Vec<Flaw>) -> Option<Record> {
        if self.rest().is_empty() {
            return None;
        }
        let start = self.at;
        let (mut cells, mut broken) = (Vec::new(), false);
        loop {
            let cell = if self.rest().starts_with('"') { self.quoted() } else { Ok(self.plain()) };
            match cell {
                Ok(cell) => cells.push(cell),
                Err(flaw) => {
                    flaws.push(flaw);
                    broken = true;
                    self.plain();
                    while self.rest().starts_with(self.separator) {
                        self.at += self.separator.len_utf8();
                        self.plain();
                    }
                }
            }
            let end = self.at;
            if self.rest().starts_with(self.separator) {
                self.at += self.separator.len_utf8();
            } else {
                self.at += usize::from(self.rest().starts_with('\n'));
                return Some(Record { at: start..end, cells, broken });
            }
        }
    }

    /// Reads up to the next separator or line break.
    fn plain(&mut self) -> (Range<usize>, String) {
        let start = self.at;
        let (rest, separator) = (self.rest(), self.separator);
        let length = rest.find([separator, '\n']).unwrap_or(rest.len());
        let text = rest.get(..length).unwrap_or_default().to_owned();
        self.at += length;
        (start..self.at, text)
    }

    fn quoted(&mut self) -> Result<(Range<usize>, String), Flaw> {
        let start = self.at;
        let mut text = String::new();
        self.at += 1;
        loop {
            let rest = self.rest();
            let Some(length) = rest.find('"') else {
                let at = start..self.text.len();
                self.at = self.text.len();
                let message = "a quoted cell begins here and does not end".to_owned();
                return Err(Flaw {
                    at,
                    code: "bad-csv",
                    message,
                    help: Some("write a quote inside a quoted cell twice"),
                });
            };
            text.push_str(rest.get(..length).unwrap_or_default());
            self.at += length + 1;
            if !self.rest().starts_with('"') {
                break;
            }
            text.push('"');
            self.at += 1;
        }
        let rest = self.rest();
        if rest.is_empty() || rest.starts_with(self.separator) || rest.starts_with('\n') {
            return Ok((start..self.at, text));
        }
        let at = self.at..self.at + rest.chars().next().map_or(1, char::len_utf8);
        let message = "there is text after the closing quote".to_owned();
        Err(Flaw { at, code: "bad-csv", message, help: Some("write a quote inside a quoted cell twice") })
    }
}

//! Cases from tables: a case that names a `table` is a template, and each row of the table makes one case from it.
//!
//! | question | file |
//! |---|---|
//! | what does a table hold | `csv`, `json_lines` |
//! | which columns does a template use, and where | `template` |
//! | how is a row filled in | `fill` |
//! | which cases result | `expand` |
//! | where in which file is a mistake in one of them | `places` |
//!
//! A cell is data: it is never parsed as YAML, and placeholders in it are not expanded. The result is plain cases:
//! outside this folder only the places of cases refer to tables.

mod csv;
mod expand;
mod fill;
mod json_lines;
mod places;
mod template;

pub(super) use expand::{Around, document_with_tables, with_tables};
pub(super) use places::Tables;

use super::diagnostic::{Diagnostic, Place};
use crate::platform::bounds::Bound;
use std::collections::BTreeMap;
use std::ops::Range;

/// A parsed table.
struct Table {
    /// Its file from the project's root, with forward slashes.
    file: String,
    /// The file's text, with `\n` as the only line break.
    text: String,
    columns: Vec<Column>,
    /// Columns by name, if they have one.
    by_name: BTreeMap<String, usize>,
    rows: Vec<TableRow>,
}

/// A column: the CSV header cell that names it, or its first key in JSON lines.
struct Column {
    name: String,
    at: Range<usize>,
}

/// One row: its non-missing cells, sorted by column.
struct TableRow {
    at: Range<usize>,
    cells: Vec<(usize, Cell)>,
}

/// One cell; `at` is its byte range in the text, quotes included.
struct Cell {
    at: Range<usize>,
    value: CellValue,
}

/// Content of a cell.
enum CellValue {
    /// Empty, white space alone, or JSON's `null`.
    Empty,
    /// A text of CSV, which has no types: read as a number or boolean where one is required.
    Word(String),
    /// A value of JSON lines other than null.
    Json(serde_json::Value),
}

/// A mistake in a table.
struct Flaw {
    at: Range<usize>,
    code: &'static str,
    message: String,
    help: Option<&'static str>,
}

impl TableRow {
    fn cell(&self, column: usize) -> Option<&Cell> {
        let found = self.cells.binary_search_by_key(&column, |(column, _)| *column).ok()?;
        self.cells.get(found).map(|(_, cell)| cell)
    }

    fn is_empty(&self) -> bool {
        self.cells.iter().all(|(_, cell)| matches!(cell.value, CellValue::Empty))
    }
}

impl Table {
    /// Reads the text of a table in the format of its file extension.
    ///
    /// # Errors
    /// All mistakes in it.
    fn read(file: String, text: &str) -> Result<Self, Vec<Diagnostic>> {
        // A checkout on Windows must make the same cases as one elsewhere.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
        let mut table = Self { file, text, columns: Vec::new(), by_name: BTreeMap::new(), rows: Vec::new() };
        let ending = table.file.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        let mut flaws = match ending.as_deref() {
            Some("csv") => csv::read(&mut table, None),
            Some("tsv") => csv::read(&mut table, Some('\t')),
            Some("jsonl") => json_lines::read(&mut table),
            _ => {
                let message = "not a table that can be read: its name does not end in .csv, .tsv or .jsonl";
                return Err(vec![Diagnostic::error("unknown-table", &table.file, message)]);
            }
        };
        if flaws.is_empty() {
            let named = table.columns.iter().enumerate().filter(|(_, column)| !column.name.is_empty());
            table.by_name = named.map(|(index, column)| (column.name.clone(), index)).collect();
            return Ok(table);
        }
        let is_cut = flaws.len() > Bound::Mistakes.most_in_memory();
        flaws.truncate(Bound::Mistakes.most_in_memory());
        let mut told: Vec<Diagnostic> = flaws.into_iter().map(|flaw| table.diagnose(flaw)).collect();
        if let Some(last) = told.last().filter(|_| is_cut) {
            let message = "the table was not read from here on".to_owned();
            let help = vec![format!("correct these first; {}", Bound::Mistakes.advice())];
            told.push(Diagnostic { code: "more-mistakes", message, label: None, help, ..last.clone() });
        }
        Err(told)
    }

    fn column(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The column names, in order.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str()).filter(|name| !name.is_empty())
    }

    /// The place of a part of the text.
    fn place(&self, at: &Range<usize>) -> Place {
        Place::of(&self.text, at)
    }

    fn diagnose(&self, flaw: Flaw) -> Diagnostic {
        let diagnostic = Diagnostic::error(flaw.code, &self.file, flaw.message).at(&self.text, self.place(&flaw.at));
        match flaw.help {
            Some(help) => diagnostic.with_help(help),
            None => diagnostic,
        }
    }

    /// Whether reading stops: the scenario has its most cases, or the most mistakes are reported.
    fn is_full(&self, flaws: &[Flaw]) -> bool {
        self.rows.len() > Bound::Cases.most_in_memory() || flaws.len() > Bound::Mistakes.most_in_memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(table: &Table) -> Vec<Vec<String>> {
        let word = |cell: &Cell| match &cell.value {
            CellValue::Empty => String::new(),
            CellValue::Word(word) => word.clone(),
            CellValue::Json(value) => value.to_string(),
        };
        table.rows.iter().map(|row| row.cells.iter().map(|(_, cell)| word(cell)).collect()).collect()
    }

    fn flaws(file: &str, text: &str) -> Vec<(String, u32, u32)> {
        let told = Table::read(file.to_owned(), text).err().expect("flaws");
        let place = |one: &Diagnostic| one.place.map_or((0, 0), |place| (place.line, place.column));
        told.into_iter().map(|one| (one.message.clone(), place(&one).0, place(&one).1)).collect()
    }

    #[test]
    fn a_byte_order_mark_crlf_quoted_line_breaks_and_empty_rows_are_read_as_spreadsheets_write_them() {
        let text = "\u{feff}id, question\r\na,\"One\r\n\"\"two\"\"\"\r\n,\r\n\r\nb,Three\r\n";
        let table = Table::read("t.csv".into(), text).expect("a table");
        assert_eq!(table.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(), ["id", "question"]);
        assert_eq!(words(&table), [vec!["a", "One\n\"two\""], vec!["b", "Three"]]);
        let place = table.place(&table.rows[1].cells[1].1.at);
        assert_eq!((place.line, place.column, place.length), (6, 3, 5));
    }

    #[test]
    fn semicolons_and_tabs_separate_where_the_first_line_has_no_comma() {
        for text in ["id;q\na;1,5\n", "id\tq\na\t1,5\n", "\"id\";\"q\"\na;\"1,5\"\n"] {
            assert_eq!(words(&Table::read("t.csv".into(), text).expect("a table")), [vec!["a", "1,5"]], "{text}");
        }
        assert_eq!(words(&Table::read("t.tsv".into(), "a,b\tc\n1\t2\n").expect("a table")), [vec!["1", "2"]]);
    }

    #[test]
    fn every_flaw_of_a_table_is_told_with_line_and_column() {
        let told = flaws("t.csv", "id,q,id\na,b\nc,\"d\"e,f\ng,h,i,j\nk,l,\"m\nn\n");
        let places: Vec<(u32, u32)> = told.iter().map(|(_, line, column)| (*line, *column)).collect();
        assert_eq!(places, [(1, 6), (2, 1), (3, 6), (4, 7), (5, 5)], "{told:?}");
        let told = flaws("t.jsonl", "{\"id\": 1}\n[1]\n{\"id\": 1, \"id\": 2}\n\n{\"id\": }\n");
        let places: Vec<(u32, u32)> = told.iter().map(|(_, line, column)| (*line, *column)).collect();
        assert_eq!(places, [(2, 1), (3, 17), (5, 8)], "{told:?}");
        assert!(flaws("t.xlsx", "")[0].0.contains("does not end in .csv"));
    }

    #[test]
    fn json_lines_keep_types_and_may_lack_keys() {
        let table = Table::read("t.jsonl".into(), "{\"id\": \"a\", \"n\": 2}\n{\"more\": [\"x\"], \"id\": null}\n")
            .expect("a table");
        assert_eq!(words(&table), [vec!["\"a\"", "2"], vec!["", "[\"x\"]"]]);
        assert_eq!(table.place(&table.rows[1].cells[1].1.at).column, 10);
    }

    proptest! {
        #[test]
        fn what_a_csv_writer_wrote_is_read_as_it_was(
            rows in prop::collection::vec(prop::collection::vec("[a-z,;\t\"\n é]{0,8}", 3), 1..6),
        ) {
            let mut writer = ::csv::Writer::from_writer(Vec::new());
            writer.write_record(["one", "two", "three"]).expect("written");
            for row in &rows {
                writer.write_record(row).expect("written");
            }
            let text = String::from_utf8(writer.into_inner().expect("written")).expect("UTF-8");
            let table = Table::read("t.csv".into(), &text).map_err(|told| TestCaseError::fail(format!("{told:?}")))?;
            let blank = |cell: &String| if cell.trim().is_empty() { String::new() } else { cell.clone() };
            let wanted: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(blank).collect::<Vec<_>>())
                .filter(|row| row.iter().any(|cell| !cell.is_empty())).collect();
            prop_assert_eq!(words(&table), wanted);
        }

        #[test]
        fn any_text_is_a_table_or_told_inside_of_it(text in "[a\",;\t\n\r{}:\\[\\]é]{0,60}", json in any::<bool>()) {
            let file = if json { "t.jsonl" } else { "t.csv" };
            if let Err(told) = Table::read(file.to_owned(), &text) {
                for one in told {
                    let place = one.place.expect("a place");
                    prop_assert!(place.line as usize <= text.matches('\n').count() + 1, "{:?}", place);
                }
            }
        }
    }
}

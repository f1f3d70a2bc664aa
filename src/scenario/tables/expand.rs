//! Expands the tables of a scenario into cases.

use super::fill::{Filling, Places};
use super::places::{Tables, Used, WrongCell, capped};
use super::template::{Reading, ValueKind};
use super::{Table, TableRow};
use crate::platform::bounds::Bound;
use crate::platform::yaml::{self, Node};
use crate::scenario::case_table::{CaseTable, TABLE, names_table};
use crate::scenario::diagnostic::{At, Diagnostic, Mistake, Place, diagnose_in, did_you_mean};
use crate::scenario::document::{Case, Scenario};
use crate::scenario::files::from_root;
use crate::scenario::named_file::{beside, read_named};
use crate::scenario::repair::{Parsed, Repaired, repair};
use crate::scenario::{schema, shape};
use crate::trace::text::listed;
use rayon::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The scenario file that tables belong to.
#[derive(Clone, Copy)]
pub(in crate::scenario) struct Around<'a> {
    /// The project's folder.
    pub root: &'a Path,
    /// The scenario file.
    pub path: &'a Path,
    /// Its path relative to the project's folder, for messages.
    pub file: &'a str,
    pub text: &'a str,
    /// Bytes of all tables of the project so far, and of their cases.
    pub size: &'a AtomicU64,
}

/// Whether some case of a scenario may name a table, judged by the text alone.
fn may_name_a_table(text: &str) -> bool {
    text.match_indices(TABLE).any(|(at, _)| {
        let behind = text.get(at + TABLE.len()..).unwrap_or_default();
        behind.trim_start_matches(['"', '\'']).trim_start().starts_with(':')
    })
}

/// The document of a scenario in which some case names a table; `None` for any other, and for an unreadable one.
pub(in crate::scenario) fn document_with_tables(text: &str, is_known: bool) -> Option<Node<'static>> {
    if !is_known && !may_name_a_table(text) {
        return None;
    }
    let tree = yaml::parse(text).ok()?;
    tree.get("cases")?.items()?.iter().any(names_table).then_some(tree)
}

/// Reads a scenario returned by [`document_with_tables`]; mistakes of shape go to `out`, and the valid parts are
/// returned in any case.
pub(in crate::scenario) fn with_tables(
    tree: &Node<'_>,
    required: &[(&str, Value)],
    around: Around<'_>,
    out: &mut Vec<Diagnostic>,
) -> Option<(Parsed<Scenario>, Tables)> {
    let error = yaml::read::<serde::de::IgnoredAny>(around.text).err();
    if let Some(error) = error.as_ref().filter(|error| error.problem.is_hopeless()) {
        out.push(Diagnostic::misread(error, around.file, around.text));
        return None;
    }
    let walked = shape::walk(tree, &schema::of::<Scenario>());
    let sound = walked.mistakes.is_empty();
    let repaired = (walked.more == 0).then(|| repair(&walked, "cases", required)).flatten();
    out.extend(diagnose_in(walked.mistakes, walked.more, around.file, around.text, Some(tree)));
    if let Some(error) = error.filter(|_| sound) {
        out.push(Diagnostic::misread(&error, around.file, around.text));
        return None;
    }
    let Repaired { mut value, kept, patched } = repaired?;
    let written = value.get_mut("cases").map(|cases| std::mem::replace(cases, json!([])));
    let written = written.and_then(|cases| cases.as_array().cloned()).unwrap_or_default();
    let mut scenario: Scenario = typed(value, around.file, out)?;
    let items = tree.get("cases").and_then(Node::items).unwrap_or_default();
    let mut expanding = Expanding {
        around,
        tree,
        out,
        read: BTreeMap::new(),
        tables: Tables { first: items.len(), ..Tables::default() },
        cases: Vec::new(),
        kept: Vec::new(),
        columns: BTreeMap::new(),
    };
    for (case, index) in written.into_iter().zip(kept) {
        let Some(node) = items.get(index) else { continue };
        if names_table(node) {
            expanding.table(node, index, case.get(TABLE).cloned().unwrap_or_default())?;
        } else {
            let case = typed(case, around.file, expanding.out)?;
            expanding.cases.push(case);
            expanding.kept.push(index);
        }
    }
    expanding.unused_columns();
    let Expanding { tables, cases, kept, .. } = expanding;
    scenario.cases = cases;
    Some((Parsed::repaired(scenario, kept, patched), tables))
}

/// Converts a part of a document already found valid to its type.
fn typed<T: serde::de::DeserializeOwned>(value: Value, file: &str, out: &mut Vec<Diagnostic>) -> Option<T> {
    let found = serde_json::from_value(value);
    found.map_err(|error| out.push(Diagnostic::error("wrong-type", file, error.to_string()))).ok()
}

/// State of expanding a scenario's tables.
struct Expanding<'a> {
    around: Around<'a>,
    tree: &'a Node<'a>,
    out: &'a mut Vec<Diagnostic>,
    /// The tables by file; `None` for one whose mistakes were reported.
    read: BTreeMap<String, Option<Arc<Table>>>,
    tables: Tables,
    cases: Vec<Case>,
    kept: Vec<usize>,
    /// The columns of each table that some case uses.
    columns: BTreeMap<String, BTreeSet<usize>>,
}

impl Expanding<'_> {
    /// Records mistakes in the scenario file.
    fn say(&mut self, mistakes: Vec<Mistake>) {
        self.out.extend(diagnose_in(mistakes, 0, self.around.file, self.around.text, Some(self.tree)));
    }

    /// Makes the cases of one table; `None` if there are too many.
    fn table(&mut self, node: &Node<'_>, index: usize, written: Value) -> Option<()> {
        let named: CaseTable = typed(written, self.around.file, self.out)?;
        let root = At::ROOT;
        let cases = root.key("cases");
        let at = cases.index(index);
        let here = at.key(TABLE);
        let is_map = node.get(TABLE).is_some_and(Node::is_map);
        let Some(table) = self.read(&named.file, if is_map { here.key("file") } else { here }) else { return Some(()) };
        let (lists, mut mistakes) = lists(&table, &named, here.key("lists"));
        let mut reading = Reading::of(&table);
        let template = reading.case(node, TABLE, at);
        mistakes.append(&mut reading.mistakes);
        let used = reading.used;
        if table.rows.len() > 1 && template.get("case").is_some_and(|name| !name.varies()) {
            let mistake = Mistake::at(at.key("case"), "duplicate-case", "every row would make a case of this name");
            mistakes.push(mistake.label("put the column into it that tells the rows apart: `\"{{ id }}\"`"));
        }
        if !mistakes.is_empty() {
            self.say(mistakes);
            // The used columns are unknown.
            self.columns.entry(table.file.clone()).or_default().extend(0..table.columns.len());
            return Some(());
        }
        self.columns.entry(table.file.clone()).or_default().extend(used);
        if (self.cases.len() + table.rows.len()) as u64 > Bound::Cases.most() {
            let message = format!("{} makes a scenario of more than {} cases", table.file, Bound::Cases.shown());
            self.out.push(Diagnostic::error("too-large", self.around.file, message).with_help(Bound::Cases.advice()));
            return None;
        }
        self.rows(Used { table, template, lists })
    }

    fn read(&mut self, file: &str, at: At<'_>) -> Option<Arc<Table>> {
        let shown_file = from_root(self.around.root, &beside(self.around.path, file));
        if let Some(known) = self.read.get(&shown_file) {
            return known.clone();
        }
        let found = match read_named(self.around.path, file, Bound::ScenarioSize) {
            Err(why) => {
                let mistake = Mistake::at(at, "missing-table", "the table cannot be read").label(why.to_string());
                self.say(vec![mistake.help("the path is relative to the scenario's folder")]);
                None
            }
            Ok(text) => {
                self.around.size.fetch_add(text.len() as u64, Ordering::Relaxed);
                match Table::read(shown_file.clone(), &text) {
                    Err(told) => {
                        self.out.extend(told);
                        None
                    }
                    Ok(table) if table.rows.is_empty() => {
                        let mistake = Mistake::at(at, "empty-table", "the table has no rows");
                        let help = if table.text.contains('\r') {
                            "its lines end with a carriage return alone: save it with line feeds"
                        } else {
                            "each row makes a case; the first line of CSV names the columns"
                        };
                        self.say(vec![mistake.help(help)]);
                        None
                    }
                    Ok(table) => Some(Arc::new(table)),
                }
            }
        };
        self.read.insert(shown_file, found.clone());
        found
    }

    fn rows(&mut self, used: Used) -> Option<()> {
        let (number, before) = (self.tables.used.len(), self.tables.rows.len());
        let schema = schema::of::<Case>();
        let root = At::ROOT;
        let cases = root.key("cases");
        let first = self.tables.first + before;
        let size = self.around.size;
        let made = used.table.rows.par_iter().enumerate().map(|(index, row)| {
            let room = Bound::ScenariosSize.most().saturating_sub(size.load(Ordering::Relaxed));
            if room == 0 {
                return Made::TooMuch;
            }
            let (made, bytes) = used.case(row, &schema, cases.index(first + index), room);
            size.fetch_add(bytes, Ordering::Relaxed);
            if bytes > room { Made::TooMuch } else { made }
        });
        let made: Vec<Made> = made.collect();
        let (mut wrong, mut mistakes) = (Vec::new(), Vec::new());
        for (row, made) in made.into_iter().enumerate() {
            self.tables.rows.push((number, row));
            match made {
                Made::Case(case) => {
                    self.cases.push(*case);
                    self.kept.push(first + row);
                }
                Made::Mistakes(found) => mistakes.extend(found),
                Made::WrongCells(cells) => {
                    let of_row =
                        |(column, message, template)| WrongCell { used: number, row, column, message, template };
                    wrong.extend(cells.into_iter().map(of_row));
                }
                Made::TooMuch => {
                    let message =
                        format!("the cases that tables make are larger than {} together", Bound::ScenariosSize.shown());
                    let told = Diagnostic::error("too-large", self.around.file, message);
                    self.out.push(told.with_help(Bound::ScenariosSize.advice()));
                    return None;
                }
            }
        }
        self.tables.used.push(used);
        let wrong_cells = wrong.len();
        wrong.truncate(Bound::Mistakes.most_in_memory());
        let wrong = wrong.iter().map(|cell| self.tables.wrong_cell(cell, self.around.file)).collect();
        self.out.extend(capped(wrong, wrong_cells));
        let (_, told) = self.tables.diagnose(mistakes, self.around.file, self.around.text);
        self.out.extend(told);
        Some(())
    }

    /// Adds a note on columns that no case uses.
    fn unused_columns(&mut self) {
        for table in self.read.values().flatten() {
            let used = self.columns.get(&table.file);
            let unused = table
                .columns
                .iter()
                .enumerate()
                .filter(|(index, column)| !column.name.is_empty() && used.is_none_or(|used| !used.contains(index)));
            let unused: Vec<_> = unused.map(|(_, column)| column).collect();
            let Some(first) = unused.first() else { continue };
            let message = format!(
                "no case uses the column{} {}",
                if unused.len() == 1 { "" } else { "s" },
                listed(unused.iter().map(|column| format!("`{}`", column.name)), SHOWN)
            );
            let note = Diagnostic::note("unused-column", &table.file, message);
            self.out.push(note.at(&table.text, table.place(&first.at)));
        }
    }
}

/// Largest number of columns that a note names.
const SHOWN: usize = 8;

/// The columns with several values per cell, with their separators.
fn lists(table: &Table, named: &CaseTable, at: At<'_>) -> (BTreeMap<usize, String>, Vec<Mistake>) {
    let (mut lists, mut mistakes) = (BTreeMap::new(), Vec::new());
    for (name, separator) in &named.lists {
        match table.column(name) {
            None => {
                let message = format!("{} has no column `{name}`", table.file);
                let known = table.names();
                let mistake = Mistake::at(at.key(name), "unknown-column", message).on_key();
                mistakes.push(mistake.label(did_you_mean(name, known)));
            }
            Some(_) if separator.is_empty() => {
                let mistake = Mistake::at(at.key(name), "empty-text", "no text separates two values");
                mistakes.push(mistake.label("write `;`, or another text that no value holds"));
            }
            Some(column) => {
                lists.insert(column, separator.clone());
            }
        }
    }
    (lists, mistakes)
}

/// Result of expanding one row.
enum Made {
    Case(Box<Case>),
    Mistakes(Vec<Mistake>),
    /// Column, message, and the place in the template that uses the cell.
    WrongCells(Vec<(usize, &'static str, Place)>),
    TooMuch,
}

impl Used {
    /// The case of one row, and its size.
    fn case(&self, row: &TableRow, schema: &Value, at: At<'_>, room: u64) -> (Made, u64) {
        let mut filling = Filling::new(row, &self.lists, Places::None).of_at_most(room);
        let filled = filling.case(&self.template);
        if filling.size > room {
            return (Made::TooMuch, filling.size);
        }
        if !filling.misfits.is_empty() {
            let wrong = filling.misfits.iter().map(|misfit| (misfit.column, misfit.message, misfit.template));
            return (Made::WrongCells(wrong.collect()), filling.size);
        }
        let name = self.template.get("case");
        let Some(filled) = filled.filter(|filled| name.is_none() || filled.get("case").is_some()) else {
            let column = name.and_then(|name| match name.kind {
                ValueKind::Cell(column) => Some((column, name.place)),
                _ => None,
            });
            let gap = filling.gaps.first().map(|gap| (gap.column, self.template.place));
            let (column, place) = column.or(gap).unwrap_or((0, self.template.place));
            return (
                Made::WrongCells(vec![(column, "the cell is empty, and a case needs its name", place)]),
                filling.size,
            );
        };
        let walked = shape::walk_filled(&filled, schema, at);
        if !walked.mistakes.is_empty() {
            return (Made::Mistakes(walked.mistakes), filling.size);
        }
        let made = match serde_json::from_value(walked.value) {
            Ok(case) => Made::Case(Box::new(case)),
            Err(error) => Made::Mistakes(vec![Mistake::at(at, "wrong-type", error.to_string())]),
        };
        (made, filling.size)
    }
}

//! Locates a mistake in a case made from a table.
//!
//! Cases from tables have indices after those of the file's own list, so checks name them like any other. Only for a
//! mistake is the row filled in again, with places: those of cells, and those of the template, where a mistake common
//! to every row is reported once.

use super::fill::{Filling, NOWHERE, Places, column_of};
use super::template::TemplateValue;
use super::{Table, TableRow};
use crate::platform::bounds::Bound;
use crate::platform::yaml::Focus;
use crate::scenario::diagnostic::{Diagnostic, Mistake, Place, Severity, Step};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The tables of one scenario, and the row of each case.
#[derive(Default)]
pub(in crate::scenario) struct Tables {
    pub(super) used: Vec<Used>,
    /// Number of entries in the file's own list of cases.
    pub(super) first: usize,
    /// Table and row of each later case.
    pub(super) rows: Vec<(usize, usize)>,
}

/// A table in the case that names it.
pub(super) struct Used {
    pub(super) table: Arc<Table>,
    pub(super) template: TemplateValue,
    pub(super) lists: BTreeMap<usize, String>,
}

/// A mistake in a cell itself.
pub(super) struct WrongCell {
    pub(super) used: usize,
    pub(super) row: usize,
    pub(super) column: usize,
    pub(super) message: &'static str,
    /// Place in the template that uses it.
    pub(super) template: Place,
}

/// Lines of a text, counted once for places in ascending order.
struct Lines<'t> {
    text: &'t str,
    at: usize,
    line: u32,
}

impl Lines<'_> {
    fn line_of(&mut self, at: usize) -> u32 {
        self.line += self.text.get(self.at..at).unwrap_or_default().matches('\n').count() as u32;
        self.at = at.max(self.at);
        self.line
    }
}

impl Tables {
    /// Files of the tables, relative to the project's folder.
    pub(in crate::scenario) fn files(&self) -> BTreeSet<String> {
        self.used.iter().map(|used| used.table.file.clone()).collect()
    }

    fn of(&self, index: usize) -> Option<(&Used, &TableRow)> {
        let (used, row) = self.rows.get(index.checked_sub(self.first)?)?;
        let used = self.used.get(*used)?;
        Some((used, used.table.rows.get(*row)?))
    }

    /// Table and line of the cases with these indices; `None` for one in the scenario file.
    pub(in crate::scenario) fn places(&self, indices: &[usize]) -> Vec<Option<(String, u32)>> {
        let mut lines: Vec<Lines<'_>> =
            self.used.iter().map(|used| Lines { text: &used.table.text, at: 0, line: 1 }).collect();
        let place = |index: &usize| {
            let (number, row) = self.rows.get(index.checked_sub(self.first)?)?;
            let table = &self.used.get(*number)?.table;
            let line = lines.get_mut(*number)?.line_of(table.rows.get(*row)?.at.start);
            Some((table.file.clone(), line))
        };
        indices.iter().map(place).collect()
    }

    pub(super) fn wrong_cell(&self, wrong: &WrongCell, file: &str) -> Diagnostic {
        let Some(used) = self.used.get(wrong.used) else { return Diagnostic::error("bad-cell", file, wrong.message) };
        let table = &used.table;
        let row = table.rows.get(wrong.row);
        let at = row.map_or(&(0..0), |row| row.cell(wrong.column).map_or(&row.at, |cell| &cell.at));
        let name = table.columns.get(wrong.column).map_or("", |column| column.name.as_str());
        let diagnostic = Diagnostic {
            label: Some(format!("the column `{name}`")),
            ..Diagnostic::error("bad-cell", &table.file, wrong.message)
        };
        diagnostic.at(&table.text, table.place(at)).with_help(used_at(file, wrong.template))
    }

    /// Takes the mistakes of cases from tables out of `mistakes` and locates them; returns the others.
    pub(in crate::scenario) fn diagnose(
        &self,
        mistakes: Vec<Mistake>,
        file: &str,
        text: &str,
    ) -> (Vec<Mistake>, Vec<Diagnostic>) {
        let (mut others, mut first, mut further) = (Vec::new(), Vec::new(), Vec::new());
        // One of each kind comes first, so that many of one kind hide no other.
        let mut kinds = BTreeSet::new();
        for mistake in mistakes {
            let of_row = match mistake.path.as_slice() {
                [Step::Key(key), Step::Index(index), rest @ ..] if key == "cases" && self.of(*index).is_some() => {
                    Some((*index, rest.to_vec()))
                }
                _ => None,
            };
            match of_row {
                None => others.push(mistake),
                Some((index, path)) if kinds.insert((mistake.told.code, path.clone())) => {
                    first.push((mistake, index, path));
                }
                Some((index, path)) => further.push((mistake, index, path)),
            }
        }
        let mut told = Vec::new();
        // A mistake in a constant of the template appears in each row, and is reported once.
        let mut once = BTreeSet::new();
        let mut more: BTreeMap<&str, (usize, Diagnostic)> = BTreeMap::new();
        let most = Bound::Mistakes.most_in_memory();
        for (mistake, index, path) in first.into_iter().chain(further) {
            let Some((used, row)) = self.of(index) else { continue };
            let same = (mistake.told.code, mistake.told.message.clone(), mistake.told.label.clone(), path.clone());
            if once.contains(&same) {
                continue;
            }
            if let Some((count, _)) = more.get_mut(used.table.file.as_str()) {
                *count += 1;
                continue;
            }
            let (diagnostic, is_constant) = used.diagnose(mistake, row, &path, file, text);
            if is_constant {
                once.insert(same);
            }
            if told.len() >= most {
                more.insert(&used.table.file, (1, diagnostic));
            } else {
                told.push(diagnostic);
            }
        }
        for (count, first) in more.into_values() {
            let message = format!("{count} more mistakes from here on are not listed");
            let help = format!("correct these first; {}", Bound::Mistakes.advice());
            told.push(Diagnostic { code: "more-mistakes", message, label: None, help: vec![help], ..first });
        }
        (others, told)
    }
}

impl Used {
    /// Locates a mistake; also returns whether the place is in the template.
    fn diagnose(&self, mistake: Mistake, row: &TableRow, path: &[Step], file: &str, text: &str) -> (Diagnostic, bool) {
        let locate = |places: Places, focus: Focus| {
            let mut filling = Filling::new(row, &self.lists, places);
            let filled = filling.case(&self.template);
            (filled.map_or(NOWHERE, |filled| filled.locate(path, focus)), filling.gaps)
        };
        let (mut cell, gaps) = locate(Places::Table, mistake.focus);
        // In a case that expects nothing, the relevant place is the empty cell of its expectation.
        if let ("expects-nothing", Some(expect)) = (mistake.told.code, self.template.get("expect")) {
            let below = gaps.iter().find(|gap| gap.template >= expect.place);
            cell = below.map_or(cell, |gap| gap.place);
        }
        let (template, _) = locate(Places::Template, mistake.focus);
        let Some(column) = column_of(cell) else {
            return (one(mistake, template, file, text), true);
        };
        let place = self.table.place(row.cell(column).map_or(&row.at, |cell| &cell.at));
        let empty = gaps.iter().find(|gap| gap.place == cell);
        let empty = empty.and_then(|gap| self.table.columns.get(gap.column));
        let is_error = mistake.told.severity == Severity::Error;
        let mut told = one(mistake, place, &self.table.file, &self.table.text);
        if let Some(column) = empty.filter(|_| is_error) {
            told =
                told.with_help(format!("`{}` is empty in this row, which leaves out what it would fill", column.name));
        }
        (told.with_help(used_at(file, template)), false)
    }
}

fn one(mut mistake: Mistake, place: Place, file: &str, text: &str) -> Diagnostic {
    mistake.told.place = Some(place);
    mistake.diagnose(file, text, None)
}

fn used_at(file: &str, place: Place) -> String {
    format!("it goes into the case at {file}:{}:{}", place.line, place.column)
}

/// Limits the list, with a line about the omitted ones of `all`.
pub(super) fn capped(mut told: Vec<Diagnostic>, all: usize) -> Vec<Diagnostic> {
    let more = all.saturating_sub(told.len());
    if let Some(last) = told.last().filter(|_| more > 0) {
        let message = format!("{more} more mistakes from here on are not listed");
        let rest = Diagnostic { code: "more-mistakes", message, label: None, help: Vec::new(), ..last.clone() };
        told.push(rest.with_help(format!("correct these first; {}", Bound::Mistakes.advice())));
    }
    told
}

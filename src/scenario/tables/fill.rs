//! Fills one row into a template: the same document with cells in place of columns.
//!
//! An empty cell removes a value that consists of it alone: its key, or its entry in a list, and every list and map
//! left empty by that. Below `expect`, a list entry that loses a key is removed as a whole, so that no condition
//! becomes a different one: of `never: {tool: a, arguments: {x: {equals: "{{ x }}"}}}` nothing remains if `x` is
//! empty.

use super::template::{TemplateValue, TextPart, ValueKind};
use super::{CellValue, TableRow};
use crate::platform::yaml::{Kind, Node, Place, Style};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// No place: for values of the template that are not in the table.
pub(super) const NOWHERE: Place = Place { line: 0, column: 0, length: 0 };

/// Kind of places in the filled document.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Places {
    None,
    /// Places of cells in the table, as [`of_column`]; a list or map that lost a value has the place of the empty
    /// cell.
    Table,
    /// Places in the template.
    Template,
}

/// A placeholder for the place of a cell in the row. Finding the true place scans the whole text, and is done only
/// for a cell with a mistake.
fn of_column(column: usize) -> Place {
    Place { line: u32::try_from(column).unwrap_or(u32::MAX).saturating_add(1), column: 0, length: 0 }
}

/// The column of a placeholder place.
pub(super) fn column_of(place: Place) -> Option<usize> {
    place.line.checked_sub(1).map(|column| column as usize)
}

/// An empty cell and its effect.
pub(super) struct Gap {
    pub(super) column: usize,
    /// Its placeholder place.
    pub(super) place: Place,
    /// Place in the template of the removed value.
    pub(super) template: Place,
}

/// A cell that cannot be part of a text.
pub(super) struct Misfit {
    pub(super) column: usize,
    pub(super) message: &'static str,
    /// Place of the text in the template.
    pub(super) template: Place,
}

/// State of filling one row into one template.
pub(super) struct Filling<'r> {
    row: &'r TableRow,
    /// Separators of the columns with several values per cell.
    lists: &'r BTreeMap<usize, String>,
    places: Places,
    pub(super) gaps: Vec<Gap>,
    pub(super) misfits: Vec<Misfit>,
    /// Bytes of texts, plus one per value.
    pub(super) size: u64,
    /// Size limit for filling.
    most: u64,
}

/// Position of a value in a case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// Not below `expect`.
    Case,
    /// Below `expect`, outside lists.
    Expect,
    /// In a list entry below `expect`.
    Entry,
}

/// Signals that the list entry around a value is removed as a whole.
struct EntryGoes;

impl<'r> Filling<'r> {
    pub(super) fn new(row: &'r TableRow, lists: &'r BTreeMap<usize, String>, places: Places) -> Self {
        Self { row, lists, places, gaps: Vec::new(), misfits: Vec::new(), size: 0, most: u64::MAX }
    }

    /// Sets the size at which filling stops.
    pub(super) fn of_at_most(mut self, most: u64) -> Self {
        self.most = most;
        self
    }

    /// The filled case; `None` if every cell that it uses is empty and nothing else remains.
    pub(super) fn case(&mut self, template: &'r TemplateValue) -> Option<Node<'r>> {
        self.part(template, Inside::Case).unwrap_or_default()
    }

    fn part(&mut self, part: &'r TemplateValue, inside: Inside) -> Result<Option<Node<'r>>, EntryGoes> {
        self.size += 1;
        match &part.kind {
            ValueKind::Constant(text, plain) => {
                self.size += text.len() as u64;
                let style = if *plain { Style::Plain } else { Style::Quoted };
                Ok(Some(Node::new(self.of_template(part.place), Kind::Scalar(Cow::Borrowed(text), style))))
            }
            ValueKind::Cell(column) => Ok(self.cell(*column, part.place)),
            ValueKind::Text(pieces) => Ok(Some(self.text(pieces, part.place))),
            ValueKind::List(items) => self.list(items, part.place, inside),
            ValueKind::Map(pairs) => self.map(pairs, part.place, inside),
        }
    }

    fn list(
        &mut self,
        items: &'r [TemplateValue],
        place: Place,
        inside: Inside,
    ) -> Result<Option<Node<'r>>, EntryGoes> {
        let first_gap = self.gaps.len();
        let mut filled = Vec::new();
        for item in items {
            if let ValueKind::Cell(column) = item.kind {
                match self.cell(column, item.place).map(Node::into_items) {
                    Some(Ok(values)) => filled.extend(values),
                    Some(Err(value)) => filled.push(value),
                    None => {}
                }
                continue;
            }
            let found = match inside {
                Inside::Case => self.part(item, Inside::Case)?,
                Inside::Expect => self.part(item, Inside::Entry).unwrap_or_default(),
                Inside::Entry => self.part(item, Inside::Entry)?,
            };
            filled.extend(found);
        }
        let gone = filled.is_empty() && !items.is_empty();
        let place = self.container(place, first_gap);
        Ok((!gone).then(|| Node::new(place, Kind::List(filled))))
    }

    fn map(
        &mut self,
        pairs: &'r [(String, Place, TemplateValue)],
        place: Place,
        inside: Inside,
    ) -> Result<Option<Node<'r>>, EntryGoes> {
        let first_gap = self.gaps.len();
        let mut filled = Vec::new();
        for (key, key_place, value) in pairs {
            self.size += key.len() as u64;
            let below = if inside == Inside::Case && key == "expect" { Inside::Expect } else { inside };
            let Some(node) = self.part(value, below)? else {
                if inside == Inside::Entry {
                    return Err(EntryGoes);
                }
                continue;
            };
            let key = Node::new(self.of_template(*key_place), Kind::Scalar(Cow::Borrowed(key), Style::Quoted));
            filled.push((key, node));
        }
        let gone = filled.is_empty() && !pairs.is_empty();
        let place = self.container(place, first_gap);
        Ok((!gone).then(|| Node::new(place, Kind::Map(filled))))
    }

    fn of_template(&self, place: Place) -> Place {
        if self.places == Places::Template { place } else { NOWHERE }
    }

    fn container(&self, place: Place, first_gap: usize) -> Place {
        match (self.places, self.gaps.get(first_gap)) {
            (Places::Table, Some(gap)) => gap.place,
            _ => self.of_template(place),
        }
    }

    /// The place of a cell.
    fn place(&self, column: usize, template: Place) -> Place {
        match self.places {
            Places::None => NOWHERE,
            Places::Table => of_column(column),
            Places::Template => template,
        }
    }

    /// A single cell with its type; `None` if it is empty.
    fn cell(&mut self, column: usize, template: Place) -> Option<Node<'r>> {
        let cell = self.row.cell(column);
        self.size += cell.map_or(0, |cell| cell.at.len()) as u64;
        if self.size > self.most {
            return None;
        }
        let place = self.place(column, template);
        let node = match (cell.map(|cell| &cell.value), self.lists.get(&column)) {
            (None | Some(CellValue::Empty), _) => None,
            (Some(CellValue::Word(text) | CellValue::Json(Value::String(text))), Some(separator)) => {
                let values = text.split(separator.as_str()).map(str::trim).filter(|value| !value.is_empty());
                let values: Vec<Node<'r>> = values.map(|value| quoted(value, place)).collect();
                (!values.is_empty()).then(|| Node::new(place, Kind::List(values)))
            }
            (Some(CellValue::Word(text)), None) => {
                let plain = Node::new(place, Kind::Scalar(Cow::Borrowed(text), Style::Plain));
                // `null` and `~` are words here: only an empty cell means no value.
                Some(if plain.is_null() { quoted(text, place) } else { plain })
            }
            (Some(CellValue::Json(value)), _) => Some(Node::of_json(value, place)),
        };
        if node.is_none() {
            self.gaps.push(Gap { column, place, template });
        }
        node
    }

    fn text(&mut self, pieces: &'r [TextPart], template: Place) -> Node<'r> {
        let mut text = String::new();
        let mut first = None;
        for piece in pieces {
            let column = match piece {
                TextPart::Words(words) => {
                    text.push_str(words);
                    continue;
                }
                TextPart::Cell(column) => *column,
            };
            first.get_or_insert(column);
            self.size += self.row.cell(column).map_or(0, |cell| cell.at.len()) as u64;
            if self.size > self.most {
                break;
            }
            let message = match self.row.cell(column).map(|cell| &cell.value) {
                None | Some(CellValue::Empty) => "the cell is empty, and the text around it needs it",
                Some(CellValue::Json(Value::Array(_) | Value::Object(_))) => "a list or a map cannot be part of a text",
                Some(CellValue::Word(word) | CellValue::Json(Value::String(word))) => {
                    text.push_str(word);
                    continue;
                }
                Some(CellValue::Json(value)) => {
                    text.push_str(&value.to_string());
                    continue;
                }
            };
            self.misfits.push(Misfit { column, message, template });
        }
        self.size += pieces.iter().map(TextPart::size).sum::<u64>();
        let place = first.map_or_else(|| self.of_template(template), |column| self.place(column, template));
        Node::new(place, Kind::Scalar(Cow::Owned(text), Style::Quoted))
    }
}

fn quoted(text: &str, place: Place) -> Node<'_> {
    Node::new(place, Kind::Scalar(Cow::Borrowed(text), Style::Quoted))
}

//! A case with `{{ column }}` in its texts, parsed once for all rows of its table.
//!
//! The braces are those of prompts (`{{ name }}`), because single ones occur in many questions and in every JSON
//! text. There are no conditions and no filters. Keys hold no columns.

use super::Table;
use crate::platform::bounds::Bound;
use crate::platform::placeholders::{Piece, VALUE, has_value, pieces};
use crate::platform::yaml::{Kind, Node, Place, Style};
use crate::scenario::diagnostic::{At, Mistake, did_you_mean};
use std::collections::BTreeSet;

pub(super) struct TemplateValue {
    pub(super) place: Place,
    pub(super) kind: ValueKind,
}

pub(super) enum ValueKind {
    /// A text, number or boolean without a column; the flag says whether it was written without quotes.
    Constant(String, bool),
    /// One column and nothing else: its cell, of any type.
    Cell(usize),
    /// Text with columns in it.
    Text(Vec<TextPart>),
    List(Vec<TemplateValue>),
    Map(Vec<(String, Place, TemplateValue)>),
}

pub(super) enum TextPart {
    Words(String),
    Cell(usize),
}

impl TextPart {
    /// Size of the text in bytes.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Words(words) => words.len() as u64,
            Self::Cell(_) => 0,
        }
    }
}

/// State and result of reading a template.
pub(super) struct Reading<'t> {
    pub(super) table: &'t Table,
    /// The columns that it uses.
    pub(super) used: BTreeSet<usize>,
    pub(super) mistakes: Vec<Mistake>,
    /// Remaining size in bytes: content shared by anchors counts at each use.
    pub(super) room: u64,
}

impl<'t> Reading<'t> {
    pub(super) fn of(table: &'t Table) -> Self {
        Self { table, used: BTreeSet::new(), mistakes: Vec::new(), room: Bound::ScenarioSize.most() }
    }

    /// Reads the case at `at`, without its key `without`.
    pub(super) fn case(&mut self, node: &Node<'_>, without: &str, at: At<'_>) -> TemplateValue {
        let mut part = self.part(node, at);
        if let ValueKind::Map(pairs) = &mut part.kind {
            pairs.retain(|(key, ..)| key != without);
        }
        part
    }

    fn part(&mut self, node: &Node<'_>, at: At<'_>) -> TemplateValue {
        let size = node.written().map_or(0, str::len) as u64 + 1;
        if self.room < size {
            if self.room > 0 {
                self.room = 0;
                let message = format!("the case is larger than {}", Bound::ScenarioSize.shown());
                self.mistakes.push(Mistake::at(at, "too-large", message).help(Bound::ScenarioSize.advice()));
            }
            return TemplateValue { place: node.place, kind: ValueKind::List(Vec::new()) };
        }
        self.room -= size;
        let kind = match node.kind() {
            Kind::Scalar(text, style) if !has_value(text) => {
                ValueKind::Constant(text.clone().into_owned(), *style == Style::Plain)
            }
            Kind::Scalar(text, _) => self.text(text, at),
            Kind::List(items) => ValueKind::List(
                items.iter().enumerate().map(|(index, item)| self.part(item, at.index(index))).collect(),
            ),
            Kind::Map(_) => ValueKind::Map(self.pairs(node, at)),
            Kind::Shared(_) | Kind::Skipped => ValueKind::Constant(String::new(), true),
        };
        TemplateValue { place: node.place, kind }
    }

    fn pairs(&mut self, node: &Node<'_>, at: At<'_>) -> Vec<(String, Place, TemplateValue)> {
        let mut seen = BTreeSet::new();
        let mut pairs = Vec::new();
        for (key, value) in node.entries() {
            let Some(name) = key.written() else { continue };
            if !seen.insert(name) {
                continue;
            }
            if has_value(name) {
                let mistake = Mistake::at(at.key(name), "column-in-key", "a key holds no column").on_key();
                self.mistakes.push(mistake.label("columns belong in values"));
            }
            pairs.push((name.to_owned(), key.place, self.part(value, at.key(name))));
        }
        pairs
    }

    fn text(&mut self, text: &str, at: At<'_>) -> ValueKind {
        let mut filled = Vec::new();
        // Places in messages are counted in characters.
        let place = |at: usize| text[..at].chars().count();
        for piece in pieces(text, &[VALUE]) {
            let placeholder = match piece {
                Piece::Text(words) => {
                    filled.push(TextPart::Words(words.to_owned()));
                    continue;
                }
                Piece::Open { signs: (open, close), at: place_of } => {
                    let mistake = Mistake::at(at, "bad-column", format!("`{open}` without `{close}`"));
                    self.mistakes.push(mistake.within(place(place_of), open.len()).help(
                        "a text that has these braces itself comes from a cell: nothing in a cell is filled in again",
                    ));
                    return ValueKind::Text(filled);
                }
                Piece::Placeholder(placeholder) => placeholder,
            };
            let name = placeholder.inside.trim();
            if let Some(column) = self.table.column(name) {
                self.used.insert(column);
                filled.push(TextPart::Cell(column));
                continue;
            }
            if self.mistakes.len() > Bound::Mistakes.most_in_memory() {
                continue;
            }
            let shown: String = name.chars().take(60).collect();
            let message = format!("{} has no column `{shown}`", self.table.file);
            let label = did_you_mean(&shown, self.table.names());
            let (start, length) = (place(placeholder.at), placeholder.written.chars().count());
            self.mistakes.push(Mistake::at(at, "unknown-column", message).label(label).within(start, length));
        }
        match filled.as_slice() {
            [TextPart::Cell(column)] => ValueKind::Cell(*column),
            _ => ValueKind::Text(filled),
        }
    }
}

impl TemplateValue {
    /// Whether it contains a cell.
    pub(super) fn varies(&self) -> bool {
        match &self.kind {
            ValueKind::Constant(..) => false,
            ValueKind::Cell(_) => true,
            ValueKind::Text(pieces) => pieces.iter().any(|piece| matches!(piece, TextPart::Cell(_))),
            ValueKind::List(items) => items.iter().any(Self::varies),
            ValueKind::Map(pairs) => pairs.iter().any(|(_, _, value)| value.varies()),
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let ValueKind::Map(pairs) = &self.kind else { return None };
        pairs.iter().find(|(name, ..)| name == key).map(|(_, _, value)| value)
    }
}

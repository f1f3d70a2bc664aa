//! A YAML document as a tree with positions, read only when there is a mistake to point at.
//!
//! Aliases are shared nodes and never expanded; a tree deeper than [`DEPTH`] is refused. `<<` is kept as a key and
//! looked through by [`get`] and [`entries`].

use super::diagnostic::{Focus, Place, Step};
use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, Span};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Levels of nesting that are read.
pub(super) const DEPTH: usize = 64;

/// One value with its place.
#[derive(Debug)]
pub(super) struct Node {
    /// Where it stands.
    pub place: Place,
    /// Characters of quotation before its text.
    quote: u32,
    /// What it is.
    pub kind: Kind,
}

/// What a node is.
#[derive(Debug)]
pub(super) enum Kind {
    /// A scalar; `plain` when written without quotes.
    Scalar {
        /// Its text.
        text: String,
        /// Without quotes or block style.
        plain: bool,
    },
    /// A list.
    Sequence(Vec<Rc<Node>>),
    /// A map, in the order written, repeated keys included.
    Mapping(Vec<(Rc<Node>, Rc<Node>)>),
}

impl Node {
    /// Its text, when it is a scalar.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }
}

enum Open {
    Sequence(Place, usize, Vec<Rc<Node>>),
    Mapping(Place, usize, Vec<(Rc<Node>, Rc<Node>)>, Option<Rc<Node>>),
}

/// Reads the first document of `text`; the message of an error is for people.
pub(super) fn parse(text: &str) -> Result<Rc<Node>, String> {
    let mut open: Vec<Open> = Vec::new();
    let mut anchors: BTreeMap<usize, Rc<Node>> = BTreeMap::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| error.info())?;
        let (anchor, done) = match event {
            Event::Scalar(value, style, anchor, _) => (anchor, scalar(value.into_owned(), style, &span)),
            Event::Alias(anchor) => match anchors.get(&anchor) {
                Some(node) => (0, Rc::clone(node)),
                None => return Err("an alias stands inside its own anchor".into()),
            },
            Event::SequenceStart(_, anchor, _) => {
                open.push(Open::Sequence(place(&span, 1), anchor, Vec::new()));
                if open.len() > DEPTH {
                    return Err(format!("nested deeper than {DEPTH} levels"));
                }
                continue;
            }
            Event::MappingStart(_, anchor, _) => {
                open.push(Open::Mapping(place(&span, 1), anchor, Vec::new(), None));
                if open.len() > DEPTH {
                    return Err(format!("nested deeper than {DEPTH} levels"));
                }
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::Sequence(place, anchor, items)) => {
                    (anchor, Rc::new(Node { place, quote: 0, kind: Kind::Sequence(items) }))
                }
                Some(Open::Mapping(start, anchor, pairs, _)) => {
                    let place = pairs.first().map_or(start, |(key, _)| key.place);
                    (anchor, Rc::new(Node { place, quote: 0, kind: Kind::Mapping(pairs) }))
                }
                None => return Err("the document ends something that it never began".into()),
            },
            _ => continue,
        };
        if anchor != 0 {
            anchors.insert(anchor, Rc::clone(&done));
        }
        match open.last_mut() {
            None => return Ok(done),
            Some(Open::Sequence(_, _, items)) => items.push(done),
            Some(Open::Mapping(_, _, pairs, key)) => match key.take() {
                None => *key = Some(done),
                Some(key) => pairs.push((key, done)),
            },
        }
    }
    Err("the file is empty".into())
}

fn place(span: &Span, length: usize) -> Place {
    Place { line: span.start.line() as u32, column: span.start.col() as u32 + 1, length: length as u32 }
}

fn scalar(text: String, style: ScalarStyle, span: &Span) -> Rc<Node> {
    let one_line = span.end.line() == span.start.line();
    let length = if one_line { span.end.col().saturating_sub(span.start.col()).max(1) } else { usize::from(u16::MAX) };
    let quote = u32::from(matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted));
    Rc::new(Node {
        place: place(span, length),
        quote,
        kind: Kind::Scalar { text, plain: matches!(style, ScalarStyle::Plain) },
    })
}

/// All pairs of a map, with those of `<<` behind its own.
pub(super) fn entries(node: &Node) -> Vec<(&Node, &Node)> {
    let mut found = Vec::new();
    collect(node, &mut found, 0);
    found
}

fn collect<'a>(node: &'a Node, found: &mut Vec<(&'a Node, &'a Node)>, depth: usize) {
    let Kind::Mapping(pairs) = &node.kind else { return };
    let own = |(key, _): &&(Rc<Node>, Rc<Node>)| key.text() != Some("<<");
    found.extend(pairs.iter().filter(own).map(|(key, value)| (&**key, &**value)));
    if depth > 4 {
        return;
    }
    for (_, merged) in pairs.iter().filter(|(key, _)| key.text() == Some("<<")) {
        match &merged.kind {
            Kind::Sequence(maps) => maps.iter().for_each(|map| collect(map, found, depth + 1)),
            _ => collect(merged, found, depth + 1),
        }
    }
}

/// A map's value by key, and the key itself.
pub(super) fn get<'a>(node: &'a Node, key: &str) -> Option<(&'a Node, &'a Node)> {
    entries(node).into_iter().find(|(name, _)| name.text() == Some(key))
}

/// The place that a path names, or that of the last step that exists.
pub(super) fn locate(root: &Node, path: &[Step], focus: Focus) -> Place {
    let (mut here, mut key) = (root, root);
    for step in path {
        let next = match (step, &here.kind) {
            (Step::Key(name), Kind::Mapping(_)) => get(here, name),
            (Step::Index(index), Kind::Sequence(items)) => items.get(*index).map(|item| (&**item, &**item)),
            _ => None,
        };
        match next {
            Some((name, value)) => (key, here) = (name, value),
            None => return here.place,
        }
    }
    match focus {
        Focus::Key => key.place,
        Focus::Value => match &here.kind {
            Kind::Scalar { text, plain: true } if text.is_empty() => key.place,
            _ => here.place,
        },
        Focus::Within(start, length) => match &here.kind {
            Kind::Scalar { text, .. } if exact(here, text) => {
                let column = here.place.column + here.quote + start as u32;
                Place { column, length: length.max(1) as u32, ..here.place }
            }
            _ => here.place,
        },
    }
}

/// Whether the text stands in the file as it is: no escapes, one line.
fn exact(node: &Node, text: &str) -> bool {
    node.place.length == text.chars().count() as u32 + 2 * node.quote
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(keys: &[&str]) -> Vec<Step> {
        keys.iter().map(|key| key.parse().map_or_else(|_| Step::Key((*key).into()), Step::Index)).collect()
    }

    fn at(text: &str, keys: &[&str], focus: Focus) -> (u32, u32, u32) {
        let root = parse(text).expect("YAML");
        let place = locate(&root, &path(keys), focus);
        (place.line, place.column, place.length)
    }

    #[test]
    fn a_path_leads_to_line_column_and_length() {
        let text = "a:\n  - b: 'xy z'\n    c: [1, 22]\n";
        assert_eq!(at(text, &["a", "0", "b"], Focus::Value), (2, 8, 6));
        assert_eq!(at(text, &["a", "0", "b"], Focus::Within(3, 1)), (2, 12, 1));
        assert_eq!(at(text, &["a", "0", "c", "1"], Focus::Value), (3, 12, 2));
        assert_eq!(at(text, &["a", "0", "c"], Focus::Key), (3, 5, 1));
        assert_eq!(at(text, &["a", "0", "missing", "deep"], Focus::Value), (2, 5, 1));
    }

    #[test]
    fn merged_keys_are_found_where_they_are_written() {
        assert_eq!(at("x: &x {p: 1}\ny:\n  <<: *x\n  q: 2\n", &["y", "p"], Focus::Value), (1, 11, 1));
    }

    #[test]
    fn nesting_without_end_is_refused() {
        assert!(parse(&"[".repeat(80)).is_err());
    }

    #[test]
    fn characters_are_counted_and_not_bytes() {
        assert_eq!(at("ä: {ö: ü}", &["ä", "ö"], Focus::Value), (1, 8, 1));
    }
}

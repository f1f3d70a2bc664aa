//! Parses any YAML into [`Node`]s, for hand-written or edited files whose mistakes need positions.
//!
//! An anchor's value is shared with its aliases and not copied, but counts once for each of them, so that no document
//! is larger than about its written-out text.

use super::error::{Problem, ReadError};
use super::node::{Kind, Node, Style};
use super::place::Place;
use granit::{Event, Parser, ScalarStyle, Span};
use serde_saphyr::granit_parser as granit;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Maximum nesting depth.
const DEPTH: usize = 200;

/// An event of the parser with its position.
type Parsed<'t> = Result<(Event<'t>, Span), granit::ScanError>;

/// A list or map that has not ended.
struct Open {
    place: Place,
    anchor: usize,
    /// Number of nodes in it, including those of aliases.
    nodes: usize,
    kind: OpenKind,
}

enum OpenKind {
    List(Vec<Node<'static>>),
    Map(Vec<(Node<'static>, Node<'static>)>, Option<Node<'static>>),
}

/// Parses the first document of `text`.
///
/// # Errors
/// [`ReadError`] if it is not YAML, is empty, or is too deep or too large.
pub(crate) fn parse(text: &str) -> Result<Node<'static>, ReadError> {
    document(&mut Parser::new_from_str(text), text.len() + 1_000)
}

/// Parses `text`, which holds one document.
///
/// # Errors
/// As [`parse`], and if anything follows the document.
pub(crate) fn parse_only(text: &str) -> Result<Node<'static>, ReadError> {
    let mut parser = Parser::new_from_str(text);
    let node = document(&mut parser, text.len() + 1_000)?;
    for event in parser {
        let (event, span) = event.map_err(syntax)?;
        if matches!(event, Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..) | Event::Alias(_)) {
            return Err(ReadError { problem: Problem::SeveralDocuments, place: Some(begin(&span)) });
        }
    }
    Ok(node)
}

/// The next document, of at most `most` nodes.
fn document<'t>(parser: &mut impl Iterator<Item = Parsed<'t>>, most: usize) -> Result<Node<'static>, ReadError> {
    let mut open: Vec<Open> = Vec::new();
    let mut anchors: BTreeMap<usize, (Rc<Node<'static>>, usize)> = BTreeMap::new();
    for event in parser {
        let (event, span) = event.map_err(syntax)?;
        let (anchor, mut nodes, mut done) = match event {
            Event::Scalar(value, style, anchor, tag) => {
                let binary = tag.is_some_and(|tag| tag.suffix() == "binary");
                (anchor, 1, scalar(value.into_owned(), style, binary, &span))
            }
            Event::Alias(anchor) => {
                let Some((node, nodes)) = anchors.get(&anchor) else {
                    let problem = Problem::Syntax("an alias is inside its own anchor".into());
                    return Err(ReadError { problem, place: Some(begin(&span)) });
                };
                (0, *nodes, Node { place: node.place, kind: Kind::Shared(Rc::clone(node)) })
            }
            Event::SequenceStart(_, anchor, _) => {
                open.push(Open { place: begin(&span), anchor, nodes: 1, kind: OpenKind::List(Vec::new()) });
                if open.len() > DEPTH {
                    return Err(ReadError { problem: Problem::TooLarge, place: Some(begin(&span)) });
                }
                continue;
            }
            Event::MappingStart(_, anchor, _) => {
                open.push(Open { place: begin(&span), anchor, nodes: 1, kind: OpenKind::Map(Vec::new(), None) });
                if open.len() > DEPTH {
                    return Err(ReadError { problem: Problem::TooLarge, place: Some(begin(&span)) });
                }
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open { place, anchor, nodes, kind: OpenKind::List(items) }) => {
                    (anchor, nodes, Node { place, kind: Kind::List(items) })
                }
                Some(Open { place, anchor, nodes, kind: OpenKind::Map(pairs, _) }) => {
                    let place = pairs.first().map_or(place, |(key, _)| key.place);
                    (anchor, nodes, Node { place, kind: Kind::Map(pairs) })
                }
                None => continue,
            },
            _ => continue,
        };
        if anchor != 0 {
            let shared = Rc::new(done);
            done = Node { place: shared.place, kind: Kind::Shared(Rc::clone(&shared)) };
            anchors.insert(anchor, (shared, nodes));
        }
        let Some(outer) = open.last_mut() else { return Ok(done) };
        nodes = nodes.saturating_add(outer.nodes);
        if nodes > most {
            return Err(ReadError { problem: Problem::TooLarge, place: Some(done.place) });
        }
        outer.nodes = nodes;
        match &mut outer.kind {
            OpenKind::List(items) => items.push(done),
            OpenKind::Map(pairs, key) => match key.take() {
                None => *key = Some(done),
                Some(key) => pairs.push((key, done)),
            },
        }
    }
    Err(ReadError { problem: Problem::Empty, place: None })
}

fn syntax(error: granit::ScanError) -> ReadError {
    let (line, column) = (error.marker().line(), error.marker().col());
    ReadError { problem: Problem::Syntax(error.info()), place: Some(at(line, column, 1)) }
}

fn begin(span: &Span) -> Place {
    at(span.start.line(), span.start.col(), 1)
}

/// Position from a line counted from 1 and a column counted from 0.
fn at(line: usize, column: usize, length: usize) -> Place {
    Place { line: line.max(1) as u32, column: column as u32 + 1, length: length as u32 }
}

fn scalar(text: String, style: ScalarStyle, binary: bool, span: &Span) -> Node<'static> {
    let one_line = span.end.line() == span.start.line();
    let length = if one_line { span.end.col().saturating_sub(span.start.col()).max(1) } else { usize::from(u16::MAX) };
    let style = match style {
        _ if binary => Style::Binary,
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
        _ => Style::Block,
    };
    Node { place: at(span.start.line(), span.start.col(), length), kind: Kind::Scalar(Cow::Owned(text), style) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::yaml::alias_bomb;

    #[test]
    fn nesting_without_end_is_refused() {
        assert_eq!(parse(&"- ".repeat(300)).expect_err("too deep").problem, Problem::TooLarge);
    }

    #[test]
    fn bytes_are_told_from_text_and_a_second_document_is_refused_where_there_must_be_one() {
        let text = "a: !!binary aGk=\nb: !binary |-\n  aGk=\nc: aGk=\n";
        let node = parse_only(text).expect("YAML");
        let binary = ["a", "b", "c"].map(|key| node.get(key).and_then(Node::binary).map(str::trim));
        assert_eq!(binary, [Some("aGk="), Some("aGk="), None]);
        assert_eq!(node.get("a").and_then(Node::text), Some("aGk="));
        let error = parse_only(&format!("{text}---\nd: 1\n")).expect_err("a second document");
        assert_eq!((error.problem, error.place.map(|place| place.line)), (Problem::SeveralDocuments, Some(6)));
        assert!(matches!(
            parse_only("a: 1\n---\n[").expect_err("no YAML").problem,
            Problem::SeveralDocuments | Problem::Syntax(_)
        ));
    }

    #[test]
    fn aliases_that_multiply_are_refused_and_honest_ones_are_shared() {
        assert_eq!(parse(&alias_bomb()).expect_err("a bomb").problem, Problem::TooLarge);
        let node = parse("a: &a [1, 2]\nb: *a\n").expect("YAML");
        assert_eq!(node.to_value(), serde_json::json!({"a": [1, 2], "b": [1, 2]}));
        assert_eq!(node.get("b").and_then(Node::items).map(<[_]>::len), Some(2));
    }

    #[test]
    fn broken_yaml_is_an_error_with_line_and_column() {
        let error = parse("a: 1\nb: [1, 2\nc: }\n").expect_err("broken");
        assert!(matches!(error.problem, Problem::Syntax(_)), "{error:?}");
        assert!(error.place.is_some_and(|place| place.line >= 2), "{error:?}");
        assert_eq!(parse("# nothing\n").expect_err("empty").problem, Problem::Empty);
    }
}

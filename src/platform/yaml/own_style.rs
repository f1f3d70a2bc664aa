//! Fast parser for the writer's own style, in one pass, borrowing where possible.
//!
//! Replaying ten thousand lanes means reading some 200 MB, too much for a full YAML parser in the available time. This
//! parser never guesses: on anything that the writer would not print it gives up, and the caller uses the full parser.
//! Positions have no length here.

use super::node::{Kind, Node, Style};
use super::place::Place;
use memchr::{memchr, memchr2};
use std::borrow::Cow;

/// Indentation of the entries of an item in a list at the top level.
const ITEM: usize = 4;
/// Greatest indentation of a block; the writer's documents are not nested as deeply.
const DEEPEST: usize = 400;

/// Parses a document in the writer's style; entries named in `skip` become [`Kind::Skipped`] in the items of lists at the
/// top level, and nowhere else: what services and people name may have these names too.
///
/// `None` means that the style differs, never that the document is broken.
pub(crate) fn parse<'a>(text: &'a str, skip: &[&str]) -> Option<Node<'a>> {
    let mut lines = Lines { text, start: 0, end: 0, indent: 0, number: 0, done: false };
    lines.load(0);
    while !lines.done && lines.content().starts_with('#') && lines.indent == 0 {
        lines.next();
    }
    let mut reader = Reader { lines, skip };
    let node = reader.map(0)?;
    reader.lines.done.then_some(node)
}

/// A cursor over lines; `indent` counts the current line's leading spaces.
struct Lines<'a> {
    text: &'a str,
    start: usize,
    end: usize,
    indent: usize,
    number: u32,
    done: bool,
}

impl<'a> Lines<'a> {
    fn load(&mut self, start: usize) {
        self.done = start >= self.text.len();
        if self.done {
            return;
        }
        let rest = &self.text[start..];
        self.start = start;
        self.end = start + memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
        self.indent = rest.bytes().take_while(|byte| *byte == b' ').count();
        self.number += 1;
    }

    fn next(&mut self) {
        self.load(self.end + 1);
    }

    /// The current line after its indentation.
    fn content(&self) -> &'a str {
        if self.done { "" } else { &self.text[self.start + self.indent..self.end.max(self.start + self.indent)] }
    }

    fn is_blank(&self) -> bool {
        self.start + self.indent >= self.end
    }
}

struct Reader<'a, 's> {
    lines: Lines<'a>,
    skip: &'s [&'s str],
}

impl<'a> Reader<'a, '_> {
    /// Map of the entries at `indent`.
    fn map(&mut self, indent: usize) -> Option<Node<'a>> {
        if self.lines.done || self.lines.indent != indent {
            return None;
        }
        let line = self.lines.number;
        let entries = self.entries(indent, None)?;
        Some(at(indent, Kind::Map(entries), line))
    }

    /// Entries at `indent`; `first` is the part of the current line where the first entry begins, if it does not begin
    /// the line.
    fn entries(&mut self, indent: usize, first: Option<&'a str>) -> Option<Vec<(Node<'a>, Node<'a>)>> {
        let mut entries: Vec<(Node<'a>, Node<'a>)> = Vec::new();
        let mut pending = first;
        loop {
            let content = match pending.take() {
                Some(content) => content,
                None if self.lines.done || self.lines.indent < indent => break,
                None if self.lines.indent == indent && !self.lines.is_blank() => self.lines.content(),
                None => return None,
            };
            let (key, rest) = key(content)?;
            if entries.iter().any(|(known, _)| known.written() == Some(&key)) {
                return None;
            }
            let offset = indent + content.len() - rest.len();
            let key_line = self.lines.number;
            let node = if indent == ITEM && self.skip.contains(&key.as_ref()) {
                self.pass_over(indent);
                at(offset, Kind::Skipped, key_line)
            } else {
                self.value(rest, indent, offset)?
            };
            let style = if content.starts_with('"') { Style::Quoted } else { Style::Plain };
            entries.push((at(indent, Kind::Scalar(key, style), key_line), node));
        }
        (!entries.is_empty()).then_some(entries)
    }

    /// Skips the current entry of a map at `indent`, with everything below it.
    fn pass_over(&mut self, indent: usize) {
        self.lines.next();
        while !self.lines.done && (self.lines.indent > indent || self.lines.is_blank()) {
            self.lines.next();
        }
    }

    /// Value after `key:` or `-` in a block at `indent`; `rest` is the remainder of that line.
    fn value(&mut self, rest: &'a str, indent: usize, offset: usize) -> Option<Node<'a>> {
        let line = self.lines.number;
        if rest.is_empty() {
            self.lines.next();
            return self.block(indent + 2);
        }
        let text = rest.strip_prefix(' ')?;
        let kind = if text.starts_with('|') {
            self.lines.next();
            Kind::Scalar(Cow::Owned(self.literal(text, indent + 2)?), Style::Block)
        } else {
            let kind = inline(text, offset + 1, line)?;
            self.lines.next();
            kind
        };
        Some(at(offset + 1, kind, line))
    }

    fn block(&mut self, indent: usize) -> Option<Node<'a>> {
        if self.lines.done || self.lines.indent != indent || self.lines.is_blank() || indent > DEEPEST {
            return None;
        }
        let content = self.lines.content();
        if content == "-" || content.starts_with("- ") { self.list(indent) } else { self.map(indent) }
    }

    fn list(&mut self, indent: usize) -> Option<Node<'a>> {
        let line = self.lines.number;
        let mut items = Vec::new();
        while !self.lines.done && self.lines.indent == indent && !self.lines.is_blank() {
            let rest = self.lines.content().strip_prefix('-')?;
            let inner = rest.strip_prefix(' ').unwrap_or("");
            let item = if key(inner).is_some() {
                let line = self.lines.number;
                let entries = self.entries(indent + 2, Some(inner))?;
                at(indent + 2, Kind::Map(entries), line)
            } else {
                self.value(rest, indent, indent + 1)?
            };
            items.push(item);
        }
        if !self.lines.done && (self.lines.indent > indent || self.lines.is_blank()) {
            return None;
        }
        (!items.is_empty()).then(|| at(indent, Kind::List(items), line))
    }

    /// Literal block with its lines at `indent`; the current line is its first.
    fn literal(&mut self, header: &str, indent: usize) -> Option<String> {
        let (explicit, chomp) = match header {
            "|" => (false, '='),
            "|-" => (false, '-'),
            "|+" => (false, '+'),
            "|2" => (true, '='),
            "|2-" => (true, '-'),
            "|2+" => (true, '+'),
            _ => return None,
        };
        if self.lines.done || self.lines.is_blank() || (self.lines.indent > indent) != explicit {
            return None;
        }
        let mut text = String::new();
        while !self.lines.done {
            let length = self.lines.end - self.lines.start;
            if self.lines.indent >= indent && length > indent {
                text.push_str(&self.lines.text[self.lines.start + indent..self.lines.end]);
            } else if length > 0 {
                break;
            }
            text.push('\n');
            self.lines.next();
        }
        let body = text.trim_end_matches('\n').len();
        if body == 0 || text.contains('\r') {
            return None;
        }
        match chomp {
            '-' => text.truncate(body),
            '=' => text.truncate(body + 1),
            _ => {}
        }
        Some(text)
    }
}

fn at(offset: usize, kind: Kind<'_>, line: u32) -> Node<'_> {
    Node { place: Place { line, column: u32::try_from(offset + 1).unwrap_or(u32::MAX), length: 1 }, kind }
}

/// Splits off `key:`; the rest still has its leading space.
fn key(content: &str) -> Option<(Cow<'_, str>, &str)> {
    if content.starts_with('"') {
        let (key, rest) = double_quoted(content)?;
        return Some((key, rest.strip_prefix(':')?));
    }
    let length = content.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')).count();
    let (key, rest) = content.split_at(length);
    let rest = rest.strip_prefix(':')?;
    (key.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
        && (rest.is_empty() || rest.starts_with(' ')))
    .then_some((Cow::Borrowed(key), rest))
}

/// A value on one line, `offset` bytes into it.
fn inline(text: &str, offset: usize, line: u32) -> Option<Kind<'_>> {
    match text.as_bytes().first()? {
        b'"' => match double_quoted(text)? {
            (string, "") => Some(Kind::Scalar(string, Style::Quoted)),
            _ => None,
        },
        b'\'' => single_quoted(text).map(|text| Kind::Scalar(text, Style::Quoted)),
        b'[' => {
            let inner = text.strip_prefix('[')?.strip_suffix(']')?;
            if inner.is_empty() {
                return Some(Kind::List(Vec::new()));
            }
            let mut offset = offset + 1;
            let items = inner.split(", ").map(|item| {
                let node = at(offset, plain(item)?, line);
                offset += item.len() + 2;
                Some(node)
            });
            items.collect::<Option<Vec<_>>>().map(Kind::List)
        }
        b'{' => (text == "{}").then(|| Kind::Map(Vec::new())),
        _ => plain(text),
    }
}

fn plain(text: &str) -> Option<Kind<'_>> {
    // serde_json decides what is a number: YAML's octal, hexadecimal and underscored forms are not in our style.
    let is_number = || text.trim() == text && serde_json::from_str::<serde_json::Number>(text).is_ok();
    let ours = matches!(text, "null" | "true" | "false") || is_number();
    ours.then_some(Kind::Scalar(Cow::Borrowed(text), Style::Plain))
}

fn single_quoted(text: &str) -> Option<Cow<'_, str>> {
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
    if memchr(b'\'', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    let unescaped = inner.replace("''", "\u{0}");
    (!unescaped.contains('\'') && !inner.contains('\u{0}')).then(|| Cow::Owned(unescaped.replace('\u{0}', "'")))
}

fn hexadecimal(digits: &str) -> Option<u32> {
    let is_plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|_| is_plain)
}

/// The quoted string at the start of `text`, and the text after it.
fn double_quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let inner = text.strip_prefix('"')?;
    let stop = memchr2(b'"', b'\\', inner.as_bytes())?;
    if inner.as_bytes()[stop] == b'"' {
        return Some((Cow::Borrowed(&inner[..stop]), &inner[stop + 1..]));
    }
    let mut string = String::with_capacity(inner.len());
    let mut rest = inner;
    loop {
        let stop = memchr2(b'"', b'\\', rest.as_bytes())?;
        string.push_str(&rest[..stop]);
        if rest.as_bytes()[stop] == b'"' {
            return Some((Cow::Owned(string), &rest[stop + 1..]));
        }
        let escape = *rest.as_bytes().get(stop + 1)?;
        rest = &rest[stop + 1..];
        let digits = match escape {
            b'x' => 2,
            b'u' => 4,
            b'U' => 8,
            _ => 0,
        };
        string.push(match escape {
            b'"' => '"',
            b'\\' => '\\',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            _ if digits > 0 => char::from_u32(hexadecimal(rest.get(1..=digits)?)?)?,
            _ => return None,
        });
        rest = rest.get(1 + digits..)?;
    }
}

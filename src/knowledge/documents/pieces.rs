//! From lines under headings to passages: a section is cut between paragraphs where it is long.

use std::borrow::Cow;

/// Characters after which a section is cut at the next end of a paragraph.
const PASSAGE_LIMIT: usize = 900;

/// One line of a document's text, or a heading.
pub(super) enum DocumentPart<'a> {
    /// The words of a heading: a new section begins.
    Heading(Cow<'a, str>),
    /// Text; an empty line ends a paragraph.
    Line(Line<'a>),
}

/// One line of text.
pub(super) struct Line<'a> {
    /// Byte of the file at which it begins.
    pub offset: usize,
    /// Its page, from 1, if the format has pages.
    pub page: Option<u32>,
    pub text: Cow<'a, str>,
}

/// A passage without its id.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The id that the document itself gives it.
    pub id: Option<String>,
    pub title: String,
    pub section: String,
    pub text: String,
    pub offset: usize,
    pub page: Option<u32>,
}

/// The passages of a document of that title: sections in order, each in pieces of whole paragraphs that end as soon as
/// the next paragraph would pass the limit.
pub(super) fn cut<'a>(title: &str, parts: impl IntoIterator<Item = DocumentPart<'a>>) -> Vec<Piece> {
    let mut cutter = Cutter { title, section: String::new(), paragraph: None, pieces: Vec::new(), is_new: true };
    for part in parts {
        match part {
            DocumentPart::Heading(words) => {
                cutter.close();
                cutter.section = words.into_owned();
                cutter.is_new = true;
            }
            DocumentPart::Line(line) if line.text.trim().is_empty() => cutter.close(),
            DocumentPart::Line(line) => {
                let (_, _, text) = cutter.paragraph.get_or_insert_with(|| (line.offset, line.page, String::new()));
                text.push_str(line.text.trim_end());
                text.push('\n');
            }
        }
    }
    cutter.close();
    cutter.pieces
}

struct Cutter<'a> {
    title: &'a str,
    section: String,
    /// Where it begins, its page, its lines.
    paragraph: Option<(usize, Option<u32>, String)>,
    pieces: Vec<Piece>,
    /// The section has no piece yet.
    is_new: bool,
}

impl Cutter<'_> {
    fn close(&mut self) {
        let Some((offset, page, lines)) = self.paragraph.take() else { return };
        let text = lines.trim();
        match self.pieces.last_mut() {
            Some(last) if !self.is_new && last.text.chars().count() + text.chars().count() <= PASSAGE_LIMIT => {
                last.text.push_str("\n\n");
                last.text.push_str(text);
            }
            _ => {
                let title = if self.section.is_empty() || self.section == self.title {
                    self.title.to_owned()
                } else {
                    format!("{}: {}", self.title, self.section)
                };
                let section = self.section.clone();
                self.pieces.push(Piece { id: None, title, section, text: text.to_owned(), offset, page });
                self.is_new = false;
            }
        }
    }
}

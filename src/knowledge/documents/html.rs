//! HTML as its text: headings begin sections, block elements end paragraphs, scripts and styles are left out.
//!
//! This is a reader of text, not a browser: unclosed elements stay open, and unknown ones have no effect.

use super::pieces::{DocumentPart, Line, Piece, cut};
use super::text::title_or;
use html_escape::decode_html_entities;

/// Elements whose content is no text.
const SKIPPED: [&str; 5] = ["script", "style", "noscript", "template", "svg"];
/// Elements that end a paragraph, where they begin and where they end.
const BLOCKS: [&str; 24] = [
    "p", "div", "section", "article", "header", "footer", "main", "aside", "nav", "ul", "ol", "dl", "table", "tr",
    "pre", "blockquote", "figure", "form", "hr", "body", "html", "head", "details", "fieldset",
];
/// Elements that end a line.
const BREAKS: [&str; 5] = ["br", "li", "dt", "dd", "option"];

struct Reader {
    title: String,
    parts: Vec<DocumentPart<'static>>,
    line: String,
    offset: usize,
    /// The element that the text belongs to, where it matters.
    within: Option<String>,
}

/// The passages of a page.
pub(super) fn html(stem: &str, file: &str) -> Vec<Piece> {
    let mut reader = Reader { title: String::new(), parts: Vec::new(), line: String::new(), offset: 0, within: None };
    let mut at = 0;
    while let Some(start) = file[at..].find('<').map(|found| at + found) {
        reader.text(&file[at..start], at);
        at = if let Some(rest) = file[start..].strip_prefix("<!--") {
            rest.find("-->").map_or(file.len(), |end| start + 4 + end + 3)
        } else if let Some(end) = end_of_tag(&file[start..]) {
            reader.tag(&file[start + 1..start + end], start, file)
        } else {
            reader.text("<", start);
            start + 1
        };
    }
    reader.text(&file[at..], at);
    reader.end_line();
    cut(&title_or(reader.title, stem), reader.parts)
}

/// The place of the `>` that ends the tag at the beginning of `text`; `None` where there is no tag.
fn end_of_tag(text: &str) -> Option<usize> {
    let after = text[1..].chars().next()?;
    if !after.is_ascii_alphabetic() && !matches!(after, '/' | '!' | '?') {
        return None;
    }
    let mut quote = None;
    for (place, letter) in text.char_indices().skip(1) {
        match (quote, letter) {
            (None, '>') => return Some(place),
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), letter) if letter == open => quote = None,
            _ => {}
        }
    }
    None
}

impl Reader {
    /// Reads the tag at `start`; returns the position after it.
    fn tag(&mut self, inside: &str, start: usize, file: &str) -> usize {
        let after = start + 1 + inside.len() + 1;
        let closes = inside.starts_with('/');
        let name: String = inside.trim_start_matches('/').chars().take_while(char::is_ascii_alphanumeric).collect();
        let name = name.to_ascii_lowercase();
        if SKIPPED.contains(&name.as_str()) && !closes && !inside.ends_with('/') {
            let end = format!("</{name}");
            let rest = &file[after..];
            let found = rest
                .char_indices()
                .map(|(place, _)| place)
                .find(|place| rest.get(*place..place + end.len()).is_some_and(|text| text.eq_ignore_ascii_case(&end)));
            return found.map_or(file.len(), |place| after + place);
        }
        let is_heading = matches!(name.as_bytes(), [b'h', b'1'..=b'6']);
        if is_heading || name == "title" {
            self.end_line();
            self.within = (!closes).then_some(name);
        } else if BLOCKS.contains(&name.as_str()) {
            self.end_line();
            self.parts.push(DocumentPart::Line(Line { offset: start, page: None, text: "".into() }));
        } else if BREAKS.contains(&name.as_str()) {
            self.end_line();
        } else if matches!(name.as_str(), "td" | "th") && !self.line.ends_with(' ') {
            self.line.push(' ');
        }
        after
    }

    fn text(&mut self, raw: &str, at: usize) {
        if self.line.trim().is_empty() {
            self.offset = at + (raw.len() - raw.trim_start().len());
        }
        self.line.push_str(&decode_html_entities(raw));
    }

    /// What was read so far is a line, the title or a heading.
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line).split_whitespace().collect::<Vec<_>>().join(" ");
        if line.is_empty() {
            return;
        }
        match self.within.as_deref() {
            Some("title") => self.title = line,
            Some("h1") if self.title.is_empty() => self.title = line,
            Some(_) => self.parts.push(DocumentPart::Heading(line.into())),
            None => self.parts.push(DocumentPart::Line(Line { offset: self.offset, page: None, text: line.into() })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_page_is_read_by_its_headings_and_blocks() {
        let file = "<!DOCTYPE html><html><head><title>Lamp &amp; bulb</title><style>p{}</style></head><body>\n\
                    <h1>Lamps</h1><p>Red <b>and</b>\nblue.</p><script>if (a < b) { x('</p>') }</script>\
                    <h2 class=\"a>b\">Price</h2><ul><li>4&nbsp;&euro;</li><li>5 < 6</li></ul><!-- <p>no</p> --></body>";
        let pieces = html("lamp", file);
        let seen: Vec<_> = pieces.iter().map(|p| (p.title.as_str(), p.section.as_str(), p.text.as_str())).collect();
        assert_eq!(
            seen,
            [("Lamp & bulb: Lamps", "Lamps", "Red and blue."), ("Lamp & bulb: Price", "Price", "4 \u{20ac}\n5 < 6"),]
        );
        assert!(file[pieces[0].offset..].starts_with("Red"));
    }

    #[test]
    fn a_page_without_a_title_takes_its_first_heading_or_its_name() {
        assert_eq!(html("a-b", "<h1>One</h1><p>Two")[0].title, "One");
        assert_eq!(html("a-b", "Two")[0].title, "a b");
    }

    proptest! {
        #[test]
        fn no_text_whatever_makes_it_panic(text in "(<|>|/|!--|--|script|h1|p|&|;|#x|\"|é| |a){0,40}|\\PC{0,60}") {
            for piece in html("a", &text) {
                prop_assert!(piece.offset <= text.len() && !piece.text.is_empty());
            }
        }
    }
}

//! Markdown and plain text.

use super::pieces::{DocumentPart, Line, Piece, cut};

/// Markdown: front matter may name the title, else the first heading of depth 1 does; every other heading begins a
/// section, except inside a fence.
pub(super) fn markdown(stem: &str, file: &str) -> Vec<Piece> {
    let (front, body) = split_front_matter(file);
    let mut title = front.unwrap_or_default();
    let mut parts = Vec::new();
    let mut fenced = false;
    for (offset, text) in lines(file, body) {
        if text.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        match heading(text).filter(|_| !fenced) {
            Some((1, words)) if title.is_empty() => words.clone_into(&mut title),
            Some((_, words)) => parts.push(DocumentPart::Heading(words.into())),
            None => parts.push(DocumentPart::Line(Line { offset, page: None, text: text.into() })),
        }
    }
    cut(&title_or(title, stem), parts)
}

/// Plain text: paragraphs between empty lines, pages between form feeds.
pub(super) fn plain(stem: &str, file: &str) -> Vec<Piece> {
    let pages = u32::from(file.contains('\u{c}'));
    let mut page = pages;
    let mut parts = Vec::new();
    for (offset, text) in lines(file, file.strip_prefix('\u{feff}').unwrap_or(file)) {
        let turned = u32::try_from(text.matches('\u{c}').count()).unwrap_or_default();
        if turned > 0 {
            // A page ends a paragraph.
            parts.push(DocumentPart::Line(Line { offset, page: None, text: "".into() }));
        }
        page += pages * turned;
        let text = text.replace('\u{c}', "");
        parts.push(DocumentPart::Line(Line { offset, page: (page > 0).then_some(page), text: text.into() }));
    }
    cut(&title_or(String::new(), stem), parts)
}

/// The title, or what the file's name says.
pub(super) fn title_or(title: String, stem: &str) -> String {
    if title.is_empty() { stem.replace(['-', '_'], " ") } else { title }
}

/// The lines of `body`, which is the end of `file`, each with the byte of the file at which it begins.
fn lines<'a>(file: &str, body: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    let mut next = file.len() - body.len();
    body.split_inclusive('\n').map(move |line| {
        let offset = next;
        next += line.len();
        (offset, line.trim_end_matches('\n').trim_end_matches('\r'))
    })
}

/// The title of the front matter, and what follows it; text without front matter comes back whole.
fn split_front_matter(text: &str) -> (Option<String>, &str) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else { return (None, text) };
    let mut length = first.len();
    let mut title = None;
    for line in lines {
        length += line.len();
        if line.trim_end() == "---" {
            return (title, &text[length..]);
        }
        if let Some(value) = line.strip_prefix("title:") {
            title = Some(value.trim().trim_matches(['"', '\'']).to_owned());
        }
    }
    (None, text)
}

/// Depth and words of an ATX heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let depth = line.chars().take_while(|letter| *letter == '#').count();
    let words = line.get(depth..)?.strip_prefix(' ')?.trim().trim_end_matches('#').trim_end();
    ((1..=6).contains(&depth) && !words.is_empty()).then_some((depth, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_become_passages_with_the_documents_title_and_their_place() {
        let text = "---\ntitle: \"Winter care\"\n---\nKeep it dry.\n\n## Storage\nAbove 5 °C.\n\nHalf charged.\n\n\
                    ## Riding\nSlowly.\n";
        let passages = markdown("winter", text);
        let seen: Vec<_> = passages.iter().map(|p| (p.title.as_str(), p.text.as_str())).collect();
        assert_eq!(
            seen,
            [
                ("Winter care", "Keep it dry."),
                ("Winter care: Storage", "Above 5 °C.\n\nHalf charged."),
                ("Winter care: Riding", "Slowly."),
            ]
        );
        for passage in &passages {
            let first = passage.text.lines().next().expect("a line");
            assert!(text[passage.offset..].starts_with(first), "{passage:?}");
        }
    }

    #[test]
    fn a_first_heading_is_the_title_and_a_hash_inside_a_fence_is_no_heading() {
        let passages = markdown("notes", "# Notes\n\n```sh\n# not a heading\n```\n");
        assert_eq!(passages.len(), 1);
        assert_eq!(passages[0].title, "Notes");
        assert!(passages[0].text.contains("# not a heading"));
    }

    #[test]
    fn long_sections_are_split_between_paragraphs_and_never_inside_one() {
        let paragraph = "word ".repeat(120);
        let passages = markdown("long", &format!("## One\n{paragraph}\n\n{paragraph}\n\nshort\n"));
        assert_eq!(passages.len(), 2);
        assert!(passages[1].text.ends_with("short"));
    }

    #[test]
    fn plain_text_has_paragraphs_and_pages_where_it_has_form_feeds() {
        let long = "word ".repeat(150);
        let passages = plain("lamp_manual", &format!("{long}\r\n\r\nSecond.\n\u{c}{long}"));
        let seen: Vec<_> = passages.iter().map(|p| (p.title.as_str(), p.page, p.text.ends_with("Second."))).collect();
        assert_eq!(seen, [("lamp manual", Some(1), true), ("lamp manual", Some(2), false)]);
        assert_eq!(plain("a", "One.")[0].page, None);
    }
}

//! Finds valid places for source numbers in a Markdown text, and inserts them.
//!
//! Positions are counted in characters (code points). A marker is placed at its position, but never within a grapheme
//! (an emoji of several parts, a letter with accents), within code, or where Markdown would give it another meaning.
//! There it moves after the grapheme or the code span, or before the code block, and a space separates it. The text
//! itself is never changed.

use std::collections::BTreeSet;
use std::ops::Range;
use unicode_segmentation::GraphemeCursor;

/// The places of one text.
#[derive(Debug)]
pub(crate) struct MarkerPlaces<'t> {
    text: &'t str,
    /// Where each character begins, and the end of the text.
    starts: Vec<usize>,
    /// Fenced code: from the line of the opening fence to the end of the closing one, where there is one.
    blocks: Vec<Range<usize>>,
    /// Code within lines, its backticks included.
    spans: Vec<Range<usize>>,
}

impl<'t> MarkerPlaces<'t> {
    /// The places of `text`.
    pub(crate) fn of(text: &'t str) -> Self {
        let starts = text.char_indices().map(|(start, _)| start).chain([text.len()]).collect();
        let blocks = blocks(text);
        let spans = spans(text, &blocks);
        Self { text, starts, blocks, spans }
    }

    /// Number of characters of the text.
    pub(crate) fn characters(&self) -> u64 {
        self.starts.len() as u64 - 1
    }

    /// The byte offset of a marker for `position`; past the end it is the end. `None` if only code could hold it.
    pub(crate) fn at(&self, position: u64) -> Option<usize> {
        let position = usize::try_from(position).unwrap_or(usize::MAX).min(self.starts.len() - 1);
        let place = whole_letter(self.text, self.starts.get(position).copied()?);
        if let Some(span) = self.spans.iter().find(|span| span.start < place && place < span.end) {
            return Some(whole_letter(self.text, span.end));
        }
        let mut place = place;
        for block in self.blocks.iter().rev() {
            if block.start <= place && place <= block.end {
                place = self.text[..block.start].trim_end().len();
                if place == 0 {
                    return None;
                }
            }
        }
        Some(place)
    }

    /// The byte offset of a marker without a position: after the last word.
    pub(crate) fn last(&self) -> Option<usize> {
        let end = self.text.trim_end();
        self.at(end.chars().count() as u64)
    }
}

/// Fenced and inline code of a text, fences and backticks included.
pub(super) fn code(text: &str) -> Vec<Range<usize>> {
    if memchr::memchr2(b'`', b'~', text.as_bytes()).is_none() {
        return Vec::new();
    }
    let mut found = blocks(text);
    found.extend(spans(text, &found));
    found
}

/// Inserts markers at these byte offsets: place and number, each formatted by `write`.
pub(crate) fn with_markers(text: &str, markers: &BTreeSet<(usize, u32)>, write: impl Fn(u32) -> String) -> String {
    let mut marked = text.to_owned();
    let mut later: Option<usize> = None;
    for &(place, number) in markers.iter().rev() {
        let mut marker = write(number);
        let first = markers.range(..(place, number)).next_back().is_none_or(|(before, _)| *before != place);
        // `![1]` would be a picture, and `\[` no bracket.
        if first && text[..place].ends_with(['!', '\\']) {
            marker.insert(0, ' ');
        }
        // `[1](…)` would be a link, and `[1]:` a definition.
        if later != Some(place) && marker.ends_with(']') && text[place..].starts_with(['(', ':']) {
            marker.push(' ');
        }
        marked.insert_str(place, &marker);
        later = Some(place);
    }
    marked
}

/// Formats one marker: a link, or the number in brackets alone.
pub(crate) fn marker(number: u32, link: Option<&str>) -> String {
    link.map_or_else(|| format!("[{number}]"), |link| format!("[[{number}]]({link})"))
}

/// The end of the grapheme around `place`; `place` itself if it is between two.
fn whole_letter(text: &str, place: usize) -> usize {
    let mut cursor = GraphemeCursor::new(place, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(false) => cursor.next_boundary(text, 0).ok().flatten().unwrap_or(text.len()),
        _ => place,
    }
}

/// Parses a fence line: its character and count, and the text after it.
fn fence(line: &str) -> Option<(char, usize, &str)> {
    let trimmed = line.trim_start_matches(' ');
    let letter = trimmed.chars().next().filter(|letter| matches!(letter, '`' | '~'))?;
    let rest = trimmed.trim_start_matches(letter);
    let length = trimmed.len() - rest.len();
    let info = rest.trim();
    let indented = line.len() - trimmed.len() > 3;
    (length >= 3 && !indented && !(letter == '`' && info.contains('`'))).then_some((letter, length, info))
}

fn blocks(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut open, mut start) = (Vec::new(), None::<(usize, char, usize)>, 0);
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches(['\n', '\r']);
        match (fence(bare), open) {
            (Some((letter, length, _)), None) => open = Some((start, letter, length)),
            (Some((letter, length, "")), Some((from, opened, least))) if letter == opened && length >= least => {
                found.push(from..start + bare.len());
                open = None;
            }
            _ => {}
        }
        start += line.len();
    }
    found.extend(open.map(|(from, ..)| from..text.len()));
    found
}

fn spans(text: &str, blocks: &[Range<usize>]) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find('`').map(|start| at + start) {
        let end = start + bytes[start..].iter().take_while(|byte| **byte == b'`').count();
        if !blocks.iter().any(|block| block.contains(&start)) {
            runs.push(start..end);
        }
        at = end;
    }
    let mut found = Vec::new();
    let mut next = 0;
    while let Some(open) = runs.get(next) {
        // Code within lines ends in its own paragraph.
        let closing = runs[next + 1..].iter().take_while(|run| !text[open.end..run.start].contains("\n\n"));
        match closing.enumerate().find(|(_, run)| run.len() == open.len()) {
            Some((skipped, close)) => {
                found.push(open.start..close.end);
                next += skipped + 2;
            }
            None => next += 1,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The text with a marker at each of these positions, numbered in order.
    fn marked(text: &str, positions: &[u64]) -> String {
        let places = MarkerPlaces::of(text);
        let numbered = (1..).zip(positions);
        let markers = numbered.filter_map(|(number, position)| Some((places.at(*position)?, number))).collect();
        with_markers(text, &markers, |number| marker(number, None))
    }

    #[test]
    fn positions_are_code_points_and_a_letter_of_several_is_never_split() {
        for (text, positions, expected) in [
            ("Valve open. Coil bad.", &[11_u64, 21][..], "Valve open.[1] Coil bad.[2]"),
            // Two code units in UTF-16, four bytes in UTF-8, one character.
            ("😀 done. Next", &[7], "😀 done.[1] Next"),
            // Thumb and skin tone; a family joined of three.
            ("👍🏽 ok", &[1], "👍🏽[1] ok"),
            ("👨‍👩‍👧 ok", &[2], "👨‍👩‍👧[1] ok"),
            ("🇳🇴 ok", &[1], "🇳🇴[1] ok"),
            ("cafe\u{301} au lait", &[4], "cafe\u{301}[1] au lait"),
            ("שלום עולם. סוף", &[10], "שלום עולם.[1] סוף"),
            ("a\r\nb", &[2], "a\r\n[1]b"),
            ("short", &[99], "short[1]"),
            ("same.", &[5, 5], "same.[1][2]"),
            ("", &[0], "[1]"),
        ] {
            assert_eq!(marked(text, positions), expected, "{text}");
        }
    }

    #[test]
    fn code_takes_no_marker_and_markdown_takes_none_for_something_else() {
        for (text, positions, expected) in [
            (
                "Run this:\n```sh\nreset --all\n```\nDone.",
                &[20_u64][..],
                "Run this:[1]\n```sh\nreset --all\n```\nDone.",
            ),
            ("Run:\n```\na\n```", &[14], "Run:[1]\n```\na\n```"),
            ("Run:\n```\nnever closed", &[12], "Run:[1]\n```\nnever closed"),
            ("A.\n~~~\n```\n~~~\nB.", &[9], "A.[1]\n~~~\n```\n~~~\nB."),
            ("One\n```\na\n```\n```\nb\n```\n", &[19], "One[1]\n```\na\n```\n```\nb\n```\n"),
            ("Use `reset --all` now.", &[8], "Use `reset --all`[1] now."),
            ("Use ``a ` b`` now.", &[8], "Use ``a ` b``[1] now."),
            ("A ` stays open. B", &[15], "A ` stays open.[1] B"),
            ("Stop!", &[5], "Stop! [1]"),
            ("Stop!", &[5, 5], "Stop! [1][2]"),
            ("see(page)", &[3], "see[1] (page)"),
            ("a\\b", &[2], "a\\ [1]b"),
        ] {
            assert_eq!(marked(text, positions), expected, "{text}");
        }
        assert_eq!(MarkerPlaces::of("```\nall code\n```").at(7), None);
        assert_eq!(MarkerPlaces::of("words  \n\n").last(), Some(5));
    }

    /// Texts of what is hard: letters of several characters, directions, code, brackets.
    fn text() -> impl Strategy<Value = String> {
        let pieces = vec![
            "The coil ", "😀", "👨‍👩‍👧", "👍🏽", "🇳🇴", "e\u{301}", "שלום ", "\u{202e}", "مرحبا. ", "`code` ", "```\n",
            "~~~\n", "\n", "\n\n", "!", "\\", "(a)", "[1]", "[[2]](x)", ". ", "\r\n", "`", "…", "\u{200d}", "ﬁ",
        ];
        proptest::collection::vec(proptest::sample::select(pieces), 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn markers_change_nothing_of_the_text_beside_them(text in text(), positions in proptest::collection::vec(0_u64..80, 0..6)) {
            let places = MarkerPlaces::of(&text);
            let markers: BTreeSet<(usize, u32)> =
                (1..).zip(&positions).filter_map(|(number, position)| Some((places.at(*position)?, number))).collect();
            // A sign that no text above holds stands for the marker: taken out again, the text is what it was.
            let sign = |number: u32| char::from_u32(0xE000 + number).unwrap_or_default().to_string();
            let marked = with_markers(&text, &markers, sign);
            let bare = |text: &str| text.chars().filter(|letter| !('\u{e000}'..='\u{e0ff}').contains(letter)).collect::<String>();
            let spaces = markers.iter().filter(|(place, _)| text[..*place].ends_with(['!', '\\'])).map(|(place, _)| place).collect::<BTreeSet<_>>().len();
            prop_assert_eq!(bare(&marked).len(), text.len() + spaces);
            if spaces == 0 {
                prop_assert_eq!(bare(&marked), text.clone());
            }
            for number in markers.iter().map(|(_, number)| *number) {
                prop_assert_eq!(marked.matches(&sign(number)).count(), 1);
            }
        }

        #[test]
        fn a_marker_stands_between_letters_outside_code_and_never_before_its_words_but_for_a_block(text in text(), position in 0_u64..80) {
            let places = MarkerPlaces::of(&text);
            if let Some(place) = places.at(position) {
                prop_assert!(text.is_char_boundary(place));
                prop_assert!(!places.spans.iter().any(|span| span.start < place && place < span.end));
                prop_assert!(!places.blocks.iter().any(|block| block.start <= place && place <= block.end));
                let plain = places.starts[usize::try_from(position).expect("small").min(places.starts.len() - 1)];
                let in_block = places.blocks.iter().any(|block| block.start <= plain && plain <= block.end);
                prop_assert!(place >= plain || in_block || text[place..plain].trim().is_empty() || !places.blocks.is_empty());
            }
        }
    }
}

//! Word diff of two texts, with some context on the same line.

use crate::trace::text::is_treacherous;
use similar::{DiffTag, TextDiff};
use std::fmt::Write;

/// Context tokens (words and the spaces between them) on each side of a change.
const CONTEXT: usize = 16;
/// Maximum number of changes shown; further ones are only counted.
const SHOWN: usize = 3;
/// Maximum bytes compared; in longer texts, from shortly before the first difference.
const COMPARED: usize = 40_000;
/// Maximum characters of a printed line.
const LINE: usize = 240;

/// Pairs of lines `- before` and `+ after`; empty if the texts are equal.
pub(super) fn changed_words(before: &str, after: &str) -> Vec<String> {
    if before == after {
        return Vec::new();
    }
    let (before, after) = (window(before, after), window(after, before));
    let diff = TextDiff::from_words(before, after);
    let old: Vec<&str> = diff.iter_old_slices().collect();
    let new: Vec<&str> = diff.iter_new_slices().collect();
    let mut hunks: Vec<(std::ops::Range<usize>, std::ops::Range<usize>)> = Vec::new();
    for op in diff.ops().iter().filter(|op| op.tag() != DiffTag::Equal) {
        match hunks.last_mut() {
            Some((old, new)) if op.old_range().start - old.end <= CONTEXT / 4 => {
                old.end = op.old_range().end;
                new.end = op.new_range().end;
            }
            _ => hunks.push((op.old_range(), op.new_range())),
        }
    }
    let mut lines = Vec::new();
    for (removed, added) in hunks.iter().take(SHOWN) {
        let shown = [format!("- {}", around(&old, removed.clone())), format!("+ {}", around(&new, added.clone()))];
        // Changes that are near each other have the same context.
        if !lines.ends_with(&shown) {
            lines.extend(shown);
        }
    }
    if hunks.len() > SHOWN {
        lines.push(format!("  and {} more changes", hunks.len() - SHOWN));
    }
    lines
}

fn window<'a>(text: &'a str, other: &str) -> &'a str {
    if text.len().max(other.len()) <= COMPARED {
        return text;
    }
    let equal = text.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let from = text.floor_char_boundary(equal.saturating_sub(400).min(text.len()));
    let to = text.floor_char_boundary((from + COMPARED).min(text.len()));
    &text[from..to]
}

/// The tokens of a change and of its context on the same line.
fn around(tokens: &[&str], change: std::ops::Range<usize>) -> String {
    let breaks = |token: &&str| token.contains('\n');
    let mut start = change.start.saturating_sub(CONTEXT);
    if let Some(place) = tokens[start..change.start].iter().rposition(breaks) {
        start += place + 1;
    }
    let mut end = (change.end + CONTEXT).min(tokens.len());
    if let Some(place) = tokens[change.end..end].iter().position(breaks) {
        end = change.end + place;
    }
    let cut_before = start > 0 && !breaks(&tokens[start - 1]);
    let cut_after = tokens.get(end).is_some_and(|token| !breaks(token));
    let text = tokens[start..end].concat();
    let shown = printable(text.trim(), LINE);
    format!(
        "{}{shown}{}",
        if cut_before { "… " } else { "" },
        if cut_after && !shown.ends_with('…') { " …" } else { "" }
    )
}

/// Makes any text safe for one terminal line: no control characters, at most `limit` characters.
pub(super) fn printable(text: &str, limit: usize) -> String {
    let mut out = String::new();
    for (count, char) in text.chars().enumerate() {
        if count == limit {
            out.push('…');
            break;
        }
        match char {
            '\n' => out.push('⏎'),
            '\t' => out.push(' '),
            other if is_treacherous(other) || matches!(other, '\u{200b}'..='\u{200d}') => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(other));
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_changed_word_stands_in_its_line() {
        let rest = "\nCite each source.\n".repeat(30);
        assert_eq!(
            changed_words(
                &format!("Be brief.\nAlways search the knowledge base first.{rest}"),
                &format!("Be brief.\nSearch the knowledge base first.{rest}")
            ),
            ["- Always search the knowledge base first.", "+ Search the knowledge base first."]
        );
    }

    #[test]
    fn long_lines_are_cut_around_the_change_and_many_changes_are_counted() {
        let words: Vec<String> = (0..200).map(|number| format!("w{number}")).collect();
        let mut changed = words.clone();
        changed[100] = "X".to_owned();
        let lines = changed_words(&words.join(" "), &changed.join(" "));
        assert_eq!(lines[1], "+ … w92 w93 w94 w95 w96 w97 w98 w99 X w101 w102 w103 w104 w105 w106 w107 w108 …");
        for place in [10, 40, 70, 130, 160] {
            changed[place] = "Y".to_owned();
        }
        assert_eq!(
            changed_words(&words.join(" "), &changed.join(" ")).last().map(String::as_str),
            Some("  and 3 more changes")
        );
    }

    #[test]
    fn hostile_text_cannot_move_the_cursor() {
        assert_eq!(printable("a\u{1b}[2Jb\u{202e}", 20), "a\\u{1b}[2Jb\\u{202e}");
    }

    proptest! {
        #[test]
        fn unequal_texts_always_show_something(before in "[a-c \n]{0,30}", after in "[a-c \n]{0,30}") {
            prop_assert_eq!(changed_words(&before, &after).is_empty(), before == after);
        }
    }
}

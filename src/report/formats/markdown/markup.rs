//! Text that is safe on GitHub: escaped lines, lists, folds and fenced blocks.

use super::{MOST, PROMPT};
use crate::report::figures;
use crate::trace::text;
use std::fmt::Write as _;

/// One line of at most 300 characters in which GitHub finds no markup, mention, reference or link.
pub(super) fn escaped(words: &str) -> String {
    escaped_up_to(words, 300)
}

/// The same, with another limit.
pub(super) fn escaped_up_to(words: &str, most: usize) -> String {
    let line = text::line(words);
    let mut out = String::with_capacity(line.len() + 8);
    let mut before = ' ';
    for character in text::clip(&line, most).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // A zero-width space breaks a mention, an issue reference or a link.
            '@' | '#' => out.extend([character, '\u{200b}']),
            ':' => out.push_str(":\u{200b}"),
            '.' if before.eq_ignore_ascii_case(&'w') => out.push_str(".\u{200b}"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '(' | ')' | '|' | '~' | '!' | '$' | '{' | '}' => {
                out.extend(['\\', character]);
            }
            _ => out.push(character),
        }
        before = character;
    }
    out.replace(":\u{200b} ", ": ")
}

/// Writes at most `most` lines and a fifth of the size limit, then the number of omitted lines.
pub(super) fn list(out: &mut String, most: usize, lines: impl Iterator<Item = String>) {
    let (mut written, mut more, before) = (0, 0, out.len());
    for line in lines {
        if written < most && more == 0 && out.len() + line.len() < before + MOST / 5 {
            let _ = writeln!(out, "{line}");
            written += 1;
        } else {
            more += 1;
        }
    }
    if more > 0 {
        let _ = writeln!(out, "\nand {} more", figures::thousands(more));
    }
}

/// A fold; empty if it has no text.
pub(super) fn folded(title: &str, text: &str) -> String {
    if text.trim().is_empty() {
        return String::new();
    }
    format!("<details><summary>{}</summary>\n\n{}\n\n</details>\n\n", escaped(title), text.trim())
}

/// A fence longer than any run of backticks in the lines, so that nothing in them ends the block; and the lines.
pub(super) fn fenced<'l>(lines: impl Iterator<Item = &'l str>) -> (String, String) {
    let mut block = String::new();
    for line in lines {
        let line = text::block(line).replace('\n', " ");
        block.push_str(&text::clip(&line, PROMPT.2));
        block.push('\n');
    }
    let longest = block.split(|one| one != '`').map(str::len).max().unwrap_or(0);
    ("`".repeat(longest.max(2) + 1), block)
}

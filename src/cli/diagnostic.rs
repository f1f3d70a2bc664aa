//! Renders diagnostics as text and as JSON; there is no other renderer.
//!
//! ```text
//! error: unknown flow
//!   --> scenarios/refunds.yaml:2:7
//! 2 | flow: two-stag
//!   |       ^^^^^^^^ did you mean `two-stage`? known: tool-rag, two-stage
//! ```
//! Quoted text comes from files and may be hostile: control characters never reach the terminal.

use crate::report::annotation;
use crate::scenario::{Diagnostic, Severity};
use crate::trace::text::{is_treacherous, plural};
use anstyle::{AnsiColor, Style};
use std::fmt::Write as _;

/// Maximum columns shown of a quoted line.
const WIDTH: usize = 120;

/// All diagnostics, separated by blank lines; with ANSI colours if `styled`.
pub(crate) fn text(diagnostics: &[Diagnostic], styled: bool) -> String {
    let shown: Vec<String> = diagnostics.iter().map(|diagnostic| one(diagnostic, styled)).collect();
    shown.join("\n")
}

/// All diagnostics as a JSON list of objects.
pub(crate) fn json(diagnostics: &[Diagnostic]) -> String {
    serde_json::to_string_pretty(diagnostics).unwrap_or_default()
}

/// Annotations that GitHub shows of one kind in one step.
const ANNOTATED: usize = 10;

/// The first errors as GitHub workflow commands, one line each.
pub(crate) fn annotations(diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let line = |diagnostic: &Diagnostic| {
        let place = diagnostic.place.map_or(1, |place| place.line);
        let place = (!diagnostic.file.is_empty()).then_some((diagnostic.file.as_str(), place));
        let words = std::iter::once(&diagnostic.message).chain(&diagnostic.label).chain(&diagnostic.help);
        annotation("error", place, diagnostic.code, &words.map(|word| clean(word)).collect::<Vec<_>>().join("\n"))
    };
    errors.take(ANNOTATED).map(line).collect()
}

/// Summary line: `2 errors, 1 note in 7 files`.
pub(crate) fn summary(diagnostics: &[Diagnostic], files: usize) -> String {
    let count = |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count();
    let errors = plural(count(Severity::Error), "error");
    let notes = plural(count(Severity::Note), "note");
    format!("{errors}, {notes} in {}", plural(files, "file"))
}

fn one(diagnostic: &Diagnostic, styled: bool) -> String {
    let (word, colour) = match diagnostic.severity {
        Severity::Error => ("error", AnsiColor::Red),
        Severity::Note => ("note", AnsiColor::Cyan),
    };
    let paint = |style: Style, text: &str| if styled { format!("{style}{text}{style:#}") } else { text.to_owned() };
    let (strong, dim) = (colour.on_default().bold(), AnsiColor::Blue.on_default());
    let mut out = format!("{}: {}\n", paint(strong, word), clean(&diagnostic.message));
    let gutter = diagnostic.place.map_or(1, |place| place.line.to_string().len());
    let file = clean(&diagnostic.file);
    let bar = paint(dim, &format!("{:gutter$} |", ""));
    match diagnostic.place {
        Some(place) => {
            let arrow = paint(dim, &format!("{:gutter$}-->", ""));
            let _ = writeln!(out, "{arrow} {file}:{}:{}", place.line, place.column);
        }
        None if !file.is_empty() => {
            let _ = writeln!(out, "{} {file}", paint(dim, " -->"));
        }
        None => {}
    }
    match (diagnostic.place, &diagnostic.source_line) {
        (Some(place), Some(line)) => {
            let (quoted, before, under) = window(line, place.column as usize - 1, place.length as usize);
            let number = paint(dim, &format!("{:gutter$} |", place.line));
            let _ = writeln!(out, "{}", format!("{number} {quoted}").trim_end());
            let marks = paint(strong, &"^".repeat(under));
            let label = diagnostic.label.as_deref().map(clean).unwrap_or_default();
            let _ = writeln!(out, "{}", format!("{bar} {:before$}{marks} {label}", "").trim_end());
        }
        _ => {
            if let Some(label) = &diagnostic.label {
                let _ = writeln!(out, "{bar} {}", clean(label));
            }
        }
    }
    for help in &diagnostic.help {
        let _ = writeln!(out, "{} help: {}", paint(dim, &format!("{:gutter$} =", "")), clean(help));
    }
    out
}

/// Text without control characters and without characters that reorder a line.
fn clean(text: &str) -> String {
    text.chars().map(safe).collect()
}

fn safe(letter: char) -> char {
    match letter {
        '\t' => ' ',
        '\n' => '\u{fffd}',
        letter if is_treacherous(letter) => '\u{fffd}',
        letter => letter,
    }
}

/// The part of a line around its mistake, the number of columns before the mistake, and the number of columns to
/// underline.
fn window(line: &str, start: usize, length: usize) -> (String, usize, usize) {
    let letters: Vec<char> = line.chars().map(safe).collect();
    let from = if letters.len() > WIDTH { start.saturating_sub(WIDTH / 2) } else { 0 };
    let to = letters.len().min(from + WIDTH);
    let columns = |part: &[char]| part.iter().map(|letter| width(*letter)).sum::<usize>();
    let lead = if from > 0 { "… " } else { "" };
    let tail = if to < letters.len() { " …" } else { "" };
    let start = start.min(to);
    let end = (start + length).min(to);
    let quoted = format!("{lead}{}{tail}", letters[from..to].iter().collect::<String>());
    let before = columns(&letters[from..start.max(from)]) + if from > 0 { 2 } else { 0 };
    (quoted, before, columns(&letters[start..end.max(start)]).max(1))
}

/// Terminal columns of a character: two for wide East Asian characters and emoji, none for combining marks.
fn width(letter: char) -> usize {
    match letter as u32 {
        0x0300..=0x036f | 0x200b..=0x200d | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Place;

    fn unknown_flow() -> Diagnostic {
        let mut diagnostic = Diagnostic::error("unknown-flow", "scenarios/refunds.yaml", "unknown flow");
        diagnostic.label = Some("did you mean `two-stage`?".into());
        diagnostic.at("scenario: refunds\nflow: two-stag\n", Place { line: 2, column: 7, length: 8 })
    }

    #[test]
    fn a_diagnostic_shows_the_line_and_points_at_the_word() {
        let expected = "error: unknown flow\n --> scenarios/refunds.yaml:2:7\n2 | flow: two-stag\n  |       ^^^^^^^^ did you mean `two-stage`?\n";
        assert_eq!(text(&[unknown_flow()], false), expected);
        assert!(text(&[unknown_flow()], true).contains("\u{1b}["));
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        let line = "a: \u{1b}[31mred\u{202e}";
        let diagnostic = Diagnostic::error("x", "f\u{7}", "m\u{1b}").at(line, Place { line: 1, column: 4, length: 3 });
        let shown = text(&[diagnostic], false);
        assert!(!shown.chars().any(|letter| letter.is_control() && letter != '\n'), "{shown:?}");
        assert!(!shown.contains('\u{202e}'));
    }

    #[test]
    fn a_long_line_is_cut_around_its_mistake() {
        let line = format!("a: {}WRONG{}", "x".repeat(500), "y".repeat(500));
        let (quoted, before, under) = window(&line, 503, 5);
        assert_eq!((quoted.chars().count(), under), (WIDTH + 4, 5));
        assert_eq!(quoted.chars().skip(before).take(5).collect::<String>(), "WRONG");
    }

    #[test]
    fn a_summary_counts_in_words() {
        assert_eq!(summary(&[unknown_flow()], 7), "1 error, 0 notes in 7 files");
    }
}

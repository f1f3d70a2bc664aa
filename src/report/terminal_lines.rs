//! Lines of a terminal: word wrap and colours.

use super::figures::INCONCLUSIVE;
use crate::gate::Verdict;
use crate::trace::text::line;
use std::fmt::Write as _;

/// Words of a text. Text to copy counts as one word (a command in backticks, and `--limit name=value`) unless it is
/// longer than `room` characters.
fn unbroken(text: &str, room: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    for word in text.split(' ') {
        let fits = words.last().is_some_and(|last| last.chars().count() + 1 + word.chars().count() <= room);
        let option =
            words.last().is_some_and(|last| last.starts_with("--") && !last.contains('=')) && word.contains('=');
        match words.last_mut().filter(|_| (open || option) && fits) {
            Some(last) => {
                last.push(' ');
                last.push_str(word);
            }
            None => words.push(word.to_owned()),
        }
        open ^= word.matches('`').count() % 2 == 1;
    }
    words
}

/// Writes `words` in lines of at most `width` characters, each after `indent`.
pub(super) fn wrap(out: &mut String, words: &str, width: usize, indent: &str) {
    let words = line(words);
    let room = width.saturating_sub(indent.chars().count()).max(20);
    let mut row = String::new();
    for word in unbroken(&words, room) {
        if !row.is_empty() && row.chars().count() + 1 + word.chars().count() > room {
            let _ = writeln!(out, "{indent}{row}");
            row.clear();
        }
        if !row.is_empty() {
            row.push(' ');
        }
        row.push_str(&word);
    }
    let _ = writeln!(out, "{indent}{row}");
}

/// Colours, which only add to what words say.
pub(super) struct Paint {
    /// Whether colours are enabled.
    pub colour: bool,
}

impl Paint {
    pub(super) fn dim(&self, text: &str) -> String {
        if self.colour { format!("\u{1b}[2m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// Colours a verdict's word.
    pub(super) fn verdict(&self, verdict: Verdict) -> String {
        self.as_verdict(verdict, verdict.as_str())
    }

    /// Colours a text like a verdict.
    pub(super) fn as_verdict(&self, verdict: Verdict, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match verdict {
            Verdict::Pass => "32",
            Verdict::Fail => "1;31",
            Verdict::Inconclusive => "33",
            Verdict::NotMeasured => "36",
            Verdict::Error => "1;35",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Colours the verdict at the end of a table row.
    pub(super) fn last_word(&self, row: &str) -> String {
        let bracket = if row.ends_with(')') { ")" } else { "" };
        let opening = if bracket.is_empty() { "" } else { "(" };
        for (place, words) in INCONCLUSIVE.iter().enumerate() {
            let whole = format!("{opening}{words}{bracket}");
            if let Some(rest) = row.strip_suffix(&whole).filter(|_| self.colour) {
                // Amber if the target is met, plain red if not; the words say which.
                return format!("{rest}\u{1b}[{}m{whole}\u{1b}[0m", if place == 0 { "33" } else { "31" });
            }
        }
        let (rest, word) = row.rsplit_once(' ').unwrap_or(("", row));
        let bare = word.trim_matches(['(', ')']);
        match Verdict::ALL.into_iter().find(|verdict| verdict.as_str() == bare) {
            Some(verdict) if self.colour => format!("{rest} {}", self.as_verdict(verdict, word)),
            _ => row.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_met_and_what_is_below_its_target_have_a_colour_each() {
        let paint = Paint { colour: true };
        assert_eq!(paint.last_word("a  INCONCLUSIVE, met"), "a  \u{1b}[33mINCONCLUSIVE, met\u{1b}[0m");
        assert_eq!(paint.last_word("a  (INCONCLUSIVE, below)"), "a  \u{1b}[31m(INCONCLUSIVE, below)\u{1b}[0m");
        assert_eq!(Paint { colour: false }.last_word("a  INCONCLUSIVE, met"), "a  INCONCLUSIVE, met");
    }

    #[test]
    fn a_command_in_backticks_stays_on_one_line() {
        let mut out = String::new();
        wrap(&mut out, "say so with `ragcheck run --trust KEY=127.0.0.1:80` or not at all", 40, "");
        assert_eq!(out, "say so with\n`ragcheck run --trust KEY=127.0.0.1:80`\nor not at all\n");
        let mut out = String::new();
        wrap(&mut out, "it is too large; raise it with --limit trace-size=64MiB", 35, "");
        assert_eq!(out, "it is too large; raise it with\n--limit trace-size=64MiB\n");
        let long = format!("`{}`", "word ".repeat(40));
        let mut out = String::new();
        wrap(&mut out, &long, 40, "");
        assert!(out.lines().all(|line| line.chars().count() <= 41), "{out}");
    }
}

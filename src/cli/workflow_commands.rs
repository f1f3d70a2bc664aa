//! Neutralises GitHub workflow commands in quoted text, if a GitHub runner reads the output (`GITHUB_ACTIONS=true`).
//!
//! The runner obeys a line that begins with `::`, after white space, and `##[` anywhere in a line
//! (`ActionCommand.TryParseV2` and `TryParse`,
//! <https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs>). A space breaks both. The commands
//! of `report --to annotations` are printed unchanged: they escape their messages.

use std::borrow::Cow;

/// Whether a GitHub runner reads this process's output.
pub(super) fn are_read() -> bool {
    std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true")
}

/// The text with every workflow command broken.
pub(super) fn broken(text: &str) -> Cow<'_, str> {
    if !text.contains("::") && !text.contains("##[") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for line in text.split_inclusive(['\n', '\r']) {
        let begins = line.trim_start_matches(is_passed_over);
        if begins.starts_with("::") {
            out.push_str(&line[..line.len() - begins.len()]);
            out.push_str(": ");
            out.push_str(&begins[1..].replace("##[", "## ["));
        } else {
            out.push_str(&line.replace("##[", "## ["));
        }
    }
    Cow::Owned(out)
}

/// The same for a JSON document, whose meaning is unchanged: none of its lines begins with a colon.
pub(super) fn broken_json(text: &str) -> Cow<'_, str> {
    if text.contains("##[") { Cow::Owned(text.replace("##[", "##\\u005b")) } else { Cow::Borrowed(text) }
}

/// Whether a runner may skip a character before `::`: white space and invisible characters.
fn is_passed_over(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2060}') || letter.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_at_the_beginning_of_a_line_and_old_ones_anywhere_are_broken_and_all_else_stays() {
        for (text, expected) in [
            ("::error::x", ": :error::x"),
            ("a\n  ::set-output name=a::b\n", "a\n  : :set-output name=a::b\n"),
            ("a\r\t::add-mask::b", "a\r\t: :add-mask::b"),
            ("a\n\u{feff}::stop-commands::b", "a\n\u{feff}: :stop-commands::b"),
            ("it says ##[error]b and ::c", "it says ## [error]b and ::c"),
            ("::a ##[b", ": :a ## [b"),
            ("std::fs::read\n#[test] ##", "std::fs::read\n#[test] ##"),
        ] {
            assert_eq!(broken(text), expected);
            assert_eq!(broken(expected), expected);
        }
    }

    #[test]
    fn a_json_document_says_the_same_afterwards() {
        let text = r###"{"a": "##[error]x", "b": "::c"}"###;
        let clean = broken_json(text);
        assert!(!clean.contains("##["), "{clean}");
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(read(&clean), read(text));
    }
}

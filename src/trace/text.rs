//! Makes text from a model, a document or a service safe to display; HTML has separate escaping.
//!
//! Terminals obey escape sequences, bidirectional overrides reverse lines, and spreadsheets run formulas. All of
//! these are neutralised: control and direction characters are shown as U+FFFD, so that they remain visible.

use crate::platform::secrets;
use std::borrow::Cow;

/// Whether a character controls a terminal or the reading direction instead of being shown.
pub(crate) fn is_treacherous(character: char) -> bool {
    (character.is_control() && character != '\n')
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(character, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}')
}

/// Whether a character is the sign of a currency.
pub(crate) fn is_currency(character: char) -> bool {
    matches!(character, '$' | '¢'..='¥' | '\u{20a0}'..='\u{20cf}')
}

/// Codes of currencies, lower case, that may stand directly before a number without making a code of it.
pub(crate) const CURRENCY_CODES: [&str; 20] = [
    "usd", "eur", "gbp", "chf", "jpy", "cny", "krw", "inr", "aud", "cad", "brl", "sek", "nok", "dkk", "pln", "czk",
    "rub", "try", "kr", "rs",
];

/// The zeros of scripts with digits of their own, each followed by the other nine.
const ZEROS: [char; 6] = ['\u{660}', '\u{6f0}', '\u{966}', '\u{9e6}', '\u{e50}', '\u{ff10}'];

/// The ASCII digit of a digit of another script, or the ASCII mark of an Arabic decimal or thousands mark; any other
/// character as it is.
pub(crate) fn ascii_digit(letter: char) -> char {
    match letter {
        '\u{66b}' => '.',
        '\u{66c}' => ',',
        _ => {
            let above = |zero: &char| u32::from(letter).checked_sub(u32::from(*zero)).filter(|digit| *digit < 10);
            ZEROS.iter().find_map(above).and_then(|digit| char::from_digit(digit, 10)).unwrap_or(letter)
        }
    }
}

/// Sanitises `text`: keeps line breaks, turns tabs into spaces, and makes control characters visible.
pub(crate) fn block(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\t', " ");
    text.chars().map(|character| if is_treacherous(character) { '\u{fffd}' } else { character }).collect()
}

/// Sanitises `text` on one line: like [`block`], with white space collapsed to single spaces.
pub(crate) fn line(text: &str) -> String {
    if is_line(text) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut apart = false;
    while let Some(character) = rest.chars().next() {
        // Fast path: words of ASCII, which most texts consist of, are unchanged.
        let word = rest.bytes().take_while(u8::is_ascii_graphic).count();
        let (taken, behind) = rest.split_at(word.max(character.len_utf8()));
        rest = behind;
        let breaks = character == '\t' || (character == '\r' && rest.starts_with('\n'));
        if word == 0 && (breaks || (character.is_whitespace() && !is_treacherous(character))) {
            apart = !out.is_empty();
            continue;
        }
        if std::mem::take(&mut apart) {
            out.push(' ');
        }
        out.push_str(if is_treacherous(character) { "\u{fffd}" } else { taken });
    }
    out
}

/// Whether `text` is printable ASCII with single spaces between words, looked at many bytes at a time.
fn is_line(text: &str) -> bool {
    let printable = |part: &[u8]| part.iter().fold(true, |all, byte| all & matches!(byte, b' '..=b'~'));
    text.as_bytes().chunks(64).all(printable)
        && !text.starts_with(' ')
        && !text.ends_with(' ')
        && memchr::memmem::find(text.as_bytes(), b"  ").is_none()
}

/// Shortens `text` to at most `most` characters, including an ellipsis if something was cut.
pub(crate) fn clip(text: &str, most: usize) -> Cow<'_, str> {
    if text.char_indices().nth(most).is_none() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(secrets::beginning(text, most.saturating_sub(1)) + "…")
}

/// `text` on one line of at most `most` characters: `line`, clipped.
pub(crate) fn quote(text: &str, most: usize) -> String {
    clip(&line(text), most).into_owned()
}

/// Quotes a word for a shell if it holds more than letters, digits and `/._-`.
pub(crate) fn shell_word(word: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '/' | '.' | '_' | '-');
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// `1 file`, `2 files`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// The first `most` names, and the number of the others: `a, b and 3 more`.
pub(crate) fn listed<S: AsRef<str>>(names: impl IntoIterator<Item = S>, most: usize) -> String {
    let mut names = names.into_iter();
    let first: Vec<S> = names.by_ref().take(most).collect();
    let first = first.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
    match names.count() {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// `1 case`, `2 cases`.
pub(crate) fn count(n: u64, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

/// Sanitises `text` for a CSV cell: like [`block`], without line breaks and tabs, and prefixed with an apostrophe if
/// its first non-space character would begin a formula.
pub(crate) fn cell(text: &str) -> Cow<'_, str> {
    let plain = !text.contains(|character| character == '\n' || is_treacherous(character));
    let text = if plain { Cow::Borrowed(text) } else { Cow::Owned(block(text).replace('\n', " ")) };
    let begins = text.trim_start_matches(' ').starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']);
    let is_number =
        text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.".contains(&byte)) && text.parse::<f64>().is_ok();
    if begins && !is_number { Cow::Owned(format!("'{text}")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_secret_goes_before_the_cut_so_that_no_part_of_it_stays() {
        secrets::declare([("QUOTED_KEY".to_owned(), "only-in-the-quote-0454-and-long".to_owned())]);
        let text = format!("{}-only-in-the-quote-0454-and-long", "x".repeat(150));
        assert!(!quote(&text, 160).contains("only-in") && !clip(&text, 160).contains("only-in"));
    }

    #[test]
    fn escape_sequences_and_overrides_are_shown_instead_of_obeyed() {
        assert_eq!(line("\u{1b}[31mred\u{202e}\nnext\tone"), "\u{fffd}[31mred\u{fffd} next one");
        assert_eq!(block("one\r\ntwo\rthree"), "one\ntwo\u{fffd}three");
    }

    #[test]
    fn clipping_counts_characters_and_says_that_it_cut() {
        assert_eq!(clip("grün", 4), "grün");
        assert_eq!(clip("grüner", 4), "grü…");
        assert_eq!(clip("x", 0), "…");
    }

    #[test]
    fn a_quotation_is_one_bounded_line() {
        assert_eq!(quote(" a\nb\u{1b}[31m\u{202e}c ", 40), "a b\u{fffd}[31m\u{fffd}c");
        assert_eq!(quote("ääääää", 3), "ää…");
        assert_eq!(quote("äää", 3), "äää");
    }

    #[test]
    fn cells_that_would_run_as_formulas_are_led_by_an_apostrophe() {
        for hostile in ["=cmd|' /C calc'!A0", "+1+cmd", "-2+3", "@SUM(A1)", "\t=1", "\n=1", "  =1", "＝1"] {
            assert!(cell(hostile).starts_with('\''), "{hostile:?}");
        }
        assert_eq!(cell("\r=1"), "\u{fffd}=1");
    }

    #[test]
    fn a_cell_commands_no_terminal() {
        assert_eq!(cell("\u{1b}[2J\u{1b}]0;x\u{7}"), "\u{fffd}[2J\u{fffd}]0;x\u{fffd}");
        assert_eq!(cell("one\r\ntwo\tthree"), "one two three");
    }

    #[test]
    fn numbers_and_ordinary_words_stay_as_they_are() {
        for harmless in ["-5", "+0.25", "tool-rag", "", "a=b", ">= 95%"] {
            assert_eq!(cell(harmless), harmless);
        }
    }

    #[test]
    fn a_word_for_a_shell_is_quoted_where_it_has_to_be() {
        assert_eq!((shell_word("a/b.1").as_str(), shell_word("it's $(x)").as_str()), ("a/b.1", "'it'\\''s $(x)'"));
    }

    proptest! {
        #[test]
        fn a_line_is_the_words_of_the_block(text in "[a \\n\\r\\t\u{85}\u{a0}\u{2028}\u{3000}\u{1b}é]{0,12}") {
            prop_assert_eq!(line(&text), block(&text).split_whitespace().collect::<Vec<_>>().join(" "));
        }

        #[test]
        fn a_line_never_holds_a_control_character(text in any::<String>()) {
            prop_assert!(!line(&text).chars().any(char::is_control));
        }

        #[test]
        fn a_cell_never_holds_a_control_character(text in any::<String>()) {
            prop_assert!(!cell(&text).chars().any(char::is_control));
        }

        #[test]
        fn clipped_text_is_never_longer_than_asked(text in any::<String>(), most in 1usize..40) {
            prop_assert!(clip(&text, most).chars().count() <= most);
        }
    }
}

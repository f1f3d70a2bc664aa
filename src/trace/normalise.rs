//! Normalises a text to what a reader sees, so that spelling variants that look the same are equal.
//!
//! NFC and full case folding; full-width and half-width forms, digits of other scripts and every kind of space, quotation mark, hyphen, minus
//! and wave dash become the plain one; zero-width characters and the marks of Markdown emphasis are dropped, except underscores and asterisks
//! inside words.

use super::text::ascii_digit;
use std::borrow::Cow;
use unicode_normalization::char::decompose_compatible;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// Characters that mark emphasis in Markdown.
pub(crate) const EMPHASIS: [char; 4] = ['*', '_', '~', '`'];

/// Normalises `text` for comparison and trims it.
pub(crate) fn normalise(text: &str) -> String {
    if text.is_ascii() {
        // Fast path for most texts: nothing to compose, and no letter that folds to another alphabet's.
        return single_spaces(&without_emphasis(text).to_ascii_lowercase());
    }
    let plain: String = composed(text).chars().filter_map(plain).collect();
    let folded: String = without_emphasis(&plain).chars().flat_map(fold).collect();
    // A dotted capital I folds to an i with a dot above, which looks like an i.
    single_spaces(&composed(&folded.replace("i\u{307}", "i")))
}

/// `text` without differences of capitals and spaces, by which questions are compared.
pub(crate) fn same_question(text: &str) -> String {
    single_spaces(&text.to_lowercase())
}

/// The text in NFC.
fn composed(text: &str) -> Cow<'_, str> {
    match is_nfc_quick(text.chars()) {
        IsNormalized::Yes => Cow::Borrowed(text),
        IsNormalized::No | IsNormalized::Maybe => Cow::Owned(text.nfc().collect()),
    }
}

/// Words with one space between them.
fn single_spaces(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !joined.is_empty() {
            joined.push(' ');
        }
        joined.push_str(word);
    }
    joined
}

/// Approximates full case folding through the upper case, so that `ß` is `ss` and a final sigma is a sigma.
fn fold(letter: char) -> impl Iterator<Item = char> {
    letter.to_uppercase().flat_map(char::to_lowercase)
}

/// Whether a character has no width.
pub(crate) fn is_invisible(letter: char) -> bool {
    plain(letter).is_none()
}

/// The plain variant of a character; `None` for a zero-width one.
fn plain(letter: char) -> Option<char> {
    Some(match letter {
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => {
            return None;
        }
        '\u{2060}'..='\u{2069}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' => return None,
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(letter) - 0xfee0).unwrap_or(letter),
        // Half-width kana, and full-width currencies.
        '\u{ff5f}'..='\u{ffe6}' => {
            let mut usual = None;
            decompose_compatible(letter, |part| usual = usual.or(Some(part)));
            usual.unwrap_or(letter)
        }
        // Systems of input differ in the dash of `9時〜18時`.
        '\u{301c}' => '~',
        '\u{2018}' | '\u{2019}' | '\u{201b}' | '\u{2bc}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2013}' | '\u{2212}' => '-',
        other if other.is_whitespace() => ' ',
        other => ascii_digit(other),
    })
}

/// Removes the marks of Markdown emphasis and code: `*`, `_`, `~~` and backticks, except those between two letters or
/// digits, or between two spaces, where they are not emphasis.
fn without_emphasis(text: &str) -> Cow<'_, str> {
    if !text.contains(EMPHASIS) {
        return Cow::Borrowed(text);
    }
    let letters: Vec<char> = text.chars().collect();
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    while at < letters.len() {
        let mark = letters[at];
        let run = letters[at..].iter().take_while(|letter| **letter == mark).count();
        let before = at.checked_sub(1).map(|at| letters[at]);
        let after = letters.get(at + run).copied();
        let beside = |neighbour: Option<char>, is: fn(char) -> bool| neighbour.is_some_and(is);
        let digits = beside(before, |one| one.is_ascii_digit()) && beside(after, |one| one.is_ascii_digit());
        let word = beside(before, char::is_alphanumeric) && beside(after, char::is_alphanumeric);
        let apart = before.is_none_or(char::is_whitespace) && after.is_none_or(char::is_whitespace);
        let emphasis = match mark {
            '*' => run <= 3 && !digits && !apart,
            '_' => run <= 3 && !word && !apart,
            '~' => run == 2 && !apart,
            '`' => true,
            _ => false,
        };
        if !emphasis {
            kept.extend(&letters[at..at + run]);
        }
        at += run;
    }
    Cow::Owned(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_ascii_text_is_normalised_as_any_other(text in "[ -~\t\n]{0,40}") {
            let long_way = |text: &str| {
                let plain: String = text.nfc().filter_map(plain).collect();
                let folded: String = without_emphasis(&plain).chars().flat_map(fold).collect();
                folded.nfc().collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
            };
            prop_assert_eq!(normalise(&text), long_way(&text));
        }
    }
}

//! Raised numbers, `⁹` and `<sup>9</sup>`. They cite after punctuation and after a word; after a digit, a symbol or a
//! unit they are powers (`10⁹`, `x²`, `m²`).

use super::{Mark, numbers, words_before};

/// Words of two letters and more that are raised to a power.
const RAISED: &[&str] =
    &["mm", "cm", "dm", "km", "nm", "ft", "yd", "mi", "sq", "sin", "cos", "tan", "log", "exp", "sec"];

/// The sources cited by raised numbers of a text, in order.
pub(super) fn superscripts(text: &str) -> Vec<Mark> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let (inside, length) = tagged(rest).unwrap_or_else(|| raised(rest));
        if length == 0 {
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        }
        let before = &text[..at];
        if may_cite(before)
            && let Some(numbers) = numbers(&inside)
        {
            let words = words_before(before);
            found.extend(numbers.into_iter().map(|number| Mark::Number(number, words.clone())));
        }
        at += length;
    }
    found
}

/// Content of the tag at the beginning of a text, and the length of both in bytes.
fn tagged(text: &str) -> Option<(String, usize)> {
    let inside = text.strip_prefix("<sup>")?;
    let end = inside.find("</sup>").filter(|end| *end <= super::LONGEST)?;
    Some((inside[..end].to_owned(), "<sup></sup>".len() + end))
}

/// The raised digits that a text begins with as plain ones, with what joins them, and their bytes.
fn raised(text: &str) -> (String, usize) {
    let (mut plain, mut length, mut joined) = (String::new(), 0, 0);
    for letter in text.chars() {
        let digit = match letter {
            '⁰' => '0',
            '¹' => '1',
            '²' => '2',
            '³' => '3',
            '⁴'..='⁹' => char::from_digit(u32::from(letter) - 0x2070, 10).unwrap_or('0'),
            '⁻' | '–' if !plain.is_empty() => '-',
            ',' | '\u{2d2}' | '\u{1427}' if !plain.is_empty() => ',',
            _ => break,
        };
        plain.push(digit);
        joined += letter.len_utf8();
        if digit.is_ascii_digit() {
            length = joined;
        }
    }
    let digits = plain.trim_end_matches(['-', ',']).len();
    plain.truncate(digits);
    (plain, length)
}

/// Whether a raised number behind this is a citation.
fn may_cite(before: &str) -> bool {
    let Some(last) = before.chars().next_back() else { return false };
    if ".,;:!?\"'”’»。，".contains(last) {
        return true;
    }
    if last == ')' {
        // `(x + y)²` is a power, `(see the manual)²` no.
        let inside = before.rfind('(').map_or("", |open| &before[open..]);
        return inside.split(|one: char| !one.is_alphabetic()).any(|word| word.chars().count() > 2);
    }
    let word = before.rsplit(|one: char| !one.is_alphanumeric()).next().unwrap_or_default();
    let ahead = before[..before.len() - word.len()].trim_end();
    let inches = word == "in" && ahead.ends_with(|one: char| one.is_numeric());
    word.chars().count() > 1 && word.chars().all(char::is_alphabetic) && !RAISED.contains(&word) && !inches
}

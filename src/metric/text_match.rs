//! Text matching as a reader would do it: spelling variants that look the same are equal.
//!
//! Both sides are [normalised](crate::trace::normalise). A number matches as a whole: `45` is in neither `1450`, `45.5`,
//! `-45`, `-$45`, `45k` nor `QX45`, and `1,450`, `1 450` and `1'450` equal `1450`. A unit is no part of a number: `45` is in
//! `45 km`, `$45` and `45 %`. A code matches as a whole, too: `A-1042` is in neither `AA-1042` nor `A-1042b`. `exact: true`
//! in a scenario turns all of this off.

mod money;
mod value;

use super::grounding::{is_another_unit, makes_another_unit};
use crate::trace::normalise::{EMPHASIS, normalise};
use crate::trace::text::{CURRENCY_CODES, is_currency};
use money::is_other_money;
use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;
use value::{Value, read_separators};

/// What may stand between the thousands of a number, besides a comma.
const SEPARATORS: [char; 9] =
    [' ', '\u{a0}', '\u{2006}', '\u{2007}', '\u{2009}', '\u{202f}', '\'', '\u{2019}', '\u{2bc}'];

/// Units between two numbers of one word, such as `3x4` and `1h30`.
const INNER_UNITS: [&str; 5] = ["x", "d", "h", "m", "min"];

/// What multiplies the number directly before it. Letters that are as often units, such as metres and bytes, count behind an
/// amount of money.
const SCALES: [&str; 6] = ["k", "bn", "mn", "mio", "mrd", "tn"];
const SCALES_OF_MONEY: [&str; 4] = ["m", "mm", "b", "t"];

/// What joins the ends of a range, in a normalised text: `10 - 20 days`, `10 to 20 days`.
static RANGE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?P<first>[\d%€$£°]) (?:[-—]|to|bis|tot|till|à|a|до) (?P<last>[€$£]?\d)").expect("an expression")
});

/// Words before the number of a provision of law, beside `§`: a letter behind it belongs to it.
const PROVISIONS: [&str; 9] =
    ["art", "artikel", "article", "artículo", "articolo", "artigo", "abs", "absatz", "section"];

/// Whether `text` contains `part`, both normalised; an empty part is in no text. Marks of emphasis alone, such as `**`, of
/// which normalising leaves nothing, are looked for as they are written.
pub(crate) fn contains(text: &str, part: &str) -> bool {
    if part.contains(EMPHASIS) && part.chars().all(|one| EMPHASIS.contains(&one) || one.is_whitespace()) {
        return text.contains(part);
    }
    let lined = |text| has(&on_line(text), &on_line(part));
    has(text, part) || (text.contains(is_index) || part.contains(is_index)) && lined(text)
}

/// Whether `text` contains `part` by its letters and numbers. A range is the same however its ends are joined.
fn has(text: &str, part: &str) -> bool {
    let (text, part) = (normalise(&thousands_joined(text)), normalise(&thousands_joined(part)));
    let ranged = |text| RANGE.replace_all(text, "$first-$last").into_owned();
    let is_range = || RANGE.is_match(&text) || RANGE.is_match(&part);
    has_normal(&text, &part) || part.contains(is_digit) && is_range() && has_normal(&ranged(&text), &ranged(&part))
}

/// Whether a normalised text contains another.
fn has_normal(text: &str, part: &str) -> bool {
    // Without a digit or a character that joins digits there is no number to match as a whole.
    let letters = !part.bytes().any(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b','));
    if letters { !part.is_empty() && text.contains(part) } else { has_tokens(text, part) }
}

/// Whether a character is a digit below the line.
fn is_index(letter: char) -> bool {
    ('₀'..='₉').contains(&letter)
}

/// `text` with the digits of indices on the line: `CO₂` is `CO2`. Behind a digit they are a base, as in `101₂`.
fn on_line(text: &str) -> String {
    let mut inside = false;
    let mut before = ' ';
    let digit = |letter: char| char::from_digit(u32::from(letter).wrapping_sub(0x2080), 10);
    let line = |letter: char| {
        let behind = before.is_alphabetic() || matches!(before, ')' | ']');
        // The point of `PM₂.₅`.
        inside = is_index(letter) && (inside || behind) || inside && letter == '.';
        before = letter;
        digit(letter).filter(|_| inside).unwrap_or(letter)
    };
    text.chars().map(line).collect()
}

/// `text` without separators between thousands: `1 450` and `1'450` are `1450`. It is done before normalisation, for
/// which a line end is a space too.
fn thousands_joined(text: &str) -> Cow<'_, str> {
    if !text.contains(SEPARATORS) || !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return Cow::Borrowed(text);
    }
    let letters: Vec<char> = text.chars().collect();
    let mut joined = String::with_capacity(text.len());
    let mut at = 0;
    while at < letters.len() {
        let end = at + thousands_length(&letters, at).max(digits(&letters[at..])).max(1);
        let separated = end > at + 1;
        joined.extend(letters[at..end].iter().filter(|letter| !separated || letter.is_ascii_digit()));
        at = end;
    }
    Cow::Owned(joined)
}

/// Length of the number with separated thousands at `at`, or 0: groups of three digits after one of one to three, with
/// the same separator, and nothing beside it that makes another thing of it, such as a date or a telephone number.
fn thousands_length(letters: &[char], at: usize) -> usize {
    let before = |back: usize| at.checked_sub(back).map(|at| letters[at]);
    let word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let continued = word(before(1)) || matches!(before(1), Some('.' | ',' | ':' | '/'));
    let first = digits(&letters[at..]);
    if continued || (before(1) == Some('-') && word(before(2))) || !(1..=3).contains(&first) || letters[at] == '0' {
        return 0;
    }
    let mut end = at + first;
    let Some(separator) = letters.get(end).filter(|letter| SEPARATORS.contains(letter)) else { return 0 };
    while letters.get(end) == Some(separator) && digits(&letters[end + 1..]) == 3 {
        end += 4;
    }
    let after = |ahead: usize| letters.get(end + ahead).copied();
    // `2 100ml bottles` and `2 100-page books` are two numbers; a space that does not break is between thousands.
    let counted = word(after(0)) || (after(0) == Some('-') && after(1).is_some_and(char::is_alphabetic));
    let continues = (after(0) == Some(*separator) && after(1).is_some_and(is_digit)) || (*separator == ' ' && counted);
    if end == at + first || continues { 0 } else { end - at }
}

/// Whether normalised `text` contains `part`, compared by tokens: whole numbers and single letters.
fn has_tokens(text: &str, part: &str) -> bool {
    let code = (starts_with_code(part), ends_with_code(part));
    let (text, part) = (tokens(text, false), tokens(part, true));
    let unit = unit_at_end(&part);
    let letter = |at: usize| match text.get(at) {
        Some(Token::Letter(letter)) => Some(*letter),
        _ => None,
    };
    let whole = |start: usize| {
        let number = |at: usize| matches!(text.get(at), Some(Token::Number { .. }));
        let joined = |at: usize| number(at) || letter(at).is_some_and(is_of_word);
        let (before, end) = (start.checked_sub(1), start + part.len());
        let after = letter(end).filter(|letter| is_of_word(*letter));
        // `ESP32s` are several of `ESP32`.
        let several = after == Some('s') && !letter(end + 1).is_some_and(is_of_word);
        let continues = unit.as_ref().is_some_and(|unit| {
            let more = (end..).map_while(letter).take_while(|letter| letter.is_alphabetic());
            let word: String = unit.chars().chain(more).collect();
            let number = text.get(end - unit.chars().count() - 1);
            let worded = matches!(number, Some(Token::Number { scale: Scale::Worded, .. }));
            let power = (letter(end).is_none() && end < text.len()).then_some('2');
            let behind: String = power.into_iter().chain((end..).map_while(letter).take(24)).collect();
            word != *unit && !worded && is_another_unit(unit, &word) || makes_another_unit(unit, &behind)
        });
        let lettered = matches!(text.get(end - 1), Some(Token::Number { scale: Scale::Lettered, .. }));
        !(continues
            || lettered
            || is_other_money(&text, &part, start)
            || code.0 && before.is_some_and(joined)
            || code.1 && after.is_some() && !several)
    };
    let places = text.windows(part.len().max(1)).enumerate().filter(|(_, window)| *window == part.as_slice());
    places.map(|(start, _)| start).any(whole)
}

/// The letters that a text ends with behind a number: the `m` of `5 m`.
fn unit_at_end(tokens: &[Token]) -> Option<String> {
    let letter = |token: &Token| match token {
        Token::Letter(letter) => Some(*letter).filter(|letter| letter.is_alphabetic()),
        Token::Number { .. } => None,
    };
    let length = tokens.iter().rev().map_while(letter).count();
    let (before, unit) = tokens.split_at(tokens.len() - length);
    let number = matches!(before.last(), Some(Token::Number { .. }));
    number.then(|| unit.iter().filter_map(letter).collect()).filter(|unit: &String| !unit.is_empty())
}

/// Whether a normalised text begins with a word that has a digit after a letter, such as `a-1042`.
fn starts_with_code(text: &str) -> bool {
    let word = text.split(|letter| !is_of_code(letter)).next().unwrap_or_default();
    word.starts_with(char::is_lowercase) && word.contains(|letter: char| letter.is_ascii_digit())
}

/// Whether a normalised text ends with a digit of a word that has a letter before it, and no currency or version.
fn ends_with_code(text: &str) -> bool {
    let word = text.rsplit(|letter| !is_of_code(letter)).next().unwrap_or_default();
    let letters = word.trim_end_matches(|letter: char| !letter.is_lowercase());
    let unit = CURRENCY_CODES.contains(&letters) || letters.starts_with(is_digit);
    text.ends_with(is_digit) && !letters.is_empty() && !unit
}

/// Whether a character of a normalised text may be within a code, such as `a-1042` or `tk_9`.
fn is_of_code(letter: char) -> bool {
    is_of_word(letter) || letter == '-'
}

/// Unit of comparison in normalised texts: a whole number, or a single other character.
#[derive(Debug, PartialEq)]
enum Token {
    /// `coded`: within a word, as in `QX45`.
    Number {
        value: Value,
        coded: bool,
        scale: Scale,
    },
    Letter(char),
}

/// Whether what follows a number multiplies it or adds to it.
#[derive(Debug, Clone, Copy)]
enum Scale {
    Plain,
    /// As in `45k` and `45½`.
    Scaled,
    /// As in `§ 45b`, another provision than `§ 45`: equal by itself, but a match does not end before the letter.
    Lettered,
    /// An amount of money with a word, as in `$45 million`: it is written with and without a scale.
    Worded,
}

impl PartialEq for Scale {
    fn eq(&self, other: &Self) -> bool {
        matches!(
            (self, other),
            (Self::Worded, _)
                | (_, Self::Worded)
                | (Self::Plain | Self::Lettered, Self::Plain | Self::Lettered)
                | (Self::Scaled, Self::Scaled)
        )
    }
}

/// The tokens of a normalised text. `expected`: it is what an author looks for.
fn tokens(text: &str, expected: bool) -> Vec<Token> {
    let letters: Vec<char> = text.chars().collect();
    let mut found = Vec::with_capacity(letters.len());
    let mut at = 0;
    while at < letters.len() {
        let minus = usize::from(is_minus(&letters, at));
        let start = at + minus;
        let spaced = letters[at] == ' ' && may_touch_number(&letters[..at]);
        if spaced && number_length(&letters, at + 1) > 0 {
            at += 1;
            continue;
        }
        let length = number_length(&letters, start);
        if length == 0 {
            found.push(Token::Letter(letters[at]));
            at += 1;
            continue;
        }
        let end = start + length;
        let written: String = letters[start..end].iter().collect();
        let sign = if minus == 1 || has_minus_before_currency(&letters, start) { "-" } else { "" };
        found.push(Token::Number {
            value: Value::new(sign, &written, (&letters[..start], &letters[end..]), expected),
            coded: minus == 0 && is_coded(&letters[..start]),
            scale: match scale(&letters[end..], is_money(&letters[..start])) {
                Scale::Plain if has_letter(&letters[end..]) && is_provision(&letters[..start]) => Scale::Lettered,
                scale => scale,
            },
        });
        at = end + usize::from(has_spaced_unit(&letters, start, end));
    }
    read_separators(&mut found);
    found
}

/// Whether the space between a text and a number is optional: `$ 5` is `$5`, `§ 5` is `§5`, `Art. 5` is `Art.5`.
fn may_touch_number(before: &[char]) -> bool {
    match before {
        [.., letter, '.'] => letter.is_alphabetic(),
        [.., sign] => is_currency(*sign) || matches!(sign, '§' | '№'),
        [] => false,
    }
}

/// Whether a number after `before` is that of a provision of law.
fn is_provision(before: &[char]) -> bool {
    let before = before.strip_suffix(&[' ']).unwrap_or(before);
    let words = before.strip_suffix(&['.']).unwrap_or(before);
    let length = words.iter().rev().take_while(|letter| letter.is_alphabetic()).count();
    let word: String = words[words.len() - length..].iter().collect();
    before.ends_with(&['§']) || PROVISIONS.contains(&word.as_str())
}

/// Whether one letter stands directly `after` a number: `312g`. `312f.` may be "312 and the next".
fn has_letter(after: &[char]) -> bool {
    match after {
        [letter, next, ..] if is_of_word(*next) || (*letter, *next) == ('f', '.') => false,
        [letter, ..] => letter.is_lowercase(),
        [] => false,
    }
}

/// Whether a space stands between the number in `start..end`, which is no code and no version, and a unit or another word: `5 km` is `5km`,
/// `50 %` is `50%`.
fn has_spaced_unit(letters: &[char], start: usize, end: usize) -> bool {
    let [' ', after, ..] = &letters[end..] else { return false };
    let unit = after.is_alphabetic() || matches!(after, '%' | '‰' | '°') || is_currency(*after);
    let is_letter = |back: usize| start.checked_sub(back).is_some_and(|at| letters[at].is_alphabetic());
    let behind = |mark: char| start > 0 && letters[start - 1] == mark;
    let code = || is_coded(&letters[..start]) || behind('v') && !is_letter(2) || behind('-') && is_letter(2);
    unit && !code()
}

/// Whether the character at `at` is a minus: it belongs to what follows, unless it joins it to a word, to another
/// number, or to the unit of one, as in `5%-10%`.
fn is_minus(letters: &[char], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map(|at| letters[at]);
    let unit = |letter: char| letter == '%' || letter == '°' || is_currency(letter);
    let joins = match before(1) {
        Some(letter) if unit(letter) => before(2 + usize::from(before(2) == Some(' '))).is_some_and(is_digit),
        Some(letter) => letter.is_alphanumeric() || matches!(letter, ')' | ']'),
        None => false,
    };
    letters.get(at) == Some(&'-') && !joins
}

/// Whether a minus stands before the currency of the number at `at`, as in `-$45`, `-US$45` and `-EUR 45`.
fn has_minus_before_currency(letters: &[char], at: usize) -> bool {
    let mut start = at - usize::from(at > 0 && letters[at - 1] == ' ');
    let word = |end: usize| letters[..end].iter().rev().take_while(|letter| letter.is_lowercase()).count();
    if start > 0 && is_currency(letters[start - 1]) {
        start -= 1;
        start -= word(start);
    } else {
        let code: String = letters[start - word(start)..start].iter().collect();
        if !CURRENCY_CODES.contains(&code.as_str()) {
            return false;
        }
        start -= word(start);
    }
    start > 0 && is_minus(letters, start - 1)
}

/// Whether a number after `before` is part of a code: letters stand directly before it, as in `QX45`. In scripts without
/// upper and lower case a number follows a word without a space.
fn is_coded(before: &[char]) -> bool {
    let length = before.iter().rev().take_while(|letter| is_of_word(**letter)).count();
    let word: String = before[before.len() - length..].iter().collect();
    let inner = word.starts_with(is_digit)
        && INNER_UNITS.iter().any(|unit| word.strip_suffix(unit).is_some_and(|rest| rest.ends_with(is_digit)))
        && word != "0x";
    // The `v` is that of a version.
    !(word.is_empty() || inner || word == "v" || CURRENCY_CODES.contains(&word.as_str()))
}

/// Whether a currency stands at the end of a text.
fn is_money(before: &[char]) -> bool {
    let before = before.strip_suffix(&[' ']).unwrap_or(before);
    let length = before.iter().rev().take_while(|letter| letter.is_lowercase()).count();
    let code: String = before[before.len() - length..].iter().collect();
    before.last().is_some_and(|last| is_currency(*last)) || code != "try" && CURRENCY_CODES.contains(&code.as_str())
}

/// What stands `after` a number and changes its value: a scale (`45k`, `$45m`), an exponent (`45e3`, `45×10^3`) or a fraction (`45½`).
fn scale(after: &[char], is_money: bool) -> Scale {
    let word: String = after.iter().take_while(|letter| is_of_word(**letter)).collect();
    let fraction = matches!(after.first(), Some('¼'..='¾' | '⅐'..='⅞' | '⁄'));
    let power = matches!(after, ['×' | '*', '1', '0', '^' | '⁰'..='⁹' | '²' | '³', ..]);
    let signed = word == "e" && matches!(after, [_, '+' | '-', digit, ..] if digit.is_ascii_digit());
    let exponent = word.strip_prefix('e').is_some_and(|rest| !rest.is_empty() && rest.chars().all(is_digit));
    let money = is_money && SCALES_OF_MONEY.contains(&word.as_str());
    if fraction || power || signed || exponent || money || SCALES.contains(&word.as_str()) {
        return Scale::Scaled;
    }
    let spaced: String = after.iter().skip(1).take(7).collect();
    let in_words = after.first() == Some(&' ') && ["million", "billion", "trillio"].contains(&spaced.as_str());
    if is_money && in_words { Scale::Worded } else { Scale::Plain }
}

/// Whether a character of a normalised text, which has no upper case, belongs to a code or a unit.
fn is_of_word(letter: char) -> bool {
    letter.is_lowercase() || letter.is_ascii_digit() || letter == '_'
}

fn is_digit(letter: char) -> bool {
    letter.is_ascii_digit()
}

fn digits(letters: &[char]) -> usize {
    letters.iter().take_while(|letter| letter.is_ascii_digit()).count()
}

/// Length of the number at `at`: digits, joined by single points or commas, or a point and digits, as in `.5`.
fn number_length(letters: &[char], at: usize) -> usize {
    let before = at.checked_sub(1).map(|at| letters[at]);
    let continued = before.is_some_and(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '.' | ')' | ']'));
    let point = usize::from(letters.get(at) == Some(&'.') && !continued);
    let letters = letters.get(at + point..).unwrap_or_default();
    let mut length = digits(letters);
    if length == 0 {
        return 0;
    }
    while matches!(letters.get(length), Some('.' | ',')) {
        match digits(&letters[length + 1..]) {
            0 => break,
            more => length += 1 + more,
        }
    }
    point + length
}

#[cfg(test)]
mod tests;

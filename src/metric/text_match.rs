//! Text matching as a reader would do it: spelling variants that look the same are equal.
//!
//! Both sides are [normalised](crate::trace::normalise). A number matches as a number: `45` is in neither `1450`, `45.5` nor
//! `-45`, and `1,450` equals `1450`. `exact: true` in a scenario turns all of this off.

use crate::trace::normalise::normalise;

/// Whether `text` contains `part`, both normalised; an empty part is in no text.
pub(super) fn contains(text: &str, part: &str) -> bool {
    let (text, part) = (normalise(text), normalise(part));
    // Without a digit or a character that joins digits there is no number to match as a whole.
    let letters = !part.bytes().any(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b','));
    if letters { !part.is_empty() && text.contains(&part) } else { has_tokens(&text, &part) }
}

/// Whether normalised `text` contains `part`, compared by tokens: whole numbers and single letters.
fn has_tokens(text: &str, part: &str) -> bool {
    let (text, part) = (tokens(text), tokens(part));
    !part.is_empty() && text.windows(part.len()).any(|window| window == part.as_slice())
}

/// Unit of comparison in normalised texts: a whole number, or a single other character.
#[derive(Debug, PartialEq, Eq)]
enum Token {
    Number(String),
    Letter(char),
}

fn tokens(text: &str) -> Vec<Token> {
    let letters: Vec<char> = text.chars().collect();
    let mut found = Vec::with_capacity(letters.len());
    let mut at = 0;
    while at < letters.len() {
        // A minus belongs to the number after it, unless it joins it to a word or to another number.
        let joined = at > 0 && (letters[at - 1].is_alphanumeric() || matches!(letters[at - 1], ')' | ']'));
        let minus = usize::from(letters[at] == '-' && !joined);
        let length = number_length(&letters[at + minus..]);
        if length == 0 {
            found.push(Token::Letter(letters[at]));
            at += 1;
            continue;
        }
        let digits: String = letters[at + minus..at + minus + length].iter().collect();
        let sign = if minus == 1 { "-" } else { "" };
        found.push(Token::Number(format!("{sign}{}", value(&digits))));
        at += minus + length;
    }
    found
}

/// Length of the number at the start of `letters`: digits, joined by single points or commas.
fn number_length(letters: &[char]) -> usize {
    let digits = |from: usize| letters[from..].iter().take_while(|letter| letter.is_ascii_digit()).count();
    let mut length = digits(0);
    while length > 0 && matches!(letters.get(length), Some('.' | ',')) {
        match digits(length + 1) {
            0 => break,
            more => length += 1 + more,
        }
    }
    length
}

/// Canonical spelling of a number: no thousands separators, a decimal point, no trailing zeros. Anything else, such
/// as a version or a date, is unchanged.
fn value(written: &str) -> String {
    let groups: Vec<&str> = written.split(',').collect();
    let whole = groups[groups.len() - 1].split('.').next().unwrap_or_default();
    let thousands = groups.len() > 1
        && (1..=3).contains(&groups[0].len())
        && !groups[0].starts_with('0')
        && !groups[0].contains('.')
        && groups[1..groups.len() - 1].iter().all(|group| group.len() == 3)
        && whole.len() == 3;
    let plain = match (thousands, groups.len()) {
        (true, _) => groups.concat(),
        (false, 2) if !written.contains('.') => groups.join("."),
        _ => written.to_owned(),
    };
    if plain.matches(['.', ',']).count() == 1 && plain.contains('.') {
        return plain.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_looks_the_same_is_the_same_on_both_sides() {
        for (text, part) in [
            ("The warranty is 24\u{a0}months.", "24 months"),
            ("24\nmonths", "24 months"),
            ("24 months", "24\u{202f}months"),
            ("cafe\u{301}", "café"),
            ("café", "cafe\u{301}"),
            ("HAUPTSTRASSE 5", "straße"),
            ("İSTANBUL", "istanbul"),
            ("η οδος", "ΟΔΟΣ"),
            ("the sec\u{200b}ret", "secret"),
            ("the ｓｅｃｒｅｔ", "secret"),
            ("ﬁlter", "Filter"),
            ("I do **not** know", "do not know"),
            ("I do _not_ know", "do not know"),
            ("I do ***not*** `know`", "do not know"),
            ("I don’t know", "don't know"),
            ("a non\u{2011}return valve", "non-return valve"),
            ("call `index_keywords` now", "index_keywords"),
            ("**un**believable", "unbelievable"),
        ] {
            assert!(contains(text, part), "{text:?} has {part:?}");
        }
    }

    #[test]
    fn what_differs_for_a_reader_differs() {
        for (text, part) in [
            ("index_keywords", "indexkeywords"),
            ("2*3", "23"),
            ("a * b", "a b"),
            ("the word", "sword"),
            ("anything", ""),
            ("anything", "**"),
        ] {
            assert!(!contains(text, part), "{text:?} has no {part:?}");
        }
    }

    #[test]
    fn a_number_matches_as_a_number() {
        for (text, part) in [
            ("it is 45.", "45"),
            ("it is 45, or 46", "45"),
            ("45km", "45"),
            ("E-21 means", "E-21"),
            ("E-21 means", "21"),
            ("3-5 days", "5"),
            ("1,450 metres", "1450"),
            ("1450 metres", "1,450 metres"),
            ("4.50 euro", "4.5 euro"),
            ("1,5 bar", "1.5 bar"),
            ("it is −5 degrees", "-5 degrees"),
            ("on 2026-03-01", "2026"),
            ("firmware 7.3.1", "7.3.1"),
            ("**24** months", "24 months"),
        ] {
            assert!(contains(text, part), "{text:?} has {part:?}");
        }
        for (text, part) in [
            ("it is 1450 metres", "45"),
            ("145", "45"),
            ("450", "45"),
            ("45.5", "45"),
            ("3.45", "45"),
            ("1,450", "450"),
            ("it is -5 degrees", "5 degrees"),
            ("it is -5 degrees", "5"),
            ("firmware 7.3.1", "7.3"),
            ("124 months", "24 months"),
            ("code 007", "7"),
        ] {
            assert!(!contains(text, part), "{text:?} has no {part:?}");
        }
    }

    proptest! {
        #[test]
        fn a_part_without_digits_is_found_as_number_by_number(
            text in "[ab1.,-]{0,12}", part in "[ab _*]{1,4}", start in 0..12_usize, length in 1..4_usize,
        ) {
            let own = text.get(start..(start + length).min(text.len())).unwrap_or("a");
            for part in [part.as_str(), own] {
                prop_assert_eq!(contains(&text, part), has_tokens(&normalise(&text), &normalise(part)), "{:?}", part);
            }
        }

        #[test]
        fn a_text_has_itself_and_what_is_normalised_stays_as_it_is(text in "[ a-zÄßİς0-9.,*_`~\u{a0}\u{200b}-]{0,40}") {
            let once = normalise(&text);
            prop_assume!(!once.is_empty());
            prop_assert!(contains(&text, &text), "{:?}", text);
            let within = format!("before {text} after");
            prop_assert!(contains(&within, &text) || once.contains(['*', '_', '~', '-']));
        }
    }
}

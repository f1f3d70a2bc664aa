//! Dates and times in words, such as `Saturday, 28 November 2026, 23:58` or `11/28/2026`: each is one value, of which all parts
//! change from one day to the next.

use super::surroundings::words;
use regex::{Regex, escape};
use std::sync::LazyLock;

/// A word of a text with its offset.
type Word<'t> = (usize, &'t str);

static DATES: LazyLock<Regex> = LazyLock::new(|| {
    let weekday = r"(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?\.?,?\s)?";
    let month = "(?:Jan(?:uary?)?|Feb(?:ruary?)?|Mar(?:ch)?|März|Apr(?:il)?|May|Mai|June?|Juni|July?|Juli|Aug(?:ust)?|\
                 Sept?(?:ember)?|O[ck]t(?:ober)?|Nov(?:ember)?|De[cz](?:ember)?)";
    let (day, year) = (r"\d{1,2}(?:st|nd|rd|th|\.)?", r"(?:19|20)\d{2}");
    let time = r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:\s?[AaPp]\.?[Mm]\b\.?)?";
    Regex::new(
        &format!(
            r"\b(?:{weekday}(?:{day}\s(?:of\s|de\s)?{month}\.?,?\s(?:of\s|de\s)?{year}|{month}\.?\s{day},?\s{year}
          |{month}\b\.?\s{day}(?:,?\s{year})?|{day}\s(?:of\s)?{month}\b\.?
          |\d{{1,2}}/\d{{1,2}}/{year}|{year}/\d{{1,2}}/\d{{1,2}}|\d{{1,2}}\.\d{{1,2}}\.{year})\b
          (?:(?:,|\.|\s[-–])?\s(?:\p{{L}}{{1,3}}\s)?{time}(?:\s(?:GMT|UTC)[+-]\d{{4}})?(?:\s{year}\b)?)?
          |\d{{1,2}}:\d{{2}}(?::\d{{2}})?\s[AaPp]\.?[Mm]\b)"
        )
        .replace("\n          ", ""),
    )
    .expect("an expression")
});

/// The words of two texts that are the same between their words, each date as one if they are so then; `None` of other texts.
pub(super) fn aligned<'t>(before: &'t str, now: &'t str) -> Option<(Vec<Word<'t>>, Vec<Word<'t>>)> {
    let ways: [fn(&str) -> Vec<Word<'_>>; 2] = [with_dates, words];
    let mut split = ways.into_iter().map(|way| (way(before), way(now)));
    split.find(|(ours, theirs)| is_aligned((ours, before), (theirs, now)))
}

/// Whether two texts are the same between their words.
fn is_aligned((ours, before): (&[Word<'_>], &str), (theirs, now): (&[Word<'_>], &str)) -> bool {
    let between = |words: &[Word<'_>], text: &str| -> Vec<String> {
        let mut ends = 0;
        let gaps = words.iter().map(|(begin, word)| {
            let gap = text[ends..*begin].to_owned();
            ends = begin + word.len();
            gap
        });
        let mut gaps: Vec<String> = gaps.collect();
        gaps.push(text[ends..].to_owned());
        gaps
    };
    ours.len() == theirs.len() && between(ours, before) == between(theirs, now)
}

fn with_dates(text: &str) -> Vec<Word<'_>> {
    let mut found = words(text);
    for date in DATES.find_iter(text) {
        let within = |(begin, word): &Word<'_>| *begin < date.end() && begin + word.len() > date.start();
        let (Some(first), Some(last)) = (found.iter().position(within), found.iter().rposition(within)) else {
            continue;
        };
        let (begin, end) = (found[first].0, found[last].0 + found[last].1.len());
        found.splice(first..=last, [(begin, &text[begin..end])]);
    }
    found
}

/// Whether a word is several.
pub(super) fn is_joined(word: &str) -> bool {
    word.contains(|letter: char| letter.is_whitespace() || letter == '/')
}

/// An expression for dates that are written like this one: names have other letters, and days one digit or two.
pub(super) fn shape(date: &str) -> String {
    let (mut out, mut rest) = (String::new(), date);
    while let Some(first) = rest.chars().next() {
        let same = |letter: char| match first {
            _ if first.is_ascii_digit() => letter.is_ascii_digit(),
            _ => first.is_alphabetic() && letter.is_alphabetic(),
        };
        let end = rest.find(|letter| !same(letter)).unwrap_or(rest.len()).max(first.len_utf8());
        let (part, after) = rest.split_at(end);
        rest = after;
        match part.len() {
            1 | 2 if first.is_ascii_digit() => out.push_str(r"\d{1,2}"),
            4 if first.is_ascii_digit() => out.push_str(r"\d{4}"),
            _ if first.is_ascii_digit() => out.push_str(r"\d+"),
            _ if first.is_alphabetic() => {
                out.push_str(r"\p{L}+");
                // `May` is no abbreviation.
                if let Some(after) = rest.strip_prefix('.') {
                    out.push_str(r"\.?");
                    rest = after;
                }
            }
            _ => out.push_str(&escape(part).replace("\\-", "-")),
        }
    }
    out
}

//! Dates and times in words, such as `Saturday, 28 November 2026, 23:58` or `11/28/2026`: each is one value, of which all parts
//! change from one day to the next.

use super::surroundings::words;
use jiff::civil::{Date, Time};
use regex::{Regex, escape};
use std::ops::Range;
use std::sync::LazyLock;

/// A word of a text with its offset.
type Word<'t> = (usize, &'t str);

const DAY: &str = r"\d{1,2}(?:st|nd|rd|th|\.)?";
const YEAR: &str = r"(?:19|20)\d{2}";
const CLOCK: &str = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?[AaPp](?:[Mm]\b|\.[Mm]\b\.?))?";
/// The zone after a time, with its name.
const ZONE: &str = r"(?:\s?Z\b|[+-](?:0\d|1[0-4]):?\d{2}\b|\s(?:GMT|UTC|[A-Z]{3,4}\b)(?:[+-]\d{1,2}(?::?\d{2})?\b)?(?:\s\(\p{L}[\p{L} .'-]*\))?)?";

static DATES: LazyLock<Regex> = LazyLock::new(|| {
    let weekday =
        r"(?:(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?|\p{Lu}\p{Ll}+tag|Mittwoch)\.?,?\s)?";
    let month = "(?:Jan(?:uary?)?|Feb(?:ruary?)?|Mar(?:ch)?|März|Apr(?:il)?|May|Mai|June?|Juni|July?|Juli|Aug(?:ust)?|\
                 Sept?(?:ember)?|O[ck]t(?:ober)?|Nov(?:ember)?|De[cz](?:ember)?)";
    let (day, year) = (DAY, YEAR);
    Regex::new(
        &format!(
            r"\b(?:(?:{CLOCK}{ZONE},?\s(?:\p{{L}}{{1,3}}\s)?)?
          {weekday}(?:{day}\s(?:of\s|de\s)?{month}\.?,?\s(?:of\s|de\s)?{year}|{month}\.?\s{day},?\s{year}
          |{month}\b\.?\s{day}(?:,?\s{year})?|{day}\s(?:of\s)?{month}\b\.?|{month}\.?,?\s{year}
          |\d{{1,2}}/\d{{1,2}}/{year}|{year}/\d{{1,2}}/\d{{1,2}}|\d{{1,2}}\.\d{{1,2}}\.{year}
          |{year}-\d{{2}}-\d{{2}}(?:T{CLOCK}{ZONE})?)\b
          (?:(?:,|\.|\s[-–])?\s(?:\p{{L}}{{1,3}}\s)?{CLOCK}{ZONE}(?:\s{year}\b)?)?
          |\d{{1,2}}:\d{{2}}(?::\d{{2}})?\s[AaPp]\.?[Mm]\b)"
        )
        .replace("\n          ", ""),
    )
    .expect("an expression")
});

/// A date with a month's name in any language.
static IN_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    let tail = format!(r"(?:,?\s(?:\p{{L}}{{1,3}}\s)?{CLOCK}{ZONE})?");
    let month = r"(?:of\s|de\s)?\p{L}{3,}\.?,?\s(?:del?\s)?";
    Regex::new(&format!(r"\b(?:\p{{L}}{{2,}},?\s)?{DAY}\s{month}{YEAR}\b{tail}")).expect("an expression")
});

static TIMES: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&format!(r"(?:\b|T){CLOCK}{ZONE}")).expect("an expression"));

/// The zone at the end of a time in digits.
static OFFSET: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(:\d{2}(?:[.,]\d+)?)(?:Z|[+-]\d{2}:?\d{2})$").expect("an expression"));

/// The present: its dates in all time zones, and its times in some.
pub(crate) struct Now {
    pub days: Vec<Date>,
    pub times: Vec<Time>,
}

/// Minutes for which a time counts as the present one.
const RECENT: i32 = 5;

impl Now {
    /// The dates and times in a text that are the present ones.
    pub(crate) fn in_text<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for expression in [&*DATES, &*IN_WORDS, &*TIMES] {
            for one in expression.find_iter(text) {
                let is_new = found.iter().all(|known| known.end <= one.start() || one.end() <= known.start);
                if is_new && self.is_present(one.as_str()) {
                    found.push(one.range());
                }
            }
        }
        found.into_iter().map(|range| &text[range]).collect()
    }

    /// Whether a date with a year or a weekday is one of the days, or a time without a date one of the times.
    fn is_present(&self, value: &str) -> bool {
        let date = TIMES.replace_all(value, " ");
        let digits = |letter: char| !letter.is_ascii_digit();
        let numbers: Vec<i16> = date.split(digits).filter_map(|number| number.parse().ok()).collect();
        if numbers.is_empty() {
            return self.times.iter().any(|time| is_at(value, *time));
        }
        let names: Vec<String> = date
            .split(|letter: char| !letter.is_alphabetic())
            .filter(|word| word.chars().count() > 2)
            .map(str::to_lowercase)
            .collect();
        self.days.iter().any(|day| {
            let (year, month, number) = (day.year(), i16::from(day.month()), i16::from(day.day()));
            let has_year = numbers.contains(&year);
            let others: Vec<i16> = numbers.iter().copied().filter(|one| *one != year).collect();
            let weekday = day.strftime("%a").to_string().to_lowercase();
            let is_dated = has_year || names.iter().any(|name| name.starts_with(&weekday));
            let mut months = names.iter().filter_map(|name| month_of(name)).peekable();
            let is_unknown = has_year && months.peek().is_none();
            is_dated
                && match others[..] {
                    [one, other] => (one, other) == (month, number) || (one, other) == (number, month),
                    [one] => one == number && (is_unknown || months.any(|known| known == month)),
                    _ => false,
                }
        })
    }
}

/// The month that a name in lower case begins like.
fn month_of(name: &str) -> Option<i16> {
    const NAMES: [&[&str]; 12] = [
        &["jan"],
        &["feb"],
        &["mar", "mär"],
        &["apr"],
        &["may", "mai"],
        &["jun"],
        &["jul"],
        &["aug"],
        &["sep"],
        &["oct", "okt"],
        &["nov"],
        &["dec", "dez"],
    ];
    (1..).zip(NAMES).find(|(_, names)| names.iter().any(|begin| name.starts_with(begin))).map(|(month, _)| month)
}

/// Whether a text is a time of the last minutes before `now`. Without seconds, a quarter of an hour may be a fixed one, as
/// of opening hours.
fn is_at(value: &str, now: Time) -> bool {
    let mut parts = value.split(|letter: char| !letter.is_ascii_digit()).map_while(|part| part.parse::<i32>().ok());
    let (Some(hours), Some(minutes)) = (parts.next(), parts.next()) else { return false };
    let is_exact = parts.next().is_some() || minutes % 15 != 0;
    let half = value.to_ascii_lowercase();
    let hours = match (half.contains('p'), half.contains("am") || half.contains("a.m")) {
        (true, _) if hours < 12 && half.trim_end_matches('.').ends_with('m') => hours + 12,
        (_, true) if hours == 12 => 0,
        _ => hours,
    };
    let since = i32::from(now.hour()) * 60 + i32::from(now.minute()) - hours * 60 - minutes;
    is_exact && hours < 24 && minutes < 60 && since.rem_euclid(24 * 60) <= RECENT
}

/// The words of two texts that are the same between their words, each date as one if they are so then; `None` of other texts.
pub(super) fn aligned<'t>(before: &'t str, now: &'t str) -> Option<(Vec<Word<'t>>, Vec<Word<'t>>)> {
    let ways: [fn(&str) -> Vec<Word<'_>>; 2] = [with_dates, with_edges];
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

/// Words; one of letters and digits, perhaps a random id, includes the `-` and `_` at its ends.
fn with_edges(text: &str) -> Vec<Word<'_>> {
    let is_edge = |letter: char| matches!(letter, '-' | '_');
    let with = |(begin, word): Word<'_>| {
        if !(word.contains(char::is_alphabetic) && word.contains(|letter: char| letter.is_ascii_digit())) {
            return (begin, begin + word.len());
        }
        let end = begin + word.len();
        let behind = &text[end..];
        (text[..begin].trim_end_matches(is_edge).len(), text.len() - behind.trim_start_matches(is_edge).len())
    };
    words(text).into_iter().map(with).map(|(begin, end)| (begin, &text[begin..end])).collect()
}

fn with_dates(text: &str) -> Vec<Word<'_>> {
    let mut found = with_edges(text);
    for date in DATES.find_iter(text) {
        let within = |(begin, word): &Word<'_>| *begin < date.end() && begin + word.len() > date.start();
        let (Some(first), Some(last)) = (found.iter().position(within), found.iter().rposition(within)) else {
            continue;
        };
        // The name of a zone ends with a bracket, which is in no word.
        let begin = found[first].0;
        let end = if date.as_str().ends_with(')') { date.end() } else { found[last].0 + found[last].1.len() };
        found.splice(first..=last, [(begin, &text[begin..end])]);
    }
    found
}

/// Whether a word is a date of several words, or a date with a time.
pub(super) fn is_joined(word: &str) -> bool {
    word.contains(|letter: char| letter.is_whitespace() || letter == '/') || word.contains('T') && is_date(word)
}

/// Whether a text is a date as a whole.
pub(super) fn is_date(text: &str) -> bool {
    DATES.find(text).is_some_and(|found| found.len() == text.len())
}

/// An expression for dates that are written like this one: names have other letters, days one digit or two, and zones another
/// offset.
pub(super) fn shape(date: &str) -> String {
    if let Some(found) = OFFSET.captures(date) {
        let end = found.get(1).map_or(date.len(), |time| time.end());
        return format!(r"{}(?:Z|[+-]\d{{2}}:?\d{{2}})", shape(&date[..end]));
    }
    let (mut out, mut rest) = (String::new(), date);
    while let Some(first) = rest.chars().next() {
        let before = &date[..date.len() - rest.len()];
        let same = |letter: char| match first {
            '(' => letter != ')',
            _ if first.is_ascii_digit() => letter.is_ascii_digit(),
            _ => first.is_alphabetic() && letter.is_alphabetic(),
        };
        let end = rest.find(|letter| !same(letter)).unwrap_or(rest.len()).max(first.len_utf8());
        let (part, after) = rest.split_at(end);
        rest = after;
        match part.len() {
            _ if first == '(' => out.push_str(r"\([^()]*"),
            // A fraction of a second.
            _ if first.is_ascii_digit() && before.contains(':') && before.ends_with(['.', ',']) => out.push_str(r"\d+"),
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
            _ if matches!(first, '+' | '-') && before.contains(':') => out.push_str("[+-]"),
            _ => out.push_str(&escape(part).replace("\\-", "-")),
        }
    }
    out
}

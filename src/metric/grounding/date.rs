//! Dates in a text: `2026-11-24`, also before a time, `2026/11/24`, `24 November 2026`, `24-Nov-2026`, `November 24th`, `24.11.2026`,
//! `2026年11月24日`; and days that share the month beside them: `24, 25 and 26 December`.

use super::behind::labels;
use super::units::unit_of;
use regex::{Captures, Regex};
use std::sync::LazyLock;

/// A date, as far as it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Date {
    /// Where it stands, in bytes.
    pub start: usize,
    pub end: usize,
    pub year: Option<u32>,
    /// Possible pairs of month and day: `03/04` may be either way round.
    pub month_day: Vec<(u32, Option<u32>)>,
}

/// Names of the months, from January, in the languages that `languages.yaml` of a project commonly has.
const MONTHS: [&[&str]; 12] = [
    &[
        "january", "jan", "januar", "janvier", "enero", "gennaio", "janeiro", "januari", "января", "январь",
        "stycznia", "styczeń", "ledna", "leden", "ocak", "tammikuuta",
    ],
    &[
        "february", "feb", "februar", "février", "febrero", "febbraio", "fevereiro", "februari", "февраля", "февраль",
        "lutego", "luty", "února", "únor", "şubat", "helmikuuta",
    ],
    &[
        "march", "mar", "märz", "mars", "marzo", "março", "maart", "marts", "марта", "март", "marca", "marzec",
        "března", "březen", "mart", "maaliskuuta",
    ],
    &[
        "april", "apr", "avril", "abril", "aprile", "апреля", "апрель", "kwietnia", "kwiecień", "dubna", "duben",
        "nisan", "huhtikuuta",
    ],
    &[
        "may", "mai", "mayo", "maggio", "maio", "mei", "maj", "мая", "май", "maja", "května", "květen", "mayıs",
        "toukokuuta",
    ],
    &[
        "june", "jun", "juni", "juin", "junio", "giugno", "junho", "июня", "июнь", "czerwca", "czerwiec", "června",
        "červen", "haziran", "kesäkuuta",
    ],
    &[
        "july", "jul", "juli", "juillet", "julio", "luglio", "julho", "июля", "июль", "lipca", "lipiec", "července",
        "červenec", "temmuz", "heinäkuuta",
    ],
    &[
        "august", "aug", "août", "agosto", "augustus", "augusti", "августа", "август", "sierpnia", "sierpień", "srpna",
        "srpen", "ağustos", "elokuuta",
    ],
    &[
        "september", "sep", "sept", "septembre", "septiembre", "settembre", "setembro", "сентября", "сентябрь",
        "września", "wrzesień", "září", "eylül", "syyskuuta",
    ],
    &[
        "october", "oct", "oktober", "okt", "octobre", "octubre", "ottobre", "outubro", "октября", "октябрь",
        "października", "październik", "října", "říjen", "ekim", "lokakuuta",
    ],
    &[
        "november", "nov", "novembre", "noviembre", "novembro", "ноября", "ноябрь", "listopada", "listopad",
        "listopadu", "kasım", "marraskuuta",
    ],
    &[
        "december", "dec", "dezember", "dez", "décembre", "diciembre", "dicembre", "dezembro", "desember", "декабря",
        "декабрь", "grudnia", "grudzień", "prosince", "prosinec", "aralık", "joulukuuta",
    ],
];

static DATE: LazyLock<Regex> = LazyLock::new(|| {
    let mut names: Vec<&str> = MONTHS.iter().flat_map(|names| names.iter().copied()).collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let month = format!("(?:{})", names.join("|"));
    let day = r"\d{1,2}(?:st|nd|rd|th)?";
    Regex::new(&format!(
        r"(?ix)\b(?:
            (?P<iy>\d{{4}})[-/](?P<im>\d{{2}})[-/](?P<id>\d{{2}})(?:T\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?
          | (?P<ad>\d{{1,2}})[./](?P<am>\d{{1,2}})[./](?P<ay>\d{{4}}|\d{{2}})
          | (?P<dd>{day})(?:\.?\s+(?:of\s+|de\s+)?|-)(?P<dm>{month})\b\.?(?:(?:,?\s+(?:de\s+)?|-)(?P<dy>\d{{4}}))?
          | (?P<mm>{month})\b\.?\s+(?P<md>{day})\b(?:\s*,?\s+(?P<my>\d{{4}}))?
          | (?P<ym>{month})\b\.?\s*,?\s+(?:of\s+)?(?P<yy>\d{{4}})
        )\b
        | (?:(?P<cy>\d{{4}})[年년]\s?)?(?P<cm>\d{{1,2}})[月월]\s?(?P<cd>\d{{1,2}})[日일号號]"
    ))
    .expect("an expression")
});

/// The dates of a text, in order.
pub(super) fn dates(text: &str) -> Vec<Date> {
    let read = |parts: regex::Captures<'_>| {
        let whole = parts.get(0)?;
        let number = |name: &str| {
            let digits = parts.name(name)?.as_str().trim_end_matches(|letter: char| letter.is_alphabetic());
            digits.parse::<u32>().ok()
        };
        let month = |name: &str| {
            let word = parts.name(name)?.as_str().to_lowercase();
            (1..).zip(MONTHS).find(|(_, names)| names.contains(&word.as_str())).map(|(month, _)| month)
        };
        let (year, month_day) = if let Some(first) = number("ad") {
            let second = number("am")?;
            let year =
                number("ay").map(|year| if year < 100 { year + if year < 70 { 2000 } else { 1900 } } else { year });
            (year, vec![(second, Some(first)), (first, Some(second))])
        } else if let Some(month) = number("im") {
            (number("iy"), vec![(month, number("id"))])
        } else if let Some(month) = number("cm") {
            (number("cy"), vec![(month, number("cd"))])
        } else if let Some(month) = month("dm") {
            (number("dy"), vec![(month, number("dd"))])
        } else if let Some(month) = month("mm") {
            (number("my"), vec![(month, number("md"))])
        } else {
            (number("yy"), vec![(month("ym")?, None)])
        };
        let valid = |(month, day): &(u32, Option<u32>)| {
            (1..=12).contains(month) && day.is_none_or(|day| (1..=31).contains(&day))
        };
        let month_day: Vec<_> = month_day.into_iter().filter(valid).collect();
        let valid_year = year.is_none_or(|year| (1000..2200).contains(&year));
        // The time behind the day is none of the date.
        let end = parts.name("id").map_or(whole.end(), |day| day.end());
        (valid_year && !month_day.is_empty()).then(|| Date { start: whole.start(), end, year, month_day })
    };
    DATE.captures_iter(text).filter_map(read).collect()
}

/// Words between the days of a list, and between those of a range.
const AND: &str = "and|&|or|und|oder|et|ou|y|e|o|en|och|og";
const TO: &str = "to|until|till|through|bis|au|al?|tot|til|and|et|y|und";

/// The days of a text that take their month from the date beside them: `24, 25 and 26 December`, `March 5–7`.
pub(super) fn sharing(text: &str, dates: &[Date]) -> Vec<Date> {
    static BEFORE: LazyLock<Regex> = LazyLock::new(|| {
        let day = r"\d{1,2}(?:st|nd|rd|th|er|º)?\.?";
        let article = r"(?:(?:the|le|el|den|zum|am)\s)?";
        let (list, range) =
            (format!(r"(?:{day},\s)*{day},?\s(?:{AND})\s"), format!(r"{day}(?:\s(?:{TO})\s|\s?[-–—/]\s?)"));
        Regex::new(&format!(r"(?i)(?P<last>\p{{L}}*)[\s(>|*„]*(?:^|[\s(>|*„])(?P<days>{list}|{range}){article}$"))
            .expect("an expression")
    });
    static BEHIND: LazyLock<Regex> = LazyLock::new(|| {
        let day = r"\d{1,2}(?:st|nd|rd|th)?";
        let end = r"(?:\s?[)!?|*;]|[.,:](?:\D|$)|\n|,?\s\d{4}\b|$)";
        let (list, range) = (format!(r"(?:,\s{day})*,?\s(?:{AND})\s{day}"), format!(r"\s(?:(?:{TO})|[-–—])\s{day}"));
        Regex::new(&format!(r"(?i)^(?:(?P<days>{list}|{range}){end}|(?P<joined>[-–—]{day})(?:\s\p{{L}}{{3}}|{end}))"))
            .expect("an expression")
    });
    // `We sold 30 and 31 May is the last day`, `2 or 3 May be added`.
    static VERB: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^\s(?:is|was|be|has|ist|war|est|es|è)\b").expect("an expression"));
    static DAY: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(\d{1,2})[\p{L}]{0,2}\.?").expect("an expression"));
    let mut found = Vec::new();
    for (at, date) in dates.iter().enumerate() {
        let from = at.checked_sub(1).map_or(0, |before| dates[before].end);
        let to = dates.get(at + 1).map_or(text.len(), |next| next.start);
        let Some(&(month, Some(own))) = date.month_day.first() else {
            continue;
        };
        let written = &text[date.start..date.end];
        let (is_behind, days) = if written.starts_with(char::is_alphabetic) {
            (true, BEHIND.captures(&text[date.end..to]).and_then(|parts| parts.name("days").or(parts.name("joined"))))
        } else if written.contains([' ', '.']) {
            let parts = BEFORE.captures(&text[from..date.start]);
            // `Open 9 to 17, 24 and 25 December`, `5 kg and 7 December`.
            let is_other = |parts: &Captures<'_>| {
                let last = parts["last"].to_lowercase();
                AND.split('|').chain(TO.split('|')).chain(["at", "um", "session"]).any(|join| join == last)
                    || unit_of(&last).is_some()
                    || parts.name("days").is_some_and(|days| labels(&text[from..from + days.start()]))
            };
            let parts = parts.filter(|parts| !is_other(parts) && !VERB.is_match(&text[date.end..to]));
            (false, parts.and_then(|parts| parts.name("days")))
        } else {
            continue;
        };
        let Some(days) = days else { continue };
        let from = if is_behind { date.end } else { from };
        let day = |parts: Captures<'_>| {
            let (whole, day) = (parts.get(0)?, parts[1].parse::<u32>().ok()?);
            let start = from + days.start() + whole.start();
            Some(Date { start, end: start + whole.len(), year: None, month_day: vec![(month, Some(day))] })
        };
        let days: Vec<Date> = DAY.captures_iter(days.as_str()).filter_map(day).collect();
        let mut all: Vec<u32> = days.iter().filter_map(|day| day.month_day[0].1).collect();
        all.insert(if is_behind { 0 } else { all.len() }, own);
        if all.windows(2).all(|pair| pair[0] < pair[1]) && all[0] > 0 && all[all.len() - 1] <= 31 {
            found.extend(days);
        }
    }
    found
}

impl Date {
    /// Whether month and day, as far as this date has them, are those of `source`.
    pub(super) fn falls_on(&self, source: &Self) -> bool {
        self.month_day.iter().any(|(month, day)| {
            source.month_day.iter().any(|(other, other_day)| month == other && (day.is_none() || day == other_day))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_day_in_every_spelling_is_one_day() {
        let spellings = [
            "2026-11-24",
            "24 November 2026",
            "November 24, 2026",
            "Nov. 24th, 2026",
            "24.11.2026",
            "24. November 2026",
            "24 de noviembre de 2026",
            "the 24th of November 2026",
            "November 24 , 2026",
            "2026/11/24",
            "24-Nov-2026",
            "発売は2026年11月24日です",
            "2026년 11월 24일",
            "24 ноября 2026",
            "24 listopada 2026",
        ];
        for text in spellings {
            let found = dates(text);
            assert_eq!((found.len(), found[0].year), (1, Some(2026)), "{text}");
            assert!(found[0].falls_on(&dates(spellings[0])[0]), "{text}");
        }
        assert!(!dates("November 23, 2026")[0].falls_on(&dates(spellings[0])[0]));
        assert!(dates("November 2026")[0].falls_on(&dates(spellings[0])[0]));
        for none in ["3.2 seconds", "may 5000", "mayor 5", "12/2026 pages", "in 2026"] {
            assert_eq!(dates(none), [], "{none}");
        }
    }
}

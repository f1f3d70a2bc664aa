//! Dates in a text: `2026-11-24`, also before a time, `2026/11/24`, `24 November 2026`, `24-Nov-2026`, `November 24th`, `24.11.2026`,
//! `2026年11月24日`.

use regex::Regex;
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

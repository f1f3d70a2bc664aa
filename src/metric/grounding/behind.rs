//! What stands behind a number and belongs to it: scale words, and a unit at once or behind adjectives.

use super::units::{is_of_length, is_of_time, scale_of, unit_of, unit_of_two, word};
use regex::Regex;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Most words between a number and its unit.
const BETWEEN: usize = 3;

/// Words between a number and its unit that are no adjectives by their form: nouns, short ones, and those with a capital.
const QUALIFIERS: &[&str] = &[
    "business", "working", "work", "calendar", "trading", "bank", "banking", "full", "whole", "entire", "complete",
    "consecutive", "successive", "straight", "additional", "extra", "more", "or", "further", "non", "net", "long",
    "short", "big", "good", "mere", "paid", "degree", "degrees", "grad", "iş", "takvim", "tam", "us",
];

/// Words behind a number that are no adjectives: what follows them is not what the number counts, or another unit.
const OTHERS: &[&str] = &[
    "each", "every", "with", "from", "this", "that", "these", "those", "last", "next", "than", "over", "about",
    "after", "before", "within", "during", "until", "half", "quarter", "square", "cubic", "light", "person", "people",
    "take", "takes", "took", "need", "needs", "cost", "costs", "lasts", "have", "were", "will", "shall", "times",
    "para", "pour", "dans", "avec", "sind", "wird", "werden", "nach", "über", "unter", "alle", "jede", "jeder",
    "jeden", "jedes", "diese", "dieser", "letzte", "letzten", "nächste", "nächsten", "halbe", "halben", "cada",
    "entre", "chaque", "elke", "varje", "hver", "ogni", "dopo", "prima", "после", "каждые", "через", "oder", "demi",
    "demie", "support", "office", "opening", "different", "medio", "media", "halve", "halva", "mezzo",
];

/// Units whose spelling is also a word beside an adjective that counts nothing: `5 stores this week`, `3 snack bar`.
const AMBIGUOUS: &[&str] = &[
    "day", "week", "month", "year", "hour", "minute", "second", "foot", "mile", "inch", "cent", "bar", "bit", "bits",
    "ore", "ora", "ano", "Monats", "Tages", "Jahres",
];

/// Abbreviations of scales that are written with a point.
const ABBREVIATED: &[&str] = &["mio", "mrd", "tsd", "mln", "mld", "tys", "млн", "млрд", "тыс"];

/// A word behind a number or another word, with the marks between: emphasis, a plus, brackets (`thirty (30) days`).
static NEXT: LazyLock<Regex> = LazyLock::new(|| {
    let marks = r"[*_]{0,3}[+)]?[*_]{0,3}(?:[ \t\u{a0}\u{202f}]{1,3}|\s|-)[*_(]{0,4}";
    Regex::new(&format!("^{marks}({}|[%€$£])", word())).expect("an expression")
});
/// The unit behind a scale, after a word of Romance languages: `5 millions d'euros`.
static LINKED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&format!("^ (?:d[ei] |of |d['’])({})", word())).expect("an expression"));

/// A base unit and the factor to it.
type Unit = (&'static str, f64);

/// The words behind a number, each with its end in bytes.
fn words(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let word = NEXT.captures(&text[from..])?.get(1)?;
        from += word.end();
        Some((word.as_str(), from))
    })
}

/// Whether a word may be an adjective of any language.
fn may_qualify(word: &str) -> bool {
    word.chars().count() > 3 && word.chars().all(char::is_lowercase) && !OTHERS.contains(&word)
}

/// The unit behind a number, at once or behind adjectives, and its end in bytes.
pub(super) fn unit(after: &str) -> Option<(Unit, usize)> {
    let mut known = true;
    let mut words = words(after).take(BETWEEN + 1).enumerate().peekable();
    while let Some((at, (word, end))) = words.next() {
        let both = words.peek().and_then(|(_, (next, end))| Some((unit_of_two(word, next)?, *end)));
        if both.is_some() {
            return both;
        }
        let is_long = word.chars().count() > 2;
        let fits = at == 0 || is_long && (known || !AMBIGUOUS.contains(&word));
        if let Some(unit) = unit_of(word).filter(|_| fits) {
            return Some((unit, end));
        }
        if !QUALIFIERS.contains(&word.to_lowercase().as_str()) {
            if at > 0 || !may_qualify(word) {
                return None;
            }
            known = false;
        }
    }
    None
}

/// Whether a full stop belongs to the abbreviated scale before it, as a unit follows: `120 Mrd. €`.
pub(super) fn abbreviates(before: &str, after: &str) -> bool {
    let word = before.rsplit(|letter: char| !letter.is_alphabetic()).next().unwrap_or_default();
    ABBREVIATED.contains(&word.to_lowercase().as_str()) && unit(after).is_some()
}

/// What the text behind a scale word says: the factor of further scale words (`mil millones`), the unit, and their end.
pub(super) fn scaled(word: &str, after: &str) -> (f64, Option<Unit>, usize) {
    let (mut factor, mut end, mut last) = (1.0, 0, word.to_lowercase());
    while let Some((next, length)) = words(&after[end..]).next()
        && let Some(more) = scale_of(&next.to_lowercase())
    {
        (factor, end, last) = (factor * more, end + length, next.to_lowercase());
    }
    let point = usize::from(ABBREVIATED.contains(&last.as_str()) && after[end..].starts_with('.'));
    let rest = &after[end + point..];
    let linked = || {
        let word = LINKED.captures(rest)?.get(1)?;
        Some((unit_of(word.as_str())?, word.end()))
    };
    match unit(rest).or_else(linked) {
        Some((unit, length)) => (factor, Some(unit), end + point + length),
        None => (factor, None, end),
    }
}

/// A night is as long as a day: hotels say both.
const NIGHTS: &[&str] =
    &["night", "nights", "nacht", "nuit", "nuitée", "noche", "notte", "noite", "natt", "nat", "noc", "gece"];

/// Words behind an amount that say how often it is due, each with the unit of time.
const OFTEN: &[(&str, f64, &str)] = &[
    ("s", 3600.0, "hourly, stündlich"),
    ("s", 86400.0, "daily, nightly, täglich"),
    ("s", 7.0 * 86400.0, "weekly, wöchentlich"),
    ("month", 1.0, "monthly, monatlich, mensuel, mensuels, mensual, mensuales, mensile, mensili"),
    ("month", 12.0, "yearly, annually, jährlich, annuel, annuels, anual, anuales, annuo, annui"),
];

/// The unit of time of an amount that is due so often: ` monthly`, ` p.a.`, ` per annum`, ` par an`.
fn due(after: &str) -> Option<Unit> {
    static OFTEN_WORD: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^[ \u{a0}](?:(?P<year>p\. ?a\b|(?:per|pro) annum\b|par an\b)|(?P<word>\p{L}+))")
            .expect("an expression")
    });
    let parts = OFTEN_WORD.captures(after)?;
    if parts.name("year").is_some() {
        return Some(("month", 12.0));
    }
    let word = parts.name("word")?.as_str().to_lowercase();
    let is_it = |names: &str| names.split(", ").any(|name| name == word);
    OFTEN.iter().find(|(.., names)| is_it(names)).map(|(base, factor, _)| (*base, *factor))
}

/// Links of a chain that are read: `per person per night`, `per day and kilo`.
const LINKS: usize = 3;

/// The units that the text behind a unit says it is of, each base once: `/h`, ` per day`, ` a kilo`, `/kg/day`, ` im Monat`,
/// ` per day and kg`, ` monthly`. Persons and pieces, which have many names, are passed over: ` per person per night`.
pub(super) fn said_per(after: &str) -> Vec<Unit> {
    const WORDS: &str = r" (?:per|a la|an?|each|every|pro|je|im|am|par|por|al) | (?:à|de) l['’]| all['’] ?|\s?/\s?";
    static FIRST: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(&format!(r"^(?:{WORDS})({}[²³23]?)", word())).expect("an expression"));
    static NEXT: LazyLock<Regex> = LazyLock::new(|| {
        let and = ",? (?:and|und|et|y|e|en|og|och) (?:(?:per|an?|each|every|pro|je|par|por) )?";
        Regex::new(&format!(r"^(?:{and}|,?(?:{WORDS}))({}[²³23]?)", word())).expect("an expression")
    });
    if let Some(unit) = due(after) {
        return vec![unit];
    }
    let (mut found, mut from): (Vec<Unit>, usize) = (Vec::new(), 0);
    for link in 0..LINKS {
        let read = if link == 0 { &FIRST } else { &NEXT }.captures(&after[from..]);
        let Some(word) = read.and_then(|parts| parts.get(1)) else { break };
        let new = divisor(word.as_str()).filter(|(base, _)| found.iter().all(|(known, _)| known != base));
        found.extend(new);
        from += word.end();
    }
    found
}

/// The unit that an amount may be per. Other letters alone are also months, years and millions, and `a bit` and `a bar` are
/// no measures.
fn divisor(word: &str) -> Option<Unit> {
    if NIGHTS.contains(&word.to_lowercase().as_str()) {
        return Some(("s", 86400.0));
    }
    let is_long = word.chars().count() > 1;
    unit_of(word).filter(|(base, _)| match *base {
        "%" | "bit" | "cent" | "Pa" => false,
        "g" | "l" => true,
        base => is_long || is_of_time(base),
    })
}

/// Whether the text behind an amount says that it is a price per litre, kilo, kWh or minute, which may have three decimals: ` per litre`, `/kWh`.
pub(in crate::metric) fn says_price_per_small_unit(after: &str) -> bool {
    said_per(after).first().is_some_and(|(base, factor)| match *base {
        "l" | "gallon" | "pound" | "ounce" | "m" | "mile" | "m³" => true,
        "g" | "Wh" => *factor <= 1e3,
        "s" => *factor <= 60.0,
        _ => false,
    })
}

/// Whether the text directly behind a unit makes another of it: a square or a cube of a length (`m²`), or a speed (`km/h`, `MB/s`).
pub(in crate::metric) fn makes_another_unit(unit: &str, after: &str) -> bool {
    let Some((base, _)) = unit_of(unit) else { return false };
    let is_power = is_of_length(base) && after.starts_with(['2', '3', '²', '³']);
    let is_fast = || said_per(after).first().is_some_and(|(per, factor)| *per == "s" && *factor <= 3600.0);
    is_power || (is_of_length(base) || ["bit", "byte"].contains(&base)) && is_fast()
}

/// Words before a number that names a place or a version, and counts nothing.
const LABELS: &[&str] = &[
    "page", "pages", "section", "sections", "chapter", "step", "figure", "table", "version", "item", "question",
    "article", "clause", "paragraph", "appendix", "annex", "room", "nr", "level", "tier", "plan", "option", "phase",
    "grade", "seite", "kapitel", "abschnitt", "artikel", "schritt", "página", "capítulo", "artículo", "paso", "pagina",
    "capitolo", "articolo", "chapitre", "étape", "страница", "глава", "статья", "strona", "sida", "rule", "abs",
    "absatz", "ziffer",
];

/// Whether the text before a number makes a label of it: `page 30`, `§ 30`, `No. 30`, `DOC-30`.
pub(super) fn labels(before: &str) -> bool {
    if let Some(joined) = before.strip_suffix('-') {
        let code = &joined[joined.trim_end_matches(|letter: char| letter.is_ascii_uppercase()).len()..];
        return code.len() > 1 && unit_of(code).is_none();
    }
    let before = before.strip_suffix([' ', '\u{a0}']).unwrap_or(before);
    let bare = before.strip_suffix('.').unwrap_or(before);
    let start = bare
        .rfind(|letter: char| !letter.is_alphabetic())
        .map_or(0, |at| at + bare[at..].chars().next().map_or(0, char::len_utf8));
    before.ends_with(['§', '№', '#', '第'])
        || bare.ends_with("No")
        || before.ends_with("Art.")
        || LABELS.contains(&bare[start..].to_lowercase().as_str())
}

/// Words before a version, and names of programs whose versions are usually named. Any other name may stand before a decimal,
/// which may end with a zero: `Score 3.50`.
const VERSIONED: &[&str] = &[
    "version", "release", "firmware", "v", "python", "java", "js", "node", "typescript", "php", "ruby", "rails", "go",
    "rust", "kotlin", "scala", "swift", "perl", "django", "ubuntu", "debian", "fedora", "linux", "kernel", "windows",
    "android", "ios", "ipados", "macos", "kubernetes", "docker", "postgresql", "postgres", "mysql", "mariadb",
    "mongodb", "redis", "elasticsearch",
];

/// Whether a number behind that text is that of a version: `Python 3.10`.
pub(super) fn names_version(before: &str) -> bool {
    let Some(before) = before.strip_suffix([' ', '\u{a0}']) else { return false };
    let word = before.rsplit(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
    VERSIONED.contains(&word.to_lowercase().as_str())
}

/// Places of the numbers that mark the items of a list or headings: they begin lines, and are one of three in order, of two
/// from 1, a 1 that begins the text, or in a heading of Markdown.
pub(super) fn markers(text: &str) -> BTreeSet<usize> {
    static MARKER: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?m)^[\s*•>-]*(?P<heading>#*)\s*(?P<number>[1-9]\d{0,2})[.)]\s+[*_]{0,3}\p{L}")
            .expect("an expression")
    });
    let found: Vec<(usize, u32, bool)> = MARKER
        .captures_iter(text)
        .filter_map(|parts| {
            let number = parts.name("number")?;
            let value = number.as_str().parse().ok()?;
            let is_first = value == 1 && text[..number.start()].trim().is_empty() || !parts["heading"].is_empty();
            Some((number.start(), value, is_first))
        })
        .collect();
    let values: BTreeSet<u32> = found.iter().map(|(_, value, _)| *value).collect();
    let are_three = |from: u32| (from..from + 3).all(|value| value == 0 || values.contains(&value));
    let in_order = |value: u32| (value.saturating_sub(2)..=value).any(are_three);
    found.iter().filter(|(_, value, is_first)| *is_first || in_order(*value)).map(|(place, ..)| *place).collect()
}

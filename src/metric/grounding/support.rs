//! Whether a text supports a fact.

use super::accounts::accounts;
use super::clock;
use super::date::{Date, dates, sharing};
use super::duration::durations;
use super::facts::{Fact, Kind, is_code, plain_code, tokens, words};
use super::members::with_units;
use super::quantity::{Quantity, equal, quantities};
use html_escape::decode_html_entities;
use regex::{Captures, Regex};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Words of a statement that a computed number comes with.
const COMPUTED: &[&str] = &[
    "total", "sum", "altogether", "combined", "difference", "average", "mean", "twice", "double", "half", "remaining",
    "margin", "increase", "increased", "decrease", "decreased", "later", "earlier", "longer", "fewer", "apart", "aged",
    "insgesamt", "zusammen", "summe", "differenz", "durchschnitt",
];

/// Numbers of a source beyond which none is looked for among sums and differences.
const OPERANDS: usize = 60;

static SEASON: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b(1\d|20)\d\d\s?[-–/]\s?(\d\d)\b").expect("an expression"));

/// The abbreviation of a day of the week, beside another one, an hour or a mark: `Sun cream` names none.
static WEEKDAY: LazyLock<Regex> = LazyLock::new(|| {
    let days = "Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun";
    Regex::new(&format!(r"\b({days})\b(?:[.,:;/)–-]|\s+(?:[\d&–-]|and\b|to\b|{days}\b)|\s*$)")).expect("an expression")
});
const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// What names something and counts nothing: an address, and a member of JSON with its name.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    let member = r#""(?P<name>[\w.@$-]+)"\s*:\s*(?:"[^"\n]*"|-?[\d.]+)"#;
    // Elasticsearch's.
    let member = format!(r#""hits"\s*:\s*\{{\s*"total"\s*:\s*(?:\{{\s*"value"\s*:\s*)?\d+|{member}"#);
    Regex::new(&format!(r#"\b[a-z][a-z\d+.-]*://[^\s<>)\]"]*|{member}"#)).expect("an expression")
});

/// Words in the names of members that say where something stands, how it was found, or by what name.
const TECHNICAL: &[&str] = &[
    "id", "ids", "uuid", "guid", "hash", "digest", "etag", "key", "sku", "path", "uri", "url", "file", "filename",
    "page", "pages", "line", "lines", "loc", "row", "chunk", "chunks", "index", "idx", "offset", "position", "rank",
    "score", "scores", "similarity", "relevance", "certainty", "confidence", "token", "tokens", "count", "ms", "took",
    "elapsed", "processing", "timestamp", "version", "limit", "top", "cursor", "label", "hits", "found",
];

/// Short words that are no initials.
const FUNCTION_WORDS: &[&str] = &[
    "am", "an", "and", "are", "as", "at", "be", "but", "by", "can", "did", "do", "for", "go", "had", "has", "he",
    "her", "him", "his", "if", "in", "is", "it", "its", "me", "my", "no", "not", "of", "on", "or", "our", "out", "she",
    "so", "the", "to", "up", "us", "was", "we", "who", "you",
];

/// Other names of what an answer may name.
const ALIASES: &[(&str, &[&str])] = &[
    ("tv", &["television", "televised"]),
    ("us", &["usa", "american", "america", "states"]),
    ("usa", &["us", "american", "america", "states"]),
    ("american", &["us", "usa", "america"]),
    ("uk", &["britain", "british", "kingdom"]),
    ("british", &["uk", "britain", "england", "english"]),
    ("eu", &["european", "europe"]),
];

/// A text, prepared for looking up facts.
#[derive(Debug, Default)]
pub(crate) struct Source {
    numbers: Vec<Quantity>,
    dates: Vec<Date>,
    words: Vec<String>,
    /// Different words; those with a capital; and codes without marks.
    known: BTreeSet<String>,
    capitals: BTreeSet<String>,
    codes: BTreeSet<String>,
    acronyms: BTreeSet<String>,
    /// Letters and digits in order, lower case, without spaces.
    letters: String,
}

/// How a source stands to a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Support {
    Supported,
    /// A number that can be computed from numbers of the source, in a statement that says so.
    Computed,
    Unsupported,
}

impl Support {
    /// The best of several sources; none is asked after one that supports the fact.
    pub(super) fn best(all: impl Iterator<Item = Self>) -> Self {
        let mut best = Self::Unsupported;
        for one in all {
            match one {
                Self::Supported => return one,
                Self::Computed => best = one,
                Self::Unsupported => {}
            }
        }
        best
    }
}

impl Source {
    /// Prepares texts.
    pub(crate) fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut source = Self::default();
        for text in texts {
            source.add(text);
        }
        source
    }

    /// Adds a text, which may be one of HTML: `M&uuml;nchen` is `München`.
    pub(crate) fn add(&mut self, text: &str) {
        let decoded = decode_html_entities(text);
        if decoded != text {
            // What is written about a reference is no amount: `Write &#8364;`.
            self.add_words(text, |_, _| true);
        }
        let text = &*with_units(&decoded);
        let is_name = |parts: &Captures<'_>| parts.name("name").is_none_or(|name| is_technical(name.as_str()));
        let named: Vec<Range<usize>> =
            NAMED.captures_iter(text).filter(is_name).filter_map(|parts| Some(parts.get(0)?.range())).collect();
        self.add_words(text, |number, dates| {
            let is_named = number.unit.is_none() && around(&named, number).is_some();
            is_named || around(dates, number).is_some_and(|date| number.end <= date.end)
        });
    }

    /// Adds a name, or other words whose bare numbers are no amounts: `faq-45` is not 45 euros.
    pub(super) fn add_name(&mut self, name: &str) {
        self.add_words(name, |number, _| number.unit.is_none());
    }

    /// Adds a text, in which `names` says of a number, by the places of dates too, whether it counts nothing.
    fn add_words(&mut self, text: &str, names: impl Fn(&Quantity, &[Range<usize>]) -> bool) {
        let dates = dates(text);
        let places: Vec<Range<usize>> = dates.iter().map(|date| date.start..date.end).collect();
        let numbers = quantities(text);
        self.numbers.extend(durations(text, &numbers).into_iter().map(|duration| duration.whole));
        self.numbers.extend(numbers.into_iter().map(|mut number| {
            number.is_label |= names(&number, &places);
            number
        }));
        // Their days may also count: `Adults pay 20 and 25 December is free.`
        self.dates.extend(sharing(text, &dates));
        self.dates.extend(dates);
        let found = words(text);
        for token in text.split(|letter: char| letter.is_whitespace() || "()[]{},;:\"“”'’!?=|–".contains(letter))
        {
            let token = token.trim_matches(|letter: char| !letter.is_alphanumeric());
            if token.chars().any(|letter| letter.is_ascii_digit()) {
                self.codes.insert(plain_code(token));
            }
            if token.chars().count() > 1 && token.chars().all(char::is_uppercase) {
                self.acronyms.insert(token.to_owned());
            }
            if token.chars().next().is_some_and(char::is_uppercase) {
                self.capitals.extend(words(token));
            }
        }
        self.codes.extend(tokens(text).filter(|token| is_code(token.as_str())).map(|token| plain_code(token.as_str())));
        self.codes.extend(accounts(text).map(|account| plain_code(account.as_str())));
        // `2007-08` names 2008 too.
        for parts in SEASON.captures_iter(text) {
            self.numbers.extend(format!("{}{}", &parts[1], &parts[2]).parse().ok().map(Quantity::plain));
        }
        // `RFC 7231` is written `RFC7231` too.
        for pair in found.windows(2) {
            self.codes.insert(pair.concat());
        }
        for parts in WEEKDAY.captures_iter(text) {
            self.known
                .extend(WEEKDAYS.iter().find(|day| day.starts_with(&parts[1].to_lowercase())).map(ToString::to_string));
        }
        self.known.extend(initials(text));
        self.letters.extend(found.iter().map(String::as_str));
        self.letters.push(' ');
        self.known.extend(found.iter().filter(|word| !word.is_ascii()).map(|word| unmarked(word)));
        self.known.extend(found.iter().cloned());
        self.words.extend(found);
    }

    /// Number of different words of `statement` that the source has.
    pub(crate) fn overlap(&self, statement: &str) -> usize {
        words(statement).into_iter().collect::<BTreeSet<_>>().iter().filter(|word| self.known.contains(*word)).count()
    }

    /// How the source stands to a fact of `statement`.
    pub(crate) fn supports(&self, fact: &Fact, statement: &str) -> Support {
        let supported = match &fact.kind {
            Kind::Number(number) => self.has_number(number),
            Kind::Duration(both) => self.has_number(&both.whole) || both.parts.iter().all(|part| self.has_number(part)),
            Kind::Date(date) => self.has_date(date),
            Kind::Code(code) => self.codes.contains(code) || self.known.contains(code),
            // Behind a country, its first zero is not dialled.
            Kind::Telephone(digits) => {
                self.has_telephone(digits) || digits.strip_prefix('0').is_some_and(|rest| self.has_telephone(rest))
            }
            Kind::Name(name, run) => self.has_name(name) || self.has_acronym(run),
            // `does n't` is `doesn't`.
            Kind::Quote(quoted) => match quoted.as_slice() {
                [word] => self.known.contains(word),
                _ => self.letters.contains(&quoted.concat()),
            },
        };
        match &fact.kind {
            _ if supported => Support::Supported,
            Kind::Number(number) if self.computes(number, statement) => Support::Computed,
            _ => Support::Unsupported,
        }
    }

    fn has_number(&self, number: &Quantity) -> bool {
        let year = |date: &Date| {
            date.year.is_some_and(|year| number.values.iter().any(|value| equal(*value, f64::from(year))))
        };
        // `1:10` may be written `1 to 10`.
        let plain =
            |part: f64| self.numbers.iter().any(|other| other.bare && other.values.iter().any(|one| equal(*one, part)));
        let apart = || clock::parts(number).is_some_and(|parts| parts.into_iter().all(plain));
        self.numbers.iter().any(|other| number.agrees(other)) || apart() || (number.bare && self.dates.iter().any(year))
    }

    /// Whether the groups of digits of a telephone number stand in the source; `(0)` is not dialled behind a country.
    fn has_telephone(&self, digits: &str) -> bool {
        (0..self.words.len()).any(|from| {
            let mut rest = digits;
            for word in &self.words[from..] {
                match rest.strip_prefix(word.as_str()) {
                    Some("") => return true,
                    Some(more) => rest = more,
                    None if word == "0" => {}
                    None => return false,
                }
            }
            false
        })
    }

    /// Whether year and day stand in the source, together or apart.
    fn has_date(&self, date: &Date) -> bool {
        let year = date.year.is_none_or(|year| {
            let number = Quantity::plain(f64::from(year));
            self.has_number(&number)
        });
        year && self.dates.iter().any(|other| date.falls_on(other))
    }

    /// A name is known by its words, with or without their accents, its initials, or as an adjective of a name of the
    /// source.
    fn has_name(&self, name: &str) -> bool {
        words(name).iter().all(|word| {
            let bare = word.strip_suffix('s').unwrap_or(word);
            word.chars().count() == 1
                || self.known.contains(word)
                || self.known.contains(bare)
                || self.known.contains(&format!("{word}s"))
                || !word.is_ascii() && self.known.contains(&unmarked(word))
                || self.capitals.iter().any(|other| related(word, other, 4))
                || self.known.iter().any(|other| related(word, other, 5))
                || ALIASES
                    .iter()
                    .any(|(alias, others)| alias == word && others.iter().any(|one| self.known.contains(*one)))
        })
    }

    /// Whether the source has the initials of a run of capitalised words: `WA`, or `wa` in a text without capitals.
    fn has_acronym(&self, initials: &str) -> bool {
        let upper = initials.to_uppercase();
        let written = self.capitals.is_empty() && !FUNCTION_WORDS.contains(&initials) && self.known.contains(initials);
        initials.chars().count() > 1 && (self.acronyms.contains(&upper) || written)
    }

    /// Whether a statement that says so may have computed the number: a sum, difference, product, quotient or
    /// percentage of two numbers of the source, or the mean or sum of all with its unit.
    fn computes(&self, number: &Quantity, statement: &str) -> bool {
        let said = words(statement);
        if !said.iter().any(|word| COMPUTED.contains(&word.as_str())) {
            return false;
        }
        let mut values: Vec<f64> = Vec::new();
        let years = self.dates.iter().filter_map(|date| date.year).map(f64::from);
        let amounts = self.numbers.iter().filter(|other| !other.is_label);
        for value in amounts.filter_map(|other| other.values.first().copied()).chain(years) {
            if !values.iter().any(|known| equal(*known, value)) {
                values.push(value);
            }
        }
        values.truncate(OPERANDS);
        let is = |value: f64| {
            number.values.iter().any(|wanted| {
                equal(*wanted, value)
                    || (value - wanted).abs() < 0.5 * 10_f64.powi(-i32::from(wanted.fract() != 0.0))
                        && wanted.fract() != 0.0
            })
        };
        let sum: f64 = values.iter().sum();
        let pairs =
            || values.iter().enumerate().flat_map(|(at, one)| values[at + 1..].iter().map(move |other| (*one, *other)));
        (values.len() > 2 && (is(sum) || is(sum / values.len() as f64)))
            || pairs().any(|(one, other)| {
                is(one + other)
                    || is((one - other).abs())
                    || is(f64::midpoint(one, other))
                    || is(one * other)
                    || (number.unit == Some("%") && (is(one / other * 100.0) || is(other / one * 100.0)))
                    || (one != 0.0 && is(other / one))
                    || (other != 0.0 && is(one / other))
            })
    }
}

/// A word without its accents.
pub(super) fn unmarked(word: &str) -> String {
    word.nfd().filter(|letter| !is_combining_mark(*letter)).collect()
}

/// The range of several in order, none in another, in which a number begins.
fn around<'r>(ranges: &'r [Range<usize>], number: &Quantity) -> Option<&'r Range<usize>> {
    let next = ranges.partition_point(|range| range.end <= number.start);
    ranges.get(next).filter(|range| range.start <= number.start)
}

/// Whether the name of a member is a technical one, by its words: `page_label`, `nbHits`.
fn is_technical(name: &str) -> bool {
    static WORDS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[A-Z]+[a-z]*|[a-z]+").expect("an expression"));
    ["_distance", "$dist"].contains(&name)
        || WORDS.find_iter(name).any(|word| TECHNICAL.contains(&word.as_str().to_lowercase().as_str()))
}

/// Whether one word is a form of the other: they begin with `least` equal letters or more, and differ in a short ending (`Brazil`, `Brazilian`).
fn related(one: &str, other: &str, least: usize) -> bool {
    let alike = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let longest = one.chars().count().max(other.chars().count());
    alike >= least && longest - alike <= 3
}

/// Initials of runs of capitalised words, lower case: `uk` for `United Kingdom`.
fn initials(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut run = String::new();
    for word in text.split_whitespace().chain([""]) {
        let plain = word.trim_matches(|letter: char| !letter.is_alphanumeric());
        match plain.chars().next().filter(|letter| letter.is_uppercase()) {
            Some(letter) => run.extend(letter.to_lowercase()),
            None if matches!(plain, "of" | "the" | "and" | "for") && !run.is_empty() => {}
            None => {
                if run.chars().count() > 1 {
                    found.push(std::mem::take(&mut run));
                }
                run.clear();
            }
        }
    }
    found
}

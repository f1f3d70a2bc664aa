//! Numbers in a text, compared by value after locale and unit: `1.234,5 kg` is `1234.5 kg` is `1,234,500 g`.

use regex::Regex;
use std::sync::LazyLock;

/// A number with its unit, if it has a known one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Quantity {
    /// Where it stands, in bytes, with sign, currency, scale and unit.
    pub start: usize,
    pub end: usize,
    /// Its possible values in the base unit: `1.234` may be 1234 or 1.234.
    pub values: Vec<f64>,
    /// The base unit.
    pub unit: Option<&'static str>,
    /// Whether it is a bare whole number without separator, scale or unit.
    pub bare: bool,
    /// Digits behind the decimal mark, and significant digits, for rounding.
    decimals: usize,
    significant: usize,
    /// The factor between the written number and its value.
    scale: f64,
}

/// Units by their spellings, each with its base unit and factor.
const UNITS: &[(&str, &[&str], f64)] = &[
    ("%", &["%", "percent", "per cent", "prozent", "pct"], 1.0),
    ("m", &["m", "metre", "metres", "meter", "meters"], 1.0),
    ("m", &["mm", "millimetre", "millimetres", "millimeter", "millimeters"], 1e-3),
    ("m", &["cm", "centimetre", "centimetres", "centimeter", "centimeters"], 1e-2),
    ("m", &["km", "kilometre", "kilometres", "kilometer", "kilometers"], 1e3),
    ("mile", &["mile", "miles", "mi"], 1.0),
    ("foot", &["foot", "feet", "ft"], 1.0),
    ("inch", &["inch", "inches"], 1.0),
    ("g", &["g", "gram", "grams", "gramm"], 1.0),
    ("g", &["mg", "milligram", "milligrams"], 1e-3),
    ("g", &["kg", "kilogram", "kilograms", "kilogramm"], 1e3),
    ("pound", &["lb", "lbs", "pounds"], 1.0),
    ("l", &["l", "litre", "litres", "liter", "liters"], 1.0),
    ("l", &["ml", "millilitre", "millilitres", "milliliter", "milliliters"], 1e-3),
    ("s", &["s", "sec", "second", "seconds", "sekunde", "sekunden"], 1.0),
    ("s", &["ms", "millisecond", "milliseconds"], 1e-3),
    ("s", &["min", "mins", "minute", "minutes", "minuten"], 60.0),
    ("s", &["h", "hr", "hrs", "hour", "hours", "stunde", "stunden"], 3600.0),
    ("day", &["day", "days", "tag", "tage", "tagen"], 1.0),
    ("day", &["week", "weeks", "woche", "wochen"], 7.0),
    ("month", &["month", "months", "monat", "monate", "monaten"], 1.0),
    ("month", &["year", "years", "jahr", "jahre", "jahren"], 12.0),
    ("V", &["v", "volt", "volts"], 1.0),
    ("A", &["a", "amp", "amps", "ampere", "amperes"], 1.0),
    ("W", &["w", "watt", "watts"], 1.0),
    ("W", &["kw", "kilowatt", "kilowatts"], 1e3),
    ("Ω", &["Ω", "ω", "ohm", "ohms"], 1.0),
    ("Hz", &["hz", "hertz"], 1.0),
    ("Hz", &["khz"], 1e3),
    ("Hz", &["mhz"], 1e6),
    ("Hz", &["ghz"], 1e9),
    ("bar", &["bar"], 1.0),
    ("Pa", &["pa"], 1.0),
    ("Pa", &["kpa"], 1e3),
    ("°C", &["°c", "celsius"], 1.0),
    ("°F", &["°f", "fahrenheit"], 1.0),
    ("byte", &["mb", "megabyte", "megabytes"], 1e6),
    ("byte", &["gb", "gigabyte", "gigabytes"], 1e9),
    ("$", &["$", "usd", "dollar", "dollars"], 1.0),
    ("€", &["€", "eur", "euro", "euros"], 1.0),
    ("£", &["£", "gbp"], 1.0),
];

/// Words that multiply the number before them.
const SCALES: &[(&[&str], f64)] = &[
    (&["hundred"], 1e2),
    (&["thousand", "k", "tausend", "mille", "mil"], 1e3),
    (&["million", "millions", "mio", "millionen", "millones"], 1e6),
    (&["billion", "billions", "bn", "milliarde", "milliarden", "mrd"], 1e9),
    (&["trillion"], 1e12),
];

/// Words and marks between the ends of a range.
const RANGE: [&str; 7] = ["to", "-", "–", "and", "or", "bis", "und"];

static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    let number = r"(?P<before>[$€£]\s?)?(?P<number>\d{1,3}(?:[\u{a0}\u{202f}'’,. ]\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d+)?)";
    let after = r"(?:[\s\u{a0}\u{202f}-]?(?P<word>per cent|%|°[CFcf]|Ω|€|\$|£|\p{L}+))?";
    Regex::new(&format!("{number}{after}")).expect("an expression")
});

/// The numbers of a text, in order. A number within a word (`AB-12`, `3rd`) is none.
pub(super) fn quantities(text: &str) -> Vec<Quantity> {
    let mut found: Vec<Quantity> = Vec::new();
    let mut from = 0;
    while let Some(parts) = NUMBER.captures_at(text, from) {
        let number = parts.name("number").expect("a part of the expression");
        from = number.end();
        let before = text[..parts.get(0).expect("the whole").start()].chars().next_back();
        if before.is_some_and(char::is_alphabetic) {
            continue;
        }
        let word = parts.name("word");
        let attached = word.is_some_and(|word| word.start() == number.end());
        let (mut scale, mut unit, mut end) =
            (1.0, parts.name("before").and_then(|sign| unit_of(sign.as_str().trim())), from);
        if let Some(word) = word {
            let lower = word.as_str().to_lowercase();
            if let Some(factor) = scale_of(&lower) {
                (scale, end) = (factor, word.end());
                if let Some((next, stop)) = next_word(text, word.end())
                    && let Some(known) = unit_of(&next)
                {
                    (unit, end) = (Some(known), stop);
                }
            } else if let Some(known) = unit_of(&lower) {
                (unit, end) = (Some(known), word.end());
            } else if attached && !matches!(lower.as_str(), "s" | "am" | "pm") {
                continue;
            }
        }
        let written = number.as_str();
        let (readings, decimals) = readings(written);
        let factor = scale * unit.map_or(1.0, |(_, factor)| factor);
        let digits: String = written.chars().filter(char::is_ascii_digit).collect();
        found.push(Quantity {
            start: parts.get(0).map_or(number.start(), |whole| whole.start()),
            end,
            values: readings.into_iter().map(|value| value * factor).collect(),
            unit: unit.map(|(base, _)| base),
            bare: unit.is_none() && equal(scale, 1.0) && written.chars().all(|letter| letter.is_ascii_digit()),
            decimals,
            significant: digits.trim_start_matches('0').trim_end_matches('0').len(),
            scale: factor,
        });
        from = from.max(end);
    }
    // `48 to 56 ohms`: the unit of the second is that of the first too.
    for at in (1..found.len()).rev() {
        let between = text[found[at - 1].end..found[at].start].trim();
        let (unit, scale) = (found[at].unit, found[at].scale);
        let first = &mut found[at - 1];
        if first.unit.is_none() && equal(first.scale, 1.0) && unit.is_some() && RANGE.contains(&between) {
            first.values.iter_mut().for_each(|value| *value *= scale);
            (first.unit, first.scale, first.bare) = (unit, scale, false);
        }
    }
    found
}

/// Lower-case word behind `from`, after at most one space or hyphen, and its end.
fn next_word(text: &str, from: usize) -> Option<(String, usize)> {
    let rest = text[from..].strip_prefix([' ', '-', '\u{a0}'])?;
    let start = text.len() - rest.len();
    let length = rest.find(|letter: char| !letter.is_alphabetic() && !"%€$£".contains(letter)).unwrap_or(rest.len());
    (length > 0).then(|| (rest[..length].to_lowercase(), start + length))
}

fn unit_of(word: &str) -> Option<(&'static str, f64)> {
    let word = word.to_lowercase();
    UNITS.iter().find(|(_, names, _)| names.contains(&word.as_str())).map(|(base, _, factor)| (*base, *factor))
}

fn scale_of(word: &str) -> Option<f64> {
    SCALES.iter().find(|(names, _)| names.contains(&word)).map(|(_, factor)| *factor)
}

/// Values that the digits may have, and the digits behind the decimal mark.
fn readings(written: &str) -> (Vec<f64>, usize) {
    let marks: Vec<(usize, char)> = written.char_indices().filter(|(_, letter)| !letter.is_ascii_digit()).collect();
    let whole =
        |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>().parse::<f64>().unwrap_or(f64::NAN);
    let Some(&(last, mark)) = marks.last() else { return (vec![whole(written)], 0) };
    let behind = written.len() - last - mark.len_utf8();
    let decimal = || {
        let text = format!("{}.{}", whole(&written[..last]), &written[last + mark.len_utf8()..]);
        text.parse::<f64>().unwrap_or(f64::NAN)
    };
    let mixed = marks.iter().any(|(_, other)| *other != mark);
    match (marks.len(), behind) {
        _ if !matches!(mark, '.' | ',') => (vec![whole(written)], 0),
        (1, 3) => (vec![whole(written), decimal()], 3),
        (1, _) => (vec![decimal()], behind),
        _ if mixed || behind != 3 => (vec![decimal()], behind),
        _ => (vec![whole(written)], 0),
    }
}

impl Quantity {
    /// A number that was not written in digits.
    pub(super) fn spelled(value: f64) -> Self {
        let (values, unit) = (vec![value], None);
        Self { start: 0, end: 0, values, unit, bare: true, decimals: 0, significant: 1, scale: 1.0 }
    }

    /// Whether `source` says the same: an equal value, or one that rounds to this one as it is written, where both
    /// units are known the same unit.
    pub(super) fn agrees(&self, source: &Self) -> bool {
        if let (Some(one), Some(other)) = (self.unit, source.unit)
            && one != other
        {
            return false;
        }
        let same_unit = self.unit.is_some() == source.unit.is_some();
        self.values.iter().any(|value| {
            source.values.iter().any(|other| {
                // A unit on one side only may have scaled its value.
                equal(*value, *other)
                    || (!same_unit && equal(value / self.scale, other / source.scale))
                    || self.rounds(*value, *other)
            })
        })
    }

    /// Whether `exact`, rounded to the digits of this number, is `value`; only for numbers of two digits or more.
    fn rounds(&self, value: f64, exact: f64) -> bool {
        // `180,000` has three decimals only where it is 180.
        let decimals = if (value / self.scale).fract() == 0.0 { 0 } else { self.decimals };
        let step = if decimals > 0 {
            10_f64.powi(-(decimals as i32)) * self.scale
        } else {
            let digits = (value / self.scale).abs().max(1.0).log10().floor() as i32 + 1;
            10_f64.powi((digits - self.significant as i32).max(0)) * self.scale
        };
        let rounded = self.scale > 1.0 || decimals > 0 || self.significant >= 2;
        rounded
            && value != 0.0
            && exact.abs() >= value.abs() * 0.5
            && (value - exact).abs() <= step / 2.0 * (1.0 + 1e-9)
            && step < value.abs()
    }
}

/// Equal but for errors of binary fractions.
pub(super) fn equal(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1.0)
}

const ONES: &[&str] = &[
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
];
const TENS: &[&str] = &["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// English numbers in words: `two hundred`, `twenty-five`, `three million`.
pub(super) fn spelled(words: &[String]) -> Vec<Quantity> {
    let (mut found, mut total, mut current, mut open) = (Vec::new(), 0.0, 0.0, false);
    for word in words.iter().map(String::as_str).chain([""]) {
        let ones = ONES.iter().position(|one| *one == word).map(|at| at as f64);
        let tens = TENS.iter().position(|ten| *ten == word).map(|at| (at as f64 + 2.0) * 10.0);
        let scale = if word.len() > 3 { scale_of(word) } else { None };
        if let Some(value) = ones.or(tens) {
            (current, open) = (current + value, true);
        } else if let Some(factor) = scale.filter(|_| open) {
            if factor > 100.0 {
                (total, current) = (total + current * factor, 0.0);
            } else {
                current *= factor;
            }
        } else if open && word != "and" {
            found.push(Quantity::spelled(total + current));
            (total, current, open) = (0.0, 0.0, false);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agrees(answer: &str, source: &str) -> bool {
        quantities(source).iter().any(|other| quantities(answer)[0].agrees(other))
    }

    #[test]
    fn numbers_agree_by_value_after_locale_scale_and_unit() {
        for (answer, source) in [
            ("1,234", "1.234"),
            ("1 234", "1234"),
            ("1.234,50", "1,234.5"),
            ("3 km", "3000 m"),
            ("2.5 million", "2,500,000"),
            ("$160 million", "$ 160 million"),
            ("24 months", "2 years"),
            ("48 ohms", "48 Ω"),
            ("50%", "50 percent"),
            ("3.14", "3.14159"),
            ("180,000", "181,674"),
            ("5 GB", "5000 MB"),
            ("12 s", "12"),
            ("€5", "5 euros"),
        ] {
            assert!(agrees(answer, source), "{answer} | {source}");
        }
        for (answer, source) in [
            ("38 ohms", "48 ohms"),
            ("5 V", "5 A"),
            ("1,234", "1,235"),
            ("2.5", "25"),
            ("30 days", "30 hours"),
            ("1999", "1998"),
            ("3.15", "3.14159"),
            ("20 %", "25 %"),
            ("450", "45"),
        ] {
            assert!(!agrees(answer, source), "{answer} | {source}");
        }
    }

    #[test]
    fn numbers_within_words_are_none() {
        for text in ["AB12", "3rd", "B2B", "v2beta"] {
            assert_eq!(quantities(text), [], "{text}");
        }
        assert_eq!(quantities("in the 1990s").len(), 1);
    }

    #[test]
    fn numbers_in_words_have_their_value() {
        let words = |text: &str| text.split([' ', '-']).map(str::to_owned).collect::<Vec<_>>();
        for (text, value) in [("two hundred and five", 205.0), ("twenty-five", 25.0), ("three million", 3e6)] {
            assert_eq!(spelled(&words(text)).iter().map(|one| one.values[0]).collect::<Vec<_>>(), [value], "{text}");
        }
        assert_eq!(spelled(&words("nothing to hundred")), []);
    }
}

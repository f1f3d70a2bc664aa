//! Times of day, compared in minutes after midnight: `6:30 pm` is `18:30`.

use super::quantity::{Quantity, equal};
use super::units::unit_of;
use crate::trace::text::is_currency;
use regex::{Captures, Regex};
use std::cell::LazyCell;
use std::sync::LazyLock;

/// The unit of times of day.
pub(super) const UNIT: &str = "clock";

/// A time of day, also within a date and time as computers write it: by its colon, by `am`, `pm`, `Uhr`, `o'clock` or `h`, or
/// by its name.
static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
    let half = |name: &str| format!(r"\s?(?P<{name}>[AaPp])\.?[Mm]\b");
    let by_colon = format!(
        r"(?:\b|T)(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?::[0-5]\d(?:[.,]\d+)?)?(?:{}|\b|Z)",
        half("half")
    );
    let by_half = format!(r"\b(?P<hour_of_half>0?[1-9]|1[0-2])(?:\.(?P<minute_of_half>[0-5]\d))?{}", half("its_half"));
    let by_h = r"\b(?P<hour_of_h>[01]?\d|2[0-4])[ \u{a0}]?[hH][ \u{a0}]?(?P<minute_of_h>[0-5]\d)\b";
    let uhr = r"\b(?P<hour_of_uhr>[01]?\d|2[0-4])(?:[.:](?P<minute_of_uhr>[0-5]\d))?\s(?:Uhr\b|o['’]clock\b)";
    let named = r"(?i:\b(?P<named>noon|midday|midnight)\b)";
    Regex::new(&format!("{uhr}|{by_colon}|{by_h}|{by_half}|{named}")).expect("an expression")
});

/// Words of a text in which a time without `am` or `pm` may be one of the second half of the day.
static LATE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("(?i)abend|nachmittag|nachts|evening|afternoon|night").expect("an expression"));

/// The times of day of a text, in order.
pub(super) fn times(text: &str) -> Vec<Quantity> {
    let is_late = LazyCell::new(|| LATE.is_match(text));
    let found = CLOCK.captures_iter(text).filter(|parts| !is_other(parts, text));
    found.map(|parts| time(&parts, || *is_late)).collect()
}

/// Whether digits are no hour: the last of `2,9 am`, an amount of money, or those before the German `am`.
fn is_other(parts: &Captures<'_>, text: &str) -> bool {
    let whole = parts.get(0).map_or(0..0, |whole| whole.range());
    let before = text[..whole.start].trim_end();
    let mut last = before.chars().rev();
    let mark = last.next();
    let within = mark.is_some_and(|mark| ".,/".contains(mark)) && last.next().is_some_and(|one| one.is_ascii_digit());
    let is_money = || {
        let code: String = before.chars().rev().take_while(char::is_ascii_uppercase).collect();
        mark.is_some_and(is_currency) || code.len() == 3
    };
    let is_german = || {
        let next = text[whole.end..].trim_start().chars().next();
        parts[0].ends_with(" am") && next.is_some_and(char::is_uppercase)
    };
    // `1 h 45 min` and `12 h 20 °C` are two amounts.
    let has_unit = || {
        let rest = text[whole.end..].trim_start_matches([' ', '\u{a0}']);
        let word = rest.find(|letter: char| !letter.is_alphabetic()).map_or(rest, |length| &rest[..length]);
        rest.starts_with(['°', '%', '€', '$']) || unit_of(word).is_some()
    };
    parts.name("hour_of_h").is_some() && has_unit()
        || parts.name("its_half").is_some() && (within && before.len() == whole.start || is_money() || is_german())
}

/// Without `am` or `pm`, an hour from one to twelve may be in either half of the day; with `Uhr` or a leading zero, if the text
/// speaks of the second half.
fn time(parts: &Captures<'_>, is_late: impl Fn() -> bool) -> Quantity {
    let first = |names: &[&str]| names.iter().find_map(|name| parts.name(name));
    let end = parts.get(0).map_or(0, |whole| whole.end());
    if let Some(named) = parts.name("named") {
        let is_midnight = named.as_str().eq_ignore_ascii_case("midnight");
        return Quantity::time(named.start()..end, if is_midnight { vec![0.0, 1440.0] } else { vec![720.0] });
    }
    let number = |names: &[&str]| first(names).and_then(|digits| digits.as_str().parse::<f64>().ok());
    let hours = ["hour", "hour_of_half", "hour_of_uhr", "hour_of_h"];
    let (written, start) = first(&hours).map_or(("", 0), |hour| (hour.as_str(), hour.start()));
    let hour = number(&hours).unwrap_or(f64::NAN);
    let minute = number(&["minute", "minute_of_half", "minute_of_uhr", "minute_of_h"]).unwrap_or_default();
    let is_exact = || (parts[0].ends_with("Uhr") || written.starts_with('0')) && !is_late();
    let hours = match first(&["half", "its_half"]).map(|half| half.as_str()) {
        Some("p" | "P") => vec![hour % 12.0 + 12.0],
        Some(_) => vec![hour % 12.0],
        None if hour <= 12.0 && !is_exact() => vec![hour, (hour + 12.0) % 24.0],
        None => vec![hour % 24.0],
    };
    let values = hours.into_iter().map(|hour| hour * 60.0 + minute).collect();
    let mut time = Quantity::time(start..end, values);
    time.hours = parts.name("hour_of_h").is_some();
    time
}

/// Whether a time of day, in minutes, is written as a plain number: a full hour (`9 am`), or with a point (`18.30`).
pub(super) fn is_written_as(minutes: f64, number: f64) -> bool {
    let (hour, minute) = ((minutes / 60.0).floor(), minutes % 60.0);
    [hour, hour % 12.0].iter().any(|hour| equal(hour + minute / 100.0, number))
}

/// Hour and minute of a time, as numbers that may stand apart: `1:10` for `1 to 10`.
pub(super) fn parts(time: &Quantity) -> Option<[f64; 2]> {
    let minutes = time.values.first().filter(|_| time.unit == Some(UNIT))?;
    Some([(minutes / 60.0).floor(), minutes % 60.0])
}

//! Times of day, compared in minutes after midnight: `6:30 pm` is `18:30`.

use super::quantity::{Quantity, equal};
use regex::{Captures, Regex};
use std::sync::LazyLock;

/// The unit of times of day.
pub(super) const UNIT: &str = "clock";

/// A time of day, also within a date and time as computers write it: by its colon, by `am`, `pm` or `Uhr`, or by its name.
static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
    let half = |name: &str| format!(r"\s?(?P<{name}>[AaPp])\.?[Mm]\b");
    let by_colon = format!(
        r"(?:\b|T)(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?::[0-5]\d(?:[.,]\d+)?)?(?:{}|\b|Z)",
        half("half")
    );
    let by_half = format!(r"\b(?P<hour_of_half>0?[1-9]|1[0-2])(?:\.(?P<minute_of_half>[0-5]\d))?{}", half("its_half"));
    let uhr =
        r"\b(?P<hour_of_uhr>[01]?\d|2[0-3])(?:[.:](?P<minute_of_uhr>[0-5]\d))?\sUhr(?:\s(?P<minute_behind>[0-5]\d)\b)?";
    let named = r"\b(?P<named>noon|midday|midnight)\b";
    let late = r"(?:\s(?P<late>abends|nachmittags)\b)?";
    Regex::new(&format!("{uhr}{late}|{by_colon}|{by_half}|{named}")).expect("an expression")
});

/// The times of day of a text, in order.
pub(super) fn times(text: &str) -> Vec<Quantity> {
    // The last digits of `2,9 am` are no hour.
    let is_within = |at: usize| {
        let mut before = text[..at].chars().rev();
        before.next().is_some_and(|mark| ".,/".contains(mark)) && before.next().is_some_and(|one| one.is_ascii_digit())
    };
    let found = CLOCK.captures_iter(text).map(|parts| time(&parts));
    found.filter(|time| !is_within(time.start)).collect()
}

/// Without `am`, `pm`, `Uhr` or a leading zero, an hour from one to twelve may be in either half of the day.
fn time(parts: &Captures<'_>) -> Quantity {
    let first = |names: &[&str]| names.iter().find_map(|name| parts.name(name));
    let place = |from: usize| from..parts.get(0).map_or(0, |whole| whole.end());
    if let Some(named) = parts.name("named") {
        let values = if named.as_str() == "midnight" { vec![0.0, 1440.0] } else { vec![720.0] };
        return Quantity::time(place(named.start()), values);
    }
    let number = |names: &[&str]| first(names).and_then(|digits| digits.as_str().parse::<f64>().ok());
    let hours = ["hour", "hour_of_half", "hour_of_uhr"];
    let written = first(&hours).map_or("", |hour| hour.as_str());
    let hour = number(&hours).unwrap_or(f64::NAN);
    let minute = number(&["minute", "minute_of_half", "minute_of_uhr", "minute_behind"]).unwrap_or_default();
    let half = first(&["half", "its_half"]).map(|half| half.as_str().to_ascii_lowercase());
    let half = half.or_else(|| parts.name("late").map(|_| "p".to_owned()));
    let is_of_day = parts.name("hour_of_uhr").is_some() || written.starts_with('0');
    let hours = match half {
        Some(half) => vec![hour % 12.0 + if half == "p" { 12.0 } else { 0.0 }],
        None if !is_of_day && hour <= 12.0 => vec![hour, (hour + 12.0) % 24.0],
        None => vec![hour],
    };
    let from = first(&["hour", "hour_of_half", "hour_of_uhr"]).map_or(0, |hour| hour.start());
    Quantity::time(place(from), hours.into_iter().map(|hour| hour * 60.0 + minute).collect())
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

//! Times of day, compared in minutes after midnight: `6:30 pm` is `18:30`.

use super::quantity::{Quantity, equal};
use regex::{Captures, Regex};
use std::sync::LazyLock;

/// The unit of times of day.
pub(super) const UNIT: &str = "clock";

/// A time of day, also within a date and time as computers write it.
static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
    let time = r"(?:\b|T)(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?::[0-5]\d(?:[.,]\d+)?)?(?:\b|Z)";
    Regex::new(&format!(r"{time}(?:\s?(?P<half>[AaPp])\.?[Mm]\b)?")).expect("an expression")
});

/// The times of day of a text, in order.
pub(super) fn times(text: &str) -> Vec<Quantity> {
    CLOCK.captures_iter(text).map(|parts| time(&parts)).collect()
}

/// Without `am` or `pm`, an hour up to twelve may be in either half of the day.
fn time(parts: &Captures<'_>) -> Quantity {
    let of = |name: &str| parts[name].parse::<f64>().unwrap_or(f64::NAN);
    let (hour, minute) = (of("hour"), of("minute"));
    let hours = match parts.name("half").map(|half| half.as_str().to_ascii_lowercase()) {
        Some(half) => vec![hour % 12.0 + if half == "p" { 12.0 } else { 0.0 }],
        None if hour <= 12.0 => vec![hour, (hour + 12.0) % 24.0],
        None => vec![hour],
    };
    let place = parts.name("hour").map_or(0, |hour| hour.start())..parts.get(0).map_or(0, |whole| whole.end());
    Quantity::time(place, hours.into_iter().map(|hour| hour * 60.0 + minute).collect())
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

//! User-written times: `10s`, `1500ms`, `90d`. Parsed once, when a file is read; printed as written.

use std::borrow::Cow;
use std::ops::Deref;
use std::str::FromStr;
use std::time::Duration;

/// Text that is not a valid time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not a duration.
    #[error("`{0}` is not a time: write `10s`, `1500ms` or `2m`")]
    Time(String),
    /// Not an age.
    #[error("`{0}` is not an age: write `90d` or `12h`")]
    Age(String),
    /// Not a number of days.
    #[error("`{0}` is not an age: write a whole number of days, `90d`")]
    Days(String),
}

const UNITS: [(&str, u64); 5] =
    [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000), ("h", 3_600_000_000_000)];

/// Parses `10s`, `1500ms`, `1.5s`, `2m`, `1h` or `250us`.
///
/// # Errors
/// [`DurationError::Time`], with a message.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let text = text.trim();
    let wrong = || DurationError::Time(text.to_owned());
    let split = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..split], text[split..].trim());
    let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if fraction.len() > 9 {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let parts: u64 = fraction.parse().map_err(|_| wrong())?;
    let tenth = 10_u64.pow(fraction.len() as u32);
    let nanos = u128::from(whole) * u128::from(*scale) + u128::from(parts) * u128::from(*scale) / u128::from(tenth);
    let nanos = u64::try_from(nanos).map_err(|_| wrong())?;
    Ok(Duration::from_nanos(nanos))
}

/// Parses a number of days, `90d`, or a duration as in [`parse_duration`].
///
/// # Errors
/// [`DurationError::Age`] or [`DurationError::Days`], with a message.
pub(crate) fn parse_age(text: &str) -> Result<Duration, DurationError> {
    let text = text.trim();
    let Some(days) = text.strip_suffix('d').map(str::trim) else {
        return parse_duration(text).map_err(|_| DurationError::Age(text.to_owned()));
    };
    match days.parse::<u64>() {
        Ok(days) if days <= 36_500 => Ok(Duration::from_hours(days * 24)),
        _ => Err(DurationError::Days(text.to_owned())),
    }
}

/// The shortest notation of a time, to the microsecond.
fn print_duration(time: Duration) -> String {
    let nanos = time.as_nanos();
    let fits = UNITS.iter().rev().find(|(_, scale)| nanos > 0 && nanos.is_multiple_of(u128::from(*scale)));
    match fits {
        Some((unit, scale)) => format!("{}{unit}", nanos / u128::from(*scale)),
        None if nanos == 0 => "0s".into(),
        None => format!("{}us", nanos / 1_000),
    }
}

/// A duration that keeps its notation: it is a [`Duration`], and prints as its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeSpan {
    written: Cow<'static, str>,
    time: Duration,
}

impl TimeSpan {
    /// Its syntax, as the `pattern` of a JSON Schema.
    pub const PATTERN: &'static str = r"^\s*\d+(\.\d{1,9})?\s*(us|ms|s|m|h)\s*$";

    /// A duration in seconds.
    pub fn seconds(seconds: u64) -> Self {
        Self { written: format!("{seconds}s").into(), time: Duration::from_secs(seconds) }
    }
}

impl Deref for TimeSpan {
    type Target = Duration;

    fn deref(&self) -> &Duration {
        &self.time
    }
}

impl From<Duration> for TimeSpan {
    fn from(time: Duration) -> Self {
        Self { written: print_duration(time).into(), time }
    }
}

impl FromStr for TimeSpan {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        Ok(Self { time: parse_duration(text)?, written: text.to_owned().into() })
    }
}

/// The age from which on something is too old, as written: `90d`, `12h`, or `never`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgeLimit {
    written: String,
    age: Option<Duration>,
}

impl AgeLimit {
    /// Its syntax, as the `pattern` of a JSON Schema.
    pub const PATTERN: &'static str = r"^\s*(never|\d+\s*d|\d+(\.\d{1,9})?\s*(us|ms|s|m|h))\s*$";

    /// The age; `None` for never.
    pub fn age(&self) -> Option<Duration> {
        self.age
    }
}

impl FromStr for AgeLimit {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let age = if text.trim() == "never" { None } else { Some(parse_age(text)?) };
        Ok(Self { written: text.to_owned(), age })
    }
}

/// Implements reading and writing as text, with the pattern of its schema.
macro_rules! written_as_text {
    ($name:ident, $pattern:expr) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(&self.written)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.written)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }

        $crate::platform::schema!(inline $name, schemars::json_schema!({"type": "string", "pattern": $pattern}));
    };
}

pub(super) use written_as_text;

written_as_text!(TimeSpan, TimeSpan::PATTERN);
written_as_text!(AgeLimit, AgeLimit::PATTERN);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_age_may_be_written_in_days() {
        assert_eq!(parse_age("90d"), Ok(Duration::from_hours(90 * 24)));
        assert_eq!(parse_age(" 12h"), Ok(Duration::from_hours(12)));
        for wrong in ["", "d", "1.5d", "-1d", "99999999999999999999d", "90 days"] {
            assert!(parse_age(wrong).expect_err(wrong).to_string().contains("is not an age"), "{wrong}");
        }
        assert_eq!("never".parse::<AgeLimit>().map(|limit| limit.age()), Ok(None));
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(parse_duration("1500ms"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_mins(2)));
        for bad in ["10", "s", "-1s", "1d", "", "1.s.s", "99999999999999999999h", "1..5s"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_time_is_stored_as_it_was_written() {
        for text in ["120s", "2m", " 1.50 s"] {
            let json = serde_json::to_string(text).expect("JSON");
            let span: TimeSpan = serde_json::from_str(&json).expect("a time");
            assert_eq!((span.to_string().as_str(), serde_json::to_string(&span).expect("JSON")), (text, json));
        }
        assert_eq!(*TimeSpan::seconds(120), Duration::from_mins(2));
        assert!(serde_json::from_str::<TimeSpan>("\"soon\"").is_err());
    }

    proptest! {
        #[test]
        fn printing_and_parsing_a_time_gives_it_back(micros in 0..u64::MAX / 1000) {
            let time = Duration::from_micros(micros);
            prop_assert_eq!(parse_duration(&print_duration(time)), Ok(time));
        }

        #[test]
        fn what_is_a_time_looks_as_its_schema_says(text in "[ 0-9.]{0,6}(us|ms|s|m|h|d|never)?") {
            let looks = |pattern: &str| regex::Regex::new(pattern).expect("a pattern").is_match(&text);
            prop_assert!(text.parse::<TimeSpan>().is_err() || looks(TimeSpan::PATTERN));
            prop_assert!(text.parse::<AgeLimit>().is_err() || looks(AgeLimit::PATTERN));
        }
    }
}

//! Targets and floors as criteria write them: `>= 95%`, `= 100%`, `<= 5%`, `<= 10s`.

use crate::metric::{Measure, parse_duration};

/// What a criterion asks of its metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Target {
    /// The rate must be at least this, 0 to 1.
    AtLeast(f64),
    /// The rate must be at most this, 0 to 1.
    AtMost(f64),
    /// Enough units must take less than this, in microseconds.
    Below(u64),
}

impl Target {
    /// The share of good units that it asks for, where a time metric's own share is `quantile`.
    pub(super) fn good_share(self, quantile: f64) -> f64 {
        match self {
            Self::AtLeast(rate) => rate,
            Self::AtMost(rate) => 1.0 - rate,
            Self::Below(_) => quantile,
        }
    }
}

/// Reads a target for a metric of that measure.
///
/// # Errors
/// In words: what is wrong and what to write.
pub(super) fn parse(text: &str, measure: Measure) -> Result<Target, String> {
    let text = text.trim();
    let operators = [">=", "<=", "="];
    let operator = operators.into_iter().find(|operator| text.starts_with(operator));
    let Some(operator) = operator else {
        return Err(format!("the target `{text}` has no comparison: write `>= 95%`, `= 100%`, `<= 5%` or `<= 10s`"));
    };
    let value = text[operator.len()..].trim();
    match (measure, operator) {
        (Measure::Time, "<=") => Ok(Target::Below(parse_duration(value)?)),
        (Measure::Time, _) => Err(format!("the target `{text}` is for a time: write `<= 10s`")),
        (Measure::Rate, ">=") => Ok(Target::AtLeast(share(value)?)),
        (Measure::Rate, "<=") => Ok(Target::AtMost(share(value)?)),
        (Measure::Rate, _) => match share(value)? {
            rate if rate >= 1.0 => Ok(Target::AtLeast(1.0)),
            rate if rate <= 0.0 => Ok(Target::AtMost(0.0)),
            _ => Err(format!("the target `{text}` can never be met exactly: write `>=` or `<=`")),
        },
    }
}

/// Reads a floor, which may leave the comparison out, as a share of good units.
///
/// # Errors
/// In words: what is wrong and what to write.
pub(super) fn parse_floor(text: &str, target: Target) -> Result<f64, String> {
    let text = text.trim();
    let digits = text.starts_with(|character: char| character.is_ascii_digit());
    match (target, digits) {
        (Target::AtMost(_), true) => Ok(1.0 - share(text)?),
        (_, true) => share(text),
        (Target::AtMost(_), false) => match parse(text, Measure::Rate)? {
            Target::AtMost(rate) => Ok(1.0 - rate),
            _ => Err(format!("the floor `{text}` must look the same way as its target: write `<= 5%`")),
        },
        (_, false) => match parse(text, Measure::Rate)? {
            Target::AtLeast(rate) => Ok(rate),
            _ => Err(format!("the floor `{text}` must look the same way as its target: write `>= 95%`")),
        },
    }
}

fn share(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is no rate: write a percentage from 0% to 100%");
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number.trim(), 100.0),
        None => (text, 1.0),
    };
    if number.is_empty() || !number.chars().all(|character| character.is_ascii_digit() || character == '.') {
        return Err(wrong());
    }
    let value = number.parse::<f64>().map_err(|_| wrong())? / scale;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_for_their_measure() {
        assert_eq!(parse(">= 95%", Measure::Rate), Ok(Target::AtLeast(0.95)));
        assert_eq!(parse("= 100%", Measure::Rate), Ok(Target::AtLeast(1.0)));
        assert_eq!(parse("= 0 %", Measure::Rate), Ok(Target::AtMost(0.0)));
        assert_eq!(parse("<=5%", Measure::Rate), Ok(Target::AtMost(0.05)));
        assert_eq!(parse(">= 0.9", Measure::Rate), Ok(Target::AtLeast(0.9)));
        assert_eq!(parse("<= 10s", Measure::Time), Ok(Target::Below(10_000_000)));
        for text in ["95%", ">= 950%", ">= x%", ">= -5%", "= 95%", ">= 1e0", ">= NaN"] {
            assert!(parse(text, Measure::Rate).is_err(), "{text}");
        }
        for text in [">= 10s", "<= 95%", "= 1s"] {
            assert!(parse(text, Measure::Time).is_err(), "{text}");
        }
    }

    #[test]
    fn a_floor_looks_the_way_of_its_target() {
        assert_eq!(parse_floor(">= 95%", Target::AtLeast(1.0)), Ok(0.95));
        assert_eq!(parse_floor("95%", Target::Below(1)), Ok(0.95));
        assert!(parse_floor("<= 5%", Target::AtMost(0.0)).is_ok_and(|floor| (floor - 0.95).abs() < 1e-12));
        assert!(parse_floor("<= 5%", Target::AtLeast(1.0)).is_err());
    }
}

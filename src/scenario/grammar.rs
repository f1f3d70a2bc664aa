//! The grammar of criteria: metrics and targets, as text and as values.
//!
//! `mandatory_call_rate(knowledge, at=first)`, `>= 95%`, `<= 10s`. Parsing is pure; a printed value parses to the
//! same value.

use crate::settings::parse_duration;
use std::time::Duration;

/// A syntax error; offsets count characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct GrammarError {
    /// The error message.
    pub message: String,
    /// The accepted words, if there are few.
    pub label: Option<String>,
    /// Offset of its first character.
    pub start: usize,
    /// Its length in characters.
    pub length: usize,
}

impl GrammarError {
    pub(super) fn new(message: impl Into<String>, start: usize, length: usize) -> Self {
        Self { message: message.into(), label: None, start, length: length.max(1) }
    }

    pub(super) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }
}

/// A metric with its parameters as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MetricCall {
    /// The metric's name.
    pub name: String,
    /// Its arguments, in order.
    pub arguments: Vec<Argument>,
}

/// One argument of a metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Argument {
    /// The parameter's name, when it is given by name.
    pub key: Option<String>,
    pub value: String,
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "_+-.".contains(letter))
}

/// Parses `name` or `name(argument, key=value)`.
pub(crate) fn parse_metric(text: &str) -> Result<MetricCall, GrammarError> {
    let whole = text.chars().count();
    let name_end = text.find('(').unwrap_or(text.len());
    let name = text[..name_end].trim();
    if !is_word(name) {
        return Err(GrammarError::new("expected a metric's name, then its arguments in parentheses", 0, whole));
    }
    let mut call = MetricCall { name: name.into(), arguments: Vec::new() };
    if name_end == text.len() {
        return Ok(call);
    }
    let Some(inner) = text[name_end + 1..].trim_end().strip_suffix(')') else {
        return Err(GrammarError::new("the arguments do not end with `)`", whole.saturating_sub(1), 1));
    };
    if inner.trim().is_empty() {
        return Ok(call);
    }
    let mut start = text[..=name_end].chars().count();
    for part in inner.split(',') {
        let length = part.chars().count();
        let lead = length - part.trim_start().chars().count();
        let (key, value) = match part.split_once('=') {
            Some((key, value)) => (Some(key.trim()), value.trim()),
            None => (None, part.trim()),
        };
        if !is_word(value) || key.is_some_and(|key| !is_word(key)) {
            let wrong = part.trim().chars().count();
            return Err(GrammarError::new("expected a word, or key=word", start + lead, wrong));
        }
        call.arguments.push(Argument { key: key.map(Into::into), value: value.into() });
        start += length + 1;
    }
    Ok(call)
}

/// Bound that a metric must reach. Rates are 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// `>= 95%`, and `= 100%`.
    AtLeastRate(f64),
    /// `<= 5%`, and `= 0%`.
    AtMostRate(f64),
    /// `<= 10s`.
    AtMostTime(Duration),
}

impl Target {
    /// Whether it bounds a time.
    pub fn is_time(self) -> bool {
        matches!(self, Self::AtMostTime(_))
    }

    /// Whether lower is better: the metric counts unwanted events as successes.
    pub fn is_ceiling(self) -> bool {
        matches!(self, Self::AtMostRate(_))
    }

    /// The share of good units that it requires; `quantile` is the share of a time metric.
    pub fn good_share(self, quantile: f64) -> f64 {
        match self {
            Self::AtLeastRate(rate) => rate,
            Self::AtMostRate(rate) => 1.0 - rate,
            Self::AtMostTime(_) => quantile,
        }
    }
}

/// Parses `>= 95%`, `<= 5%`, `= 100%`, `>= 0.95` and `<= 10s`.
pub(crate) fn parse_target(text: &str) -> Result<Target, GrammarError> {
    let whole = text.chars().count();
    let trimmed = text.trim();
    let Some((at_least, rest)) = [(">=", Some(true)), ("<=", Some(false)), ("=", None)]
        .iter()
        .find_map(|(sign, at_least)| trimmed.strip_prefix(sign).map(|rest| (*at_least, rest.trim())))
    else {
        return Err(GrammarError::new("a target begins with `>=`, `<=` or `=`", 0, whole)
            .label("for example `>= 95%` or `<= 10s`"));
    };
    let start = whole - rest.chars().count();
    let wrong = |message: &str| GrammarError::new(message, start, whole - start);
    let number = rest.strip_suffix('%').map_or(rest, str::trim_end);
    if let Some(value) = decimal(number) {
        let rate = if rest.ends_with('%') { value / 100.0 } else { value };
        if !(0.0..=1.0).contains(&rate) {
            return Err(wrong("a rate is 0% to 100%, or 0 to 1"));
        }
        return match at_least {
            Some(true) => Ok(Target::AtLeastRate(rate)),
            Some(false) => Ok(Target::AtMostRate(rate)),
            None if rate >= 1.0 => Ok(Target::AtLeastRate(1.0)),
            None if rate <= 0.0 => Ok(Target::AtMostRate(0.0)),
            None => Err(wrong("only 0% and 100% can be hit exactly").label("write `>=` or `<=`")),
        };
    }
    match (parse_duration(rest), at_least) {
        (Ok(limit), Some(false)) => Ok(Target::AtMostTime(limit)),
        (Ok(_), _) => Err(GrammarError::new("a time has an upper limit", 0, whole).label("write `<=`")),
        (Err(_), _) => Err(wrong("expected a rate (`95%`) or a time (`10s`, `1500ms`, `2m`)")),
    }
}

/// A target as people read it: `≥ 95 %` for `>= 95%`, `≤ 5 s` for `<= 5s`.
pub(crate) fn target_text(written: &str) -> String {
    let (sign, rest) = match written.trim() {
        text if text.starts_with(">=") => ("≥ ", &text[2..]),
        text if text.starts_with("<=") => ("≤ ", &text[2..]),
        text if text.starts_with('=') => ("= ", &text[1..]),
        text => ("", text),
    };
    let rest = rest.trim();
    let unit = rest.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.').trim_start();
    let number = rest[..rest.len() - unit.len()].trim_end();
    let gap = if number.is_empty() || unit.is_empty() { "" } else { " " };
    format!("{sign}{number}{gap}{unit}")
}

/// Parses the floor of an invariant, which has the direction of its target (`>= 95%`, or `<= 5%` where lower is
/// better), as the required share of good units.
pub(crate) fn parse_floor(text: &str, target: Target) -> Result<f64, GrammarError> {
    let floor = parse_target(text)?;
    match floor {
        Target::AtLeastRate(rate) if !target.is_ceiling() && rate < 1.0 => Ok(rate),
        Target::AtMostRate(rate) if target.is_ceiling() && rate > 0.0 => Ok(1.0 - rate),
        _ => {
            let message = if target.is_ceiling() {
                "this floor is a rate above 0 %: `<= 5%` for example"
            } else {
                "a floor is a rate below 100 %: `>= 95%` for example"
            };
            Err(GrammarError::new(message, 0, text.chars().count()))
        }
    }
}

fn decimal(text: &str) -> Option<f64> {
    let written = !text.is_empty() && text.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
    if written { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::TimeSpan;
    use proptest::prelude::*;
    use std::fmt;

    impl fmt::Display for MetricCall {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(&self.name)?;
            if self.arguments.is_empty() {
                return Ok(());
            }
            let shown: Vec<String> = self.arguments.iter().map(ToString::to_string).collect();
            write!(formatter, "({})", shown.join(", "))
        }
    }

    impl fmt::Display for Argument {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            match &self.key {
                Some(key) => write!(formatter, "{key}={}", self.value),
                None => formatter.write_str(&self.value),
            }
        }
    }

    impl fmt::Display for Target {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                Self::AtLeastRate(rate) => write!(formatter, ">= {}", Percent(*rate)),
                Self::AtMostRate(rate) => write!(formatter, "<= {}", Percent(*rate)),
                Self::AtMostTime(limit) => write!(formatter, "<= {}", TimeSpan::from(*limit)),
            }
        }
    }

    /// A rate, printed as per cent where that is exact, otherwise as a number.
    struct Percent(f64);

    impl fmt::Display for Percent {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            let percent = (self.0 * 1e8).round() / 1e6;
            #[expect(clippy::float_cmp, reason = "the question is whether the very same number comes back")]
            if percent / 100.0 == self.0 { write!(formatter, "{percent}%") } else { write!(formatter, "{}", self.0) }
        }
    }

    #[test]
    fn a_target_is_written_like_every_other_figure() {
        let shown = [">= 95%", "<=5s", "= 100 %", ">= 0.95", "<= 1500ms", "odd"].map(target_text);
        assert_eq!(shown, ["≥ 95 %", "≤ 5 s", "= 100 %", "≥ 0.95", "≤ 1500 ms", "odd"]);
    }

    #[test]
    fn a_metric_has_positional_and_named_arguments() {
        let call = parse_metric("mandatory_call_rate(knowledge_base_search, at=after_retry)").expect("a metric");
        assert_eq!(call.name, "mandatory_call_rate");
        assert_eq!(call.arguments[0], Argument { key: None, value: "knowledge_base_search".into() });
        assert_eq!(call.arguments[1], Argument { key: Some("at".into()), value: "after_retry".into() });
    }

    #[test]
    fn a_mistake_in_a_metric_says_where_it_is() {
        let error = parse_metric("a_rate(one, t=o o)").expect_err("two words");
        assert_eq!((error.start, error.length), (12, 5));
        assert!(parse_metric("a_rate(one").is_err());
        assert!(parse_metric("").is_err());
    }

    #[test]
    fn targets_are_rates_or_times() {
        assert_eq!(parse_target(">= 95%"), Ok(Target::AtLeastRate(0.95)));
        assert_eq!(parse_target("= 100%"), Ok(Target::AtLeastRate(1.0)));
        assert_eq!(parse_target("= 0%"), Ok(Target::AtMostRate(0.0)));
        assert_eq!(parse_target("<=0.05"), Ok(Target::AtMostRate(0.05)));
        assert_eq!(parse_target("<= 10s"), Ok(Target::AtMostTime(Duration::from_secs(10))));
        for bad in ["95%", ">= 195%", "= 50%", ">= 10s", "<= soon", "", "> 5%", ">= NaN", ">= 1e3"] {
            assert!(parse_target(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_floor_looks_the_way_of_its_target() {
        let seconds = Target::AtMostTime(Duration::from_secs(1));
        assert_eq!(parse_floor(">= 95%", Target::AtLeastRate(1.0)), Ok(0.95));
        assert_eq!(parse_floor(">= 95%", seconds), Ok(0.95));
        assert!(parse_floor("<= 5%", Target::AtMostRate(0.0)).is_ok_and(|floor| (floor - 0.95).abs() < 1e-12));
        assert!(parse_floor("<= 5%", Target::AtLeastRate(1.0)).is_err());
        assert!(parse_floor(">= 95%", Target::AtMostRate(0.0)).is_err());
        assert!(parse_floor("<= 1s", seconds).is_err() && parse_floor("= 100%", seconds).is_err());
    }

    proptest! {
        #[test]
        fn printing_and_parsing_a_metric_gives_it_back(
            name in "[a-z][a-z_0-9]{0,20}",
            arguments in prop::collection::vec((prop::option::of("[a-z_]{1,8}"), "[a-z0-9_+.-]{1,12}"), 0..4),
        ) {
            let arguments = arguments.into_iter().map(|(key, value)| Argument { key, value }).collect();
            let call = MetricCall { name, arguments };
            prop_assert_eq!(parse_metric(&call.to_string()), Ok(call));
        }

        #[test]
        fn printing_and_parsing_a_target_gives_it_back(rate in 0.0..=1.0_f64, tenths in 0..=1000_u32, micros in 0..u64::MAX / 1000) {
            for target in [
                Target::AtLeastRate(rate),
                Target::AtMostRate(f64::from(tenths) / 1000.0),
                Target::AtMostTime(Duration::from_micros(micros)),
            ] {
                prop_assert_eq!(parse_target(&target.to_string()), Ok(target));
            }
        }

        #[test]
        fn no_text_makes_the_parsers_panic(text in "\\PC{0,40}") {
            let _ = (parse_metric(&text), parse_target(&text), parse_duration(&text));
        }
    }
}

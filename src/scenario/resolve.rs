//! Resolves a metric as written against the table of metrics: name, arguments, defaults.

use super::diagnostic::did_you_mean;
use super::grammar::{GrammarError, MetricCall, parse_metric};
use crate::settings::catalogue::{ACCOUNTS, MetricEntry, Parameter, ResolvedMetric, Values};
use std::collections::BTreeMap;

/// Parses a metric and fills in defaults.
///
/// # Errors
/// An unknown name with the nearest known one, or an invalid parameter, each with its place.
pub(crate) fn resolve_metric(text: &str, metrics: &[&'static MetricEntry]) -> Result<ResolvedMetric, GrammarError> {
    let call = parse_metric(text)?;
    let Some(entry) = metrics.iter().copied().find(|entry| entry.name == call.name) else {
        let known = metrics.iter().map(|entry| entry.name);
        let start = text.chars().take_while(|letter| letter.is_whitespace()).count();
        let error = GrammarError::new(format!("unknown metric `{}`", call.name), start, call.name.chars().count());
        return Err(error.label(did_you_mean(&call.name, known)));
    };
    let mut parameters = BTreeMap::new();
    fill(text, &call, entry, &mut parameters)?;
    for parameter in entry.parameters {
        match (parameters.contains_key(parameter.name), parameter.default) {
            (true, _) => {}
            (false, Some(default)) => {
                parameters.insert(parameter.name, default.to_owned());
            }
            (false, None) => {
                let message = format!("`{}` needs its argument `{}`", entry.name, parameter.name);
                let example = format!("for example `{}({})`", entry.name, parameter.example());
                return Err(GrammarError::new(message, 0, text.chars().count()).label(example));
            }
        }
    }
    Ok(ResolvedMetric { entry, parameters })
}

fn fill(
    text: &str,
    call: &MetricCall,
    entry: &'static MetricEntry,
    parameters: &mut BTreeMap<&'static str, String>,
) -> Result<(), GrammarError> {
    let mut from = text.find('(').map_or(0, |at| at + 1);
    for (index, argument) in call.arguments.iter().enumerate() {
        let first = argument.key.as_deref().unwrap_or(&argument.value);
        let start = text.get(from..).and_then(|rest| rest.find(first)).map_or(from, |at| from + at);
        let value_at = text.get(start..).and_then(|rest| rest.find(&argument.value)).map_or(start, |at| start + at);
        let offset = |byte: usize| text.get(..byte).map_or(0, |before| before.chars().count());
        let known = || entry.parameters.iter().map(|parameter| parameter.name);
        let parameter = match &argument.key {
            Some(key) => entry.parameters.iter().find(|parameter| parameter.name == key),
            None => entry.parameters.get(index),
        };
        let Some(parameter) = parameter else {
            let message = format!("`{}` has no argument `{first}`", entry.name);
            return Err(GrammarError::new(message, offset(start), first.len()).label(did_you_mean(first, known())));
        };
        if let Some(label) = wanted(parameter, &argument.value) {
            let message = format!("`{}` cannot be `{}`", parameter.name, argument.value);
            return Err(GrammarError::new(message, offset(value_at), argument.value.len()).label(label));
        }
        if parameters.insert(parameter.name, argument.value.clone()).is_some() {
            let message = format!("`{}` is given twice", parameter.name);
            return Err(GrammarError::new(message, offset(start), first.len()));
        }
        from = text.get(value_at..).and_then(|rest| rest.find(',')).map_or(text.len(), |at| value_at + at + 1);
    }
    Ok(())
}

/// Describes what a parameter accepts, if it does not accept this value. Tool names are not checked here: a flow
/// declares its tools, or they are known only at run time.
fn wanted(parameter: &Parameter, value: &str) -> Option<String> {
    match parameter.values {
        Values::Tool if value.trim().is_empty() => Some("name a tool, or a role".to_owned()),
        Values::Tool => None,
        Values::OneOf(words) if words.contains(&value) => None,
        Values::OneOf(words) => Some(did_you_mean(value, words.iter().copied())),
        Values::Accounts => {
            let wrong = value.split('+').find(|word| !ACCOUNTS.contains(word));
            wrong.map(|word| format!("{}, joined by `+`", did_you_mean(word, ACCOUNTS)))
        }
        Values::Count => match value.parse::<u32>() {
            Ok(2..=100) => None,
            _ => Some("a number from 2 to 100".to_owned()),
        },
        Values::Item => {
            let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
            if !value.is_empty() && value.chars().all(plain) {
                None
            } else {
                Some("the id of a rubric's item: lower-case letters, digits and hyphens".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogues;

    fn resolve(text: &str) -> Result<ResolvedMetric, GrammarError> {
        resolve_metric(text, &catalogues().metrics)
    }

    #[test]
    fn defaults_are_filled_in() {
        let metric = resolve("mandatory_call_rate(lookup)").expect("a metric");
        assert_eq!((metric.parameter("tool"), metric.parameter("at")), ("lookup", "after_retry"));
        assert_eq!(resolve("first_attempt_rate").expect("a metric").parameter("tool"), "respond");
        let retries = resolve("retry_recovery(by=episode, accounts=transport+tool)").expect("a metric");
        assert_eq!((retries.parameter("by"), retries.parameter("accounts")), ("episode", "transport+tool"));
    }

    #[test]
    fn wrong_names_and_arguments_point_at_themselves() {
        let place = |text: &str| resolve(text).map_err(|error| (error.start, error.length)).expect_err("wrong");
        assert_eq!(place("latency_p59"), (0, 11));
        assert_eq!(place("mandatory_call_rate"), (0, 19));
        assert_eq!(place("mandatory_call_rate(web_search, at=fist)"), (35, 4));
        assert_eq!(place("retry_recovery(wrong=attempt)"), (15, 5));
        assert_eq!(place("retry_recovery(accounts=model+user)"), (24, 10));
        assert_eq!(place("keyword_coverage(x)"), (17, 1));
        assert_eq!((place("pass_all"), place("pass_all(k=1)")), ((0, 8), (11, 1)));
        assert_eq!(place("retry_recovery(attempt, by=attempt)"), (24, 2));
    }

    #[test]
    fn every_default_is_a_value_that_its_parameter_takes() {
        for parameter in catalogues().metrics.iter().flat_map(|entry| entry.parameters) {
            if let Some(default) = parameter.default {
                assert_eq!(wanted(parameter, default), None, "{}", parameter.name);
            }
            assert_eq!(wanted(parameter, parameter.example()), None, "{}", parameter.name);
        }
    }
}

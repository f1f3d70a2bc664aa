//! Compiled patterns of a case, and what meets them.

use super::quote;
use crate::plan::ResolvedCase;
use crate::scenario::expect::{ArgumentPattern, CallExpectation, CallPattern, Expectation};
use crate::settings::{JsonSchema, SchemaError, expression, expression_work, schema_patterns};
use crate::trace::may_be_nearest;
use regex::Regex;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Compiled regular expressions and JSON Schemas of one case, by source text: compiled once for all its trials.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    regexes: BTreeMap<String, Result<Regex, regex::Error>>,
    schemas: BTreeMap<String, Result<JsonSchema, SchemaError>>,
    mistakes: Vec<String>,
}

impl Patterns {
    /// Compiles every pattern in the case's expectations. A pattern that does not compile fails the checks that use
    /// it.
    pub(crate) fn of(case: &ResolvedCase) -> Self {
        let mut patterns = Self::default();
        for expectation in case.turns().filter_map(|turn| turn.expect.as_ref()).chain(case.expect.as_ref()) {
            patterns.add(expectation);
        }
        patterns.mistakes = patterns.find_mistakes();
        patterns
    }

    /// Returns the cost of compiling the case's expectations, see [`expression_work`].
    pub(crate) fn work(case: &ResolvedCase) -> u64 {
        let mut work = 0_u64;
        let expectations = case.turns().filter_map(|turn| turn.expect.as_ref()).chain(case.expect.as_ref());
        for expectation in expectations {
            let mut found: Vec<&str> =
                expectation.answer.iter().flat_map(|answer| &answer.matches).map(String::as_str).collect();
            for condition in conditions(expectation) {
                match condition {
                    ArgumentPattern::Equals(_) => {}
                    ArgumentPattern::Matches(text) => found.push(text),
                    ArgumentPattern::Schema(schema) => schema_patterns(schema, &mut found),
                }
            }
            work = found.into_iter().fold(work, |work, text| work.saturating_add(expression_work(text)));
        }
        work
    }

    fn add(&mut self, expectation: &Expectation) {
        for text in expectation.answer.iter().flat_map(|answer| &answer.matches) {
            self.add_regex(text);
        }
        for condition in conditions(expectation) {
            match condition {
                ArgumentPattern::Equals(_) => {}
                ArgumentPattern::Matches(text) => self.add_regex(text),
                ArgumentPattern::Schema(schema) => {
                    let compile = || JsonSchema::compile(schema);
                    self.schemas.entry(schema.to_string()).or_insert_with(compile);
                }
            }
        }
    }

    /// Whether a value meets a condition.
    pub(in crate::metric) fn holds(&self, condition: &ArgumentPattern, value: &Value) -> bool {
        match condition {
            ArgumentPattern::Equals(wanted) => equal(wanted, value),
            ArgumentPattern::Matches(expression) => written(value).is_some_and(|text| self.matches(expression, &text)),
            ArgumentPattern::Schema(schema) => self.valid(schema, value),
        }
    }

    /// Whether a condition concerns the digits of a number that the trace keeps as the nearest one.
    pub(in crate::metric) fn is_open(&self, condition: &ArgumentPattern, value: &Value) -> bool {
        let concerns = || match condition {
            ArgumentPattern::Equals(_) => self.holds(condition, value),
            ArgumentPattern::Matches(_) => true,
            // A bound is decided by the nearest number.
            ArgumentPattern::Schema(schema) => ["const", "enum"].iter().any(|name| may_be_nearest(&schema[*name])),
        };
        may_be_nearest(value) && concerns()
    }

    /// Whether a pattern has such a condition on a call of its tool.
    pub(super) fn leave_open(&self, pattern: &CallPattern, arguments: &Value, result: Option<Cow<'_, Value>>) -> bool {
        let part = |place: &String| result.as_ref().and_then(|result| result.pointer(place));
        let of_result = pattern.result.iter().map(|(place, condition)| (condition, part(place)));
        let mut conditions = given(pattern, arguments).chain(of_result);
        conditions.any(|(condition, value)| value.is_some_and(|value| self.is_open(condition, value)))
    }

    fn add_regex(&mut self, text: &str) {
        if !self.regexes.contains_key(text) {
            self.regexes.insert(text.to_owned(), expression(text));
        }
    }

    /// Whether `text` matches the expression; an expression that did not compile matches nothing.
    pub(in crate::metric) fn matches(&self, expression: &str, text: &str) -> bool {
        matches!(self.regexes.get(expression), Some(Ok(regex)) if regex.is_match(text))
    }

    fn valid(&self, schema: &Value, value: &Value) -> bool {
        matches!(self.schemas.get(&schema.to_string()), Some(Ok(validator)) if validator.is_valid(value))
    }

    /// Compile errors, as messages; empty when everything compiled.
    pub(crate) fn mistakes(&self) -> &[String] {
        &self.mistakes
    }

    fn find_mistakes(&self) -> Vec<String> {
        let regexes = self.regexes.iter().filter_map(|(text, made)| {
            made.as_ref().err().map(|error| format!("the expression `{text}` does not compile: {error}"))
        });
        let schemas = self.schemas.iter().filter_map(|(text, made)| {
            made.as_ref().err().map(|error| format!("the schema {} does not compile: {error}", quote(text, 120)))
        });
        regexes.chain(schemas).collect()
    }
}

/// The conditions on arguments, each with the value that it is about.
pub(super) fn given<'v>(
    pattern: &'v CallPattern,
    arguments: &'v Value,
) -> impl Iterator<Item = (&'v ArgumentPattern, Option<&'v Value>)> {
    pattern.arguments.iter().map(|(name, condition)| {
        (condition, if name.starts_with('/') { arguments.pointer(name) } else { arguments.get(name) })
    })
}

/// Every condition of an expectation: on call arguments and on parts of the reply.
fn conditions(expectation: &Expectation) -> impl Iterator<Item = &ArgumentPattern> {
    let arguments = expectation
        .calls
        .iter()
        .flat_map(CallExpectation::patterns)
        .flat_map(|call| call.arguments.values().chain(call.result.values()));
    arguments.chain(expectation.reply.values())
}

/// The text that a value is matched as: strings unchanged, null as none, everything else as in JSON.
fn written(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Null => None,
        _ => Some(Cow::Owned(value.to_string())),
    }
}

/// Equality of JSON values, numbers by value: 5 equals 5.0.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || (left.as_f64() == right.as_f64() && (left.is_f64() || right.is_f64()))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, value)| right.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => left == right,
    }
}

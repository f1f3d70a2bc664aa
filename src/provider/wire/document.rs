//! Reading JSON documents with messages that name the place.

use crate::provider::ErrorKind;
use crate::provider::chat::ToolDefinition;
use serde_json::{Map, Value};

/// Why a document could not be translated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// It is not what the dialect says.
    #[error("{dialect}: {at} should be {expected}, but is {found}; is the provider's dialect set right?")]
    Shape {
        /// The dialect that was read.
        dialect: &'static str,
        /// JSON pointer of the place.
        at: String,
        /// What the dialect wants there.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// It is not JSON.
    #[error("not JSON: {message}")]
    NotJson {
        /// What the parser says, and where.
        message: String,
    },
    /// It is a stream whose last event is missing.
    #[error("the stream ended before its last event")]
    Cut,
    /// It is an answer in which the provider reports an error.
    #[error("the provider reports {}: {message}", kind.as_str())]
    Reported {
        /// What it means.
        kind: ErrorKind,
        /// The provider's words.
        message: String,
    },
}

/// What a value is, for messages.
pub(super) fn kind_of(value: Option<&Value>) -> &'static str {
    match value {
        None => "missing",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "true or false",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a string",
        Some(Value::Array(_)) => "a list",
        Some(Value::Object(_)) => "an object",
    }
}

/// One dialect's reader: it names the dialect in every error.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader(pub &'static str);

impl Reader {
    /// The error that `at` is not `expected`.
    pub(super) fn wrong(self, at: &str, expected: &'static str, found: Option<&Value>) -> WireError {
        WireError::Shape { dialect: self.0, at: at.to_owned(), expected, found: kind_of(found) }
    }

    /// `value` as an object.
    pub(super) fn object<'a>(self, at: &str, value: &'a Value) -> Result<&'a Map<String, Value>, WireError> {
        value.as_object().ok_or_else(|| self.wrong(at, "an object", Some(value)))
    }

    /// The list at `key`.
    pub(super) fn list<'a>(self, map: &'a Map<String, Value>, key: &str) -> Result<&'a Vec<Value>, WireError> {
        let found = map.get(key);
        found.and_then(Value::as_array).ok_or_else(|| self.wrong(&format!("/{key}"), "a list", found))
    }

    /// The string at `key`.
    pub(super) fn string<'a>(self, map: &'a Map<String, Value>, key: &str) -> Result<&'a str, WireError> {
        let found = map.get(key);
        found.and_then(Value::as_str).ok_or_else(|| self.wrong(&format!("/{key}"), "a string", found))
    }
}

/// The string at `key`, empty where there is none.
pub(super) fn text<'a>(map: &'a Map<String, Value>, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A number of tokens; negative or fractional ones are no figure.
pub(super) fn tokens(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}

/// The sum of what is known of both; `None` where nothing is.
pub(super) fn plus(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
}

/// Writes `neutral` at `key` unless what stands there already reads as the same.
pub(super) fn put<T: PartialEq>(
    map: &mut Map<String, Value>,
    key: &str,
    neutral: Option<&T>,
    read: impl Fn(&Value) -> Option<T>,
    write: impl Fn(&T) -> Value,
) {
    if map.get(key).and_then(&read).as_ref() == neutral && (neutral.is_some() || map.contains_key(key)) {
        return;
    }
    match neutral {
        Some(neutral) => _ = map.insert(key.to_owned(), write(neutral)),
        None => _ = map.shift_remove(key),
    }
}

/// A number that fits into 32 bits.
pub(super) fn small(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok())
}

/// Where a dialect keeps the parts of a function's definition.
pub(super) struct ToolShape {
    /// Keys that the schema of the arguments may have; the first is ours.
    pub parameters: &'static [&'static str],
}

impl ToolShape {
    fn parameters_key(&self, function: &Map<String, Value>) -> Option<&'static str> {
        self.parameters.iter().find(|key| function.contains_key(**key)).copied()
    }

    /// Reads one function.
    pub(super) fn read(&self, function: &Map<String, Value>) -> ToolDefinition {
        ToolDefinition {
            name: text(function, "name").to_owned(),
            description: text(function, "description").to_owned(),
            parameters: self.parameters_key(function).and_then(|key| function.get(key)).cloned().unwrap_or(Value::Null),
        }
    }

    /// The function without description and schema; the name stays, for tools are told apart by it.
    pub(super) fn template(&self, function: &Map<String, Value>) -> Map<String, Value> {
        let mut template = function.clone();
        if let Some(Value::String(description)) = template.get_mut("description") {
            description.clear();
        }
        if let Some(schema) = self.parameters_key(function).and_then(|key| template.get_mut(key)) {
            *schema = Value::Null;
        }
        template
    }

    /// Puts a definition into what [`Self::template`] left, or into nothing.
    pub(super) fn fill(&self, tool: &ToolDefinition, mut template: Map<String, Value>) -> Map<String, Value> {
        template.insert("name".to_owned(), Value::from(tool.name.as_str()));
        // An empty description may have been null, or absent: what was left says which.
        if !tool.description.is_empty() {
            template.insert("description".to_owned(), Value::from(tool.description.as_str()));
        }
        if !tool.parameters.is_null() {
            let key = self.parameters_key(&template).unwrap_or(self.parameters[0]);
            template.insert(key.to_owned(), tool.parameters.clone());
        }
        template
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_that_reads_the_same_is_left_as_it_was_written() {
        let mut map = json!({"temperature": 0}).as_object().expect("object").clone();
        put(&mut map, "temperature", Some(&0.0), Value::as_f64, |number| json!(number));
        assert_eq!(map["temperature"], json!(0));
        put(&mut map, "temperature", Some(&0.5), Value::as_f64, |number| json!(number));
        assert_eq!(map["temperature"], json!(0.5));
        put(&mut map, "temperature", None, Value::as_f64, |number| json!(number));
        assert!(map.is_empty());
    }

    #[test]
    fn an_unknown_value_stays_where_there_is_no_neutral_word_for_it() {
        let mut map = json!({"seed": null}).as_object().expect("object").clone();
        put(&mut map, "seed", None, small, |number| json!(number));
        assert_eq!(Value::from(map), json!({"seed": null}));
    }

    #[test]
    fn errors_name_the_dialect_the_place_and_what_is_there() {
        let error = Reader("openai-chat").list(&Map::new(), "messages").expect_err("missing");
        assert_eq!(
            error.to_string(),
            "openai-chat: /messages should be a list, but is missing; is the provider's dialect set right?"
        );
    }

    #[test]
    fn tokens_that_nobody_told_stay_unknown() {
        assert_eq!(plus(None, None), None);
        assert_eq!(plus(Some(1), None), Some(1));
        assert_eq!(tokens(&json!({"a": -1}), "/a"), None);
    }
}

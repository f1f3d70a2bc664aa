//! Reads JSON documents, with errors that name the position.

use crate::provider::ErrorKind;
use crate::provider::chat::{ToolDefinition, Usage};
use serde_json::{Map, Value, json};

/// Reason why a document could not be translated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// It does not match the dialect.
    #[error("{dialect}: {at} should be {expected}, but is {found}; is the provider's dialect set right?")]
    Shape {
        /// The dialect.
        dialect: &'static str,
        /// JSON pointer of the position.
        at: String,
        /// Type that the dialect expects there.
        expected: &'static str,
        /// Type that was found.
        found: &'static str,
    },
    /// It is not JSON.
    #[error("not JSON: {message}")]
    NotJson {
        /// Message of the parser, with the position.
        message: String,
    },
    /// A stream without its last event.
    #[error("the stream ended before its last event")]
    Cut,
    /// An answer in which the provider reports an error.
    #[error("the provider reports {}: {message}", kind.as_str())]
    Reported {
        /// Kind of the error.
        kind: ErrorKind,
        /// Message of the provider.
        message: String,
    },
}

/// Type of a value, for messages.
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

/// Reader of one dialect: it names the dialect in every error.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader(pub &'static str);

impl Reader {
    /// Creates the error that `at` is not `expected`.
    pub(super) fn wrong(self, at: &str, expected: &'static str, found: Option<&Value>) -> WireError {
        WireError::Shape { dialect: self.0, at: at.to_owned(), expected, found: kind_of(found) }
    }

    /// Reads `value` as an object.
    pub(super) fn object<'a>(self, at: &str, value: &'a Value) -> Result<&'a Map<String, Value>, WireError> {
        value.as_object().ok_or_else(|| self.wrong(at, "an object", Some(value)))
    }

    /// Reads an answer as an object, unless it reports an error.
    pub(super) fn answer(self, body: &Value) -> Result<&Map<String, Value>, WireError> {
        super::error::reported(body).map_or_else(|| self.object("", body), Err)
    }

    /// Reads the list at `key`.
    pub(super) fn list<'a>(self, map: &'a Map<String, Value>, key: &str) -> Result<&'a Vec<Value>, WireError> {
        let found = map.get(key);
        found.and_then(Value::as_array).ok_or_else(|| self.wrong(&format!("/{key}"), "a list", found))
    }

    /// Reads the string at `key`.
    pub(super) fn string<'a>(self, map: &'a Map<String, Value>, key: &str) -> Result<&'a str, WireError> {
        let found = map.get(key);
        found.and_then(Value::as_str).ok_or_else(|| self.wrong(&format!("/{key}"), "a string", found))
    }
}

/// Reads the string at `key`; empty if there is none.
pub(super) fn text<'a>(map: &'a Map<String, Value>, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Reads a number of tokens; negative and fractional ones count as missing.
pub(super) fn tokens(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}

/// Usage of a service that counts reads and writes of its cache separately from the input; `names` are its members for
/// input, reads, writes and output.
pub(super) fn usage_beside_cache(body: &Value, names: [&str; 4]) -> Usage {
    let [input, cached, written, output] = names.map(|name| body.get("usage")?.get(name)?.as_u64());
    let written = written.filter(|tokens| *tokens > 0);
    Usage { input: input.and_then(|input| plus(plus(Some(input), cached), written)), cached, written, output }
}

/// Sum of the known numbers; `None` if neither is known.
pub(super) fn plus(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
}

/// Writes `neutral` at `key`, unless the existing value already decodes to the same.
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

/// Changes the object at `key`; one that was not there stays away if it is empty.
pub(super) fn with_member(body: &mut Map<String, Value>, key: &str, change: impl FnOnce(&mut Map<String, Value>)) {
    let had = body.contains_key(key);
    if let Value::Object(member) = body.entry(key).or_insert_with(|| json!({})) {
        change(member);
        if member.is_empty() && !had {
            body.shift_remove(key);
        }
    }
}

/// Reads a number that fits into 32 bits.
pub(super) fn small(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok())
}

/// Positions of the parts of a function's definition in one dialect.
pub(super) struct ToolShape {
    /// Keys that may hold the schema of the arguments; the first is the one we write.
    pub parameters: &'static [&'static str],
}

impl ToolShape {
    fn parameters_key(&self, function: &Map<String, Value>) -> Option<&'static str> {
        self.parameters.iter().find(|key| function.contains_key(**key)).copied()
    }

    pub(super) fn read(&self, function: &Map<String, Value>) -> ToolDefinition {
        ToolDefinition {
            name: text(function, "name").to_owned(),
            description: text(function, "description").to_owned(),
            parameters: self.parameters_key(function).and_then(|key| function.get(key)).cloned().unwrap_or(Value::Null),
        }
    }

    /// The function without description and schema; the name stays, because it identifies the tool.
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

    /// Takes the definitions out of a list of tools and leaves their templates there; a tool that is not `ours` stays whole.
    pub(super) fn take(&self, tools: Option<&mut Value>, ours: fn(&Value) -> bool) -> Vec<ToolDefinition> {
        let tools = tools.and_then(Value::as_array_mut).into_iter().flatten().filter(|tool| ours(tool));
        let taken = tools.filter_map(Value::as_object_mut).map(|function| {
            let definition = self.read(function);
            *function = self.template(function);
            definition
        });
        taken.collect()
    }

    /// Writes a definition into its template, if it has one.
    pub(super) fn write(&self, template: Option<Value>, tool: &ToolDefinition) -> Value {
        let template = template.and_then(|template| template.as_object().cloned()).unwrap_or_default();
        Value::Object(self.fill(tool, template))
    }

    /// Inserts a definition into the output of [`Self::template`], or into an empty object.
    pub(super) fn fill(&self, tool: &ToolDefinition, mut template: Map<String, Value>) -> Map<String, Value> {
        // A definition without a name stays one.
        if text(&template, "name") != tool.name {
            template.insert("name".to_owned(), Value::from(tool.name.as_str()));
        }
        // An empty description may have been null or absent: the template shows which.
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

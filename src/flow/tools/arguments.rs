//! Parses the arguments of a call into an object that matches the tool's schema, or into a refusal.

use super::{Declaration, Refusal};
use crate::platform::secrets;
use crate::settings::Violation;
use serde_json::{Map, Value};

/// Maximum size of arguments in bytes.
const MAX_ARGUMENTS: usize = 64 * 1024;

/// Parsed arguments.
#[derive(Debug)]
pub(super) struct Arguments {
    /// For the trace: the JSON value as sent, or the raw text if it is not JSON.
    pub(super) shown: Value,
    /// The object, or why there is none.
    pub(super) object: Result<Map<String, Value>, Refusal>,
}

/// Parses arguments as the model wrote them.
pub(super) fn parse(raw: &str) -> Arguments {
    if raw.len() > MAX_ARGUMENTS {
        let reason = format!("the arguments have {} bytes, {MAX_ARGUMENTS} are allowed", raw.len());
        let shown = Value::String(secrets::beginning(raw, 200));
        return Arguments { shown, object: Err(Refusal::new("length", reason, "Send shorter arguments.")) };
    }
    let (shown, object) = match serde_json::from_str::<Value>(raw) {
        Ok(Value::Object(object)) => (Value::Object(object.clone()), Ok(object)),
        Ok(Value::String(inner)) => {
            let refusal = if serde_json::from_str::<Map<String, Value>>(&inner).is_ok() {
                let guidance = "Send the JSON object itself, not a string that holds it.";
                Refusal::new("double_encoded", "the arguments are JSON inside a JSON string", guidance)
            } else {
                not_an_object("a string")
            };
            (Value::String(inner), Err(refusal))
        }
        Ok(other) => {
            let refusal = not_an_object(match other {
                Value::Null => "null",
                Value::Array(_) => "an array",
                Value::Bool(_) => "a boolean",
                _ => "a number",
            });
            (other, Err(refusal))
        }
        Err(error) => {
            let reason = format!("the arguments are not JSON: {error}");
            let guidance = "Call the tool again with one complete JSON object as its arguments.";
            (Value::String(raw.to_owned()), Err(Refusal::new("not_json", reason, guidance)))
        }
    };
    Arguments { shown, object }
}

fn not_an_object(what: &str) -> Refusal {
    let guidance = "Send one JSON object with the tool's parameters as its keys.";
    Refusal::new("not_an_object", format!("the arguments are {what}, not an object"), guidance)
}

/// Refuses arguments that do not match the tool's schema.
pub(super) fn fit(tool: &Declaration, arguments: &Value) -> Result<(), Refusal> {
    let Some(schema) = tool.compiled() else {
        let guidance = "Go on without it.";
        return Err(Refusal::new("schema", format!("`{}` takes no calls: its schema is broken", tool.name), guidance));
    };
    let mut found = schema.violations(arguments);
    // A type error explains more than the length error that follows from it.
    found.sort_by_key(|violation| violation.of_length);
    let Some(first) = found.first() else { return Ok(()) };
    let cause = if first.of_length { "length" } else { "schema" };
    let reasons: Vec<String> = found.iter().take(3).map(describe).collect();
    let guidance = format!("Correct the parameters and call {} again: {}.", tool.name, parameters(tool));
    Err(Refusal::new(cause, reasons.join("; "), guidance))
}

fn describe(violation: &Violation) -> String {
    match violation.place.trim_start_matches('/') {
        "" => format!("the arguments: {}", violation.text),
        place => format!("`{place}`: {}", violation.text),
    }
}

/// The parameters of a tool on one line: `query (string, required), top_k (integer)`.
fn parameters(tool: &Declaration) -> String {
    let schema = (tool.schema)();
    let required = |key: &String| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == key));
    let parameters = schema["properties"].as_object().into_iter().flatten().map(|(key, property)| {
        let kind = property["type"].as_str().unwrap_or("value");
        if required(key) { format!("{key} ({kind}, required)") } else { format!("{key} ({kind})") }
    });
    parameters.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::FLOWS;
    use crate::trace::Role;
    use proptest::prelude::*;
    use serde_json::json;

    fn lookup() -> Declaration {
        Declaration::new("look_up", Role::None, || {
            json!({"type": "object", "required": ["query"], "additionalProperties": false, "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": 20},
                "top_k": {"type": "integer", "minimum": 1, "maximum": 20}
            }})
        })
    }

    fn read(tool: &Declaration, raw: &str) -> Result<Map<String, Value>, Refusal> {
        let arguments = parse(raw);
        let object = arguments.object?;
        fit(tool, &arguments.shown).map(|()| object)
    }

    #[test]
    fn each_kind_of_bad_arguments_has_its_cause() {
        let tool = lookup();
        let cause = |raw: &str| read(&tool, raw).expect_err("is refused").cause;
        assert_eq!(cause("{\"query\": \"bat"), "not_json");
        assert_eq!(cause(r#""{\"query\": \"battery\"}""#), "double_encoded");
        assert_eq!(cause("\"battery\""), "not_an_object");
        assert_eq!(cause("[1]"), "not_an_object");
        assert_eq!(cause("{}"), "schema");
        assert_eq!(cause(r#"{"query": 7}"#), "schema");
        assert_eq!(cause(r#"{"query": "battery", "topk": 3}"#), "schema");
        assert_eq!(cause(r#"{"query": "battery", "top_k": 21}"#), "schema");
        assert_eq!(cause(r#"{"query": ""}"#), "length");
        assert_eq!(cause(&format!(r#"{{"query": "{}"}}"#, "x".repeat(MAX_ARGUMENTS))), "length");
        assert!(read(&tool, r#"{"query": "battery"}"#).is_ok());
    }

    #[test]
    fn a_refusal_says_what_is_wrong_and_what_to_do() {
        let refusal = read(&lookup(), r#"{"query": 7}"#).expect_err("is refused");
        assert!(refusal.reason.contains("`query`") && refusal.reason.contains("string"), "{}", refusal.reason);
        assert!(refusal.guidance.contains("query (string, required), top_k (integer)"), "{}", refusal.guidance);
    }

    #[test]
    fn a_tool_whose_schema_is_broken_takes_no_calls() {
        let broken = Declaration::new("broken", Role::None, || json!({"type": 7}));
        assert!(!broken.compiles());
        assert!(read(&broken, "{}").is_err());
    }

    proptest! {
        #[test]
        fn no_arguments_whatever_make_it_panic(raw in "\\PC{0,60}|\\{\"[a-z_]{1,8}\": [\\[\\]{}0-9\"a-z]{0,12}\\}") {
            for tool in FLOWS.iter().flat_map(|(_, flow)| flow.description().tools) {
                if let Err(refusal) = read(tool, &raw) {
                    prop_assert!(!refusal.reason.is_empty() && !refusal.guidance.is_empty());
                }
            }
        }
    }
}

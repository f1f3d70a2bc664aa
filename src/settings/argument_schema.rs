//! JSON Schemas that people write for the arguments of a call, within bounds.

use super::expression;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// Levels of nesting.
const DEEPEST: usize = 32;
/// Bytes that one compiled pattern inside of a schema may take.
const LARGEST: usize = 512 << 10;
/// Keys that lead to another place: each value would be checked again there, and again where that leads.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// A schema that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It refers to another place.
    #[error("`{0}` is not read here: write the schema out")]
    Reference(&'static str),
    /// It is too deep.
    #[error("it is nested deeper than {DEEPEST} levels")]
    Deep,
    /// One of its patterns is none, or too large.
    #[error("a pattern of it cannot be used: {0}")]
    Pattern(String),
    /// It is no schema.
    #[error("{0}")]
    NoSchema(String),
}

/// Compiles the schema of an argument. It refers to no other schema, in no file and at no host, and its patterns are
/// matched in time that grows with the text alone.
///
/// # Errors
/// [`SchemaError`], for people.
pub fn argument_schema(schema: &Value) -> Result<Validator, SchemaError> {
    look(schema, 0)?;
    let mut found = Vec::new();
    schema_patterns(schema, &mut found);
    for pattern in found {
        expression(pattern).map_err(|error| SchemaError::Pattern(error.to_string()))?;
    }
    let patterns = PatternOptions::regex().size_limit(LARGEST).dfa_size_limit(LARGEST);
    let built = jsonschema::options().with_pattern_options(patterns).build(schema);
    built.map_err(|error| SchemaError::NoSchema(error.to_string()))
}

/// The patterns of a schema, which are compiled with it.
pub fn schema_patterns<'s>(schema: &'s Value, found: &mut Vec<&'s str>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| schema_patterns(item, found)),
        Value::Object(members) => {
            for (key, member) in members {
                match (key.as_str(), member) {
                    ("pattern", Value::String(pattern)) => found.push(pattern),
                    ("patternProperties", Value::Object(patterns)) => found.extend(patterns.keys().map(String::as_str)),
                    _ => {}
                }
                schema_patterns(member, found);
            }
        }
        _ => {}
    }
}

fn look(schema: &Value, depth: usize) -> Result<(), SchemaError> {
    if depth > DEEPEST {
        return Err(SchemaError::Deep);
    }
    match schema {
        Value::Array(items) => items.iter().try_for_each(|item| look(item, depth + 1)),
        Value::Object(members) => {
            if let Some(key) = REFERENCES.into_iter().find(|key| members.contains_key(*key)) {
                return Err(SchemaError::Reference(key));
            }
            members.values().try_for_each(|member| look(member, depth + 1))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_leads_nowhere_and_is_checked_in_bounded_time() {
        let sound =
            argument_schema(&json!({"type": "object", "properties": {"q": {"pattern": "^a+$"}}})).expect("sound");
        assert!(sound.is_valid(&json!({"q": "aaa"})) && !sound.is_valid(&json!({"q": "ab"})));
        for schema in [
            json!({"$ref": "file:///etc/passwd"}),
            json!({"$ref": "http://127.0.0.1:9/schema"}),
            json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}),
            json!({"$dynamicRef": "#a"}),
        ] {
            let refused = argument_schema(&schema).expect_err("it refers");
            assert!(matches!(refused, SchemaError::Reference(_)), "{schema}: {refused}");
        }
        assert!(argument_schema(&json!({"pattern": "\\w{1,900}x"})).is_err(), "its pattern is too large");
        assert!(argument_schema(&json!({"pattern": "(?=(a+)+$)b"})).is_err(), "it would have to go back");
        let deep = (0..40).fold(json!({}), |inner, _| json!({"not": inner}));
        assert_eq!(argument_schema(&deep).err(), Some(SchemaError::Deep));
    }

    #[test]
    fn the_patterns_of_a_schema_are_found_at_any_depth() {
        let schema = json!({"anyOf": [{"pattern": "a"}, {"items": {"patternProperties": {"b": {"pattern": "c"}}}}]});
        let mut found = Vec::new();
        schema_patterns(&schema, &mut found);
        assert_eq!(found, ["a", "b", "c"]);
    }
}

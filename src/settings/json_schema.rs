//! User-written JSON Schemas, compiled with limits, and violations of values.
//!
//! Draft 2020-12 unless a schema names another. `format` is asserted. A schema must not contain references, to a
//! file, a host or itself: nested references can take exponential time. Patterns use the crate `regex` after
//! translation from ECMA syntax, so matching takes linear time.

use super::expression;
use boon::{Compiler, ErrorKind, SchemaIndex, Schemas, Type, UrlLoader, ValidationError};
use serde_json::Value;
use std::error::Error;
use std::fmt::Write as _;
use thiserror::Error as ThisError;

/// The address of the only schema: its scheme cannot be loaded.
const ADDRESS: &str = "schema://this/";
/// Deepest nesting.
const DEEPEST: usize = 32;
/// Keys that refer to another place, where each value would be checked again.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords whose value is a schema, or a list of schemas.
const OF_SCHEMAS: [&str; 16] = [
    "additionalItems", "additionalProperties", "allOf", "anyOf", "contains", "contentSchema", "else", "if", "items",
    "not", "oneOf", "prefixItems", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
];
/// Keywords whose value has schemas by name.
const OF_NAMED: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];
/// Other keywords of the drafts, and annotations.
const OTHERS: [&str; 33] = [
    "const", "contentEncoding", "contentMediaType", "default", "dependentRequired", "deprecated", "description",
    "enum", "example", "examples", "exclusiveMaximum", "exclusiveMinimum", "format", "id", "maxContains", "maxItems",
    "maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength", "minProperties", "minimum",
    "multipleOf", "nullable", "pattern", "readOnly", "required", "title", "type", "uniqueItems", "writeOnly",
];
/// Keywords of dialects and editors that resemble those of the drafts.
const OF_DIALECTS: [&str; 9] = [
    "enumDescriptions", "enumNames", "formatExclusiveMaximum", "formatExclusiveMinimum", "formatMaximum",
    "formatMinimum", "tsEnumNames", "tsType", "typeof",
];
/// Largest number of values in a message.
const LISTED: usize = 10;

/// Reason why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, ThisError)]
pub(crate) enum SchemaError {
    /// It contains a reference.
    #[error("`{0}` is not read here: write the schema out")]
    Reference(&'static str),
    /// It is nested too deeply.
    #[error("it is nested deeper than {DEEPEST} levels")]
    Deep,
    /// One of its patterns is invalid or too large.
    #[error("a pattern of it cannot be used: {0}")]
    Pattern(String),
    /// It is not a valid schema.
    #[error("{0}")]
    NoSchema(String),
}

/// A compiled schema.
pub(crate) struct JsonSchema {
    schemas: Schemas,
    index: SchemaIndex,
}

/// One violation of a schema by a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    /// JSON pointer to the part of the value, empty for the whole.
    pub place: String,
    /// Whether it only concerns the length of a text or a list.
    pub of_length: bool,
    /// Description without the value, which may be long or hostile.
    pub text: String,
}

impl std::fmt::Debug for JsonSchema {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("JsonSchema").finish_non_exhaustive()
    }
}

impl JsonSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// If it is invalid or exceeds the limits.
    pub(crate) fn compile(schema: &Value) -> Result<Self, SchemaError> {
        look(schema, 0)?;
        let mut found = Vec::new();
        schema_patterns(schema, &mut found);
        for pattern in found {
            expression(pattern).map_err(|error| SchemaError::Pattern(error.to_string()))?;
        }
        let none = |error: boon::CompileError| SchemaError::NoSchema(one_line(&error));
        let mut compiler = Compiler::new();
        compiler.use_loader(Box::new(Nothing));
        compiler.enable_format_assertions();
        compiler.add_resource(ADDRESS, schema.clone()).map_err(none)?;
        let mut schemas = Schemas::new();
        let index = compiler.compile(ADDRESS, &mut schemas).map_err(none)?;
        Ok(Self { schemas, index })
    }

    /// Whether a value is valid.
    pub(crate) fn is_valid(&self, value: &Value) -> bool {
        self.schemas.validate(value, self.index).is_ok()
    }

    /// All violations of a value, in the order of the schema's keywords; empty for a valid one.
    pub(crate) fn violations(&self, value: &Value) -> Vec<Violation> {
        let mut found = Vec::new();
        if let Err(error) = self.schemas.validate(value, self.index) {
            collect(&error, &mut found);
        }
        found
    }
}

/// A loader that loads nothing.
struct Nothing;

impl UrlLoader for Nothing {
    fn load(&self, url: &str) -> Result<Value, Box<dyn Error>> {
        Err(format!("{url} is not loaded").into())
    }
}

/// Collects the patterns of a schema, which are compiled with it.
pub(crate) fn schema_patterns<'s>(schema: &'s Value, found: &mut Vec<&'s str>) {
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

/// The keywords that a schema may have.
pub(crate) fn schema_keywords() -> impl Iterator<Item = &'static str> {
    OF_SCHEMAS.into_iter().chain(OF_NAMED).chain(OTHERS)
}

/// A keyword of a schema that no draft has, and that is a misspelt one by `resembles`: it asserts nothing. Others may be those
/// of a dialect.
pub(crate) fn misspelt_keyword<'s>(schema: &'s Value, resembles: &dyn Fn(&str) -> bool) -> Option<&'s str> {
    let below = |member| misspelt_keyword(member, resembles);
    match schema {
        Value::Array(items) => items.iter().find_map(below),
        Value::Object(members) => members.iter().find_map(|(key, member)| match (key.as_str(), member) {
            (name, Value::Object(named)) if OF_NAMED.contains(&name) => named.values().find_map(below),
            (name, _) if OF_SCHEMAS.contains(&name) => below(member),
            (name, _) if name.starts_with('$') || name.starts_with("x-") || OF_DIALECTS.contains(&name) => None,
            (name, _) => (!schema_keywords().any(|known| known == name) && resembles(name)).then_some(name),
        }),
        _ => None,
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

/// A schema error on one line, without this module's internal address.
fn one_line(error: &boon::CompileError) -> String {
    let text = match error {
        boon::CompileError::ValidationError { src, .. } => {
            let mut found = Vec::new();
            collect(src, &mut found);
            let first = found.first().map(|one| format!("`{}`: {}", one.place.trim_start_matches('/'), one.text));
            first.unwrap_or_else(|| error.to_string())
        }
        other => other.to_string(),
    };
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace(&format!("{ADDRESS}#"), "#").replace(ADDRESS, "the schema")
}

fn collect(error: &ValidationError<'_, '_>, found: &mut Vec<Violation>) {
    let whole = matches!(error.kind, ErrorKind::AnyOf | ErrorKind::OneOf(_) | ErrorKind::Not | ErrorKind::Contains);
    if !whole && !error.causes.is_empty() {
        for cause in &error.causes {
            collect(cause, found);
        }
        return;
    }
    let place = error.instance_location.to_string();
    let say = |text: String| Violation { place: place.clone(), of_length: is_length(&error.kind), text };
    match &error.kind {
        ErrorKind::Required { want } => {
            found.extend(want.iter().map(|name| say(format!("\"{name}\" is a required property"))));
        }
        kind => found.push(say(describe(kind))),
    }
}

fn is_length(kind: &ErrorKind<'_, '_>) -> bool {
    use ErrorKind as Kind;
    matches!(kind, Kind::MinLength { .. } | Kind::MaxLength { .. } | Kind::MinItems { .. } | Kind::MaxItems { .. })
}

fn describe(kind: &ErrorKind<'_, '_>) -> String {
    use ErrorKind as Kind;
    let given = "the value given";
    match kind {
        Kind::Type { want, .. } => {
            let types: Vec<Type> = want.iter().collect();
            let listed: Vec<String> = types.iter().map(|one| format!("\"{one}\"")).collect();
            format!("{given} is not of type{} {}", if types.len() == 1 { "" } else { "s" }, listed.join(", "))
        }
        Kind::MinLength { want, .. } => format!("{given} is shorter than {}", counted(*want, "character")),
        Kind::MaxLength { want, .. } => format!("{given} is longer than {}", counted(*want, "character")),
        Kind::MinItems { want, .. } => format!("{given} has less than {}", counted(*want, "item")),
        Kind::MaxItems { want, .. } => format!("{given} has more than {}", counted(*want, "item")),
        Kind::Minimum { want, .. } => format!("{given} is less than the minimum of {want}"),
        Kind::Maximum { want, .. } => format!("{given} is greater than the maximum of {want}"),
        Kind::ExclusiveMinimum { want, .. } => format!("{given} is not greater than {want}"),
        Kind::ExclusiveMaximum { want, .. } => format!("{given} is not less than {want}"),
        Kind::MultipleOf { want, .. } => format!("{given} is not a multiple of {want}"),
        Kind::AdditionalProperties { got } => {
            let names: Vec<String> = got.iter().take(LISTED).map(|name| format!("'{}'", plain(name))).collect();
            let verb = if names.len() == 1 { "was" } else { "were" };
            format!("Additional properties are not allowed ({} {verb} unexpected)", names.join(", "))
        }
        Kind::Enum { want } => {
            let mut text = format!("{given} is not one of ");
            for (place, one) in want.iter().take(LISTED).enumerate() {
                let _ = write!(text, "{}{one}", if place == 0 { "" } else { ", " });
            }
            if want.len() > LISTED {
                let _ = write!(text, " and {} more", want.len() - LISTED);
            }
            text
        }
        Kind::Const { want } => format!("{given} is not {want}"),
        Kind::Format { want, .. } => format!("{given} is not a {want}"),
        Kind::Pattern { want, .. } => format!("{given} does not match the pattern {want}"),
        Kind::UniqueItems { got: [first, second] } => {
            format!("{given} has the same item twice, at {first} and {second}")
        }
        Kind::AnyOf | Kind::OneOf(None) => format!("{given} is of none of the allowed forms"),
        Kind::OneOf(Some(_)) => format!("{given} is of more than one of the allowed forms"),
        Kind::Not => format!("{given} is of the form that is not allowed"),
        Kind::FalseSchema => format!("{given} is not allowed here"),
        // The others name keywords and counts, and no value.
        Kind::MinProperties { want, .. } => format!("{given} has less than {}", counted(*want, "property")),
        Kind::MaxProperties { want, .. } => format!("{given} has more than {}", counted(*want, "property")),
        _ => format!("{given} does not hold to the schema"),
    }
}

fn counted(count: usize, what: &str) -> String {
    match (count, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {what}s"),
    }
}

/// A property name written by a model: shortened, on one line.
fn plain(name: &str) -> String {
    name.chars().filter(|one| !one.is_control()).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(schema: &Value, value: &Value) -> Vec<String> {
        let schema = JsonSchema::compile(schema).expect("a schema");
        let found = schema.violations(value);
        assert_eq!(found.is_empty(), schema.is_valid(value));
        found.into_iter().map(|one| format!("{}: {}", one.place, one.text)).collect()
    }

    #[test]
    fn each_violation_says_where_and_what_and_never_the_value() {
        let schema = json!({"type": "object", "required": ["query", "kind"], "additionalProperties": false, "properties": {
            "query": {"type": "string", "minLength": 2, "pattern": "^[a-z]+$"},
            "kind": {"enum": ["a", "b"]},
            "top_k": {"type": "integer", "minimum": 1, "maximum": 20},
            "list": {"type": "array", "maxItems": 1, "items": {"anyOf": [{"type": "null"}, {"type": "number"}]}},
            "at": {"type": "string", "format": "date-time"}
        }});
        assert_eq!(
            said(&schema, &json!({"query": "ab", "kind": "a", "at": "2026-01-02T03:04:05Z"})),
            Vec::<String>::new()
        );
        let hostile =
            json!({"query": "X", "kind": "<script>", "top_k": 21, "list": ["no", 1], "at": "today", "more": 1});
        let mut told = said(&schema, &hostile);
        told.sort();
        assert_eq!(
            told,
            [
                "/at: the value given is not a date-time",
                "/kind: the value given is not one of \"a\", \"b\"",
                "/list/0: the value given is of none of the allowed forms",
                "/list: the value given has more than 1 item",
                "/query: the value given does not match the pattern ^[a-z]+$",
                "/query: the value given is shorter than 2 characters",
                "/top_k: the value given is greater than the maximum of 20",
                ": Additional properties are not allowed ('more' was unexpected)",
            ]
        );
        assert_eq!(
            said(&schema, &json!({})),
            [": \"query\" is a required property", ": \"kind\" is a required property",]
        );
        assert_eq!(said(&schema, &json!("x")), [": the value given is not of type \"object\""]);
    }

    #[test]
    fn a_schema_leads_nowhere_and_is_checked_in_bounded_time() {
        let sound = json!({"type": "object", "properties": {"q": {"pattern": "^a+$"}}});
        let sound = JsonSchema::compile(&sound).expect("sound");
        assert!(sound.is_valid(&json!({"q": "aaa"})) && !sound.is_valid(&json!({"q": "ab"})));
        for schema in [
            json!({"$ref": "file:///etc/passwd"}),
            json!({"$ref": "http://127.0.0.1:9/schema"}),
            json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}),
            json!({"$dynamicRef": "#a"}),
        ] {
            let refused = JsonSchema::compile(&schema).expect_err("it refers");
            assert!(matches!(refused, SchemaError::Reference(_)), "{schema}: {refused}");
        }
        let elsewhere = json!({"$schema": "http://127.0.0.1:9/schema"});
        assert!(matches!(JsonSchema::compile(&elsewhere), Err(SchemaError::NoSchema(_))));
        assert!(JsonSchema::compile(&json!({"pattern": "\\w{1,900}x"})).is_err(), "its pattern is too large");
        assert!(JsonSchema::compile(&json!({"pattern": "(?=(a+)+$)b"})).is_err(), "it would have to go back");
        let deep = (0..40).fold(json!({}), |inner, _| json!({"not": inner}));
        assert_eq!(JsonSchema::compile(&deep).err(), Some(SchemaError::Deep));
    }

    #[test]
    fn a_mistake_in_a_schema_says_where_it_is() {
        let refused = JsonSchema::compile(&json!({"properties": {"a": {"type": 7}}})).expect_err("it is none");
        assert!(refused.to_string().contains("properties/a/type"), "{refused}");
    }

    #[test]
    fn a_keyword_that_resembles_one_is_misspelt_and_names_of_properties_and_values_and_other_dialects_are_none() {
        for (schema, unknown) in [
            (json!({"typ": "integer"}), Some("typ")),
            (json!({"properties": {"a": {"minimun": 3}}}), Some("minimun")),
            (json!({"items": {"anyOf": [true, {"enumm": []}]}}), Some("enumm")),
            (json!({"additionalProperties": {"Type": "string"}}), Some("Type")),
            (json!({"not": {"unevaluatedProperties": {"requird": []}}}), Some("requird")),
            (json!({"properties": {"typ": {"type": "integer"}}, "required": ["typ"], "const": {"typ": 1}}), None),
            (json!({"dependencies": {"a": ["typ"]}, "examples": [{"typ": 1}], "$comment": "typ", "x-typ": 1}), None),
            (json!({"xml": {}, "discriminator": {}, "propertyOrdering": [], "enumNames": []}), None),
            (json!(true), None),
        ] {
            let resembles = |name: &str| ["typ", "minimun", "enumm", "enumNames", "Type", "requird"].contains(&name);
            assert_eq!(misspelt_keyword(&schema, &resembles), unknown, "{schema}");
        }
    }

    #[test]
    fn the_patterns_of_a_schema_are_found_at_any_depth() {
        let schema = json!({"anyOf": [{"pattern": "a"}, {"items": {"patternProperties": {"b": {"pattern": "c"}}}}]});
        let mut found = Vec::new();
        schema_patterns(&schema, &mut found);
        assert_eq!(found, ["a", "b", "c"]);
    }
}

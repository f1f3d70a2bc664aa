//! The call that a request requires: a real model never answers such a request in words alone.
//!
//! Arguments follow the tool's JSON schema: the required properties, each with a value of its type.

use super::habit::Step;
use super::roles::roles;
use crate::provider::chat::{Message, ToolChoice, ToolDefinition};
use serde_json::{Map, Value, json};

/// Properties that take the words of a search, not those of the answer.
const QUERIES: [&str; 9] =
    ["query", "search_query", "q", "question", "search", "search_term", "term", "topic", "keywords"];
/// Levels of a schema that are followed.
const DEEPEST: usize = 6;

/// The texts of arguments.
pub(super) struct Words<'a> {
    /// The answer.
    pub answer: &'a str,
    /// The words of a search.
    pub query: &'a str,
}

/// The tool that has to be called: the named one; else one that gives the answer, else the last that `since`, the
/// messages from the question on, do not call yet. `None` if the request requires none.
pub(super) fn tool<'a>(
    tools: &'a [ToolDefinition],
    choice: &ToolChoice,
    since: &[Message],
) -> Option<&'a ToolDefinition> {
    let named = |name: &str| tools.iter().find(|tool| tool.name == name);
    match choice {
        ToolChoice::Auto | ToolChoice::None => None,
        ToolChoice::Named(name) => named(name),
        ToolChoice::Required => {
            let proposed = roles(tools);
            let responds = proposed.iter().find(|one| one.role == Step::Respond.role());
            let called = |tool: &&ToolDefinition| {
                since.iter().flat_map(|message| &message.calls).any(|call| call.name == tool.name)
            };
            named(Step::Respond.tool())
                .or_else(|| named(&responds?.tool))
                .or_else(|| tools.iter().rev().find(|tool| !called(tool)))
                .or_else(|| tools.last())
        }
    }
}

fn names(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Whether arguments lack a property that the schema requires.
pub(super) fn is_missing(given: &Value, schema: &Value) -> bool {
    given.is_object() && names(schema).any(|name| given.get(name).is_none())
}

/// `given`, and a value for each required property of the schema that it lacks.
pub(super) fn filled(given: Value, schema: &Value, words: &Words<'_>) -> Value {
    let Value::Object(mut arguments) = given else { return given };
    add_required(&mut arguments, schema, schema, words, DEEPEST);
    Value::Object(arguments)
}

/// A value that a schema allows.
pub(super) fn of_schema(schema: &Value, words: &Words<'_>) -> Value {
    value("", schema, schema, words, DEEPEST)
}

fn add_required(arguments: &mut Map<String, Value>, schema: &Value, root: &Value, words: &Words<'_>, depth: usize) {
    for name in names(schema) {
        if !arguments.contains_key(name) {
            let property = schema.pointer("/properties").and_then(|all| all.get(name)).unwrap_or(&Value::Null);
            arguments.insert(name.to_owned(), value(name, property, root, words, depth));
        }
    }
}

/// A value that a schema allows, for a property of that name.
fn value(name: &str, schema: &Value, root: &Value, words: &Words<'_>, depth: usize) -> Value {
    let Some(depth) = depth.checked_sub(1) else { return Value::Null };
    if let Some(there) = schema.get("$ref").and_then(Value::as_str).and_then(|at| root.pointer(at.strip_prefix('#')?)) {
        return value(name, there, root, words, depth);
    }
    let first = |key: &str| schema.get(key).and_then(Value::as_array).and_then(|all| all.first()).cloned();
    if let Some(fixed) = schema.get("const").or_else(|| schema.get("default")).cloned().or_else(|| first("enum")) {
        return fixed;
    }
    if let Some(either) = first("anyOf").or_else(|| first("oneOf")).or_else(|| first("allOf")) {
        return value(name, &either, root, words, depth);
    }
    let kind = schema.get("type").and_then(|kind| kind.as_str().or_else(|| kind.get(0)?.as_str()));
    // Gemini's clients write types in capitals.
    let kind = kind.map(str::to_ascii_lowercase);
    match kind.as_deref() {
        Some("integer" | "number") => number(schema),
        Some("boolean") => json!(false),
        Some("null") => Value::Null,
        Some("array") => {
            let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(8);
            let item = schema.get("items").unwrap_or(&Value::Null);
            (0..least).map(|_| value(name, item, root, words, depth)).collect()
        }
        Some("object") => {
            let mut members = Map::new();
            add_required(&mut members, schema, root, words, depth);
            Value::Object(members)
        }
        _ => {
            let text = if QUERIES.contains(&name) { words.query } else { words.answer };
            let most = schema.get("maxLength").and_then(Value::as_u64).and_then(|most| usize::try_from(most).ok());
            json!(text.chars().take(most.unwrap_or(usize::MAX)).collect::<String>())
        }
    }
}

/// Zero, or the nearest number within the bounds.
fn number(schema: &Value) -> Value {
    let whole = |key: &str| schema.get(key).and_then(Value::as_i64);
    let least = whole("minimum").or_else(|| whole("exclusiveMinimum").map(|bound| bound.saturating_add(1)));
    let most = whole("maximum").or_else(|| whole("exclusiveMaximum").map(|bound| bound.saturating_sub(1)));
    json!(0.max(least.unwrap_or(0)).min(most.unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::chat::{Role, ToolCall};

    fn tools(names: &[&str]) -> Vec<ToolDefinition> {
        let tool = |name: &&str| ToolDefinition {
            name: (*name).to_owned(),
            description: String::new(),
            parameters: Value::Null,
        };
        names.iter().map(tool).collect()
    }

    #[test]
    fn what_must_be_called_is_the_named_tool_else_an_output_tool_else_one_not_called_yet() {
        let call = |name: &str| ToolCall { id: "1".into(), name: name.into(), arguments: "{}".into() };
        let since = [
            Message::text(Role::User, "q"),
            Message { calls: vec![call("book")], ..Message::text(Role::Assistant, "") },
        ];
        let named = ToolChoice::Named("look".to_owned());
        for (names, choice, expected) in [
            (&["look", "book"][..], &named, Some("look")),
            (&["final_result", "book"], &ToolChoice::Required, Some("final_result")),
            (&["look", "book"], &ToolChoice::Required, Some("look")),
            (&["book"], &ToolChoice::Required, Some("book")),
            (&["book"], &ToolChoice::Auto, None),
            (&["book"], &ToolChoice::None, None),
            (&[], &ToolChoice::Required, None),
        ] {
            let tools = tools(names);
            assert_eq!(tool(&tools, choice, &since).map(|tool| tool.name.as_str()), expected, "{names:?} {choice}");
        }
    }

    #[test]
    fn arguments_hold_each_required_property_with_a_value_of_its_type() {
        let schema = json!({
            "$defs": {"Case": {"type": "object", "required": ["query"], "properties": {"query": {"type": "string"}}}},
            "properties": {
                "advice": {"type": "string"}, "risk": {"type": "integer", "minimum": 2, "maximum": 10},
                "share": {"type": "number", "exclusiveMaximum": -3}, "block": {"type": "boolean"},
                "kind": {"enum": ["order", "return"]}, "tags": {"type": "array", "minItems": 1, "items": {"type": "string"}},
                "case": {"$ref": "#/$defs/Case"}, "note": {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "null"}]},
                "given": {"type": "string"}, "optional": {"type": "string"},
            },
            "required": ["advice", "risk", "share", "block", "kind", "tags", "case", "note", "given"],
        });
        let words = Words { answer: "Wait.", query: "refund" };
        assert_eq!(
            filled(json!({"given": 1}), &schema, &words),
            json!({"given": 1, "advice": "Wait.", "risk": 2, "share": -4, "block": false, "kind": "order",
                "tags": ["Wait."], "case": {"query": "refund"}, "note": "Wa"})
        );
        let endless = json!({"required": ["x"], "properties": {"x": {"$ref": "#/properties/x"}}});
        assert_eq!(filled(json!({}), &endless, &words), json!({"x": null}), "a schema that refers to itself ends");
    }
}

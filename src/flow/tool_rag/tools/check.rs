//! From the text of a call to typed parameters, or to a reason why not.

use super::{GENERATE_RESPONSE, INDEX_KEYWORDS, KNOWLEDGE_BASE_SEARCH, NAMES, PERPLEXITY_SEARCH, schema};
use super::{GenerateResponse, IndexKeywords, KnowledgeBaseSearch, PerplexitySearch, Refusal};
use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Bytes of arguments that are looked at at all.
const MAX_ARGUMENTS: usize = 64 * 1024;

/// One call whose parameters are in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    /// Search the knowledge base.
    KnowledgeBaseSearch(KnowledgeBaseSearch),
    /// Ask the external service.
    PerplexitySearch(PerplexitySearch),
    /// Keep an external answer under keywords.
    IndexKeywords(IndexKeywords),
    /// Answer the user.
    GenerateResponse(GenerateResponse),
}

/// One call, read.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadCall {
    /// The arguments for the trace: the JSON value as sent, or the raw text when it is not JSON.
    pub arguments: Value,
    /// The typed call, or why it is refused.
    pub call: Result<Call, Refusal>,
}

/// The validators, compiled once a process: schemas do not vary.
static VALIDATORS: LazyLock<BTreeMap<&'static str, Validator>> = LazyLock::new(|| {
    let compiled = |name| Some((name, jsonschema::validator_for(&schema(name)?).ok()?));
    NAMES.into_iter().filter_map(compiled).collect()
});

/// Reads the call of the tool `name` with these arguments.
pub fn read(name: &str, raw: &str) -> ReadCall {
    let (arguments, parsed) = parse(raw);
    let call = known(name).and(parsed).and_then(|object| {
        fits_schema(name, &arguments)?;
        typed(name, &object)
    });
    ReadCall { arguments, call }
}

fn known(name: &str) -> Result<(), Refusal> {
    if NAMES.contains(&name) {
        return Ok(());
    }
    Err(Refusal::unknown_tool(name, &NAMES))
}

fn parse(raw: &str) -> (Value, Result<Map<String, Value>, Refusal>) {
    if raw.len() > MAX_ARGUMENTS {
        let reason = format!("the arguments have {} bytes, {MAX_ARGUMENTS} are allowed", raw.len());
        let kept = raw.chars().take(200).collect::<String>();
        return (Value::String(kept), Err(Refusal::new("length", reason, "Send shorter arguments.")));
    }
    match serde_json::from_str::<Value>(raw) {
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
    }
}

fn not_an_object(what: &str) -> Refusal {
    let guidance = "Send one JSON object with the tool's parameters as its keys.";
    Refusal::new("not_an_object", format!("the arguments are {what}, not an object"), guidance)
}

fn fits_schema(name: &str, arguments: &Value) -> Result<(), Refusal> {
    let Some(validator) = VALIDATORS.get(name) else { return known(name) };
    // Asking for the errors costs several times as much as asking whether there are any.
    if validator.is_valid(arguments) {
        return Ok(());
    }
    let mut found: Vec<ValidationError<'_>> = validator.iter_errors(arguments).collect();
    // A wrong type explains more than a wrong length that follows from it.
    found.sort_by_key(|error| is_length(error.kind()));
    let Some(first) = found.first() else { return Ok(()) };
    let cause = if is_length(first.kind()) { "length" } else { "schema" };
    let told: Vec<String> = found.iter().take(3).map(describe).collect();
    let guidance = format!("Correct the parameters and call {name} again: {}.", parameters(name));
    Err(Refusal::new(cause, told.join("; "), guidance))
}

fn is_length(kind: &ValidationErrorKind) -> bool {
    use ValidationErrorKind as Kind;
    matches!(kind, Kind::MinLength { .. } | Kind::MaxLength { .. } | Kind::MinItems { .. } | Kind::MaxItems { .. })
}

fn describe(error: &ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    let place =
        if place.is_empty() { "the arguments".to_owned() } else { format!("`{}`", place.trim_start_matches('/')) };
    // Masked: the value came from a model and may be long or hostile.
    format!("{place}: {}", error.masked_with("the value given"))
}

/// The parameters of a tool in a line: `query (string, required), top_k (integer)`.
fn parameters(name: &str) -> String {
    let schema = schema(name).unwrap_or_default();
    let required = |key: &String| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == key));
    let told = schema["properties"].as_object().into_iter().flatten().map(|(key, property)| {
        let kind = property["type"].as_str().unwrap_or("value");
        if required(key) { format!("{key} ({kind}, required)") } else { format!("{key} ({kind})") }
    });
    told.collect::<Vec<_>>().join(", ")
}

fn typed(name: &str, object: &Map<String, Value>) -> Result<Call, Refusal> {
    match name {
        KNOWLEDGE_BASE_SEARCH => KnowledgeBaseSearch::from_arguments(object).map(Call::KnowledgeBaseSearch),
        PERPLEXITY_SEARCH => PerplexitySearch::from_arguments(object).map(Call::PerplexitySearch),
        INDEX_KEYWORDS => IndexKeywords::from_arguments(object).map(Call::IndexKeywords),
        GENERATE_RESPONSE => GenerateResponse::from_arguments(object).map(Call::GenerateResponse),
        _ => Err(Refusal::new("unknown_tool", "there is no such tool", "Use one of the tools on offer.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cause(name: &str, raw: &str) -> &'static str {
        read(name, raw).call.expect_err("is refused").cause
    }

    #[test]
    fn each_kind_of_bad_arguments_has_its_cause() {
        assert_eq!(cause("knowledge_base_serch", "{}"), "unknown_tool");
        assert_eq!(cause(KNOWLEDGE_BASE_SEARCH, "{\"query\": \"bat"), "not_json");
        assert_eq!(cause(KNOWLEDGE_BASE_SEARCH, r#""{\"query\": \"battery\"}""#), "double_encoded");
        assert_eq!(cause(KNOWLEDGE_BASE_SEARCH, "\"battery\""), "not_an_object");
        assert_eq!(cause(KNOWLEDGE_BASE_SEARCH, "[1]"), "not_an_object");
        assert_eq!(cause(KNOWLEDGE_BASE_SEARCH, "{}"), "schema");
        assert_eq!(cause(KNOWLEDGE_BASE_SEARCH, r#"{"query": 7}"#), "schema");
        assert_eq!(cause(KNOWLEDGE_BASE_SEARCH, r#"{"query": "battery", "topk": 3}"#), "schema");
        assert_eq!(cause(KNOWLEDGE_BASE_SEARCH, r#"{"query": "battery", "top_k": 21}"#), "schema");
        assert_eq!(cause(KNOWLEDGE_BASE_SEARCH, r#"{"query": "  "}"#), "length");
        assert_eq!(cause(KNOWLEDGE_BASE_SEARCH, r#"{"query": "x' UNION SELECT password FROM users --"}"#), "hostile");
        assert_eq!(cause(PERPLEXITY_SEARCH, r#"{"query": "a", "context": "<script>alert(1)</script>"}"#), "hostile");
    }

    #[test]
    fn a_refusal_says_what_is_wrong_and_what_to_do() {
        let refusal = read(KNOWLEDGE_BASE_SEARCH, r#"{"query": 7}"#).call.expect_err("is refused");
        assert!(refusal.reason.contains("`query`") && refusal.reason.contains("string"), "{}", refusal.reason);
        assert!(refusal.guidance.contains("query (string, required)"), "{}", refusal.guidance);
    }

    #[test]
    fn defaults_are_filled_in() {
        let read = read(KNOWLEDGE_BASE_SEARCH, r#"{"query": " battery  range "}"#);
        let wanted = KnowledgeBaseSearch { query: "battery range".into(), kb_id: "default_kb".into(), top_k: 5 };
        assert_eq!(read.call.expect("passes"), Call::KnowledgeBaseSearch(wanted));
    }

    proptest! {
        #[test]
        fn no_arguments_whatever_make_it_panic(name in 0_usize..5, raw in "\\PC{0,60}|\\{\"[a-z_]{1,8}\": [\\[\\]{}0-9\"a-z]{0,12}\\}") {
            let name = NAMES.get(name).copied().unwrap_or("other");
            let read = read(name, &raw);
            if let Err(refusal) = read.call {
                prop_assert!(!refusal.reason.is_empty() && !refusal.guidance.is_empty());
            }
        }
    }
}

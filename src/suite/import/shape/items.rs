//! Items of OpenAI's Responses API: messages, calls and call outputs in one list.

use super::{READ, Recognised, call, described, parts, result, text};
use crate::provider::wire::built_in;
use crate::suite::import::error::MessageError;
use serde_json::{Map, Value};

/// Whether a value is a call or an output; no other shape has these items.
pub(super) fn is_call(item: &Value) -> bool {
    matches!(item.get("type").and_then(Value::as_str), Some("function_call" | "function_call_output"))
}

/// Reads one item.
pub(super) fn read(object: &Map<String, Value>) -> Result<Recognised, MessageError> {
    let id = || [text(object, "call_id"), text(object, "id")].into_iter().find(|id| !id.is_empty()).unwrap_or_default();
    let output = |key: &str| match object.get(key) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(said)) => said.clone(),
        Some(other) => other.to_string(),
    };
    let made = |name: &str, arguments: Option<&Value>| {
        let mut message = Map::from_iter([("role".to_owned(), Value::from("assistant"))]);
        message.insert("content".to_owned(), Value::Null);
        message.insert("tool_calls".to_owned(), Value::Array(vec![call(id(), name, arguments)]));
        Value::Object(message)
    };
    let kind = text(object, "type");
    let unknown = |seen: String| MessageError::UnknownShape { seen, read: READ };
    if ["function_call", "custom_tool_call", "mcp_call"].contains(&kind) && text(object, "name").is_empty() {
        return Err(unknown(format!("an item of the type `{kind}` without a name")));
    }
    Ok(match kind {
        "message" => return parts::read(text(object, "role"), object, "content"),
        "function_call" => Recognised::of(made(text(object, "name"), object.get("arguments"))),
        "custom_tool_call" => {
            let input = serde_json::json!({ "input": output("input") });
            Recognised::of(made(text(object, "name"), Some(&input)))
        }
        "function_call_output" | "custom_tool_call_output" => {
            let (text, media) = parts::result_text("", object.get("output"))?;
            Recognised { messages: vec![result(object, Some(id()), None, &text)], media }
        }
        "mcp_call" => Recognised {
            messages: vec![
                made(text(object, "name"), object.get("arguments")),
                result(
                    object,
                    Some(id()),
                    None,
                    &output(if object.get("output").is_some() { "output" } else { "error" }),
                ),
            ],
            media: Vec::new(),
        },
        // Tools run by the service: one item holds the call and its result.
        "web_search_call" | "file_search_call" | "code_interpreter_call" => {
            let asked = ["action", "queries", "code"].into_iter().find_map(|key| Some((key, object.get(key)?)));
            let arguments = match asked {
                Some(("action", action)) => action.clone(),
                Some((key, value)) => Value::Object(Map::from_iter([(key.to_owned(), value.clone())])),
                None => Value::Object(Map::new()),
            };
            let given = ["results", "outputs"].into_iter().find_map(|key| object.get(key)).cloned().unwrap_or_default();
            let name = kind.trim_end_matches("_call");
            Recognised {
                messages: vec![made(name, Some(&arguments)), result(object, Some(id()), None, &given.to_string())],
                media: Vec::new(),
            }
        }
        "reasoning" | "mcp_list_tools" => Recognised::default(),
        // Tools that OpenAI defines and the agent runs.
        kind if let Some((tool, member)) = built_in(kind) => Recognised::of(made(tool, object.get(member))),
        kind if kind.strip_suffix("_output").is_some_and(|call| built_in(call).is_some()) => {
            Recognised::of(result(object, Some(id()), None, &output("output")))
        }
        other => {
            let kind: String = other.chars().take(40).collect();
            return Err(unknown(format!("an item of the type `{kind}`: {}", described(object))));
        }
    })
}

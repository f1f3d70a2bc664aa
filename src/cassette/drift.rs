//! Hashes of the parts of a request that people change, stored beside each exchange.

use super::canonical::{canonical, hex};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Hashes of the parts that people change; they show which part made an exchange stale.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drift {
    /// Model name.
    pub model: String,
    /// Hash of the system prompt; empty if there is none.
    pub system: String,
    /// Hash of the tool list; empty if there is none.
    pub tools: String,
    /// Hash of all members except the conversation.
    pub parameters: String,
}

/// Members that hold the conversation, one per dialect.
pub(super) const CONVERSATIONS: [&str; 3] = ["messages", "input", "contents"];
/// Members that are not parameters: model, conversation, system prompt and tools, in all dialects.
pub(super) const APART: [&str; 8] =
    ["model", "messages", "input", "contents", "instructions", "system", "systemInstruction", "tools"];

/// Drift hashes of a stored body.
pub(crate) fn drift(body: &Value) -> Drift {
    let short = |form: Vec<u8>| hex(&Sha256::digest(form), 16);
    let system = system_prompts(body);
    let parameters: Map<String, Value> = body
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| !APART.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    Drift {
        model: body.get("model").and_then(Value::as_str).unwrap_or_default().to_owned(),
        system: if system.is_empty() { String::new() } else { short(system.concat().into_bytes()) },
        tools: body.get("tools").map(|tools| short(canonical(tools))).unwrap_or_default(),
        parameters: short(canonical(&Value::Object(parameters))),
    }
}

/// System prompts of a body in order, in any dialect.
pub(super) fn system_prompts(body: &Value) -> Vec<&str> {
    let messages = body.get("messages").and_then(Value::as_array).into_iter().flatten();
    let prompts = messages.filter(|message| is_system(message)).filter_map(|message| message.get("content")?.as_str());
    let mut prompts: Vec<&str> = prompts.collect();
    for name in ["instructions", "system"] {
        prompts.extend(body.get(name).and_then(Value::as_str));
    }
    let blocks = [body.get("system"), body.pointer("/systemInstruction/parts")].into_iter().flatten();
    prompts.extend(blocks.filter_map(Value::as_array).flatten().filter_map(|block| block.get("text")?.as_str()));
    prompts
}

pub(super) fn is_system(message: &Value) -> bool {
    matches!(message.get("role").and_then(Value::as_str), Some("system" | "developer"))
}

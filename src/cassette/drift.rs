//! Hashes of the parts of a request that people change, stored beside each exchange.

use super::digest::{canonical, digest};
use super::layout::Layout;
use serde_json::Value;

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

/// Drift hashes of a stored body.
pub(crate) fn drift(layout: &Layout, body: &Value) -> Drift {
    let part = |at: Option<&str>| at.and_then(|at| body.pointer(at));
    let system = layout.system_prompts(body);
    Drift {
        model: part(layout.model).and_then(Value::as_str).unwrap_or_default().to_owned(),
        system: if system.is_empty() { String::new() } else { digest(system.concat(), 16) },
        tools: part(layout.tools).map(|tools| digest(canonical(tools), 16)).unwrap_or_default(),
        parameters: digest(canonical(&Value::Object(layout.parameters(body))), 16),
    }
}

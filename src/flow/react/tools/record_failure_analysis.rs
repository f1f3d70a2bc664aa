//! `record_failure_analysis {cause, lesson}`: why the last action failed, and what the next one does differently.

use super::ANALYSE;
use crate::flow::react::React;
use crate::flow::tools::{Declaration, Output, Scope, Tool, ToolError, sanitise};
use crate::trace::{Role, ToolResult};
use serde_json::{Map, Value, json};

pub(in crate::flow::react) static TOOL: Tool<React> = Tool {
    declaration: Declaration::new(ANALYSE, Role::None, schema),
    run: |arguments, scope| Box::pin(std::future::ready(run(arguments, scope))),
};

/// JSON Schema of the arguments.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "cause": {"type": "string", "minLength": 3, "maxLength": 600,
                "description": "Why the last action failed or gave results that do not help."},
            "lesson": {"type": "string", "minLength": 3, "maxLength": 600,
                "description": "What the next action should do otherwise, in words that help without the details."}
        },
        "required": ["cause", "lesson"],
        "additionalProperties": false
    })
}

fn run(arguments: &Map<String, Value>, scope: Scope<'_, React>) -> Result<Output, ToolError> {
    let text = |key: &str| sanitise::line(arguments.get(key).and_then(Value::as_str).unwrap_or_default());
    scope.own.analysis = Some(format!("{} Lesson: {}", text("cause"), text("lesson")));
    let message = json!({"noted": true});
    Ok(Output::local(ToolResult::other(message.clone()), message.to_string()))
}

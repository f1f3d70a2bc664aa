//! `assess_search_results {observation, relevant, goal_met, summary}`: what the passages of this step mean for the
//! goal, which of them are relevant, and a summary of the step.

use super::ASSESS;
use crate::flow::react::grade::Grades;
use crate::flow::react::{React, memory::Assessment};
use crate::flow::tools::{Declaration, Output, Refusal, Scope, Tool, ToolError};
use crate::trace::{Role, ToolResult};
use serde_json::{Map, Value, json};

pub(in crate::flow::react) static TOOL: Tool<React> = Tool {
    declaration: Declaration::new(ASSESS, Role::None, schema),
    run: |arguments, scope| Box::pin(std::future::ready(run(arguments, scope))),
};

/// JSON Schema of the arguments.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "observation": {"type": "string", "minLength": 1, "maxLength": 1200,
                "description": "What the passages say about the question, and what is still missing."},
            "relevant": {"type": "array", "maxItems": 20, "items": {"type": "integer", "minimum": 1},
                "description": "The numbers of the passages that help to answer the question; empty where none does."},
            "goal_met": {"type": "boolean",
                "description": "Whether the relevant passages found so far are enough to answer the whole question."},
            "summary": {"type": "string", "minLength": 1, "maxLength": 600,
                "description": "The outcome of this step in a sentence or two, with the facts that were found."}
        },
        "required": ["observation", "relevant", "goal_met", "summary"],
        "additionalProperties": false
    })
}

/// The assessment of `count` passages.
pub(super) fn read(object: &Map<String, Value>, count: usize) -> Result<Assessment, Refusal> {
    let assessment: Assessment = serde_json::from_value(Value::Object(object.clone())).map_err(|error| {
        Refusal::new("schema", format!("the assessment cannot be read: {error}"), "Send all four parameters.")
    })?;
    Grades::of_numbers(&assessment.relevant, count).map_err(|wrong| {
        let reason = format!("`relevant`: no passage has the number {wrong}, there are {count}");
        Refusal::new("number", reason, format!("Give numbers from 1 to {count}, or an empty list."))
    })?;
    Ok(assessment)
}

fn run(arguments: &Map<String, Value>, scope: Scope<'_, React>) -> Result<Output, ToolError> {
    let assessment = read(arguments, scope.own.found.len())?;
    let message = json!({"noted": true});
    scope.own.assessment = Some(assessment);
    Ok(Output::local(ToolResult::other(message.clone()), message.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_no_passage_has_is_refused_with_the_range() {
        let object = json!({"observation": "o", "relevant": [1, 6], "goal_met": true, "summary": "s"});
        let refusal = read(object.as_object().expect("an object"), 5).expect_err("is refused");
        assert_eq!(refusal.cause, "number");
        assert!(refusal.reason.contains('6') && refusal.guidance.contains("1 to 5"), "{refusal:?}");
    }
}

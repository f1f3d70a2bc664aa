//! The tools of `react`, one file each; each belongs to one state of a turn.

mod assess_search_results;
mod record_failure_analysis;
mod search_documents_for_facts;

pub(super) use search_documents_for_facts::for_model;

use super::React;
use crate::flow::tools::Tool;

/// Searches the documents: the action of a step.
pub(crate) const SEARCH: &str = "search_documents_for_facts";
/// Assesses the results and names the relevant ones.
pub(crate) const ASSESS: &str = "assess_search_results";
/// Explains why an action failed.
pub(crate) const ANALYSE: &str = "record_failure_analysis";

pub(super) static TOOLS: [&Tool<React>; 3] =
    [&search_documents_for_facts::TOOL, &assess_search_results::TOOL, &record_failure_analysis::TOOL];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{Prompts, Services};
    use crate::provider::chat::ToolDefinition;
    use crate::settings::JsonSchema;
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn definitions() -> Vec<ToolDefinition> {
        let flow = &crate::flow::react::FLOW;
        Prompts::resolve(flow, &BTreeMap::new(), Services::default()).expect("resolves").tools().to_vec()
    }

    #[test]
    fn a_tool_has_a_name_of_its_intent_a_described_schema_and_an_example_that_fits_it() {
        for tool in definitions() {
            assert!(tool.name.split('_').count() >= 3, "{}: a name says what it is for", tool.name);
            let properties = tool.parameters["properties"].as_object().expect("parameters");
            for (name, property) in properties {
                assert!(property["type"].is_string(), "{}: {name} has a type", tool.name);
                let about = property["description"].as_str().unwrap_or_default();
                assert!(about.len() > 20, "{}: {name} is described", tool.name);
            }
            let example = tool.description.split("Example: `").nth(1).and_then(|rest| rest.split('`').next());
            let example: Value = serde_json::from_str(example.expect("an example")).expect("is JSON");
            let schema = JsonSchema::compile(&tool.parameters).expect("compiles");
            assert_eq!(schema.violations(&example).len(), 0, "{}: {example}", tool.name);
        }
    }

    #[test]
    fn definitions_are_valid_json_that_reads_back_as_the_same_definitions() {
        for tool in definitions() {
            let written = serde_json::to_string(&tool).expect("is JSON");
            assert_eq!(serde_json::from_str::<ToolDefinition>(&written).expect("reads"), tool);
            let meta =
                json!({"type": "object", "required": ["type", "properties", "required", "additionalProperties"]});
            assert_eq!(JsonSchema::compile(&meta).expect("compiles").violations(&tool.parameters).len(), 0);
        }
    }

    proptest! {
        #[test]
        fn an_invocation_that_fits_the_schema_is_read_as_it_was_written(
            observation in "\\PC{1,40}", summary in "[a-z]{1,20}", relevant in prop::collection::vec(1_u64..6, 0..5),
            goal_met: bool,
        ) {
            let written = json!({
                "observation": observation, "relevant": relevant, "goal_met": goal_met, "summary": summary,
            });
            let object = written.as_object().expect("an object");
            let read = assess_search_results::read(object, 5).expect("is read");
            prop_assert_eq!(serde_json::to_value(&read).expect("is JSON"), written);
        }
    }
}

//! Reads a [`CallPattern`] from a tool's name alone or from a map.

use super::either::{Either, text_or_map};
use super::expect::{ArgumentPattern, CallOutcome, CallPattern};
use crate::platform::schema;
use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Written {
    /// The tool's name.
    tool: String,
    /// Conditions on arguments, by name; a key that begins with `/` is a JSON pointer into the arguments: `/filter/year`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    arguments: BTreeMap<String, ArgumentPattern>,
    /// Conditions on the result, by JSON pointer into the result in `traces.jsonl`: `/hits/0/id`. An empty pointer is
    /// the whole result; a call without a result does not match.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    result: BTreeMap<String, ArgumentPattern>,
    /// The required outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<CallOutcome>,
}

impl<'de> Deserialize<'de> for CallPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a tool's name, or a map with `tool`, `arguments`, `result`, `outcome`";
        Ok(match text_or_map(deserializer, expected)? {
            Either::Text(tool) => {
                let (arguments, result) = (BTreeMap::new(), BTreeMap::new());
                Self { tool, arguments, result, outcome: None }
            }
            Either::Whole(Written { tool, arguments, result, outcome }) => Self { tool, arguments, result, outcome },
        })
    }
}

schema!(named CallPattern, |generator| json_schema!({
    "description": "Which calls are meant: a tool's name alone, or a map with more.",
    "oneOf": [{"type": "string"}, generator.subschema_for::<Written>()]
}));

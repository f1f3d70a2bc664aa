//! What a live or recording run holds: services that an earlier recording answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Services that an earlier recording answers, and what happens with requests that it does not have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hold {
    /// Services by name, and the groups `search`, `tools` and `knowledge`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<String>,
    /// What happens with a request that is not recorded.
    #[serde(default)]
    pub on_new: OnNew,
    /// Requests before this turn, counted from 1, are answered by their position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
}

/// What happens with a request that is not recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum OnNew {
    /// Its service answers.
    #[default]
    Live,
    /// Its trial ends as on a replay's miss.
    Fail,
}

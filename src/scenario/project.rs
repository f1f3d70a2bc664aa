//! `ragcheck.yaml`, the project file, as written.

use super::criteria::Estimand;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The project file. Paths are relative to its folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Project {
    /// Scenario files, as globs.
    pub scenarios: Vec<String>,
    /// The criteria file.
    pub criteria: Option<String>,
    /// Folder of cassettes.
    pub cassettes: String,
    /// Folder of knowledge bases.
    pub knowledge: String,
    /// Human ratings (CSV with `trial,satisfied`), for SC-004.
    pub ratings: Option<String>,
    /// Where reports go.
    pub reports: String,
    /// Providers, by the name that scenarios use.
    pub providers: BTreeMap<String, Provider>,
    /// What a rate is a statement about, where the criteria file does not say.
    pub estimand: Option<Estimand>,
    /// Criteria that may measure nothing, by id.
    pub not_measured_ok: Vec<String>,
}

impl Default for Project {
    fn default() -> Self {
        Self {
            scenarios: vec!["scenarios/*.yaml".into()],
            criteria: None,
            cassettes: "fixtures/cassettes".into(),
            knowledge: "fixtures/knowledge".into(),
            ratings: None,
            reports: "reports".into(),
            providers: BTreeMap::new(),
            estimand: None,
            not_measured_ok: Vec::new(),
        }
    }
}

/// One provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// Its dialect.
    pub dialect: Dialect,
    /// Its base URL, `https://api.openai.com/v1` for example.
    pub base_url: String,
    /// The environment variable that holds its key; without one no key is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Where it departs from its dialect.
    #[serde(default)]
    pub quirks: Quirks,
    /// Requests at the same time, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
}

/// Wire formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// OpenAI Chat Completions.
    OpenaiChat,
    /// Perplexity's Agent API.
    PerplexityAgent,
}

/// Declared departures from a dialect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Quirks {
    /// Sends `max_completion_tokens` instead of `max_tokens`.
    pub max_completion_tokens: bool,
    /// Sends the trial's name in the header `x-ragcheck-trial`: for the simulator, which seeds itself with it.
    pub trial_header: bool,
}

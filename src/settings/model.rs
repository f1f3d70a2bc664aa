//! Settings of the chat model, the search service, and limits.

use super::TimeSpan;
use crate::platform::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The chat model and its parameters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// Name of a provider in the project file.
    pub provider: String,
    /// The model's name at the provider.
    pub name: String,
    /// Sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Largest number of output tokens per completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Whether the model may make several calls in one message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_calls: Option<bool>,
    /// Whether each trial sends a sampling seed derived from the trial's name (not from the run's seed).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub seeded: bool,
    /// Whether answers are streamed, which makes the time to the first token known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stream: bool,
}

impl ModelSettings {
    /// Its key in the price list: `provider/model`.
    pub fn price_name(&self) -> String {
        format!("{}/{}", self.provider, self.name)
    }
}

/// The external search service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchSettings {
    /// Name of a provider in the project file.
    pub provider: String,
    /// The service's model, `perplexity/sonar` for example.
    pub name: String,
}

impl SearchSettings {
    /// Its key in the price list: `provider/model`.
    pub fn price_name(&self) -> String {
        format!("{}/{}", self.provider, self.name)
    }
}

words! {
    fn name;
    /// How a mandatory step is enforced.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Enforcement {
        /// A missing call is reported to the model and retried once.
        #[default]
        Feedback = "feedback",
        /// The request names the tool in `tool_choice`.
        Forced = "forced",
    }
}

/// Limits on a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Largest number of completions in one turn.
    pub model_calls: u32,
    /// Largest number of retries of one failing or rejected tool in one turn.
    pub tool_retries: u32,
    /// Time limit of one turn, `60s` for example.
    pub turn: TimeSpan,
    /// Time limit of one HTTP attempt.
    pub request: TimeSpan,
    /// Largest number of HTTP retries of one request.
    pub transport_retries: u32,
    /// Size of the model's context window in tokens, for agents that keep their context below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Largest number of input and output tokens in one session, for agents that count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Estimated tokens of one turn above which the user is warned, for agents that estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warn_tokens: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            model_calls: 12,
            tool_retries: 2,
            turn: TimeSpan::seconds(120),
            request: TimeSpan::seconds(60),
            transport_retries: 2,
            window: None,
            tokens: None,
            warn_tokens: None,
        }
    }
}

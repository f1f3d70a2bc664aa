//! Settings of a provider: its address, its dialect, and deviations from the dialect.

use crate::platform::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// Its dialect, one that this build supports.
    pub dialect: String,
    /// Its base URL, `https://api.openai.com/v1` for example.
    pub base_url: String,
    /// The environment variable with its key. Default: no key is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The header for the key. Default: the dialect's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Deviations from its dialect.
    #[serde(default)]
    pub quirks: Quirks,
    /// Largest number of concurrent requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Largest number of requests per minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u32>,
    /// Largest number of input and output tokens per minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
}

impl Provider {
    /// A provider at `base_url` with default settings.
    pub fn at(base_url: impl Into<String>, dialect: &str) -> Self {
        Self { dialect: dialect.to_owned(), base_url: base_url.into(), ..Self::default() }
    }

    /// Its rate limits.
    pub fn pace_limits(&self) -> PaceLimits {
        PaceLimits {
            concurrency: self.concurrency,
            requests_per_minute: self.requests_per_minute,
            tokens_per_minute: self.tokens_per_minute,
        }
    }
}

/// Declared rate limits of a provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PaceLimits {
    /// Largest number of concurrent requests.
    pub concurrency: Option<u32>,
    /// Largest number of requests per minute.
    pub requests_per_minute: Option<u32>,
    /// Largest number of input and output tokens per minute.
    pub tokens_per_minute: Option<u64>,
}

impl PaceLimits {
    /// The share of one of `partitions` machines that use the limits together; at least one of each.
    #[must_use]
    pub fn divided(self, partitions: u32) -> Self {
        let of = partitions.max(1);
        let share = |limit: u32| (limit / of).max(1);
        Self {
            concurrency: self.concurrency.map(share),
            requests_per_minute: self.requests_per_minute.map(share),
            tokens_per_minute: self.tokens_per_minute.map(|limit| (limit / u64::from(of)).max(1)),
        }
    }
}

words! {
    fn header; const ALL;
    /// The header for the key.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Auth {
        /// `authorization: Bearer …`.
        Bearer = "authorization",
        /// `x-api-key`: Anthropic.
        XApiKey = "x-api-key",
        /// `x-goog-api-key`: Google.
        XGoogApiKey = "x-goog-api-key",
        /// `api-key`: Azure.
        ApiKey = "api-key",
        /// `x-nuclia-serviceaccount: Bearer …`.
        XNucliaServiceaccount = "x-nuclia-serviceaccount",
    }
}

impl Auth {
    /// Prefix before the key.
    pub fn prefix(self) -> &'static str {
        if matches!(self, Self::Bearer | Self::XNucliaServiceaccount) { "Bearer " } else { "" }
    }
}

/// Declared deviations from a dialect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Quirks {
    /// Sends `max_completion_tokens` instead of `max_tokens`, as required by OpenAI's reasoning models.
    pub max_completion_tokens: bool,
    /// Sends no `tool_choice`, for servers that reject it: no call can then be forced.
    pub no_tool_choice: bool,
    /// Sends no `parallel_tool_calls`, for servers that reject it.
    pub no_parallel_flag: bool,
    /// Sends `any` where a call is required: Mistral.
    pub any_for_required: bool,
    /// Sends call ids of nine letters and digits: Mistral.
    pub nine_character_ids: bool,
    /// Sends the sampling seed as `random_seed`: Mistral.
    pub random_seed: bool,
    /// Sends no temperature, for reasoning models, which reject one.
    pub no_temperature: bool,
    /// Sends no `stream_options`, for servers that reject it: a stream may then report no usage.
    pub no_stream_options: bool,
    /// Sends this `api-version` with every request: Azure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Sends a number for each trial in the header `x-ragcheck-seed`, and the fault of its case in
    /// `x-ragcheck-fault`: for the simulator, which uses the seed and produces the fault.
    pub trial_header: bool,
}

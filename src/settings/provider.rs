//! Where a provider is, what it speaks, and where it departs from that.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// Its dialect: the name of one that this build speaks.
    pub dialect: String,
    /// Its base URL, `https://api.openai.com/v1` for example.
    pub base_url: String,
    /// The environment variable that holds its key; without one no key is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The header that carries the key; by default the dialect's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Where it departs from its dialect.
    #[serde(default)]
    pub quirks: Quirks,
    /// Requests at the same time, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Requests a minute, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u32>,
    /// Tokens a minute, read and written, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
}

impl Provider {
    /// A provider at `base_url` that declares nothing else.
    pub fn at(base_url: impl Into<String>, dialect: &str) -> Self {
        Self {
            dialect: dialect.to_owned(),
            base_url: base_url.into(),
            key: None,
            auth: None,
            quirks: Quirks::default(),
            concurrency: None,
            requests_per_minute: None,
            tokens_per_minute: None,
        }
    }

    /// How fast it may be asked.
    pub fn pace_limits(&self) -> PaceLimits {
        PaceLimits {
            concurrency: self.concurrency,
            requests_per_minute: self.requests_per_minute,
            tokens_per_minute: self.tokens_per_minute,
        }
    }
}

/// How fast a provider may be asked, as far as it declares that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PaceLimits {
    /// Requests at the same time.
    pub concurrency: Option<u32>,
    /// Requests a minute.
    pub requests_per_minute: Option<u32>,
    /// Tokens a minute, read and written.
    pub tokens_per_minute: Option<u64>,
}

/// The header that carries the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Auth {
    /// `authorization: Bearer …`.
    Bearer,
    /// `x-api-key`: Anthropic.
    XApiKey,
    /// `x-goog-api-key`: Google.
    XGoogApiKey,
    /// `api-key`: Azure.
    ApiKey,
    /// `x-nuclia-serviceaccount: Bearer …`.
    XNucliaServiceaccount,
}

impl Auth {
    /// Every way.
    pub const ALL: [Self; 5] =
        [Self::Bearer, Self::XApiKey, Self::XGoogApiKey, Self::ApiKey, Self::XNucliaServiceaccount];

    /// The header's name, in lower case.
    pub fn header(self) -> &'static str {
        match self {
            Self::Bearer => "authorization",
            Self::XApiKey => "x-api-key",
            Self::XGoogApiKey => "x-goog-api-key",
            Self::ApiKey => "api-key",
            Self::XNucliaServiceaccount => "x-nuclia-serviceaccount",
        }
    }

    /// What stands before the key in it.
    pub fn prefix(self) -> &'static str {
        if matches!(self, Self::Bearer | Self::XNucliaServiceaccount) { "Bearer " } else { "" }
    }
}

/// Declared departures from a dialect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Quirks {
    /// Sends `max_completion_tokens` instead of `max_tokens`: OpenAI's reasoning models want it.
    pub max_completion_tokens: bool,
    /// Sends no `tool_choice`, for servers that refuse it: nothing can be forced then.
    pub no_tool_choice: bool,
    /// Sends no `parallel_tool_calls`, for servers that refuse it.
    pub no_parallel_flag: bool,
    /// Says `any` where a call is required: Mistral.
    pub any_for_required: bool,
    /// Sends ids of calls as nine letters and digits: Mistral.
    pub nine_character_ids: bool,
    /// Sends the sampling seed as `random_seed`: Mistral.
    pub random_seed: bool,
    /// Sends no temperature: reasoning models refuse one.
    pub no_temperature: bool,
    /// Sends no `stream_options`, for servers that refuse it: a stream may then carry no usage.
    pub no_stream_options: bool,
    /// Sends this `api-version` with every address: Azure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Sends a number for each trial in the header `x-ragcheck-seed`, and the fault that its case declares in
    /// `x-ragcheck-fault`: for the simulator, which seeds itself with the one and errs as the other says.
    pub trial_header: bool,
}

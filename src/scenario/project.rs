//! `ragcheck.yaml`, the project file, as written.

use super::criteria::Estimand;
use super::grammar::parse_age;
use crate::price::Price;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

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
    /// When recordings are too old.
    pub recordings: Recordings,
    /// What models and search services cost, by `provider/model`.
    pub prices: BTreeMap<String, Price>,
    /// A YAML file with more prices, of the same form; what stands here wins.
    pub price_file: Option<String>,
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
            recordings: Recordings::default(),
            prices: BTreeMap::new(),
            price_file: None,
        }
    }
}

/// What is expected of recordings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Recordings {
    /// Older ones are warned of: `90d`, which is the default, or `12h`; `never` warns of none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warn_after: Option<String>,
}

impl Recordings {
    /// The age from which on a recording is warned of; `None` for never.
    ///
    /// # Errors
    /// In words, when it is no age.
    pub fn warn_after(&self) -> Result<Option<Duration>, String> {
        match self.warn_after.as_deref().map(str::trim) {
            Some("never") => Ok(None),
            Some(age) => parse_age(age).map(Some),
            None => Ok(Some(Duration::from_hours(90 * 24))),
        }
    }
}

/// A price file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceFile {
    /// What models and search services cost, by `provider/model`.
    pub prices: BTreeMap<String, Price>,
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

/// Wire formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// OpenAI Chat Completions, and the many servers that speak it; the base URL ends in `/v1`.
    OpenaiChat,
    /// OpenAI Responses; the base URL ends in `/v1`.
    OpenaiResponses,
    /// Anthropic Messages; the base URL is `https://api.anthropic.com`.
    AnthropicMessages,
    /// Google's generateContent; the base URL ends in `/v1beta`.
    Gemini,
    /// Perplexity's Agent API: a search service, or a chat model; the base URL is `https://api.perplexity.ai`.
    PerplexityAgent,
}

impl Dialect {
    /// Whether it can be a scenario's search service.
    pub fn searches(self) -> bool {
        self == Self::PerplexityAgent
    }

    /// As the project file writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::AnthropicMessages => "anthropic-messages",
            Self::Gemini => "gemini",
            Self::PerplexityAgent => "perplexity-agent",
        }
    }
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
    /// Sends the trial's name in the header `x-ragcheck-trial`: for the simulator, which seeds itself with it.
    pub trial_header: bool,
}

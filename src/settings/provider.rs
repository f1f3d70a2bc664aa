//! Where a provider is, what it speaks, and where it departs from that.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

impl Provider {
    /// A provider at `base_url` that declares nothing else.
    pub fn at(base_url: impl Into<String>, dialect: Dialect) -> Self {
        Self {
            dialect,
            base_url: base_url.into(),
            key: None,
            auth: None,
            quirks: Quirks::default(),
            concurrency: None,
            requests_per_minute: None,
            tokens_per_minute: None,
        }
    }

    /// How its key is sent: as it declares, else as its dialect does.
    pub fn auth(&self) -> Auth {
        self.auth.unwrap_or(self.dialect.auth())
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

/// Wire formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// OpenAI Chat Completions, and the many servers that speak it; the base URL ends in `/v1`.
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    /// OpenAI Responses; the base URL ends in `/v1`.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// Anthropic Messages; the base URL is `https://api.anthropic.com`.
    AnthropicMessages,
    /// Google's generateContent; the base URL ends in `/v1beta`.
    Gemini,
    /// Perplexity's Agent API: a search service, or a chat model; the base URL is `https://api.perplexity.ai`.
    PerplexityAgent,
    /// Perplexity's chat API, retired on 27 September 2026: read for old recordings, and no provider can declare it.
    #[serde(skip)]
    PerplexitySonar,
}

impl Dialect {
    /// Every dialect, in the order of reports.
    pub const ALL: [Self; 6] = [
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::AnthropicMessages,
        Self::Gemini,
        Self::PerplexityAgent,
        Self::PerplexitySonar,
    ];

    /// The name used in `ragcheck.yaml`, cassettes and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::AnthropicMessages => "anthropic-messages",
            Self::Gemini => "gemini",
            Self::PerplexityAgent => "perplexity-agent",
            Self::PerplexitySonar => "perplexity-sonar",
        }
    }

    /// The dialect of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// Whether it can be a scenario's search service.
    pub fn searches(self) -> bool {
        self == Self::PerplexityAgent
    }

    /// How its own servers take a key.
    pub fn auth(self) -> Auth {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses | Self::PerplexityAgent | Self::PerplexitySonar => Auth::Bearer,
            Self::AnthropicMessages => Auth::XApiKey,
            Self::Gemini => Auth::XGoogApiKey,
        }
    }

    /// Headers that go with every request, with or without a key.
    pub fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::AnthropicMessages => &[("anthropic-version", "2023-06-01")],
            _ => &[],
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

impl Auth {
    /// Every way.
    pub const ALL: [Self; 4] = [Self::Bearer, Self::XApiKey, Self::XGoogApiKey, Self::ApiKey];

    /// The header's name, in lower case.
    pub fn header(self) -> &'static str {
        match self {
            Self::Bearer => "authorization",
            Self::XApiKey => "x-api-key",
            Self::XGoogApiKey => "x-goog-api-key",
            Self::ApiKey => "api-key",
        }
    }

    /// What stands before the key in it.
    pub fn prefix(self) -> &'static str {
        if self == Self::Bearer { "Bearer " } else { "" }
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
    /// Sends the trial's name in the header `x-ragcheck-trial`: for the simulator, which seeds itself with it.
    pub trial_header: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialect_is_written_by_its_name_and_has_its_header() {
        for (dialect, header) in [
            (Dialect::OpenAiChat, "authorization"),
            (Dialect::OpenAiResponses, "authorization"),
            (Dialect::AnthropicMessages, "x-api-key"),
            (Dialect::Gemini, "x-goog-api-key"),
            (Dialect::PerplexityAgent, "authorization"),
        ] {
            let written = serde_json::to_value(dialect).expect("a word");
            assert_eq!(written, dialect.name());
            assert_eq!(serde_json::from_value::<Dialect>(written).expect("a dialect"), dialect);
            assert_eq!(Provider::at("", dialect).auth().header(), header);
            let azure = Provider { auth: Some(Auth::ApiKey), ..Provider::at("", dialect) };
            assert_eq!((azure.auth().header(), azure.auth().prefix()), ("api-key", ""));
        }
    }

    #[test]
    fn a_retired_dialect_is_read_from_recordings_and_cannot_be_declared() {
        assert_eq!(Dialect::by_name("perplexity-sonar"), Some(Dialect::PerplexitySonar));
        assert!(serde_json::from_str::<Dialect>("\"perplexity-sonar\"").is_err());
    }
}

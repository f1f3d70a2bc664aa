//! Calls of the model: what was sent, every HTTP attempt, and the completion.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One completion of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelCalled {
    /// Ordinal of the completion within the trial, from 0.
    pub call: u32,
    /// The service, if it is another one than the scenario's `model`: its name in `services`. Older readers ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// State of the flow.
    pub state: String,
    /// From the first attempt to the last answer, waits included, in microseconds.
    pub took_us: u64,
    /// From the first attempt to the first word or call of the answer, in microseconds; only known of streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_us: Option<u64>,
    /// Every message sent to the model, in order: `role:digest`, where digest is the first 12 hex digits of SHA-256
    /// over the content.
    pub shown: Vec<String>,
    /// Allowed or required calls: `auto`, `none`, `required`, `required TOOL` where one tool is offered, `named
    /// TOOL`.
    pub tool_choice: String,
    /// The HTTP attempts, in order.
    pub attempts: Vec<Attempt>,
    /// The outcome.
    pub reply: Reply,
}

/// Outcome of a model call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// A completion.
    Completion(Completion),
    /// No completion, after the last attempt.
    Failure {
        /// Kind, `rate_limit` for example.
        kind: String,
        /// The provider's message, redacted.
        message: String,
    },
}

impl Reply {
    /// Whether it names the tools called in it.
    pub fn lists_calls(&self) -> bool {
        matches!(self, Self::Completion(completion) if !completion.calls.is_empty())
    }
}

/// A completion of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Completion {
    /// The model that answered.
    pub model: String,
    /// Free text, empty when there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// A refusal in the provider's own field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// Names of the tools called, in order; the calls themselves are events `tool_called`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// Why it stopped: `stop`, `tool_calls`, `length`, `content_filter` or the provider's word.
    pub finish: String,
    /// Input tokens, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Input tokens from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Input tokens written to the provider's cache, if there were some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// Output tokens, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
}

/// One HTTP attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// The service called, if the event does not imply it: `embeddings`. Older readers ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// HTTP status, when there was an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why it failed: `rate_limit`, `server_error`, `connection`, `timeout`, …; `None` when it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Duration of this attempt, in microseconds.
    pub took_us: u64,
    /// Wait before the next attempt, in microseconds; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_us: Option<u64>,
    /// Whether the simulator declared this failure as part of the case, so that it is not an outage.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub declared_fault: bool,
    /// In a run with held services: `recorded` if the recording answered this request, `forced` if it answered another
    /// one in its place, `new` if the service answered because the request is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
}

impl Attempt {
    /// Whether a recording answered it in a run with held services.
    pub(crate) fn is_held(&self) -> bool {
        self.held.as_deref().is_some_and(|held| held != "new")
    }
}

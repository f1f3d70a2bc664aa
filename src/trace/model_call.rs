//! Calls of the model: what was sent, every HTTP attempt, and the completion.

use super::{Event, TurnOutcome, What};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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

/// Why a completion ends that is not whole, in the words of providers: at the limit of tokens, or by a filter.
const CUT_OFF: [&str; 17] = [
    "length",
    "max_tokens",
    "max_output_tokens",
    "model_length",
    "model_context_window_exceeded",
    "incomplete",
    "content_filter",
    "content_filtered",
    "guardrail_intervened",
    "refusal",
    "safety",
    "recitation",
    "blocklist",
    "prohibited_content",
    "spii",
    "language",
    "image_safety",
];

/// Why a completion ended, by a message or a response as providers and frameworks write them.
pub(crate) fn finish_of(written: &Value) -> Option<&str> {
    const PLACES: [&str; 9] = [
        "/finish_reason",
        "/stop_reason",
        "/incomplete_details/reason",
        "/response_metadata/finish_reason",
        "/response_metadata/stop_reason",
        "/choices/0/finish_reason",
        "/generations/0/0/generation_info/finish_reason",
        "/candidates/0/finishReason",
        "/stopReason",
    ];
    let told = PLACES.iter().find_map(|place| written.pointer(place)?.as_str()).filter(|finish| !finish.is_empty());
    told.or_else(|| written["status"].as_str().filter(|status| *status == "incomplete"))
}

/// A note if the last completion before an answer was cut off.
pub(crate) fn cut_off(events: &[Event]) -> Option<String> {
    let (mut last, mut cut_off): (Option<&str>, BTreeSet<&str>) = (None, BTreeSet::new());
    for event in events {
        match &event.what {
            What::TurnStarted { .. } => last = None,
            What::ModelCalled(ModelCalled { reply: Reply::Completion(completion), .. }) => {
                last = Some(completion.finish.as_str());
            }
            What::TurnEnded(ended) if matches!(ended.outcome, TurnOutcome::Answered(_)) => {
                cut_off.extend(last.filter(|finish| is_cut_off(finish)));
            }
            _ => {}
        }
    }
    (!cut_off.is_empty()).then(|| {
        format!(
            "the model's last completion before an answer was cut off (`{}`): the answer may be incomplete",
            cut_off.into_iter().collect::<Vec<_>>().join("`, `")
        )
    })
}

fn is_cut_off(finish: &str) -> bool {
    // Python's enumerations are written as `FinishReason.MAX_TOKENS`.
    let word = finish.rsplit('.').next().unwrap_or_default().to_ascii_lowercase().replace('-', "_");
    CUT_OFF.contains(&word.as_str())
}

/// One HTTP attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// For an answered request for embeddings: its usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vectors: Option<VectorUsage>,
}

/// Usage of a request for vectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VectorUsage {
    /// The embeddings model, `provider/model`.
    pub model: String,
    /// Input tokens; absent if the service does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
}

impl Attempt {
    /// Whether a recording answered it in a run with held services.
    pub(crate) fn is_held(&self) -> bool {
        self.held.as_deref().is_some_and(|held| held != "new")
    }
}

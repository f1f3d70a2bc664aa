//! What can happen in a trial. Times are microseconds of the trial's clock, counted from the trial's start.

use super::{Logged, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing that happened. For whatever takes time, `at_us` is its start and the kind carries `took_us`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub at_us: u64,
    /// Ordinal of the conversation within the trial, from 0.
    pub conversation: u32,
    /// Ordinal of the turn within the conversation, from 0.
    pub turn: u32,
    /// What.
    pub what: What,
}

/// Kinds of events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A conversation began.
    ConversationStarted {
        /// Its name in the scenario; `main` when the case is one conversation.
        name: String,
        /// The session it belongs to.
        session: String,
        /// The tenant whose knowledge it may search, for flows that have tenants.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenant: Option<String>,
    },
    /// The user said something.
    TurnStarted {
        /// What the user said.
        query: String,
    },
    /// The flow's state machine moved.
    Moved(Moved),
    /// The model was asked, with all transport attempts that it took.
    ModelCalled(ModelCalled),
    /// The model called a tool, and this came of it.
    ToolCalled(ToolCalled),
    /// The flow itself searched: no model asked for it.
    Searched(FlowSearch),
    /// The controller told the model what it did wrong and asked again.
    FedBack(FedBack),
    /// It became known whether one retry recovered.
    Retried(Retried),
    /// The flow goes on without something it would have had.
    Degraded {
        /// What is unavailable, a tool's name for example.
        without: String,
        /// Why.
        reason: String,
    },
    /// The agent wrote something into its own log.
    Logged(Logged),
    /// The user got an answer or an error.
    TurnEnded(TurnEnded),
}

impl What {
    /// What a call of a tool, or a search that the flow made itself, gave; `None` for one that gave nothing.
    pub fn given(&self) -> Option<&ToolResult> {
        match self {
            Self::ToolCalled(ToolCalled { outcome: ToolOutcome::Ok(result), .. })
            | Self::Searched(FlowSearch { outcome: ToolOutcome::Ok(result), .. }) => Some(result),
            _ => None,
        }
    }
}

/// One transition of the state machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// State that was left.
    pub from: String,
    /// What caused it.
    pub on: String,
    /// State that was entered.
    pub to: String,
}

/// One completion of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCalled {
    /// Ordinal of the completion within the trial, from 0.
    pub call: u32,
    /// The state that the flow was in.
    pub state: String,
    /// From the first attempt to the last answer, waits included, in microseconds.
    pub took_us: u64,
    /// From the first attempt to the first word or call of the answer, in microseconds; only known of streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_us: Option<u64>,
    /// Every message that the model was shown, in order: `role:digest`, digest = first 12 hex digits of SHA-256 over
    /// the content.
    pub shown: Vec<String>,
    /// What the model may or must call: `auto`, `none`, `required`, `required TOOL` where one tool is offered,
    /// `named TOOL`.
    pub tool_choice: String,
    /// The HTTP attempts, in order.
    pub attempts: Vec<Attempt>,
    /// What came back.
    pub reply: Reply,
}

/// What a model call came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// A completion.
    Completion(Completion),
    /// None, after the last attempt.
    Failure {
        /// Kind, `rate_limit` for example.
        kind: String,
        /// The provider's words, redacted.
        message: String,
    },
}

impl Reply {
    /// Whether it says which tools were called in it.
    pub fn lists_calls(&self) -> bool {
        matches!(self, Self::Completion(completion) if !completion.calls.is_empty())
    }
}

/// A completion of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    /// The model that answered.
    pub model: String,
    /// Free text, empty when there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// A refusal in the provider's own field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// Names of the tools called, in order; the calls themselves are [`ToolCalled`] events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// Why it stopped: `stop`, `tool_calls`, `length`, `content_filter` or the provider's word.
    pub finish: String,
    /// Tokens read, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Of these, from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Tokens written, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
}

/// One HTTP attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The service that was asked, where the call alone does not say it: `embeddings`. Older readers ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// HTTP status, when there was an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why it failed: `rate_limit`, `server_error`, `connection`, `timeout`, …; `None` when it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// How long this attempt took, in microseconds.
    pub took_us: u64,
    /// How long was waited before the next attempt; `None` when there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_us: Option<u64>,
    /// Whether the simulator says that this failure is part of the case: it is then no outage.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub declared_fault: bool,
}

/// One call of a tool and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCalled {
    /// Ordinal of the completion (`ModelCalled::call`) that asked for it.
    pub call: u32,
    /// The provider's id of the call.
    pub id: String,
    /// The tool's name as the model wrote it.
    pub tool: String,
    /// The arguments: the JSON value after parsing, or the raw text as a string when it is not JSON.
    pub arguments: Value,
    /// What came of it.
    pub outcome: ToolOutcome,
    /// Time it took, in microseconds.
    pub took_us: u64,
    /// HTTP attempts, for tools that call a service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
}

/// One search that the flow made itself, and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowSearch {
    /// What was searched for.
    pub query: String,
    /// What came of it: it gave something, or failed.
    pub outcome: ToolOutcome,
    /// Time it took, in microseconds.
    pub took_us: u64,
    /// HTTP attempts, where a service was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
}

impl FlowSearch {
    /// What reports call it, beside the names of tools.
    pub const NAME: &'static str = "search";
}

/// What came of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    /// It ran and gave this.
    Ok(ToolResult),
    /// The parameters were refused; the tool did not run.
    Rejected(Rejection),
    /// It came out of order, or beside a call that must stand alone; the tool did not run.
    OutOfOrder(Rejection),
    /// It ran and failed.
    Failed {
        /// What the model was told.
        message: String,
        /// Whether the model was told that trying again may help.
        retryable: bool,
    },
    /// Nothing shows whether it ran: the agent runs elsewhere and shows its model no result of it.
    Unseen {
        /// Why nothing is known.
        reason: String,
    },
}

impl ToolOutcome {
    /// Whether it cannot be told what came of the call.
    pub fn is_unseen(&self) -> bool {
        matches!(self, Self::Unseen { .. })
    }

    /// Of a call that did not run as far as is known, without guidance for the model.
    pub fn not_executed(cause: &str, reason: &str) -> Self {
        Self::Rejected(Rejection { cause: cause.into(), reason: reason.into(), guidance: String::new() })
    }
}

/// Why a call was not executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// Machine-readable cause: `unknown_tool`, `not_json`, `schema`, `length`, `hostile`, `generic_keyword`, `order`, …
    pub cause: String,
    /// Why, in words.
    pub reason: String,
    /// What the model should do instead.
    pub guidance: String,
}

/// A message of the controller to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FedBack {
    /// The step that is missing: `knowledge_base`, `keywords` or `response`.
    pub step: String,
    /// The tool that the step needs.
    pub tool: String,
    /// Why: `missing_call`, `free_text`, `invalid_arguments`, `out_of_order`, …
    pub cause: String,
    /// What the model was told.
    pub message: String,
}

/// Three accounts that are never added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Account {
    /// HTTP attempts: rate limits, server errors, resets.
    Transport,
    /// The model was told that a call is missing or invalid.
    Model,
    /// A tool that failed, or refused its parameters, was called again.
    Tool,
}

impl Account {
    /// The word used in YAML and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Transport => "transport",
            Self::Model => "model",
            Self::Tool => "tool",
        }
    }
}

/// One retry whose outcome is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retried {
    /// Which account it is booked on.
    pub account: Account,
    /// Retries of one cause in one turn share an episode, from 0.
    pub episode: u32,
    /// Ordinal of the retry within the episode, from 1.
    pub attempt: u32,
    /// What was retried: a tool's name, or `model` or `search` for HTTP.
    pub target: String,
    /// Why.
    pub cause: String,
    /// Whether this retry gave a valid result.
    pub recovered: bool,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnEnded {
    /// From the user's words to the answer, in microseconds.
    pub took_us: u64,
    /// What the user got.
    pub outcome: TurnOutcome,
    /// The messages that later turns must be shown, as in [`ModelCalled::shown`]: the whole history after this turn.
    pub history: Vec<String>,
    /// The body of the reply that a chat service gives for this turn, where the case expects something of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Value>,
}

/// What the user got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// An answer, through the response tool.
    Answered(Answer),
    /// An error.
    Failed {
        /// `mandatory_call_missing`, `response_missing`, `model_calls_exhausted`, `model_unavailable`, `timeout`, …
        kind: String,
        /// What the user was told.
        message: String,
    },
}

/// An accepted answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// The sources it names, in order.
    pub sources: Vec<SourceRef>,
    /// The model's confidence, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Whether it says that it used the knowledge base.
    pub used_internal_kb: bool,
    /// Whether it says that it used the external service.
    pub used_external_kb: bool,
    /// Whether it declares that nothing it was given answers the question, in the words that its flow was told to use.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// Which of its members could not be told ([`SOURCES`], [`USED_INTERNAL_KB`], [`USED_EXTERNAL_KB`]): what stands there
    /// says nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
    /// Of an agent that runs elsewhere: whether its sources have the names of the passages that its traffic shows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub traceable: bool,
}

/// In [`Answer::unseen`]: which sources the answer names.
pub(crate) const SOURCES: &str = "sources";
/// In [`Answer::unseen`]: whether it was made of the knowledge base.
pub(crate) const USED_INTERNAL_KB: &str = "used_internal_kb";
/// In [`Answer::unseen`]: whether it was made of the external service.
pub(crate) const USED_EXTERNAL_KB: &str = "used_external_kb";

impl Answer {
    /// Whether that member of it could not be told.
    pub fn hides(&self, member: &str) -> bool {
        self.unseen.iter().any(|name| name == member)
    }
}

/// One source that an answer names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRef {
    /// `internal` or `external`.
    pub kind: String,
    /// Chunk id, learned entry id, or URL.
    pub id: String,
    /// Title, where given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The number by which the text cites it, where that is not its place in the list of sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
}

impl Answer {
    /// The source that `[number]` in the text stands for.
    pub fn source_of(&self, number: usize) -> Option<&SourceRef> {
        let numbered = |source: &&SourceRef| source.number.is_some_and(|own| own as usize == number);
        if self.sources.iter().any(|source| source.number.is_some()) {
            return self.sources.iter().find(numbered);
        }
        number.checked_sub(1).and_then(|place| self.sources.get(place))
    }
}

//! Events of a trial. Times are microseconds of the trial's clock, counted from the trial's start.

use super::{
    Answer, Attempt, Completion, IndexResult, Logged, ModelCalled, Reply, SearchResult, ToolResult, TurnEnded,
};
use crate::platform::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One event. For anything with a duration, `at_us` is its start and the kind carries `took_us`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Time, in microseconds.
    pub at_us: u64,
    /// Ordinal of the conversation within the trial, from 0.
    pub conversation: u32,
    /// Ordinal of the turn within the conversation, from 0.
    pub turn: u32,
    /// Kind of event.
    pub what: What,
}

/// Kinds of events.
///
/// ```
/// use ragcheck::{Trace, What};
///
/// /// Names of the tools that the model called, in order.
/// fn tools(trace: &Trace) -> Vec<&str> {
///     let called = trace.events.iter().filter_map(|event| match &event.what {
///         What::ToolCalled(call) => Some(call.tool.as_str()),
///         _ => None,
///     });
///     called.collect()
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A conversation began.
    ConversationStarted {
        /// Its name in the scenario; `main` when the case is one conversation.
        name: String,
        /// The session it belongs to.
        session: String,
        /// The tenant whose knowledge it may search, for flows with tenants.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenant: Option<String>,
    },
    /// The user sent a message.
    TurnStarted {
        /// The user's message.
        query: String,
    },
    /// The flow's state machine moved.
    Moved(Moved),
    /// The model was called, with all transport attempts.
    ModelCalled(ModelCalled),
    /// The model called a tool, with its outcome.
    ToolCalled(ToolCalled),
    /// The flow made a search that no model requested.
    Searched(FlowSearch),
    /// The agent sent a request to a service that its scenario declares, outside any call of a tool.
    Requested(Requested),
    /// The controller sent feedback to the model and called it again.
    FedBack(FedBack),
    /// The outcome of one retry became known.
    Retried(Retried),
    /// The flow continues without a service.
    Degraded {
        /// What is unavailable, a tool's name for example.
        without: String,
        /// The reason.
        reason: String,
    },
    /// The agent added an entry to its log.
    Logged(Logged),
    /// The user got an answer or an error.
    TurnEnded(TurnEnded),
}

impl What {
    /// The call, if it is one of a tool.
    pub(crate) fn tool_call(&self) -> Option<&ToolCalled> {
        if let Self::ToolCalled(call) = self { Some(call) } else { None }
    }

    pub(crate) fn tool_call_mut(&mut self) -> Option<&mut ToolCalled> {
        if let Self::ToolCalled(call) = self { Some(call) } else { None }
    }

    /// How the turn ended, if the event is its end.
    pub(crate) fn ended(&self) -> Option<&TurnEnded> {
        if let Self::TurnEnded(ended) = self { Some(ended) } else { None }
    }

    /// The answer, if the event ends a turn with one.
    pub(crate) fn answer(&self) -> Option<&Answer> {
        self.ended()?.outcome.answer()
    }

    /// The completion, if the event is an answered call of a model.
    pub(crate) fn completion(&self) -> Option<&Completion> {
        match self {
            Self::ModelCalled(ModelCalled { reply: Reply::Completion(completion), .. }) => Some(completion),
            _ => None,
        }
    }

    /// HTTP attempts that were made for it.
    pub(crate) fn attempts(&self) -> &[Attempt] {
        match self {
            Self::ModelCalled(called) => &called.attempts,
            Self::ToolCalled(called) => &called.attempts,
            Self::Searched(search) => &search.attempts,
            Self::Requested(request) => &request.attempts,
            _ => &[],
        }
    }

    /// Result of a tool call, or of a search by the flow; `None` if there is none.
    pub fn given(&self) -> Option<&ToolResult> {
        match self {
            Self::ToolCalled(ToolCalled { outcome: ToolOutcome::Ok(result), .. })
            | Self::Searched(FlowSearch { outcome: ToolOutcome::Ok(result), .. }) => Some(result),
            _ => None,
        }
    }

    /// The result of a search, by a tool or by the flow.
    pub(crate) fn search_mut(&mut self) -> Option<&mut SearchResult> {
        match self {
            Self::ToolCalled(ToolCalled { outcome: ToolOutcome::Ok(ToolResult::Search(search)), .. })
            | Self::Searched(FlowSearch { outcome: ToolOutcome::Ok(ToolResult::Search(search)), .. }) => Some(search),
            _ => None,
        }
    }

    /// The index entry that a tool call wrote.
    pub(crate) fn indexed_mut(&mut self) -> Option<&mut IndexResult> {
        match self {
            Self::ToolCalled(ToolCalled { outcome: ToolOutcome::Ok(ToolResult::Indexed(entry)), .. }) => Some(entry),
            _ => None,
        }
    }

    /// The service that answered, if it is another one than the event implies.
    pub(crate) fn service(&self) -> Option<&str> {
        let attempts = match self {
            Self::ModelCalled(called) => return called.service.as_deref(),
            Self::ToolCalled(called) => &called.attempts,
            Self::Searched(search) => &search.attempts,
            _ => return None,
        };
        attempts.last()?.service.as_deref()
    }
}

/// One transition of the state machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    /// State before the transition.
    pub from: String,
    /// Event that caused it.
    pub on: String,
    /// State after the transition.
    pub to: String,
}

/// One call of a tool and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCalled {
    /// Ordinal of the completion that asked for it, within the trial, from 0.
    pub call: u32,
    /// The provider's id of the call.
    pub id: String,
    /// The tool's name as the model wrote it.
    pub tool: String,
    /// The arguments: the JSON value after parsing, or the raw text as a string when it is not JSON.
    pub arguments: Value,
    /// Its outcome.
    pub outcome: ToolOutcome,
    /// When its run began, in microseconds of the trial's clock, if a span shows it. Older readers ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_us: Option<u64>,
    /// Duration, in microseconds.
    pub took_us: u64,
    /// HTTP attempts, for tools that call a service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
}

impl ToolCalled {
    /// A call of which no time is known, without an HTTP attempt.
    pub(crate) fn of(call: u32, id: &str, tool: &str, arguments: Value, outcome: ToolOutcome) -> Self {
        let (id, tool, attempts) = (id.to_owned(), tool.to_owned(), Vec::new());
        Self { call, id, tool, arguments, outcome, began_us: None, took_us: 0, attempts }
    }
}

/// One search by the flow, with its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowSearch {
    /// The search query.
    pub query: String,
    /// Its outcome: a result or a failure.
    pub outcome: ToolOutcome,
    /// Duration, in microseconds.
    pub took_us: u64,
    /// HTTP attempts, if a service was called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
}

impl FlowSearch {
    /// Its name in reports, beside the names of tools.
    pub const NAME: &'static str = "search";
}

/// One request to a declared service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Requested {
    /// The service's name in the scenario.
    pub service: String,
    /// The method, upper case.
    pub method: String,
    /// The path below the service's base URL, without its query.
    pub path: String,
    /// Why it failed, in the service's words; `None` if it was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Duration of all attempts, in microseconds.
    pub took_us: u64,
    /// HTTP attempts, in order.
    pub attempts: Vec<Attempt>,
}

impl Requested {
    /// Method, path and result on one line, for reports: `GET /orders: HTTP 200`.
    pub(crate) fn told(&self) -> String {
        let status = self.attempts.last().and_then(|last| last.status);
        let status = status.map_or_else(|| "no answer".to_owned(), |status| format!("HTTP {status}"));
        let failed = self.failed.as_ref().map_or_else(String::new, |why| format!(", FAILED: {why}"));
        format!("{} {}: {status}{failed}", self.method, self.path)
    }
}

/// Outcome of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    /// Ran and returned this result.
    Ok(ToolResult),
    /// The arguments were rejected; the tool did not run.
    Rejected(Rejection),
    /// Came out of order, or beside a call that must be alone; the tool did not run.
    OutOfOrder(Rejection),
    /// Ran and failed.
    Failed {
        /// Message to the model.
        message: String,
        /// Whether the message says that a retry may help.
        retryable: bool,
    },
    /// Undetermined: an external agent sent its model no result of the call.
    Unseen {
        /// Reason why it is undetermined.
        reason: String,
    },
}

impl ToolOutcome {
    /// Its word in tables and in the status of a service.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Ok(_) => "ok",
            Self::Rejected(_) => "rejected",
            Self::OutOfOrder(_) => "out_of_order",
            Self::Failed { .. } => "failed",
            Self::Unseen { .. } => "unseen",
        }
    }

    /// Whether the outcome is undetermined.
    pub fn is_unseen(&self) -> bool {
        matches!(self, Self::Unseen { .. })
    }

    /// Rejection of a call that did not run as far as is known, without guidance for the model.
    pub fn not_executed(cause: &str, reason: &str) -> Self {
        Self::Rejected(Rejection { cause: cause.into(), reason: reason.into(), guidance: String::new() })
    }
}

/// Reason why a call was not executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rejection {
    /// Machine-readable cause: `unknown_tool`, `not_json`, `schema`, `length`, `hostile`, `generic_keyword`, `order`, …
    pub cause: String,
    /// The reason as text.
    pub reason: String,
    /// What the model should do instead.
    pub guidance: String,
}

/// A message of the controller to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FedBack {
    /// The step that is missing: `knowledge_base`, `keywords` or `response`.
    pub step: String,
    /// The tool that the step needs.
    pub tool: String,
    /// Cause: `missing_call`, `free_text`, `invalid_arguments`, `out_of_order`, …
    pub cause: String,
    /// Message to the model.
    pub message: String,
}

words! {
    /// Kinds of retries, which are never summed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Account {
        /// HTTP attempts: rate limits, server errors, resets.
        Transport = "transport",
        /// Feedback to the model about a missing or invalid call.
        Model = "model",
        /// A tool that failed, or refused its parameters, was called again.
        Tool = "tool",
    }
}

/// One retry whose outcome is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retried {
    /// The account that it counts for.
    pub account: Account,
    /// Retries of one cause in one turn share an episode, from 0.
    pub episode: u32,
    /// Ordinal of the retry within the episode, from 1.
    pub attempt: u32,
    /// Target of the retry: a tool's name, or `model` or `search` for HTTP.
    pub target: String,
    /// The cause.
    pub cause: String,
    /// Whether this retry returned a valid result.
    pub recovered: bool,
}

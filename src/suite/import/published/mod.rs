//! The published trace: what another program writes for `score --import trace`. Conversations hold turns, and a turn
//! holds lists of what happened in it. A list that is absent was not recorded; an empty one says that nothing happened.
//! `events` makes the events of a trial of it, and `absent` names the members that it lacks.

mod absent;
mod events;

pub(super) use absent::{absent, are_timed};
pub(super) use events::events;

use crate::trace::state_machine::Machine;
use crate::trace::{CitedPage, FedBack, Learned, Logged, ManagedAnswer, Moved, Retried, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// One trace: the conversations of one run of a case. Only `conversations`, `turns` and `message` are required. Leave out
/// what was not recorded: criteria that need it are NOT_MEASURED and name it. An empty list says that nothing of its kind
/// happened.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedTrace {
    /// Its id in the program that wrote it. A second trace with the same id, case, repetition, reward and content is dropped
    /// as a copy; one with another reward is an error.
    pub id: Option<String>,
    /// The case that it ran: traces of one case are its repetitions. Without it, traces with equal messages are.
    pub case: Option<String>,
    /// Repetition of the case, from 0 or 1.
    pub repetition: Option<u32>,
    /// A grade from 0 to 1: the case passes at 1, whatever else it expects.
    pub reward: Option<f64>,
    /// The requested model.
    pub model: Option<String>,
    /// When it was recorded (RFC 3339).
    pub recorded_at: Option<String>,
    /// Names of the tools offered to the agent.
    pub tools: Option<Vec<String>>,
    /// Roles of the agent's tools, by name; unlisted tools have none.
    pub roles: Option<BTreeMap<String, Role>>,
    /// The agent's state machine, for traces with `moves`.
    pub machine: Option<Machine>,
    /// Its conversations, in order: several if they share one keyword index.
    pub conversations: Vec<Conversation>,
}

/// One conversation.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a map with `turns`")]
pub(crate) struct Conversation {
    /// Its name in the case, by which it is matched if the case has several; by default they are in the case's order.
    pub name: Option<String>,
    /// The tenant whose knowledge base it may search, for agents with tenants.
    pub tenant: Option<String>,
    /// Its turns, in order.
    pub turns: Vec<Turn>,
}

/// One turn: the user's message and all that followed.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a map with `message`")]
pub(crate) struct Turn {
    /// The user's message.
    pub message: String,
    /// Completions of the model, in order.
    pub completions: Option<Vec<GivenCompletion>>,
    /// Calls of tools, in order, executed or not.
    pub calls: Option<Vec<Call>>,
    /// Searches of knowledge bases and external services, in order.
    pub searches: Option<Vec<GivenSearch>>,
    /// Writes to the keyword index.
    pub index_writes: Option<Vec<IndexWrite>>,
    /// Messages in which the agent itself asked its model for a missing or valid call.
    pub feedback: Option<Vec<FedBack>>,
    /// Retries whose outcome is known.
    pub retries: Option<Vec<Retried>>,
    /// Services and tools that the turn went on without.
    pub degraded: Option<Vec<Degradation>>,
    /// Reasoning steps, reflections, notices and the other entries of the agent's log, in order.
    pub log: Option<Vec<Logged>>,
    /// Moves of the agent's state machine, in order.
    pub moves: Option<Vec<Moved>>,
    /// The order of all these across their lists, each by its place: `["completions[0]", "calls[0]", "feedback[0]",
    /// "answer"]`. Searches with a `call` and index writes belong to their call and are not named. By default each
    /// completion is followed by its calls; required to judge feedback and logs.
    pub sequence: Option<Vec<String>>,
    /// The answer; `null` if the user got none.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<GivenAnswer>")]
    #[expect(clippy::option_option, reason = "an answer that is `null` differs from one that is not given")]
    pub answer: Option<Option<GivenAnswer>>,
    /// The error that ended the turn, in place of an answer.
    pub error: Option<GivenError>,
    /// From the user's message to the answer, in milliseconds. A turn without an answer needs none if every
    /// answer of the file has one.
    #[schemars(range(min = 0))]
    pub took_ms: Option<f64>,
    /// The history after this turn, which later turns must send: a text for each message, `role:content`.
    pub history: Option<Vec<String>>,
    /// The body of the agent's reply.
    pub reply: Option<Value>,
}

/// Keeps `null` apart from an absent member.
#[expect(clippy::option_option, reason = "an absent answer is unknown, and `null` is none")]
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(deserializer).map(Some)
}

/// One completion of the model.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GivenCompletion {
    /// The model that answered.
    pub model: Option<String>,
    /// Free text.
    pub text: Option<String>,
    /// A refusal in the provider's own field.
    pub refusal: Option<String>,
    /// Why it failed, if it did.
    pub error: Option<GivenError>,
    /// Allowed or required calls: `auto`, `none`, `required`, `required TOOL` where one tool is offered, `named TOOL`.
    pub tool_choice: Option<String>,
    /// The messages that the model was shown, in order: a text for each, `role:content`.
    pub shown: Option<Vec<String>>,
    /// Why it stopped: `stop`, `tool_calls`, `length`, `content_filter` or the provider's word.
    pub finish: Option<String>,
    /// Input tokens, cached ones included.
    pub input_tokens: Option<u64>,
    /// Input tokens from the provider's cache.
    pub cached_tokens: Option<u64>,
    /// Input tokens written to the provider's cache.
    pub cache_write_tokens: Option<u64>,
    /// Output tokens.
    pub output_tokens: Option<u64>,
    /// Its duration, in milliseconds.
    pub took_ms: Option<f64>,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a map with `tool`")]
pub(crate) struct Call {
    /// Its id: searches and index writes name it.
    pub id: Option<String>,
    /// The completion that asked for it: its place in `completions`, from 0.
    pub completion: Option<u32>,
    /// The tool's name.
    pub tool: String,
    /// The arguments; a text if the model wrote no valid JSON.
    pub arguments: Option<Value>,
    /// Its outcome. Default: it ran if there is a `result`, a search or an index write of it; otherwise
    /// unknown.
    pub outcome: Option<Outcome>,
    /// Its result.
    pub result: Option<Value>,
    /// Why it failed or did not run.
    pub reason: Option<String>,
    /// Its duration, in milliseconds.
    pub took_ms: Option<f64>,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// It ran.
    Ok,
    /// The arguments were rejected; the tool did not run.
    Rejected,
    /// It came out of order; the tool did not run.
    OutOfOrder,
    /// It ran and failed.
    Failed,
}

/// Where a search or a source belongs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Origin {
    /// The agent's knowledge.
    #[default]
    Internal,
    /// An external search service.
    External,
}

/// One search, of a knowledge base or of an external service.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GivenSearch {
    /// The id of the call that made it; absent if no call did.
    pub call: Option<String>,
    /// What was searched; by default the knowledge.
    pub kind: Origin,
    /// The query.
    pub query: Option<String>,
    /// Why it failed, if it did.
    pub failed: Option<String>,
    /// The knowledge base.
    pub base: Option<String>,
    /// What a search of the knowledge found, best first.
    pub passages: Option<Vec<GivenPassage>>,
    /// Ids that the same search finds without learned entries, best first.
    pub without_learned: Option<Vec<String>>,
    /// The answer of a managed retrieval service.
    pub managed: Option<Box<ManagedAnswer>>,
    /// For an external service: the id of its answer, by which `index_writes` name it.
    pub id: Option<String>,
    /// For an external service: its answer.
    pub answer: Option<String>,
    /// For an external service: the pages that the answer cites, in order.
    pub pages: Option<Vec<CitedPage>>,
    /// For an external service: its model.
    pub model: Option<String>,
    /// Input tokens of the service.
    pub input_tokens: Option<u64>,
    /// Input tokens from its cache.
    pub cached_tokens: Option<u64>,
    /// Output tokens of the service.
    pub output_tokens: Option<u64>,
    /// Its duration, in milliseconds, if no call made it.
    pub took_ms: Option<f64>,
}

/// One passage that a search found.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a map with `id`")]
pub(crate) struct GivenPassage {
    /// Its id, by which answers cite it: `document#n` for a part of a document.
    pub id: String,
    /// Title of its document.
    pub title: Option<String>,
    /// Its text.
    pub text: Option<String>,
    /// Its score.
    pub score: Option<f64>,
    /// For an entry learned from an external answer: its origin.
    pub learned: Option<Learned>,
}

/// One write to the keyword index.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct IndexWrite {
    /// The id of the call that made it.
    pub call: String,
    /// The `id` of the external search whose answer is stored.
    pub result: String,
    /// The keywords that were stored.
    pub keywords: Vec<String>,
    /// Keywords that were already in the index.
    #[serde(default)]
    pub merged: Vec<String>,
    /// Those whose look-up returned this answer afterwards: what the index holds.
    pub read_back: Option<Vec<String>>,
}

/// Something that a turn went on without.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Degradation {
    /// What was unavailable, a tool's name for example.
    pub without: String,
    /// Why.
    #[serde(default)]
    pub reason: String,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a map with `text`")]
pub(crate) struct GivenAnswer {
    /// The text.
    pub text: String,
    /// Its sources, in order.
    pub sources: Option<Vec<GivenSource>>,
    /// Its confidence, 0 to 1.
    pub confidence: Option<f64>,
    /// Whether it claims to use the knowledge base.
    pub used_internal_kb: Option<bool>,
    /// Whether it claims to use the external service.
    pub used_external_kb: Option<bool>,
    /// Whether the agent declares it to be a refusal.
    pub refused: Option<bool>,
}

/// One source of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GivenSource {
    /// Id of a passage or of an external answer, or address of a page.
    pub id: String,
    /// Whether it is the agent's knowledge or external; by default the knowledge.
    #[serde(default)]
    pub kind: Origin,
    /// Title.
    #[serde(default)]
    pub title: String,
    /// The number by which the text cites it, unless that is its place in the list.
    pub number: Option<u32>,
}

/// An error.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a map with `kind`")]
pub(crate) struct GivenError {
    /// Its kind, one word.
    pub kind: String,
    /// Its message.
    #[serde(default)]
    pub message: String,
}

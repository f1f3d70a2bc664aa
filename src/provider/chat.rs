//! Neutral words for talking to a model: messages, tools, calls, usage.
//!
//! Dialects in `provider` translate these to and from the wire; nothing here knows any wire format.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Who speaks in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions of the application.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// The result of one tool call.
    Tool,
}

impl Role {
    /// The name as every dialect here and every trace spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// One call of a tool, as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id of the call; results refer to it.
    pub id: String,
    /// The tool's name as the model wrote it: it may name no tool at all.
    pub name: String,
    /// The arguments exactly as sent: usually, not always, a JSON object.
    pub arguments: String,
}

/// What a dialect wrote beyond the neutral words: signatures, item ids, images, fields that nobody here knows.
///
/// It goes back in its place to the dialect that wrote it; every other dialect ignores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passthrough {
    /// The name of the dialect that understands it.
    pub dialect: String,
    /// The document around the neutral words, which are left out of it.
    pub fields: Map<String, Value>,
    /// What the content consists of, in order; empty where it is plain text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<Piece>,
}

/// One piece of a message's content on the wire, without the neutral words that belong into it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Piece {
    /// The next `bytes` bytes of the message's text.
    Text {
        /// UTF-8 bytes of the text.
        bytes: usize,
        /// What surrounds it.
        wire: Value,
    },
    /// The next of the message's calls.
    Call {
        /// What surrounds it.
        wire: Value,
    },
    /// Neither text nor call: verbatim.
    Other {
        /// The whole piece.
        wire: Value,
    },
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The text; empty where an assistant message only calls tools.
    pub content: String,
    /// The calls of an assistant message, in the model's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// The call that a tool message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<String>,
    /// What a dialect wants back beside it; `None` in messages of our own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passthrough: Option<Arc<Passthrough>>,
}

impl Message {
    /// A message that is only text.
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), calls: Vec::new(), answers: None, passthrough: None }
    }

    /// The result of the call `id`.
    pub fn tool_result(id: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            role: Role::Tool,
            content: content.into(),
            calls: Vec::new(),
            answers: Some(id.into()),
            passthrough: None,
        }
    }
}

/// A tool as the model is told about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// Name, unique among the tools of a request.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// What the model may or must call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// It must call some tool.
    Required,
    /// It must not call any.
    None,
    /// It must call this one.
    Named(String),
}

impl std::fmt::Display for ToolChoice {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => formatter.write_str("auto"),
            Self::Required => formatter.write_str("required"),
            Self::None => formatter.write_str("none"),
            Self::Named(name) => write!(formatter, "named {name}"),
        }
    }
}

impl ToolChoice {
    /// For a trace: as displayed, and for `required` where one tool is offered, that tool too.
    pub fn told(&self, offered: &[ToolDefinition]) -> String {
        match (self, offered) {
            (Self::Required, [only]) => format!("{self} {}", only.name),
            _ => self.to_string(),
        }
    }
}

/// One request to a chat model.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// The model's name as the provider knows it.
    pub model: String,
    /// The whole conversation so far.
    pub messages: Vec<Message>,
    /// The tools on offer; shared by all requests of a trial.
    pub tools: Arc<[ToolDefinition]>,
    /// What may or must be called.
    pub tool_choice: ToolChoice,
    /// Sampling temperature; `None` leaves it to the provider.
    pub temperature: Option<f64>,
    /// Bound on output tokens.
    pub max_tokens: Option<u32>,
    /// Sampling seed, where the provider takes one.
    pub seed: Option<u32>,
    /// Whether several calls in one message are allowed; `None` leaves it to the provider.
    pub parallel_calls: Option<bool>,
    /// The rest of a document that was read from the wire; `None` in requests of our own.
    pub passthrough: Option<Arc<Passthrough>>,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It was done.
    Stop,
    /// It calls tools.
    ToolCalls,
    /// The token limit cut it off.
    Length,
    /// A filter cut it off.
    ContentFilter,
    /// A reason of the provider's own.
    Other(String),
}

/// Tokens of one exchange. A missing figure is unknown, never zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, cached ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Of `input`, those served from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// Tokens written, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
}

/// One reply of a chat model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatResponse {
    /// The model that the provider says it used.
    pub model: String,
    /// The text, empty when there is none.
    pub content: String,
    /// The provider's refusal text.
    pub refusal: Option<String>,
    /// The calls, in the model's order.
    pub calls: Vec<ToolCall>,
    /// Why it stopped.
    pub finish: Finish,
    /// Tokens used.
    pub usage: Usage,
    /// What the dialect wants back when this reply becomes a message of the conversation.
    pub passthrough: Option<Arc<Passthrough>>,
}

impl ChatResponse {
    /// This reply as the conversation's next message, with all that its dialect wants back.
    #[cfg_attr(front_door_only, expect(dead_code, reason = "tests and benches use it"))]
    pub fn to_message(&self) -> Message {
        Message {
            role: Role::Assistant,
            content: self.content.clone(),
            calls: self.calls.clone(),
            answers: None,
            passthrough: self.passthrough.clone(),
        }
    }
}

//! Dialect-neutral types of a conversation with a model: messages, tools, calls, usage.
//!
//! Dialects in `provider` translate them to and from wire formats; nothing here knows any of these.

use crate::platform::words;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

words! {
    /// Role of a message's author.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Role {
        /// Instructions of the application.
        System = "system",
        /// The user.
        User = "user",
        /// The model.
        Assistant = "assistant",
        /// The result of one tool call.
        Tool = "tool",
    }
}

/// One call of a tool, as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id of the call; results refer to it.
    pub id: String,
    /// Name of the tool as the model wrote it; there may be no such tool.
    pub name: String,
    /// The arguments exactly as sent: usually, not always, a JSON object.
    pub arguments: String,
}

impl ToolCall {
    /// The calls that it stands for, with its id. As in the prompt that they are trained on, OpenAI's models at times put
    /// `functions.` before a name, and several calls into one of `multi_tool_use.parallel`; clients unpack them.
    pub(crate) fn unpacked(self) -> Vec<Self> {
        let plain = |name: &str| name.strip_prefix("functions.").unwrap_or(name).to_owned();
        if self.name != "multi_tool_use.parallel" {
            return vec![Self { name: plain(&self.name), ..self }];
        }
        let read: Value = serde_json::from_str(&self.arguments).unwrap_or_default();
        let uses = read.get("tool_uses").and_then(Value::as_array).into_iter().flatten();
        let inner = uses.filter_map(|one| {
            let name = one.get("recipient_name").and_then(Value::as_str)?;
            let arguments = one.get("parameters").map_or_else(|| "{}".to_owned(), Value::to_string);
            Some(Self { id: self.id.clone(), name: plain(name), arguments })
        });
        let inner: Vec<Self> = inner.collect();
        if inner.is_empty() { vec![self] } else { inner }
    }
}

/// Parts of a message beyond the neutral fields: signatures, item ids, images, unknown fields.
///
/// They are sent back unchanged, and only in the dialect that they came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passthrough {
    /// Dialect that they belong to.
    pub dialect: String,
    /// The document without the neutral fields.
    pub fields: Map<String, Value>,
    /// Pieces of the content, in order; empty for plain text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<Piece>,
}

/// One piece of a message's content, without its neutral text or call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Piece {
    /// The next `bytes` bytes of the message's text.
    Text {
        /// Number of UTF-8 bytes.
        bytes: usize,
        /// The rest of the piece.
        wire: Value,
    },
    /// The next call of the message.
    Call {
        /// The rest of the piece.
        wire: Value,
    },
    /// Neither text nor call, kept verbatim.
    Other {
        /// The whole piece.
        wire: Value,
    },
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Role of the author.
    pub role: Role,
    /// The text; empty if an assistant message only calls tools.
    pub content: String,
    /// The calls of an assistant message, in the model's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// Id of the call that a tool message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<String>,
    /// Parts that the dialect wants back; `None` in messages of our own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passthrough: Option<Arc<Passthrough>>,
}

impl Message {
    /// Creates a message that is only text.
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), calls: Vec::new(), answers: None, passthrough: None }
    }

    /// Creates the result of the call `id`.
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

/// A tool as described to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// Name, unique within a request.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

impl ToolDefinition {
    /// Names of its arguments; `None` if its schema does not list all.
    pub(crate) fn arguments(&self) -> Option<impl Iterator<Item = &String>> {
        let schema = self.parameters.as_object()?;
        let adds = |name: &str| schema.get(name).is_some_and(|more| *more != Value::Bool(false));
        let more = ["additionalProperties", "patternProperties", "allOf", "anyOf", "oneOf", "$ref"];
        let known = schema.get("properties")?.as_object().filter(|_| !more.into_iter().any(adds))?;
        Some(known.keys())
    }
}

/// Which tools the model may or must call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// It must call at least one tool.
    Required,
    /// It must not call any tool.
    None,
    /// It must call this tool.
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
    /// The display form and, for `required` with a single tool offered, that tool.
    pub fn for_trace(&self, offered: &[ToolDefinition]) -> String {
        match (self, offered) {
            (Self::Required, [only]) => format!("{self} {}", only.name),
            _ => self.to_string(),
        }
    }
}

/// One request to a chat model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChatRequest {
    /// The model's name as the provider knows it.
    pub model: String,
    /// The whole conversation so far.
    pub messages: Vec<Message>,
    /// The tools offered; shared by all requests of a trial.
    pub tools: Arc<[ToolDefinition]>,
    /// Which tools may or must be called.
    pub tool_choice: ToolChoice,
    /// Sampling temperature; `None` leaves it to the provider.
    pub temperature: Option<f64>,
    /// Limit on output tokens.
    pub max_tokens: Option<u32>,
    /// Sampling seed, if the provider supports one.
    pub seed: Option<u32>,
    /// Whether several calls in one message are allowed; `None` leaves it to the provider.
    pub parallel_calls: Option<bool>,
    /// The rest of a request read from the wire; `None` in requests of our own.
    pub passthrough: Option<Arc<Passthrough>>,
}

impl ChatRequest {
    /// A request without tools; all settings are left to the provider.
    pub fn new(model: impl Into<String>, messages: Vec<Message>) -> Self {
        Self { model: model.into(), messages, ..Self::default() }
    }
}

/// Reason why a model stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model finished.
    #[default]
    Stop,
    /// The model calls tools.
    ToolCalls,
    /// The token limit cut the text off.
    Length,
    /// A content filter cut the text off.
    ContentFilter,
    /// A reason that only this provider uses.
    Other(String),
}

/// Tokens of one exchange. A missing number is unknown, never zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens, including cached ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Input tokens served from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// Input tokens written to the provider's cache, part of `input`; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<u64>,
    /// Output tokens, including reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
}

/// One reply of a chat model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChatResponse {
    /// The model that the provider reports.
    pub model: String,
    /// The text, empty when there is none.
    pub content: String,
    /// Text of the refusal, if the provider has a separate field for it.
    pub refusal: Option<String>,
    /// The calls, in the model's order.
    pub calls: Vec<ToolCall>,
    /// Reason why the model stopped.
    pub finish: Finish,
    /// Tokens used.
    pub usage: Usage,
    /// Parts that the dialect wants back when this reply becomes a message.
    pub passthrough: Option<Arc<Passthrough>>,
}

impl ChatResponse {
    /// Converts the reply into the next message of the conversation, with all that its dialect wants back.
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

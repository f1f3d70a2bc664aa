//! Errors in a mapping, in the members beside messages, and in messages.

use serde_json::Value;

/// Kind of a JSON value, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind(String);

impl Kind {
    /// Kind of a value; small values are included.
    pub(super) fn of(value: &Value) -> Self {
        Self(match value {
            Value::Null => "null".into(),
            Value::Bool(value) => value.to_string(),
            Value::Number(value) => value.to_string(),
            Value::String(_) => "a text".into(),
            Value::Array(_) => "a list".into(),
            Value::Object(_) => "an object".into(),
        })
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A member has the wrong type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{member}` is {found}, not {wanted}")]
pub struct WrongMember {
    /// Name of the member.
    pub member: String,
    /// Kind of its value.
    pub found: Kind,
    /// Expected kind.
    pub wanted: &'static str,
}

impl WrongMember {
    pub(super) fn new(member: impl Into<String>, found: &Value, wanted: &'static str) -> Self {
        Self { member: member.into(), found: Kind::of(found), wanted }
    }
}

/// Why a mapping is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// A member has the wrong type.
    #[error(transparent)]
    Member(#[from] WrongMember),
    /// `closing` has an unknown value.
    #[error("`mapping.closing` is {0}: write thanks, query or ignored")]
    Closing(Value),
    /// The member is unknown.
    #[error("`mapping.{0}` is not known: a mapping has `roles`, `closing` and `reminders`")]
    Unknown(String),
    /// A name is mapped to an unknown role.
    #[error("`{member}` is `{role}`, which is not a role: write {known}")]
    Role { member: String, role: String, known: String },
}

/// Why a conversation cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConversationError {
    /// It is not a conversation.
    #[error("it is {0}, not a list of messages or an object with `messages`")]
    NoConversation(Kind),
    /// It has no messages.
    #[error("it has no `messages`")]
    NoMessages,
    /// A member beside the messages is invalid.
    #[error(transparent)]
    Beside(#[from] WrongMember),
    /// Its mapping is invalid.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// One of its messages cannot be read. `place`: from 1.
    #[error("message {place}: {mistake}")]
    Message { place: usize, mistake: MessageError },
    /// Its JSON is nested too deeply.
    #[error("its JSON is nested deeper than 127 levels")]
    TooDeep,
    /// The answer is in a member that is not read.
    #[error("its messages end without an answer, and `{0}` beside them is not read: append the answer to the messages")]
    ReplyBeside(&'static str),
    /// Its line is not JSON. `line`: from 1.
    #[error("line {line}: {why}")]
    Line { line: usize, why: String },
    /// A member of a published trace cannot be used.
    #[error(transparent)]
    Trace(#[from] TraceMistake),
    /// Its source does not say it.
    #[error("{0}")]
    Source(String),
    /// The same conversation is graded differently. `other`: from 1.
    #[error("it has the id and the messages of conversation {other}, and another reward: remove one of the two")]
    OtherReward { other: usize },
    /// It has no turn.
    #[error("it has neither a question nor an answer")]
    Empty,
}

impl ConversationError {
    /// The error without its position, so that errors of one kind have one cause.
    pub(super) fn cause(&self) -> String {
        match self {
            Self::Message { mistake, .. } => mistake.to_string(),
            Self::Trace(mistake) => mistake.why.clone(),
            Self::Line { why, .. } => why.clone(),
            Self::OtherReward { .. } => "it has the id and the messages of another one, and another reward".into(),
            other => other.to_string(),
        }
    }
}

/// Why a member of a published trace cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` {why}")]
pub(crate) struct TraceMistake {
    /// Its path: `conversations[0].turns[1].calls[0].id`.
    pub path: String,
    /// Why.
    pub why: String,
}

impl TraceMistake {
    pub(super) fn new(path: impl Into<String>, why: impl Into<String>) -> Self {
        Self { path: path.into(), why: why.into() }
    }

    /// The same with a path below `outer`.
    pub(super) fn inside(self, outer: &str) -> Self {
        Self { path: format!("{outer}.{}", self.path), why: self.why }
    }
}

/// Why a message cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MessageError {
    /// It is not an object.
    #[error("it is {0}, not an object")]
    NoObject(Kind),
    /// It has no role.
    #[error("it has no `role`")]
    NoRole,
    /// Its shape, or that of a part, is unknown.
    #[error("it holds {seen}, which is not understood; read are {read}")]
    UnknownShape { seen: String, read: &'static str },
    /// An answer consists of a medium only.
    #[error("the agent answers with a medium alone ({0}), which cannot be judged as text")]
    MediumAlone(String),
    /// Its role is unknown.
    #[error(
        "the role `{0}` is not known (system, developer, user, assistant, tool): name its meaning in `mapping.roles`"
    )]
    UnknownRole(String),
    /// A member has the wrong type.
    #[error(transparent)]
    Member(#[from] WrongMember),
    /// It is the result of a call that was never made.
    #[error("it is the result of the call `{0}`, which no message before it makes")]
    NoCall(String),
    /// A call lacks a member.
    #[error("{call} has no `{member}`")]
    Call { call: String, member: &'static str },
}

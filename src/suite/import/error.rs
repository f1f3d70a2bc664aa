//! What is wrong with a mapping, with what stands beside messages, and with messages.

use serde_json::Value;

/// What a JSON value is, for a message about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind(String);

impl Kind {
    /// The kind of a value; small ones are shown.
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

/// A member that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{member}` is {found}, not {wanted}")]
pub struct WrongMember {
    /// Its name.
    pub member: String,
    /// What it is.
    pub found: Kind,
    /// What it should be.
    pub wanted: &'static str,
}

impl WrongMember {
    pub(super) fn new(member: impl Into<String>, found: &Value, wanted: &'static str) -> Self {
        Self { member: member.into(), found: Kind::of(found), wanted }
    }
}

/// Why a mapping is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// A member has another type.
    #[error(transparent)]
    Member(#[from] WrongMember),
    /// `closing` is none of its words.
    #[error("`mapping.closing` is {0}: write thanks, query or ignored")]
    Closing(Value),
    /// A member that no mapping has.
    #[error("`mapping.{0}` is not known: a mapping has `roles` and `closing`")]
    Unknown(String),
    /// A name stands for something that is no role.
    #[error("`{member}` is `{role}`, which is no role: write {known}")]
    Role {
        /// The name, with the members that lead to it.
        member: String,
        /// What it stands for.
        role: String,
        /// The roles.
        known: String,
    },
}

/// Why a conversation cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConversationError {
    /// It is something else.
    #[error("it is {0}, not a list of messages or an object with `messages`")]
    NoConversation(Kind),
    /// Its messages are missing.
    #[error("it has no `messages`")]
    NoMessages,
    /// What stands beside its messages is not as it should be.
    #[error(transparent)]
    Beside(#[from] WrongMember),
    /// Its mapping is not understood.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// One of its messages cannot be read.
    #[error("message {place}: {mistake}")]
    Message {
        /// Which, from 1.
        place: usize,
        /// What is wrong with it.
        mistake: MessageError,
    },
    /// It has no turn.
    #[error("nobody asks anything and nobody answers in it")]
    Empty,
}

impl ConversationError {
    /// The mistake without its place: mistakes of one kind are one cause, wherever they stand.
    pub(super) fn cause(&self) -> String {
        match self {
            Self::Message { mistake, .. } => mistake.to_string(),
            other => other.to_string(),
        }
    }
}

/// What is wrong with a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// It is something else.
    #[error("it is {0}, not an object")]
    NoObject(Kind),
    /// Nobody says it.
    #[error("it has no `role`")]
    NoRole,
    /// Its role means nothing to us.
    #[error(
        "the role `{0}` is not known (system, developer, user, assistant, tool): name its meaning in `mapping.roles`"
    )]
    UnknownRole(String),
    /// A member has another type.
    #[error(transparent)]
    Member(#[from] WrongMember),
    /// It answers what was not asked.
    #[error("it is the result of the call `{0}`, which no message before it makes")]
    NoCall(String),
    /// A call lacks a part.
    #[error("{call} has no `{member}`")]
    Call {
        /// Which call.
        call: String,
        /// The part.
        member: &'static str,
    },
}

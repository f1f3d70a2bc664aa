//! Types of requests and replies, and errors as replies.

use crate::flow::reply;
use crate::platform::secrets;
use crate::provider::chat::{Message, Role};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value, json};
use std::fmt;

/// Maximum number of characters of one question.
pub(super) const LONGEST_QUERY: usize = 8_000;
/// Maximum number of messages in a request's history.
const MOST_HISTORY: usize = 100;
/// Maximum number of characters of a session's or tenant's name.
const LONGEST_NAME: usize = 128;

/// One question; [`QueryRequest::read`] reads it.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct QueryRequest {
    /// What the user says.
    pub query: String,
    /// The session that it belongs to; without one, a session begins.
    #[schemars(default)]
    pub session_id: Option<String>,
    /// The tenant whose documents are searched, for flows that have tenants. A session keeps its tenant.
    #[schemars(default)]
    pub tenant_id: Option<String>,
    /// What tools know of the user, for flows whose tools ask for it. A session keeps it.
    #[schemars(default)]
    pub tool_context: Option<Map<String, Value>>,
    /// What was said before, oldest first, for a session that begins.
    #[schemars(default, rename = "conversationHistory")]
    pub conversation_history: Option<Vec<ChatMessage>>,
}

/// Fields with a second name, which is in the source documents of the two-stage flow.
pub(super) const SECOND_NAMES: [(&str, &str); 2] = [("query", "message"), ("tenant_id", "tenantId")];

/// One message of a history.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ChatMessage {
    /// Who said it.
    pub role: Speaker,
    /// What was said.
    pub content: String,
}

/// Who speaks in a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(super) enum Speaker {
    /// The person.
    User,
    /// The agent.
    Assistant,
}

/// The members of a JSON object that have not been read yet.
struct Fields {
    /// Where the object is: empty for the whole body.
    at: String,
    known: &'static [&'static str],
    members: Map<String, Value>,
}

impl Fields {
    fn of(at: &str, value: Value, known: &'static [&'static str]) -> Result<Self, ApiError> {
        let what = if at.is_empty() { "the body".to_owned() } else { format!("`{at}`") };
        match value {
            Value::Object(members) => Ok(Self { at: at.to_owned(), known, members }),
            other => Err(wrong(format!("{what} must be a JSON object, not {}", kind_of(&other)))),
        }
    }

    /// A field by one of its two names, with its place; null counts as absent.
    fn take(&mut self, name: &str) -> Result<Option<(String, Value)>, ApiError> {
        let second =
            SECOND_NAMES.iter().find(|(first, _)| self.at.is_empty() && *first == name).map(|(_, other)| *other);
        let mut given = [Some(name), second].into_iter().flatten().filter_map(|name| {
            let value = self.members.remove(name).filter(|value| !value.is_null())?;
            Some((if self.at.is_empty() { name.to_owned() } else { format!("{}.{name}", self.at) }, value))
        });
        let found = given.next();
        match (given.next(), second) {
            (Some(_), Some(second)) => {
                Err(wrong(format!("`{name}` and `{second}` are two names of one field: send one of them")))
            }
            _ => Ok(found),
        }
    }

    /// A text of at most `longest` characters that is not empty; `None` if the field is absent.
    fn text(&mut self, name: &str, longest: usize) -> Result<Option<String>, ApiError> {
        match self.take(name)? {
            None => Ok(None),
            Some((at, Value::String(text))) if text.trim().is_empty() => Err(wrong(format!("`{at}` is empty"))),
            Some((at, Value::String(text))) if text.chars().nth(longest).is_some() => {
                Err(wrong(format!("`{at}` has more than {longest} characters")))
            }
            Some((_, Value::String(text))) => Ok(Some(text)),
            Some((at, other)) => Err(wrong(format!("`{at}` must be text, not {}", kind_of(&other)))),
        }
    }

    fn missing(&self, name: &str) -> ApiError {
        let field = if self.at.is_empty() { name.to_owned() } else { format!("{}.{name}", self.at) };
        wrong(format!("`{field}` is missing"))
    }

    /// Fails if a member is none of the fields.
    fn end(self) -> Result<(), ApiError> {
        let Some(name) = self.members.keys().find(|name| !self.known.contains(&name.as_str())) else { return Ok(()) };
        let whole = if self.at.is_empty() { "a request" } else { "a message" };
        let name = secrets::beginning(name, LONGEST_NAME);
        Err(wrong(format!("`{name}` is not a field of {whole}; its fields: {}", self.known.join(", "))))
    }
}

/// The JSON of a body; a member of its object that is given twice is an error, since either could be meant.
#[derive(Debug)]
pub(super) struct Body(pub Value);

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BodyVisitor)
    }
}

struct BodyVisitor;

impl<'de> Visitor<'de> for BodyVisitor {
    type Value = Body;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Body, A::Error> {
        let mut members = Map::new();
        while let Some((name, value)) = access.next_entry::<String, Value>()? {
            if members.contains_key(&name) {
                let name = secrets::beginning(&name, LONGEST_NAME);
                return Err(A::Error::custom(format!("`{name}` is given twice")));
            }
            members.insert(name, value);
        }
        Ok(Body(Value::Object(members)))
    }
}

fn wrong(message: String) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "invalid_request", message)
}

/// The kind of a JSON value, for messages.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

impl QueryRequest {
    /// Reads and checks a request.
    ///
    /// # Errors
    /// The first problem found: the field, what it must be and what it is.
    pub(super) fn read(body: Value) -> Result<Self, ApiError> {
        let known = &["query", "message", "session_id", "tenant_id", "tenantId", "tool_context", "conversationHistory"];
        let mut fields = Fields::of("", body, known)?;
        let query = fields.text("query", LONGEST_QUERY)?;
        let session_id = fields.text("session_id", LONGEST_NAME)?;
        let tenant_id = fields.text("tenant_id", LONGEST_NAME)?;
        let tool_context = match fields.take("tool_context")? {
            None => None,
            Some((_, Value::Object(context))) => Some(context),
            Some((at, other)) => return Err(wrong(format!("`{at}` must be an object, not {}", kind_of(&other)))),
        };
        let conversation_history = match fields.take("conversationHistory")? {
            None => None,
            Some((at, Value::Array(said))) if said.len() > MOST_HISTORY => {
                return Err(wrong(format!("`{at}` has {} messages; {MOST_HISTORY} are the most", said.len())));
            }
            Some((at, Value::Array(said))) => {
                let said = said.into_iter().enumerate();
                Some(
                    said.map(|(place, one)| ChatMessage::read(&format!("{at}[{place}]"), one))
                        .collect::<Result<_, _>>()?,
                )
            }
            Some((at, other)) => return Err(wrong(format!("`{at}` must be a list, not {}", kind_of(&other)))),
        };
        let missing = fields.missing("query");
        fields.end()?;
        Ok(Self { query: query.ok_or(missing)?, session_id, tenant_id, tool_context, conversation_history })
    }

    /// The history of the request, as messages.
    pub(super) fn history(&self) -> Vec<Message> {
        let role = |speaker| if speaker == Speaker::User { Role::User } else { Role::Assistant };
        let said = self.conversation_history.iter().flatten();
        said.map(|said| Message::text(role(said.role), said.content.clone())).collect()
    }
}

impl ChatMessage {
    fn read(at: &str, value: Value) -> Result<Self, ApiError> {
        let mut fields = Fields::of(at, value, &["role", "content"])?;
        let role = match fields.take("role")? {
            Some((_, Value::String(role))) if role == "user" => Speaker::User,
            Some((_, Value::String(role))) if role == "assistant" => Speaker::Assistant,
            Some((at, Value::String(_))) => return Err(wrong(format!("`{at}` must be user or assistant"))),
            Some((at, other)) => return Err(wrong(format!("`{at}` must be text, not {}", kind_of(&other)))),
            None => return Err(fields.missing("role")),
        };
        let content = match fields.take("content")? {
            Some((at, Value::String(text))) if text.chars().nth(LONGEST_QUERY).is_some() => {
                return Err(wrong(format!("`{at}` has more than {LONGEST_QUERY} characters")));
            }
            Some((_, Value::String(text))) => text,
            Some((at, other)) => return Err(wrong(format!("`{at}` must be text, not {}", kind_of(&other)))),
            None => return Err(fields.missing("content")),
        };
        fields.end()?;
        Ok(Self { role, content })
    }
}

/// An error as returned to the caller: `{error: {kind, message}}`, with the session if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApiError {
    pub(super) status: StatusCode,
    pub(super) kind: String,
    pub(super) message: String,
    pub(super) session: Option<String>,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, kind: &str, message: impl Into<String>) -> Self {
        Self { status, kind: kind.to_owned(), message: message.into(), session: None }
    }

    /// An error of the agent, by its kind: an unknown tenant is "not found", an exceeded time limit is a timeout, and
    /// any other error of a flow or its services is a server error.
    pub(super) fn of_agent(kind: &str, message: &str, session: Option<&str>) -> Self {
        let status = match kind {
            "unknown_tenant" => StatusCode::NOT_FOUND,
            "timeout" => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { session: session.map(str::to_owned), ..Self::new(status, kind, message) }
    }

    pub(super) fn body(&self) -> Value {
        let mut body = reply::failed(&self.kind, &self.message);
        if let Some(session) = &self.session {
            body["session_id"] = json!(session);
        }
        secrets::clean_value(body)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = self.body();
        (self.status, axum::Json(body)).into_response()
    }
}

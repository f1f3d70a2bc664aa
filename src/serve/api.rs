//! Types of requests and replies, and errors as replies.

use crate::flow::reply;
use crate::platform::secrets;
use crate::provider::chat::{Message, Role};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Maximum number of characters of one question.
pub(super) const LONGEST_QUERY: usize = 8_000;
/// Maximum number of messages in a request's history.
const MOST_HISTORY: usize = 100;
/// Maximum number of characters of a session's or tenant's name.
const LONGEST_NAME: usize = 128;

/// One question.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct QueryRequest {
    /// What the user says.
    pub query: String,
    /// The session that it belongs to; without one, a session begins.
    #[serde(default)]
    pub session_id: Option<String>,
    /// The tenant whose documents are searched, for flows that have tenants. A session keeps its tenant.
    #[serde(default)]
    pub tenant_id: Option<String>,
    /// What tools know of the user, for flows whose tools ask for it. A session keeps it.
    #[serde(default)]
    pub tool_context: Option<Map<String, Value>>,
    /// What was said before, oldest first, for a session that begins.
    #[serde(default, rename = "conversationHistory")]
    pub conversation_history: Option<Vec<ChatMessage>>,
}

/// One message of a history.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChatMessage {
    /// Who said it.
    pub role: Speaker,
    /// What was said.
    pub content: String,
}

/// Who speaks in a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Speaker {
    /// The person.
    User,
    /// The agent.
    Assistant,
}

impl QueryRequest {
    /// Checks whether the request is acceptable.
    ///
    /// # Errors
    /// The first problem found.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        let wrong = |message: String| Err(ApiError::new(StatusCode::BAD_REQUEST, "invalid_request", message));
        if self.query.trim().is_empty() {
            return wrong("`query` is empty".into());
        }
        let too_long = |text: &str, most: usize| text.chars().nth(most).is_some();
        if too_long(&self.query, LONGEST_QUERY) {
            return wrong(format!("`query` has more than {LONGEST_QUERY} characters"));
        }
        for (field, name) in [("session_id", &self.session_id), ("tenant_id", &self.tenant_id)] {
            if name.as_ref().is_some_and(|name| name.is_empty() || too_long(name, LONGEST_NAME)) {
                return wrong(format!("`{field}` has 1 to {LONGEST_NAME} characters"));
            }
        }
        let history = self.conversation_history.as_deref().unwrap_or_default();
        if history.len() > MOST_HISTORY || history.iter().any(|said| too_long(&said.content, LONGEST_QUERY)) {
            return wrong(format!(
                "`conversationHistory` has at most {MOST_HISTORY} messages of at most {LONGEST_QUERY} characters"
            ));
        }
        Ok(())
    }

    /// The history of the request, as messages.
    pub(super) fn history(&self) -> Vec<Message> {
        let role = |speaker| if speaker == Speaker::User { Role::User } else { Role::Assistant };
        let said = self.conversation_history.iter().flatten();
        said.map(|said| Message::text(role(said.role), said.content.clone())).collect()
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

//! How a turn is sent to an agent, and where its reply holds the answer.
//!
//! The body is JSON of any shape with placeholders in braces. A text that is only `{history}` becomes a list of `{role,
//! content}`; one that is only `{tenant}` becomes null if there is no tenant; all others are replaced in the text.

use super::{Trouble, Words, unreached};
use crate::platform::placeholders::{Piece, braced};
use crate::platform::secrets;
use crate::provider::chat::Message;
use crate::transport::{HttpRequest, HttpResponse, Profile, Service, TransportError};
use serde_json::{Value, json};

/// Placeholders that may appear in braces.
pub(crate) const PLACEHOLDERS: [&str; 7] =
    ["message", "conversation_id", "history", "tenant", "variant", "trial", "turn"];
/// Bytes of a reply that a trace holds.
const LONGEST_REPLY: usize = 256 << 10;
/// Characters of an agent's error message that are kept.
const WORDS: usize = 300;

/// An address, split where a transport's base URL ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// `http://host:port`.
    pub origin: String,
    /// Path and query, with a leading slash.
    pub path: String,
}

impl Endpoint {
    /// Parses a URL; `None` unless it is an `http` or `https` URL with a host.
    pub(crate) fn parse(url: &str) -> Option<Self> {
        let (scheme, rest) = url.trim().split_once("://")?;
        let (host, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let sound = matches!(scheme, "http" | "https") && !host.is_empty() && !url.trim().contains(char::is_whitespace);
        sound.then(|| Self { origin: format!("{scheme}://{host}"), path: path.to_owned() })
    }

    /// As written.
    pub(crate) fn url(&self) -> String {
        format!("{}{}", self.origin, self.path)
    }

    pub(super) fn post(&self, body: Value) -> HttpRequest {
        HttpRequest {
            service: Service::Agent,
            profile: &Profile::EXACT,
            method: "POST",
            path: self.path.clone(),
            body: body.into(),
            stream: None,
            headers: Vec::new(),
        }
    }
}

/// Address of the agent and format of a turn.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// Its address.
    pub endpoint: Endpoint,
    /// Body of a turn, with placeholders.
    pub send: Value,
    /// JSON pointer of the answer in the reply.
    pub answer: String,
    /// JSON pointer of the sources in the reply, if the scenario names one.
    pub sources: Option<String>,
}

/// Values of the placeholders.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fill<'a> {
    /// The user's message.
    pub message: &'a str,
    /// The conversation's id.
    pub conversation: &'a str,
    /// Earlier turns.
    pub history: &'a [Message],
    /// The tenant of the user.
    pub tenant: Option<&'a str>,
    /// The variant's name.
    pub variant: &'a str,
    /// The trial's id.
    pub trial: &'a str,
    /// The turn's ordinal, from 0.
    pub turn: u32,
}

impl Target {
    /// Default body, if a scenario declares none.
    pub(crate) fn usual_body() -> Value {
        json!({"message": "{message}", "conversation_id": "{conversation_id}", "history": "{history}"})
    }

    pub(super) fn request(&self, fill: &Fill<'_>) -> HttpRequest {
        self.endpoint.post(filled(&self.send, fill))
    }

    /// The body of a reply, if it is JSON of at most [`LONGEST_REPLY`] bytes.
    pub(super) fn body(reply: &Result<HttpResponse, TransportError>) -> Option<Value> {
        let response = reply.as_ref().ok().filter(|response| response.body.len() <= LONGEST_REPLY)?;
        serde_json::from_slice(&response.body).ok()
    }

    /// Reads the answer from a reply, or the reason why there is none.
    pub(super) fn reply(&self, reply: Result<HttpResponse, TransportError>) -> Reply {
        let response = match reply {
            Ok(response) => response,
            Err(error) => return Reply::Trouble(unreached(&error, &self.endpoint.url())),
        };
        let body: Value = serde_json::from_slice(&response.body).unwrap_or(Value::Null);
        if !(200..300).contains(&response.status) {
            let said = secrets::beginning(String::from_utf8_lossy(&response.body).trim(), WORDS);
            return Reply::Failed("agent_error", format!("The agent answered with HTTP {}. {said}", response.status));
        }
        match body.pointer(&self.answer).and_then(Value::as_str) {
            Some(text) => Reply::Answer { text: text.to_owned(), body },
            None => Reply::Failed("answer_missing", format!("The agent's reply has no text at {}.", self.answer)),
        }
    }
}

/// Result of sending a turn to the agent.
#[derive(Debug)]
pub(super) enum Reply {
    /// The answer, and the whole body that contains it.
    Answer { text: String, body: Value },
    /// An error reported by the agent: its kind, and the message for the user.
    Failed(&'static str, String),
    /// No reply.
    Trouble(Trouble),
}

impl Reply {
    /// Replaces values generated per run by those of the recording.
    pub(super) fn in_words(self, words: &dyn Words) -> Self {
        match self {
            Self::Answer { text, body } => Self::Answer { text: words.text(&text), body: words.body(&body) },
            other => other,
        }
    }
}

fn filled(template: &Value, fill: &Fill<'_>) -> Value {
    match template {
        Value::String(text) if text == "{history}" => turns(fill.history),
        Value::String(text) if text == "{tenant}" => json!(fill.tenant),
        Value::String(text) => Value::String(filled_text(text, fill)),
        Value::Array(items) => items.iter().map(|item| filled(item, fill)).collect(),
        Value::Object(members) => members.iter().map(|(name, item)| (name.clone(), filled(item, fill))).collect(),
        other => other.clone(),
    }
}

fn turns(history: &[Message]) -> Value {
    history.iter().map(|message| json!({"role": message.role.as_str(), "content": message.content})).collect()
}

/// Fills in placeholders in one pass: braces in the values are not placeholders.
fn filled_text(text: &str, fill: &Fill<'_>) -> String {
    let mut out = String::with_capacity(text.len() + fill.message.len());
    for piece in braced(text) {
        match piece {
            Piece::Text(words) => out.push_str(words),
            Piece::Placeholder(placeholder) => match value(placeholder.inside, fill) {
                Some(value) => out.push_str(&value),
                None => out.push_str(placeholder.written),
            },
            Piece::Open { .. } => {}
        }
    }
    out
}

fn value(name: &str, fill: &Fill<'_>) -> Option<String> {
    Some(match name {
        "message" => fill.message.to_owned(),
        "conversation_id" => fill.conversation.to_owned(),
        "history" => turns(fill.history).to_string(),
        "tenant" => fill.tenant.unwrap_or_default().to_owned(),
        "variant" => fill.variant.to_owned(),
        "trial" => fill.trial.to_owned(),
        "turn" => fill.turn.to_string(),
        _ => return None,
    })
}

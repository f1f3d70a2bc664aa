//! How a turn is sent to an agent, and where the answer stands in its reply.
//!
//! The body is JSON of any shape with placeholders in braces. A text that is `{history}` and nothing else becomes a list
//! of `{role, content}`, and one that is `{tenant}` and nothing else null where no tenant is named; all others are put in
//! where they stand.

use super::{Trouble, Words, unreached};
use crate::platform::secrets;
use crate::provider::chat::Message;
use crate::transport::{HttpRequest, HttpResponse, Profile, Service, TransportError};
use serde_json::{Value, json};

/// What may stand in braces.
pub(crate) const PLACEHOLDERS: [&str; 7] =
    ["message", "conversation_id", "history", "tenant", "variant", "trial", "turn"];
/// Bytes of a reply that a trace holds.
const LONGEST_REPLY: usize = 256 << 10;
/// Characters of an agent's error that are kept.
const WORDS: usize = 300;

/// An address, cut where a transport's base URL ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// `http://host:port`.
    pub origin: String,
    /// The rest, with its leading slash.
    pub path: String,
}

impl Endpoint {
    /// From a URL; `None` when it is no `http` or `https` URL with a host.
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

/// Where the agent is, and how a turn is spelt for it.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// Its address.
    pub endpoint: Endpoint,
    /// The body of a turn, with placeholders.
    pub send: Value,
    /// JSON pointer of the answer in the reply.
    pub answer: String,
    /// JSON pointer of the sources in the reply, where the scenario names one.
    pub sources: Option<String>,
}

/// What goes into the placeholders.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fill<'a> {
    /// What the user says.
    pub message: &'a str,
    /// The conversation's id.
    pub conversation: &'a str,
    /// Earlier turns.
    pub history: &'a [Message],
    /// The tenant that the user belongs to.
    pub tenant: Option<&'a str>,
    /// The variant's name.
    pub variant: &'a str,
    /// The trial's id.
    pub trial: &'a str,
    /// The turn's ordinal, from 0.
    pub turn: u32,
}

impl Target {
    /// The body that is sent where a scenario names none.
    pub(crate) fn usual_body() -> Value {
        json!({"message": "{message}", "conversation_id": "{conversation_id}", "history": "{history}"})
    }

    pub(super) fn request(&self, fill: &Fill<'_>) -> HttpRequest {
        self.endpoint.post(filled(&self.send, fill))
    }

    /// The body of a reply that is JSON, of at most [`LONGEST_REPLY`] bytes.
    pub(super) fn body(reply: &Result<HttpResponse, TransportError>) -> Option<Value> {
        let response = reply.as_ref().ok().filter(|response| response.body.len() <= LONGEST_REPLY)?;
        serde_json::from_slice(&response.body).ok()
    }

    /// The answer's text, or why there is none: the agent's own failure within, trouble without.
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

/// What the agent replied.
#[derive(Debug)]
pub(super) enum Reply {
    /// The answer, and the whole body that it stands in.
    Answer { text: String, body: Value },
    /// An error of the agent's: its kind, and the words for the user.
    Failed(&'static str, String),
    /// No reply at all.
    Trouble(Trouble),
}

impl Reply {
    /// The same in the words of the recording.
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

/// One pass from left to right: braces in what was put in are no placeholders.
fn filled_text(text: &str, fill: &Fill<'_>) -> String {
    let mut out = String::with_capacity(text.len() + fill.message.len());
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let known = rest[1..].split_once('}').and_then(|(name, after)| Some((value(name, fill)?, after)));
        if let Some((value, after)) = known {
            out.push_str(&value);
            rest = after;
        } else {
            out.push('{');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
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

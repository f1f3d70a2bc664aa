//! How a turn is sent to an agent, and where its reply holds the answer.
//!
//! The body is JSON of any shape with placeholders, `{{message}}` or `{message}`. A text that is only `{{history}}`
//! becomes a list of `{role, content}`, one that is only `{{messages}}` this list with the user's message last,
//! `{{ui_messages}}` the same in the form of the AI SDK, and one that is only `{{tenant}}` null if there is no tenant; all
//! others are replaced where they stand.

use super::reply::{self, AnswerAt, Lack};
use super::{ANSWER_EMPTY, NO_REPLY, Trouble, Words, unreached};
use crate::platform::placeholders::{Piece, either};
use crate::platform::secrets;
use crate::provider::EXACT;
use crate::provider::chat::Message;
use crate::transport::{HttpRequest, HttpResponse, REDIRECT_HEADER, Service, TransportError};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Placeholders that may appear in braces.
pub(crate) const PLACEHOLDERS: [&str; 9] =
    ["message", "messages", "ui_messages", "conversation_id", "history", "tenant", "variant", "trial", "turn"];
/// Kind of failure of a turn that the agent answers with an error.
pub(crate) const AGENT_ERROR: &str = "agent_error";
/// Kind of a turn whose reply holds no answer.
pub(crate) const ANSWER_MISSING: &str = "answer_missing";
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
        HttpRequest::new(Service::Agent, &EXACT, "POST", self.path.as_str(), body)
    }
}

/// Address of the agent and format of a turn.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// Its address.
    pub endpoint: Endpoint,
    /// Headers of a turn, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body of a turn, with placeholders.
    pub send: Value,
    /// Where the reply holds the answer.
    pub answer: AnswerAt,
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
    /// The variant's prompts by name.
    pub prompts: &'a BTreeMap<String, String>,
}

impl Target {
    /// Default body, if a scenario declares none.
    pub(crate) fn usual_body(answer: &AnswerAt) -> Value {
        match answer {
            AnswerAt::OpenAi => json!({"model": "{{variant}}", "messages": "{{messages}}"}),
            AnswerAt::Pointer(_) => {
                json!({"message": "{{message}}", "conversation_id": "{{conversation_id}}", "history": "{{history}}"})
            }
        }
    }

    pub(crate) fn request(&self, fill: &Fill<'_>) -> HttpRequest {
        HttpRequest { headers: self.headers.clone(), ..self.endpoint.post(filled(&self.send, fill)) }
    }

    /// Reads the answer from a reply, or the reason why there is none.
    pub(super) fn reply(&self, reply: Result<HttpResponse, TransportError>) -> Reply {
        let at = self.endpoint.url();
        let response = match reply {
            Ok(response) => reply::in_utf8(response),
            Err(error) => return Reply::Trouble(unreached(&error, &at)),
        };
        let said = || secrets::beginning(String::from_utf8_lossy(&response.body).trim(), WORDS);
        match response.status {
            200..=299 => match reply::read(&response, &self.answer) {
                Ok((text, body)) => Reply::Answer { text, body },
                Err(why) => {
                    let kind = match why.lack {
                        Lack::Success => AGENT_ERROR,
                        Lack::Words => ANSWER_EMPTY,
                        Lack::End => NO_REPLY,
                        Lack::Answer => ANSWER_MISSING,
                    };
                    Reply::Failed(kind, why.to_string(), reply::document(&response))
                }
            },
            300..=399 => {
                let to = response.header(REDIRECT_HEADER).map_or(String::new(), |host| format!(" to {host}"));
                let why =
                    format!("the agent at {at} redirects{to} (HTTP {}): write the address itself", response.status);
                Reply::Trouble(Trouble::SetUp(why))
            }
            401 => {
                let why = format!(
                    "the agent at {at} asks for authentication (HTTP 401): send its key with `target.headers`. {}",
                    said()
                );
                Reply::Trouble(Trouble::SetUp(why.trim_end().to_owned()))
            }
            status => {
                let why = format!("The agent answered with HTTP {status}. {}", said());
                Reply::Failed(AGENT_ERROR, why, reply::document(&response))
            }
        }
    }
}

/// Result of sending a turn to the agent.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    /// The answer, and the whole body that contains it.
    Answer { text: String, body: Value },
    /// An error reported by the agent: its kind, the message for the user, and the body if it is JSON.
    Failed(&'static str, String, Value),
    /// No reply.
    Trouble(Trouble),
}

impl Reply {
    /// Replaces values generated per run by those of the recording.
    pub(super) fn in_words(self, words: &dyn Words) -> Self {
        match self {
            Self::Answer { text, body } => Self::Answer { text: words.text(&text), body: words.body(&body) },
            Self::Failed(kind, message, body) => Self::Failed(kind, words.text(&message), words.body(&body)),
            Self::Trouble(trouble) => Self::Trouble(trouble),
        }
    }

    /// The body, if it is JSON.
    pub(super) fn body(&self) -> Option<&Value> {
        match self {
            Self::Answer { body, .. } | Self::Failed(_, _, body) => Some(body).filter(|body| !body.is_null()),
            Self::Trouble(_) => None,
        }
    }
}

fn filled(template: &Value, fill: &Fill<'_>) -> Value {
    match template {
        Value::String(text) => match only_name(text) {
            Some("history") => turns(fill.history).into(),
            Some("messages") => {
                let asked = json!({"role": "user", "content": fill.message});
                turns(fill.history).into_iter().chain([asked]).collect()
            }
            Some("ui_messages") => {
                let said = fill.history.iter().map(|message| (message.role.as_str(), message.content.as_str()));
                let message = |(at, (role, text)): (usize, (&str, &str))| json!({"id": format!("m{at}"), "role": role, "parts": [{"type": "text", "text": text}]});
                (1..).zip(said.chain([("user", fill.message)])).map(message).collect()
            }
            Some("tenant") => json!(fill.tenant),
            _ => filled_text(text, fill).into(),
        },
        Value::Array(items) => items.iter().map(|item| filled(item, fill)).collect(),
        Value::Object(members) => members.iter().map(|(name, item)| (name.clone(), filled(item, fill))).collect(),
        other => other.clone(),
    }
}

/// The name of a placeholder that is the whole text.
fn only_name(text: &str) -> Option<&str> {
    let inside = |open, close| text.strip_prefix(open)?.strip_suffix(close);
    inside("{{", "}}").or_else(|| inside("{", "}")).map(str::trim)
}

fn turns(history: &[Message]) -> Vec<Value> {
    history.iter().map(|message| json!({"role": message.role.as_str(), "content": message.content})).collect()
}

/// Fills in placeholders in one pass: braces in the values are not placeholders.
fn filled_text(text: &str, fill: &Fill<'_>) -> String {
    let mut out = String::with_capacity(text.len() + fill.message.len());
    for piece in either(text) {
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
        "history" => Value::from(turns(fill.history)).to_string(),
        "tenant" => fill.tenant.unwrap_or_default().to_owned(),
        "variant" => fill.variant.to_owned(),
        "trial" => fill.trial.to_owned(),
        "turn" => fill.turn.to_string(),
        _ => return fill.prompts.get(name.strip_prefix("prompt.")?).cloned(),
    })
}

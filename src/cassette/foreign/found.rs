//! What the readers of other recorders' files have in common: an exchange as the file has it, and why there is none.

use super::super::base64;
use super::super::unpack::{UnpackError, unpack};
use crate::platform::yaml::{Kind, Node};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// Headers with lower-case names.
pub(super) type Headers = Vec<(String, String)>;

/// The exchanges of a file with their lines; a line is 0 if it is not known, as in JSON.
pub(super) type Items = Vec<(u32, Result<Found, Refusal>)>;

/// An exchange as its file has it.
pub(super) struct Found {
    pub method: String,
    pub url: String,
    pub sent: Message,
    pub status: u16,
    pub received: Message,
    /// Time from sending to the end of the answer; `None` if the file does not have it.
    pub took: Option<Duration>,
    /// When it was recorded, as the file writes it; without it, the `date` of the response counts.
    pub at: Option<String>,
    /// What an import of this exchange leaves out or changes.
    pub notes: BTreeSet<&'static str>,
}

/// Headers and body of a request or a response.
pub(super) struct Message {
    pub headers: Headers,
    pub body: Body,
}

/// A body as its file has it.
pub(super) enum Body {
    /// Its bytes, compressed as the headers say, or decompressed already.
    Bytes(Vec<u8>),
    /// The document that was in it.
    Parsed(Value),
}

/// Why an exchange was not imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// Its request has no URL.
    #[error("the request has no URL")]
    NoAddress,
    /// Its URL is not one of HTTP.
    #[error("its address is not of HTTP, but of `{0}:`")]
    NotHttp(String),
    /// Its request has no method.
    #[error("the request has no method")]
    NoMethod,
    /// Its response has no status: it is missing, or the file is cut off in it.
    #[error("the response has no status")]
    NoStatus,
    /// It is the opening of a WebSocket.
    #[error("it is a WebSocket, and not one request with one response")]
    WebSocket,
    /// The request body is not JSON, so the service would not accept it.
    #[error("the body of the request is no JSON document, and the API at this address takes only those")]
    NotJson,
    /// The file has a body's length and not its bytes.
    #[error("the body of {0} is not in the file")]
    NoBody(&'static str),
    /// A body is declared as base64, but is not valid base64.
    #[error("the body of {0} is marked as base64 and is none")]
    NotBase64(&'static str),
    /// A body has an encoding that is not known. `whose`: `the request` or `the response`.
    #[error("the body of {whose} has the encoding `{encoding}`, which ragcheck does not read")]
    Encoding { whose: &'static str, encoding: String },
    /// A body is a number or a boolean.
    #[error("the body of {0} is neither text nor bytes nor a document")]
    NotBody(&'static str),
    /// A body cannot be decompressed. `whose`: `the request` or `the response`.
    #[error("the body of {whose} {error}")]
    Unpack { whose: &'static str, error: UnpackError },
    /// A chunked body breaks off or has a wrong length.
    #[error("the chunks of the body of {0} do not fit together")]
    Chunks(&'static str),
    /// Request or response do not begin as HTTP messages do.
    #[error("{0} does not begin as an HTTP message does")]
    NotMessage(&'static str),
    /// The lengths of a record do not fit the bytes that follow. `announced`: sum of the record's lengths. `there`:
    /// bytes up to the next record or the end.
    #[error("{announced} bytes are announced and {there} are there: the file is cut off, or was edited")]
    Lengths { announced: usize, there: usize },
    /// A record does not begin with two lengths.
    #[error("a line with the lengths of a request and a response is expected here")]
    NoLengths,
    /// The file's bodies together are too long.
    #[error("the bodies of this file are longer than {} MiB together: cut it into several", super::LONGEST_FILE >> 20)]
    FileTooLong,
}

/// The request, as messages name it.
pub(super) const REQUEST: &str = "the request";
/// The response, as messages name it.
pub(super) const RESPONSE: &str = "the response";

impl Body {
    /// Undoes the compression that the headers name.
    pub(super) fn unpacked(self, headers: &Headers, whose: &'static str) -> Result<Self, Refusal> {
        match self {
            Self::Bytes(bytes) => match unpack(bytes, headers) {
                Ok(bytes) => Ok(Self::Bytes(bytes)),
                Err(error) => Err(Refusal::Unpack { whose, error }),
            },
            parsed @ Self::Parsed(_) => Ok(parsed),
        }
    }
}

/// The text of a member; `None` if there is none, or if it is no text.
pub(super) fn word<'n>(node: &'n Node<'_>, name: &str) -> Option<&'n str> {
    node.get(name)?.text()
}

/// The method of a request, in upper case. Symbols of Ruby begin with a colon.
pub(super) fn method(request: &Node<'_>) -> Result<String, Refusal> {
    let method = word(request, "method").map(|method| method.trim_start_matches(':').to_ascii_uppercase());
    method.filter(|method| !method.is_empty()).ok_or(Refusal::NoMethod)
}

/// A status of three digits.
pub(super) fn status(node: Option<&Node<'_>>) -> Option<u16> {
    let first = node?.written()?.split_whitespace().next()?;
    first.parse().ok().filter(|status| (100..1000).contains(status))
}

/// The bytes of a scalar: of base64 if it is tagged so, else of its text; `None` for null or a missing body.
pub(super) fn bytes(node: Option<&Node<'_>>, whose: &'static str) -> Result<Option<Vec<u8>>, Refusal> {
    let Some(node) = node.filter(|node| !node.is_null()) else { return Ok(None) };
    match node.binary() {
        Some(packed) => decoded(packed, whose).map(Some),
        None => node.text().map(|text| Some(text.as_bytes().to_vec())).ok_or(Refusal::NotBody(whose)),
    }
}

/// The bytes of a text that is declared as base64.
pub(super) fn decoded(text: &str, whose: &'static str) -> Result<Vec<u8>, Refusal> {
    base64::decode(text).ok_or(Refusal::NotBase64(whose))
}

/// The headers in a map of names to a value or a list of values, of which the first counts.
pub(super) fn headers(message: &Node<'_>, notes: &mut BTreeSet<&'static str>) -> Headers {
    let entries = message.get("headers").map(Node::entries).unwrap_or_default();
    let pairs = entries.into_iter().filter_map(|(name, value)| {
        let value = match value.items() {
            Some(values) => {
                several(values.len() > 1, notes);
                values.first()?
            }
            None => value,
        };
        let value = value.written().filter(|_| !value.is_null())?;
        Some((name.written()?.to_ascii_lowercase(), value.to_owned()))
    });
    pairs.collect()
}

/// Notes that a header of an exchange has several values.
pub(super) fn several(are_several: bool, notes: &mut BTreeSet<&'static str>) {
    if are_several {
        notes.insert("of a header with several values the first is taken");
    }
}

/// Whether a node holds a list or a map, that is, a document in place of a body's bytes.
pub(super) fn is_document(node: &Node<'_>) -> bool {
    matches!(node.kind(), Kind::List(_) | Kind::Map(_))
}

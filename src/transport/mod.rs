//! One HTTP request in, one response out: live, recorded or replayed.
//!
//! Retries, dialects and meaning live in `provider`; nothing here knows what a model is.

mod budget;
mod hold;
mod links;
mod live;
mod order;
mod own_headers;
mod pace;
pub(crate) mod raw;
mod record;
mod relay;
mod replay;
pub mod sse;
mod tap;
#[cfg(test)]
mod tests;

pub(crate) use budget::Tariff;
pub use budget::{Budget, LimitTransport};
pub(crate) use hold::{Held, HoldTransport, Holding, Turns, held};
pub(crate) use links::broken as broken_conversation;
#[cfg(feature = "s3")]
pub(crate) use live::client_builder;
pub(crate) use live::{LiveError, REDIRECT_HEADER, TARGET_HEADER};
pub use live::{LiveTransport, Target};
pub(crate) use own_headers::SERVICE_ADDRESS;
pub use pace::Pace;
pub use record::RecordTransport;
#[cfg(not(front_door_only))]
pub use record::SIMULATOR_HEADER;
pub(crate) use record::{BROKEN_HEADER, DECLARED_FAULT_HEADER, broke_off};
pub(crate) use relay::{LEFT_HEADER, Part, Relay, was_left};
pub use replay::ReplayTransport;
pub(crate) use replay::ServiceKeys;
pub(crate) use tap::{Passed, Tap};

pub use crate::cassette::Profile;

use crate::cassette::{Chunk, Redactor};
use crate::platform::clock::BoxFuture;
use crate::platform::lock::lock;
use crate::platform::secrets::{cookies, given, keys_by_name, query_keys};
use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Position of an exchange in a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedPlace {
    /// Order of sending during recording, from 0.
    pub ordinal: u32,
    /// Group of exchanges that overlapped in time: their order of arrival may vary.
    pub burst: u32,
    /// [`HttpRequest::at`] of the recorded request.
    pub at: Option<Duration>,
    /// [`HttpRequest::body`] in the order of the recording, if members of JSON within its texts had another one.
    pub body: Option<Arc<Value>>,
}

/// Result of a request, and its position in the recording.
pub(crate) type PlacedResult = (Option<RecordedPlace>, Result<HttpResponse, TransportError>);

/// Service of a request. Cassettes, limits and reports distinguish services by this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    /// The chat model.
    Model,
    /// The external search service.
    Search,
    /// The embeddings model.
    Embeddings,
    /// The server of a knowledge base.
    Knowledge,
    /// The managed retrieval service.
    ManagedRetrieval,
    /// An external agent: it receives requests, and its replies are not recorded.
    Agent,
    /// A service that the scenario of an external agent declares, by name: compared exactly, and not read.
    Declared(&'static str),
    /// A further provider that the scenario of an external agent declares, by the service's name: a model or a search
    /// service.
    Provider(&'static str),
}

/// Names of declared services; a run has few, and each is kept once.
static DECLARED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

impl Service {
    pub(crate) fn declared(name: &str) -> Self {
        Self::Declared(Self::kept(name))
    }

    pub(crate) fn provider(name: &str) -> Self {
        match name {
            "model" => Self::Model,
            "search" => Self::Search,
            other => Self::Provider(Self::kept(other)),
        }
    }

    fn kept(name: &str) -> &'static str {
        let mut names = lock(&DECLARED);
        names.get(name).copied().unwrap_or_else(|| {
            let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
            names.insert(kept);
            kept
        })
    }

    /// Name in cassettes and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Search => "search",
            Self::Embeddings => "embeddings",
            Self::Knowledge => "knowledge",
            Self::ManagedRetrieval => "managed_retrieval",
            Self::Agent => "agent",
            Self::Declared(name) | Self::Provider(name) => name,
        }
    }
}

/// Test whether a stream of these bytes has ended, by its dialect.
#[derive(Clone)]
pub struct StreamEnd {
    test: Arc<StreamTest>,
    leaves: bool,
}

type StreamTest = dyn Fn(&[u8]) -> bool + Send + Sync;

impl StreamEnd {
    /// Creates it from a function.
    pub fn new(test: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        Self { test: Arc::new(test), leaves: false }
    }

    /// Reads no further as soon as the stream is complete: its sender may keep it open.
    #[must_use]
    pub(crate) fn leaving(self) -> Self {
        Self { leaves: true, ..self }
    }

    /// Whether the stream is complete.
    pub fn is_whole(&self, body: &[u8]) -> bool {
        (self.test)(body)
    }
}

impl std::fmt::Debug for StreamEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StreamEnd")
    }
}

/// One request, before it is sent.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    /// Service that it is for.
    pub service: Service,
    /// Profile by which it is compared with recorded requests.
    pub profile: &'static Profile,
    /// The method, upper case.
    pub method: &'static str,
    /// Path below the provider's base URL, with a leading slash and without the base's own path.
    pub path: String,
    /// The JSON body; shared, so that its creator can take it back after the exchange.
    pub body: Arc<Value>,
    /// Set if a stream is requested: tests whether the bytes received are the whole stream.
    pub stream: Option<StreamEnd>,
    /// Headers sent by an external agent, names in lower case: they are forwarded only to the live service, and those that hold
    /// keys are secrets.
    pub headers: Vec<(String, String)>,
    /// The body as an external agent sent it: a service may check the bytes, and JSON has larger numbers than we read.
    pub sent: Option<Bytes>,
    /// When an external agent sent it, since its turn began; `None` if nobody measures turns.
    pub at: Option<Duration>,
    /// Where a stream goes as it comes; `None` if its receiver takes the whole answer only.
    pub(crate) relay: Option<Relay>,
}

/// Headers of an agent that say whose its key is: as secret as the key, whatever their form.
const OWNER_HEADERS: [&str; 3] = ["x-goog-user-project", "openai-organization", "openai-project"];

impl HttpRequest {
    /// A request without headers whose answer is not a stream.
    pub fn new(
        service: Service,
        profile: &'static Profile,
        method: &'static str,
        path: impl Into<String>,
        body: impl Into<Arc<Value>>,
    ) -> Self {
        let (path, body) = (path.into(), body.into());
        let (stream, sent, at, relay) = (None, None, None, None);
        Self { service, profile, method, path, body, stream, headers: Vec::new(), sent, at, relay }
    }

    /// The values of [`HttpRequest::headers`], a password in one of them, the keys in the query, and those that a service of
    /// the agent's own gets in the body, as pairs for a redactor: a name for messages, and the value.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = (String, String)> {
        let value = |value: &str| {
            let named = value.split_once(' ').filter(|(scheme, _)| {
                ["bearer", "basic", "token"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
            });
            named.map_or(value, |(_, key)| key).trim().to_owned()
        };
        let declared = matches!(self.service, Service::Declared(_));
        // What the agent tells its model itself, such as the id of a user, is no key, whatever it looks like.
        let is_said = |value: &str| self.path.contains(value) || self.body.to_string().contains(value);
        let secret = self.headers.iter().filter(move |(name, value)| {
            let of_owner = OWNER_HEADERS.contains(&name.as_str());
            let is_key = || query_keys::may_be_secret(name, value);
            let counts = || declared || query_keys::names_key(name) || !is_said(value);
            ![TARGET_HEADER, "content-type"].contains(&name.as_str()) && (of_owner || is_key() && counts())
        });
        let headers = secret.flat_map(move |(name, text)| {
            let password = query_keys::password(text).map(|password| (format!("agent's password in {name}"), password));
            let parts = cookies(text).filter(move |_| name == "cookie");
            let parts = parts.map(move |part| (format!("agent's {name}"), part));
            std::iter::once((format!("agent's {name}"), value(text))).chain(password).chain(parts)
        });
        let in_body = if declared { keys_by_name(&self.body) } else { Vec::new() };
        headers.chain(query_keys::query_keys(&self.path)).chain(in_body)
    }
}

/// A redactor that learns the keys of requests: what it knows is redacted in later ones too, while recording and in replay.
#[derive(Default)]
struct Learner(Mutex<Arc<Redactor>>);

impl Learner {
    /// The redactor so far.
    fn redactor(&self) -> Arc<Redactor> {
        Arc::clone(&lock(&self.0))
    }

    /// The redactor with these keys too; those of a request are added before anything of it is recorded.
    fn learn(&self, keys: impl Iterator<Item = (String, String)>) -> Arc<Redactor> {
        let mut keys = keys.peekable();
        let any = keys.peek().is_some();
        let mut redactor = lock(&self.0);
        if any {
            *redactor = Arc::new(redactor.knowing(keys));
        }
        Arc::clone(&redactor)
    }
}

/// One response, unchanged.
#[derive(Debug, Clone)]
pub struct HttpResponse {
    /// HTTP status.
    pub status: u16,
    /// Headers in the order received, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Bytes,
    /// From sending the request to the end of the body.
    pub took: Duration,
    /// Arrival of a stream's bytes, in order; empty if no stream was requested.
    pub chunks: Vec<Chunk>,
}

impl HttpResponse {
    /// What a service of an agent's own gave it to prove who asks, as pairs for a redactor.
    fn secrets(&self, service: Service) -> impl Iterator<Item = (String, String)> {
        let headers = if matches!(service, Service::Declared(_)) { &self.headers[..] } else { &[] };
        given(headers)
    }

    /// The answer to a notice that nobody answers: 202, without a body.
    pub(crate) fn accepted() -> Self {
        Self { status: 202, headers: Vec::new(), body: Bytes::new(), took: Duration::ZERO, chunks: Vec::new() }
    }

    /// The first header of that name, given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Reason why there is no response.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TransportError {
    /// The connection failed or broke.
    #[error("connection: {message}")]
    Connection {
        /// Reason, redacted.
        message: String,
        /// Time until the failure.
        took: Duration,
    },
    /// No complete answer within the time limit.
    #[error("no answer within {after:?}")]
    Timeout {
        /// The limit.
        after: Duration,
    },
    /// A declared fault reset the connection, or let the time limit pass.
    #[error("declared fault: {}", if *.timed_out { "no answer in time" } else { "the connection was reset" })]
    Faulted {
        /// Whether the time limit passed.
        timed_out: bool,
        /// Time until the failure.
        took: Duration,
    },
    /// The recording has no such exchange; never retried.
    #[error("{}", .0.message)]
    Miss(Box<Miss>),
    /// The request violates a rule of every conversation, or has no target; it was not sent.
    #[error("request not sent: {message}")]
    Invalid {
        /// Reason.
        message: String,
    },
    /// The request holds a key that its service may not see; it was not sent.
    #[error("request not sent: {message}")]
    Withheld {
        /// Reason.
        message: String,
    },
}

impl TransportError {
    /// Time until the failure; zero for a request that was not sent.
    pub fn took(&self) -> Duration {
        match self {
            Self::Connection { took, .. } | Self::Faulted { took, .. } => *took,
            Self::Timeout { after } => *after,
            Self::Miss(_) | Self::Invalid { .. } | Self::Withheld { .. } => Duration::ZERO,
        }
    }
}

/// A request that the cassette does not contain, with an explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miss {
    /// Kind of difference, on one line.
    pub message: String,
    /// Cause: misses with the same cause are shown once, with a count.
    pub cause: String,
    /// The nearest exchange, the differences and the remedy, one line each.
    pub detail: Vec<String>,
}

/// Sends requests.
pub trait Transport: Send + Sync {
    /// Sends one request once.
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>>;

    /// Like [`Transport::send`], with the position of the exchange in a recording; `None` if nothing is recorded.
    fn send_placed(&self, request: HttpRequest) -> BoxFuture<'_, PlacedResult> {
        Box::pin(async move { (None, self.send(request).await) })
    }
}

//! One HTTP request in, one response out: live, recorded or replayed.
//!
//! Retries, dialects and meaning live in `provider`; nothing here knows what a model is.

mod budget;
mod links;
mod live;
mod pace;
mod query_keys;
mod record;
mod replay;
pub mod sse;
mod tap;
#[cfg(test)]
mod tests;

pub use budget::Budget;
pub use budget::LimitTransport;
pub(crate) use budget::{Tariff, TrialUnderWay};
pub(crate) use links::broken as broken_conversation;
pub use live::LiveTransport;
pub use live::Target;
pub(crate) use live::{LiveError, REDIRECT_HEADER};
pub use pace::Pace;
pub(crate) use pace::Permit;
pub(crate) use record::DECLARED_FAULT_HEADER;
pub use record::RecordTransport;
pub use record::SIMULATOR_HEADER;
pub use replay::ReplayTransport;
pub(crate) use tap::{Passed, Tap};

pub use crate::cassette::Profile;

use crate::cassette::Chunk;
use crate::platform::clock::BoxFuture;
use bytes::Bytes;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Where a recording has an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedPlace {
    /// Order of sending, from 0, while it was recorded.
    pub ordinal: u32,
    /// Exchanges of one burst overlapped in time: chance may decide which of them arrives first.
    pub burst: u32,
}

/// What came of a request, and where a recording has it.
pub(crate) type PlacedResult = (Option<RecordedPlace>, Result<HttpResponse, TransportError>);

/// Which service a request is for. Cassettes, limits and reports tell services apart by this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// The chat model.
    Model,
    /// The external search service.
    Search,
    /// The model that turns texts into vectors.
    Embeddings,
    /// The server of a knowledge base.
    Knowledge,
    /// The managed retrieval service.
    ManagedRetrieval,
    /// An agent that runs elsewhere: it is talked to, and what it says is not recorded.
    Agent,
}

impl Service {
    /// The word used in cassettes and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Search => "search",
            Self::Embeddings => "embeddings",
            Self::Knowledge => "knowledge",
            Self::ManagedRetrieval => "managed_retrieval",
            Self::Agent => "agent",
        }
    }
}

/// Whether a stream that holds these bytes has ended, as its dialect says.
#[derive(Clone)]
pub struct StreamEnd(Arc<StreamTest>);

type StreamTest = dyn Fn(&[u8]) -> bool + Send + Sync;

impl StreamEnd {
    /// By this test.
    pub fn new(test: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(test))
    }

    /// Whether nothing is missing from these bytes.
    pub fn is_whole(&self, body: &[u8]) -> bool {
        (self.0)(body)
    }
}

impl std::fmt::Debug for StreamEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StreamEnd")
    }
}

/// One request, before it touches any wire.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    /// Who it is for.
    pub service: Service,
    /// How it is compared with recorded ones.
    pub profile: &'static Profile,
    /// The method, upper case.
    pub method: &'static str,
    /// Path below the provider's base URL, with a leading slash and without the base's own path.
    pub path: String,
    /// The JSON body; shared, so that who made it can take it back when the exchange is over.
    pub body: Arc<Value>,
    /// Set when the answer is asked for in pieces: whether a stream of these bytes is whole.
    pub stream: Option<StreamEnd>,
    /// Headers, names in lower case, that somebody else's agent sent: they go to the live service and nowhere else, their
    /// values are secrets.
    pub headers: Vec<(String, String)>,
}

/// Headers of an agent that say which version of an API is meant: no secrets, and words that answers may hold.
const VERSION_HEADERS: [&str; 3] = ["anthropic-version", "anthropic-beta", "openai-beta"];

impl HttpRequest {
    /// The values of [`HttpRequest::headers`], versions of an API aside, and the keys in the query as a redactor wants them: a name for messages, and
    /// the value alone.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = (String, String)> {
        let value = |value: &str| value.strip_prefix("Bearer ").unwrap_or(value).trim().to_owned();
        let secret = self.headers.iter().filter(|(name, _)| !VERSION_HEADERS.contains(&name.as_str()));
        let headers = secret.map(move |(name, text)| (format!("agent's {name}"), value(text)));
        headers.chain(query_keys::query_keys(&self.path))
    }
}

/// One response, exactly as it came.
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
    /// How the bytes of a stream arrived, in order; empty when no stream was asked for.
    pub chunks: Vec<Chunk>,
}

impl HttpResponse {
    /// The first header of that (lower-case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Why there is no response.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TransportError {
    /// No connection, or it broke.
    #[error("connection: {message}")]
    Connection {
        /// Why, redacted.
        message: String,
        /// How long it took to find out.
        took: Duration,
    },
    /// No complete answer within the limit.
    #[error("no answer within {after:?}")]
    Timeout {
        /// The limit.
        after: Duration,
    },
    /// Replay has no such exchange; never retried.
    #[error("{}", .0.message)]
    Miss(Box<Miss>),
    /// The request breaks a rule of every conversation, or goes nowhere; it was not sent.
    #[error("request not sent: {message}")]
    Invalid {
        /// What is wrong with it.
        message: String,
    },
}

impl TransportError {
    /// How long it took to fail; nothing for what was not sent.
    pub fn took(&self) -> Duration {
        match self {
            Self::Connection { took, .. } => *took,
            Self::Timeout { after } => *after,
            Self::Miss(_) | Self::Invalid { .. } => Duration::ZERO,
        }
    }
}

/// A request that the cassette does not hold, explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miss {
    /// One line: what kind of difference it is.
    pub message: String,
    /// Misses with the same cause are shown once with a count.
    pub cause: String,
    /// The nearest exchange, what differs and what to do, a line each.
    pub detail: Vec<String>,
}

/// A way to get a response.
pub trait Transport: Send + Sync {
    /// Sends one request once.
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>>;

    /// Like [`Transport::send`], and says where a recording has the exchange; `None` where nothing is recorded.
    fn send_placed(&self, request: HttpRequest) -> BoxFuture<'_, PlacedResult> {
        Box::pin(async move { (None, self.send(request).await) })
    }
}

//! Clients of HTTP services: chat models, search, managed retrieval, embeddings and plain JSON, with one retry loop for
//! all.
//!
//! `tool_result` reads the results that agents show to their models, `mcp` the messages of MCP servers. `wire` translates between `chat` and each wire format and maps error bodies to [`ErrorKind`]; it never retries,
//! waits or records. Deviations of single servers are declared ([`crate::settings::Quirks`]). [`Attempt`]s are data:
//! the caller receives every one.

pub mod chat;
pub mod chat_client;
mod embedder;
mod failure;
#[cfg(test)]
mod fault_tests;
pub(crate) mod faults;
mod json_service;
mod managed_retrieval;
pub(crate) mod mcp;
pub(crate) mod observed;
pub mod perplexity_agent;
mod quirks;
mod refusals;
mod retry;
mod stream;
#[cfg(test)]
mod tests;
pub(crate) mod tool_result;
pub(crate) mod wire;

pub use chat_client::ChatClient;
pub use embedder::Embedder;
pub(crate) use json_service::{AnswerError, EXACT, JsonService};
pub(crate) use managed_retrieval::{Download, ManagedRetrieval};
pub(crate) use perplexity_agent::PerplexityAgent;
pub(crate) use refusals::Refusals;
pub use retry::{Failure, RetryPolicy};
pub(crate) use stream::ended_by;
#[cfg(test)]
pub(crate) use wire::nuclia_ask::AskCitation;
pub(crate) use wire::nuclia_ask::{AskAnswer, AskRequest, AskStatus, Paragraph};

use crate::platform::clock::{BoxFuture, Clock};
use crate::platform::words;
use crate::provider::chat::{ChatRequest, ChatResponse, Usage};
use crate::transport::{Held, HttpRequest, HttpResponse, Miss, Service, Transport, TransportError};
use std::sync::Arc;
use std::time::Duration;

words! {
    /// Kind of an error, for the decision about retries.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum ErrorKind {
        /// Too many requests at the moment.
        RateLimit = "rate_limit",
        /// The account's budget is used up: waiting does not help.
        Quota = "quota",
        /// The provider is overloaded.
        Overloaded = "overloaded",
        /// The conversation exceeds the model's context window.
        ContextLength = "context_length",
        /// The key is missing or wrong.
        Auth = "auth",
        /// The request is wrong.
        BadRequest = "bad_request",
        /// The provider failed.
        Server = "server_error",
        /// The model is not offered, although the status is that of a wrong request.
        NoModel = "no_model",
        /// The connection failed or broke.
        Connection = "connection",
        /// No answer within the time limit.
        Timeout = "timeout",
        /// The answer does not match the dialect.
        Malformed = "malformed",
        /// An HTML page instead of an API response: a login page, or that of a proxy.
        HtmlPage = "html_page",
    }
}

impl ErrorKind {
    /// Kind of a request without a response; `None` if it was not sent.
    pub(crate) fn of_transport(error: &TransportError) -> Option<Self> {
        match error {
            TransportError::Connection { .. } | TransportError::Faulted { timed_out: false, .. } => {
                Some(Self::Connection)
            }
            TransportError::Timeout { .. } | TransportError::Faulted { timed_out: true, .. } => Some(Self::Timeout),
            TransportError::Miss(_) | TransportError::Invalid { .. } | TransportError::Withheld { .. } => None,
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::RateLimit | Self::Overloaded | Self::Server | Self::Connection | Self::Timeout)
    }
}

/// Reason why a service returned nothing usable.
#[derive(Debug, Clone)]
pub enum ProviderError {
    /// It reported an error, or was unreachable.
    Failed {
        /// Kind of the error.
        kind: ErrorKind,
        /// HTTP status, if there was a response.
        status: Option<u16>,
        /// Message of the service, redacted.
        message: String,
    },
    /// The recording has no such exchange: the trial ends with ERROR.
    Miss(Box<Miss>),
}

impl std::fmt::Display for ProviderError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Failed { kind, status, message } => {
                let status = status.map_or(String::new(), |status| format!(", HTTP {status}"));
                write!(formatter, "{message} ({}{status})", kind.as_str())
            }
            Self::Miss(miss) => formatter.write_str(&miss.message),
        }
    }
}

/// One HTTP attempt, as recorded in the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub service: Service,
    /// HTTP status, if there was a response.
    pub status: Option<u16>,
    /// Kind of the failure; `None` on success.
    pub cause: Option<ErrorKind>,
    pub took: Duration,
    /// Wait before the next attempt; `None` if there was none.
    pub wait: Option<Duration>,
    /// Arrival of the first token, counted from sending; `None` if nothing was streamed.
    pub first_token: Option<Duration>,
    /// Whether the response marks its failure as declared ([`crate::transport::DECLARED_FAULT_HEADER`]).
    pub declared_fault: bool,
    /// What the response says about being held ([`crate::transport::held`]).
    pub held: Option<Held>,
    /// For an answered request for vectors: what is paid for.
    pub vectors: Option<VectorUsage>,
}

impl Attempt {
    /// An attempt that ended so, after which nobody waited.
    pub(crate) fn new(service: Service, status: Option<u16>, cause: Option<ErrorKind>, took: Duration) -> Self {
        let (wait, first_token, held, vectors) = (None, None, None, None);
        Self { service, status, cause, took, wait, first_token, declared_fault: false, held, vectors }
    }
}

/// Usage of an answered request for vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorUsage {
    /// The embeddings model, `provider/model`.
    pub model: String,
    /// Input tokens, if the service reports them.
    pub input_tokens: Option<u64>,
}

/// A result with all attempts that were made for it.
#[derive(Debug, Clone)]
pub struct Attempted<T> {
    /// Result of the last attempt.
    pub result: Result<T, ProviderError>,
    /// All attempts in order, at least one.
    pub attempts: Vec<Attempt>,
}

impl<T> Attempted<T> {
    /// Arrival of the first token of a streamed result, counted from the first attempt, including waits.
    pub fn first_token(&self) -> Option<Duration> {
        let (last, before) = self.attempts.split_last()?;
        let spent: Duration = before.iter().map(|attempt| attempt.took + attempt.wait.unwrap_or_default()).sum();
        last.first_token.map(|first| spent + first)
    }
}

/// What a client needs in one trial: a transport, a clock and a retry policy.
#[derive(Clone)]
pub struct Access {
    /// The transport: live, recorded or replayed.
    pub transport: Arc<dyn Transport>,
    /// The trial's clock.
    pub clock: Arc<dyn Clock>,
    /// Policy for retries.
    pub policy: RetryPolicy,
}

impl Access {
    /// Sends the output of `request` until it succeeds, fails permanently, or the policy's attempts are used up; `call`
    /// is the ordinal of this call among those to the same service.
    pub async fn exchange<T>(
        &self,
        call: u64,
        request: impl Fn() -> HttpRequest + Send,
        decode: impl Fn(&HttpResponse) -> Result<T, Failure> + Send,
    ) -> Attempted<T> {
        retry::attempt(self, call, request, decode, |_| None).await
    }
}

/// A chat model in some dialect.
pub trait ChatModel: Send + Sync {
    /// Requests one completion, with transport retries.
    fn complete<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Attempted<ChatResponse>>;
}

/// One question to an external search service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuestion {
    pub query: String,
    /// What is already known, as context for the service.
    pub context: Option<String>,
    /// The service's model, `perplexity/sonar` for example.
    pub model: String,
}

/// One citation of a search service's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    pub title: String,
    /// Its address.
    pub url: String,
    /// An extract, where given.
    pub snippet: String,
}

/// A search service's answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchAnswer {
    /// The text, with `[n]` markers as sent.
    pub text: String,
    /// Citations in the order of their markers, without duplicates.
    pub citations: Vec<Citation>,
    /// The model that the service reports.
    pub model: String,
    /// Tokens used.
    pub usage: Usage,
}

/// An external search service in some dialect.
pub trait SearchService: Send + Sync {
    /// Asks once, with transport retries.
    fn ask<'a>(&'a self, question: &'a SearchQuestion) -> BoxFuture<'a, Attempted<SearchAnswer>>;
}

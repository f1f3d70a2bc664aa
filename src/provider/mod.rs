//! Services behind HTTP: clients for chat models, search, managed retrieval, embeddings and plain JSON, one retry loop
//! for all.
//!
//! `wire` translates between `chat` and each wire format and maps error bodies to [`ErrorKind`]; it never retries,
//! waits or records. What single servers do differently is declared ([`crate::settings::Quirks`]). [`Attempt`]s are data: every one is reported to the caller.

pub mod chat;
pub mod chat_client;
mod embedder;
mod failure;
#[cfg(test)]
mod fault_tests;
mod json_service;
mod managed_retrieval;
pub(crate) mod observed;
pub mod perplexity_agent;
mod quirks;
mod refusals;
mod retry;
mod stream;
#[cfg(test)]
mod tests;
pub(crate) mod wire;

pub use chat_client::ChatClient;
pub use embedder::Embedder;
pub(crate) use json_service::{AnswerError, EMBEDDINGS, JsonService};
pub(crate) use managed_retrieval::{Download, ManagedRetrieval};
pub(crate) use perplexity_agent::PerplexityAgent;
pub(crate) use refusals::Refusals;
pub use retry::{Failure, RetryPolicy};
pub(crate) use stream::ended_by;
pub(crate) use wire::nuclia_ask::{AskAnswer, AskCitation, AskRequest, AskStatus, Paragraph};

use crate::platform::clock::{BoxFuture, Clock};
use crate::provider::chat::{ChatRequest, ChatResponse, Usage};
use crate::transport::{HttpRequest, HttpResponse, Miss, Service, Transport};
use std::sync::Arc;
use std::time::Duration;

/// What an error means to whoever decides about retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Too many requests for now.
    RateLimit,
    /// The account's budget is used up: waiting does not help.
    Quota,
    /// The provider is overloaded.
    Overloaded,
    /// The conversation is longer than the model reads.
    ContextLength,
    /// The key is missing or wrong.
    Auth,
    /// The request is wrong.
    BadRequest,
    /// The provider failed.
    Server,
    /// No connection, or it broke.
    Connection,
    /// No answer in time.
    Timeout,
    /// An answer that is not what the dialect says.
    Malformed,
    /// A page for people where the API's answer should be: a login page, a proxy's.
    HtmlPage,
}

impl ErrorKind {
    /// The word used in traces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RateLimit => "rate_limit",
            Self::Quota => "quota",
            Self::Overloaded => "overloaded",
            Self::ContextLength => "context_length",
            Self::Auth => "auth",
            Self::BadRequest => "bad_request",
            Self::Server => "server_error",
            Self::Connection => "connection",
            Self::Timeout => "timeout",
            Self::Malformed => "malformed",
            Self::HtmlPage => "html_page",
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::RateLimit | Self::Overloaded | Self::Server | Self::Connection | Self::Timeout)
    }
}

/// Why a service gave nothing usable.
#[derive(Debug, Clone)]
pub enum ProviderError {
    /// It said so, or was not reached.
    Failed {
        /// What it means.
        kind: ErrorKind,
        /// HTTP status, when there was an answer.
        status: Option<u16>,
        /// The service's words, redacted.
        message: String,
    },
    /// Replay has no such exchange: the trial ends in ERROR.
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

/// One HTTP attempt, as the trace will tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The service that was asked.
    pub service: Service,
    /// HTTP status, when there was an answer.
    pub status: Option<u16>,
    /// What failed; `None` when nothing did.
    pub cause: Option<ErrorKind>,
    /// How long it took.
    pub took: Duration,
    /// How long was waited before the next; `None` when there was none.
    pub wait: Option<Duration>,
    /// When its first token had arrived, counted from sending; `None` when nothing was streamed.
    pub first_token: Option<Duration>,
    /// Whether the response says that its failure was declared ([`crate::transport::DECLARED_FAULT_HEADER`]).
    pub declared_fault: bool,
}

/// A result together with all attempts that led to it.
#[derive(Debug, Clone)]
pub struct Attempted<T> {
    /// The last attempt's result.
    pub result: Result<T, ProviderError>,
    /// All attempts in order, at least one.
    pub attempts: Vec<Attempt>,
}

impl<T> Attempted<T> {
    /// When the first token of a streamed result had arrived, counted from the first attempt, waits included.
    pub fn first_token(&self) -> Option<Duration> {
        let (last, before) = self.attempts.split_last()?;
        let spent: Duration = before.iter().map(|attempt| attempt.took + attempt.wait.unwrap_or_default()).sum();
        last.first_token.map(|first| spent + first)
    }
}

/// What a client of a service needs in one trial: a way to it, a clock, and when to ask again.
#[derive(Clone)]
pub struct Access {
    /// The way: live, recorded or replayed.
    pub transport: Arc<dyn Transport>,
    /// The trial's clock.
    pub clock: Arc<dyn Clock>,
    /// When and how long to wait before the same request is sent again.
    pub policy: RetryPolicy,
}

impl Access {
    /// Sends what `request` makes until it succeeds, fails for good, or the policy's attempts are used up; `call` is the
    /// ordinal of this call among those to the same service.
    pub async fn exchange<T>(
        &self,
        call: u64,
        request: impl Fn() -> HttpRequest + Send,
        decode: impl Fn(&HttpResponse) -> Result<T, Failure> + Send,
    ) -> Attempted<T> {
        retry::attempt(&*self.transport, &*self.clock, &self.policy, call, request, decode, |_| None).await
    }
}

/// A chat model behind some dialect.
pub trait ChatModel: Send + Sync {
    /// Asks for one completion, transport retries included.
    fn complete<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Attempted<ChatResponse>>;
}

/// One question to an external search service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuestion {
    /// The query.
    pub query: String,
    /// What is known already, for the service to build on.
    pub context: Option<String>,
    /// The service's model, `perplexity/sonar` for example.
    pub model: String,
}

/// One citation of a search service's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    /// Title of the page.
    pub title: String,
    /// Its address.
    pub url: String,
    /// An extract, where given.
    pub snippet: String,
}

/// A search service's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchAnswer {
    /// The text, with `[n]` markers as sent.
    pub text: String,
    /// What it cites, in order of the markers, without repeats.
    pub citations: Vec<Citation>,
    /// The model that the service says it used.
    pub model: String,
    /// Tokens used.
    pub usage: Usage,
}

/// An external search service behind some dialect.
pub trait SearchService: Send + Sync {
    /// Asks once, transport retries included.
    fn ask<'a>(&'a self, question: &'a SearchQuestion) -> BoxFuture<'a, Attempted<SearchAnswer>>;
}

//! Answers questions: locks the session, runs one turn of the flow with the settings of a scenario's variant, stores
//! the session, and only then returns the answer.

use super::api::{ApiError, QueryRequest};
use super::counters::Counters;
use super::event_log::{self, EventLog};
use super::gateway;
use super::served::Served;
use super::sessions::{Session, SessionError, Sessions};
use super::status::{StreamEvent, Watcher};
use crate::flow::{Abort, Flow, reply};
use crate::knowledge::KeywordIndex;
use crate::platform::clock::{Clock, RealClock};
use crate::platform::files;
use crate::platform::lock::lock;
use crate::provider::{Download, ErrorKind, ProviderError};
use crate::trace::{Artifact, TurnOutcome, What};
use crate::trial::SetupError;
use axum::http::StatusCode;
use serde_json::Value;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;

#[derive(Debug, Clone)]
pub(crate) struct ServiceOptions {
    /// The state folder.
    pub state: PathBuf,
    /// Lifetime of an unused session.
    pub session_lifetime: Duration,
    /// Maximum number of concurrent requests; further ones are asked to retry later.
    pub most_requests: usize,
    /// Token that requests must have; `None` on loopback.
    pub token: Option<String>,
    /// Whether it is an agent under test: callers choose session ids, learned entries are kept only in memory, and
    /// `POST /api/test/reset` removes them and all sessions.
    pub test_target: bool,
}

/// Reason why a service cannot start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServiceError {
    /// Its state cannot be read or written.
    #[error("the folder of the service's state, {}, cannot be used: {error}; name another with --state", folder.display())]
    State { folder: PathBuf, error: io::Error },
    /// Another service uses it.
    #[error("another service uses {}: stop it, or name another folder with --state", folder.display())]
    InUse { folder: PathBuf },
    /// The flow cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The scenario's variant is not one of our flows.
    #[error("the scenario's variant is not a flow that can be served: `external` agents serve themselves")]
    NoFlow,
}

/// A served flow.
pub(crate) struct Service {
    pub(super) options: ServiceOptions,
    pub(super) counters: Counters,
    pub(super) served: Served,
    flow: &'static dyn Flow,
    sessions: Sessions,
    keywords: Mutex<Arc<KeywordIndex>>,
    log: Arc<EventLog>,
    pub(super) clock: Arc<dyn Clock>,
    /// Places for questions being answered, including those whose caller has disconnected.
    places: Semaphore,
    /// Held while the service runs: no other process may use its sessions.
    _lock: File,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Service").field("flow", &self.flow.description().name).finish_non_exhaustive()
    }
}

impl Service {
    /// Opens a service.
    ///
    /// # Errors
    /// If its services cannot be used (a key is missing, for example), or its state cannot be opened.
    pub(crate) fn open(served: Served, options: ServiceOptions) -> Result<Self, ServiceError> {
        let flow = served.flow().ok_or(ServiceError::NoFlow)?;
        // Reports now an error that would fail every question.
        served.context("begin", 0)?;
        let unusable = |error| ServiceError::State { folder: options.state.clone(), error };
        files::create_private_dir(&options.state).map_err(unusable)?;
        let lock = files::append_private(options.state.join("lock")).map_err(unusable)?;
        if lock.try_lock().is_err() {
            return Err(ServiceError::InUse { folder: options.state.clone() });
        }
        let folder = options.state.join("sessions");
        let sessions = Sessions::open(&folder, options.session_lifetime, options.test_target).map_err(unusable)?;
        let keywords = if options.test_target {
            KeywordIndex::in_memory()
        } else {
            let own = || KeywordIndex::in_file(&options.state.join("keywords.sqlite"));
            served.keyword_index().unwrap_or_else(own)
        };
        let log = EventLog::open(&options.state.join("events.jsonl"), event_log::MOST_BYTES).map_err(unusable)?;
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        sessions.forget_expired(clock.wall()).map_err(unusable)?;
        Ok(Self {
            places: Semaphore::new(options.most_requests),
            counters: Counters::default(),
            served,
            flow,
            sessions,
            keywords: Mutex::new(Arc::new(keywords)),
            log: Arc::new(log),
            clock,
            _lock: lock,
            options,
        })
    }

    /// The flow's name.
    pub(crate) fn flow(&self) -> &'static str {
        self.flow.description().name
    }

    /// Whether no question is being answered.
    pub(super) fn is_idle(&self) -> bool {
        self.places.available_permits() == self.options.most_requests
    }

    /// Counters in Prometheus' text format.
    pub(super) fn metrics(&self) -> String {
        self.counters.text(self.flow(), self.log.lost())
    }

    /// Answers one question; sends status events to `stream`.
    pub(super) async fn answer(
        &self,
        request: &QueryRequest,
        stream: Option<UnboundedSender<StreamEvent>>,
    ) -> Result<Value, ApiError> {
        let Ok(_place) = self.places.try_acquire() else { return Err(overloaded()) };
        if request.tenant_id.is_some() && !self.flow.description().tenants {
            let message = format!("`tenant_id`: the flow `{}` has no tenants", self.flow.description().name);
            return Err(ApiError::new(StatusCode::BAD_REQUEST, "invalid_request", message));
        }
        let mut session = self.session(request)?;
        let _under_way = self.counters.begin();
        let began = self.clock.now();
        let outcome = self.turn(&mut session, &request.query, stream).await?;
        let took = self.clock.now().saturating_sub(began);
        let reply = match &outcome {
            TurnOutcome::Answered(_) => {
                self.counters.turn("answered", took);
                Ok(reply::body(self.flow, &session.conversation, &outcome))
            }
            TurnOutcome::Failed { kind, message } => {
                self.counters.turn(kind, took);
                let begins = request.session_id.is_none();
                if kind == "unknown_tenant" && begins {
                    return Err(ApiError::of_agent(kind, message, None));
                }
                Err(ApiError::of_agent(kind, message, Some(&session.id)))
            }
        };
        session.save(self.clock.wall()).map_err(SessionError::File)?;
        reply
    }

    /// A file in an answer of a session; without a version, the newest.
    pub(super) fn artifact(&self, session: &str, file: &str, version: Option<u32>) -> Result<Artifact, ApiError> {
        let session = self.sessions.resume(session, None, self.clock.wall())?;
        let known = self.flow.artifacts(&session.conversation).into_iter().filter(|artifact| artifact.filename == file);
        let wanted = known.filter(|artifact| version.is_none_or(|version| artifact.version == version));
        wanted.max_by_key(|artifact| artifact.version).ok_or_else(|| {
            let message = "The session holds no such file, or not that version of it.";
            ApiError::new(StatusCode::NOT_FOUND, "unknown_artifact", message)
        })
    }

    /// Whether answers link to documents of a service that users cannot reach.
    pub(super) fn has_gateway(&self) -> bool {
        self.flow.description().managed_retrieval
    }

    /// A document that an answer links to.
    pub(super) async fn download(&self, resource: &str, field: &str) -> Result<Download, ApiError> {
        let Ok(_place) = self.places.try_acquire() else { return Err(overloaded()) };
        let not_available = || {
            gateway::refused(&ProviderError::Failed { kind: ErrorKind::Server, status: None, message: String::new() })
        };
        let context = self.served.context("download", 0).map_err(|_| not_available())?;
        let managed = context.managed_retrieval.as_ref().ok_or_else(not_available)?;
        managed.download(resource, field).await.result.map_err(|error| gateway::refused(&error))
    }

    fn session(&self, request: &QueryRequest) -> Result<Session, SessionError> {
        let tenant = request.tenant_id.as_deref();
        let mut session = match &request.session_id {
            Some(id) => self.sessions.resume(id, tenant, self.clock.wall())?,
            None => self.sessions.mint(tenant)?,
        };
        if let Some(known) = &request.tool_context {
            if session.conversation.turns > 0 && session.conversation.tool_context != *known {
                return Err(SessionError::OtherContext);
            }
            session.conversation.tool_context.clone_from(known);
        }
        if request.conversation_history.is_some() {
            if session.conversation.turns > 0 {
                return Err(SessionError::HasHistory);
            }
            session.conversation.history = request.history();
        }
        Ok(session)
    }

    /// Runs one turn of the flow.
    async fn turn(
        &self,
        session: &mut Session,
        query: &str,
        stream: Option<UnboundedSender<StreamEvent>>,
    ) -> Result<TurnOutcome, ApiError> {
        let broken = |why: String| {
            let message = format!("The question could not be answered: {why}");
            ApiError { session: Some(session.id.clone()), ..ApiError::of_agent("not_available", &message, None) }
        };
        let context = self.served.context(&session.id, session.conversation.turns);
        let mut context = context.map_err(|why| broken(why.to_string()))?;
        context.keywords = Arc::clone(&lock(&self.keywords));
        let (log, clock) = (Arc::clone(&self.log), Arc::clone(&self.clock));
        context.sessions = Arc::new(session.under_way());
        let context = context.observed_by(Arc::new(Watcher { session: session.id.clone(), log, clock, stream }));
        if session.conversation.turns == 0 {
            context.conversation_started(&session.conversation);
        }
        let done = self.flow.turn(&context, &mut session.conversation, query).await;
        done.map_err(|abort| {
            let why = match abort {
                Abort::Miss(miss) => miss.message,
                Abort::State(error) => error.to_string(),
                Abort::Killed => "the service is ending".to_owned(),
            };
            let message = format!("The question could not be answered: {why}");
            ApiError::of_agent("not_available", &message, None)
        })?;
        let ended = context.take_events().into_iter().rev().find_map(|event| match event.what {
            What::TurnEnded(ended) => Some(ended.outcome),
            _ => None,
        });
        ended.ok_or_else(|| ApiError::of_agent("not_available", "The turn did not end.", Some(&session.id)))
    }

    /// Removes all sessions and learned entries of a service that is an agent under test.
    pub(super) fn reset(&self) -> Result<(), ApiError> {
        self.sessions.clear().map_err(SessionError::File)?;
        *lock(&self.keywords) = Arc::new(KeywordIndex::in_memory());
        Ok(())
    }
}

fn overloaded() -> ApiError {
    let message = "Too many questions are being answered: try again in a moment.";
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message)
}

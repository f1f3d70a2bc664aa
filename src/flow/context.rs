//! What a flow acts through: the model, the tools and the knowledge bases, and the record of what happened.
//!
//! It records and decides nothing. Times are microseconds of the trial's clock since the context was created.

use super::{ConversationState, MemoryStore, Observer, SessionStore, Settings, Status};
use crate::knowledge::{KeywordIndex, KnowledgeBases};
use crate::platform::clock::{BoxFuture, Clock};
use crate::platform::lock::lock;
use crate::provider::faults::Faults;
use crate::provider::{Attempt, ChatModel, ManagedRetrieval, Refusals, SearchService};
use crate::trace::{Event, TurnOutcome, What};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Time that local work takes: measured in a live run, slept in replay.
pub trait Stages: Send + Sync {
    /// Reports that the work named `stage` took `real` on this clock; resolves when its time has been counted.
    fn spent<'a>(&'a self, stage: &'static str, real: Duration) -> BoxFuture<'a, ()>;
}

#[derive(Debug, Default)]
struct Record {
    events: Vec<Event>,
    model_calls: u32,
}

/// Services, settings and record of one trial, as its flow sees them.
pub struct AgentContext {
    pub model: Arc<dyn ChatModel>,
    /// The external search service.
    pub search: Option<Arc<dyn SearchService>>,
    pub knowledge: KnowledgeBases,
    /// The trial's keyword index.
    pub keywords: Arc<KeywordIndex>,
    /// The trial's clock.
    pub clock: Arc<dyn Clock>,
    /// Time that local work takes.
    pub stages: Arc<dyn Stages>,
    pub settings: Arc<Settings>,
    /// The managed retrieval service, for flows that ask one.
    pub managed_retrieval: Option<ManagedRetrieval>,
    /// Stores sessions while a turn is running.
    pub sessions: Arc<dyn SessionStore>,
    /// Declared faults of the trial, which strike tools too.
    pub(crate) faults: Option<Arc<Faults>>,
    /// Requests of the trial that services refused.
    pub(crate) refusals: Option<Arc<Refusals>>,
    observer: Option<Arc<dyn Observer>>,
    started: Duration,
    record: Mutex<Record>,
}

impl std::fmt::Debug for AgentContext {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AgentContext").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl AgentContext {
    /// Creates a context whose time begins now.
    pub fn new(
        model: Arc<dyn ChatModel>,
        search: Option<Arc<dyn SearchService>>,
        knowledge: KnowledgeBases,
        keywords: Arc<KeywordIndex>,
        clock: Arc<dyn Clock>,
        stages: Arc<dyn Stages>,
        settings: Arc<Settings>,
    ) -> Self {
        Self {
            model,
            search,
            knowledge,
            keywords,
            started: clock.now(),
            clock,
            stages,
            settings,
            managed_retrieval: None,
            sessions: Arc::new(MemoryStore::default()),
            faults: None,
            refusals: None,
            observer: None,
            record: Mutex::default(),
        }
    }

    /// Requests sent at `from` or later that a service refused, where no later request succeeded.
    pub(in crate::flow) fn refused_since(&self, from: Duration) -> Vec<Attempt> {
        self.refusals.as_ref().map(|refusals| refusals.since(from)).unwrap_or_default()
    }

    /// Adds an observer.
    #[must_use]
    pub fn observed_by(self, observer: Arc<dyn Observer>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Records that a conversation began.
    pub fn conversation_started(&self, conversation: &ConversationState) {
        let ConversationState { name, session, tenant, .. } = conversation;
        let (name, session, tenant) = (name.clone(), session.clone(), tenant.clone());
        let what = What::ConversationStarted { name, session, tenant };
        self.push(self.clock.now(), conversation.ordinal, conversation.turns, what);
    }

    /// Records one event that began at `at` of the clock.
    pub fn push(&self, at: Duration, conversation: u32, turn: u32, what: What) {
        let at_us = micros(at.saturating_sub(self.started));
        let event = Event { at_us, conversation, turn, what };
        self.notify(&Status::Recorded(&event));
        lock(&self.record).events.push(event);
    }

    /// Notifies the observer, if there is one.
    pub fn notify(&self, status: &Status<'_>) {
        if let Some(observer) = &self.observer {
            observer.notice(status);
        }
    }

    /// Counts the time of local work that began at `began`: measured live, or taken from the recording.
    pub async fn spend(&self, stage: &'static str, began: Duration) {
        let real = self.clock.now().saturating_sub(began);
        self.stages.spent(stage, real).await;
    }

    /// Takes the ordinal of the next completion within the trial.
    pub fn next_model_call(&self) -> u32 {
        let mut record = lock(&self.record);
        let ordinal = record.model_calls;
        record.model_calls += 1;
        ordinal
    }

    /// Adds the body of the reply to the end of the conversation's newest turn.
    pub fn replied(&self, conversation: u32, body: impl FnOnce(&TurnOutcome) -> Value) {
        let mut record = lock(&self.record);
        let mut newest = record.events.iter_mut().rev().filter(|event| event.conversation == conversation);
        let ended =
            newest.find_map(|event| if let What::TurnEnded(ended) = &mut event.what { Some(ended) } else { None });
        if let Some(ended) = ended {
            ended.reply = Some(body(&ended.outcome));
        }
    }

    /// Takes the events out of the context.
    pub fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut lock(&self.record).events)
    }
}

/// Whole microseconds.
pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

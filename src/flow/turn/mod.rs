//! A running turn: the messages to the model, and the record.
//!
//! A flow's loop decides; this module books retries and records. `model` sends requests to the model and reads its
//! replies; `in_flight` records all other calls, and those that are cut off.

mod in_flight;
mod model;

pub(in crate::flow) use in_flight::attempts_of;
pub(in crate::flow) use model::{Completed, Reply, completion_of};

use super::context::micros;
use super::frame::Agent;
use super::machine::Word;
use super::retries::Retries;
use super::{AgentContext, ConversationState, digest};
use crate::provider::chat::{Message, Role};
use crate::trace::{Answer, FedBack, Logged, Moved, TurnEnded, TurnOutcome, What};
use in_flight::InFlight;
use std::collections::BTreeMap;
use std::time::Duration;

/// A running turn of the flow `A`.
pub(in crate::flow) struct Turn<'a, A: Agent> {
    pub(in crate::flow) env: &'a AgentContext,
    pub(in crate::flow) conversation: &'a mut ConversationState,
    pub(in crate::flow) retries: Retries,
    /// The user's words.
    pub(in crate::flow) query: String,
    /// Ordinal of the turn within its conversation.
    pub(in crate::flow) number: u32,
    /// State that outlives the turn in addition to the history.
    pub(in crate::flow) memory: A::Memory,
    /// State of this turn.
    pub(in crate::flow) own: A::Own,
    started: Duration,
    messages: Vec<Message>,
    shown: Vec<String>,
    model_calls: u32,
    minted: u32,
    in_flight: Option<(Duration, InFlight)>,
    /// Tools that failed and have not succeeded since, and why; empty once the trace says that the flow goes on
    /// without the tool.
    failing: BTreeMap<&'static str, String>,
}

impl<'a, A: Agent> Turn<'a, A> {
    /// Begins the next turn of `conversation`, without any messages to the model yet.
    pub(in crate::flow) fn begin(
        env: &'a AgentContext,
        conversation: &'a mut ConversationState,
        query: &str,
        memory: A::Memory,
    ) -> Self {
        let number = conversation.turns;
        conversation.turns += 1;
        let started = env.clock.now();
        env.push(started, conversation.ordinal, number, What::TurnStarted { query: query.to_owned() });
        Self::of(env, conversation, query, memory, (number, started))
    }

    /// A turn that began at `started`, in which nothing has happened yet.
    fn of(
        env: &'a AgentContext,
        conversation: &'a mut ConversationState,
        query: &str,
        memory: A::Memory,
        (number, started): (u32, Duration),
    ) -> Self {
        Self {
            env,
            conversation,
            retries: Retries::default(),
            query: query.to_owned(),
            number,
            memory,
            own: A::Own::default(),
            started,
            messages: Vec::new(),
            shown: Vec::new(),
            model_calls: 0,
            minted: 0,
            in_flight: None,
            failing: BTreeMap::new(),
        }
    }

    /// Sets the messages to the fixed prompt of that name and the history.
    pub(in crate::flow) fn open(&mut self, prompt: &str) {
        self.messages.clear();
        self.shown.clear();
        let settings = &self.env.settings;
        if let Some(system) = settings.prompts.fixed(prompt) {
            self.messages.push(Message::text(Role::System, &system.text));
            self.shown.push(system.digest.clone());
        }
        if !settings.withhold_history {
            self.messages.extend(self.conversation.history.iter().cloned());
            self.shown.extend(self.conversation.history_digests());
        }
    }

    /// Replaces the system prompt by the fixed prompt of that name: the next stage has other instructions and the same
    /// conversation.
    pub(in crate::flow) fn instruct(&mut self, prompt: &str) {
        let Some(system) = self.env.settings.prompts.fixed(prompt) else { return };
        let digest = system.digest.clone();
        let message = Message::text(Role::System, &system.text);
        match (self.messages.first_mut(), self.shown.first_mut()) {
            (Some(first), Some(shown)) if first.role == Role::System => (*first, *shown) = (message, digest),
            _ => {
                self.messages.insert(0, message);
                self.shown.insert(0, digest);
            }
        }
    }

    /// Resumes a turn that a killed process left after `elapsed`, with its numbers of completions and assigned ids. The
    /// start of the turn is already in the record.
    pub(in crate::flow) fn resume(
        env: &'a AgentContext,
        conversation: &'a mut ConversationState,
        query: &str,
        memory: A::Memory,
        (elapsed, model_calls, minted): (Duration, u32, u32),
    ) -> Self {
        let number = conversation.turns.saturating_sub(1);
        let started = env.clock.now().saturating_sub(elapsed);
        Self { model_calls, minted, ..Self::of(env, conversation, query, memory, (number, started)) }
    }

    /// Sets the messages to the fixed prompt of that name, the history if requested, and these messages.
    pub(in crate::flow) fn show(&mut self, prompt: &str, history: bool, messages: Vec<Message>) {
        self.open(prompt);
        if !history {
            let system = self.messages.iter().take_while(|message| message.role == Role::System).count();
            self.messages.truncate(system);
            self.shown.truncate(system);
        }
        for message in messages {
            self.say(message);
        }
    }

    /// All current messages to the model.
    pub(in crate::flow) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Digests of all current messages to the model.
    pub(in crate::flow) fn shown(&self) -> &[String] {
        &self.shown
    }

    /// Number of completions requested so far.
    pub(in crate::flow) fn model_calls(&self) -> u32 {
        self.model_calls
    }

    /// Number of call ids assigned so far.
    pub(in crate::flow) fn minted(&self) -> u32 {
        self.minted
    }

    /// Time since the turn began.
    pub(in crate::flow) fn elapsed(&self) -> Duration {
        self.env.clock.now().saturating_sub(self.started)
    }

    /// Adds an entry to the flow's log.
    pub(in crate::flow) fn log(&self, entry: Logged) {
        self.push(self.env.clock.now(), What::Logged(entry));
    }

    /// Adds one message for the model.
    pub(in crate::flow) fn say(&mut self, message: Message) {
        self.shown.push(digest(message.role, &message.content));
        self.messages.push(message);
    }

    /// Records one event that began at `at`.
    pub(in crate::flow) fn push(&self, at: Duration, what: What) {
        self.env.push(at, self.conversation.ordinal, self.number, what);
    }

    /// Applies an event: moves the turn by the flow's table and records the transition. An event without a row changes
    /// nothing, and its record shows a state outside the machine.
    pub(in crate::flow) fn happen(&mut self, on: A::Event) {
        let state = (A::STATE)(&mut self.own);
        let from = *state;
        *state = A::MACHINE.next(from, on).unwrap_or(from);
        let (from, on, to) = (from.name().to_owned(), on.name().to_owned(), state.name().to_owned());
        self.push(self.env.clock.now(), What::Moved(Moved { from, on, to }));
    }

    /// Ends the turn with this answer.
    pub(in crate::flow) fn answered(&mut self, on: A::Event, answer: Answer) -> TurnOutcome {
        self.happen(on);
        TurnOutcome::Answered(answer)
    }

    /// Records feedback about a missing step, as a retry of the step's tool.
    pub(in crate::flow) fn fed_back(&mut self, step: &str, tool: &str, cause: &str, message: &str) {
        self.retries.reminded(tool, cause);
        let fed_back = FedBack { step: step.into(), tool: tool.into(), cause: cause.into(), message: message.into() };
        self.push(self.env.clock.now(), What::FedBack(fed_back));
    }

    /// Records a failed tool: the flow continues without it, immediately if no try is left, else if the turn ends
    /// without it.
    pub(in crate::flow) fn tool_failed(&mut self, tool: &'static str, reason: &str, for_good: bool) {
        if self.failing.get(tool).is_some_and(String::is_empty) {
            return;
        }
        if for_good {
            self.degraded(tool, reason);
        }
        self.failing.insert(tool, if for_good { String::new() } else { reason.to_owned() });
    }

    /// Records that a tool works again.
    pub(in crate::flow) fn tool_worked(&mut self, tool: &'static str) {
        self.failing.remove(tool);
    }

    fn degraded(&self, tool: &str, reason: &str) {
        self.push(self.env.clock.now(), What::Degraded { without: tool.into(), reason: reason.into() });
    }

    /// Ends the turn: settles open retries, writes the history for later turns, and returns the state to store.
    pub(in crate::flow) fn end(mut self, outcome: TurnOutcome) -> A::Memory {
        for retried in self.retries.settle_all() {
            self.push(self.env.clock.now(), What::Retried(retried));
        }
        let failing = std::mem::take(&mut self.failing);
        for (tool, reason) in failing.iter().filter(|(_, reason)| !reason.is_empty()) {
            self.degraded(tool, reason);
        }
        match A::ids_in_history(&self.memory, &outcome) {
            Some(ids) => self.conversation.remember_with(&self.query, &outcome, &ids),
            None => self.conversation.remember(&self.query, &outcome),
        }
        let now = self.env.clock.now();
        let took_us = micros(now.saturating_sub(self.started));
        let history = self.conversation.history_digests();
        self.push(now, What::TurnEnded(TurnEnded { took_us, outcome, history, reply: None }));
        self.memory
    }
}

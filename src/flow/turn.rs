//! A running turn: the messages to the model, and the record.
//!
//! A flow's loop decides; this module sends requests, reads replies, books retries and records. A call in flight when a
//! turn is cut off is recorded with what is known of it.

use super::context::micros;
use super::frame::{Agent, Cut, Failure, Stop};
use super::machine::Word;
use super::retries::Retries;
use super::tools::{Failure as Failed, Refusal, ToolError, search};
use super::{Abort, AgentContext, ConversationState, Status, digest};
use crate::knowledge::{Found, KnowledgeBase};
use crate::provider::chat::{
    ChatRequest, ChatResponse, Finish, Message, Role, ToolCall, ToolChoice, ToolDefinition, Usage,
};
use crate::provider::{self, ProviderError};
use crate::trace::{
    Answer, Attempt, Completion, FedBack, FlowSearch, Logged, ModelCalled, Moved, Reply as Replied, ToolCalled,
    ToolOutcome, TurnEnded, TurnOutcome, What,
};
use crate::transport::Service;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Outcome of a request to the model.
pub(in crate::flow) enum Reply {
    /// A completion.
    Completion(Completed),
    /// No completion after the last attempt, with the reason.
    Unavailable(String),
}

/// The parts of a completion that a flow uses for decisions.
pub(in crate::flow) struct Completed {
    /// Ordinal within the trial.
    pub(in crate::flow) ordinal: u32,
    /// The text beside the calls.
    pub(in crate::flow) text: String,
    pub(in crate::flow) calls: Vec<ToolCall>,
    /// Finish reason.
    pub(in crate::flow) finish: Finish,
    /// Whether the model refused, by the provider's refusal field.
    pub(in crate::flow) refused: bool,
    /// Tokens counted by the provider.
    pub(in crate::flow) usage: Usage,
}

impl Completed {
    /// Why a text without calls is not an answer, for a flow that answers through a tool; `None` if there are calls.
    pub(in crate::flow) fn free_text(&self) -> Option<&'static str> {
        Some(match self.finish {
            _ if !self.calls.is_empty() => return None,
            _ if self.refused => "refusal",
            Finish::ContentFilter => "content_filter",
            Finish::Length => "cut_off",
            _ if self.text.trim().is_empty() => "empty",
            _ => "free_text",
        })
    }
}

/// A call in flight.
enum InFlight {
    Model(ModelCalled),
    Tool(ToolCalled),
    Search(FlowSearch),
}

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
    /// Tools that failed and have not succeeded since, and why.
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

    /// The limit on completions, if it is reached.
    pub(in crate::flow) fn model_calls_used_up(&self) -> Option<u32> {
        let limit = self.env.settings.limits.model_calls;
        (self.model_calls >= limit).then_some(limit)
    }

    /// Whether the limit allows only one more completion.
    pub(in crate::flow) fn is_last_call(&self) -> bool {
        self.model_calls + 1 >= self.env.settings.limits.model_calls
    }

    /// Calls the model with all tools; ends the turn if no completion is left or the call fails.
    pub(in crate::flow) async fn ask(&mut self, tool_choice: ToolChoice) -> Result<Completed, Stop<A::Event>> {
        if let Some(limit) = self.model_calls_used_up() {
            let message = format!("No answer was ready after {limit} steps of the assistant.");
            return Err(Failure::cut::<A>(Cut::ModelCallsExhausted, message).into());
        }
        let tools = self.env.settings.prompts.tools().clone();
        match self.complete(tools, tool_choice).await? {
            Reply::Completion(completion) => Ok(completion),
            Reply::Unavailable(why) => {
                let message = format!("The language model is not available ({why}). Please try again later.");
                Err(Failure::cut::<A>(Cut::ModelUnavailable, message).into())
            }
        }
    }

    /// Calls the model once with these tools, and records the outcome.
    pub(in crate::flow) async fn complete(
        &mut self,
        tools: Arc<[ToolDefinition]>,
        tool_choice: ToolChoice,
    ) -> Result<Reply, Abort> {
        let settings = &self.env.settings;
        self.model_calls += 1;
        self.retries.asked();
        let request = ChatRequest {
            model: settings.model.name.clone(),
            messages: std::mem::take(&mut self.messages),
            tools,
            tool_choice,
            temperature: settings.model.temperature,
            max_tokens: settings.model.max_tokens,
            seed: settings.seed,
            parallel_calls: settings.model.parallel_calls,
            passthrough: None,
        };
        let ordinal = self.env.next_model_call();
        let (conversation, turn) = (self.conversation.ordinal, self.number);
        self.env.notify(&Status::ModelAsked { conversation, turn, call: ordinal });
        let at = self.env.clock.now();
        let called = ModelCalled {
            call: ordinal,
            state: A::state(&mut self.own).name().to_owned(),
            took_us: 0,
            first_token_us: None,
            shown: self.shown.clone(),
            tool_choice: request.tool_choice.told(&request.tools),
            attempts: Vec::new(),
            reply: Replied::Failure { kind: "timeout".into(), message: RAN_OUT.into() },
        };
        self.in_flight = Some((at, InFlight::Model(called)));
        let attempted = self.env.model.complete(&request).await;
        self.messages = request.messages;
        let Some((_, InFlight::Model(mut called))) = self.in_flight.take() else {
            return Ok(Reply::Unavailable("no call in flight".into()));
        };
        called.took_us = micros(self.env.clock.now().saturating_sub(at));
        called.attempts = attempts_of(&attempted.attempts);
        called.first_token_us = attempted.first_token().map(micros);
        let reply = match attempted.result {
            Err(ProviderError::Miss(miss)) => return Err(Abort::Miss(miss)),
            Err(ProviderError::Failed { kind, status, message }) => {
                called.reply = Replied::Failure { kind: kind.as_str().into(), message };
                let status = status.map_or(String::new(), |status| format!(", HTTP {status}"));
                Reply::Unavailable(format!("{}{status}", kind.as_str()))
            }
            Ok(mut response) => {
                self.mint_call_ids(&mut response.calls);
                called.reply = Replied::Completion(completion_of(&response));
                let (text, finish) = (response.content.clone(), response.finish.clone());
                let (refused, usage) = (response.refusal.is_some(), response.usage);
                Reply::Completion(Completed { ordinal, text, calls: self.hear(response), finish, refused, usage })
            }
        };
        self.push(at, What::ModelCalled(called));
        self.book_transport("model", &attempted.attempts);
        Ok(reply)
    }

    /// Adds the model's message and returns its calls.
    fn hear(&mut self, response: ChatResponse) -> Vec<ToolCall> {
        let content = response.refusal.filter(|_| response.content.is_empty()).unwrap_or(response.content);
        let calls = response.calls.clone();
        let message =
            Message { role: Role::Assistant, content, calls, answers: None, passthrough: response.passthrough };
        // Some providers reject a message that has neither text nor calls.
        if !message.content.is_empty() || !message.calls.is_empty() {
            self.say(message);
        }
        response.calls
    }

    /// Assigns ordinal ids to calls without an id or with a used one, so that each result answers one call.
    fn mint_call_ids(&mut self, calls: &mut [ToolCall]) {
        let mut used: Vec<String> = self.messages.iter().flat_map(|m| m.calls.iter().map(|c| c.id.clone())).collect();
        for call in calls {
            while call.id.is_empty() || used.contains(&call.id) {
                self.minted += 1;
                call.id = format!("call-{}", self.minted);
            }
            used.push(call.id.clone());
        }
    }

    /// Books the repeated HTTP attempts of one request.
    pub(in crate::flow) fn book_transport(&mut self, target: &str, attempts: &[provider::Attempt]) {
        let attempts: Vec<_> =
            attempts.iter().map(|one| (one.cause.map(provider::ErrorKind::as_str), one.cause.is_none())).collect();
        for retried in self.retries.transport(target, &attempts) {
            self.push(self.env.clock.now(), What::Retried(retried));
        }
    }

    /// Searches a base, under its declared name, without a call by the model: at most `top_k` passages, best first.
    /// `None` if the search failed; the failure is recorded.
    #[cfg_attr(not(test), expect(dead_code, reason = "the flows that ship leave the search to the model"))]
    pub(in crate::flow) async fn search(
        &mut self,
        (name, base): (&str, &dyn KnowledgeBase),
        query: &str,
        top_k: usize,
    ) -> Result<Option<Vec<Found>>, Abort> {
        let begun = FlowSearch { query: query.to_owned(), outcome: ran_out(), took_us: 0, attempts: Vec::new() };
        self.in_flight = Some((self.env.clock.now(), InFlight::Search(begun)));
        let (found, outcome, attempts) = match search::passages(self.env, base, query, top_k).await {
            Err(ToolError::Abort(abort)) => return Err(abort),
            Err(ToolError::Refused(Refusal { reason: message, .. })) => {
                (None, ToolOutcome::Failed { message, retryable: false }, Vec::new())
            }
            Err(ToolError::Failed(failure)) => {
                let Failed { message, transient: retryable, sent, .. } = *failure;
                (None, ToolOutcome::Failed { message, retryable }, sent.attempts)
            }
            Ok((found, attempts)) => {
                let hits = found.iter().map(search::hit).collect();
                (Some(found), ToolOutcome::Ok(search::result(query.to_owned(), name.to_owned(), hits)), attempts)
            }
        };
        let Some((at, InFlight::Search(mut search))) = self.in_flight.take() else { return Ok(found) };
        search.took_us = micros(self.env.clock.now().saturating_sub(at));
        search.outcome = outcome;
        search.attempts = attempts_of(&attempts);
        self.push(at, What::Searched(search));
        self.book_transport("knowledge", &attempts);
        Ok(found)
    }

    /// Notes the start of a tool call, for the record of a turn that is cut off during it.
    pub(in crate::flow) fn tool_begins(&mut self, completion: u32, call: &ToolCall, arguments: &Value) {
        let (conversation, turn, tool) = (self.conversation.ordinal, self.number, call.name.as_str());
        self.env.notify(&Status::ToolStarted { conversation, turn, tool, arguments });
        let called = ToolCalled {
            call: completion,
            id: call.id.clone(),
            tool: call.name.clone(),
            arguments: arguments.clone(),
            outcome: ran_out(),
            took_us: 0,
            attempts: Vec::new(),
        };
        self.in_flight = Some((self.env.clock.now(), InFlight::Tool(called)));
    }

    /// Records the end of the started call and adds its result as a message.
    pub(in crate::flow) fn tool_ends(&mut self, outcome: ToolOutcome, told: String, attempts: &[provider::Attempt]) {
        let Some((at, InFlight::Tool(mut called))) = self.in_flight.take() else { return };
        called.took_us = micros(self.env.clock.now().saturating_sub(at));
        called.outcome = outcome;
        called.attempts = attempts_of(attempts);
        self.say(Message::tool_result(called.id.clone(), told));
        self.push(at, What::ToolCalled(called));
    }

    /// Records calls in flight when the turn reaches its time limit.
    pub(in crate::flow) fn cut_off(&mut self) {
        let Some((at, what)) = self.in_flight.take() else { return };
        let took_us = micros(self.env.clock.now().saturating_sub(at));
        let attempts = attempts_of(&self.env.refused_since(at));
        match what {
            InFlight::Model(called) => self.push(at, What::ModelCalled(ModelCalled { took_us, attempts, ..called })),
            InFlight::Tool(called) => self.push(at, What::ToolCalled(ToolCalled { took_us, attempts, ..called })),
            InFlight::Search(search) => self.push(at, What::Searched(FlowSearch { took_us, attempts, ..search })),
        }
    }

    /// Applies an event: moves the turn by the flow's table and records the transition. An event without a row changes
    /// nothing, and its record shows a state outside the machine.
    pub(in crate::flow) fn happen(&mut self, on: A::Event) {
        let state = A::state(&mut self.own);
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
        let told_already = self.failing.get(tool).is_some_and(String::is_empty);
        if for_good && !told_already {
            self.degraded(tool, reason);
            self.failing.insert(tool, String::new());
        } else if !told_already {
            self.failing.insert(tool, reason.to_owned());
        }
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

/// Reason for a call cut off at the turn's time limit.
const RAN_OUT: &str = "the turn's time ran out";

fn ran_out() -> ToolOutcome {
    ToolOutcome::Failed { message: RAN_OUT.into(), retryable: false }
}

pub(in crate::flow) fn attempts_of(attempts: &[provider::Attempt]) -> Vec<Attempt> {
    let told = attempts.iter().map(|one| Attempt {
        // A search by vectors calls two services: the tool itself names the other one.
        service: matches!(one.service, Service::Embeddings | Service::Declared(_))
            .then(|| one.service.as_str().to_owned()),
        status: one.status,
        cause: one.cause.map(|cause| cause.as_str().to_owned()),
        took_us: micros(one.took),
        wait_us: one.wait.map(micros),
        declared_fault: one.declared_fault,
    });
    told.collect()
}

pub(in crate::flow) fn completion_of(response: &ChatResponse) -> Completion {
    Completion {
        model: response.model.clone(),
        text: response.content.clone(),
        refusal: response.refusal.clone(),
        calls: response.calls.iter().map(|call| call.name.clone()).collect(),
        finish: match &response.finish {
            Finish::Stop => "stop".into(),
            Finish::ToolCalls => "tool_calls".into(),
            Finish::Length => "length".into(),
            Finish::ContentFilter => "content_filter".into(),
            Finish::Other(word) => word.clone(),
        },
        input_tokens: response.usage.input,
        cached_tokens: response.usage.cached,
        output_tokens: response.usage.output,
    }
}

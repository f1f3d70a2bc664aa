//! One turn under way: what the model is shown, and what goes into the record.

use super::machine;
use super::policy::{Progress, Step};
use crate::chat::{ChatRequest, ChatResponse, Finish, Message, Role, ToolCall};
use crate::flow::context::micros;
use crate::flow::retries::Retries;
use crate::flow::{Abort, AgentContext, ConversationState, digest, prompts};
use crate::provider::{self, ProviderError};
use crate::trace::{
    Attempt, Completion, FedBack, ModelCalled, Moved, Reply as Replied, ToolCalled, ToolOutcome, TurnEnded,
    TurnOutcome, What,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// What the model came back with.
pub(super) enum Reply {
    Completion(Answered),
    /// Nothing, after the last attempt; why.
    Unavailable(String),
}

/// A completion, as far as the flow decides by it.
pub(super) struct Answered {
    /// Ordinal within the trial.
    pub(super) ordinal: u32,
    pub(super) calls: Vec<ToolCall>,
    /// No tool was called; why the text counts as none.
    pub(super) free_text: Option<&'static str>,
}

/// Something that was begun and has not come back.
enum InFlight {
    Model(ModelCalled),
    Tool(ToolCalled),
}

pub(super) struct Turn<'a> {
    pub(super) env: &'a AgentContext,
    pub(super) conversation: &'a mut ConversationState,
    pub(super) progress: Progress,
    pub(super) retries: Retries,
    number: u32,
    started: Duration,
    messages: Vec<Message>,
    shown: Vec<String>,
    model_calls: u32,
    minted: u32,
    in_flight: Option<(Duration, InFlight)>,
    /// Tools that failed and have not worked since, and why.
    failing: BTreeMap<&'static str, String>,
}

impl<'a> Turn<'a> {
    /// Begins the next turn of `talk`.
    pub(super) fn begin(env: &'a AgentContext, conversation: &'a mut ConversationState, query: &str) -> Self {
        let number = conversation.turns;
        conversation.turns += 1;
        let started = env.clock.now();
        env.push(started, conversation.ordinal, number, What::TurnStarted { query: query.to_owned() });
        let settings = &env.settings;
        let mut messages = vec![Message::text(Role::System, settings.prompts.system())];
        let mut shown = vec![settings.prompts.system_digest().to_owned()];
        if !settings.withhold_history {
            messages.extend(conversation.history.iter().cloned());
            shown.extend(conversation.history_digests());
        }
        let mut turn = Self {
            env,
            conversation,
            progress: Progress::default(),
            retries: Retries::default(),
            number,
            started,
            messages,
            shown,
            model_calls: 0,
            minted: 0,
            in_flight: None,
            failing: BTreeMap::new(),
        };
        turn.say(Message::text(Role::User, query));
        turn
    }

    /// Records one event that began at `at`.
    pub(super) fn push(&self, at: Duration, what: What) {
        self.env.push(at, self.conversation.ordinal, self.number, what);
    }

    fn say(&mut self, message: Message) {
        self.shown.push(digest(message.role, &message.content));
        self.messages.push(message);
    }

    /// The bound on completions, once it is reached.
    pub(super) fn model_calls_used_up(&self) -> Option<u32> {
        let limit = self.env.settings.limits.model_calls;
        (self.model_calls >= limit).then_some(limit)
    }

    /// Asks the model once and records what came of it.
    pub(super) async fn ask_model(&mut self) -> Result<Reply, Abort> {
        let settings = &self.env.settings;
        self.model_calls += 1;
        self.progress.answers_read = !self.conversation.received.is_empty();
        let request = ChatRequest {
            model: settings.model.name.clone(),
            messages: std::mem::take(&mut self.messages),
            tools: std::sync::Arc::clone(settings.prompts.tools()),
            tool_choice: self
                .progress
                .tool_choice(settings.enforcement, self.model_calls >= settings.limits.model_calls),
            temperature: settings.model.temperature,
            max_tokens: settings.model.max_tokens,
            seed: settings.seed,
            parallel_calls: settings.model.parallel_calls,
            passthrough: None,
        };
        let ordinal = self.env.next_model_call();
        let at = self.env.clock.now();
        let called = ModelCalled {
            call: ordinal,
            state: self.progress.state().to_owned(),
            took_us: 0,
            first_token_us: None,
            shown: self.shown.clone(),
            tool_choice: request.tool_choice.to_string(),
            attempts: Vec::new(),
            reply: Replied::Failure { kind: "timeout".into(), message: "the turn's time ran out".into() },
        };
        self.in_flight = Some((at, InFlight::Model(called)));
        let attempted = self.env.model.complete(&request).await;
        self.messages = request.messages;
        let Some((_, InFlight::Model(mut called))) = self.in_flight.take() else {
            return Ok(Reply::Unavailable("it answered nobody".into()));
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
                let free_text = response.calls.is_empty().then(|| why_text_only(&response));
                Reply::Completion(Answered { ordinal, calls: self.hear(response), free_text })
            }
        };
        self.push(at, What::ModelCalled(called));
        self.book_transport("model", &attempted.attempts);
        Ok(reply)
    }

    /// Puts the model's message among the messages and gives back its calls.
    fn hear(&mut self, response: ChatResponse) -> Vec<ToolCall> {
        let content = response.refusal.filter(|_| response.content.is_empty()).unwrap_or(response.content);
        let calls = response.calls.clone();
        let message =
            Message { role: Role::Assistant, content, calls, answers: None, passthrough: response.passthrough };
        // A message with neither text nor calls is one that some providers refuse to read back.
        if !message.content.is_empty() || !message.calls.is_empty() {
            self.say(message);
        }
        response.calls
    }

    /// Gives calls without an id, or with one that was used before, an ordinal one: each result answers one call.
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
    pub(super) fn book_transport(&mut self, target: &str, attempts: &[provider::Attempt]) {
        let attempts: Vec<_> =
            attempts.iter().map(|one| (one.cause.map(provider::ErrorKind::as_str), one.cause.is_none())).collect();
        for retried in self.retries.transport(target, &attempts) {
            self.push(self.env.clock.now(), What::Retried(retried));
        }
    }

    /// Notes a tool call as begun, for the record of a turn that is cut off meanwhile.
    pub(super) fn tool_begins(&mut self, at: Duration, completion: u32, call: &ToolCall, arguments: &Value) {
        let called = ToolCalled {
            call: completion,
            id: call.id.clone(),
            tool: call.name.clone(),
            arguments: arguments.clone(),
            outcome: ToolOutcome::Failed { message: "the turn's time ran out".into(), retryable: false },
            took_us: 0,
            attempts: Vec::new(),
        };
        self.in_flight = Some((at, InFlight::Tool(called)));
    }

    /// Records the call that was begun, and shows the model its result.
    pub(super) fn tool_ends(&mut self, outcome: ToolOutcome, told: String, attempts: &[provider::Attempt]) {
        let Some((at, InFlight::Tool(mut called))) = self.in_flight.take() else { return };
        called.took_us = micros(self.env.clock.now().saturating_sub(at));
        called.outcome = outcome;
        called.attempts = attempts_of(attempts);
        self.say(Message::tool_result(called.id.clone(), told));
        self.push(at, What::ToolCalled(called));
    }

    /// Records what was under way when the turn's time ran out.
    pub(super) fn cut_off(&mut self) {
        let Some((at, what)) = self.in_flight.take() else { return };
        let took_us = micros(self.env.clock.now().saturating_sub(at));
        match what {
            InFlight::Model(called) => self.push(at, What::ModelCalled(ModelCalled { took_us, ..called })),
            InFlight::Tool(called) => self.push(at, What::ToolCalled(ToolCalled { took_us, ..called })),
        }
    }

    /// Records a transition from `from` to where the turn is now.
    pub(super) fn moved(&self, from: &str, on: &str) {
        let moved = Moved { from: from.into(), on: on.into(), to: self.progress.state().into() };
        self.push(self.env.clock.now(), What::Moved(moved));
    }

    /// Records the last transition.
    pub(super) fn moved_to_end(&self, on: &str, to: &str) {
        let moved = Moved { from: self.progress.state().into(), on: on.into(), to: to.into() };
        self.push(self.env.clock.now(), What::Moved(moved));
    }

    /// Records the last transition of a turn that fails.
    pub(super) fn failed(&self, on: &str, kind: &str, message: String) -> TurnOutcome {
        self.moved_to_end(on, machine::FAILED);
        TurnOutcome::Failed { kind: kind.into(), message }
    }

    /// Tells the model which step is missing. As a system message: no user can write one.
    pub(super) fn feed_back(&mut self, step: Step, cause: &'static str, reason: &str) {
        let from = self.progress.state();
        let (template, on) = match step {
            Step::Knowledge => (prompts::MISSING_CALL, "knowledge_missing"),
            Step::Keywords => (prompts::MISSING_CALL, "keywords_missing"),
            Step::Response => (prompts::RESPONSE_RETRY, "response_missing"),
        };
        match step {
            Step::Knowledge => self.progress.knowledge_reminded = true,
            Step::Keywords => self.progress.keywords_reminded = true,
            Step::Response => self.progress.response_reminded = true,
        }
        let message = self.env.settings.prompts.feedback(template, step.tool(), step.name(), reason);
        self.retries.reminded(step.tool(), cause);
        let (name, tool) = (step.name().to_owned(), step.tool().to_owned());
        let fed_back = FedBack { step: name, tool, cause: cause.into(), message: message.clone() };
        self.push(self.env.clock.now(), What::FedBack(fed_back));
        self.moved(from, on);
        self.say(Message::text(Role::System, message));
    }

    /// A tool failed: the flow goes on without it, at once when no try is left, else when the turn ends without it.
    pub(super) fn tool_failed(&mut self, tool: &'static str, reason: &str, for_good: bool) {
        let told_already = self.failing.get(tool).is_some_and(String::is_empty);
        if for_good && !told_already {
            self.degraded(tool, reason);
            self.failing.insert(tool, String::new());
        } else if !told_already {
            self.failing.insert(tool, reason.to_owned());
        }
    }

    /// A tool works again.
    pub(super) fn tool_worked(&mut self, tool: &'static str) {
        self.failing.remove(tool);
    }

    fn degraded(&self, tool: &str, reason: &str) {
        self.push(self.env.clock.now(), What::Degraded { without: tool.into(), reason: reason.into() });
    }

    /// Ends the turn: books what is open, and writes the history that later turns are shown.
    pub(super) fn end(mut self, query: &str, outcome: TurnOutcome) {
        for retried in self.retries.settle_all() {
            self.push(self.env.clock.now(), What::Retried(retried));
        }
        let failing = std::mem::take(&mut self.failing);
        for (tool, reason) in failing.iter().filter(|(_, reason)| !reason.is_empty()) {
            self.degraded(tool, reason);
        }
        self.conversation.remember(query, &outcome);
        let now = self.env.clock.now();
        let took_us = micros(now.saturating_sub(self.started));
        self.push(now, What::TurnEnded(TurnEnded { took_us, outcome, history: self.conversation.history_digests() }));
    }
}

pub(in crate::flow) fn attempts_of(attempts: &[provider::Attempt]) -> Vec<Attempt> {
    let told = attempts.iter().map(|one| Attempt {
        status: one.status,
        cause: one.cause.map(|cause| cause.as_str().to_owned()),
        took_us: micros(one.took),
        wait_us: one.wait.map(micros),
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

/// Why a completion without calls counts as none.
fn why_text_only(response: &ChatResponse) -> &'static str {
    match response.finish {
        _ if response.refusal.is_some() => "refusal",
        Finish::ContentFilter => "content_filter",
        Finish::Length => "cut_off",
        _ if response.content.trim().is_empty() => "empty",
        _ => "free_text",
    }
}

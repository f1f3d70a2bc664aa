//! Builds the events of one turn from its exchanges.
//!
//! Model calls are exchanges with the model; a failed one that is sent again unchanged is one call with several
//! attempts. A tool call is read from a completion, its result from a later request of the same turn; an exchange with
//! the search service belongs to the pending call of the external search, a call of an MCP server's tool to the pending
//! call of that tool. A message that only the agent can have
//! written, after a completion without a call or after a failed call, is feedback. Exchanges with the search service
//! between two model calls are sorted by their text, so that parallel calls give one order.

mod joins;
mod spans;

pub(super) use spans::{OF_NO_CONVERSATION, Shown};

use super::evidence::{self, Retrieved};
use super::groups::{Group, grouped, in_order};
use super::shown::{continued, digests};
use super::target::Reply;
use super::{Trouble, UNASKED, Words, decoder, micros};
use crate::flow::retries::Retries;
use crate::flow::turn::{attempts_of, completion_of};
use crate::provider::chat::{ChatRequest, Message, Role};
use crate::provider::mcp::{self, Ran};
use crate::provider::observed::{self, Asks};
use crate::provider::{Attempt, ErrorKind, SearchAnswer};
use crate::trace::{
    self, CitedPage, ExternalResult, FedBack, FlowSearch, ModelCalled, Requested, Roles, SearchResult, ToolCalled,
    ToolOutcome, ToolResult, TurnOutcome, What,
};
use crate::transport::{Miss, Passed, Service, TransportError};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// State of every completion: an external agent declares none.
const STATE: &str = "unknown";
/// Reason for an outcome that the traffic does not show.
const UNSEEN: &str = "no later message of the agent's shows a result of this call, so whether it ran is unknown";

/// The same of vectors that the agent asked for by itself.
const UNSEEN_VECTORS: &str = "the agent asked for vectors by itself, and what it found with them is not shown";

/// One turn in the telling.
pub(super) struct TraceBuilder<'a> {
    roles: &'a Roles,
    words: &'a dyn Words,
    /// Texts of earlier turns and of this one, for [`ModelCalled::shown`].
    known: &'a [(Role, String)],
    pub(super) events: Vec<(Duration, What)>,
    retries: Retries,
    at: Duration,
    completions: u32,
    waiting: Vec<Waiting>,
    /// Messages of the last request.
    before: Vec<Message>,
    /// Mistake of the model since its last request; a message of the agent counts as feedback only after one.
    slipped: Option<&'static str>,
    pub(super) response: Option<Value>,
    externals: u32,
    /// Id of the last external result of the turn.
    last_external: Option<String>,
    /// Tools that returned a result in this turn.
    pub(super) worked: BTreeSet<String>,
    /// Tools that requests to the model offered, in order; `None` before the first request.
    pub(super) offered: Option<Vec<String>>,
    /// JSON pointer of the sources in the reply, if the scenario names one.
    pub(super) sources: Option<&'a str>,
    /// Texts other than results that were sent to the model while a search was pending: they may contain passages.
    told: Vec<String>,
    /// Whether the last request for vectors that was told failed.
    without_vectors: bool,
    /// Whether something of what the agent retrieved in this turn is not shown.
    pub(super) hidden_retrieval: bool,
    /// What spans say of its calls and searches.
    pub(super) shown: Shown,
}

/// A call whose result has not been seen yet.
struct Waiting {
    at: Duration,
    completion: u32,
    id: String,
    tool: String,
    arguments: Value,
    attempts: Vec<Attempt>,
    found: Option<SearchAnswer>,
    /// What an MCP server said of it.
    ran: Option<Ran>,
}

impl<'a> TraceBuilder<'a> {
    /// Starts before the first exchange of a turn; `completions` is the ordinal of its first completion.
    pub(super) fn new(roles: &'a Roles, words: &'a dyn Words, known: &'a [(Role, String)], completions: u32) -> Self {
        Self {
            roles,
            words,
            known,
            events: Vec::new(),
            retries: Retries::default(),
            at: Duration::ZERO,
            completions,
            waiting: Vec::new(),
            before: Vec::new(),
            slipped: None,
            response: None,
            externals: 0,
            last_external: None,
            worked: BTreeSet::new(),
            offered: None,
            sources: None,
            told: Vec::new(),
            without_vectors: false,
            hidden_retrieval: false,
            shown: Shown::default(),
        }
    }

    /// Sets the place of the sources in replies.
    pub(super) fn citing(self, sources: Option<&'a str>) -> Self {
        Self { sources, ..self }
    }

    /// Adds the turn's exchanges; returns the first that no recording holds.
    pub(super) fn hear(&mut self, passed: Vec<Passed>) -> Option<Box<Miss>> {
        let miss = passed.iter().find_map(|one| match &one.result {
            Err(TransportError::Miss(miss)) => Some(miss.clone()),
            _ => None,
        });
        // A request that no dialect reads, such as a list of models, is no model call.
        let read = |one: &Passed| {
            observed::asks(&one.request) != Asks::Aside && !matches!(one.result, Err(TransportError::Miss(_)))
        };
        let answered = passed.into_iter().filter(read);
        for group in grouped(in_order(answered.collect()), self.words) {
            match observed::asks(&group.request) {
                Asks::Completion => self.model(&group),
                Asks::Vectors => self.vectors(&group),
                Asks::Declared => self.declared(&group),
                Asks::ToolCall => self.tool(&group),
                Asks::Search | Asks::Aside => self.search(&group),
            }
        }
        miss
    }

    /// The ordinal of the next completion.
    pub(super) fn completions(&self) -> u32 {
        self.completions
    }

    /// Tools that the turn's requests to the model offered, in order; `None` without a request.
    pub(super) fn offered(&self) -> Option<&[String]> {
        self.offered.as_deref()
    }

    pub(super) fn role(&self, tool: &str) -> trace::Role {
        if tool == UNASKED { trace::Role::External } else { self.roles.get(tool).copied().unwrap_or_default() }
    }

    /// Tools that `text` names: first those with a role, in the order of a turn, then the other offered ones.
    fn named(&self, text: &str) -> Vec<&str> {
        let with_role =
            trace::Role::GIVEN.into_iter().flat_map(|role| self.roles.iter().filter(move |(_, own)| **own == role));
        let others = self.offered.iter().flatten().filter(|tool| !self.roles.contains_key(*tool));
        let all = with_role.map(|(tool, _)| tool).chain(others);
        all.map(String::as_str).filter(|tool| text.contains(tool)).collect()
    }

    /// The events, each with the time since the turn began.
    pub(super) fn into_events(self) -> Vec<(Duration, What)> {
        self.events
    }

    /// Ends the turn with the agent's reply and closes open calls.
    pub(super) fn end(&mut self, reply: Reply) -> Result<TurnOutcome, Trouble> {
        let answered = matches!(reply, Reply::Answer { .. });
        let mut retrieved = match &reply {
            Reply::Answer { body, .. } => evidence::retrieved(self.replied(body), &self.told),
            Reply::Failed(..) | Reply::Trouble(_) => evidence::retrieved(None, &self.told),
        };
        for call in std::mem::take(&mut self.waiting) {
            let role = self.role(&call.tool);
            // If the passages of several searches appear together, at least one ran: it is recorded for the first.
            let shown = if role == trace::Role::Knowledge { retrieved.take() } else { None };
            let outcome = match (&call.found, shown) {
                (None, None) if matches!(call.ran, Some(Ran::Done(_) | Ran::Failed(_))) => self.ran(&call),
                (Some(found), _) => ToolOutcome::Ok(self.external(&call, &Value::Null, found.clone())),
                (None, _) if role == trace::Role::Respond && answered => ToolOutcome::Ok(ToolResult::Responded),
                (None, Some(Retrieved::Shown(passages))) => self.outcome(&call, passages),
                (None, Some(Retrieved::Replied(documents))) => ToolOutcome::Ok(ToolResult::other(documents)),
                (None, None) => ToolOutcome::Unseen { reason: UNSEEN.to_owned() },
            };
            self.called(call, outcome);
        }
        for retried in self.retries.settle_all() {
            self.push(What::Retried(retried));
        }
        Ok(match reply {
            Reply::Answer { text, body } => TurnOutcome::Answered(self.answer(text, &body)),
            Reply::Failed(kind, message, _) => TurnOutcome::Failed { kind: kind.to_owned(), message },
            Reply::Trouble(trouble) => return Err(trouble),
        })
    }

    fn push(&mut self, what: What) {
        self.events.push((self.at, what));
    }

    fn model(&mut self, group: &Group) {
        let heard: Vec<_> = group.passed.iter().map(|one| observed::completion(&group.request, &one.result)).collect();
        let Some(last) = heard.last() else { return };
        let asked = observed::asked(&group.request);
        if let Some(asked) = &asked {
            let known = self.offered.get_or_insert_default();
            for tool in asked.tools.iter() {
                if !known.contains(&tool.name) {
                    known.push(tool.name.clone());
                }
            }
            self.results(asked);
            if self.waiting.iter().any(|call| self.role(&call.tool) == trace::Role::Knowledge) {
                let new = |message: &&Message| {
                    matches!(message.role, Role::System | Role::User)
                        && !self.before.iter().any(|earlier| earlier.content == message.content)
                };
                self.told.extend(asked.messages.iter().filter(new).map(|message| message.content.clone()));
            }
            self.feedback(asked);
            self.retries.asked();
            self.before.clone_from(&asked.messages);
        }
        let attempts: Vec<Attempt> = heard.iter().map(|one| one.attempt.clone()).collect();
        let took: Duration = attempts.iter().map(|one| one.took).sum();
        let earlier: Duration = attempts.iter().rev().skip(1).map(|one| one.took).sum();
        let reply = match &last.result {
            Ok(response) => trace::Reply::Completion(completion_of(response)),
            Err(failure) => {
                trace::Reply::Failure { kind: failure.kind.as_str().to_owned(), message: failure.message.clone() }
            }
        };
        let ordinal = self.completions;
        self.completions += 1;
        let service = group.request.service;
        self.push(What::ModelCalled(ModelCalled {
            call: ordinal,
            service: (service != Service::Model).then(|| service.as_str().to_owned()),
            state: STATE.to_owned(),
            took_us: micros(took),
            first_token_us: last.attempt.first_token.map(|first| micros(earlier + first)),
            shown: asked.iter().flat_map(|asked| &asked.messages).flat_map(|one| digests(self.known, one)).collect(),
            tool_choice: asked
                .as_ref()
                .map_or_else(|| "unknown".to_owned(), |asked| asked.tool_choice.for_trace(&asked.tools)),
            attempts: attempts_of(&attempts),
            reply,
        }));
        self.at += took;
        self.transport(service.as_str(), &attempts);
        let Ok(response) = &last.result else { return };
        if response.calls.is_empty() {
            self.slipped = Some(if response.content.trim().is_empty() { "missing_call" } else { "free_text" });
        }
        self.waiting.extend(response.calls.iter().map(|call| Waiting {
            at: self.at,
            completion: ordinal,
            id: call.id.clone(),
            tool: call.name.clone(),
            arguments: decoder::document(&call.arguments),
            attempts: Vec::new(),
            found: None,
            ran: None,
        }));
    }

    /// Reads the results of pending calls from a request.
    fn results(&mut self, asked: &ChatRequest) {
        for message in asked.messages.iter().filter(|message| message.role == Role::Tool) {
            let place = self.waiting.iter().position(|call| Some(&call.id) == message.answers.as_ref());
            let Some(place) = place else { continue };
            let call = self.waiting.remove(place);
            let result = decoder::document(&message.content);
            // The server knows whether its tool failed, and where its passages come from; the words of an agent may hide it.
            let is_plain = self.role(&call.tool) == trace::Role::Knowledge && decoder::passages(&result).is_none();
            let outcome = match &call.ran {
                Some(Ran::Failed(_)) => self.ran(&call),
                Some(Ran::Done(_)) if is_plain => self.ran(&call),
                _ => self.outcome(&call, result),
            };
            self.called(call, outcome);
        }
    }

    fn outcome(&mut self, call: &Waiting, result: Value) -> ToolOutcome {
        if let Some((message, retryable)) = decoder::error(&result) {
            return ToolOutcome::Failed { message, retryable };
        }
        ToolOutcome::Ok(match self.role(&call.tool) {
            trace::Role::Knowledge => match decoder::passages(&result) {
                None => ToolResult::other(result),
                Some(hits) => {
                    let kb_id = call.arguments.get("kb_id").and_then(Value::as_str).unwrap_or_default().to_owned();
                    let without_learned = hits.iter().map(|hit| hit.id.clone()).collect();
                    let query = decoder::query(&call.arguments);
                    ToolResult::Search(SearchResult { query, kb_id, hits, without_learned, managed: None })
                }
            },
            trace::Role::External => match &call.found {
                Some(found) => self.external(call, &result, found.clone()),
                None => ToolResult::other(result),
            },
            trace::Role::Index => {
                let mut entry = decoder::indexed(&call.arguments, &result);
                if entry.result.is_empty() {
                    entry.result = self.last_external.clone().unwrap_or_default();
                }
                ToolResult::Indexed(entry)
            }
            trace::Role::Respond => ToolResult::Responded,
            trace::Role::None => ToolResult::other(result),
        })
    }

    fn external(&mut self, call: &Waiting, result: &Value, found: SearchAnswer) -> ToolResult {
        self.externals += 1;
        let id = decoder::result_id(result).unwrap_or_else(|| format!("result-{}", self.externals));
        self.last_external = Some(id.clone());
        ToolResult::External(ExternalResult {
            result: id,
            query: decoder::query(&call.arguments),
            answer: found.text,
            citations: found.citations.into_iter().map(|one| CitedPage { title: one.title, url: one.url }).collect(),
            model: found.model,
            input_tokens: found.usage.input,
            cached_tokens: found.usage.cached,
            output_tokens: found.usage.output,
        })
    }

    /// Records a call whose outcome is known, and books it if it is a retry.
    fn called(&mut self, call: Waiting, outcome: ToolOutcome) {
        let worked = matches!(outcome, ToolOutcome::Ok(_));
        let tool = call.tool.clone();
        let (role, unseen) = (self.role(&tool), outcome.is_unseen());
        let responds = role == trace::Role::Respond;
        let retrieves = matches!(role, trace::Role::Knowledge | trace::Role::External);
        let hidden = matches!(&outcome, ToolOutcome::Ok(ToolResult::Other(_)) | ToolOutcome::Unseen { .. });
        self.hidden_retrieval |= retrieves && hidden;
        if worked {
            if responds {
                self.response = Some(call.arguments.clone());
            }
            self.worked.insert(tool.clone());
        } else if !unseen {
            self.slipped = Some("invalid_arguments");
        }
        let took: Duration = call.attempts.iter().map(|one| one.took).sum();
        let called = ToolCalled {
            call: call.completion,
            id: call.id,
            tool: call.tool,
            arguments: call.arguments,
            outcome,
            took_us: micros(took),
            attempts: attempts_of(&call.attempts),
        };
        self.events.push((call.at, What::ToolCalled(called)));
        let mut by_service: BTreeMap<&'static str, Vec<Attempt>> = BTreeMap::new();
        for attempt in call.attempts {
            by_service.entry(attempt.service.as_str()).or_default().push(attempt);
        }
        for (target, attempts) in by_service {
            self.transport(target, &attempts);
        }
        let booked = if unseen {
            self.retries.unseen(&tool);
            None
        } else if responds {
            self.retries.settle(&tool, worked)
        } else {
            self.retries.called(&tool, (!worked).then_some("tool_failed"))
        };
        if let Some(retried) = booked {
            self.push(What::Retried(retried));
        }
        if responds && !worked && !unseen {
            self.retries.reminded(&tool, "invalid_arguments");
        }
    }

    /// Finds feedback after a mistake: messages that continue the conversation and can only be the agent's.
    fn feedback(&mut self, asked: &ChatRequest) {
        let slipped = self.slipped.take();
        let Some((cause, told)) = slipped.zip(continued(&self.before, &asked.messages)) else { return };
        for message in told.iter().filter(|message| matches!(message.role, Role::User | Role::System)) {
            // If several tools are named, takes the one that has not been called yet.
            let named = self.named(&message.content);
            let due = named.iter().find(|tool| !self.worked.contains(**tool));
            let tool = due.or(named.last()).map(|tool| (*tool).to_owned()).unwrap_or_default();
            let step = match self.role(&tool) {
                trace::Role::Knowledge => "knowledge_base",
                trace::Role::External => "external",
                trace::Role::Index => "keywords",
                trace::Role::Respond => "response",
                trace::Role::None => "unknown",
            };
            if !tool.is_empty() {
                self.retries.reminded(&tool, cause);
            }
            let (step, cause) = (step.to_owned(), cause.to_owned());
            self.push(What::FedBack(FedBack { step, tool, cause, message: message.content.clone() }));
        }
    }

    fn search(&mut self, group: &Group) {
        let heard: Vec<_> =
            group.passed.iter().map(|one| observed::search_answer(&group.request, &one.result)).collect();
        let Some(last) = heard.last() else { return };
        let attempts: Vec<Attempt> = heard.iter().map(|one| one.attempt.clone()).collect();
        let at = self.at;
        self.at += attempts.iter().map(|one| one.took).sum::<Duration>();
        let found = last.result.as_ref().ok().cloned();
        let question = observed::question(&group.request);
        let free = |call: &Waiting| self.role(&call.tool) == trace::Role::External && call.attempts.is_empty();
        let asks = |call: &Waiting| question.contains(&decoder::query(&call.arguments));
        let place = self.waiting.iter().position(|call| free(call) && asks(call));
        let place = place.or_else(|| self.waiting.iter().position(free));
        if let Some(call) = place.and_then(|place| self.waiting.get_mut(place)) {
            (call.attempts, call.found) = (attempts, found);
            return;
        }
        // The agent searches by itself, without a call of the model.
        let own = self.roles.iter().find(|(_, role)| **role == trace::Role::External);
        let (id, tool) = (String::new(), own.map_or(UNASKED, |(tool, _)| tool).to_owned());
        let (completion, arguments) = (self.completions.saturating_sub(1), serde_json::json!({ "query": question }));
        let call = Waiting { at, completion, id, tool, arguments, attempts, found: None, ran: None };
        let outcome = match (found, &last.result) {
            (Some(found), _) => ToolOutcome::Ok(self.external(&call, &Value::Null, found)),
            (None, Err(failure)) => {
                let retryable = failure.kind.is_transient();
                ToolOutcome::Failed { message: failure.message.clone(), retryable }
            }
            (None, Ok(_)) => return,
        };
        self.called(call, outcome);
    }

    /// Calls of an MCP server's tool belong to the call that the model wants, or to the agent itself.
    fn tool(&mut self, group: &Group) {
        let Some((tool, arguments)) = mcp::called(&group.request.body) else { return };
        let heard: Vec<_> = group.passed.iter().map(|one| observed::tool_answer(&group.request, &one.result)).collect();
        let attempts: Vec<Attempt> = heard.iter().map(|one| one.attempt.clone()).collect();
        let Some(last) = heard.into_iter().last() else { return };
        let ran = last.result.unwrap_or_else(|failure| Ran::Failed(failure.message));
        let at = self.at;
        self.at += attempts.iter().map(|one| one.took).sum::<Duration>();
        let free = |call: &Waiting| is_tool(&call.tool, tool) && !matches!(call.ran, Some(Ran::Done(_)));
        let place = self.waiting.iter().position(|call| free(call) && call.arguments == arguments);
        let place = place.or_else(|| self.waiting.iter().position(free));
        if let Some(call) = place.and_then(|place| self.waiting.get_mut(place)) {
            call.attempts.extend(attempts);
            call.ran = Some(ran);
            return;
        }
        if ran == Ran::Asks {
            return;
        }
        let (id, completion, tool) = (String::new(), self.completions.saturating_sub(1), tool.to_owned());
        let call = Waiting { at, completion, id, tool, arguments, attempts, found: None, ran: Some(ran) };
        let outcome = self.ran(&call);
        self.called(call, outcome);
    }

    /// The outcome of a call by what its MCP server said.
    fn ran(&mut self, call: &Waiting) -> ToolOutcome {
        match &call.ran {
            Some(Ran::Done(result)) => {
                let result = self.words.body(result);
                self.outcome(call, result)
            }
            Some(Ran::Failed(why)) => ToolOutcome::Failed { message: self.words.text(why), retryable: true },
            Some(Ran::Asks) | None => ToolOutcome::Unseen { reason: UNSEEN.to_owned() },
        }
    }

    /// Adds attempts to the pending call that they are probably made for: a search, or a call of a tool without a role.
    /// Returns them and the time at which they began if there is none.
    fn within_call(&mut self, attempts: Vec<Attempt>) -> Option<(Duration, Vec<Attempt>)> {
        let at = self.at;
        self.at += attempts.iter().map(|one| one.took).sum::<Duration>();
        let of_role = |role| self.waiting.iter().position(|call| self.role(&call.tool) == role);
        let place = of_role(trace::Role::Knowledge).or_else(|| of_role(trace::Role::None));
        match place.and_then(|place| self.waiting.get_mut(place)) {
            Some(call) => {
                call.attempts.extend(attempts);
                None
            }
            None => Some((at, attempts)),
        }
    }

    /// Vectors are asked for within a search that the model wants, or by the agent itself. What it does with the latter is
    /// not shown: only that they did not come, or came after all, is told.
    fn vectors(&mut self, group: &Group) {
        let heard: Vec<_> = group.passed.iter().map(|one| observed::vectors(&group.request, &one.result)).collect();
        let Some((at, attempts)) = self.within_call(heard.iter().map(|one| one.attempt.clone()).collect()) else {
            return;
        };
        let Some(last) = heard.last() else { return };
        let failed = attempts.iter().any(|one| one.cause.is_some());
        if !failed && !self.without_vectors {
            return;
        }
        self.without_vectors = last.result.is_err();
        let outcome = match &last.result {
            Ok(()) => ToolOutcome::Unseen { reason: UNSEEN_VECTORS.to_owned() },
            Err(failure) => {
                ToolOutcome::Failed { message: failure.message.clone(), retryable: failure.kind.is_transient() }
            }
        };
        let query = observed::embedded_text(&group.request);
        let took_us = attempts.iter().map(|one| micros(one.took)).sum();
        let search = FlowSearch { query, outcome, took_us, attempts: attempts_of(&attempts) };
        self.events.push((at, What::Searched(search)));
        self.transport(group.request.service.as_str(), &attempts);
    }

    /// Requests to a declared service belong to the call that the model wants, or to the agent itself.
    fn declared(&mut self, group: &Group) {
        let request = &group.request;
        let heard: Vec<_> = group.passed.iter().map(|one| observed::declared_answer(request, &one.result)).collect();
        let Some((at, attempts)) = self.within_call(heard.iter().map(|one| one.attempt.clone()).collect()) else {
            return;
        };
        let failed = heard.last().and_then(|last| last.result.as_ref().err());
        let path = request.path.split('?').next().unwrap_or_default();
        let requested = Requested {
            service: request.service.as_str().to_owned(),
            method: request.method.to_owned(),
            path: self.words.text(path),
            failed: failed.map(|failure| failure.message.clone()),
            took_us: attempts.iter().map(|one| micros(one.took)).sum(),
            attempts: attempts_of(&attempts),
        };
        self.events.push((at, What::Requested(requested)));
        self.transport(request.service.as_str(), &attempts);
    }

    fn transport(&mut self, target: &str, attempts: &[Attempt]) {
        let told: Vec<_> = attempts.iter().map(|one| (one.cause.map(ErrorKind::as_str), one.cause.is_none())).collect();
        for retried in self.retries.transport(target, &told) {
            self.push(What::Retried(retried));
        }
    }
}

/// Whether a model's tool is that of an MCP server: frameworks put the server's name before it, as `mcp__tickets__refund`.
fn is_tool(offered: &str, own: &str) -> bool {
    let before = offered.strip_suffix(own);
    before.is_some_and(|before| before.is_empty() || before.ends_with(['_', '-', '.', '/', ':']))
}

//! Builds the events of one turn from its exchanges.
//!
//! | file | holds |
//! |---|---|
//! | `alone` | What happens without a call that the agent answers: calls that it writes into the conversation, passages in a prompt, tools that the provider runs. |
//! | `completions` | Exchanges with the model. A failed one that is sent again unchanged is one call with several attempts. A message that only the agent can have written, after a completion without a call or after a failed call, is feedback. |
//! | `results`, `in_text` | Tool calls. A call is read from a completion, its result from a later request of the same turn. |
//! | `late` | Calls of earlier turns whose result only a request of this turn shows. |
//! | `services` | Other exchanges. One with the search service belongs to the pending call of the external search, a call of an MCP server's tool to the pending call of that tool. |
//! | `spans`, `joins` | What the agent's spans add. |
//!
//! Exchanges with the search service between two model calls are sorted by their text, so that parallel calls give one
//! order.

mod alone;
mod completions;
mod in_text;
mod joins;
mod late;
mod results;
mod services;
mod spans;

pub(super) use late::{LateResult, Ran as RanIn};
pub(super) use spans::{OF_NO_CONVERSATION, Shown};

use super::evidence::{self, Retrieved};
use super::groups::{grouped, in_order};
use super::target::Reply;
use super::{Trouble, UNASKED, Words, decoder};
use crate::flow::retries::Retries;
use crate::provider::chat::{Message, Role, ToolCall};
use crate::provider::mcp::Ran;
use crate::provider::observed::{self, Asks};
use crate::provider::{Attempt, ErrorKind, SearchAnswer};
use crate::trace::{self, Roles, ToolCalled, ToolOutcome, ToolResult, TurnOutcome, What};
use crate::transport::{Miss, Passed, TransportError};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

/// Reason for an outcome that the traffic does not show.
const UNSEEN: &str = "no later message of the agent's shows a result of this call";

/// One turn while its events are built.
pub(super) struct TraceBuilder<'a> {
    roles: &'a Roles,
    words: &'a dyn Words,
    /// Texts of earlier turns and of this one, for [`shown`](crate::trace::ModelCalled::shown).
    known: &'a [(Role, String)],
    pub(super) events: Vec<(Duration, What)>,
    retries: Retries,
    at: Duration,
    /// Ordinal of the next completion.
    pub(super) completions: u32,
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
    /// The arguments that their schemas name.
    pub(super) parameters: BTreeMap<String, BTreeSet<String>>,
    /// Tools of the provider that they offered beside those.
    pub(super) of_provider: BTreeSet<String>,
    /// Whether they offered tools of an MCP server without naming them.
    pub(super) offers_unnamed: bool,
    /// Whether a completion wrote a call as text: what the model may call is then not known.
    pub(super) writes_calls: bool,
    /// The last text with such a call.
    written: String,
    /// JSON pointer of the sources in the reply, if the scenario names one.
    pub(super) sources: Option<&'a str>,
    /// What the conversation held before this turn.
    pub(super) earlier: Vec<&'a What>,
    /// Calls of earlier turns whose result was not shown yet.
    open: Vec<Waiting>,
    /// Those of them whose result this turn shows.
    pub(super) late: Vec<LateResult>,
    /// Texts other than results that were sent to the model while a search was pending: they may contain passages.
    texts: Vec<String>,
    /// Texts in prompts, apart from those of the conversation itself.
    prompts: Vec<String>,
    /// Whether a prompt shows what the agent found by itself.
    prompted: bool,
    /// Ids of the calls of the turn with their order, and the tools with their arguments.
    ids: BTreeMap<String, usize>,
    made: Vec<(String, Value)>,
    /// Whether the last recorded request for vectors failed.
    without_vectors: bool,
    /// Whether something of what the agent retrieved in this turn is not shown.
    pub(super) hidden_retrieval: bool,
    /// What spans say of its calls and searches.
    pub(super) shown: Shown,
}

/// A call whose result has not been seen yet.
struct Waiting {
    /// When it began: with its first request, else with the model's answer.
    at: Duration,
    /// When its last request was answered.
    until: Duration,
    completion: u32,
    id: String,
    tool: String,
    arguments: Value,
    attempts: Vec<Attempt>,
    found: Option<SearchAnswer>,
    /// What an MCP server said of it.
    ran: Option<Ran>,
    /// Whether the conversation went on without it.
    is_left_out: bool,
}

impl Waiting {
    /// A call of that completion, by its id, tool and arguments.
    fn new(at: Duration, completion: u32, (id, tool, arguments): (String, String, Value)) -> Self {
        let (attempts, found, ran) = (Vec::new(), None, None);
        Self { at, until: at, completion, id, tool, arguments, attempts, found, ran, is_left_out: false }
    }

    /// A call that an earlier turn recorded.
    fn again(at: Duration, call: &ToolCalled) -> Self {
        Self::new(at, call.call, (call.id.clone(), call.tool.clone(), call.arguments.clone()))
    }

    /// Whether a message makes this call, whatever its id.
    fn is_made_by(&self, made: &ToolCall) -> bool {
        made.name == self.tool && decoder::document(&made.arguments) == self.arguments
    }

    /// Becomes the call as the conversation shows it with its result: a guard or the user may have changed what the model
    /// asked for. Where a service was asked, its request says what ran; arguments that the agent left out change nothing.
    fn shown_as(&mut self, made: &ToolCall) {
        let arguments = decoder::document(&made.arguments);
        if !self.is_requested() && arguments.as_object().is_some_and(|members| !members.is_empty()) {
            self.tool.clone_from(&made.name);
            self.arguments = arguments;
        }
    }

    /// Adds requests that were made for it.
    fn requested(&mut self, attempts: Vec<Attempt>, within: Range<Duration>) {
        let is_first = self.attempts.is_empty();
        self.at = if is_first { within.start } else { self.at.min(within.start) };
        self.until = self.until.max(within.end);
        self.attempts.extend(attempts);
    }

    /// Whether a service was asked for it in this turn.
    fn is_requested(&self) -> bool {
        self.found.is_some() || matches!(self.ran, Some(Ran::Done(_) | Ran::Failed(_)))
    }

    /// How long its requests took; those that overlap do not count twice.
    fn took(&self) -> Duration {
        let each = self.attempts.iter().map(|one| one.took).sum::<Duration>();
        each.min(self.until.saturating_sub(self.at))
    }
}

/// The last call of that id in messages.
fn last_call<'m>(messages: &'m [Message], id: &str) -> Option<&'m ToolCall> {
    messages.iter().rev().flat_map(|message| message.calls.iter().rev()).find(|call| call.id == id)
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
            parameters: BTreeMap::new(),
            of_provider: BTreeSet::new(),
            offers_unnamed: false,
            writes_calls: false,
            written: String::new(),
            sources: None,
            earlier: Vec::new(),
            open: Vec::new(),
            late: Vec::new(),
            texts: Vec::new(),
            prompts: Vec::new(),
            prompted: false,
            ids: BTreeMap::new(),
            made: Vec::new(),
            without_vectors: false,
            hidden_retrieval: false,
            shown: Shown::default(),
        }
    }

    /// Sets the place of the sources in replies.
    pub(super) fn citing(self, sources: Option<&'a str>) -> Self {
        Self { sources, ..self }
    }

    /// Sets what the conversation held before this turn, and which of its calls have shown their results since.
    pub(super) fn after(self, earlier: Vec<&'a What>, settled: &[&LateResult]) -> Self {
        let is_settled = |call: &ToolCalled| settled.iter().any(|late| (late.call, &late.id) == (call.call, &call.id));
        let is_open = |call: &&ToolCalled| call.outcome.is_unseen() && !call.id.is_empty() && !is_settled(call);
        let calls = earlier.iter().filter_map(|what| what.tool_call()).filter(is_open);
        let open = calls.map(|call| Waiting::again(Duration::ZERO, call)).collect();
        Self { earlier, open, ..self }
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
        let answered: Vec<Passed> = passed.into_iter().filter(read).collect();
        // An older recording, or a fault, leaves requests without a time: then one came after the other.
        let timed = answered.iter().all(|one| one.at.is_some());
        for group in grouped(in_order(answered), self.words) {
            if let Some(at) = group.passed.first().and_then(|first| first.at).filter(|_| timed) {
                self.at = at;
            }
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

    pub(super) fn role(&self, tool: &str) -> trace::Role {
        if tool == UNASKED { trace::Role::External } else { self.roles.get(tool).copied().unwrap_or_default() }
    }

    /// Whether a message shows a call as it was made in this turn: no guard and no user changed it.
    fn is_of_model(&self, made: &ToolCall) -> bool {
        self.made.contains(&(made.name.clone(), decoder::document(&made.arguments)))
    }

    /// Ends the turn with the agent's reply and closes open calls.
    pub(super) fn end(&mut self, reply: Reply) -> Result<TurnOutcome, Trouble> {
        let answered = matches!(reply, Reply::Answer { .. });
        self.late_runs();
        if let Reply::Answer { text, body } = &reply {
            self.searched_alone(text, body);
        }
        let mut retrieved = match &reply {
            Reply::Answer { body, .. } => evidence::retrieved(self.replied(body), &self.texts, true),
            Reply::Failed(..) | Reply::Trouble(_) => evidence::retrieved(None, &self.texts, true),
        };
        for call in std::mem::take(&mut self.waiting) {
            let role = self.role(&call.tool);
            // If the passages of several searches appear together, at least one ran: it is recorded for the first.
            let shown = if role == trace::Role::Knowledge { retrieved.take() } else { None };
            let outcome = match (&call.found, shown) {
                (None, None) if matches!(call.ran, Some(Ran::Done(_) | Ran::Failed(_))) => self.ran(&call),
                (Some(found), _) => ToolOutcome::Ok(self.external(&call, &Value::Null, found.clone())),
                (None, _) if role == trace::Role::Respond && answered && !call.is_left_out => {
                    ToolOutcome::Ok(ToolResult::Responded)
                }
                (None, Some(Retrieved::Shown(passages))) => self.outcome(&call, passages),
                (None, Some(Retrieved::Replied(documents))) => ToolOutcome::Ok(ToolResult::other(documents)),
                (None, None) => ToolOutcome::Unseen { reason: UNSEEN.to_owned() },
            };
            // A call whose result no message shows was made all the same, when its completion came.
            let is_earlier = outcome.is_unseen() || call.completion + 1 < self.completions;
            let (place, before) = (is_earlier.then(|| self.place(&call)), self.events.len());
            self.called(call, outcome);
            if let Some(place) = place {
                let pushed = self.events.len() - before;
                self.events[place..].rotate_right(pushed);
            }
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

    /// The place of a call among the events: behind its completion and the calls that this made before it.
    fn place(&self, call: &Waiting) -> usize {
        let own = self.ids.get(&call.id);
        let last = self.events.iter().rposition(|(_, what)| match what {
            What::ModelCalled(model) => model.call == call.completion,
            What::ToolCalled(tool) => tool.call == call.completion && self.ids.get(&tool.id) < own,
            _ => false,
        });
        let mut place = last.map_or(self.events.len(), |last| last + 1);
        while matches!(self.events.get(place), Some((_, What::Retried(_)))) {
            place += 1;
        }
        place
    }

    fn push(&mut self, what: What) {
        self.events.push((self.at, what));
    }

    /// Advances the time by that of the attempts; returns when they were made.
    fn pass(&mut self, attempts: &[Attempt]) -> Range<Duration> {
        let began = self.at;
        self.at += attempts.iter().map(|one| one.took).sum::<Duration>();
        began..self.at
    }

    fn transport(&mut self, target: &str, attempts: &[Attempt]) {
        let told: Vec<_> = attempts.iter().map(|one| (one.cause.map(ErrorKind::as_str), one.cause.is_none())).collect();
        for retried in self.retries.transport(target, &told) {
            self.push(What::Retried(retried));
        }
    }
}

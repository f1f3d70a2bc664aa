//! The events of a story, turn by turn; `calls` joins what completions, runs and inputs say of one call.

mod calls;

use super::super::conversation::{self, NOT_RECORDED, empty_answer};
use super::super::error::ConversationError;
use crate::platform::secrets;
use crate::provider::tool_result;
use crate::trace::answer::{is_blank, without_reasoning};
use crate::trace::spans::{Completed, Found, HIDDEN, Operation, Said, SpanOperation, SpanTurn, Story};
use crate::trace::{
    Answer, Completion, Event, FlowSearch, Hit, Reply, SearchResult, ToolCalled, ToolOutcome, ToolResult, TurnEnded,
    TurnOutcome, What,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The beginning of a document's text in a span without contents.
const NO_TEXT: &str = "…";

/// The events so far.
pub(super) struct Events<'s> {
    story: &'s Story,
    began: u64,
    turn: u32,
    /// The user's words in the turn.
    query: Option<String>,
    /// Completions beside its conversation.
    aside: Vec<usize>,
    completions: u32,
    pub(super) events: Vec<Event>,
    /// Calls without a result: index of the event.
    waiting: Vec<usize>,
    /// Index of the event of each run of a tool, by its place in the story.
    runs: BTreeMap<usize, usize>,
    /// Number of events before the turn.
    first: usize,
    /// The last words of the model without a call in the turn, the number of events up to them, and their end in
    /// microseconds.
    words: Option<(usize, String, u64)>,
    /// Whether the model called a tool after them.
    called_since: bool,
    /// Calls of the turn with a result: index of the event, and number of events at that time.
    got: Vec<(usize, usize)>,
    /// Ids of results of which it is unknown to which call they belong.
    unclear: BTreeSet<String>,
    /// Results of calls of earlier turns.
    pub(super) late: usize,
    pub(super) without_arguments: usize,
    /// Runs with other values than the model's call gives.
    pub(super) other_values: usize,
    /// Runs with arguments of other names than those of the model's call.
    pub(super) other_names: usize,
}

impl<'s> Events<'s> {
    pub(super) fn of(story: &'s Story, began: u64) -> Self {
        Self {
            story,
            began,
            turn: 0,
            query: None,
            aside: Vec::new(),
            completions: 0,
            events: Vec::new(),
            waiting: Vec::new(),
            runs: BTreeMap::new(),
            first: 0,
            words: None,
            called_since: false,
            got: Vec::new(),
            unclear: BTreeSet::new(),
            late: 0,
            without_arguments: 0,
            other_values: 0,
            other_names: 0,
        }
    }

    pub(super) fn begin(&mut self, number: u32, turn: &SpanTurn) {
        (self.turn, self.query, self.first) = (number, turn.query.clone(), self.events.len());
        self.aside.clone_from(&turn.aside);
        (self.words, self.called_since, self.got) = (None, false, Vec::new());
    }

    pub(super) fn push(&mut self, at_ns: u64, what: What) {
        let at_us = self.micros(at_ns);
        self.events.push(Event { at_us, conversation: 0, turn: self.turn, what });
    }

    /// A time in microseconds since the first turn began.
    fn micros(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.began) / 1_000
    }

    /// The time of a span, unless it is impossible.
    fn began_us(&self, done: &SpanOperation) -> Option<u64> {
        done.is_timed.then(|| self.micros(done.at_ns))
    }

    pub(super) fn tell(&mut self, place: usize) {
        let done = &self.story.operations[place];
        match &done.operation {
            Operation::Completed(completed) => self.completed(place, done, completed),
            Operation::Ran(ran) => self.ran(place, done, ran),
            Operation::Found(found) => self.found(place, done, found),
            Operation::Agent { .. } | Operation::Vectors => {}
        }
    }

    fn completed(&mut self, place: usize, done: &SpanOperation, completed: &Completed) {
        let input = completed.input.as_deref().unwrap_or_default();
        let asked = self.asked(input);
        let shown = &input[asked.map_or(0, |asked| asked + 1)..];
        let ids: BTreeSet<&str> = shown.iter().flat_map(|said| &said.calls).map(|call| call.id.as_str()).collect();
        let mut claimed = BTreeSet::new();
        let results = shown.iter().filter(|said| said.answers.as_deref().is_some_and(|id| !ids.contains(id)));
        self.take_ids(&results.collect::<Vec<_>>());
        for (at, said) in input.iter().enumerate() {
            for call in said.calls.iter().filter(|_| asked.is_none_or(|asked| at > asked)) {
                self.shown(done.at_ns, call, &ids, &mut claimed);
            }
            self.answered(said, at > asked.unwrap_or_default());
        }
        let call = self.completions;
        self.completions += 1;
        let output = completed.output.as_deref().unwrap_or_default();
        let texts: Vec<&str> = output.iter().map(|said| said.text.as_str()).filter(|text| !text.is_empty()).collect();
        let reply = match &done.failed {
            Some(message) => Reply::Failure { kind: "error".into(), message: message.clone() },
            None => Reply::Completion(Completion {
                model: completed.model.clone(),
                text: texts.join("\n"),
                refusal: None,
                calls: output.iter().flat_map(|said| &said.calls).map(|call| call.tool.clone()).collect(),
                finish: completed.finish.clone().unwrap_or_else(|| NOT_RECORDED.into()),
                input_tokens: completed.input_tokens,
                cached_tokens: completed.cached_tokens,
                cache_write_tokens: completed.cache_write_tokens,
                output_tokens: completed.output_tokens,
            }),
        };
        self.push(done.at_ns, What::ModelCalled(conversation::completed(call, done.took_us, reply)));
        let is_own = !self.aside.contains(&place)
            && !self
                .story
                .around(place)
                .any(|at| matches!(self.story.operations[at].operation, Operation::Ran(_) | Operation::Found(_)));
        let end_ns = done.at_ns.saturating_add(done.took_us.saturating_mul(1_000));
        let (first, is_word) = (self.waiting.len(), |text: &str| text != HIDDEN && !is_blank(without_reasoning(text)));
        for asked in output.iter().flat_map(|said| &said.calls) {
            self.asked_for(call, end_ns, asked);
        }
        // The model's service may have run them.
        for said in output {
            self.served(said);
        }
        if self.waiting.len() > first {
            self.called_since = true;
        } else if let Some(said) = output.iter().rfind(|said| said.is_agent() && is_word(&said.text))
            && is_own
        {
            let end_us = self.micros(end_ns);
            (self.words, self.called_since) = (Some((self.events.len(), said.text.clone(), end_us)), false);
        }
    }

    /// Gives a call of an output its result in the same output, if the message is one.
    fn served(&mut self, said: &Said) {
        let id = said.answers.as_deref();
        if said.is_result()
            && let Some(call) = self.call_of(id, said.tool.as_deref(), None).or_else(|| self.without_result(id))
        {
            self.came(call, said);
        }
    }

    /// Gives a call its result, if the message of an input is one.
    fn answered(&mut self, said: &Said, is_of_turn: bool) {
        if !said.is_result() {
            return;
        }
        let id = said.answers.as_deref();
        // The span of a search may say less than the result of its call.
        if let Some(known) = self.calls_with(id).last()
            && let Some(ToolOutcome::Ok(ToolResult::Search(search))) =
                self.events[known].what.tool_call_mut().map(|call| &mut call.outcome)
            && search.hits.iter().all(|hit| hit.excerpt == NO_TEXT)
        {
            search.beside = secrets::beginning(&said.text, Hit::BESIDE);
            return;
        }
        let call = match (self.call_of(id, None, None), self.without_result(id)) {
            (Some(call), _) if call < self.first && is_of_turn => {
                self.late += 1;
                return;
            }
            (Some(call), _) => {
                self.got.push((call, self.events.len()));
                call
            }
            (None, Some(call)) => call,
            (None, None) => return,
        };
        self.came(call, said);
    }

    fn came(&mut self, call: usize, said: &Said) {
        if let Some(call) = self.events[call].what.tool_call_mut()
            && call.arguments.is_object()
        {
            call.outcome = if said.is_failed {
                ToolOutcome::Failed { message: said.text.clone(), retryable: false }
            } else {
                let value = serde_json::from_str(&said.text).unwrap_or_else(|_| Value::String(said.text.clone()));
                ToolOutcome::Ok(ToolResult::other(value))
            };
        }
    }

    /// Place of the user's words in the input of a completion: those of the turn, else the last ones.
    fn asked(&self, input: &[Said]) -> Option<usize> {
        // Frameworks write reminders as the user.
        let is_query = |said: &Said| said.is_user() && Some(&said.text) == self.query.as_ref();
        input.iter().rposition(is_query).or_else(|| input.iter().rposition(Said::is_user))
    }

    /// A search within a run of a tool is its result, and so is one with the query of a call of the last completion;
    /// another is the agent's own.
    fn found(&mut self, place: usize, done: &SpanOperation, found: &Found) {
        let query = found.query.clone().unwrap_or_default();
        let hits = found.documents.as_ref().and_then(tool_result::passages).map(|passages| {
            let hit = |one: tool_result::Passage<'_>| {
                let (text, beside) = (secrets::beginning(one.text, Hit::EXCERPT), one.beside());
                Hit {
                    title: one.title.to_owned(),
                    raw_score: one.score,
                    excerpt: if text.is_empty() && beside.is_empty() { NO_TEXT.to_owned() } else { text },
                    names: one.other_names().into_iter().map(|name| secrets::clean(&name).into_owned()).collect(),
                    beside: secrets::beginning(&beside, Hit::BESIDE),
                    id: one.id,
                    learned: None,
                }
            };
            passages.into_iter().map(hit).collect::<Vec<Hit>>()
        });
        let outcome = match (&done.failed, hits) {
            (Some(message), _) => ToolOutcome::Failed { message: message.clone(), retryable: false },
            (None, Some(hits)) => {
                let kb_id = found.base.clone().unwrap_or_default();
                ToolOutcome::Ok(ToolResult::Search(SearchResult::of(query.clone(), kb_id, hits)))
            }
            (None, None) => {
                let reason = "the documents in its span are missing, or one of them has no id";
                ToolOutcome::Unseen { reason: reason.to_owned() }
            }
        };
        let began_us = self.began_us(done);
        let run = self.story.around(place).find_map(|outer| self.runs.get(&outer).copied());
        let run = run.or_else(|| {
            let is_it = |call: &ToolCalled| {
                let is_search = matches!(&call.outcome, ToolOutcome::Ok(ToolResult::Search(_)));
                let is_last = call.call + 1 == self.completions && !is_search;
                is_last && !query.is_empty() && tool_result::query(&call.arguments) == query
            };
            let is_call = |at: &usize| self.events[*at].what.tool_call().is_some_and(is_it);
            let called = (self.first..self.events.len()).find(is_call)?;
            if let Some(waiting) = self.waiting.iter().position(|event| *event == called) {
                self.waiting.remove(waiting);
                self.got.push((called, self.events.len()));
                if let Some(call) = self.events[called].what.tool_call_mut() {
                    call.outcome = ToolOutcome::Ok(ToolResult::other(Value::Null));
                    (call.began_us, call.took_us) = (began_us, done.took_us);
                }
            }
            Some(called)
        });
        if let Some(What::ToolCalled(call)) = run.map(|event| &mut self.events[event].what) {
            if matches!((&call.outcome, &outcome), (ToolOutcome::Ok(ToolResult::Other(_)), ToolOutcome::Ok(_)))
                || matches!(&call.outcome, ToolOutcome::Ok(ToolResult::Other(Value::Null)))
            {
                call.outcome = outcome;
            }
            return;
        }
        let search = FlowSearch { query, outcome, took_us: done.took_us, attempts: Vec::new() };
        self.push(done.at_ns, What::Searched(search));
    }

    pub(super) fn end(&mut self, turn: &SpanTurn) -> Result<(), ConversationError> {
        let failed = |kind: &str, message: &str| TurnOutcome::Failed { kind: kind.into(), message: message.into() };
        let answered = |text: &str| match without_reasoning(text) {
            said if is_blank(said) => empty_answer(),
            said => TurnOutcome::Answered(Answer::text_alone(said.to_owned())),
        };
        let whole = self.events.len();
        let (by_words, outcome) = match (&turn.failed, &turn.answer, &self.words) {
            (Some(message), ..) => (None, failed("agent_error", message)),
            (None, Some(text), _) if turn.is_answered_by_agent => (None, answered(text)),
            (None, _, Some((place, ..))) if self.called_since => (
                Some(*place),
                failed("unfinished", "the agent went on calling tools after its last words, and said nothing more"),
            ),
            (None, _, Some((place, text, _))) => (Some(*place), answered(text)),
            (None, Some(text), None) => (None, answered(text)),
            (None, None, None) => {
                let said = |place: &usize| match &self.story.operations[*place].operation {
                    Operation::Completed(completed) => completed.output.as_ref(),
                    _ => None,
                };
                match turn.operations.iter().rev().find_map(said) {
                    // As in messages, a turn that ends with a call never ended.
                    Some(last) if last.iter().any(|one| !one.calls.is_empty()) => return Ok(()),
                    Some(last) if last.iter().all(|one| one.text != HIDDEN) => (None, empty_answer()),
                    _ => {
                        let why = self.story.because(format!("no span says what turn {} answered", self.turn + 1));
                        return Err(ConversationError::Source(why));
                    }
                }
            }
        };
        let mut place = by_words.unwrap_or(whole);
        let is_late = |(call, at): &&(usize, usize)| by_words.is_some_and(|place| *call < place && *at >= place);
        for (call, _) in self.got.iter().filter(is_late) {
            if let Some(called) = self.events[*call].what.tool_call_mut() {
                called.outcome = ToolOutcome::not_executed("late_result", "its result came after the answer");
            }
        }
        // By another clock, what began before the answer was complete may be what the model read.
        let end_us = self.words.take().map_or(0, |(.., end_us)| end_us);
        place += self.events[place..].iter().take_while(|next| next.at_us < end_us).count();
        let ended = TurnEnded { took_us: turn.took_us, outcome, history: Vec::new(), reply: None };
        let end_us = turn.at_ns.saturating_sub(self.began) / 1_000 + turn.took_us;
        let at_us = self.events.get(place).map_or(end_us, |next| next.at_us.min(end_us));
        let event = Event { at_us, conversation: 0, turn: self.turn, what: What::TurnEnded(ended) };
        self.events.insert(place, event);
        let now = |event: &mut usize| *event += usize::from(*event >= place);
        self.waiting.iter_mut().for_each(now);
        self.runs.values_mut().for_each(now);
        Ok(())
    }
}

//! Encodes one trial's conversation for the report's script: arrays in place of objects, long strings shared.
//!
//! A block is `{"t": [trial, …], "s": [string, …]}`. In a trial's arrays, a number in place of a text is an index into
//! `s`, or, below 0, into the texts that several blocks use: -1 is the first of [`CommonTexts`]. A trial is `{"i": id, "k": checks, "d": departures, "x": error, "v": evidence, "n": seed, "e": events, "c":
//! events left out}`; an event is `[at_us, conversation, turn, kind, fields]` with the fields that [`Encoder::event`]
//! writes and `html/events.js` reads: change both together. A text has at most [`TEXT`] characters, a trial at most
//! [`EVENTS`] events.

use super::Beside;
use crate::gate::{TrialResult, note_in_words};
use crate::metric::provenance::{Provenance, provenance};
use crate::trace::text::clip;
use crate::trace::{
    Attempt, Completion, Event, FlowSearch, Grade, ModelCalled, Rejection, Reply, ToolOutcome, ToolResult, Trace,
    TrialEnd, TurnEnded, TurnOutcome, What,
};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Maximum characters of one text.
const TEXT: usize = 6_000;
/// Maximum events of one trial.
const EVENTS: usize = 600;
/// Minimum length of a shared string.
const SHARED_FROM: usize = 20;

/// A text, or the index of a shared string.
#[derive(Serialize)]
#[serde(untagged)]
enum Text<'a> {
    Here(Cow<'a, str>),
    Shared(i64),
}

/// Texts that several blocks use, stored once for the page: a text becomes one in the second block that has it.
#[derive(Debug, Default)]
pub(super) struct CommonTexts {
    /// Hashes of the texts that some block has.
    seen: HashSet<u64>,
    numbers: HashMap<Box<str>, i64>,
    strings: Vec<u8>,
}

impl CommonTexts {
    /// Number of a text that this block does not have yet; `None` if no earlier block had it.
    fn number(&mut self, text: &str) -> Option<i64> {
        if let Some(number) = self.numbers.get(text) {
            return Some(*number);
        }
        let mut hash = DefaultHasher::new();
        text.hash(&mut hash);
        if self.seen.insert(hash.finish()) {
            return None;
        }
        let number = -1 - self.numbers.len() as i64;
        push_string(&mut self.strings, text);
        self.numbers.insert(text.into(), number);
        Some(number)
    }

    /// All of them as a JSON array.
    pub(super) fn json(&self) -> Vec<u8> {
        [b"[", self.strings.as_slice(), b"]"].concat()
    }
}

/// Adds a JSON string to the items of an array.
fn push_string(items: &mut Vec<u8>, text: &str) {
    if !items.is_empty() {
        items.push(b',');
    }
    if serde_json::to_writer(&mut *items, text).is_err() {
        items.extend(b"\"\"");
    }
}

/// Encodes the trials of one block as they arrive.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    common: CommonTexts,
    numbers: HashMap<Box<str>, i64>,
    strings: Vec<u8>,
    body: Vec<u8>,
    trials: Vec<String>,
}

impl Encoder {
    /// Ids of the encoded trials, in order.
    pub(super) fn trials(&self) -> &[String] {
        &self.trials
    }

    /// Bytes of JSON so far.
    pub(super) fn len(&self) -> usize {
        self.strings.len() + self.body.len()
    }

    /// Finishes the block: ids of its trials, and its JSON.
    pub(super) fn finish(self) -> (Vec<String>, Vec<u8>) {
        let mut json = b"{\"t\":[".to_vec();
        json.extend(self.body);
        json.extend(b"],\"s\":[");
        json.extend(self.strings);
        json.extend(b"]}");
        (self.trials, json)
    }

    /// Exchanges the texts that several blocks use, which the builder of all blocks has.
    pub(super) fn swap_common(&mut self, common: &mut CommonTexts) {
        std::mem::swap(&mut self.common, common);
    }

    pub(super) fn add(&mut self, trace: &Trace, beside: Beside<'_>, result: &TrialResult) {
        if !self.trials.is_empty() {
            self.body.push(b',');
        }
        self.trials.push(result.id.clone());
        let checks: Vec<_> = result
            .checks
            .iter()
            .map(|check| {
                let words = (!check.passed).then(|| note_in_words(&check.what)).filter(|words| *words != check.what);
                (
                    self.text(&check.what),
                    u8::from(check.passed),
                    self.text(&check.seen),
                    words.map(|words| self.text(&words).owned()),
                )
            })
            .collect();
        let departures = self.texts(&result.departures);
        let error = match &trace.end {
            TrialEnd::Completed => None,
            TrialEnd::Error(error) => Some((error.kind.label(), self.text(&error.message), self.texts(&error.detail))),
        };
        let from = trace.evidence.answered_by().unwrap_or("no service");
        let from = match trace.evidence.draws() {
            Some(takes) => format!("{from} ({takes})"),
            None => from.to_owned(),
        };
        let evidence = (
            trace.evidence.mode.to_string(),
            self.text(&from),
            trace.evidence.recorded_at.as_deref(),
            self.text(&trace.evidence.model),
            clip(&trace.evidence.knowledge, 19),
        );
        self.write("{\"i\":", &result.id);
        self.write(",\"k\":", &checks);
        self.write(",\"d\":", &departures);
        self.write(",\"x\":", &error);
        self.write(",\"v\":", &evidence);
        self.write(",\"n\":", &trace.seed.to_string());
        let grades: Vec<_> = beside.grades.iter().map(|grade| self.grade(grade)).collect();
        self.write(",\"g\":", &grades);
        self.body.extend(b",\"e\":[");
        let cited = provenance(trace);
        for (index, event) in trace.events.iter().take(EVENTS).enumerate() {
            if index > 0 {
                self.body.push(b',');
            }
            self.event(event, cited.get(&(event.conversation, event.turn)), beside);
        }
        self.write("],\"c\":", &trace.events.len().saturating_sub(EVENTS));
        self.body.push(b'}');
    }

    /// Position of the answer, then item, value, quotation, reason for a missing verdict, and model.
    fn grade<'a>(&mut self, grade: &'a Grade) -> (u32, u32, Text<'a>, &'static str, Text<'a>, Text<'a>, Text<'a>) {
        let (item, model) = (self.text(&grade.item), self.text(&grade.model));
        let (evidence, reason) = (self.text(&grade.evidence), self.text(&grade.reason));
        (grade.conversation, grade.turn, item, grade.value.as_str(), evidence, reason, model)
    }

    fn event(&mut self, event: &Event, cited: Option<&Provenance>, beside: Beside<'_>) {
        let at = (event.at_us, event.conversation, event.turn);
        match &event.what {
            What::ConversationStarted { name, session, tenant } => {
                let (name, session) = (self.text(name), self.text(session));
                let tenant = tenant.as_deref().map(|tenant| self.text(tenant));
                self.row(at, "c", &(name, session, tenant));
            }
            What::TurnStarted { query } => {
                let query = self.text(query);
                self.row(at, "u", &(query,));
            }
            What::Moved(moved) => {
                let (from, on, to) = (self.text(&moved.from), self.text(&moved.on), self.text(&moved.to));
                self.row(at, "s", &(from, on, to));
            }
            What::ModelCalled(called) => self.model(at, called),
            What::ToolCalled(called) => {
                let call = (Some(called.call), called.tool.as_str(), called.arguments.to_string(), called.took_us);
                self.tool(at, call, &called.attempts, &called.outcome, beside);
            }
            What::Searched(search) => {
                let query = serde_json::json!({"query": search.query}).to_string();
                self.tool(
                    at,
                    (None, FlowSearch::NAME, query, search.took_us),
                    &search.attempts,
                    &search.outcome,
                    beside,
                );
            }
            What::Requested(one) => {
                let asked = serde_json::json!({"method": one.method, "path": one.path}).to_string();
                let call = (None::<u32>, self.text(&one.service), self.text(&asked), one.took_us);
                let outcome = if one.failed.is_none() { "answered" } else { "unanswered" };
                let told = one.told();
                let told = self.text(&told);
                self.row(at, "t", &(call, attempts(&one.attempts), outcome, told));
            }
            What::FedBack(back) => {
                let told = (self.text(&back.step), self.text(&back.tool), self.text(&back.cause));
                let message = self.text(&back.message);
                self.row(at, "f", &(told.0, told.1, told.2, message));
            }
            What::Retried(retried) => {
                let (target, cause) = (self.text(&retried.target), self.text(&retried.cause));
                let (episode, attempt) = (retried.episode, retried.attempt);
                self.row(at, "r", &(retried.account, episode, attempt, target, cause, u8::from(retried.recovered)));
            }
            What::Degraded { without, reason } => {
                let (without, reason) = (self.text(without), self.text(reason));
                self.row(at, "d", &(without, reason));
            }
            What::Logged(entry) => {
                let (kind, words) = entry.described();
                let row = (self.text(kind), self.text(&words));
                self.row(at, "l", &row);
            }
            What::TurnEnded(ended) => self.ended(at, ended, cited),
        }
    }

    fn model(&mut self, at: (u64, u32, u32), called: &ModelCalled) {
        let (state, choice) = (self.text(&called.state), self.text(&called.tool_choice));
        let attempts = attempts(&called.attempts);
        let service = called.service.as_deref().map(|service| self.text(service));
        let shown = self.texts(&called.shown);
        let asked = (called.call, state, called.took_us, choice, attempts, shown, service);
        match &called.reply {
            Reply::Completion(completion) => {
                let Completion { model, text, refusal, calls, finish, .. } = completion;
                let said = (self.text(model), self.text(text), refusal.as_deref().map(|said| self.text(said)));
                let (calls, finish) = (self.texts(calls), self.text(finish));
                let tokens = (completion.input_tokens, completion.cached_tokens, completion.output_tokens);
                self.row(at, "m", &(asked, 1, said, calls, finish, tokens));
            }
            Reply::Failure { kind, message } => {
                let (kind, message) = (self.text(kind), self.text(message));
                self.row(at, "m", &(asked, 0, (kind, message)));
            }
        }
    }

    /// A tool call, or a search made by the flow itself: the completion that requested it, its name, arguments and
    /// duration.
    fn tool(
        &mut self,
        at: (u64, u32, u32),
        (asked, name, arguments, took_us): (Option<u32>, &str, String, u64),
        tries: &[Attempt],
        outcome: &ToolOutcome,
        beside: Beside<'_>,
    ) {
        let call = (asked, self.text(name), self.text(&arguments), took_us);
        let attempts = attempts(tries);
        match outcome {
            ToolOutcome::Ok(ToolResult::Search(search)) => {
                let hits: Vec<_> = search
                    .hits
                    .iter()
                    .map(|hit| {
                        let learned = hit.learned.as_ref().map(|learned| {
                            let (result, keywords) = (self.text(&learned.result), self.texts(&learned.keywords));
                            (result, learned.conversation, keywords, self.texts(&learned.urls))
                        });
                        let score = (hit.raw_score * 1e3).round() / 1e3;
                        let whole = beside.passage(&search.kb_id, &hit.id).filter(|text| *text != hit.excerpt);
                        let whole = whole.map(|text| self.text(text));
                        (self.text(&hit.id), self.text(&hit.title), score, self.text(&hit.excerpt), learned, whole)
                    })
                    .collect();
                let query = (self.text(&search.query), self.text(&search.kb_id));
                let managed = search.managed.as_ref().map(|managed| {
                    let notes = self.texts(&managed.notes);
                    (managed.status.as_str(), self.text(&managed.asked), self.text(&managed.text), notes)
                });
                self.row(at, "t", &(call, attempts, "search", query, hits, managed));
            }
            ToolOutcome::Ok(ToolResult::External(found)) => {
                let citations: Vec<_> =
                    found.citations.iter().map(|page| (self.text(&page.title), self.text(&page.url))).collect();
                let answer = (self.text(&found.result), self.text(&found.query), self.text(&found.answer));
                let model = self.text(&found.model);
                self.row(at, "t", &(call, attempts, "external", answer, citations, model));
            }
            ToolOutcome::Ok(ToolResult::Indexed(indexed)) => {
                let keywords = (self.texts(&indexed.keywords), self.texts(&indexed.merged));
                let (result, read_back) = (self.text(&indexed.result), self.texts(&indexed.read_back));
                self.row(at, "t", &(call, attempts, "indexed", result, keywords, read_back));
            }
            ToolOutcome::Ok(ToolResult::Responded) => self.row(at, "t", &(call, attempts, "responded")),
            ToolOutcome::Ok(ToolResult::Other(value)) => {
                let value = value.to_string();
                let value = self.text(&value);
                self.row(at, "t", &(call, attempts, "other", value));
            }
            ToolOutcome::Rejected(why) => {
                let why = self.refusal(why);
                self.row(at, "t", &(call, attempts, "rejected", why));
            }
            ToolOutcome::OutOfOrder(why) => {
                let why = self.refusal(why);
                self.row(at, "t", &(call, attempts, "out of order", why));
            }
            ToolOutcome::Failed { message, retryable } => {
                let message = self.text(message);
                self.row(at, "t", &(call, attempts, "failed", message, u8::from(*retryable)));
            }
            ToolOutcome::Unseen { reason } => {
                let reason = self.text(reason);
                self.row(at, "t", &(call, attempts, "unseen", reason));
            }
        }
    }

    fn refusal<'a>(&mut self, why: &'a Rejection) -> (Text<'a>, Text<'a>, Text<'a>) {
        (self.text(&why.cause), self.text(&why.reason), self.text(&why.guidance))
    }

    fn ended(&mut self, at: (u64, u32, u32), ended: &TurnEnded, cited: Option<&Provenance>) {
        match &ended.outcome {
            TurnOutcome::Answered(answer) => {
                let none = Provenance::default();
                let cited = cited.unwrap_or(&none);
                let given_by = cited.given_by.iter().map(String::as_str).chain(std::iter::repeat(""));
                let sources: Vec<_> = answer
                    .sources
                    .iter()
                    .zip(given_by)
                    .map(|(source, by)| {
                        (self.text(&source.kind), self.text(&source.id), self.text(&source.title), self.text(by))
                    })
                    .collect();
                let flaws = self.texts(&cited.flaws);
                let used = (u8::from(answer.used_internal_kb), u8::from(answer.used_external_kb));
                let text = self.text(&answer.text);
                self.row(at, "e", &(ended.took_us, 1, text, sources, answer.confidence, used, flaws));
            }
            TurnOutcome::Failed { kind, message } => {
                let (kind, message) = (self.text(kind), self.text(message));
                self.row(at, "e", &(ended.took_us, 0, kind, message));
            }
        }
    }

    fn row(&mut self, (at_us, conversation, turn): (u64, u32, u32), kind: &str, fields: &impl Serialize) {
        self.write("", &(at_us, conversation, turn, kind, fields));
    }

    fn write(&mut self, before: &str, value: &impl Serialize) {
        self.body.extend(before.as_bytes());
        if serde_json::to_writer(&mut self.body, value).is_err() {
            // Only a map with non-string keys could fail, and there is none.
            self.body.extend(b"null");
        }
    }

    fn texts(&mut self, texts: &[String]) -> Vec<Text<'static>> {
        let shared: Vec<Text<'_>> = texts.iter().map(|text| self.text(text)).collect();
        shared.into_iter().map(Text::owned).collect()
    }

    fn text<'a>(&mut self, text: &'a str) -> Text<'a> {
        let text = if text.len() > TEXT { clip(text, TEXT) } else { Cow::Borrowed(text) };
        if text.len() < SHARED_FROM {
            return Text::Here(text);
        }
        if let Some(number) = self.numbers.get(text.as_ref()) {
            return Text::Shared(*number);
        }
        if let Some(number) = self.common.number(&text) {
            return Text::Shared(number);
        }
        let number = self.numbers.len() as i64;
        push_string(&mut self.strings, &text);
        self.numbers.insert(text.into(), number);
        Text::Shared(number)
    }
}

impl Text<'_> {
    fn owned(self) -> Text<'static> {
        match self {
            Self::Here(text) => Text::Here(Cow::Owned(text.into_owned())),
            Self::Shared(number) => Text::Shared(number),
        }
    }
}

type AttemptRow<'a> = (Option<u16>, Option<&'a str>, u64, Option<u64>);

fn attempts(attempts: &[Attempt]) -> Vec<AttemptRow<'_>> {
    attempts.iter().map(|one| (one.status, one.cause.as_deref(), one.took_us, one.wait_us)).collect()
}

#[cfg(test)]
mod tests;

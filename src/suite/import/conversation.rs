//! Converts messages into the events of a trial.
//!
//! A user message begins a turn. The agent's last message without a call ends it with an answer, at that position: a
//! call after it does not belong to that answer, and a turn that ends with such a call or with a result never ended. A
//! call without a result before the answer, or with arguments that are not a JSON object, was not executed. An
//! unanswered last user message is a query, unless the mapping says otherwise or the conversation was graded, which
//! shows that it is complete; thanks or a farewell alone are never a query, because they need no answer. A greeting
//! before the first user message is not an answer.
//!
//! A call of a tool with the role `respond` ends a turn, too: its arguments are the answer, unless it failed.

use super::error::{ConversationError, Kind, MessageError, WrongMember};
use super::mapping::{Closing, Mapping};
use super::record::Told;
use super::shape::{self, Recognised};
use crate::flow::external::ANSWER_EMPTY;
use crate::trace::answer::{is_blank, without_reasoning};
use crate::trace::spans::words_in;
use crate::trace::text::plural;
use crate::trace::{
    Answer, Completion, Event, Member, ModelCalled, Reply, Role, Roles, ToolCalled, ToolOutcome, ToolResult, TurnEnded,
    TurnOutcome, What, finish_of,
};
use serde_json::Value;
use std::collections::BTreeSet;

/// What nobody recorded, in members that events always have.
pub(super) const NOT_RECORDED: &str = "not recorded";

/// Names that frameworks give to the tool whose arguments are the answer.
const ANSWERING: [&str; 5] = ["final_answer", "final_result", "respond", "answer", "submit_answer"];

/// Events of `messages`, and notes on content that no event represents; `grade` is the conversation's reward, `roles` are
/// those of the agent's tools.
///
/// # Errors
/// Position, from 1, of an item that is not a message, or that answers a call that was never made.
pub(super) fn events(
    messages: &[Value],
    mapping: &Mapping,
    model: &str,
    grade: Option<f64>,
    roles: &Roles,
) -> Result<Told, ConversationError> {
    let answering = roles.iter().filter(|(_, role)| **role == Role::Respond).map(|(tool, _)| tool.clone()).collect();
    let mut telling = TraceBuilder { model: model.to_owned(), answering, ..TraceBuilder::default() };
    let session = What::ConversationStarted { name: "main".into(), session: "main".into(), tenant: None };
    telling.push(session);
    for (place, message) in (1..).zip(messages) {
        let wrong = |mistake| ConversationError::Message { place, mistake };
        let Recognised { messages, media } = shape::recognise(message).map_err(wrong)?;
        telling.media.extend(media.into_iter().map(|medium| (place, medium)));
        for message in &messages {
            telling.tell(message, mapping).map_err(wrong)?;
        }
    }
    let graded = grade.is_some();
    telling.close(if graded && mapping.closing == Closing::Thanks { Closing::Ignored } else { mapping.closing });
    // A conversation without an answer and with less than the full reward was graded as a failure.
    if telling.turns == 0 && grade.is_none_or(|grade| grade >= 1.0) {
        return Err(ConversationError::Empty);
    }
    let (notes, hides) = (telling.notes(), telling.unread_answer.is_some());
    let absent = hides.then(|| Member::not_in_messages_and(Member::Answers));
    Ok(Told { events: telling.events, notes, absent, ..Told::default() })
}

#[derive(Default)]
struct TraceBuilder {
    events: Vec<Event>,
    model: String,
    /// Tools whose arguments are the answer.
    answering: BTreeSet<String>,
    /// Where none is known: a tool that may be one by its name, as a turn ended with its call.
    unread_answer: Option<String>,
    turns: u32,
    completions: u32,
    /// Index of the open turn's first event.
    open: Option<usize>,
    /// Outcome of the open turn if it ended now, and the number of events before it: the agent's last message without a
    /// call.
    outcome: Option<(usize, TurnOutcome)>,
    /// Whether a call was made since.
    called_since: bool,
    /// Calls without a result so far.
    waiting: Vec<Waiting>,
    /// Calls of the open turn with a result: index of the event, and number of events at that time.
    got: Vec<(usize, usize)>,
    /// Ids of calls with broken arguments.
    broken: Vec<String>,
    /// Whether the last message was a tool result.
    after_result: bool,
    /// Number of framework messages with the user role.
    reminders: usize,
    /// Number of queries right after a tool result; a framework may have written them.
    after_results: usize,
    /// Media, with the position of their message.
    media: Vec<(usize, String)>,
}

/// A call without a result: id, completion, and index of its event.
struct Waiting {
    id: String,
    completion: u32,
    place: usize,
}

impl TraceBuilder {
    fn push(&mut self, what: What) {
        self.events.push(Event { at_us: 0, conversation: 0, turn: self.turns.saturating_sub(1), what });
    }

    fn tell(&mut self, message: &Value, mapping: &Mapping) -> Result<(), MessageError> {
        let finish = finish_of(message);
        let Some(message) = message.as_object() else { return Err(MessageError::NoObject(Kind::of(message))) };
        let after_result = std::mem::take(&mut self.after_result);
        let role = message.get("role").and_then(Value::as_str).ok_or(MessageError::NoRole)?;
        let role = mapping.role(role);
        let text = text(message.get("content"))?;
        match role {
            "system" | "developer" => Ok(()),
            "user" if after_result && mapping.is_reminder(&text) => {
                (self.after_result, self.reminders) = (true, self.reminders + 1);
                Ok(())
            }
            "user" => {
                self.after_results += usize::from(after_result);
                self.ask(text);
                Ok(())
            }
            "assistant" => self.reply(message, text, finish),
            "tool" | "function" => {
                self.after_result = true;
                self.result(message, &text)
            }
            other => Err(MessageError::UnknownRole(other.chars().take(40).collect())),
        }
    }

    /// Notes on content that no event represents.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(tool) = &self.unread_answer {
            notes.push(format!(
                "a turn ends with a call of `{tool}`: if its arguments are the answer, declare `roles: {{respond: {tool}}}` in the scenario"
            ));
        }
        if !self.media.is_empty() {
            let media: Vec<String> =
                self.media.iter().map(|(place, medium)| format!("`{medium}` in message {place}")).collect();
            notes.push(format!("media are not judged: {}", media.join(", ")));
        }
        if self.reminders > 0 {
            notes.push(format!("{} of the framework, no query", plural(self.reminders, "reminder")));
        }
        if self.after_results > 0 {
            let queries = plural(self.after_results, "user message");
            notes.push(format!("{queries} right after the result of a tool, read as queries: map them in `mapping.reminders` if the framework wrote it"));
        }
        notes
    }

    fn ask(&mut self, text: String) {
        // User messages without a reply between them are one query.
        if let Some(open) = self.open.filter(|open| open + 1 == self.events.len())
            && let What::TurnStarted { query } = &mut self.events[open].what
        {
            query.push('\n');
            query.push_str(&text);
            return;
        }
        self.close(Closing::Query);
        self.begin(text);
    }

    fn begin(&mut self, query: String) {
        self.turns += 1;
        self.open = Some(self.events.len());
        self.push(What::TurnStarted { query });
    }

    fn reply(
        &mut self,
        message: &serde_json::Map<String, Value>,
        text: String,
        finish: Option<&str>,
    ) -> Result<(), MessageError> {
        let calls = calls(message)?;
        if self.open.is_none() {
            if calls.is_empty() {
                return Ok(());
            }
            self.begin(String::new());
        }
        let said = without_reasoning(&text);
        let refusal = message.get("refusal").and_then(Value::as_str).map(str::to_owned);
        let ending = match (&refusal, calls.is_empty()) {
            (_, false) => None,
            (Some(refusal), true) if text.is_empty() => {
                Some(TurnOutcome::Failed { kind: "refused".into(), message: refusal.clone() })
            }
            (_, true) if is_blank(said) => None,
            (_, true) => Some(TurnOutcome::Answered(Answer::text_alone(said.to_owned()))),
        };
        let call = self.completions;
        self.completions += 1;
        let reply = Reply::Completion(Completion {
            model: self.model.clone(),
            text,
            refusal,
            calls: calls.iter().map(|(_, tool, _)| tool.clone()).collect(),
            finish: finish.unwrap_or(NOT_RECORDED).to_owned(),
            ..Completion::default()
        });
        self.push(What::ModelCalled(completed(call, 0, reply)));
        if let Some(ending) = ending {
            (self.outcome, self.called_since) = (Some((self.events.len(), ending)), false);
        }
        self.called_since |= !calls.is_empty();
        for (id, tool, arguments) in calls {
            let broken = !arguments.is_object();
            if !broken {
                self.waiting.push(Waiting { id: id.clone(), completion: call, place: self.events.len() });
            }
            let (cause, reason) = if broken {
                ("not_json", "its arguments are not a JSON object")
            } else {
                ("no_result", "no message gives a result of this call")
            };
            let outcome = ToolOutcome::not_executed(cause, reason);
            if broken {
                self.broken.push(id.clone());
            }
            let (began_us, took_us, attempts) = (None, 0, Vec::new());
            let called = ToolCalled { call, id, tool, arguments, outcome, began_us, took_us, attempts };
            self.push(What::ToolCalled(called));
        }
        Ok(())
    }

    fn result(&mut self, message: &serde_json::Map<String, Value>, text: &str) -> Result<(), MessageError> {
        let ids: Vec<&str> = match message.get("tool_call_ids").and_then(Value::as_array) {
            Some(ids) => ids.iter().filter_map(Value::as_str).collect(),
            None => message.get("tool_call_id").and_then(Value::as_str).into_iter().collect(),
        };
        let name = message.get("name").and_then(Value::as_str);
        let outcome = if shape::is_failed(message) {
            ToolOutcome::Failed { message: text.to_owned(), retryable: false }
        } else {
            let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
            ToolOutcome::Ok(ToolResult::other(value))
        };
        if ids.is_empty() {
            return self.result_of(None, name, outcome);
        }
        ids.into_iter().try_for_each(|id| self.result_of(Some(id), name, outcome.clone()))
    }

    fn result_of(&mut self, id: Option<&str>, name: Option<&str>, outcome: ToolOutcome) -> Result<(), MessageError> {
        let tool = |waiting: &Waiting| Some(self.events[waiting.place].what.tool_call()?.tool.as_str());
        // The older `function` role refers to the function's name, not to the call.
        let answers = |waiting: &&Waiting| match id.filter(|id| !id.is_empty()) {
            Some(id) => waiting.id == id,
            None => name.is_none() || tool(waiting) == name,
        };
        // Of calls with equal ids, those of the latest message come first, and of these the first.
        let latest = self.waiting.iter().filter(answers).map(|waiting| waiting.completion).max();
        let found = self.waiting.iter().position(|one| Some(one.completion) == latest && answers(&one));
        let Some(found) = found else {
            let what = id.or(name).unwrap_or("without a name").chars().take(80).collect::<String>();
            if let Some(broken) = self.broken.iter().position(|one| Some(one.as_str()) == id) {
                // The reply to its broken arguments; it did not run.
                self.broken.remove(broken);
                return Ok(());
            }
            return Err(MessageError::NoCall(what));
        };
        let place = self.waiting.remove(found).place;
        if self.open.is_none_or(|open| place < open) {
            // The turn of the call is over: a late result belongs to no turn.
            return Ok(());
        }
        self.got.push((place, self.events.len()));
        if let Some(call) = self.events[place].what.tool_call_mut() {
            call.outcome = outcome;
        }
        Ok(())
    }

    /// Takes the answer of the turn since `open` from its last call of an answering tool, unless words follow it.
    fn answer_by_call(&mut self, open: usize) {
        let calls =
            self.events[open..].iter().enumerate().filter_map(|(at, event)| Some((open + at, event.what.tool_call()?)));
        let calls: Vec<(usize, &ToolCalled)> = calls.collect();
        let is_last = |call: &ToolCalled| calls.iter().all(|(_, other)| other.call <= call.call);
        let answers = |(at, call): &&(usize, &ToolCalled)| {
            let is_accepted = call.arguments.is_object() && !matches!(call.outcome, ToolOutcome::Failed { .. });
            is_accepted && is_last(call) && self.outcome.as_ref().is_none_or(|(ended, _)| at >= ended)
        };
        let Some((place, call)) = calls.iter().filter(answers).rfind(|(_, call)| self.answering.contains(&call.tool))
        else {
            let may_answer = |tool: &str| self.answering.is_empty() && ANSWERING.contains(&tool);
            let last = calls.iter().filter(answers).rfind(|(_, call)| may_answer(&call.tool));
            self.unread_answer = self.unread_answer.take().or_else(|| last.map(|(_, call)| call.tool.clone()));
            return;
        };
        let (place, text) = (*place, words_in(&call.arguments, false).unwrap_or_default());
        self.outcome = Some((place + 1, TurnOutcome::Answered(Answer::text_alone(text))));
        self.called_since = false;
        self.got.retain(|(call, _)| *call != place);
        if let Some(call) = self.events[place].what.tool_call_mut() {
            call.outcome = ToolOutcome::Ok(ToolResult::Responded);
        }
    }

    /// Ends the open turn, if any; `closing` decides whether an unanswered user message is a query.
    fn close(&mut self, closing: Closing) {
        let Some(open) = self.open.take() else { return };
        self.answer_by_call(open);
        let called_since = std::mem::take(&mut self.called_since);
        let got = std::mem::take(&mut self.got);
        if let Some((place, outcome)) = self.outcome.take() {
            let message = "the agent went on calling tools after its last words, and said nothing more";
            let unfinished = || TurnOutcome::Failed { kind: "unfinished".into(), message: message.into() };
            let outcome = if called_since { unfinished() } else { outcome };
            for (call, _) in got.into_iter().filter(|(call, at)| *call < place && *at >= place) {
                if let Some(called) = self.events[call].what.tool_call_mut() {
                    called.outcome = ToolOutcome::not_executed("late_result", "its result came after the answer");
                }
            }
            let what = What::TurnEnded(TurnEnded { took_us: 0, outcome, history: Vec::new(), reply: None });
            let turn = self.turns.saturating_sub(1);
            self.events.insert(place, Event { at_us: 0, conversation: 0, turn, what });
            self.waiting.iter_mut().filter(|one| one.place >= place).for_each(|one| one.place += 1);
        } else if self.turns > 1
            && let [Event { what: What::TurnStarted { query }, .. }] = &self.events[open..]
            && closing.is_no_query(query)
        {
            self.events.pop();
            self.turns -= 1;
        }
    }
}

/// The end of a turn whose answer has no text, which is no answer.
pub(super) fn empty_answer() -> TurnOutcome {
    TurnOutcome::Failed { kind: ANSWER_EMPTY.into(), message: "The agent's answer is empty.".into() }
}

/// A completion of which a source has the reply, and not what was sent.
pub(super) fn completed(call: u32, took_us: u64, reply: Reply) -> ModelCalled {
    ModelCalled {
        service: None,
        call,
        state: NOT_RECORDED.into(),
        took_us,
        first_token_us: None,
        shown: Vec::new(),
        tool_choice: NOT_RECORDED.into(),
        attempts: Vec::new(),
        reply,
    }
}

/// The end of a turn in which the user got no answer.
pub(super) fn no_answer() -> TurnOutcome {
    TurnOutcome::Failed { kind: "no_answer".into(), message: "The user got no answer.".into() }
}

/// Text content of a recognised message.
fn text(content: Option<&Value>) -> Result<String, WrongMember> {
    match content {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(WrongMember::new("content", other, "text or a list of parts")),
    }
}

/// Id, tool and arguments of each call, including the older `function_call`.
fn calls(message: &serde_json::Map<String, Value>) -> Result<Vec<(String, String, Value)>, MessageError> {
    let mut calls = Vec::new();
    match message.get("tool_calls") {
        None | Some(Value::Null) => {}
        Some(Value::Array(listed)) => {
            for (place, call) in (1..).zip(listed) {
                let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
                let (tool, arguments) = match (call.get("function"), call.get("custom")) {
                    (Some(function), _) => function_call(function),
                    (None, Some(custom)) => custom_call(custom),
                    (None, None) => {
                        return Err(MessageError::Call { call: format!("its call {place}"), member: "function" });
                    }
                }
                .ok_or_else(|| MessageError::Call { call: format!("its call {place}"), member: "name" })?;
                calls.push((id.to_owned(), tool, arguments));
            }
        }
        Some(other) => return Err(WrongMember::new("tool_calls", other, "a list").into()),
    }
    if let Some(function) = message.get("function_call").filter(|function| !function.is_null()) {
        let (tool, arguments) = function_call(function)
            .ok_or_else(|| MessageError::Call { call: "its `function_call`".into(), member: "name" })?;
        calls.push((String::new(), tool, arguments));
    }
    Ok(calls)
}

/// Tool and arguments of a call of a custom tool, whose input is text; `None` without a name.
fn custom_call(custom: &Value) -> Option<(String, Value)> {
    let input = custom.get("input").cloned().unwrap_or_default();
    Some((custom.get("name").and_then(Value::as_str)?.to_owned(), serde_json::json!({ "input": input })))
}

/// Tool and arguments of a call; `None` without a name.
fn function_call(function: &Value) -> Option<(String, Value)> {
    let tool = function.get("name").and_then(Value::as_str)?;
    let arguments = match function.get("arguments") {
        None | Some(Value::Null) => Value::Object(serde_json::Map::new()),
        // Some logs have an empty text if a function takes no arguments.
        Some(Value::String(text)) if text.trim().is_empty() => Value::Object(serde_json::Map::new()),
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone())),
        Some(other) => other.clone(),
    };
    Some((tool.to_owned(), arguments))
}

#[cfg(test)]
mod tests;

//! From messages to the events of a trial.
//!
//! A user's message begins a turn, the last message of the agent that calls nothing ends it with an answer. A turn
//! whose last word is a call or a result never ended. The user's closing words count as a query without an answer:
//! nobody can tell a goodbye from an agent that fell silent, except in a conversation that was graded, and so was
//! watched to its end. A greeting before the user's first words is no answer to anything.

use super::record::kind;
use crate::trace::{
    Answer, Completion, Event, ModelCalled, Reply, ToolCalled, ToolOutcome, ToolResult, TurnEnded, TurnOutcome, What,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// The events that `messages` tell.
///
/// # Errors
/// In words, with the message's place from 1: what is not a message, or answers a call that was never made.
pub(super) fn events(
    messages: &[Value],
    roles: &BTreeMap<String, String>,
    model: &str,
    graded: bool,
) -> Result<Vec<Event>, String> {
    let mut telling = TraceBuilder { model: model.to_owned(), ..TraceBuilder::default() };
    let session = What::ConversationStarted { name: "main".into(), session: "main".into(), tenant: None };
    telling.push(session);
    for (place, message) in (1..).zip(messages) {
        telling.tell(message, roles).map_err(|mistake| format!("message {place}: {mistake}"))?;
    }
    telling.close(graded);
    if telling.turns == 0 {
        return Err("nobody asks anything and nobody answers in it".into());
    }
    Ok(telling.events)
}

#[derive(Default)]
struct TraceBuilder {
    events: Vec<Event>,
    model: String,
    turns: u32,
    completions: u32,
    /// Where the open turn begins among the events.
    open: Option<usize>,
    /// How the open turn would end if it ended now.
    outcome: Option<TurnOutcome>,
    /// Calls that wait for a result: id, place among the events.
    waiting: Vec<(String, usize)>,
}

impl TraceBuilder {
    fn push(&mut self, what: What) {
        self.events.push(Event { at_us: 0, conversation: 0, turn: self.turns.saturating_sub(1), what });
    }

    fn tell(&mut self, message: &Value, roles: &BTreeMap<String, String>) -> Result<(), String> {
        let Some(message) = message.as_object() else { return Err(format!("it is {}, not an object", kind(message))) };
        let role = message.get("role").and_then(Value::as_str).ok_or("it has no `role`")?;
        let role = roles.get(role).map_or(role, String::as_str);
        let text = text(message.get("content"))?;
        match role {
            "system" | "developer" => Ok(()),
            "user" => {
                self.ask(text);
                Ok(())
            }
            "assistant" => self.reply(message, text),
            "tool" | "function" => self.result(message, text),
            other => Err(format!(
                "the role `{}` is not known (system, developer, user, assistant, tool): name its meaning in `roles`",
                other.chars().take(40).collect::<String>()
            )),
        }
    }

    fn ask(&mut self, text: String) {
        // Words that follow one another without a reply between them are one query.
        if let Some(open) = self.open.filter(|open| open + 1 == self.events.len())
            && let What::TurnStarted { query } = &mut self.events[open].what
        {
            query.push('\n');
            query.push_str(&text);
            return;
        }
        self.close(false);
        self.begin(text);
    }

    fn begin(&mut self, query: String) {
        self.turns += 1;
        self.open = Some(self.events.len());
        self.push(What::TurnStarted { query });
    }

    fn reply(&mut self, message: &serde_json::Map<String, Value>, text: String) -> Result<(), String> {
        let calls = calls(message)?;
        if self.open.is_none() {
            if calls.is_empty() {
                return Ok(());
            }
            self.begin(String::new());
        }
        let refusal = message.get("refusal").and_then(Value::as_str).map(str::to_owned);
        self.outcome = match (&refusal, calls.is_empty()) {
            (_, false) => None,
            (Some(refusal), true) if text.is_empty() => {
                Some(TurnOutcome::Failed { kind: "refused".into(), message: refusal.clone() })
            }
            (_, true) if text.trim().is_empty() => None,
            (_, true) => Some(TurnOutcome::Answered(Answer {
                text: text.clone(),
                sources: Vec::new(),
                confidence: None,
                used_internal_kb: false,
                used_external_kb: false,
                refused: false,
            })),
        };
        let call = self.completions;
        self.completions += 1;
        self.push(What::ModelCalled(ModelCalled {
            call,
            state: "not recorded".into(),
            took_us: 0,
            first_token_us: None,
            shown: Vec::new(),
            tool_choice: "not recorded".into(),
            attempts: Vec::new(),
            reply: Reply::Completion(Completion {
                model: self.model.clone(),
                text,
                refusal,
                calls: calls.iter().map(|(_, tool, _)| tool.clone()).collect(),
                finish: "not recorded".into(),
                input_tokens: None,
                cached_tokens: None,
                output_tokens: None,
            }),
        }));
        for (id, tool, arguments) in calls {
            self.waiting.push((id.clone(), self.events.len()));
            let outcome =
                ToolOutcome::Failed { message: "no message gives a result of this call".into(), retryable: false };
            let called = ToolCalled { call, id, tool, arguments, outcome, took_us: 0, attempts: Vec::new() };
            self.push(What::ToolCalled(called));
        }
        Ok(())
    }

    fn result(&mut self, message: &serde_json::Map<String, Value>, text: String) -> Result<(), String> {
        let id = message.get("tool_call_id").and_then(Value::as_str);
        let name = message.get("name").and_then(Value::as_str);
        // The older `function` role names the function in place of the call.
        let answers = |waiting: &(String, usize)| match id {
            Some(id) => waiting.0 == id,
            None => matches!(&self.events[waiting.1].what, What::ToolCalled(call) if Some(call.tool.as_str()) == name),
        };
        let Some(found) = self.waiting.iter().rposition(answers) else {
            let what = id.or(name).unwrap_or("without a name").chars().take(80).collect::<String>();
            return Err(format!("it is the result of the call `{what}`, which no message before it makes"));
        };
        let (_, place) = self.waiting.remove(found);
        if let What::ToolCalled(call) = &mut self.events[place].what {
            let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
            call.outcome = ToolOutcome::Ok(ToolResult::other(value));
        }
        self.outcome = None;
        Ok(())
    }

    /// Ends the open turn, if there is one; `graded` at the end of a conversation that somebody watched to its end.
    fn close(&mut self, graded: bool) {
        let Some(open) = self.open.take() else { return };
        if let Some(outcome) = self.outcome.take() {
            self.push(What::TurnEnded(TurnEnded { took_us: 0, outcome, history: Vec::new() }));
        } else if graded && self.turns > 1 && open + 1 == self.events.len() {
            self.events.pop();
            self.turns -= 1;
        }
    }
}

/// The text of a message: a string, or the text parts of a list, with other parts named.
fn text(content: Option<&Value>) -> Result<String, String> {
    match content {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => {
            let part = |part: &Value| match (part.get("text").and_then(Value::as_str), part.get("type")) {
                (Some(text), _) => text.to_owned(),
                (None, Some(Value::String(kind))) => format!("[{kind}]"),
                (None, _) => "[something without a type]".into(),
            };
            Ok(parts.iter().map(part).collect::<Vec<_>>().join("\n"))
        }
        Some(other) => Err(format!("`content` is {}, not text or a list of parts", kind(other))),
    }
}

/// Id, tool and arguments of each call, the older `function_call` too.
fn calls(message: &serde_json::Map<String, Value>) -> Result<Vec<(String, String, Value)>, String> {
    let mut calls = Vec::new();
    match message.get("tool_calls") {
        None | Some(Value::Null) => {}
        Some(Value::Array(listed)) => {
            for (place, call) in (1..).zip(listed) {
                let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
                let function = call.get("function").ok_or_else(|| format!("its call {place} has no `function`"))?;
                let (tool, arguments) = function_call(function).map_err(|what| format!("its call {place} {what}"))?;
                calls.push((id.to_owned(), tool, arguments));
            }
        }
        Some(other) => return Err(format!("`tool_calls` is {}, not a list", kind(other))),
    }
    if let Some(function) = message.get("function_call").filter(|function| !function.is_null()) {
        let (tool, arguments) = function_call(function).map_err(|what| format!("its `function_call` {what}"))?;
        calls.push((String::new(), tool, arguments));
    }
    Ok(calls)
}

fn function_call(function: &Value) -> Result<(String, Value), &'static str> {
    let tool = function.get("name").and_then(Value::as_str).ok_or("has no `name`")?;
    let arguments = match function.get("arguments") {
        None | Some(Value::Null) => Value::Object(serde_json::Map::new()),
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone())),
        Some(other) => other.clone(),
    };
    Ok((tool.to_owned(), arguments))
}

#[cfg(test)]
mod tests;

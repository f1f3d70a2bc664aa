//! Tool calls and their results.

use super::{TraceBuilder, UNSEEN, Waiting, last_call};
use crate::flow::context::micros;
use crate::flow::external::decoder;
use crate::flow::tools::search::external_answer;
use crate::flow::turn::attempts_of;
use crate::provider::chat::{ChatRequest, Message, Role};
use crate::provider::mcp::Ran;
use crate::provider::wire::{attached_passages, is_failed_result};
use crate::provider::{Attempt, SearchAnswer};
use crate::trace::{self, ToolCalled, ToolOutcome, ToolResult, What};
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl TraceBuilder<'_> {
    /// Reads the results of pending calls from a request.
    pub(super) fn results(&mut self, asked: &ChatRequest) {
        for (message, call) in self.answered(asked) {
            let outcome = self.outcome_in(message, &call);
            self.called(call, outcome);
        }
        self.results_in_text(asked);
        self.left_out_calls(asked);
    }

    /// The outcome of a call by the message with its result.
    pub(super) fn outcome_in(&mut self, message: &Message, call: &Waiting) -> ToolOutcome {
        let result = with_text(attached_passages(message), &message.content);
        if is_failed_result(message) && !matches!(call.ran, Some(Ran::Done(_))) {
            let (message, retryable) = decoder::error(&result).unwrap_or((message.content.clone(), true));
            return ToolOutcome::Failed { message, retryable };
        }
        // The server knows whether its tool failed, and where its passages come from; the agent's text may hide it.
        let is_plain = self.role(&call.tool) == trace::Role::Knowledge && decoder::passages(&result).is_none();
        match &call.ran {
            Some(Ran::Failed(_)) => self.ran(call),
            Some(Ran::Done(_)) if is_plain => self.ran(call),
            _ => self.outcome(call, result),
        }
    }

    /// The pending calls that a request answers, with its messages. Ids may repeat in a conversation, so what the last request
    /// had already said answers none of them, and of several messages with one id the last answers the last call. A call
    /// whose id is not there is found by its tool and arguments. They come in the order of the calls, whichever was done first.
    fn answered<'m>(&mut self, asked: &'m ChatRequest) -> Vec<(&'m Message, Waiting)> {
        let old = self.known_messages(asked);
        let mut waiting: Vec<Option<Waiting>> = std::mem::take(&mut self.waiting).into_iter().map(Some).collect();
        let mut found = Vec::new();
        for (place, message) in asked.messages.iter().enumerate().skip(old).rev() {
            let Some(id) = message.answers.as_ref().filter(|_| message.role == Role::Tool) else { continue };
            // Parallel conversations may have calls of one id.
            let made = last_call(&asked.messages[..place], id);
            let is_it = |call: &Waiting| made.is_some_and(|made| call.is_made_by(made));
            let last =
                |fits: &dyn Fn(&Waiting) -> bool| waiting.iter().rposition(|call| call.as_ref().is_some_and(fits));
            let exact = last(&|call| call.id == *id && is_it(call));
            // Clients make up ids where a model gives none. No completion has such an id.
            let renamed = || {
                let is_new = !self.ids.contains_key(id);
                last(&|call| is_new && is_it(call) && last_call(&asked.messages, &call.id).is_none())
            };
            let known = exact.or_else(|| last(&|call| call.id == *id)).or_else(renamed);
            let Some((known, mut call)) = known.and_then(|known| Some((known, waiting[known].take()?))) else {
                continue;
            };
            // Where calls share an id, the one that stands before the result may be another of the model's.
            if let Some(made) = made.filter(|made| !self.is_of_model(made)) {
                call.shown_as(made);
            }
            found.push((known, (message, call)));
        }
        self.waiting = waiting.into_iter().flatten().collect();
        found.sort_by_key(|(known, _)| *known);
        found.into_iter().map(|(_, answered)| answered).collect()
    }

    /// Number of messages at the beginning of a request that the last one had too.
    pub(super) fn known_messages(&self, asked: &ChatRequest) -> usize {
        self.before.iter().zip(&asked.messages).take_while(|(earlier, now)| earlier == now).count()
    }

    pub(super) fn outcome(&mut self, call: &Waiting, result: Value) -> ToolOutcome {
        if let Some((message, retryable)) = decoder::error(&result) {
            return ToolOutcome::Failed { message, retryable };
        }
        ToolOutcome::Ok(match self.role(&call.tool) {
            trace::Role::Knowledge => {
                let kb_id = call.arguments.get("kb_id").and_then(Value::as_str).unwrap_or_default().to_owned();
                match decoder::search(decoder::query(&call.arguments), kb_id, &result) {
                    None => ToolResult::other(result),
                    Some(search) => ToolResult::Search(search),
                }
            }
            trace::Role::External => match call.found.clone().or_else(|| decoder::pages(&result)) {
                Some(found) => self.external(call, &result, found),
                None => ToolResult::other(result),
            },
            trace::Role::Index => {
                let mut entry = decoder::indexed(&call.arguments, &result);
                if entry.result.is_empty() {
                    entry.result = self.last_external.clone().unwrap_or_default();
                } else if let Some(found) = self.found_page(&entry.result) {
                    entry.result = found;
                }
                ToolResult::Indexed(entry)
            }
            trace::Role::Respond => ToolResult::Responded,
            trace::Role::None => ToolResult::other(result),
        })
    }

    pub(super) fn external(&mut self, call: &Waiting, result: &Value, found: SearchAnswer) -> ToolResult {
        self.externals += 1;
        let id = decoder::result_id(result).unwrap_or_else(|| format!("result-{}", self.externals));
        self.last_external = Some(id.clone());
        ToolResult::External(external_answer(id, decoder::query(&call.arguments), found))
    }

    /// The external result of the turn that a page of that name is in.
    fn found_page(&self, name: &str) -> Option<String> {
        let results = self.events.iter().rev().filter_map(|(_, what)| what.given()?.external());
        let mut with_page = results.filter(|found| found.citations.iter().any(|page| page.url == name));
        with_page.next().map(|found| found.result.clone())
    }

    /// The outcome of a call by what its MCP server said.
    pub(super) fn ran(&mut self, call: &Waiting) -> ToolOutcome {
        match &call.ran {
            Some(Ran::Done(result)) => {
                let result = self.words.body(result);
                self.outcome(call, result)
            }
            Some(Ran::Failed(why)) => ToolOutcome::Failed { message: self.words.text(why), retryable: true },
            Some(Ran::Asks) | None => ToolOutcome::Unseen { reason: UNSEEN.to_owned() },
        }
    }

    /// Records a call whose outcome is known, and the retry if it is one.
    pub(super) fn called(&mut self, call: Waiting, outcome: ToolOutcome) {
        let worked = matches!(outcome, ToolOutcome::Ok(_));
        let tool = call.tool.clone();
        let completion = (!call.id.is_empty()).then_some(call.completion);
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
        let took = call.took();
        let called = ToolCalled {
            call: call.completion,
            id: call.id,
            tool: call.tool,
            arguments: call.arguments,
            outcome,
            began_us: None,
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
            self.retries.called(&tool, completion, (!worked).then_some("tool_failed"))
        };
        if let Some(retried) = booked {
            self.push(What::Retried(retried));
        }
        if responds && !worked && !unseen {
            self.retries.reminded(&tool, "invalid_arguments");
        }
    }
}

/// A result by its text, and the passages beside it.
fn with_text(mut attached: Vec<Value>, text: &str) -> Value {
    let result = decoder::document(text);
    if attached.is_empty() || decoder::passages(&result).is_some() {
        return result;
    }
    if !text.trim().is_empty() {
        attached.push(json!({"id": "text", "text": text}));
    }
    Value::Array(attached)
}

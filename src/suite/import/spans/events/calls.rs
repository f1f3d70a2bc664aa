//! Calls of tools: each counts once, whether the completion that asked for it, its run or a later input shows it.

use super::Events;
use crate::provider::tool_result;
use crate::trace::spans::{Call, Ran, Said, SpanOperation};
use crate::trace::{Event, ToolCalled, ToolOutcome, ToolResult, What};
use serde_json::Value;
use std::collections::BTreeSet;

impl Events<'_> {
    /// Adds a call of the model, without a result.
    pub(super) fn asked_for(&mut self, call: u32, at_ns: u64, asked: &Call) {
        let outcome = if asked.arguments.is_object() {
            ToolOutcome::not_executed("no_result", "no span and no message gives a result of this call")
        } else {
            ToolOutcome::not_executed("not_json", "its arguments are not a JSON object")
        };
        self.waiting.push(self.events.len());
        let called = ToolCalled::of(call, &asked.id, &asked.tool, asked.arguments.clone(), outcome);
        self.push(at_ns, What::ToolCalled(called));
    }

    /// Adds a call that the input of a completion shows in its turn, unless spans show it: its completion, its run or its
    /// search. `ids` are those of all calls that the input shows, and `claimed` the events that are known to be some of them.
    pub(super) fn shown(&mut self, at_ns: u64, shown: &Call, ids: &BTreeSet<&str>, claimed: &mut BTreeSet<usize>) {
        let free = |fits: &dyn Fn(&What) -> bool| {
            (self.first..self.events.len()).find(|at| !claimed.contains(at) && fits(&self.events[*at].what))
        };
        let has_id = !shown.id.is_empty();
        let by_id = |what: &What| matches!(what, What::ToolCalled(call) if has_id && call.id == shown.id);
        // A run has no id, or one of its framework.
        let of_tool = |what: &What, fits: &dyn Fn(&ToolCalled) -> bool| {
            what.tool_call().is_some_and(|call| {
                call.tool == shown.tool
                    && !(has_id && ids.contains(call.id.as_str()) && !call.id.is_empty())
                    && fits(call)
            })
        };
        // A run may have defaults beside what was asked.
        let same = |what: &What| of_tool(what, &|call| holds(&call.arguments, &shown.arguments));
        let alone = |what: &What| of_tool(what, &|call| !has_id || call.id.is_empty() || call.arguments.is_null());
        let query = tool_result::query(&shown.arguments);
        let search = |what: &What| matches!(what, What::Searched(search) if !query.is_empty() && search.query == query);
        let known = free(&by_id).or_else(|| free(&same)).or_else(|| free(&alone)).or_else(|| free(&search));
        claimed.insert(known.unwrap_or(self.events.len()));
        let Some(place) = known else {
            self.called_since = true;
            return self.asked_for(self.completions.saturating_sub(1), at_ns, shown);
        };
        let event = &mut self.events[place];
        match &mut event.what {
            What::ToolCalled(call) => {
                if call.id.is_empty() {
                    call.id.clone_from(&shown.id);
                }
                if call.arguments.is_null() {
                    call.arguments.clone_from(&shown.arguments);
                    self.without_arguments = self.without_arguments.saturating_sub(1);
                }
            }
            What::Searched(search) => {
                let outcome = std::mem::replace(&mut search.outcome, ToolOutcome::Ok(ToolResult::other(Value::Null)));
                let (call, took_us) = (self.completions.saturating_sub(1), search.took_us);
                let called = ToolCalled::of(call, &shown.id, &shown.tool, shown.arguments.clone(), outcome);
                event.what = What::ToolCalled(ToolCalled { began_us: Some(event.at_us), took_us, ..called });
            }
            _ => {}
        }
    }

    /// Gives the calls of the last completion the ids of their results if an instrumentation writes other ids in results
    /// than in calls: as many unknown ids as there are calls without a result. A result with a name belongs to the call of
    /// that tool. Results without names are matched in order if all calls are of one tool; otherwise their calls are
    /// undetermined, because results may come in the order in which they were ready.
    pub(super) fn take_ids(&mut self, results: &[&Said]) {
        let is_known = |id: &str| {
            let is_it = |event: &Event| matches!(&event.what, What::ToolCalled(call) if call.id == id);
            self.unclear.contains(id) || self.events.iter().any(is_it)
        };
        let id = |said: &&Said| said.answers.clone().filter(|id| !id.is_empty() && !is_known(id));
        let mut unknown: Vec<(String, Option<&str>)> =
            results.iter().filter_map(|said| Some((id(said)?, said.tool.as_deref()))).collect();
        let is_last = |place: &usize| {
            let called = |call: &ToolCalled| call.call + 1 == self.completions && !call.id.is_empty();
            *place >= self.first && matches!(&self.events[*place].what, What::ToolCalled(call) if called(call))
        };
        let mut waiting: Vec<usize> = self.waiting.iter().copied().filter(is_last).collect();
        if waiting.len() != unknown.len() {
            return;
        }
        let mut named: Vec<(usize, String)> = Vec::new();
        waiting.retain(|place| {
            let of_call = unknown.iter().position(|(_, tool)| *tool == Some(self.tool(*place)));
            named.extend(of_call.map(|at| (*place, unknown.remove(at).0)));
            of_call.is_none()
        });
        if waiting.iter().all(|place| self.tool(*place) == self.tool(waiting[0])) {
            named.extend(waiting.drain(..).zip(unknown.drain(..).map(|(id, _)| id)));
        }
        self.unclear.extend(unknown.into_iter().map(|(id, _)| id));
        for (place, id) in named {
            if let Some(call) = self.events[place].what.tool_call_mut() {
                call.id = id;
            }
        }
        for place in waiting {
            if let Some(call) = self.events[place].what.tool_call_mut()
                && call.arguments.is_object()
            {
                let reason = "the ids of the results are of no call, and nothing says which belongs to it";
                call.outcome = ToolOutcome::Unseen { reason: reason.into() };
            }
        }
    }

    fn tool(&self, place: usize) -> &str {
        if let What::ToolCalled(call) = &self.events[place].what { &call.tool } else { "" }
    }

    /// Takes the first call without a result that has this id, or this name where one of the two has no id: of this turn,
    /// else of an earlier one. Of several in the turn, the one with these arguments comes first.
    pub(super) fn call_of(&mut self, id: Option<&str>, tool: Option<&str>, with: Option<&Value>) -> Option<usize> {
        let fits = |place: &usize| {
            self.events[*place].what.tool_call().is_some_and(|call| {
                match id.filter(|id| !id.is_empty() && !call.id.is_empty()) {
                    Some(id) => call.id == id,
                    None => tool.is_none_or(|tool| call.tool == tool),
                }
            })
        };
        let is_own = |place: &usize| *place >= self.first && fits(place);
        let is_same = |place: &usize| matches!(&self.events[*place].what, What::ToolCalled(call) if with == Some(&call.arguments));
        let own = self.waiting.iter().position(|place| is_own(place) && is_same(place));
        let own = own.or_else(|| self.waiting.iter().position(is_own));
        let found = own.or_else(|| self.waiting.iter().position(fits))?;
        Some(self.waiting.remove(found))
    }

    /// Calls of the turn with an id.
    pub(super) fn calls_with<'e>(&'e self, id: Option<&'e str>) -> impl Iterator<Item = usize> + 'e {
        let id = id.filter(|id| !id.is_empty());
        let is_it = move |call: &ToolCalled| Some(call.id.as_str()) == id;
        (self.first..self.events.len()).filter(move |at| self.events[*at].what.tool_call().is_some_and(is_it))
    }

    /// A call of the turn that ran, by a span that does not say with which result.
    pub(super) fn without_result(&self, id: Option<&str>) -> Option<usize> {
        let is_nothing = |outcome: &ToolOutcome| matches!(outcome, ToolOutcome::Ok(ToolResult::Other(value)) if value.is_null() || *value == ToolResult::UNSHOWN);
        let is_it = |at: &usize| self.events[*at].what.tool_call().is_some_and(|call| is_nothing(&call.outcome));
        self.calls_with(id).find(is_it)
    }

    pub(super) fn ran(&mut self, place: usize, done: &SpanOperation, ran: &Ran) {
        let same = |events: &Self| events.calls_with(ran.id.as_deref()).collect::<Vec<_>>();
        let known = self.call_of(ran.id.as_deref(), Some(&ran.tool), ran.arguments.as_ref());
        // By another clock, its result may have been read before it.
        let is_new = |events: &Self, at: &usize| !events.runs.values().any(|event| event == at);
        let event = known.or_else(|| same(self).into_iter().find(|at| is_new(self, at)));
        if event.is_some_and(|event| event < self.first) {
            self.late += 1;
            return;
        }
        // One call may run more than once.
        let asked = |at: &usize| Some(self.events[*at].what.tool_call()?.arguments.clone());
        let arguments = ran.arguments.clone().or_else(|| same(self).last().and_then(asked)).unwrap_or_default();
        self.without_arguments += usize::from(event.is_none() && arguments.is_null());
        let outcome = match (&done.failed, &ran.result) {
            (Some(message), _) => ToolOutcome::Failed { message: message.clone(), retryable: false },
            (None, result) => ToolOutcome::Ok(ToolResult::other(result.clone().unwrap_or_default())),
        };
        let event = event.unwrap_or_else(|| {
            let (call, id) = (self.completions.saturating_sub(1), ran.id.as_deref().unwrap_or_default());
            let called = ToolCalled::of(call, id, &ran.tool, arguments, outcome.clone());
            self.push(done.at_ns, What::ToolCalled(called));
            self.events.len() - 1
        });
        self.runs.insert(place, event);
        self.got.push((event, self.events.len()));
        let began_us = self.began_us(done);
        if let What::ToolCalled(call) = &mut self.events[event].what {
            if ran.result.is_some() || done.failed.is_some() || !matches!(call.outcome, ToolOutcome::Ok(_)) {
                call.outcome = outcome;
            }
            (call.began_us, call.took_us) = (began_us, done.took_us);
            // Some instrumentations lose the arguments of calls that were streamed.
            let is_empty = call.arguments.as_object().is_none_or(serde_json::Map::is_empty);
            match &ran.arguments {
                Some(arguments) if is_empty => call.arguments.clone_from(arguments),
                Some(arguments) if *arguments == call.arguments => {}
                Some(arguments) if ran_with(&mut call.arguments, arguments) => self.other_values += 1,
                Some(_) => self.other_names += 1,
                // It ran, so they are cut off in its span alone.
                None if call.arguments.is_string() => {
                    call.arguments = Value::Null;
                    self.without_arguments += 1;
                }
                None => {}
            }
            if call.id.is_empty() {
                call.id = ran.id.clone().unwrap_or_default();
            }
        }
    }
}

/// Whether arguments have all of `asked`, and perhaps more.
fn holds(arguments: &Value, asked: &Value) -> bool {
    match (arguments.as_object(), asked.as_object()) {
        (Some(arguments), Some(asked)) => asked.iter().all(|(name, value)| arguments.get(name) == Some(value)),
        _ => arguments == asked,
    }
}

/// Whether an instrumentation wrote something else in the place of a value: a mark that it is secret, or its beginning.
fn is_withheld(value: &Value) -> bool {
    let withheld = |text: &str| {
        let text = text.trim();
        let is_mark = text.starts_with(['[', '<', '*', '{']) && text.ends_with([']', '>', '*', '}']);
        is_mark || text.ends_with("...") || text.ends_with('…') || text.to_lowercase().contains("redacted")
    };
    value.as_str().is_some_and(withheld)
}

/// Completes the arguments of a call by those that its run had, which count; `false` if none has the name of one of the
/// call: then they are written in another form, not as the tool has them.
fn ran_with(asked: &mut Value, ran: &Value) -> bool {
    let (Some(asked), Some(ran)) = (asked.as_object_mut(), ran.as_object()) else { return false };
    if !ran.keys().any(|name| asked.contains_key(name)) {
        return false;
    }
    for (name, value) in ran.iter().filter(|(_, value)| !is_withheld(value)) {
        let read = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        if read.is_none() || read.as_ref() != asked.get(name) {
            asked.insert(name.clone(), value.clone());
        }
    }
    true
}

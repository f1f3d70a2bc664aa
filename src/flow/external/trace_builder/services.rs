//! Events of exchanges with services other than the model: searches, tools of MCP servers, vectors, declared services.

use super::{TraceBuilder, Waiting};
use crate::flow::context::micros;
use crate::flow::external::groups::Group;
use crate::flow::external::{UNASKED, decoder};
use crate::flow::turn::attempts_of;
use crate::provider::mcp::{self, Ran};
use crate::provider::{Attempt, Failure, observed};
use crate::trace::spans::is_tool;
use crate::trace::{self, FlowSearch, Requested, ToolOutcome, What};
use serde_json::{Value, json};
use std::time::Duration;

/// Reason for the outcome of a request for vectors that the agent sent by itself.
const UNSEEN_VECTORS: &str = "the agent asked for vectors by itself, and what it found with them is not shown";

impl TraceBuilder<'_> {
    pub(super) fn search(&mut self, group: &Group) {
        let Some((attempts, result)) = group.observed(observed::search_answer) else { return };
        let within = self.pass(&attempts);
        let found = result.as_ref().ok().cloned();
        let question = observed::question(&group.request);
        let free = |call: &Waiting| self.role(&call.tool) == trace::Role::External && call.attempts.is_empty();
        let asks = |call: &Waiting| question.contains(&decoder::query(&call.arguments));
        let place = self.waiting.iter().position(|call| free(call) && asks(call));
        let place = place.or_else(|| self.waiting.iter().position(free));
        if let Some(call) = place.and_then(|place| self.waiting.get_mut(place)) {
            call.requested(attempts, within);
            call.found = found;
            return;
        }
        // The agent searches by itself, without a call of the model.
        let own = self.roles.iter().find(|(_, role)| **role == trace::Role::External);
        let (id, tool) = (String::new(), own.map_or(UNASKED, |(tool, _)| tool).to_owned());
        let (completion, arguments) = (self.completions.saturating_sub(1), json!({ "query": question }));
        let mut call = Waiting::new(within.start, completion, (id, tool, arguments));
        call.requested(attempts, within);
        let outcome = match (found, &result) {
            (Some(found), _) => ToolOutcome::Ok(self.external(&call, &Value::Null, found)),
            (None, Err(failure)) => failed_with(failure),
            (None, Ok(_)) => return,
        };
        self.called(call, outcome);
    }

    /// Calls of an MCP server's tool belong to a pending call of the model, or to the agent itself.
    pub(super) fn tool(&mut self, group: &Group) {
        let Some((tool, arguments)) = mcp::called(&group.request.body) else { return };
        let Some((attempts, result)) = group.observed(observed::tool_answer) else { return };
        let ran = result.unwrap_or_else(|failure| Ran::Failed(failure.message));
        let within = self.pass(&attempts);
        let free = |call: &Waiting| is_tool(&call.tool, tool) && !matches!(call.ran, Some(Ran::Done(_)));
        let place = self.waiting.iter().position(|call| free(call) && call.arguments == arguments);
        let place = place.or_else(|| self.waiting.iter().position(free));
        let pending = place.and_then(|place| self.waiting.get_mut(place));
        // What the user approved was asked for in an earlier turn.
        let place = self.open.iter().position(|call| free(call) && call.arguments == arguments);
        let place = place.or_else(|| self.open.iter().position(free));
        let pending = pending.or_else(|| place.and_then(|place| self.open.get_mut(place)));
        if let Some(call) = pending {
            // A guard or the user may have changed what the model asked for.
            call.arguments = arguments;
            call.requested(attempts, within);
            call.ran = Some(ran);
            return;
        }
        if ran == Ran::Asks {
            return;
        }
        let (id, completion, tool) = (String::new(), self.completions.saturating_sub(1), tool.to_owned());
        let mut call = Waiting::new(within.start, completion, (id, tool, arguments));
        call.requested(attempts, within);
        call.ran = Some(ran);
        let outcome = self.ran(&call);
        self.called(call, outcome);
    }

    /// Adds attempts to the pending call that they are probably made for: a search, or a call of a tool without a role.
    /// Returns them and the time at which they began if there is none.
    fn within_call(&mut self, attempts: Vec<Attempt>) -> Option<(Duration, Vec<Attempt>)> {
        let within = self.pass(&attempts);
        let of_role = |role| self.waiting.iter().position(|call| self.role(&call.tool) == role);
        let place = of_role(trace::Role::Knowledge).or_else(|| of_role(trace::Role::None));
        match place.and_then(|place| self.waiting.get_mut(place)) {
            Some(call) => {
                call.requested(attempts, within);
                None
            }
            None => Some((within.start, attempts)),
        }
    }

    /// Vectors are requested within a search that the model asked for, or by the agent itself. What it does with the latter
    /// is not shown, so only failures are recorded, and the first success after one.
    pub(super) fn vectors(&mut self, group: &Group) {
        let Some((attempts, result)) = group.observed(observed::vectors) else { return };
        let Some((at, attempts)) = self.within_call(attempts) else { return };
        let failed = attempts.iter().any(|one| one.cause.is_some());
        if !failed && !self.without_vectors {
            return;
        }
        self.without_vectors = result.is_err();
        let outcome = match &result {
            Ok(()) => ToolOutcome::Unseen { reason: UNSEEN_VECTORS.to_owned() },
            Err(failure) => failed_with(failure),
        };
        let query = observed::embedded_text(&group.request);
        let took_us = attempts.iter().map(|one| micros(one.took)).sum();
        let search = FlowSearch { query, outcome, took_us, attempts: attempts_of(&attempts) };
        self.events.push((at, What::Searched(search)));
        self.transport(group.request.service.as_str(), &attempts);
    }

    /// Requests to a declared service belong to a pending call of the model, or to the agent itself.
    pub(super) fn declared(&mut self, group: &Group) {
        let request = &group.request;
        let Some((attempts, result)) = group.observed(observed::declared_answer) else { return };
        let Some((at, attempts)) = self.within_call(attempts) else { return };
        let path = request.path.split('?').next().unwrap_or_default();
        let requested = Requested {
            service: request.service.as_str().to_owned(),
            method: request.method.to_owned(),
            path: self.words.text(path),
            failed: result.err().map(|failure| failure.message),
            took_us: attempts.iter().map(|one| micros(one.took)).sum(),
            attempts: attempts_of(&attempts),
        };
        self.events.push((at, What::Requested(requested)));
        self.transport(request.service.as_str(), &attempts);
    }
}

fn failed_with(failure: &Failure) -> ToolOutcome {
    ToolOutcome::Failed { message: failure.message.clone(), retryable: failure.kind.is_transient() }
}

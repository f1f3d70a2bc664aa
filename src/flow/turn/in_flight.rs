//! Records calls of tools and the flow's own searches, also those that are cut off at the turn's time limit.

use super::{Agent, Turn, micros};
use crate::flow::tools::{Failure, Refusal, ToolError, search};
use crate::flow::{Abort, Status};
use crate::knowledge::{Found, KnowledgeBase};
use crate::provider;
use crate::provider::chat::{Message, ToolCall};
use crate::trace::{Attempt, FlowSearch, ModelCalled, ToolCalled, ToolOutcome, VectorUsage, What};
use crate::transport::Service;
use serde_json::Value;

/// A call in flight.
pub(super) enum InFlight {
    Model(ModelCalled),
    Tool(ToolCalled),
    Search(FlowSearch),
}

impl<A: Agent> Turn<'_, A> {
    /// Books the repeated HTTP attempts of one request.
    pub(in crate::flow) fn book_transport(&mut self, target: &str, attempts: &[provider::Attempt]) {
        let attempts: Vec<_> =
            attempts.iter().map(|one| (one.cause.map(provider::ErrorKind::as_str), one.cause.is_none())).collect();
        for retried in self.retries.transport(target, &attempts) {
            self.push(self.env.clock.now(), What::Retried(retried));
        }
    }

    /// Searches a base, under its declared name, without a call by the model: at most `top_k` passages, best first.
    /// `None` if the search failed; the failure is recorded.
    #[cfg_attr(not(test), allow(dead_code, reason = "for flows that search themselves, as the worked example does"))]
    pub(in crate::flow) async fn search(
        &mut self,
        (name, base): (&str, &dyn KnowledgeBase),
        query: &str,
        top_k: usize,
    ) -> Result<Option<Vec<Found>>, Abort> {
        let begun = FlowSearch { query: query.to_owned(), outcome: ran_out(), took_us: 0, attempts: Vec::new() };
        self.in_flight = Some((self.env.clock.now(), InFlight::Search(begun)));
        let (found, outcome, attempts) = match search::passages(self.env, base, query, top_k).await {
            Err(ToolError::Abort(abort)) => return Err(abort),
            Err(ToolError::Refused(Refusal { reason: message, .. })) => {
                (None, ToolOutcome::Failed { message, retryable: false }, Vec::new())
            }
            Err(ToolError::Failed(failure)) => {
                let Failure { message, transient: retryable, sent, .. } = *failure;
                (None, ToolOutcome::Failed { message, retryable }, sent.attempts)
            }
            Ok((found, attempts)) => {
                let hits = found.iter().map(search::hit).collect();
                (Some(found), ToolOutcome::Ok(search::result(query.to_owned(), name.to_owned(), hits)), attempts)
            }
        };
        let Some((at, InFlight::Search(mut search))) = self.in_flight.take() else { return Ok(found) };
        search.took_us = micros(self.env.clock.now().saturating_sub(at));
        search.outcome = outcome;
        search.attempts = attempts_of(&attempts);
        self.push(at, What::Searched(search));
        self.book_transport("knowledge", &attempts);
        Ok(found)
    }

    /// Notes the start of a tool call, for the record of a turn that is cut off during it.
    pub(in crate::flow) fn tool_begins(&mut self, completion: u32, call: &ToolCall, arguments: &Value) {
        let (conversation, turn, tool) = (self.conversation.ordinal, self.number, call.name.as_str());
        self.env.notify(&Status::ToolStarted { conversation, turn, tool, arguments });
        let called = ToolCalled::of(completion, &call.id, &call.name, arguments.clone(), ran_out());
        self.in_flight = Some((self.env.clock.now(), InFlight::Tool(called)));
    }

    /// Records the end of the started call and adds its result as a message.
    pub(in crate::flow) fn tool_ends(&mut self, outcome: ToolOutcome, message: String, attempts: &[provider::Attempt]) {
        let Some((at, InFlight::Tool(mut called))) = self.in_flight.take() else { return };
        called.took_us = micros(self.env.clock.now().saturating_sub(at));
        called.outcome = outcome;
        called.attempts = attempts_of(attempts);
        self.say(Message::tool_result(called.id.clone(), message));
        self.push(at, What::ToolCalled(called));
    }

    /// Records calls in flight when the turn reaches its time limit.
    pub(in crate::flow) fn cut_off(&mut self) {
        let Some((at, what)) = self.in_flight.take() else { return };
        let took_us = micros(self.env.clock.now().saturating_sub(at));
        let attempts = attempts_of(&self.env.refused_since(at));
        match what {
            InFlight::Model(called) => self.push(at, What::ModelCalled(ModelCalled { took_us, attempts, ..called })),
            InFlight::Tool(called) => self.push(at, What::ToolCalled(ToolCalled { took_us, attempts, ..called })),
            InFlight::Search(search) => self.push(at, What::Searched(FlowSearch { took_us, attempts, ..search })),
        }
    }
}

/// Reason for a call cut off at the turn's time limit.
pub(super) const RAN_OUT: &str = "the turn's time ran out";

fn ran_out() -> ToolOutcome {
    ToolOutcome::Failed { message: RAN_OUT.into(), retryable: false }
}

pub(in crate::flow) fn attempts_of(attempts: &[provider::Attempt]) -> Vec<Attempt> {
    let recorded = attempts.iter().map(|one| Attempt {
        // A search by vectors calls two services: the tool itself names the other one.
        service: matches!(one.service, Service::Embeddings | Service::Declared(_) | Service::Provider(_))
            .then(|| one.service.as_str().to_owned()),
        status: one.status,
        cause: one.cause.map(|cause| cause.as_str().to_owned()),
        took_us: micros(one.took),
        wait_us: one.wait.map(micros),
        declared_fault: one.declared_fault,
        held: one.held.map(|held| held.as_str().to_owned()),
        vectors: one
            .vectors
            .as_ref()
            .map(|usage| VectorUsage { model: usage.model.clone(), input_tokens: usage.input_tokens }),
    });
    recorded.collect()
}

//! Events of exchanges with the model, and of the feedback that the agent gives it.

use super::{TraceBuilder, Waiting, in_text};
use crate::flow::context::micros;
use crate::flow::external::decoder;
use crate::flow::external::groups::Group;
use crate::flow::external::shown::{continued, digests};
use crate::flow::turn::{attempts_of, completion_of};
use crate::platform::distinct::add_distinct;
use crate::provider::chat::{ChatRequest, Message, Role};
use crate::provider::observed;
use crate::provider::wire::{attached_passages, hosted};
use crate::trace::{self, FedBack, ModelCalled, What};
use crate::transport::Service;
use serde_json::Value;
use std::time::Duration;

/// State of every completion: an external agent declares none.
const STATE: &str = "unknown";

/// What a message tells the model: its text, and the passages beside it as a JSON list.
pub(super) fn words(message: &Message) -> impl Iterator<Item = String> {
    let attached = attached_passages(message);
    let listed = (!attached.is_empty()).then(|| Value::Array(attached).to_string());
    std::iter::once(message.content.clone()).chain(listed)
}

impl TraceBuilder<'_> {
    pub(super) fn model(&mut self, group: &Group) {
        let Some((attempts, result)) = group.observed(observed::completion) else { return };
        let asked = observed::asked(&group.request);
        if let Some(asked) = &asked {
            add_distinct(self.offered.get_or_insert_default(), asked.tools.iter().map(|tool| tool.name.clone()));
            for (tool, arguments) in asked.tools.iter().filter_map(|tool| Some((tool, tool.arguments()?))) {
                self.parameters.entry(tool.name.clone()).or_default().extend(arguments.cloned());
            }
            let (dialect, body) = (group.request.profile.name, &group.request.body);
            self.of_provider.extend(hosted::offered(dialect, body));
            self.offers_unnamed |= hosted::offers_unnamed(body);
            self.late_results(asked);
            self.written_calls(asked);
            self.told(&asked.messages);
            self.results(asked);
            if self.waiting.iter().any(|call| self.role(&call.tool) == trace::Role::Knowledge) {
                let told = |message: &&Message| matches!(message.role, Role::System | Role::User);
                let earlier: Vec<String> = self.before.iter().flat_map(words).collect();
                let new = asked.messages.iter().filter(told).flat_map(words).filter(|said| !earlier.contains(said));
                self.texts.extend(new);
            }
            self.feedback(asked);
            self.retries.asked();
            self.before.clone_from(&asked.messages);
        }
        let took: Duration = attempts.iter().map(|one| one.took).sum();
        let earlier: Duration = attempts.iter().rev().skip(1).map(|one| one.took).sum();
        let is_offered_tools = asked.as_ref().is_none_or(|asked| !asked.tools.is_empty());
        let written = match &result {
            Ok(response) if response.calls.is_empty() && !is_offered_tools => in_text::call(&response.content),
            _ => None,
        };
        let reply = match &result {
            Ok(response) => {
                let mut completion = completion_of(response);
                completion.calls.extend(written.iter().map(|(tool, _)| tool.clone()));
                trace::Reply::Completion(completion)
            }
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
            first_token_us: attempts.last().and_then(|last| last.first_token).map(|first| micros(earlier + first)),
            shown: asked.iter().flat_map(|asked| &asked.messages).flat_map(|one| digests(self.known, one)).collect(),
            tool_choice: asked
                .as_ref()
                .map_or_else(|| "unknown".to_owned(), |asked| asked.tool_choice.for_trace(&asked.tools)),
            attempts: attempts_of(&attempts),
            reply,
        }));
        self.at += took;
        self.transport(service.as_str(), &attempts);
        let Ok(response) = &result else { return };
        self.hosted(group, ordinal);
        if let Some(written) = written {
            return self.called_in_text(written, &response.content, ordinal);
        }
        if response.calls.is_empty() {
            self.slipped = Some(if response.content.trim().is_empty() { "missing_call" } else { "free_text" });
        }
        self.ids.extend(response.calls.iter().map(|call| call.id.clone()).zip(self.made.len()..));
        self.made.extend(response.calls.iter().map(|call| (call.name.clone(), decoder::document(&call.arguments))));
        self.waiting.extend(response.calls.iter().map(|call| {
            let arguments = decoder::document(&call.arguments);
            Waiting::new(self.at, ordinal, (call.id.clone(), call.name.clone(), arguments))
        }));
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

    /// Tools that `text` names: first those with a role, in the order of a turn, then the other offered ones.
    fn named(&self, text: &str) -> Vec<&str> {
        let with_role =
            trace::Role::GIVEN.into_iter().flat_map(|role| self.roles.iter().filter(move |(_, own)| **own == role));
        let others = self.offered.iter().flatten().filter(|tool| !self.roles.contains_key(*tool));
        let all = with_role.map(|(tool, _)| tool).chain(others);
        all.map(String::as_str).filter(|tool| text.contains(tool)).collect()
    }
}

//! Calls the model within a turn, records the completion, and adds the model's message.

use super::in_flight::{InFlight, RAN_OUT, attempts_of};
use super::{Agent, Turn, micros};
use crate::flow::frame::{Failure, Stop};
use crate::flow::machine::Word;
use crate::flow::{Abort, Status};
use crate::provider::ProviderError;
use crate::provider::chat::{
    ChatRequest, ChatResponse, Finish, Message, Role, ToolCall, ToolChoice, ToolDefinition, Usage,
};
use crate::trace::answer::is_blank;
use crate::trace::{Completion, ModelCalled, Reply as Replied, What};
use std::sync::Arc;

/// Outcome of a request to the model.
pub(in crate::flow) enum Reply {
    Completion(Completed),
    /// No completion after the last attempt, with the reason.
    Unavailable(String),
}

/// The parts of a completion that a flow uses for decisions.
pub(in crate::flow) struct Completed {
    /// Ordinal within the trial.
    pub(in crate::flow) ordinal: u32,
    /// The text beside the calls.
    pub(in crate::flow) text: String,
    pub(in crate::flow) calls: Vec<ToolCall>,
    pub(in crate::flow) finish: Finish,
    /// Whether the model refused, by the provider's refusal field.
    pub(in crate::flow) refused: bool,
    /// Tokens counted by the provider.
    pub(in crate::flow) usage: Usage,
}

impl Completed {
    /// Why a text without calls is not an answer, for a flow that answers through a tool; `None` if there are calls.
    pub(in crate::flow) fn free_text(&self) -> Option<&'static str> {
        Some(match self.finish {
            _ if !self.calls.is_empty() => return None,
            _ if self.refused => "refusal",
            Finish::ContentFilter => "content_filter",
            Finish::Length => "cut_off",
            _ if is_blank(&self.text) => "empty",
            _ => "free_text",
        })
    }
}

impl<A: Agent> Turn<'_, A> {
    /// The limit on completions, if it is reached.
    pub(in crate::flow) fn model_calls_used_up(&self) -> Option<u32> {
        let limit = self.env.settings.limits.model_calls;
        (self.model_calls >= limit).then_some(limit)
    }

    /// Whether the limit allows only one more completion.
    pub(in crate::flow) fn is_last_call(&self) -> bool {
        self.model_calls + 1 >= self.env.settings.limits.model_calls
    }

    /// Calls the model with all tools; ends the turn if no completion is left or the call fails.
    pub(in crate::flow) async fn ask(&mut self, tool_choice: ToolChoice) -> Result<Completed, Stop<A::Event>> {
        if let Some(limit) = self.model_calls_used_up() {
            let message = format!("No answer was ready after {limit} steps of the assistant.");
            return Err(Failure::new(A::MACHINE.interruptions.model_calls_exhausted, message).into());
        }
        let tools = self.env.settings.prompts.tools().clone();
        match self.complete(tools, tool_choice).await? {
            Reply::Completion(completion) => Ok(completion),
            Reply::Unavailable(why) => {
                let message = format!("The language model is not available ({why}). Please try again later.");
                Err(Failure::new(A::MACHINE.interruptions.model_unavailable, message).into())
            }
        }
    }

    /// Calls the model once with these tools, and records the outcome.
    pub(in crate::flow) async fn complete(
        &mut self,
        tools: Arc<[ToolDefinition]>,
        tool_choice: ToolChoice,
    ) -> Result<Reply, Abort> {
        let settings = &self.env.settings;
        self.model_calls += 1;
        self.retries.asked();
        let request = ChatRequest {
            model: settings.model.name.clone(),
            messages: std::mem::take(&mut self.messages),
            tools,
            tool_choice,
            temperature: settings.model.temperature,
            max_tokens: settings.model.max_tokens,
            seed: settings.seed,
            parallel_calls: settings.model.parallel_calls,
            passthrough: None,
        };
        let ordinal = self.env.next_model_call();
        let (conversation, turn) = (self.conversation.ordinal, self.number);
        self.env.notify(&Status::ModelAsked { conversation, turn, call: ordinal });
        let at = self.env.clock.now();
        let called = ModelCalled {
            service: None,
            call: ordinal,
            state: (A::STATE)(&mut self.own).name().to_owned(),
            took_us: 0,
            first_token_us: None,
            shown: self.shown.clone(),
            tool_choice: request.tool_choice.for_trace(&request.tools),
            attempts: Vec::new(),
            reply: Replied::Failure { kind: "timeout".into(), message: RAN_OUT.into() },
        };
        self.in_flight = Some((at, InFlight::Model(called)));
        let attempted = self.env.model.complete(&request).await;
        self.messages = request.messages;
        let Some((_, InFlight::Model(mut called))) = self.in_flight.take() else {
            return Ok(Reply::Unavailable("no call in flight".into()));
        };
        called.took_us = micros(self.env.clock.now().saturating_sub(at));
        called.attempts = attempts_of(&attempted.attempts);
        called.first_token_us = attempted.first_token().map(micros);
        let reply = match attempted.result {
            Err(ProviderError::Miss(miss)) => return Err(Abort::Miss(miss)),
            Err(ProviderError::Failed { kind, status, message }) => {
                called.reply = Replied::Failure { kind: kind.as_str().into(), message };
                let status = status.map_or(String::new(), |status| format!(", HTTP {status}"));
                Reply::Unavailable(format!("{}{status}", kind.as_str()))
            }
            Ok(mut response) => {
                self.mint_call_ids(&mut response.calls);
                called.reply = Replied::Completion(completion_of(&response));
                let (text, finish) = (response.content.clone(), response.finish.clone());
                let (refused, usage) = (response.refusal.is_some(), response.usage);
                Reply::Completion(Completed { ordinal, text, calls: self.add_reply(response), finish, refused, usage })
            }
        };
        self.push(at, What::ModelCalled(called));
        self.book_transport("model", &attempted.attempts);
        Ok(reply)
    }

    /// Adds the model's message and returns its calls.
    fn add_reply(&mut self, response: ChatResponse) -> Vec<ToolCall> {
        let content = response.refusal.filter(|_| response.content.is_empty()).unwrap_or(response.content);
        let calls = response.calls.clone();
        let message =
            Message { role: Role::Assistant, content, calls, answers: None, passthrough: response.passthrough };
        // Some providers reject a message that has neither text nor calls.
        if !message.content.is_empty() || !message.calls.is_empty() {
            self.say(message);
        }
        response.calls
    }

    /// Assigns ordinal ids to calls without an id or with a used one, so that each result answers one call.
    fn mint_call_ids(&mut self, calls: &mut [ToolCall]) {
        let mut used: Vec<String> = self.messages.iter().flat_map(|m| m.calls.iter().map(|c| c.id.clone())).collect();
        for call in calls {
            while call.id.is_empty() || used.contains(&call.id) {
                self.minted += 1;
                call.id = format!("call-{}", self.minted);
            }
            used.push(call.id.clone());
        }
    }
}

pub(in crate::flow) fn completion_of(response: &ChatResponse) -> Completion {
    Completion {
        model: response.model.clone(),
        text: response.content.clone(),
        refusal: response.refusal.clone(),
        calls: response.calls.iter().map(|call| call.name.clone()).collect(),
        finish: match &response.finish {
            Finish::Stop => "stop".into(),
            Finish::ToolCalls => "tool_calls".into(),
            Finish::Length => "length".into(),
            Finish::ContentFilter => "content_filter".into(),
            Finish::Other(word) => word.clone(),
        },
        input_tokens: response.usage.input,
        cached_tokens: response.usage.cached,
        cache_write_tokens: response.usage.written,
        output_tokens: response.usage.output,
    }
}

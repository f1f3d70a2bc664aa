//! Executes one tool call, from the model's request to its record: refused, out of order, or run.

use super::arguments::{self, Arguments};
use super::{Declaration, Failure, Refusal, Scope, Sent, Tool, ToolError, error_for_model};
use crate::flow::Abort;
use crate::flow::frame::Agent;
use crate::flow::turn::Turn;
use crate::provider::chat::ToolCall;
use crate::trace::{Rejection, Role, ToolOutcome, ToolResult, What};

/// An executed call.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::flow) struct Executed {
    /// The tool's name; `None` if no tool of that name is offered.
    pub(in crate::flow) tool: Option<&'static str>,
    /// Outcome.
    pub(in crate::flow) end: End,
    /// Whether the tool accepts no further call in this turn.
    pub(in crate::flow) used_up: bool,
}

/// Outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::flow) enum End {
    /// No such tool is offered.
    Unknown,
    /// The flow's policy does not allow it now.
    OutOfOrder,
    /// The tool accepts no further calls in this turn.
    UsedUp,
    /// The parameters were refused, with the cause.
    Refused(&'static str),
    /// The call ran and failed, with the cause.
    Failed(&'static str),
    /// The call ran and returned a result.
    Gave(ToolResult),
}

/// A call that is about to be recorded.
struct CallRecord {
    outcome: ToolOutcome,
    message: String,
    sent: Sent,
}

impl CallRecord {
    fn rejected(refusal: Refusal, retryable: bool) -> Self {
        let message = refusal.for_model(retryable);
        Self { outcome: ToolOutcome::Rejected(rejection(refusal)), message, sent: Sent::default() }
    }

    /// Formats the error message as the tool declares.
    fn worded(self, tool: &Declaration) -> Self {
        Self { message: (tool.error)(self.message), ..self }
    }
}

impl<A: Agent> Turn<'_, A> {
    /// Executes one call of completion `completion`: records it, sends the result to the model, books retries. `order`
    /// is the reason why the tool may not run now.
    pub(in crate::flow) async fn execute(
        &mut self,
        tools: &[&'static Tool<A>],
        (completion, call): (u32, &ToolCall),
        order: impl FnOnce(&'static Declaration) -> Option<Refusal>,
    ) -> Result<Executed, Abort> {
        let Arguments { shown, object } = arguments::parse(&call.arguments);
        self.tool_begins(completion, call, &shown);
        let prompts = &self.env.settings.prompts;
        let known = tools.iter().find(|tool| tool.declaration.name == call.name && prompts.offers(&call.name));
        let Some(&Tool { ref declaration, run }) = known.copied() else {
            let refusal = Refusal::unknown_tool(&call.name, prompts.tools().iter().map(|tool| tool.name.as_str()));
            self.record(CallRecord::rejected(refusal, self.has_tries(&call.name)));
            return Ok(Executed { tool: None, end: End::Unknown, used_up: false });
        };
        let name = declaration.name;
        if let Some(refusal) = order(declaration) {
            let message = (declaration.error)(refusal.for_model(true));
            let outcome = ToolOutcome::OutOfOrder(rejection(refusal));
            self.record(CallRecord { outcome, message, sent: Sent::default() });
            return Ok(Executed { tool: Some(name), end: End::OutOfOrder, used_up: self.used_up(name) });
        }
        if self.used_up(name) {
            let guidance = "Go on with what you have, and say in the answer what is missing.";
            let reason = format!("`{name}` takes no further calls now");
            let refusal = Refusal::new("retries_exhausted", reason, guidance);
            self.record(CallRecord::rejected(refusal, false).worded(declaration));
            return Ok(Executed { tool: Some(name), end: End::UsedUp, used_up: true });
        }
        let fitting = object.and_then(|object| arguments::fit(declaration, &shown).map(|()| object));
        let ran = match fitting {
            Err(refusal) => Err(ToolError::Refused(refusal)),
            Ok(object) if let Some(cause) = self.struck(declaration).await => {
                drop(object);
                Err(ToolError::struck(cause))
            }
            Ok(object) => {
                let (session, conversation) = (self.conversation.session.as_str(), self.conversation.ordinal);
                let (turn, question) = (self.number, self.query.as_str());
                let (memory, own) = (&mut self.memory, &mut self.own);
                run(&object, Scope { env: self.env, session, conversation, turn, question, memory, own }).await
            }
        };
        let end = match ran {
            Err(ToolError::Abort(abort)) => return Err(abort),
            Err(ToolError::Refused(refusal)) => {
                let cause = refusal.cause;
                self.record(CallRecord::rejected(refusal, self.has_tries(name)).worded(declaration));
                End::Refused(cause)
            }
            Err(ToolError::Failed(failure)) => End::Failed(self.failed_call(declaration, *failure)),
            Ok(output) => {
                self.tool_worked(name);
                let outcome = ToolOutcome::Ok(output.result.clone());
                self.record(CallRecord { outcome, message: output.message, sent: output.sent });
                End::Gave(output.result)
            }
        };
        self.book(declaration, completion, &end);
        Ok(Executed { tool: Some(name), end, used_up: self.used_up(name) })
    }

    /// Counts a call for the declared faults of the trial; the cause if one of them lets it fail.
    async fn struck(&self, tool: &Declaration) -> Option<&'static str> {
        let faults = self.env.faults.as_ref()?;
        if tool.role == Role::Index {
            faults.index_written();
        }
        faults.tool_begins(tool.name).await
    }

    /// A failed run: the message to the model says whether a retry may help.
    fn failed_call(&mut self, tool: &'static Declaration, failure: Failure) -> &'static str {
        let name = tool.name;
        let retryable = failure.transient && self.has_tries(name);
        self.tool_failed(name, &failure.message, !retryable);
        if !retryable {
            self.retries.exhaust(name);
        }
        let [try_again, go_on] = failure.guidance;
        let guidance = if retryable { try_again } else { go_on };
        let message = error_for_model(failure.model_cause, &failure.reason, guidance, retryable);
        let outcome = ToolOutcome::Failed { message: failure.message, retryable };
        self.record(CallRecord { outcome, message, sent: failure.sent }.worded(tool));
        failure.cause
    }

    fn record(&mut self, call: CallRecord) {
        self.tool_ends(call.outcome, call.message, &call.sent.attempts);
        self.book_transport(call.sent.service, &call.sent.attempts);
    }

    /// Books the call if it is a retry. Responses are retried only on the model account.
    fn book(&mut self, tool: &Declaration, completion: u32, end: &End) {
        let cause = match end {
            End::Refused(cause) | End::Failed(cause) => Some(*cause),
            _ => None,
        };
        let booked = if tool.role == Role::Respond {
            self.retries.settle(tool.name, cause.is_none())
        } else {
            self.retries.called(tool.name, Some(completion), cause)
        };
        if let Some(retried) = booked {
            self.push(self.env.clock.now(), What::Retried(retried));
        }
    }

    /// Whether the tool may be retried if the call fails now.
    fn has_tries(&self, name: &str) -> bool {
        self.retries.failures(name) < self.env.settings.limits.tool_retries
    }

    /// Whether the tool accepts no further calls in this turn.
    fn used_up(&self, name: &str) -> bool {
        self.retries.failures(name) > self.env.settings.limits.tool_retries
    }
}

fn rejection(refusal: Refusal) -> Rejection {
    Rejection { cause: refusal.cause.into(), reason: refusal.reason, guidance: refusal.guidance }
}

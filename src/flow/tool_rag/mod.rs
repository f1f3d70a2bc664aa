//! `tool-rag`: everything through tools. The knowledge base is searched for every query, external answers come only
//! after its results were read and get keywords, and the user receives what the response tool delivers.
//!
//! The loop below is the whole flow. Its decisions are pure functions in `policy`, what each tool does is in `tools`, the
//! states are in `machine`, the texts in `prompts`, what is kept in `memory`.

mod machine;
mod memory;
mod policy;
mod prompts;
pub mod tools;

#[cfg(test)]
mod tests;

use super::tools::{Declaration, Refusal};
use super::turn::{Ask, Completed, Reply, Turn};
use super::{Abort, AgentContext, ConversationState, Flow, PromptText};
use crate::platform::clock::{BoxFuture, timeout};
use crate::provider::chat::{Message, Role, ToolCall};
use crate::trace::state_machine::Machine;
use crate::trace::{Answer, TurnOutcome};
use memory::TurnState;
use policy::{Next, Progress, Seen, Step};

/// The name that scenarios use.
pub const NAME: &str = "tool-rag";

/// The flow.
pub static FLOW: ToolRag = ToolRag;

/// The flow.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToolRag;

impl Flow for ToolRag {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tools(&self) -> Vec<&'static Declaration> {
        tools::TOOLS.iter().map(|tool| &tool.declaration).collect()
    }

    fn prompts(&self) -> &'static [PromptText] {
        &prompts::PROMPTS
    }

    fn machine(&self) -> Machine {
        machine::machine()
    }

    fn criteria(&self) -> &'static str {
        include_str!("criteria.yaml")
    }

    fn errors(&self) -> &'static [&'static str] {
        &["mandatory_call_missing", "model_calls_exhausted", "model_unavailable", "response_missing", "timeout"]
    }

    fn turn<'a>(
        &'a self,
        env: &'a AgentContext,
        conversation: &'a mut ConversationState,
        query: &'a str,
    ) -> BoxFuture<'a, Result<(), Abort>> {
        Box::pin(async move {
            let memory = conversation.flow_state()?;
            let turn = Turn::begin(env, conversation, query);
            let mut under_way =
                UnderWay { turn, progress: Progress::default(), state: TurnState { memory, answer: None } };
            under_way.turn.open(prompts::SYSTEM);
            under_way.turn.say(Message::text(Role::User, query));
            let limit = *env.settings.limits.turn;
            let ended = timeout(&*env.clock, limit, under_way.converse()).await;
            let outcome = if let Ok(outcome) = ended {
                outcome?
            } else {
                under_way.turn.cut_off();
                let message = format!("No answer was ready within {} s.", limit.as_secs_f64());
                under_way.failed("timeout", "timeout", message)
            };
            let UnderWay { turn, state, .. } = under_way;
            turn.conversation.keep(&state.memory)?;
            turn.end(outcome);
            Ok(())
        })
    }
}

/// One turn with what the flow knows of it.
struct UnderWay<'a> {
    turn: Turn<'a>,
    progress: Progress,
    state: TurnState,
}

impl UnderWay<'_> {
    /// Everything between the user's words and the outcome.
    async fn converse(&mut self) -> Result<TurnOutcome, Abort> {
        loop {
            if let Some(limit) = self.turn.model_calls_used_up() {
                let message = format!("No answer was ready after {limit} steps of the assistant.");
                return Ok(self.failed("model_calls_exhausted", "model_calls_exhausted", message));
            }
            let completion = match self.ask().await? {
                Reply::Completion(completion) => completion,
                Reply::Unavailable(why) => {
                    let message = format!("The language model is not available ({why}). Please try again later.");
                    return Ok(self.failed("model_unavailable", "model_unavailable", message));
                }
            };

            let mut seen = Seen { free_text: completion.free_text(), ..Seen::default() };
            let before = self.progress.clone();
            for call in &completion.calls {
                self.take(&completion, call, &before, &mut seen).await?;
            }

            match policy::next(&self.progress, &seen) {
                Next::Ask => {}
                Next::FeedBack(step, cause, reason) => self.feed_back(step, cause, &reason),
                Next::Deliver => {
                    if let Some(answer) = self.state.answer.take() {
                        return Ok(self.answered(answer));
                    }
                }
                Next::Refused => {
                    let message = "The knowledge base could not be searched: every query was refused.";
                    return Ok(self.failed("parameters_refused", "mandatory_call_missing", message.into()));
                }
                Next::Fail(step) => {
                    let (on, kind) = match step {
                        Step::Knowledge => ("knowledge_missing", "mandatory_call_missing"),
                        Step::Keywords | Step::Response => ("response_missing_again", "response_missing"),
                    };
                    let message = format!(
                        "No answer was given: the step {} needs a call of {}, which did not come, also when asked for.",
                        step.name(),
                        step.tool()
                    );
                    return Ok(self.failed(on, kind, message));
                }
            }
        }
    }

    async fn ask(&mut self) -> Result<Reply, Abort> {
        let settings = &self.turn.env.settings;
        self.progress.answers_read = !self.state.memory.received.is_empty();
        self.turn
            .ask(Ask {
                state: self.progress.state(),
                tools: settings.prompts.tools().clone(),
                tool_choice: self.progress.tool_choice(settings.enforcement, self.turn.is_last_call()),
            })
            .await
    }

    /// Takes one call to its end; `before` is how far the turn was when the model made it.
    async fn take(
        &mut self,
        completion: &Completed,
        call: &ToolCall,
        before: &Progress,
        seen: &mut Seen,
    ) -> Result<(), Abort> {
        let alone = completion.calls.len() == 1;
        let from = self.progress.state();
        let (settings, step) = (&self.turn.env.settings, self.progress.next_step());
        let order = |tool: &Declaration| {
            let reason = policy::out_of_order(before, tool.name, alone)?;
            let guidance = prompts::feedback(settings, prompts::ORDER, tool.name, step.name(), reason);
            Some(Refusal::new("order", reason, guidance))
        };
        let executed = self.turn.execute(&tools::TOOLS, (completion.ordinal, call), order, &mut self.state).await?;
        // An accepted response ends the turn: that transition is the loop's.
        if let Some(on) = policy::note(&mut self.progress, seen, &executed, alone) {
            self.turn.moved(from, on, self.progress.state());
        }
        if policy::gives_up_keywords(&self.progress, &executed) {
            let from = self.progress.state();
            let on = self.progress.give_up_keywords();
            self.turn.moved(from, on, self.progress.state());
        }
        Ok(())
    }

    /// Tells the model which step is missing. As a system message: no user can write one.
    fn feed_back(&mut self, step: Step, cause: &'static str, reason: &str) {
        let from = self.progress.state();
        let (template, on) = match step {
            Step::Knowledge => (prompts::MISSING_CALL, "knowledge_missing"),
            Step::Keywords => (prompts::MISSING_CALL, "keywords_missing"),
            Step::Response => (prompts::RESPONSE_RETRY, "response_missing"),
        };
        self.progress.reminded(step);
        let message = prompts::feedback(&self.turn.env.settings, template, step.tool(), step.name(), reason);
        self.turn.fed_back(step.name(), step.tool(), cause, &message);
        self.turn.moved(from, on, self.progress.state());
        self.turn.say(Message::text(Role::System, message));
    }

    fn answered(&self, answer: Answer) -> TurnOutcome {
        self.turn.moved(self.progress.state(), "answered", machine::ANSWERED);
        TurnOutcome::Answered(answer)
    }

    fn failed(&self, on: &str, kind: &str, message: String) -> TurnOutcome {
        self.turn.moved(self.progress.state(), on, machine::FAILED);
        TurnOutcome::Failed { kind: kind.into(), message }
    }
}

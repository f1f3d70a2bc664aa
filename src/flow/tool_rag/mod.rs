//! `tool-rag`: every step is a tool call. The knowledge base is searched for every query, external answers are allowed
//! only after its results were read and must get keywords, and the user receives the text of the response tool.
//!
//! The loop below is the whole flow. Its decisions are pure functions in `policy`; `tools` holds the tools, `machine`
//! the states, `prompts` the texts, `memory` the stored state.

mod machine;
mod memory;
mod policy;
mod prompts;
pub(crate) mod tools;

#[cfg(test)]
mod tests;

use super::frame::{Agent, Ended, Failure, StateOf};
use super::machine::Table;
use super::tools::{Declaration, Refusal, declarations};
use super::turn::{Completed, Turn};
use super::{Abort, Description};
use crate::provider::chat::{Message, Role, ToolCall};
use machine::{Event, State};
use memory::{Memory, TurnState};
use policy::{CompletionResult, Next, Progress, Step};

/// The name that scenarios use.
pub(crate) const NAME: &str = "tool-rag";

pub(crate) static FLOW: ToolRag = ToolRag;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ToolRag;

static DESCRIPTION: Description = Description {
    tools: &declarations(&tools::TOOLS),
    prompts: &prompts::PROMPTS,
    criteria: include_str!("criteria.yaml"),
    errors: &["mandatory_call_missing", "model_calls_exhausted", "model_unavailable", "response_missing", "timeout"],
    ..Description::new(NAME)
};

impl Agent for ToolRag {
    type State = State;
    type Event = Event;
    type Memory = Memory;
    type Own = TurnState;

    const DESCRIPTION: &'static Description = &DESCRIPTION;
    const MACHINE: &'static Table<State, Event> = &machine::MACHINE;
    const STATE: StateOf<Self> = |own| &mut own.progress.state;

    async fn converse(turn: &mut Turn<'_, Self>) -> Ended<Self> {
        turn.open(prompts::SYSTEM);
        turn.say(Message::text(Role::User, turn.query.clone()));
        loop {
            turn.own.progress.answers_read = !turn.memory.received.is_empty();
            let before = turn.own.progress.clone();
            let completion = turn.ask(before.tool_choice(turn.env.settings.enforcement, turn.is_last_call())).await?;
            let mut seen = CompletionResult { free_text: completion.free_text(), ..CompletionResult::default() };
            for call in &completion.calls {
                turn.run_call(&completion, call, &before, &mut seen).await?;
            }

            match policy::next(&turn.own.progress, &seen) {
                Next::Ask => {}
                Next::FeedBack(step, cause, reason) => turn.feed_back(step, cause, &reason),
                Next::Deliver => {
                    if let Some(answer) = turn.own.answer.take() {
                        return Ok(turn.answered(Event::Answered, answer));
                    }
                }
                Next::Refused => {
                    let message = "The knowledge base could not be searched: every query was refused.";
                    return Err(Failure::of_kind(Event::ParametersRefused, "mandatory_call_missing", message).into());
                }
                Next::Fail(step) => {
                    let (on, kind) = match step {
                        Step::Knowledge => (Event::KnowledgeMissing, "mandatory_call_missing"),
                        Step::Keywords | Step::Response => (Event::ResponseMissingAgain, "response_missing"),
                    };
                    let message = format!(
                        "No answer was given: the step {} needs a call of {}, which did not come, also when asked for.",
                        step.name(),
                        step.tool()
                    );
                    return Err(Failure::of_kind(on, kind, message).into());
                }
            }
        }
    }
}

impl Turn<'_, ToolRag> {
    /// Executes one call; `before` is the progress of the turn when the model made it.
    async fn run_call(
        &mut self,
        completion: &Completed,
        call: &ToolCall,
        before: &Progress,
        seen: &mut CompletionResult,
    ) -> Result<(), Abort> {
        let alone = completion.calls.len() == 1;
        let (settings, step) = (&self.env.settings, self.own.progress.next_step());
        let order = |tool: &Declaration| {
            let reason = policy::out_of_order(before, tool.name, alone)?;
            let guidance = prompts::feedback(settings, prompts::ORDER, tool.name, step.name(), reason);
            Some(Refusal::new("order", reason, guidance))
        };
        let executed = self.execute(&tools::TOOLS, (completion.ordinal, call), order).await?;
        // An accepted response ends the turn; the loop makes that transition.
        if let Some(on) = policy::note(&mut self.own.progress, seen, &executed, alone) {
            self.happen(on);
        }
        if policy::gives_up_keywords(&self.own.progress, &executed) {
            let on = self.own.progress.give_up_keywords();
            self.happen(on);
        }
        Ok(())
    }

    /// Sends feedback about the missing step, as a system message because users cannot write one.
    fn feed_back(&mut self, step: Step, cause: &'static str, reason: &str) {
        let (template, on) = match step {
            Step::Knowledge => (prompts::MISSING_CALL, Event::KnowledgeMissing),
            Step::Keywords => (prompts::MISSING_CALL, Event::KeywordsMissing),
            Step::Response => (prompts::RESPONSE_RETRY, Event::ResponseMissing),
        };
        self.own.progress.response_reminded |= step == Step::Response;
        let message = prompts::feedback(&self.env.settings, template, step.tool(), step.name(), reason);
        self.fed_back(step.name(), step.tool(), cause, &message);
        self.happen(on);
        self.say(Message::text(Role::System, message));
    }
}

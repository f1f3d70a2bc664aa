//! `two-stage`: every answer is grounded in documents. Stage 1 must retrieve; stage 2 may call no tool and answers from
//! the retrieved documents, citing their numbers in brackets.
//!
//! There are no retries: a model that violates its stage ends the turn with an error. Each knowledge base belongs to
//! one tenant, and the model cannot choose one.

mod machine;
mod memory;
mod policy;
mod prompts;
pub(crate) mod tools;

#[cfg(test)]
mod tests;

use super::frame::{Agent, Ended, Failure, StateOf};
use super::machine::Table;
use super::tools::{Declaration, declarations};
use super::turn::{Completed, Turn};
use super::{Abort, ConversationState, Description, reply};
use crate::provider::chat::{Message, Role};
use crate::trace::citations::numbers_of;
use crate::trace::{Answer, SourceRef, TurnOutcome};
use machine::{Event, State};
use memory::{Memory, TurnState};
use policy::{Said, Stage};
use serde_json::Value;

/// The name that scenarios use.
pub(crate) const NAME: &str = "two-stage";

pub(crate) static FLOW: TwoStage = TwoStage;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TwoStage;

static DESCRIPTION: Description = Description {
    tools: &declarations(&tools::TOOLS),
    prompts: &prompts::PROMPTS,
    criteria: include_str!("criteria.yaml"),
    errors: &[
        "call_in_answer", "model_calls_exhausted", "model_unavailable", "no_answer", "no_tool_call", "query_refused",
        "retrieval_failed", "timeout", "unknown_tenant",
    ],
    tenants: true,
    model_variable: Some("OPENAI_MODEL"),
    ..Description::new(NAME)
};

impl Agent for TwoStage {
    type State = State;
    type Event = Event;
    type Memory = Memory;
    type Own = TurnState;

    const DESCRIPTION: &'static Description = &DESCRIPTION;
    const MACHINE: &'static Table<State, Event> = &machine::MACHINE;
    const STATE: StateOf<Self> = |own| &mut own.progress.state;

    /// Two requests to the model.
    async fn converse(turn: &mut Turn<'_, Self>) -> Ended<Self> {
        // Documents of an earlier turn must not be cited in this one.
        turn.memory.documents.clear();
        let (name, base) = policy::base_of(&turn.env.knowledge, turn.conversation.tenant.as_deref())?;
        turn.own.base = Some((name.to_owned(), base.clone()));
        turn.open(prompts::RETRIEVAL_SYSTEM);
        turn.say(Message::text(Role::User, turn.query.clone()));
        let completion = turn.ask(Stage::Retrieval.tool_choice()).await?;
        turn.take_all(&completion).await?;
        policy::after_retrieval(turn.own.progress)?;

        turn.instruct(prompts::ANSWER_SYSTEM);
        let completion = turn.ask(Stage::Answer.tool_choice()).await?;
        let refusal = turn.env.settings.prompts.plain(prompts::REFUSAL).unwrap_or_default();
        match policy::said(&completion, refusal, &turn.query) {
            Said::Answer => Ok(turn.deliver(Event::Answered, completion.text, false)),
            Said::Refusal => Ok(turn.deliver(Event::Refused, completion.text, true)),
            Said::Calls => {
                turn.take_all(&completion).await?;
                let message = "No answer was given: the language model called a tool where it was to answer.";
                Err(Failure::new(Event::CallInAnswer, message).into())
            }
            Said::Nothing(why) => {
                let message = format!("The language model gave no answer ({why}).");
                Err(Failure::new(Event::NoAnswer, message).into())
            }
        }
    }

    fn reply(conversation: &ConversationState, answer: &Answer) -> Value {
        let mut reply = reply::usual(answer);
        let Memory { documents } = conversation.flow_state().unwrap_or_default();
        let retrieved: Vec<Value> = (1..)
            .zip(&documents)
            .map(|(number, document)| {
                let mut shown = reply::source(&source(number, document));
                shown["number"] = number.into();
                shown["filename"] = document.filename.clone().into();
                shown["text"] = document.text.clone().into();
                shown["score"] = document.score.into();
                shown
            })
            .collect();
        let cited = |one: &&Value| {
            answer.sources.iter().any(|source| source.number.is_some_and(|number| one["number"] == number))
        };
        reply["sources"] = retrieved.iter().filter(cited).cloned().collect();
        reply["retrieved"] = retrieved.into();
        reply
    }

    /// Every document, in order, so that a number in the answer refers to the right one.
    fn ids_in_history<'m>(memory: &'m Memory, outcome: &TurnOutcome) -> Option<Vec<&'m str>> {
        let answers = matches!(outcome, TurnOutcome::Answered(answer) if !answer.refused);
        Some(memory.documents.iter().filter(|_| answers).map(|document| document.id.as_str()).collect())
    }
}

/// A document as a source, with the number that answers cite.
fn source(number: u32, document: &memory::Document) -> SourceRef {
    let (kind, id, title) = ("internal".into(), document.id.clone(), document.title.clone());
    SourceRef { kind, id, title, number: Some(number) }
}

impl Turn<'_, TwoStage> {
    /// Executes the calls of one completion: at most one retrieves.
    async fn take_all(&mut self, completion: &Completed) -> Result<(), Abort> {
        for call in &completion.calls {
            let progress = self.own.progress;
            let order = |tool: &Declaration| policy::out_of_order(progress, tool.name);
            let executed = self.execute(&tools::TOOLS, (completion.ordinal, call), order).await?;
            if let Some(on) = policy::note(&mut self.own.progress, &executed) {
                self.happen(on);
            }
        }
        Ok(())
    }

    /// Builds the answer: the text, with the documents that it cites by number as sources. A refusal has none.
    fn deliver(&mut self, on: Event, text: String, refused: bool) -> TurnOutcome {
        let cited = if refused { Vec::new() } else { numbers_of(&text) };
        let numbered = (1..).zip(&self.memory.documents).filter(|(number, _)| cited.contains(&(*number as usize)));
        let sources: Vec<SourceRef> = numbered.map(|(number, document)| source(number, document)).collect();
        let used_internal_kb = !sources.is_empty();
        self.answered(on, Answer { text, sources, used_internal_kb, refused, ..Answer::default() })
    }
}

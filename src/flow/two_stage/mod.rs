//! `two-stage`: every answer is grounded in documents. Stage 1 is made to retrieve, stage 2 may call nothing and answers
//! from what was retrieved, with the numbers of the documents in brackets.
//!
//! There is no second try in it: a model that does not keep to its stage ends the turn with an error. Each knowledge
//! base is a tenant's, and the model cannot name one.

mod machine;
mod memory;
mod policy;
mod prompts;
pub mod tools;

#[cfg(test)]
mod tests;

use super::tools::Declaration;
use super::turn::{Ask, Completed, Reply, Turn};
use super::{Abort, AgentContext, ConversationState, Flow, PromptText, reply};
use crate::platform::clock::{BoxFuture, timeout};
use crate::provider::chat::{Message, Role};
use crate::trace::state_machine::Machine;
use crate::trace::{Answer, SourceRef, TurnOutcome};
use memory::{Memory, TurnState};
use policy::{Failure, Progress, Said, Stage};
use serde_json::Value;

/// The name that scenarios use.
pub const NAME: &str = "two-stage";

/// The flow.
pub static FLOW: TwoStage = TwoStage;

/// The flow.
#[derive(Debug, Clone, Copy, Default)]
pub struct TwoStage;

impl Flow for TwoStage {
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
        &[
            "call_in_answer",
            "model_calls_exhausted",
            "model_unavailable",
            "no_answer",
            "no_tool_call",
            "query_refused",
            "retrieval_failed",
            "timeout",
            "unknown_tenant",
        ]
    }

    fn has_tenants(&self) -> bool {
        true
    }

    fn model_variable(&self) -> Option<&'static str> {
        Some("OPENAI_MODEL")
    }

    fn reply(&self, conversation: &ConversationState, answer: &Answer) -> Value {
        let mut reply = reply::usual(answer);
        let Memory { documents } = conversation.flow_state().unwrap_or_default();
        let sources = reply.get_mut("sources").and_then(Value::as_array_mut).into_iter().flatten();
        for (source, document) in sources.zip(&documents) {
            source["filename"] = document.filename.clone().into();
            source["text"] = document.text.clone().into();
            source["score"] = document.score.into();
        }
        reply
    }

    fn turn<'a>(
        &'a self,
        env: &'a AgentContext,
        conversation: &'a mut ConversationState,
        query: &'a str,
    ) -> BoxFuture<'a, Result<(), Abort>> {
        Box::pin(async move {
            // What an earlier turn retrieved is not citable in this one; another flow's conversation is still refused.
            let _: Memory = conversation.flow_state()?;
            let base = policy::base_of(&env.knowledge, conversation.tenant.as_deref());
            let turn = Turn::begin(env, conversation, query);
            let mut under_way = UnderWay { turn, progress: Progress::default(), state: TurnState::default() };
            let outcome = match base {
                Err(failure) => under_way.failed(failure),
                Ok((name, base)) => {
                    under_way.state.base = Some((name.to_owned(), base.clone()));
                    let limit = *env.settings.limits.turn;
                    let ended = timeout(&*env.clock, limit, under_way.converse()).await;
                    if let Ok(outcome) = ended {
                        outcome?
                    } else {
                        under_way.turn.cut_off();
                        under_way.failed(Failure::timeout(limit))
                    }
                }
            };
            let UnderWay { turn, state, .. } = under_way;
            turn.conversation.keep(&Memory { documents: state.documents })?;
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
    /// Everything between the user's words and the outcome: two requests to the model.
    async fn converse(&mut self) -> Result<TurnOutcome, Abort> {
        self.turn.open(prompts::RETRIEVAL_SYSTEM);
        let query = self.turn.query.clone();
        self.turn.say(Message::text(Role::User, query));
        let completion = match self.ask(Stage::Retrieval).await? {
            Ok(completion) => completion,
            Err(failure) => return Ok(self.failed(failure)),
        };
        self.take_all(&completion).await?;
        if let Err(failure) = policy::after_retrieval(self.progress) {
            return Ok(self.failed(failure));
        }

        if let Some(limit) = self.turn.model_calls_used_up() {
            return Ok(self.failed(Failure::model_calls(limit)));
        }
        self.turn.instruct(prompts::ANSWER_SYSTEM);
        let completion = match self.ask(Stage::Answer).await? {
            Ok(completion) => completion,
            Err(failure) => return Ok(self.failed(failure)),
        };
        let refusal = self.turn.env.settings.prompts.plain(prompts::REFUSAL).unwrap_or_default();
        match policy::said(&completion, refusal) {
            Said::Answer => Ok(self.answered("answered", completion.text, false)),
            Said::Refusal => Ok(self.answered("refused", completion.text, true)),
            Said::Calls => {
                self.take_all(&completion).await?;
                Ok(self.failed(Failure::call_in_answer()))
            }
            Said::Nothing(why) => Ok(self.failed(Failure::no_answer(why))),
        }
    }

    async fn ask(&mut self, stage: Stage) -> Result<Result<Completed, Failure>, Abort> {
        let tools = self.turn.env.settings.prompts.tools().clone();
        let asked = Ask { state: self.progress.state(), tools, tool_choice: stage.tool_choice() };
        Ok(match self.turn.ask(asked).await? {
            Reply::Completion(completion) => Ok(completion),
            Reply::Unavailable(why) => Err(Failure::model_unavailable(&why)),
        })
    }

    /// Takes the calls of one completion to their ends: at most one of them retrieves.
    async fn take_all(&mut self, completion: &Completed) -> Result<(), Abort> {
        for call in &completion.calls {
            let from = self.progress.state();
            let progress = self.progress;
            let order = |tool: &Declaration| policy::out_of_order(progress, tool.name);
            let executed = self.turn.execute(&tools::TOOLS, (completion.ordinal, call), order, &mut self.state).await?;
            if let Some(on) = policy::note(&mut self.progress, &executed) {
                self.turn.moved(from, on, self.progress.state());
            }
        }
        Ok(())
    }

    /// The text with what was retrieved as its sources: `[n]` in it is the n-th of them. A refusal rests on none.
    fn answered(&self, on: &str, text: String, refused: bool) -> TurnOutcome {
        self.turn.moved(self.progress.state(), on, machine::ANSWERED);
        let documents = self.state.documents.iter().filter(|_| !refused);
        let source = |document: &memory::Document| SourceRef {
            kind: "internal".into(),
            id: document.id.clone(),
            title: document.title.clone(),
        };
        let sources: Vec<SourceRef> = documents.map(source).collect();
        let used_internal_kb = !sources.is_empty();
        TurnOutcome::Answered(Answer {
            text,
            sources,
            confidence: None,
            used_internal_kb,
            used_external_kb: false,
            refused,
            unseen: Vec::new(),
            traceable: false,
        })
    }

    fn failed(&self, failure: Failure) -> TurnOutcome {
        self.turn.moved(self.progress.state(), failure.on, machine::FAILED);
        TurnOutcome::Failed { kind: failure.kind.into(), message: failure.message }
    }
}

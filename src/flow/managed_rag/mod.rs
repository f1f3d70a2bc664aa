//! `managed-rag`: a tool asks a managed retrieval service and turns its answer into numbered citations and an artifact; the
//! model decides what to ask, and answers with the artifact.
//!
//! A missing call and an answer without its artifact are fed back once each. Where the service fails or holds no answer,
//! the model says so in its own words.

mod artifact;
mod citations;
mod machine;
mod memory;
mod policy;
mod prompts;
mod template;
pub mod tools;

#[cfg(test)]
mod tests;

use super::tools::Declaration;
use super::turn::{Ask, Completed, Reply, Turn};
use super::{Abort, AgentContext, ConversationState, Flow, PromptText, reply};
use crate::platform::clock::{BoxFuture, timeout};
use crate::provider::chat::{Message, Role};
use crate::trace::state_machine::Machine;
use crate::trace::{Answer, Artifact, SourceRef, TurnOutcome};
use memory::{Memory, TurnState};
use policy::{Next, Progress};
use serde_json::{Value, json};

/// The name that scenarios use.
pub const NAME: &str = "managed-rag";

/// The flow.
pub static FLOW: ManagedRag = ManagedRag;

/// The flow.
#[derive(Debug, Clone, Copy, Default)]
pub struct ManagedRag;

impl Flow for ManagedRag {
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
        &["model_calls_exhausted", "model_unavailable", "no_answer", "no_artifact", "no_tool_call", "timeout"]
    }

    fn asks_managed_retrieval(&self) -> bool {
        true
    }

    fn artifacts(&self, conversation: &ConversationState) -> Vec<Artifact> {
        let memory: Memory = conversation.flow_state().unwrap_or_default();
        memory.artifacts.into_iter().map(|kept| kept.artifact).collect()
    }

    fn reply(&self, conversation: &ConversationState, answer: &Answer) -> Value {
        let mut reply = reply::usual(answer);
        let Memory { artifacts, answered } = conversation.flow_state().unwrap_or_default();
        let embedded: Vec<_> = artifacts.iter().filter(|kept| answered.contains(&kept.name())).collect();
        let known = || embedded.iter().flat_map(|kept| &kept.sources);
        for source in reply.get_mut("sources").and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(known) = known().find(|known| source["id"] == known.id.as_str()) else { continue };
            source["filename"] = known.filename.clone().into();
            source["page"] = known.page.map(|page| page + 1).into();
            source["url"] = known.link.clone().into();
        }
        let told = embedded.iter().map(|kept| {
            let Artifact { filename, version, mime_type, description, .. } = &kept.artifact;
            json!({"filename": filename, "version": version, "mime_type": mime_type, "description": description})
        });
        reply["artifacts"] = told.collect();
        reply
    }

    fn turn<'a>(
        &'a self,
        env: &'a AgentContext,
        conversation: &'a mut ConversationState,
        query: &'a str,
    ) -> BoxFuture<'a, Result<(), Abort>> {
        Box::pin(async move {
            let memory = conversation.flow_state()?;
            let context = Value::Object(conversation.tool_context.clone());
            let turn = Turn::begin(env, conversation, query);
            let state = TurnState { memory, context, ..TurnState::default() };
            let mut under_way = UnderWay { turn, progress: Progress::default(), state };
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
            self.take_all(&completion).await?;
            let Some(said) = completion.free_text() else { continue };
            let embedded = artifact::embed(&completion.text, &self.state.artifacts());
            let current = embedded.artifacts.iter().any(|named| self.state.made.contains(named));
            match policy::next(self.progress, said, current, embedded.unknown.is_empty()) {
                Next::Deliver => return Ok(self.answered(embedded)),
                Next::FeedBack(missing) => self.feed_back(missing, said),
                Next::Fail(failure) => return Ok(self.failed(failure.on, failure.kind, failure.message.to_owned())),
            }
        }
    }

    async fn ask(&mut self) -> Result<Reply, Abort> {
        let settings = &self.turn.env.settings;
        let tool_choice = self.progress.tool_choice(settings.enforcement);
        let tools = settings.prompts.tools().clone();
        self.turn.ask(Ask { state: self.progress.state(), tools, tool_choice }).await
    }

    /// Takes the calls of one completion to their ends.
    async fn take_all(&mut self, completion: &Completed) -> Result<(), Abort> {
        for call in &completion.calls {
            let from = self.progress.state();
            let order = |_: &Declaration| None;
            let executed = self.turn.execute(&tools::TOOLS, (completion.ordinal, call), order, &mut self.state).await?;
            let on = policy::note(&mut self.progress, &executed);
            self.turn.moved(from, on, self.progress.state());
        }
        Ok(())
    }

    /// Tells the model what is missing. As a system message: no user can write one.
    fn feed_back(&mut self, missing: policy::Missing, cause: &'static str) {
        let from = self.progress.state();
        let settings = &self.turn.env.settings;
        let cause = if missing == policy::Missing::Artifact { "no_artifact" } else { cause };
        let newest = self.state.newest().map(artifact::embed_of).unwrap_or_default();
        let message = prompts::feedback(settings, missing.prompt(), &newest);
        self.turn.fed_back(missing.step(), tools::NUCLIA_RAG, cause, &message);
        let on = self.progress.reminded(missing);
        self.turn.moved(from, on, self.progress.state());
        self.turn.say(Message::text(Role::System, message));
    }

    /// The text with its artifacts put in, and their sources.
    fn answered(&mut self, embedded: artifact::Embedded) -> TurnOutcome {
        let refusal = self.turn.env.settings.prompts.plain(prompts::REFUSAL).unwrap_or_default();
        let refused = policy::refuses(&embedded.text, refusal);
        self.turn.moved(self.progress.state(), if refused { "refused" } else { "answered" }, machine::ANSWERED);
        let mut sources: Vec<SourceRef> = Vec::new();
        let kept = self.state.memory.artifacts.iter().filter(|kept| embedded.artifacts.contains(&kept.name()));
        for source in kept.flat_map(|kept| &kept.sources) {
            if !sources.iter().any(|known| known.id == source.id) {
                let (kind, id, title) = ("internal".into(), source.id.clone(), source.title.clone());
                sources.push(SourceRef { kind, id, title });
            }
        }
        let used_internal_kb = !embedded.artifacts.is_empty();
        self.state.memory.answered = embedded.artifacts;
        let text = embedded.text;
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

    fn failed(&mut self, on: &str, kind: &str, message: String) -> TurnOutcome {
        self.turn.moved(self.progress.state(), on, machine::FAILED);
        self.state.memory.answered.clear();
        TurnOutcome::Failed { kind: kind.into(), message }
    }
}

//! `managed-rag`: a tool asks a managed retrieval service and turns its answer into numbered citations and an artifact; the
//! model decides what to ask, and answers with the artifact.
//!
//! Feedback is given once for a missing call and once for an answer without its artifact. If the service fails or has
//! no answer, the model says so in its own words.

mod artifact;
mod citations;
mod machine;
mod memory;
mod policy;
mod prompts;
mod template;
pub(crate) mod tools;

#[cfg(test)]
mod tests;

use super::frame::{Agent, Ended, StateOf};
use super::machine::Table;
use super::tools::{Declaration, declarations};
use super::turn::{Completed, Turn};
use super::{Abort, ConversationState, Description, reply};
use crate::provider::chat::{Message, Role};
use crate::trace::{Answer, Artifact, SourceRef, TurnOutcome};
use machine::{Event, State};
use memory::{Memory, TurnState};
use policy::Next;
use serde_json::{Value, json};

/// The name that scenarios use.
pub(crate) const NAME: &str = "managed-rag";

pub(crate) static FLOW: ManagedRag = ManagedRag;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ManagedRag;

static DESCRIPTION: Description = Description {
    tools: &declarations(&tools::TOOLS),
    prompts: &prompts::PROMPTS,
    criteria: include_str!("criteria.yaml"),
    errors: &["model_calls_exhausted", "model_unavailable", "no_answer", "no_artifact", "no_tool_call", "timeout"],
    managed_retrieval: true,
    ..Description::new(NAME)
};

impl Agent for ManagedRag {
    type State = State;
    type Event = Event;
    type Memory = Memory;
    type Own = TurnState;

    const DESCRIPTION: &'static Description = &DESCRIPTION;
    const MACHINE: &'static Table<State, Event> = &machine::MACHINE;
    const STATE: StateOf<Self> = |own| &mut own.progress.state;

    async fn converse(turn: &mut Turn<'_, Self>) -> Ended<Self> {
        turn.memory.answered.clear();
        turn.own.context = Value::Object(turn.conversation.tool_context.clone());
        turn.open(prompts::SYSTEM);
        turn.say(Message::text(Role::User, turn.query.clone()));
        loop {
            let tool_choice = turn.own.progress.tool_choice(turn.env.settings.enforcement);
            let completion = turn.ask(tool_choice).await?;
            turn.take_all(&completion).await?;
            let Some(said) = completion.free_text() else { continue };
            let embedded = artifact::embed(&completion.text, &turn.memory.all());
            let current = embedded.artifacts.iter().any(|named| turn.own.made.contains(named));
            match policy::next(turn.own.progress, said, current, embedded.unknown.is_empty()) {
                Next::Deliver => return Ok(turn.deliver(embedded)),
                Next::FeedBack(missing) => turn.feed_back(missing, said),
                Next::Fail(failure) => return Err(failure.into()),
            }
        }
    }

    fn artifacts(conversation: &ConversationState) -> Vec<Artifact> {
        let memory: Memory = conversation.flow_state().unwrap_or_default();
        memory.all()
    }

    fn reply(conversation: &ConversationState, answer: &Answer) -> Value {
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
        let artifacts = embedded.iter().map(|kept| {
            let Artifact { filename, version, mime_type, description, .. } = &kept.artifact;
            json!({"filename": filename, "version": version, "mime_type": mime_type, "description": description})
        });
        reply["artifacts"] = artifacts.collect();
        reply
    }
}

impl Turn<'_, ManagedRag> {
    /// Executes the calls of one completion.
    async fn take_all(&mut self, completion: &Completed) -> Result<(), Abort> {
        for call in &completion.calls {
            let order = |_: &Declaration| None;
            let executed = self.execute(&tools::TOOLS, (completion.ordinal, call), order).await?;
            let on = policy::note(&mut self.own.progress, &executed);
            self.happen(on);
        }
        Ok(())
    }

    /// Sends feedback about the missing step, as a system message because users cannot write one.
    fn feed_back(&mut self, missing: policy::Missing, cause: &'static str) {
        let settings = &self.env.settings;
        let cause = if missing == policy::Missing::Artifact { "no_artifact" } else { cause };
        let newest =
            self.own.made.last().and_then(|made| self.memory.named(made)).map(artifact::embed_of).unwrap_or_default();
        let message = prompts::feedback(settings, missing.prompt(), &newest);
        self.fed_back(missing.step(), tools::NUCLIA_RAG, cause, &message);
        self.happen(missing.event());
        self.say(Message::text(Role::System, message));
    }

    /// Builds the answer: the text with its artifacts inserted, and their sources.
    fn deliver(&mut self, embedded: artifact::Embedded) -> TurnOutcome {
        let refusal = self.env.settings.prompts.plain(prompts::REFUSAL).unwrap_or_default();
        let refused = policy::refuses(&embedded.text, refusal);
        let mut sources: Vec<SourceRef> = Vec::new();
        let kept = self.memory.artifacts.iter().filter(|kept| embedded.artifacts.contains(&kept.name()));
        for source in kept.flat_map(|kept| &kept.sources) {
            if !sources.iter().any(|known| known.id == source.id) {
                let (kind, id, title) = ("internal".into(), source.id.clone(), source.title.clone());
                sources.push(SourceRef { kind, id, title, number: None });
            }
        }
        // An answer of the service without a citation of a file names no source.
        let used_internal_kb = !sources.is_empty();
        self.memory.answered = embedded.artifacts;
        let answer = Answer { text: embedded.text, sources, used_internal_kb, refused, ..Answer::default() };
        self.answered(if refused { Event::Refused } else { Event::Answered }, answer)
    }
}

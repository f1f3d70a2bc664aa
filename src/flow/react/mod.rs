//! `react`: reason, act, observe; reflect on what failed; answer from what was graded relevant, or say that it is not.
//!
//! The loop below asks the model once for each state, and each event is a transition of `policy`. Every change is in the
//! session's store before the next request, so that a turn goes on where a killed process left it.

mod budget;
mod compaction;
mod grade;
mod machine;
mod memory;
mod notices;
mod policy;
mod prompts;
mod record;
mod request;
mod session;
mod style;
pub mod tools;
mod turn;

#[cfg(test)]
mod tests;

use super::tools::Declaration;
use super::turn::Turn;
use super::{Abort, AgentContext, ConversationState, Flow, PromptText, reply};
use crate::platform::clock::{BoxFuture, timeout};
use crate::trace::state_machine::Machine;
use crate::trace::{Answer, Logged, What};
use memory::Memory;
use notices::Notice;
use policy::{Event, State};
use serde_json::Value;
use session::Begins;
use std::time::Duration;
use turn::UnderWay;

/// The name that scenarios use.
pub const NAME: &str = "react";

/// The flow.
pub static FLOW: React = React;

/// The flow.
#[derive(Debug, Clone, Copy, Default)]
pub struct React;

impl Flow for React {
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
        &["budget_used_up", "model_unavailable", "no_answer", "timeout"]
    }

    fn reply(&self, conversation: &ConversationState, answer: &Answer) -> Value {
        let mut reply = reply::usual(answer);
        let memory: Memory = conversation.flow_state().unwrap_or_default();
        // Text, numbers and lists always serialise.
        reply["trajectory"] = serde_json::to_value(&memory.last).unwrap_or_default();
        reply
    }

    fn turn<'a>(
        &'a self,
        env: &'a AgentContext,
        conversation: &'a mut ConversationState,
        query: &'a str,
    ) -> BoxFuture<'a, Result<(), Abort>> {
        Box::pin(async move {
            let mut under_way = begin(env, conversation, query)?;
            let limit = (*env.settings.limits.turn).saturating_sub(under_way.turn.elapsed());
            let ended = timeout(&*env.clock, limit, under_way.converse()).await;
            if let Ok(ended) = ended {
                ended?;
            } else {
                under_way.turn.cut_off();
                under_way.happen(Event::TimedOut)?;
            }
            let outcome = under_way.outcome();
            let UnderWay { turn, mut memory, state, .. } = under_way;
            memory.last = Some(state.report(&memory));
            memory.under_way = None;
            let number = turn.number;
            turn.end(outcome);
            conversation.keep(&memory)?;
            let stored = env.sessions.save(&conversation.session, "ended", &conversation.to_json());
            if stored.is_ok() {
                let persisted = What::Logged(Logged::Persisted { state: "ended".into() });
                env.push(env.clock.now(), conversation.ordinal, number, persisted);
            }
            Ok(())
        })
    }

    fn session_ended(&self, env: &AgentContext, conversation: &ConversationState) {
        session::clear(env, conversation);
    }
}

/// The turn of these words: the one that a killed process left, or the next one.
fn begin<'a>(
    env: &'a AgentContext,
    conversation: &'a mut ConversationState,
    query: &str,
) -> Result<UnderWay<'a>, Abort> {
    let (mut memory, restored, lost) = match session::open(env, conversation)? {
        Begins::Usual(memory) => (memory, false, None),
        Begins::Restored(memory) => (memory, true, None),
        Begins::Afresh(why) => {
            conversation.history.clear();
            (Memory::default(), false, Some(why))
        }
    };
    if let Some(state) = memory.under_way.take().filter(|state| state.query == query) {
        let spent = (Duration::from_micros(state.elapsed_us), state.model_calls, state.minted);
        let turn = Turn::resume(env, conversation, query, spent);
        turn.log(Logged::Restored { state: Some(state.progress.state.name().to_owned()) });
        return Ok(UnderWay::new(turn, memory, state));
    }
    let turn = Turn::begin(env, conversation, query);
    if restored {
        turn.log(Logged::Restored { state: None });
    }
    let mut under_way = UnderWay::new(turn, memory, memory::TurnState::of(query));
    if let Some(reason) = lost {
        under_way.turn.log(Logged::StartedAfresh { reason });
        under_way.notice(&Notice::FreshSession);
    }
    under_way.prepare()?;
    Ok(under_way)
}

impl UnderWay<'_> {
    /// Everything between the user's words and the outcome.
    async fn converse(&mut self) -> Result<(), Abort> {
        loop {
            match self.state.progress.state {
                State::Thinking => self.think_and_act().await?,
                State::Observing => self.observe().await?,
                State::Reflecting => self.reflect().await?,
                State::Answering => self.answer().await?,
                State::Answered | State::Failed => return Ok(()),
            }
        }
    }
}

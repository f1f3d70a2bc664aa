//! `react`: reason, act, observe; reflect on failures; answer from passages graded relevant, or say that there are
//! none.
//!
//! The loop below calls the model once per state, and each event is a transition of `policy`. Every change is saved in
//! the session store before the next request, so that a restarted process continues the turn.

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
pub(crate) mod tools;
mod turn;

#[cfg(test)]
mod tests;

use super::frame::{Agent, Ended, StateOf};
use super::machine::{Table, Word};
use super::tools::declarations;
use super::turn::Turn;
use super::{Abort, AgentContext, ConversationState, Description, reply};
use crate::trace::{Answer, Logged, What};
use machine::{Event, State};
use memory::{Memory, TurnState};
use notices::Notice;
use policy::Happened;
use serde_json::Value;
use session::Begins;
use std::time::Duration;

/// The name that scenarios use.
pub(crate) const NAME: &str = "react";

pub(crate) static FLOW: React = React;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct React;

static DESCRIPTION: Description = Description {
    tools: &declarations(&tools::TOOLS),
    prompts: &prompts::PROMPTS,
    criteria: include_str!("criteria.yaml"),
    errors: &["budget_used_up", "model_unavailable", "no_answer", "timeout"],
    ..Description::new(NAME)
};

impl Agent for React {
    type State = State;
    type Event = Event;
    type Memory = Memory;
    type Own = TurnState;

    const DESCRIPTION: &'static Description = &DESCRIPTION;
    const MACHINE: &'static Table<State, Event> = &machine::MACHINE;
    const STATE: StateOf<Self> = |own| &mut own.progress.state;

    async fn converse(turn: &mut Turn<'_, Self>) -> Ended<Self> {
        loop {
            match turn.own.progress.state {
                State::Thinking => turn.think_and_act().await?,
                State::Observing => turn.observe().await?,
                State::Reflecting => turn.reflect().await?,
                State::Answering => turn.answer().await?,
                State::Answered | State::Failed => return Ok(turn.outcome()),
            }
        }
    }

    /// Begins a turn with these words: continues the one that a killed process left, or starts the next.
    fn begin<'a>(
        env: &'a AgentContext,
        conversation: &'a mut ConversationState,
        query: &str,
    ) -> Result<Turn<'a, Self>, Abort> {
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
            let mut turn = Turn::resume(env, conversation, query, memory, spent);
            turn.log(Logged::Restored { state: Some(state.progress.state.name().to_owned()) });
            turn.own = state;
            return Ok(turn);
        }
        let mut turn = Turn::begin(env, conversation, query, memory);
        turn.own = TurnState::of(query);
        if restored {
            turn.log(Logged::Restored { state: None });
        }
        if let Some(reason) = lost {
            turn.log(Logged::StartedAfresh { reason });
            turn.notice(&Notice::FreshSession);
        }
        turn.prepare()?;
        Ok(turn)
    }

    /// Delivers partial results, if there are any.
    fn timed_out(turn: &mut Turn<'_, Self>, _: Duration) -> Ended<Self> {
        turn.take(Happened::TimedOut)?;
        Ok(turn.outcome())
    }

    fn kept(env: &AgentContext, conversation: &ConversationState, number: u32) {
        let stored = env.sessions.save(&conversation.session, "ended", &conversation.to_json());
        if stored.is_ok() {
            let persisted = What::Logged(Logged::Persisted { state: "ended".into() });
            env.push(env.clock.now(), conversation.ordinal, number, persisted);
        }
    }

    fn reply(conversation: &ConversationState, answer: &Answer) -> Value {
        let mut reply = reply::usual(answer);
        let memory: Memory = conversation.flow_state().unwrap_or_default();
        // Text, numbers and lists always serialise.
        reply["trajectory"] = serde_json::to_value(&memory.last).unwrap_or_default();
        reply
    }

    fn session_ended(env: &AgentContext, conversation: &ConversationState) {
        session::clear(env, conversation);
    }
}

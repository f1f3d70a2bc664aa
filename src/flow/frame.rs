//! Runs a turn the same way for every flow: begin, time limit, cut off, end, store. A flow implements what lies
//! between.

use super::machine::{Table, Word};
use super::turn::Turn;
use super::{Abort, AgentContext, ConversationState, Description, Flow, FlowState, reply};
use crate::platform::clock::{BoxFuture, timeout};
use crate::trace::state_machine::Machine;
use crate::trace::{Answer, Artifact, TurnOutcome};
use serde_json::Value;
use std::time::Duration;

/// The parts of a flow. A type that implements it is a [`Flow`].
pub(in crate::flow) trait Agent: Send + Sync + Sized + 'static {
    /// The states of a turn.
    type State: Word;
    /// Events that move a turn from state to state.
    type Event: Word;
    /// State that outlives a turn in addition to the history; `()` for none.
    type Memory: FlowState + Send;
    /// State of the running turn. The flow's tools read and change it.
    type Own: Default + Send;

    /// What the flow declares about itself.
    const DESCRIPTION: &'static Description;
    /// The states and transitions of one turn.
    const MACHINE: &'static Table<Self::State, Self::Event>;
    /// Where [`Agent::Own`] holds the state.
    const STATE: StateOf<Self>;

    /// Runs the turn from the user's words to the outcome.
    fn converse(turn: &mut Turn<'_, Self>) -> impl Future<Output = Ended<Self>> + Send;

    /// Begins a turn with the user's words.
    ///
    /// # Errors
    /// If the stored state of the conversation cannot be used.
    fn begin<'a>(
        env: &'a AgentContext,
        conversation: &'a mut ConversationState,
        query: &str,
    ) -> Result<Turn<'a, Self>, Abort> {
        let memory = conversation.flow_state()?;
        Ok(Turn::begin(env, conversation, query, memory))
    }

    /// Called at the time limit, after calls in flight were recorded.
    fn timed_out(turn: &mut Turn<'_, Self>, limit: Duration) -> Ended<Self> {
        let _ = turn;
        let message = format!("No answer was ready within {} s.", limit.as_secs_f64());
        Err(Failure::new(Self::MACHINE.interruptions.timeout, message).into())
    }

    /// Called when turn `number` has ended and its state is stored in `conversation`.
    fn kept(env: &AgentContext, conversation: &ConversationState, number: u32) {
        let _ = (env, conversation, number);
    }

    /// Ids shown to later turns with the answer; `None` for those of its sources.
    fn ids_in_history<'m>(memory: &'m Self::Memory, outcome: &TurnOutcome) -> Option<Vec<&'m str>> {
        let _ = (memory, outcome);
        None
    }

    /// See [`Flow::reply`].
    fn reply(conversation: &ConversationState, answer: &Answer) -> Value {
        let _ = conversation;
        reply::usual(answer)
    }

    /// See [`Flow::artifacts`].
    fn artifacts(conversation: &ConversationState) -> Vec<Artifact> {
        let _ = conversation;
        Vec::new()
    }

    /// See [`Flow::session_ended`].
    fn session_ended(env: &AgentContext, conversation: &ConversationState) {
        let _ = (env, conversation);
    }
}

/// How a turn ended: its outcome, or why it broke off.
pub(in crate::flow) type Ended<A> = Result<TurnOutcome, Stop<<A as Agent>::Event>>;

/// Finds the state of a turn in what the flow keeps of the turn.
pub(in crate::flow) type StateOf<A> = fn(&mut <A as Agent>::Own) -> &mut <A as Agent>::State;

/// Why a turn broke off.
#[derive(Debug)]
pub(in crate::flow) enum Stop<E> {
    /// The user receives an error.
    Failed(Failure<E>),
    /// The trial cannot continue.
    Abort(Abort),
}

/// A turn that ends with an error: the event, the error's kind, and the message for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::flow) struct Failure<E> {
    pub(in crate::flow) on: E,
    pub(in crate::flow) kind: &'static str,
    pub(in crate::flow) message: String,
}

impl<E: Word> Failure<E> {
    /// An error whose kind is the name of its event.
    pub(in crate::flow) fn new(on: E, message: impl Into<String>) -> Self {
        Self::of_kind(on, on.name(), message)
    }

    /// An error of a kind that several events share.
    pub(in crate::flow) fn of_kind(on: E, kind: &'static str, message: impl Into<String>) -> Self {
        Self { on, kind, message: message.into() }
    }
}

impl<E> From<Failure<E>> for Stop<E> {
    fn from(failure: Failure<E>) -> Self {
        Self::Failed(failure)
    }
}

impl<E> From<Abort> for Stop<E> {
    fn from(abort: Abort) -> Self {
        Self::Abort(abort)
    }
}

/// State of a flow that keeps nothing.
impl FlowState for () {
    const FLOW: &'static str = "a flow that keeps nothing";
    const VERSION: u32 = 0;
}

impl<A: Agent> Flow for A {
    fn description(&self) -> &'static Description {
        A::DESCRIPTION
    }

    fn machine(&self) -> Machine {
        A::MACHINE.machine()
    }

    fn reply(&self, conversation: &ConversationState, answer: &Answer) -> Value {
        A::reply(conversation, answer)
    }

    fn artifacts(&self, conversation: &ConversationState) -> Vec<Artifact> {
        A::artifacts(conversation)
    }

    fn turn<'a>(
        &'a self,
        env: &'a AgentContext,
        conversation: &'a mut ConversationState,
        query: &'a str,
    ) -> BoxFuture<'a, Result<(), Abort>> {
        Box::pin(run::<A>(env, conversation, query))
    }

    fn session_ended(&self, env: &AgentContext, conversation: &ConversationState) {
        A::session_ended(env, conversation);
    }
}

/// Runs one turn, from the user's words to the stored state.
async fn run<A: Agent>(env: &AgentContext, conversation: &mut ConversationState, query: &str) -> Result<(), Abort> {
    let mut turn = A::begin(env, conversation, query)?;
    let whole = *env.settings.limits.turn;
    let left = whole.saturating_sub(turn.elapsed());
    let ended = if let Ok(ended) = timeout(&*env.clock, left, A::converse(&mut turn)).await {
        ended
    } else {
        turn.cut_off();
        A::timed_out(&mut turn, whole)
    };
    let outcome = match ended {
        Ok(outcome) => outcome,
        Err(Stop::Abort(abort)) => return Err(abort),
        Err(Stop::Failed(Failure { on, kind, message })) => {
            turn.happen(on);
            TurnOutcome::Failed { kind: kind.into(), message }
        }
    };
    let number = turn.number;
    let memory = turn.end(outcome);
    conversation.keep(&memory)?;
    A::kept(env, conversation, number);
    Ok(())
}

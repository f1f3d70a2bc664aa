//! The frame of a turn, the same for every flow: begin, time limit, cut off, end, keep. A flow says what lies between.

use super::machine::{Table, Word};
use super::turn::Turn;
use super::{Abort, AgentContext, ConversationState, Description, Flow, FlowState, reply};
use crate::platform::clock::{BoxFuture, timeout};
use crate::trace::state_machine::Machine;
use crate::trace::{Answer, Artifact, TurnOutcome};
use serde_json::Value;
use std::time::Duration;

/// What a flow is made of. Whoever implements it is a [`Flow`].
pub(in crate::flow) trait Agent: Send + Sync + Sized + 'static {
    /// The states of a turn.
    type State: Word;
    /// What moves a turn from state to state.
    type Event: Word;
    /// What outlives a turn beside the history; `()` for nothing.
    type Memory: FlowState + Send;
    /// What the flow knows of the turn under way. Its tools see and change it.
    type Own: Default + Send;

    /// The states and transitions of one turn.
    const MACHINE: &'static Table<Self::State, Self::Event>;

    /// What the flow declares about itself.
    fn description() -> &'static Description;

    /// The state of the turn under way.
    fn state(own: &mut Self::Own) -> &mut Self::State;

    /// The event that each way of breaking off is.
    fn event(cut: Cut) -> Self::Event;

    /// Everything between the user's words and the outcome.
    fn converse(turn: &mut Turn<'_, Self>) -> impl Future<Output = Ended<Self>> + Send;

    /// The turn that these words begin.
    ///
    /// # Errors
    /// When the conversation's stored state cannot be used.
    fn begin<'a>(
        env: &'a AgentContext,
        conversation: &'a mut ConversationState,
        query: &str,
    ) -> Result<Turn<'a, Self>, Abort> {
        let memory = conversation.flow_state()?;
        Ok(Turn::begin(env, conversation, query, memory))
    }

    /// The turn's time ran out; what was in flight is recorded.
    fn timed_out(turn: &mut Turn<'_, Self>, limit: Duration) -> Ended<Self> {
        let _ = turn;
        let message = format!("No answer was ready within {} s.", limit.as_secs_f64());
        Err(Failure::cut::<Self>(Cut::Timeout, message).into())
    }

    /// The turn `number` of `conversation` has ended, and the conversation holds what is kept of it.
    fn kept(env: &AgentContext, conversation: &ConversationState, number: u32) {
        let _ = (env, conversation, number);
    }

    /// The ids that later turns are shown behind the answer; `None` for those of its sources.
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

/// The ways of breaking off that the frame knows; each is an event of the flow's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::flow) enum Cut {
    /// The model's service failed, all attempts over.
    ModelUnavailable,
    /// The bound on completions was reached.
    ModelCallsExhausted,
    /// The turn's time ran out.
    Timeout,
}

/// Why a turn broke off.
#[derive(Debug)]
pub(in crate::flow) enum Stop<E> {
    /// The user gets an error.
    Failed(Failure<E>),
    /// The trial cannot go on.
    Abort(Abort),
}

/// A turn that ends with an error: the event, the error's kind, and what the user is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::flow) struct Failure<E> {
    pub(in crate::flow) on: E,
    pub(in crate::flow) kind: &'static str,
    pub(in crate::flow) message: String,
}

impl<E: Word> Failure<E> {
    /// An error of the kind that its event is called.
    pub(in crate::flow) fn new(on: E, message: impl Into<String>) -> Self {
        Self::of_kind(on, on.name(), message)
    }

    /// An error of a kind that several events may lead to.
    pub(in crate::flow) fn of_kind(on: E, kind: &'static str, message: impl Into<String>) -> Self {
        Self { on, kind, message: message.into() }
    }

    /// One of those that the frame knows.
    pub(in crate::flow) fn cut<A: Agent<Event = E>>(cut: Cut, message: String) -> Self {
        Self::new(A::event(cut), message)
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

/// Of a flow that keeps nothing.
impl FlowState for () {
    const FLOW: &'static str = "a flow that keeps nothing";
    const VERSION: u32 = 0;
}

impl<A: Agent> Flow for A {
    fn description(&self) -> &'static Description {
        A::description()
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

/// One turn, from the user's words to what is kept of it.
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

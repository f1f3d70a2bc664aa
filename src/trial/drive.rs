//! Runs a case: its conversations one after the other or side by side, each turn by turn.

use crate::flow::{Abort, AgentContext, ConversationState, Flow};
use crate::scenario::{Case, Conversation, SequenceStep, Turn};
use futures_util::future::try_join_all;

/// Runs all of `case` in `environment`. An agent that fails a turn goes on with the next, as a person would.
///
/// # Errors
/// [`Abort`] when the trial cannot go on at all.
pub(super) async fn drive(flow: &dyn Flow, environment: &AgentContext, case: &Case) -> Result<(), Abort> {
    if case.sequence.is_empty() {
        return converse(flow, environment, 0, "main", &case.asked()).await;
    }
    let mut ordinal = 0;
    for step in &case.sequence {
        match step {
            SequenceStep::Conversation(Conversation { name, turns, .. }) => {
                converse(flow, environment, ordinal, name, turns).await?;
                ordinal += 1;
            }
            SequenceStep::Together(conversations) => {
                let started = (ordinal..).zip(conversations).map(|(ordinal, conversation)| {
                    converse(flow, environment, ordinal, &conversation.name, &conversation.turns)
                });
                try_join_all(started).await?;
                ordinal += u32::try_from(conversations.len()).unwrap_or(u32::MAX);
            }
        }
    }
    Ok(())
}

async fn converse(
    flow: &dyn Flow,
    environment: &AgentContext,
    ordinal: u32,
    name: &str,
    turns: &[Turn],
) -> Result<(), Abort> {
    let mut conversation = ConversationState::new(ordinal, name);
    environment.conversation_started(&conversation);
    for turn in turns {
        flow.turn(environment, &mut conversation, &turn.ask).await?;
    }
    Ok(())
}

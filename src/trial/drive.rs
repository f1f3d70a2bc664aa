//! Runs a case: its conversations one after the other or side by side, each turn by turn.

use crate::flow::{Abort, AgentContext, ConversationState, Flow, reply};
use crate::plan::ResolvedCase;
use crate::scenario::Conversation;
use futures_util::future::try_join_all;

/// Runs all of `case` in `environment`. An agent that fails a turn goes on with the next, as a person would.
///
/// # Errors
/// [`Abort`] when the trial cannot go on at all.
pub(super) async fn drive(flow: &dyn Flow, environment: &AgentContext, case: &ResolvedCase) -> Result<(), Abort> {
    environment.sessions.declare(case.fault.as_deref().unwrap_or_default());
    let mut ordinal = 0;
    for step in &case.steps {
        environment.keywords.close();
        let started = (ordinal..).zip(step).map(|(ordinal, one)| converse(flow, environment, ordinal, one, case));
        try_join_all(started).await?;
        ordinal += u32::try_from(step.len()).unwrap_or(u32::MAX);
    }
    Ok(())
}

async fn converse(
    flow: &dyn Flow,
    environment: &AgentContext,
    ordinal: u32,
    planned: &Conversation,
    case: &ResolvedCase,
) -> Result<(), Abort> {
    let mut conversation = ConversationState::new(ordinal, &planned.name).of_tenant(planned.tenant.as_deref());
    conversation.tool_context.clone_from(&planned.tool_context);
    environment.conversation_started(&conversation);
    for turn in &planned.turns {
        while let Err(abort) = flow.turn(environment, &mut conversation, &turn.ask).await {
            conversation = match abort {
                Abort::Killed => restarted(environment, &conversation)?,
                other => return Err(other),
            };
        }
        if case.expects_reply() {
            environment.replied(ordinal, |outcome| reply::body(flow, &conversation, outcome));
        }
    }
    flow.session_ended(environment, &conversation);
    Ok(())
}

/// The conversation as a new process finds it after the old one was killed: what the store holds of it, and nothing else.
fn restarted(environment: &AgentContext, before: &ConversationState) -> Result<ConversationState, Abort> {
    match environment.sessions.load(&before.session) {
        Ok(Some(text)) => Ok(ConversationState::from_json(&text)?),
        Ok(None) | Err(_) => Ok(ConversationState::new(before.ordinal, &before.name)),
    }
}

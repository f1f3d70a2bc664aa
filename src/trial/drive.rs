//! Runs a case: its conversations in sequence or in parallel, each turn by turn.

use crate::flow::{Abort, AgentContext, ConversationState, Flow, reply};
use crate::plan::ResolvedCase;
use crate::scenario::Conversation;
use futures_util::future::try_join_all;

/// Runs all turns of `case` in `environment`. A failed turn does not stop the conversation: the next turn is sent.
///
/// # Errors
/// [`Abort`] if the trial cannot continue.
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

/// Conversation state after a simulated process restart: only what the store holds.
fn restarted(environment: &AgentContext, before: &ConversationState) -> Result<ConversationState, Abort> {
    match environment.sessions.load(&before.session) {
        Ok(Some(text)) => Ok(ConversationState::from_json(&text)?),
        Ok(None) | Err(_) => Ok(ConversationState::new(before.ordinal, &before.name)),
    }
}

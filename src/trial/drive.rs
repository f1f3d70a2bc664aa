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
        flow.turn(environment, &mut conversation, &turn.ask).await?;
        if case.expects_reply() {
            environment.replied(ordinal, |outcome| reply::body(flow, &conversation, outcome));
        }
    }
    Ok(())
}

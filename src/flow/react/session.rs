//! Stores the session: read at the beginning of a turn, written at every change, removed at the end.

use super::memory::Memory;
use crate::flow::{AgentContext, ConversationState, StateError};
use crate::trace::{Logged, What};

/// Initial state of a turn.
pub(super) enum Begins {
    Usual(Memory),
    /// From the store.
    Restored(Memory),
    /// Empty, because the stored state cannot be used.
    Afresh(String),
}

/// The newest state of the session of `conversation`: that of the store, unless the conversation is newer.
///
/// # Errors
/// If the conversation belongs to another flow.
pub(super) fn open(env: &AgentContext, conversation: &mut ConversationState) -> Result<Begins, StateError> {
    let text = match env.sessions.load(&conversation.session) {
        Ok(None) => return conversation.flow_state().map(Begins::Usual),
        Ok(Some(text)) => text,
        Err(why) => return Ok(Begins::Afresh(why.to_string())),
    };
    let restored = ConversationState::from_json(&text).and_then(|stored| Ok((stored.flow_state()?, stored)));
    match restored {
        Err(why) => Ok(Begins::Afresh(why.to_string())),
        Ok((_, stored)) if stored.turns < conversation.turns => conversation.flow_state().map(Begins::Usual),
        Ok((memory, stored)) => {
            // The conversation's identity is not taken from a store.
            conversation.history = stored.history;
            conversation.turns = stored.turns;
            Ok(Begins::Restored(memory))
        }
    }
}

/// Removes the session from its store when it is no longer needed.
pub(super) fn clear(env: &AgentContext, conversation: &ConversationState) {
    if conversation.turns > 0 && env.sessions.clear(&conversation.session).is_ok() {
        let turn = conversation.turns - 1;
        env.push(env.clock.now(), conversation.ordinal, turn, What::Logged(Logged::Cleared));
    }
}

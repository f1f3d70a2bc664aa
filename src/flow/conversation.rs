//! One conversation, as far as later turns need it.
//!
//! The history is the compact one: for each turn the user's words, and the answer with the ids of its sources (or why
//! there was none). Calls and tool results of earlier turns are not sent again; what they showed stays citable. A talk
//! can be stored and restored by whoever serves sessions.

use crate::chat::{Message, Role};
use crate::flow::tool_rag::tools::generate_response::Citable;
use crate::knowledge::ExternalRecord;
use crate::trace::TurnOutcome;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// One conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationState {
    /// Its ordinal within the trial, from 0.
    pub ordinal: u32,
    /// Its name in the scenario.
    pub name: String,
    /// The session it belongs to: the name, unless someone who serves sessions sets another.
    pub session: String,
    /// What later turns are shown, oldest first.
    pub history: Vec<Message>,
    /// Turns begun so far.
    pub turns: u32,
    /// External answers received so far, in order; ids are `result-<n>`.
    pub received: Vec<ExternalRecord>,
    /// What may be cited.
    pub citable: Citable,
}

impl ConversationState {
    /// A conversation before its first turn.
    pub fn new(ordinal: u32, name: &str) -> Self {
        Self {
            ordinal,
            name: name.to_owned(),
            session: name.to_owned(),
            history: Vec::new(),
            turns: 0,
            received: Vec::new(),
            citable: Citable::default(),
        }
    }

    /// Adds a turn to the history.
    pub fn remember(&mut self, query: &str, outcome: &TurnOutcome) {
        self.history.push(Message::text(Role::User, query));
        let told = match outcome {
            TurnOutcome::Answered(answer) if answer.sources.is_empty() => answer.text.clone(),
            TurnOutcome::Answered(answer) => {
                let ids: Vec<&str> = answer.sources.iter().map(|source| source.id.as_str()).collect();
                format!("{}\n\nSources: {}", answer.text, ids.join(", "))
            }
            TurnOutcome::Failed { message, .. } => format!("(No answer was given. {message})"),
        };
        self.history.push(Message::text(Role::Assistant, told));
    }

    /// Digests of the history, in order.
    pub fn history_digests(&self) -> Vec<String> {
        self.history.iter().map(|message| digest(message.role, &message.content)).collect()
    }
}

/// `role:digest`, the digest being the first 12 hex digits of SHA-256 over the content.
pub fn digest(role: Role, content: &str) -> String {
    let mut told = format!("{}:", role.as_str());
    for byte in Sha256::digest(content.as_bytes()).iter().take(6) {
        let _ = write!(told, "{byte:02x}");
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Answer, SourceRef};

    #[test]
    fn a_digest_is_the_role_and_the_start_of_sha_256() {
        assert_eq!(digest(Role::User, ""), "user:e3b0c44298fc");
    }

    #[test]
    fn history_keeps_the_words_the_answer_with_its_sources_and_also_failures() {
        let mut conversation = ConversationState::new(0, "main");
        let sources = vec![SourceRef { kind: "internal".into(), id: "doc#1".into(), title: String::new() }];
        let (confidence, used_internal_kb, used_external_kb) = (None, true, false);
        let answer = Answer { text: "Yes.".into(), sources, confidence, used_internal_kb, used_external_kb };
        conversation.remember("Really?", &TurnOutcome::Answered(answer));
        conversation.remember("Why?", &TurnOutcome::Failed { kind: "timeout".into(), message: "Too slow.".into() });
        let texts: Vec<_> = conversation.history.iter().map(|message| message.content.as_str()).collect();
        assert_eq!(texts, ["Really?", "Yes.\n\nSources: doc#1", "Why?", "(No answer was given. Too slow.)"]);
        assert_eq!(conversation.history_digests().len(), 4);
        let stored = serde_json::to_string(&conversation).expect("serialises");
        assert_eq!(serde_json::from_str::<ConversationState>(&stored).expect("is read"), conversation);
    }
}

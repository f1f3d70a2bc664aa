//! The history: what later turns see of earlier ones.
//!
//! The history is compact: for each turn the user's words, and the answer with the ids of its sources (or the reason
//! why there is none). Calls and tool results of earlier turns are not sent again.

use super::ConversationState;
use crate::provider::chat::{Message, Role};
use crate::trace::TurnOutcome;
use sha2::{Digest, Sha256};

impl ConversationState {
    /// Adds a turn to the history, with the sources of its answer.
    pub fn remember(&mut self, query: &str, outcome: &TurnOutcome) {
        let ids: Vec<&str> = match outcome {
            TurnOutcome::Answered(answer) => answer.sources.iter().map(|source| source.id.as_str()).collect(),
            TurnOutcome::Failed { .. } => Vec::new(),
        };
        self.remember_with(query, outcome, &ids);
    }

    /// Adds a turn to the history, with these ids listed after its answer: `[n]` in the answer is the n-th.
    pub(super) fn remember_with(&mut self, query: &str, outcome: &TurnOutcome, ids: &[&str]) {
        self.history.push(Message::text(Role::User, query));
        let answer = match outcome {
            TurnOutcome::Answered(answer) if ids.is_empty() => answer.text.clone(),
            TurnOutcome::Answered(answer) => format!("{}\n\nSources: {}", answer.text, ids.join(", ")),
            TurnOutcome::Failed { message, .. } => format!("(No answer was given. {message})"),
        };
        self.history.push(Message::text(Role::Assistant, answer));
    }

    /// Digests of the history, in order.
    pub fn history_digests(&self) -> Vec<String> {
        self.history.iter().map(|message| digest(message.role, &message.content)).collect()
    }
}

/// `role:digest`, where the digest is the first 12 hex digits of the SHA-256 of the content.
pub(crate) fn digest(role: Role, content: &str) -> String {
    format!("{}:{}", role.as_str(), hex::encode(&Sha256::digest(content.as_bytes())[..6]))
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
        let sources =
            vec![SourceRef { kind: "internal".into(), id: "doc#1".into(), title: String::new(), number: None }];
        let answer = Answer { text: "Yes.".into(), sources, used_internal_kb: true, ..Answer::default() };
        conversation.remember("Really?", &TurnOutcome::Answered(answer));
        conversation.remember("Why?", &TurnOutcome::Failed { kind: "timeout".into(), message: "Too slow.".into() });
        let texts: Vec<_> = conversation.history.iter().map(|message| message.content.as_str()).collect();
        assert_eq!(texts, ["Really?", "Yes.\n\nSources: doc#1", "Why?", "(No answer was given. Too slow.)"]);
        assert_eq!(conversation.history_digests().len(), 4);
    }
}

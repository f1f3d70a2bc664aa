//! Token budget of a turn: estimates before a request is sent, counts after its answer.

use super::policy::{MOST_RETRIES, MOST_STEPS};
use crate::provider::chat::{Message, ToolDefinition};
use serde::{Deserialize, Serialize};

/// Context window in tokens, if a scenario declares none.
pub(super) const WINDOW: u64 = 32_000;
/// Token limit of one session, if a scenario declares none.
pub(super) const SESSION_LIMIT: u64 = 400_000;
/// Tokens of an answer, if the model's settings set no limit.
const OUTPUT: u64 = 1_024;
/// Requests of the longest turn: a thought and an observation for each step, an analysis of each failure, one repeat
/// with a shorter context, and the answer.
const MOST_REQUESTS: u64 = 2 * MOST_STEPS as u64 + MOST_RETRIES as u64 + 3;

/// Upper estimate of a text's tokens, never below what dialects count for English: one token per three bytes.
pub(super) fn of_text(text: &str) -> u64 {
    (text.len() as u64).div_ceil(3)
}

/// Tokens of messages: texts and calls, and four for the frame of each message.
pub(super) fn of_messages<'m>(messages: impl IntoIterator<Item = &'m Message>) -> u64 {
    let of_calls = |message: &Message| {
        message.calls.iter().map(|call| of_text(&call.name) + of_text(&call.arguments) + 4).sum::<u64>()
    };
    messages.into_iter().map(|message| of_text(&message.content) + of_calls(message) + 4).sum()
}

/// Tokens of the tools offered.
pub(super) fn of_tools(tools: &[ToolDefinition]) -> u64 {
    let of = |tool: &ToolDefinition| {
        of_text(&tool.name) + of_text(&tool.description) + of_text(&tool.parameters.to_string())
    };
    tools.iter().map(|tool| of(tool) + 4).sum()
}

/// Input and output tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Usage {
    pub(super) input: u64,
    pub(super) output: u64,
}

impl Usage {
    /// Input plus output tokens.
    pub(super) fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Adds the usage of one more request.
    #[must_use]
    pub(super) fn and(self, input: u64, output: u64) -> Self {
        Self { input: self.input.saturating_add(input), output: self.output.saturating_add(output) }
    }
}

/// Token limits of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Budget {
    /// Tokens of the context window.
    pub(super) window: u64,
    /// Tokens per session.
    pub(super) limit: u64,
    /// The estimate above which the user is warned.
    pub(super) warn: Option<u64>,
    /// Maximum tokens of one completion.
    pub(super) output: u64,
}

impl Budget {
    /// The declared limits, or the defaults.
    pub(super) fn new(window: Option<u64>, limit: Option<u64>, warn: Option<u64>, output: Option<u32>) -> Self {
        let output = output.map_or(OUTPUT, u64::from);
        Self { window: window.unwrap_or(WINDOW), limit: limit.unwrap_or(SESSION_LIMIT), warn, output }
    }

    /// Upper limit of a turn's tokens: each request fills the window up to the compaction threshold.
    pub(super) fn most_of_turn(self) -> u64 {
        MOST_REQUESTS * (self.compacts_at() + self.output)
    }

    /// Upper limit of one more retry: a thought, an observation and an analysis, each as long as `shown`.
    pub(super) fn of_retry(self, shown: u64) -> u64 {
        3 * (shown + self.output)
    }

    /// Compaction threshold in tokens: 80 % of the window.
    pub(super) fn compacts_at(self) -> u64 {
        self.window * 4 / 5
    }

    /// Whether a request of `shown` tokens may be sent when `used` tokens are spent.
    pub(super) fn allows(self, used: Usage, shown: u64) -> bool {
        used.total() + shown + self.output <= self.limit && shown + self.output <= self.window
    }

    /// Whether the user is warned of the cost before a turn begins.
    pub(super) fn warns(self) -> bool {
        self.warn.is_some_and(|warn| self.most_of_turn() > warn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::chat::Role;
    use proptest::prelude::*;

    #[test]
    fn the_warning_comes_above_the_threshold_and_not_at_it() {
        let most = Budget::new(Some(1_000), None, None, Some(200)).most_of_turn();
        assert_eq!(most, 16 * (800 + 200));
        assert!(!Budget::new(Some(1_000), None, Some(most), Some(200)).warns());
        assert!(Budget::new(Some(1_000), None, Some(most - 1), Some(200)).warns());
        assert!(!Budget::new(None, None, None, None).warns(), "nobody asked for a warning");
    }

    proptest! {
        #[test]
        fn no_sequence_of_allowed_requests_passes_the_limit(
            limit in 0_u64..20_000, asked in prop::collection::vec((1_u64..3_000, 0_u64..400), 0..40),
        ) {
            let budget = Budget::new(Some(2_500), Some(limit), None, Some(400));
            let mut used = Usage::default();
            for (shown, wrote) in asked {
                if budget.allows(used, shown) {
                    used = used.and(shown, wrote);
                }
                prop_assert!(used.total() <= limit);
            }
        }

        #[test]
        fn more_text_is_never_fewer_tokens(texts in prop::collection::vec("\\PC{0,40}", 0..6), more in "\\PC{0,40}") {
            let messages: Vec<Message> = texts.iter().map(|text| Message::text(Role::User, text.as_str())).collect();
            let one = Message::text(Role::User, more);
            prop_assert!(of_messages(messages.iter().chain([&one])) >= of_messages(&messages) + 4);
        }
    }
}

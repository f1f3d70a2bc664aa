//! Token budget of a turn: estimates before a request is sent, counts after its answer.

use super::policy::{MOST_RETRIES, MOST_STEPS};
use super::style::Style;
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
/// Requests of a turn whose first search answers.
const USUAL_REQUESTS: u64 = 3;
/// Tokens of the passages that a search usually finds, and of what the model usually writes in one request.
const PASSAGES: u64 = 400;
const WRITTEN: u64 = 100;

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

    /// Upper limit of the tokens of a turn after `used`: each request fills the window up to the compaction threshold, and
    /// no request may exceed the session's limit.
    pub(super) fn most_of_turn(self, used: Usage) -> u64 {
        let most = MOST_REQUESTS.saturating_mul(self.compacts_at().saturating_add(self.output));
        most.min(self.limit.saturating_sub(used.total()))
    }

    /// Tokens of a turn whose first search answers: a thought, an observation and the answer, each shown as much as the
    /// first request, `shown`; the last two are shown the passages as well.
    pub(super) fn expected_of_turn(self, used: Usage, shown: u64, style: Style) -> u64 {
        let wrote = WRITTEN * if style == Style::Detailed { 4 } else { 3 };
        USUAL_REQUESTS.saturating_mul(shown).saturating_add(2 * PASSAGES + wrote).min(self.most_of_turn(used))
    }

    /// Upper limit of one more retry: a thought, an observation and an analysis, each as long as `shown`.
    pub(super) fn of_retry(self, shown: u64) -> u64 {
        shown.saturating_add(self.output).saturating_mul(3)
    }

    /// Compaction threshold in tokens: 80 % of the window.
    pub(super) fn compacts_at(self) -> u64 {
        self.window.saturating_mul(4) / 5
    }

    /// Whether a request of `shown` tokens may be sent when `used` tokens are spent.
    pub(super) fn allows(self, used: Usage, shown: u64) -> bool {
        let request = shown.saturating_add(self.output);
        used.total().saturating_add(request) <= self.limit && request <= self.window
    }

    /// Whether the user is warned of the cost before a turn begins.
    pub(super) fn warns(self, used: Usage) -> bool {
        self.warn.is_some_and(|warn| self.most_of_turn(used) > warn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::chat::Role;
    use proptest::prelude::*;

    #[test]
    fn counts_near_the_largest_number_exhaust_a_budget_and_overflow_nothing() {
        let used = Usage { input: u64::MAX, output: u64::MAX };
        let usual = Budget::new(None, None, None, None);
        assert!(!usual.allows(used, 10));
        for budget in [usual, Budget::new(Some(u64::MAX), Some(u64::MAX), None, None)] {
            let estimates = [budget.most_of_turn(used), budget.expected_of_turn(used, u64::MAX, Style::Detailed)];
            assert_eq!(estimates, [0, 0], "nothing is left");
            assert_eq!(budget.of_retry(u64::MAX), u64::MAX);
        }
    }

    #[test]
    fn the_warning_comes_above_the_threshold_and_not_at_it() {
        let none = Usage::default();
        let budget = |limit, warn| Budget::new(Some(1_000), limit, warn, Some(200));
        let most = budget(None, None).most_of_turn(none);
        assert_eq!(most, 16 * (800 + 200));
        assert!(!budget(None, Some(most)).warns(none));
        assert!(budget(None, Some(most - 1)).warns(none));
        assert!(!Budget::new(None, None, None, None).warns(none), "nobody asked for a warning");
        // What the session has left is all that a turn can use.
        let spent = Usage { input: 7_000, output: 500 };
        assert_eq!(budget(Some(10_000), None).most_of_turn(spent), 2_500);
        assert!(!budget(Some(10_000), Some(2_500)).warns(spent));
        assert_eq!(budget(Some(7_000), None).most_of_turn(spent), 0);
    }

    #[test]
    fn the_expectation_grows_with_what_is_asked_and_stays_within_the_maximum() {
        let budget = Budget::new(None, Some(10_000), None, None);
        let of = |shown, style| budget.expected_of_turn(Usage::default(), shown, style);
        assert!(of(700, Style::Concise) < of(900, Style::Concise));
        assert!(of(700, Style::Concise) < of(700, Style::Detailed));
        assert_eq!(of(9_000, Style::Concise), budget.most_of_turn(Usage::default()));
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

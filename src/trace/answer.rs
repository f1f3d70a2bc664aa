//! The end of a turn: an answer with its sources, or an error.

use super::normalise::is_invisible;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnEnded {
    /// From the user's message to the answer, in microseconds.
    pub took_us: u64,
    /// Result for the user.
    pub outcome: TurnOutcome,
    /// The whole history after this turn, which later turns must send: `role:digest` for each message.
    pub history: Vec<String>,
    /// Body of a chat service's reply for this turn, if the case has expectations on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Value>,
}

/// Result of a turn for the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// An answer, through the response tool.
    Answered(Answer),
    /// An error.
    Failed {
        /// `mandatory_call_missing`, `response_missing`, `model_calls_exhausted`, `model_unavailable`, `timeout`, …
        kind: String,
        /// Message to the user.
        message: String,
    },
}

impl TurnOutcome {
    /// The answer, if it is one.
    pub(crate) fn answer(&self) -> Option<&Answer> {
        if let Self::Answered(answer) = self { Some(answer) } else { None }
    }
}

/// An accepted answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// Its sources, in order.
    pub sources: Vec<SourceRef>,
    /// The model's confidence, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Whether it claims to use the knowledge base.
    pub used_internal_kb: bool,
    /// Whether it claims to use the external service.
    pub used_external_kb: bool,
    /// Whether it is a declared refusal: the agent itself marks it as one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// Undetermined members (`sources`, `used_internal_kb`, `used_external_kb`): their values have no meaning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
    /// For an external agent: whether its sources use the names of the passages in its traffic.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub traceable: bool,
}

/// In [`Answer::unseen`]: the sources of the answer.
pub(crate) const SOURCES: &str = "sources";
/// In [`Answer::unseen`]: whether it used the knowledge base.
pub(crate) const USED_INTERNAL_KB: &str = "used_internal_kb";
/// In [`Answer::unseen`]: whether it used the external service.
pub(crate) const USED_EXTERNAL_KB: &str = "used_external_kb";

impl Answer {
    /// An answer of which only the text is known.
    pub(crate) fn text_alone(text: String) -> Self {
        let unseen = [SOURCES, USED_INTERNAL_KB, USED_EXTERNAL_KB].map(str::to_owned).to_vec();
        Self { text, unseen, ..Self::default() }
    }

    /// Whether that member is undetermined.
    pub fn hides(&self, member: &str) -> bool {
        self.unseen.iter().any(|name| name == member)
    }

    /// The source that `[number]` in the text refers to.
    pub fn source_of(&self, number: usize) -> Option<&SourceRef> {
        let numbered = |source: &&SourceRef| source.number.is_some_and(|own| own as usize == number);
        if self.sources.iter().any(|source| source.number.is_some()) {
            return self.sources.iter().find(numbered);
        }
        number.checked_sub(1).and_then(|place| self.sources.get(place))
    }
}

/// What a model says without the reasoning before it, `<think>…</think>`.
pub(crate) fn without_reasoning(text: &str) -> &str {
    let begun = text.trim_start().strip_prefix("<think>");
    begun.and_then(|begun| begun.split_once("</think>")).map_or(text, |(_, said)| said.trim_start())
}

/// Whether a text shows nothing to its reader: white space, invisible characters and marks of Markdown alone.
pub(crate) fn is_blank(text: &str) -> bool {
    let is_unseen = |letter: char| letter.is_whitespace() || "*_~`".contains(letter) || is_invisible(letter);
    text.chars().all(is_unseen)
}

/// One source of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceRef {
    /// `internal` or `external`.
    pub kind: String,
    /// Chunk id, learned entry id, or URL.
    pub id: String,
    /// Title, where given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The number by which the text cites it, unless that is its place in the list of sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leading_block_of_reasoning_is_no_part_of_what_is_said() {
        for (text, said) in [
            ("<think>80 euros?</think> I do not know.", "I do not know."),
            ("\n<think>\nhm\n</think>\n\n80 euros.", "80 euros."),
            ("<think>hm</think>", ""),
            ("<think>cut off", "<think>cut off"),
            ("Write `<think>a</think>`.", "Write `<think>a</think>`."),
        ] {
            assert_eq!(without_reasoning(text), said);
        }
    }

    #[test]
    fn a_text_without_a_visible_character_is_blank() {
        for blank in ["", " \n", "\u{200b}", "\u{feff}\u{2060}", "**", "```\n```"] {
            assert!(is_blank(blank), "{blank:?}");
        }
        for text in ["a", "7", "…", "👍", "?", "**a**"] {
            assert!(!is_blank(text), "{text}");
        }
    }
}

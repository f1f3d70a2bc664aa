//! The prompts of `two-stage`, by stage, read from `prompts/`.

use super::tools::RETRIEVE_DOCUMENTS;
use crate::flow::PromptText;

/// The system prompt of stage 1.
pub(super) const RETRIEVAL_SYSTEM: &str = "retrieval_system";
/// The system prompt of stage 2.
pub(super) const ANSWER_SYSTEM: &str = "answer_system";
/// The text with which the model is to refuse when the documents do not hold the answer.
pub(super) const REFUSAL: &str = "refusal";

pub(super) static PROMPTS: [PromptText; 4] = [
    PromptText::fixed(RETRIEVAL_SYSTEM, include_str!("prompts/retrieval_system.md")),
    PromptText::fixed(ANSWER_SYSTEM, include_str!("prompts/answer_system.md")),
    PromptText::plain(REFUSAL, include_str!("prompts/refusal.txt")),
    PromptText::plain(RETRIEVE_DOCUMENTS, include_str!("prompts/retrieve_documents.md")),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::two_stage::FLOW;
    use crate::flow::{Prompts, Services};
    use std::collections::BTreeMap;

    #[test]
    fn the_words_of_a_refusal_stand_in_the_prompt_of_the_answer_also_when_they_are_replaced() {
        for (overrides, words) in [
            (BTreeMap::new(), include_str!("prompts/refusal.txt").trim()),
            (
                BTreeMap::from([(REFUSAL.to_owned(), "Das steht nicht in den Dokumenten.".to_owned())]),
                "Das steht nicht",
            ),
        ] {
            let prompts = Prompts::resolve(&FLOW, &overrides, Services::default()).expect("resolves");
            assert!(prompts.fixed(ANSWER_SYSTEM).is_some_and(|text| text.text.contains(words)), "{words}");
            assert!(prompts.plain(REFUSAL).is_some_and(|text| text.contains(words)));
        }
    }
}

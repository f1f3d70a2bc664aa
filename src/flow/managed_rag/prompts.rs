//! The prompts of `managed-rag`, read from `prompts/`.

use super::tools::NUCLIA_RAG;
use crate::flow::template::Value;
use crate::flow::{PromptText, Settings};

pub(super) const SYSTEM: &str = "managed_system";
/// The exact text with which the model refuses when the documents hold no answer.
pub(super) const REFUSAL: &str = "refusal";
/// Feedback on a missing call.
pub(super) const MISSING_CALL: &str = "missing_ask";
/// Feedback on an answer without its artifact.
pub(super) const MISSING_ARTIFACT: &str = "missing_artifact";
/// Feedback on an empty answer.
pub(super) const MISSING_ANSWER: &str = "missing_answer";

/// Variables of feedback.
const FEEDBACK: &[&str] = &["tool", "embed"];

pub(super) static PROMPTS: [PromptText; 6] = [
    PromptText::fixed(SYSTEM, include_str!("prompts/managed_system.md")),
    PromptText::plain(REFUSAL, include_str!("prompts/refusal.txt")),
    PromptText::plain(NUCLIA_RAG, include_str!("prompts/nuclia_rag.md")),
    PromptText::template(MISSING_CALL, include_str!("prompts/missing_ask.txt"), FEEDBACK),
    PromptText::template(MISSING_ARTIFACT, include_str!("prompts/missing_artifact.txt"), FEEDBACK),
    PromptText::template(MISSING_ANSWER, include_str!("prompts/missing_answer.txt"), FEEDBACK),
];

/// Fills in one of the feedback texts.
pub(super) fn feedback(settings: &Settings, name: &str, embed: &str) -> String {
    let values = [("tool", NUCLIA_RAG), ("embed", embed)].map(|(name, text)| (name, Value::Text(text)));
    settings.prompts.fill(name, &values).unwrap_or_default()
}

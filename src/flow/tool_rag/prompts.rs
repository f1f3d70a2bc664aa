//! The prompts of `tool-rag`, read from `prompts/`.

use super::tools::{GENERATE_RESPONSE, INDEX_KEYWORDS, KNOWLEDGE_BASE_SEARCH, PERPLEXITY_SEARCH};
use crate::flow::template::Value;
use crate::flow::{PromptText, Settings};

pub(super) const SYSTEM: &str = "system";
/// Feedback on a missing mandatory call.
pub(super) const MISSING_CALL: &str = "missing_call";
/// Error text of a call out of order.
pub(super) const ORDER: &str = "order";
/// Feedback on a missing or invalid response.
pub(super) const RESPONSE_RETRY: &str = "response_retry";

/// Variables of feedback.
const FEEDBACK: &[&str] = &["tool", "step", "reason"];

pub(super) static PROMPTS: [PromptText; 9] = [
    PromptText::fixed(SYSTEM, include_str!("prompts/system.md")),
    PromptText::plain(KNOWLEDGE_BASE_SEARCH, include_str!("prompts/knowledge_base_search.md")),
    PromptText::plain(PERPLEXITY_SEARCH, include_str!("prompts/perplexity_search.md")),
    PromptText::plain(INDEX_KEYWORDS, include_str!("prompts/index_keywords.md")),
    PromptText::plain(GENERATE_RESPONSE, include_str!("prompts/generate_response.md")),
    PromptText::plain("keyword_guidance", include_str!("prompts/keyword_guidance.md")),
    PromptText::template(MISSING_CALL, include_str!("prompts/missing_call.txt"), FEEDBACK),
    PromptText::template(ORDER, include_str!("prompts/order.txt"), FEEDBACK),
    PromptText::template(RESPONSE_RETRY, include_str!("prompts/response_retry.txt"), FEEDBACK),
];

/// Fills in one of the feedback texts.
pub(super) fn feedback(settings: &Settings, name: &str, tool: &str, step: &str, reason: &str) -> String {
    let values = [("tool", tool), ("step", step), ("reason", reason)].map(|(name, text)| (name, Value::Text(text)));
    settings.prompts.fill(name, &values).unwrap_or_else(|| reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::tool_rag::FLOW;
    use crate::flow::{Prompts, Services};
    use std::collections::BTreeMap;

    fn resolved(overrides: &[(&str, &str)], search: bool) -> Prompts {
        let overrides = overrides.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        Prompts::resolve(&FLOW, &overrides, Services { search }).expect("resolves")
    }

    fn system(prompts: &Prompts) -> &str {
        prompts.fixed(SYSTEM).map_or("", |system| system.text.as_str())
    }

    #[test]
    fn the_guidance_on_keywords_stands_in_the_system_prompt_and_feedback_is_not_escaped() {
        let prompts = resolved(&[], true);
        assert!(system(&prompts).contains("UN 3480"));
        assert_eq!(prompts.tools().len(), 4);
        let values = [("tool", "t"), ("step", "s"), ("reason", "nothing <was> called")];
        let values = values.map(|(name, text)| (name, Value::Text(text)));
        let told = prompts.fill(MISSING_CALL, &values).expect("is declared");
        assert!(told.contains("`t`") && told.contains("\"s\"") && told.contains("nothing <was> called"), "{told}");
    }

    #[test]
    fn without_an_external_service_its_tools_and_their_instructions_are_gone() {
        let prompts = resolved(&[], false);
        assert!(!prompts.offers(PERPLEXITY_SEARCH) && !prompts.offers(INDEX_KEYWORDS));
        assert!(!system(&prompts).contains(PERPLEXITY_SEARCH));
    }

    #[test]
    fn a_replaced_text_is_used_also_within_another() {
        assert!(system(&resolved(&[("keyword_guidance", "Five words.")], true)).ends_with("Five words."));
        let overrides = BTreeMap::from([(KNOWLEDGE_BASE_SEARCH.to_owned(), " Looks things up. ".to_owned())]);
        let prompts = Prompts::resolve(&FLOW, &overrides, Services::default()).expect("resolves");
        assert_eq!(prompts.tools()[0].description, "Looks things up.");
    }
}
